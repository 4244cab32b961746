// SPDX-License-Identifier: Apache-2.0
//! The common header (RFC 5971 A.1).

use super::DecodeError;

/// Bytes of the common header.
pub const HEADER_BYTES: usize = 8;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageType {
    /// Looks for the next node of an NSLP along a flow.
    Query,
    /// Answers a Query.
    Response,
    /// Completes the handshake.
    Confirm,
    /// Carries NSLP data.
    Data,
    /// Tells that a message was wrong.
    Error,
    /// Keeps a messaging association alive.
    MaHello,
}

/// The common header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// GIST nodes that the message may still visit, the next included.
    pub hops: u8,
    /// Words of the message after the header.
    pub words: u16,
    /// The signaling application; 0 is GIST itself.
    pub nslp_id: u16,
    /// The type.
    pub kind: MessageType,
    /// C: the message stands outside a routing state.
    pub context_free: bool,
    /// S: the IP source is the sender's own.
    pub source_is_signaller: bool,
    /// R: the sender wants a reply.
    pub reply_wanted: bool,
    /// E: explicitly routed.
    pub explicit: bool,
}

impl Header {
    /// Reads the header at the start of a message and checks version, type and flags, but neither length nor hop count.
    ///
    /// # Errors
    /// Code 1: unknown version or type, or flags that do not fit the type.
    pub fn parse(bytes: &[u8]) -> Result<Header, DecodeError> {
        todo!("{bytes:?}")
    }

    /// Returns the bytes of the header.
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        todo!()
    }
}
