// SPDX-License-Identifier: Apache-2.0
//! GIST messages (RFC 5971): one file per object, whole messages in `message.rs`, streams of them in `stream.rs`.

mod cookie;
mod error;
mod error_object;
mod header;
mod hello;
pub mod limits;
mod message;
mod mri;
mod nat_traversal;
mod nli;
mod parse;
mod reader;
mod session;
mod stack_configuration;
mod stack_proposal;
mod stream;
#[cfg(test)]
mod tests;
mod time;
mod tlv;

pub use cookie::Cookie;
pub use error::{DecodeContext, DecodeError, ErrorCode};
pub use error_object::{AdditionalInfo, ErrorObject};
pub use header::{HEADER_BYTES, Header, MessageType, set_hops};
pub use message::Message;
pub use mri::{Direction, LooseEnd, Mri, OtherMri, PathCoupled};
pub use nat_traversal::NatTraversal;
pub use nli::Nli;
pub use stack_configuration::{ProtocolOption, StackConfiguration};
pub use stack_proposal::{PROTOCOL_FORWARDS_SCTP, PROTOCOL_FORWARDS_TCP, PROTOCOL_TLS, StackProposal};
pub use stream::{MessageStream, StreamMessage};
pub use tlv::{ObjectType, RawObject};

/// The first 32 bits of every GIST datagram (RFC 5971 §5.3.1); not part of the message.
pub const MAGIC: u32 = 0x4E04_BDA5;
/// The UDP port of GIST (RFC 5971 §9).
pub const UDP_PORT: u16 = 270;
/// The version of the protocol (RFC 5971 A.1).
pub const VERSION: u8 = 0x01;

/// Returns the message in a datagram's payload, or `None` if the magic number is not in front.
pub fn strip_magic(payload: &[u8]) -> Option<&[u8]> {
    payload.strip_prefix(&MAGIC.to_be_bytes())
}
