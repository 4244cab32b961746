// SPDX-License-Identifier: Apache-2.0
//! As much of SIP (RFC 3261) as keep-alives need.

use std::net::SocketAddr;

use crate::via::Via;

/// A request whose headers could be told apart, with those that matter here.
#[derive(Debug)]
pub struct Request<'a> {
    method: &'a [u8],
    uri: &'a [u8],
    /// Whole header values, topmost first. One may hold several, with commas between.
    vias: Vec<&'a [u8]>,
    from: &'a [u8],
    to: &'a [u8],
    call_id: &'a [u8],
    cseq: &'a [u8],
    event: Option<&'a [u8]>,
    /// Whether it asks for extensions, which only the server can say no to.
    requires: bool,
}

impl<'a> Request<'a> {
    /// Returns the request in a datagram; nothing if it is none or lacks what every request has (RFC 3261 §8.1.1).
    pub fn parse(datagram: &'a [u8]) -> Option<Request<'a>> {
        let (first, mut rest) = split_line(datagram)?;
        let mut words = first.split(|byte| *byte == b' ');
        let (method, uri, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.eq_ignore_ascii_case(b"SIP/2.0") || uri.is_empty() {
            return None;
        }
        let mut found = Found::default();
        for _ in 0..=HEADERS_MAX {
            let (name, value, after) = match split_header(rest)? {
                Header::End => return found.into_request(method, uri),
                Header::One { name, value, rest } => (name, value, rest),
            };
            found.take(name, value)?;
            rest = after;
        }
        None
    }

    /// Returns whether this is a NOTIFY that only keeps a binding alive.
    pub fn is_keep_alive_notify(&self) -> bool {
        let package = self.event.and_then(|event| event.split(|byte| *byte == b';').next());
        self.method == b"NOTIFY"
            && !self.requires
            && package.is_some_and(|package| package.trim_ascii().eq_ignore_ascii_case(b"keep-alive"))
    }

    /// Returns whether this is an OPTIONS outside a dialog to the server itself.
    pub fn is_ping(&self) -> bool {
        self.method == b"OPTIONS" && !self.requires && !has_tag(self.to) && names_no_user(self.uri)
    }

    /// Returns the 200 response to the request, and the port that it goes to. `source` is where the request came from;
    /// `secret` makes the To tag one that nobody can guess.
    ///
    /// Returns nothing if the topmost Via is damaged or asks for another transport or address.
    pub fn ok_response(&self, source: SocketAddr, force_rport: bool, secret: u64) -> Option<(Vec<u8>, u16)> {
        let mut vias = self.vias.iter();
        let (top, others) = Via::parse_first(vias.next()?)?;
        let port = if top.has_rport || force_rport { source.port() } else { top.port };
        let mut response = Vec::with_capacity(RESPONSE_BYTES_USUAL);
        response.extend_from_slice(b"SIP/2.0 200 OK\r\n");
        put(&mut response, "Via", &top.as_received_from(source));
        for via in Some(others).filter(|others| !others.is_empty()).into_iter().chain(vias.copied()) {
            put(&mut response, "Via", via);
        }
        put(&mut response, "From", self.from);
        let to: Vec<u8> = if has_tag(self.to) {
            self.to.to_vec()
        } else {
            [self.to, b";tag=", self.to_tag(secret).as_bytes()].concat()
        };
        put(&mut response, "To", &to);
        put(&mut response, "Call-ID", self.call_id);
        put(&mut response, "CSeq", self.cseq);
        response.extend_from_slice(b"Content-Length: 0\r\n\r\n");
        (port != 0).then_some((response, port))
    }

    /// Returns the To tag of a response: the same for a request that comes again (RFC 3261 §8.2.7).
    pub fn to_tag(&self, secret: u64) -> String {
        // FNV-1a, then the last steps of SplitMix64.
        let mut hash = secret ^ 0xcbf2_9ce4_8422_2325;
        for byte in [self.call_id, b"\n", self.from, b"\n", self.cseq].into_iter().flatten() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        format!("{:016x}", hash ^ hash >> 31)
    }
}

/// The headers that were found so far.
#[derive(Default)]
struct Found<'a> {
    vias: Vec<&'a [u8]>,
    from: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
    call_id: Option<&'a [u8]>,
    cseq: Option<&'a [u8]>,
    event: Option<&'a [u8]>,
    requires: bool,
}

impl<'a> Found<'a> {
    /// Takes a header. Returns nothing if there is one of its kind that there may be only one of.
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Option<()> {
        let is = |long: &str, short: &str| {
            name.eq_ignore_ascii_case(long.as_bytes())
                || (!short.is_empty() && name.eq_ignore_ascii_case(short.as_bytes()))
        };
        let once = |place: &mut Option<&'a [u8]>| place.replace(value).is_none().then_some(());
        if is("Via", "v") {
            self.vias.push(value);
        } else if is("From", "f") {
            once(&mut self.from)?;
        } else if is("To", "t") {
            once(&mut self.to)?;
        } else if is("Call-ID", "i") {
            once(&mut self.call_id)?;
        } else if is("CSeq", "") {
            once(&mut self.cseq)?;
        } else if is("Event", "o") {
            once(&mut self.event)?;
        } else if is("Require", "") || is("Proxy-Require", "") {
            self.requires = true;
        }
        Some(())
    }

