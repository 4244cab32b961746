// SPDX-License-Identifier: Apache-2.0
//! Requests, and responses to them.

use std::net::SocketAddr;

use netserv_sdk::text::{ByteSet, Writer, little_endian};

use crate::grammar::{HEADERS_MAX, Header, has_tag, is_text, split_header, split_line};
use crate::via::{self, Forced, Transport};

/// A request whose headers could be told apart, with those that matter here.
#[derive(Debug)]
pub struct Request<'a> {
    method: &'a [u8],
    uri: &'a [u8],
    headers: Headers<'a>,
    from: &'a [u8],
    to: &'a [u8],
    call_id: &'a [u8],
    cseq: &'a [u8],
}

impl<'a> Request<'a> {
    /// Returns the request in a datagram; nothing if it is none or lacks what every request has (RFC 3261 §8.1.1).
    pub fn parse(datagram: &'a [u8]) -> Option<Request<'a>> {
        let (first, mut rest) = split_line(datagram, 0)?;
        let method_end = SPACE.find(first, 0);
        let uri_end = SPACE.find(first, method_end + 1);
        let (method, uri) = (&first[..method_end], first.get(method_end + 1..uri_end)?);
        if uri.is_empty() || !is_text(first.get(uri_end + 1..)?, b"SIP/2.0") {
            return None;
        }
        let mut headers = Headers::default();
        for _ in 0..=HEADERS_MAX {
            let (name, value, after) = match split_header(rest)? {
                Header::End => return headers.into_request(method, uri),
                Header::One { name, value, goes_on, rest } => {
                    headers.go_on |= goes_on;
                    (name, value, rest)
                }
            };
            headers.take(name, value)?;
            rest = after;
        }
        None
    }

    /// Returns whether this is a NOTIFY that only keeps a binding alive. One with credentials is for the server to judge, and one with
    /// Route for whoever that leads to.
    pub fn is_keep_alive_notify(&self) -> bool {
        let is_keep_alive = |event: &[u8]| {
            event == b"keep-alive" || is_text(event[..SEMICOLON.find(event, 0)].trim_ascii(), b"keep-alive")
        };
        self.method == b"NOTIFY" && self.headers.asks_nothing() && self.headers.event.is_some_and(is_keep_alive)
    }

    /// Returns whether this is an OPTIONS outside a dialog to the server itself, without credentials and without Route.
    pub fn is_ping(&self) -> bool {
        self.method == b"OPTIONS" && self.headers.asks_nothing() && !has_tag(self.to) && names_no_user(self.uri)
    }

    /// Returns the method.
    pub fn method(&self) -> &'a [u8] {
        self.method
    }

