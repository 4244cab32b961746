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
    via: &'a [u8],
    other_vias: Vec<&'a [u8]>,
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

    /// Writes the 200 response to the request over `response`, and returns the port that it goes to. `source` is where the
    /// request came from; `secret` makes the To tag one that nobody can guess.
    ///
    /// Returns nothing if the topmost Via is damaged or asks for another transport or address.
    pub fn ok_response(
        &self,
        source: SocketAddr,
        force_rport: bool,
        secret: u64,
        response: &mut Vec<u8>,
    ) -> Option<u16> {
        let (top, others) = Via::parse_first(self.via)?;
        let port = if top.has_rport || force_rport { source.port() } else { top.port };
        response.clear();
        response.extend_from_slice(b"SIP/2.0 200 OK\r\n");
        put(response, "Via", |value| top.write_as_received_from(source, value));
        for via in Some(others).filter(|others| !others.is_empty()).into_iter().chain(self.other_vias.iter().copied()) {
            put(response, "Via", |value| value.extend_from_slice(via));
        }
        put(response, "From", |value| value.extend_from_slice(self.from));
        put(response, "To", |value| {
            value.extend_from_slice(self.to);
            if !has_tag(self.to) {
                value.extend_from_slice(b";tag=");
                value.extend_from_slice(&self.to_tag(secret));
            }
        });
        put(response, "Call-ID", |value| value.extend_from_slice(self.call_id));
        put(response, "CSeq", |value| value.extend_from_slice(self.cseq));
        response.extend_from_slice(b"Content-Length: 0\r\n\r\n");
        (port != 0).then_some(port)
    }

    /// Returns the To tag of a response, hexadecimal: the same for a request that comes again (RFC 3261 §8.2.7).
    pub fn to_tag(&self, secret: u64) -> [u8; 16] {
        // FNV-1a by words, then the last steps of SplitMix64.
        let mut hash = secret ^ 0xcbf2_9ce4_8422_2325;
        for part in [self.call_id, self.from, self.cseq] {
            let (words, rest) = part.as_chunks::<8>();
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            let length = [part.len() as u64, u64::from_le_bytes(last)];
            for word in words.iter().map(|word| u64::from_le_bytes(*word)).chain(length) {
                hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
        }
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        std::array::from_fn(|digit| b"0123456789abcdef"[(hash >> (60 - 4 * digit) & 0xf) as usize])
    }
}

/// The headers that were found so far.
#[derive(Default)]
struct Found<'a> {
    via: Option<&'a [u8]>,
    other_vias: Vec<&'a [u8]>,
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
        let is = |long: &str| name.eq_ignore_ascii_case(long.as_bytes());
        let once = |place: &mut Option<&'a [u8]>| place.replace(value).is_none().then_some(());
        // By length first: most headers are none of these.
        match name.len() {
            1 => match name[0].to_ascii_lowercase() {
                b'v' => self.take_via(value),
                b'f' => once(&mut self.from)?,
                b't' => once(&mut self.to)?,
                b'i' => once(&mut self.call_id)?,
                b'o' => once(&mut self.event)?,
                _ => {}
            },
            2 if is("To") => once(&mut self.to)?,
            3 if is("Via") => self.take_via(value),
            4 if is("From") => once(&mut self.from)?,
            4 if is("CSeq") => once(&mut self.cseq)?,
            5 if is("Event") => once(&mut self.event)?,
            7 if is("Call-ID") => once(&mut self.call_id)?,
            7 | 13 if is("Require") || is("Proxy-Require") => self.requires = true,
            _ => {}
        }
        Some(())
    }

    fn take_via(&mut self, value: &'a [u8]) {
        if self.via.is_some() {
            self.other_vias.push(value);
        } else {
            self.via = Some(value);
        }
    }

    fn into_request(self, method: &'a [u8], uri: &'a [u8]) -> Option<Request<'a>> {
        let Found { via, other_vias, from, to, call_id, cseq, event, requires } = self;
        let (via, from, to, call_id, cseq) = (via?, from?, to?, call_id?, cseq?);
        let fits = |cseq: &[u8]| {
            let mut words = cseq.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let number = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
            number && words.next() == Some(method) && words.next().is_none()
        };
        let filled = [from, to, call_id].iter().all(|value| !value.is_empty());
        (filled && fits(cseq)).then_some(Request {
            method,
            uri,
            via,
            other_vias,
            from,
            to,
            call_id,
            cseq,
            event,
            requires,
        })
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
    let end = line_length(bytes)?;
    let rest = bytes[end..].strip_prefix(b"\r\n")?;
    Some((&bytes[..end], rest))
}

/// Returns where the first CR, LF or NUL is. Eight bytes at a time are looked at for one that is that small.
fn line_length(bytes: &[u8]) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let ends = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in (0..).step_by(8).zip(words) {
        let small = u64::from_le_bytes(*word);
        // The borrow sets the upper bit of each byte below 14, and may set it of others beside one.
        if small.wrapping_sub(EACH * 14) & !small & (EACH * 0x80) != 0
            && let Some(end) = word.iter().position(ends)
        {
            return Some(at + end);
        }
    }
    Some(words.len() * 8 + rest.iter().position(ends)?)
}

/// Writes a header on one line.
fn put(response: &mut Vec<u8>, name: &str, write_value: impl FnOnce(&mut Vec<u8>)) {
    response.extend_from_slice(name.as_bytes());
    response.extend_from_slice(b": ");
    let start = response.len();
    write_value(response);
    // A value that went on in further lines.
    if line_length(&response[start..]).is_some() {
        for byte in &mut response[start..] {
            *byte = if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        }
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
pub const RESPONSE_BYTES_USUAL: usize = 1024;
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
    fn lines_end_at_the_first_control_byte_that_counts() {
        let text: Vec<u8> = (1..=255).filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        assert_eq!(line_length(&text), None);
        for at in 0..text.len() {
            for end in [b'\r', b'\n', 0] {
                let mut line = text.clone();
                line.insert(at, end);
                assert_eq!(line_length(&line), Some(at));
            }
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
        put(&mut written, "Event", |written| written.extend_from_slice(value));
        assert_eq!(written, b"Event: keep-  \t alive\r\n");
    }
}