    fn into_request(self, method: &'a [u8], uri: &'a [u8]) -> Option<Request<'a>> {
        let Found { vias, from, to, call_id, cseq, event, requires } = self;
        let (from, to, call_id, cseq) = (from?, to?, call_id?, cseq?);
        let fits = |cseq: &[u8]| {
            let mut words = cseq.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let number = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
            number && words.next() == Some(method) && words.next().is_none()
        };
        let filled = [from, to, call_id].iter().all(|value| !value.is_empty());
        (filled && fits(cseq)).then_some(Request { method, uri, vias, from, to, call_id, cseq, event, requires })
    }
}

enum Header<'a> {
    End,
    One { name: &'a [u8], value: &'a [u8], rest: &'a [u8] },
}

/// Splits the first header off, with the lines that it goes on in (RFC 3261 §7.3.1).
fn split_header(bytes: &[u8]) -> Option<Header<'_>> {
    let (line, mut rest) = split_line(bytes)?;
    if line.is_empty() {
        return Some(Header::End);
    }
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = line[..colon].trim_ascii_end();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(byte);
    if name.is_empty() || !name.iter().all(is_token) {
        return None;
    }
    let mut end = line.len();
    while matches!(rest.first(), Some(b' ' | b'\t')) {
        let (more, after) = split_line(rest)?;
        end += 2 + more.len();
        rest = after;
    }
    Some(Header::One { name, value: bytes[colon + 1..end].trim_ascii(), rest })
}

/// Splits the first line off. Nothing if there is no whole line, or one with a stray CR or LF.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 0))?;
    let rest = bytes[end..].strip_prefix(b"\r\n")?;
    Some((&bytes[..end], rest))
}

/// Writes a header on one line.
fn put(response: &mut Vec<u8>, name: &str, value: &[u8]) {
    response.extend_from_slice(name.as_bytes());
    response.extend_from_slice(b": ");
    let start = response.len();
    response.extend_from_slice(value);
    for byte in &mut response[start..] {
        *byte = if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
    }
    response.extend_from_slice(b"\r\n");
}

/// Returns whether a From or To value has a tag parameter, outside its display name and address.
fn has_tag(value: &[u8]) -> bool {
    parameters(value).skip(1).any(|parameter| {
        let name = parameter.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"tag")
    })
}

/// Splits a value at the semicolons that are not inside quotes or angle brackets.
fn parameters(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped, mut bracketed) = (false, false, false);
    value.split(move |byte| {
        let was_escaped = std::mem::take(&mut escaped);
        match byte {
            b'\\' if quoted && !was_escaped => escaped = true,
            b'"' if !was_escaped && !bracketed => quoted = !quoted,
            b'<' if !quoted => bracketed = true,
            b'>' if !quoted => bracketed = false,
            b';' => return !quoted && !bracketed,
            _ => {}
        }
        false
    })
}

/// Returns whether a SIP URI is of a server and not of a user there.
fn names_no_user(uri: &[u8]) -> bool {
    let scheme = uri.iter().position(|byte| *byte == b':').map(|colon| uri.split_at(colon + 1));
    scheme.is_some_and(|(scheme, rest)| {
        let known = scheme.eq_ignore_ascii_case(b"sip:") || scheme.eq_ignore_ascii_case(b"sips:");
        known && !rest.is_empty() && !rest.contains(&b'@')
    })
}

/// Bytes that are set aside for a response.
const RESPONSE_BYTES_USUAL: usize = 1024;
/// Headers of a request; one with more is not looked at.
const HEADERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_where_they_count() {
        for value in ["<sip:a@b>;tag=1", "\"x\" <sip:a@b> ; Tag = 1", "sip:a@b;tag=1", "\"\\\"\" <sip:a@b>;x;tag=1"] {
            assert!(has_tag(value.as_bytes()), "{value}");
        }
        for value in ["<sip:a@b;tag=1>", "\";tag=1\" <sip:a@b>", "sip:a@b", "<sip:a@b>;tagged=1", "\"\\\";tag=1\" <a>"]
        {
            assert!(!has_tag(value.as_bytes()), "{value}");
        }
    }

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
        let Some(Header::One { name, value, rest }) = split_header(b"Event :  keep-\r\n\t alive \r\nTo: x\r\n\r\n")
        else {
            panic!("a header");
        };
        assert_eq!((name, value, rest), (&b"Event"[..], &b"keep-\r\n\t alive"[..], &b"To: x\r\n\r\n"[..]));
        let mut written = Vec::new();
        put(&mut written, "Event", value);
        assert_eq!(written, b"Event: keep-  \t alive\r\n");
    }
}