    /// Returns the request URI.
    pub fn uri(&self) -> &'a [u8] {
        self.uri
    }

    /// Returns the value of From.
    pub fn from(&self) -> &'a [u8] {
        self.from
    }

    /// Returns the value of To.
    pub fn to(&self) -> &'a [u8] {
        self.to
    }

    /// Returns the value of Call-ID.
    pub fn call_id(&self) -> &'a [u8] {
        self.call_id
    }

    /// Returns the value of CSeq.
    pub fn cseq(&self) -> &'a [u8] {
        self.cseq
    }

    /// Returns the value of the topmost Via header, which may hold several with commas between.
    pub fn via(&self) -> &'a [u8] {
        self.headers.via.unwrap_or_default()
    }

    /// Returns the value of Priority.
    pub fn priority(&self) -> Option<&'a [u8]> {
        self.headers.priority
    }

    /// Returns the values of Resource-Priority (RFC 4412).
    pub fn resource_priorities(&self) -> &[&'a [u8]] {
        &self.headers.resource_priorities
    }

    /// Returns whether the request asks for extensions, which only the server can say no to.
    pub fn requires(&self) -> bool {
        self.headers.requires
    }

    /// Returns whether the request is of a dialog that there is.
    pub fn is_in_dialog(&self) -> bool {
        has_tag(self.to)
    }

    /// Writes the 200 response to a request that came over UDP, and returns the port that it goes to. `source` is where the request
    /// came from; `secret` makes the To tag one that nobody can guess.
    ///
    /// Returns nothing if the topmost Via is damaged or asks for another transport or address.
    #[inline(always)]
    pub fn ok_response(
        &self,
        source: SocketAddr,
        force_rport: bool,
        secret: u64,
        response: &mut Writer<'_>,
    ) -> Option<u16> {
        let answer = Answer { status: b"200 OK", more: b"" };
        let forced = if force_rport { Forced::Always } else { Forced::Never };
        self.respond(&answer, (source, Transport::Udp), forced, || self.to_tag(secret), response)
    }

    /// Writes a response to the request, and returns the port that it goes to. The request came from that address by that transport;
    /// `to_tag` gives the tag of To if the request has none.
    ///
    /// Returns nothing if the topmost Via is damaged or asks for another transport or address.
    #[inline(always)]
    pub fn respond<T: AsRef<[u8]>>(
        &self,
        answer: &Answer<'_>,
        (source, transport): (SocketAddr, Transport),
        forced: Forced,
        to_tag: impl FnOnce() -> T,
        response: &mut Writer<'_>,
    ) -> Option<u16> {
        response.put(b"SIP/2.0 ");
        response.put(answer.status);
        response.put(b"\r\nVia: ");
        let top = via::answer_first(self.headers.via?, source, transport, response)?;
        let is_forced = match forced {
            Forced::Never => false,
            Forced::BehindNat => top.is_behind_nat,
            Forced::Always => true,
        };
        let port = if top.has_rport || is_forced { source.port() } else { top.port };
        for via in Some(top.others).filter(|others| !others.is_empty()).iter().chain(&self.headers.other_vias) {
            response.put(b"\r\nVia: ");
            response.put(via);
        }
        response.put(b"\r\nFrom: ");
        response.put(self.from);
        response.put(b"\r\nTo: ");
        response.put(self.to);
        if !has_tag(self.to) {
            response.put(b";tag=");
            response.put(to_tag().as_ref());
        }
        response.put(b"\r\nCall-ID: ");
        response.put(self.call_id);
        response.put(b"\r\nCSeq: ");
        response.put(self.cseq);
        response.put(answer.more);
        response.put(b"\r\nContent-Length: 0\r\n\r\n");
        if self.headers.go_on {
            put_on_one_line_each(response.written_mut());
        }
        (port != 0).then_some(port)
    }

    /// Returns the To tag of a response, hexadecimal: the same for a request that comes again (RFC 3261 §8.2.7).
    pub fn to_tag(&self, secret: u64) -> [u8; 16] {
        // FNV-1a by words, then the last steps of SplitMix64.
        let mut hash = secret ^ 0xcbf2_9ce4_8422_2325;
        let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        for part in [self.call_id, self.from, self.cseq] {
            let (words, rest) = part.as_chunks::<8>();
            for word in words {
                mix(u64::from_le_bytes(*word));
            }
            mix(part.len() as u64);
            mix(little_endian(rest));
        }
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        let mut digits = [0; 16];
        digits[..8].copy_from_slice(&hexadecimal(hash >> 32));
        digits[8..].copy_from_slice(&hexadecimal(hash & 0xffff_ffff));
        digits
    }
}

/// What a response says beyond what it copies from its request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Status code and reason.
    pub status: &'a [u8],
    /// Further header lines, each with a line end before it.
    pub more: &'a [u8],
}

/// The headers that were found so far: whole values, without spaces around.
#[derive(Debug, Default)]
struct Headers<'a> {
    /// The topmost. It may hold several, with commas between.
    via: Option<&'a [u8]>,
    other_vias: Vec<&'a [u8]>,
    from: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
    call_id: Option<&'a [u8]>,
    cseq: Option<&'a [u8]>,
    event: Option<&'a [u8]>,
    priority: Option<&'a [u8]>,
    resource_priorities: Vec<&'a [u8]>,
    /// Whether it asks for extensions, which only the server can say no to.
    requires: bool,
    /// Whether it has credentials (RFC 3261 §22), which only the server can judge.
    has_credentials: bool,
    /// Whether it is to go by others (RFC 3261 §16.4): then it is for somebody behind the server.
    has_route: bool,
    /// Whether some header goes on in further lines.
    go_on: bool,
}

