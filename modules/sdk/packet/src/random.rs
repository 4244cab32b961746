// SPDX-License-Identifier: Apache-2.0
//! Random bytes of the node's.

use crate::host;

/// Fills `into`.
pub fn fill(into: &mut [u8]) {
    for chunk in into.chunks_mut(4096) {
        host::random(chunk).expect("the node gives 4,096 random bytes at a time");
    }
}

/// Returns a random number.
pub fn number() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
