// SPDX-License-Identifier: Apache-2.0
//! SIP messages (RFC 3261 §7) as places in the bytes that they came in.
//!
//! [`parse`] copies nothing: it says where the parts are. It holds a message to the letter in what frames it and in the
//! headers that every message has, and leaves all other values alone. Lines end with CRLF; a bare CR, a bare LF or a NUL
//! in the head makes a message malformed, since programs differ in what they take it for.

mod error;
pub mod limits;
mod message;
mod name;
mod value;

pub use error::SipError;
pub use message::{Header, Message, Start, parse};
pub use name::{HeaderName, Method};

/// A place in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub start: u16,
    /// How many bytes.
    pub length: u16,
}

impl Span {
    /// Returns the bytes at this place; none if the place is not in there.
    pub fn of(self, message: &[u8]) -> &[u8] {
        message.get(usize::from(self.start)..self.end()).unwrap_or_default()
    }

    /// Returns where the byte after it is.
    pub fn end(self) -> usize {
        usize::from(self.start) + usize::from(self.length)
    }

    /// Returns the place between two others of a message, which is no longer than [`limits::MESSAGE_BYTES_MAX`].
    fn between(start: usize, end: usize) -> Span {
        let place = |at: usize| u16::try_from(at).expect("a message has at most MESSAGE_BYTES_MAX bytes");
        Span { start: place(start), length: place(end.saturating_sub(start)) }
    }
}

#[cfg(test)]
mod tests;