impl<'a> Headers<'a> {
    /// Takes a header. Returns nothing if there is one of its kind that there may be only one of.
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Option<()> {
        let once = |place: &mut Option<&'a [u8]>| place.replace(value).is_none().then_some(());
        match lower_case_word(name) {
            VIA | VIA_SHORT => self.take_via(value),
            FROM | FROM_SHORT => once(&mut self.from)?,
            TO | TO_SHORT => once(&mut self.to)?,
            CALL_ID | CALL_ID_SHORT => once(&mut self.call_id)?,
            CSEQ => once(&mut self.cseq)?,
            EVENT | EVENT_SHORT => once(&mut self.event)?,
            REQUIRE => self.requires = true,
            ROUTE => self.has_route = true,
            PRIORITY => self.priority = self.priority.or(Some(value)),
            TOO_LONG => self.take_long(name, value),
            _ => {}
        }
        Some(())
    }

    fn take_long(&mut self, name: &[u8], value: &'a [u8]) {
        // Names of 13, 17 and 19 letters; most headers have fewer.
        if name.len() < PROXY_REQUIRE.len() {
            return;
        }
        self.requires |= is_text(name, PROXY_REQUIRE);
        self.has_credentials |= is_text(name, AUTHORIZATION) || is_text(name, PROXY_AUTHORIZATION);
        if is_text(name, RESOURCE_PRIORITY) {
            self.resource_priorities.push(value);
        }
    }

    fn asks_nothing(&self) -> bool {
        !self.requires && !self.has_credentials && !self.has_route
    }

    fn take_via(&mut self, value: &'a [u8]) {
        if self.via.is_some() {
            self.other_vias.push(value);
        } else {
            self.via = Some(value);
        }
    }

    fn into_request(self, method: &'a [u8], uri: &'a [u8]) -> Option<Request<'a>> {
        self.via?;
        let (from, to, call_id, cseq) = (self.from?, self.to?, self.call_id?, self.cseq?);
        let digits = cseq.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = cseq.split_at(digits);
        let fits = !number.is_empty() && rest.first()?.is_ascii_whitespace() && rest.trim_ascii_start() == method;
        let filled = [from, to, call_id].iter().all(|value| !value.is_empty());
        (filled && fits).then_some(Request { method, uri, headers: self, from, to, call_id, cseq })
    }
}

/// Makes the lines that a header goes on in part of its first, by spaces.
#[cold]
fn put_on_one_line_each(text: &mut [u8]) {
    for at in 0..text.len().saturating_sub(2) {
        if text[at..].starts_with(b"\r\n") && matches!(text[at + 2], b' ' | b'\t') {
            text[at..at + 2].fill(b' ');
        }
    }
}

/// Returns whether a SIP URI is of a server and not of a user there.
fn names_no_user(uri: &[u8]) -> bool {
    let scheme = uri.iter().position(|byte| *byte == b':').map(|colon| uri.split_at(colon + 1));
    scheme.is_some_and(|(scheme, rest)| {
        let known = scheme.eq_ignore_ascii_case(b"sip:") || scheme.eq_ignore_ascii_case(b"sips:");
        known && !rest.is_empty() && !rest.contains(&b'@')
    })
}

