// SPDX-License-Identifier: Apache-2.0
//! SIP messages (RFC 3261), read by the node: the block `sip`.
//!
//! ```no_run
//! use netserv_sdk::sip::{self, HeaderName, Method, Room};
//!
//! # let payload: &[u8] = b"";
//! let mut room = Room::new();
//! if let Ok(message) = sip::parse(payload, &mut room)
//!     && message.method() == Method::Invite
//! {
//!     let agent = message.header(HeaderName::USER_AGENT);
//! }
//! ```

use crate::error::Error;
use crate::host;

/// Where the node writes what a message holds: one for all messages of a module.
#[derive(Clone, Debug)]
pub struct Room {
    bytes: [u8; HEAD_BYTES + HEADERS_MAX * HEADER_BYTES],
}

/// A message: its parts as places in the bytes it was read from.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    parts: &'a [u8],
    headers: usize,
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// What it is, whichever form its name has.
    pub name: HeaderName,
    /// Its name as it was written.
    pub text: &'a [u8],
    /// Its value without spaces around it; it may go on in further lines.
    pub value: &'a [u8],
}

/// What a header is, by its number in the packet ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderName(pub u16);

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// One that has no number; see [`Message::method_name`].
    Other,
    /// INVITE.
    Invite,
    /// ACK.
    Ack,
    /// BYE.
    Bye,
    /// CANCEL.
    Cancel,
    /// REGISTER.
    Register,
    /// OPTIONS.
    Options,
    /// PRACK.
    Prack,
    /// SUBSCRIBE.
    Subscribe,
    /// NOTIFY.
    Notify,
    /// PUBLISH.
    Publish,
    /// INFO.
    Info,
    /// REFER.
    Refer,
    /// MESSAGE.
    Message,
    /// UPDATE.
    Update,
}

/// Reads a message of at most 65,535 bytes: the payload of a UDP packet.
///
/// # Errors
/// [`Error::NotFound`] for bytes that do not begin like SIP, [`Error::Invalid`] for a damaged message,
/// [`Error::TooLarge`] for one with more than 128 headers.
pub fn parse<'a>(bytes: &'a [u8], room: &'a mut Room) -> Result<Message<'a>, Error> {
    let headers = host::sip_parse(bytes, &mut room.bytes)?;
    Ok(Message { bytes, parts: &room.bytes, headers: headers.min(HEADERS_MAX) })
}

impl Room {
    /// Returns room for any message.
    pub const fn new() -> Room {
        Room { bytes: [0; HEAD_BYTES + HEADERS_MAX * HEADER_BYTES] }
    }
}

impl Default for Room {
    fn default() -> Room {
        Room::new()
    }
}

impl<'a> Message<'a> {
    /// Returns the status code of a response; nothing for a request.
    pub fn status(&self) -> Option<u16> {
        Some(self.word(0)).filter(|status| *status != 0)
    }

    /// Returns the method of a request, or that of the request which a response answers.
    pub fn method(&self) -> Method {
        METHODS.get(usize::from(self.word(2))).copied().unwrap_or(Method::Other)
    }

    /// Returns the name of that method.
    pub fn method_name(&self) -> &'a [u8] {
        self.part(16)
    }

    /// Returns the Request-URI of a request; nothing for a response.
    pub fn uri(&self) -> Option<&'a [u8]> {
        self.status().is_none().then(|| self.part(20))
    }

    /// Returns the Call-ID.
    pub fn call_id(&self) -> &'a [u8] {
        self.part(24)
    }

    /// Returns the number of the CSeq.
    pub fn cseq(&self) -> u32 {
        u32::from(self.word(8)) | u32::from(self.word(10)) << 16
    }

    /// Returns the URI of the From, without angle brackets.
    pub fn from_uri(&self) -> &'a [u8] {
        self.part(28)
    }

    /// Returns the tag of the From; empty if there is none.
    pub fn from_tag(&self) -> &'a [u8] {
        self.part(32)
    }

    /// Returns the URI of the To, without angle brackets.
    pub fn to_uri(&self) -> &'a [u8] {
        self.part(36)
    }

    /// Returns the tag of the To; empty if there is none.
    pub fn to_tag(&self) -> &'a [u8] {
        self.part(40)
    }

    /// Returns the topmost Via with its parameters.
    pub fn via(&self) -> &'a [u8] {
        self.part(44)
    }

    /// Returns host and port of the topmost Via.
    pub fn sent_by(&self) -> &'a [u8] {
        self.part(48)
    }

    /// Returns the branch of the topmost Via; empty if there is none.
    pub fn branch(&self) -> &'a [u8] {
        self.part(52)
    }

    /// Returns the body.
    pub fn body(&self) -> &'a [u8] {
        self.part(56)
    }

    /// Returns all headers in their order.
    pub fn headers(&self) -> impl Iterator<Item = Header<'a>> + use<'a> {
        let Message { bytes, parts, headers } = *self;
        parts[HEAD_BYTES..].as_chunks::<HEADER_BYTES>().0.iter().take(headers).map(move |header| Header {
            name: HeaderName(word(header, 0)),
            text: span(bytes, header, 2),
            value: span(bytes, header, 6),
        })
    }

    /// Returns the value of the first header of a kind.
    pub fn header(&self, name: HeaderName) -> Option<&'a [u8]> {
        self.headers().find(|header| header.name == name).map(|header| header.value)
    }

    fn word(&self, at: usize) -> u16 {
        word(self.parts, at)
    }

    fn part(&self, at: usize) -> &'a [u8] {
        span(self.bytes, self.parts, at)
    }
}

