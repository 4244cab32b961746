// SPDX-License-Identifier: Apache-2.0
//! Objects as bytes (RFC 5971 A.2): type, extensibility flags, length in words, value.

/// An object that the node does not know and must forward unchanged (A=1, B=0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawObject {
    /// The object type, 12 bits.
    pub kind: u16,
    /// The value, whole words.
    pub value: Vec<u8>,
}