/// Returns the digits of a number below 2³², all eight at a time.
fn hexadecimal(number: u64) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let words = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (words | words << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes | bytes << 4) & (EACH * 0xf);
    // Adding 6 carries into the upper half of those that are letters.
    let letters = (digits + EACH * 6) >> 4 & EACH;
    (digits + EACH * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

/// Returns a token of at most eight bytes as a number, its letters in lower case. No two tokens with letters share it.
fn lower_case_word(token: &[u8]) -> u64 {
    // This bit is what upper case lacks.
    const LOWER: u64 = 0x2020_2020_2020_2020;
    match token.len() {
        1..=8 => little_endian(token) | LOWER >> (64 - 8 * token.len()),
        _ => TOO_LONG,
    }
}

/// Returns a name in lower case, as [`lower_case_word`] does.
const fn word(name: &[u8]) -> u64 {
    let (mut word, mut at) = (0, name.len());
    while at > 0 {
        at -= 1;
        word = word << 8 | name[at] as u64;
    }
    word
}

const PROXY_REQUIRE: &[u8; 13] = b"Proxy-Require";
const AUTHORIZATION: &[u8; 13] = b"Authorization";
const RESOURCE_PRIORITY: &[u8; 17] = b"Resource-Priority";
const PROXY_AUTHORIZATION: &[u8; 19] = b"Proxy-Authorization";

const PRIORITY: u64 = word(b"priority");
const ROUTE: u64 = word(b"route");
const VIA: u64 = word(b"via");
const VIA_SHORT: u64 = word(b"v");
const FROM: u64 = word(b"from");
const FROM_SHORT: u64 = word(b"f");
const TO: u64 = word(b"to");
const TO_SHORT: u64 = word(b"t");
const CALL_ID: u64 = word(b"call-id");
const CALL_ID_SHORT: u64 = word(b"i");
const CSEQ: u64 = word(b"cseq");
const EVENT: u64 = word(b"event");
const EVENT_SHORT: u64 = word(b"o");
const REQUIRE: u64 = word(b"require");
const TOO_LONG: u64 = 0;

const SPACE: ByteSet = ByteSet::of(b" ");
const SEMICOLON: ByteSet = ByteSet::of(b";");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::TOKEN;

    #[test]
    fn servers_have_no_user() {
        for uri in ["sip:example.com", "SIPS:[2001:db8::1]:5061;transport=udp", "sip:192.0.2.1"] {
            assert!(names_no_user(uri.as_bytes()), "{uri}");
        }
        for uri in ["sip:alice@example.com", "tel:+1234", "sip:", "example.com", "sip:example.com?a=b@c"] {
            assert!(!names_no_user(uri.as_bytes()), "{uri}");
        }
    }

    #[test]
    fn headers_may_go_on_in_the_next_line() {
        let Some(Header::One { name, value, goes_on, rest }) =
            split_header(b"Event :  keep-\r\n\t alive \r\nTo: x\r\n\r\n")
        else {
            panic!("a header");
        };
        assert_eq!((name, value, rest), (&b"Event"[..], &b"keep-\r\n\t alive"[..], &b"To: x\r\n\r\n"[..]));
        assert!(goes_on);
        let mut written = b"Event: keep-\r\n\t alive\r\nTo: x\r\n\r\n".to_vec();
        put_on_one_line_each(&mut written);
        assert_eq!(written, b"Event: keep-  \t alive\r\nTo: x\r\n\r\n");
    }

    #[test]
    fn hexadecimal_digits_are_those_of_everywhere() {
        for number in [0, 0x0123_4567, 0x89ab_cdef, 0xffff_ffff, 0x9a9a_0f0f] {
            assert_eq!(hexadecimal(number), *format!("{number:08x}").as_bytes());
        }
    }

    #[test]
    fn names_of_headers_are_told_apart() {
        for (name, expected) in [("Via", VIA), ("CALL-id", CALL_ID), ("i", CALL_ID_SHORT), ("Proxy-Require", TOO_LONG)]
        {
            assert_eq!(lower_case_word(name.as_bytes()), expected, "{name}");
        }
        assert_eq!(lower_case_word(b"Supports"), word(b"supports"));
        for byte in (0..=255).filter(|byte| TOKEN.has(*byte) && !byte.is_ascii_alphabetic()) {
            assert!(!(byte | 0x20).is_ascii_alphabetic(), "{byte}");
        }
    }
}