impl HeaderName {
    /// Call-ID.
    pub const CALL_ID: HeaderName = HeaderName(4);
    /// Contact.
    pub const CONTACT: HeaderName = HeaderName(6);
    /// Max-Forwards.
    pub const MAX_FORWARDS: HeaderName = HeaderName(7);
    /// Content-Type.
    pub const CONTENT_TYPE: HeaderName = HeaderName(11);
    /// Expires.
    pub const EXPIRES: HeaderName = HeaderName(13);
    /// Event.
    pub const EVENT: HeaderName = HeaderName(14);
    /// User-Agent.
    pub const USER_AGENT: HeaderName = HeaderName(15);
    /// Server.
    pub const SERVER: HeaderName = HeaderName(16);
    /// Authorization.
    pub const AUTHORIZATION: HeaderName = HeaderName(17);
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn span<'a>(bytes: &'a [u8], parts: &[u8], at: usize) -> &'a [u8] {
    let (start, length) = (usize::from(word(parts, at)), usize::from(word(parts, at + 2)));
    bytes.get(start..start + length).unwrap_or_default()
}

const METHODS: [Method; 15] = [
    Method::Other,
    Method::Invite,
    Method::Ack,
    Method::Bye,
    Method::Cancel,
    Method::Register,
    Method::Options,
    Method::Prack,
    Method::Subscribe,
    Method::Notify,
    Method::Publish,
    Method::Info,
    Method::Refer,
    Method::Message,
    Method::Update,
];
const HEAD_BYTES: usize = 64;
const HEADER_BYTES: usize = 12;
const HEADERS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_the_node_says() {
        crate::fake::reset(&[]);
        let bytes = b"INVITE sip:b@example.org SIP/2.0\r\nv: SIP/2.0/UDP 192.0.2.1:5062;branch=z9\r\n\
            From: \"A\" <sip:a@example.org>;tag=1\r\nt: sip:b@example.org\r\nCall-ID: c\r\nCSeq: 70000 INVITE\r\n\
            User-Agent: phone 1\r\nl: 4\r\n\r\nbodyrest";
        let mut room = Room::new();
        let message = parse(bytes, &mut room).unwrap();
        assert_eq!((message.status(), message.method(), message.cseq()), (None, Method::Invite, 70_000));
        assert_eq!((message.uri(), message.call_id()), (Some(&b"sip:b@example.org"[..]), &b"c"[..]));
        assert_eq!((message.from_uri(), message.from_tag()), (&b"sip:a@example.org"[..], &b"1"[..]));
        assert_eq!((message.to_uri(), message.to_tag()), (&b"sip:b@example.org"[..], &b""[..]));
        assert_eq!((message.sent_by(), message.branch()), (&b"192.0.2.1:5062"[..], &b"z9"[..]));
        assert_eq!((message.body(), message.method_name()), (&b"body"[..], &b"INVITE"[..]));
        assert_eq!(message.header(HeaderName::USER_AGENT), Some(&b"phone 1"[..]));
        assert_eq!(message.headers().count(), 7);
        assert_eq!(parse(b"x", &mut Room::new()).unwrap_err(), Error::NotFound);
        assert_eq!(parse(b"ACK sip:a SIP/2.0\r\n", &mut Room::new()).unwrap_err(), Error::Invalid);
    }
}
