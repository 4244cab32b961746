// SPDX-License-Identifier: Apache-2.0
//! Stack proposal (object 3, RFC 5971 A.3.4): which stacks of protocols a messaging association may use.

/// The MA-Protocol-ID of TCP in the forward direction.
pub const PROTOCOL_FORWARDS_TCP: u8 = 0x01;
/// The MA-Protocol-ID of TLS, initiated by the querying node.
pub const PROTOCOL_TLS: u8 = 0x02;
/// The MA-Protocol-ID of SCTP in the forward direction (RFC 6084).
pub const PROTOCOL_FORWARDS_SCTP: u8 = 0x03;

/// Which stacks of protocols a messaging association may use, most wanted first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackProposal {
    /// MA-Protocol-IDs from top to bottom, 1–255 of them, in each of 1–255 profiles.
    pub profiles: Vec<Vec<u8>>,
}
