// SPDX-License-Identifier: Apache-2.0
//! Short proofs that a text which comes back is the edge's own.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// Returns the first eight bytes of a code in hexadecimal digits.
pub fn of(code: Hmac<Sha256>) -> String {
    code.finalize().into_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
