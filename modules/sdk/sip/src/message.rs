// SPDX-License-Identifier: Apache-2.0
//! Messages of either direction, header by header.

use crate::grammar::{HEADERS_MAX, Header, has_tag, quote_end, split_header, split_line};

/// A message whose headers could be told apart.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    /// The request line or status line.
    pub first: &'a [u8],
    /// Names and values, as they were sent.
    pub headers: Vec<(&'a [u8], &'a [u8])>,
    /// How long all of it is, with the empty line.
    pub length: usize,
}

/// Names of a header: the long one and the short one, in lower case.
#[derive(Clone, Copy, Debug)]
pub struct Name(pub &'static str, pub &'static str);

impl Name {
    /// Returns whether a header has this name.
    pub fn is(self, given: &[u8]) -> bool {
        [self.0, self.1].iter().any(|name| given.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// Call-ID.
pub const CALL_ID: Name = Name("call-id", "i");
/// Contact.
pub const CONTACT: Name = Name("contact", "m");
/// Content-Length.
pub const CONTENT_LENGTH: Name = Name("content-length", "l");
/// CSeq.
pub const CSEQ: Name = Name("cseq", "cseq");
/// Expires.
pub const EXPIRES: Name = Name("expires", "expires");
/// From.
pub const FROM: Name = Name("from", "f");
/// To.
pub const TO: Name = Name("to", "t");
/// Via.
pub const VIA: Name = Name("via", "v");

impl<'a> Head<'a> {
    /// Returns the head that a message begins with; nothing if it is damaged, has over 64 headers, or does not end.
    pub fn parse(message: &'a [u8]) -> Option<Head<'a>> {
        let (first, mut rest) = split_line(message, 0)?;
        let mut headers = Vec::new();
        while headers.len() <= HEADERS_MAX {
            match split_header(rest)? {
                Header::End => return Some(Head { first, headers, length: message.len() - rest.len() + 2 }),
                Header::One { name, value, rest: after, .. } => {
                    headers.push((name, value));
                    rest = after;
                }
            }
        }
        None
    }

    /// Returns whether the first line is one of SIP.
    pub fn is_sip(&self) -> bool {
        self.first.starts_with(b"SIP/2.0 ") || self.first.ends_with(b" SIP/2.0")
    }

    /// Returns the status code; nothing if this is a request.
    pub fn status(&self) -> Option<u16> {
        let digits = self.first.strip_prefix(b"SIP/2.0 ")?.get(..3)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Returns the values of the headers of a name.
    pub fn all(&self, name: Name) -> impl Iterator<Item = &'a [u8]> + use<'a, '_> {
        self.headers.iter().filter(move |(given, _)| name.is(given)).map(|(_, value)| *value)
    }

    /// Returns the value of the only header of a name; nothing if there are several.
    pub fn only(&self, name: Name) -> Option<&'a [u8]> {
        let mut all = self.all(name);
        all.next().filter(|_| all.next().is_none())
    }

    /// Returns how many bytes of body follow: none if the message does not say. Nothing if it says it wrongly, or twice.
    pub fn body_length(&self) -> Option<usize> {
        let mut all = self.all(CONTENT_LENGTH);
        match (all.next(), all.next()) {
            (None, _) => Some(0),
            (Some(value), None) => number(value)?.try_into().ok(),
            (Some(_), Some(_)) => None,
        }
    }
}

/// Returns the number of a CSeq, and its method.
pub fn cseq(value: &[u8]) -> Option<(u32, &[u8])> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, method) = value.split_at(digits);
    Some((number(digits)?, method.trim_ascii()))
}

/// Returns what digits say.
pub fn number(digits: &[u8]) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// Splits a list at its commas outside quotes and angle brackets.
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let end = end_of_part(bytes, b',');
        rest = bytes.get(end + 1..);
        Some(bytes[..end].trim_ascii())
    })
}

/// Returns the URI of a value as `"name" <uri>;parameters` or `uri;parameters`, and the parameters.
pub fn address(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        match byte {
            b'"' => at = quote_end(value, at),
            b'<' => {
                let length = value[at..].iter().position(|byte| *byte == b'>')?;
                return Some((&value[at + 1..at + length], value.get(at + length + 1..)?.trim_ascii()));
            }
            b';' => break,
            _ => {}
        }
        at += 1;
    }
    let uri = value.get(..at)?.trim_ascii();
    (!uri.is_empty()).then(|| (uri, value[at..].trim_ascii()))
}

/// Returns the parameters of the topmost Via of a header that may hold several; nothing if it has none.
pub fn top_parameters(via: &[u8]) -> Option<&[u8]> {
    let top = list(via).next()?;
    top.iter().position(|byte| *byte == b';').map(|at| &top[at..])
}

/// Returns a parameter's value without quotes, of parameters with a semicolon before each; empty if it has none.
pub fn parameter<'a>(parameters: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    self::parameters(parameters).find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes())).map(|(_, value)| {
        let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        bare.unwrap_or(value)
    })
}

/// Returns the names and values of parameters with a semicolon before each, as they were sent; a value is empty if there is none.
pub fn parameters(parameters: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = parameters;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = end_of_part(rest, b';');
            let part = rest[..end].trim_ascii();
            rest = rest.get(end + 1..).unwrap_or_default();
            if !part.is_empty() {
                let equals = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
                return Some((part[..equals].trim_ascii(), part.get(equals + 1..).unwrap_or_default().trim_ascii()));
            }
        }
        None
    })
}

/// Returns the tag of a From or To value; nothing if it has none.
pub fn tag(value: &[u8]) -> Option<&[u8]> {
    has_tag(value).then(|| address(value).and_then(|(_, parameters)| parameter(parameters, "tag")))?
}

/// Returns where the first part ends, at a byte outside quotes and angle brackets.
fn end_of_part(bytes: &[u8], stop: u8) -> usize {
    let (mut at, mut bracketed) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' if !bracketed => at = quote_end(bytes, at),
            b'<' => bracketed = true,
            b'>' => bracketed = false,
            byte if *byte == stop && !bracketed => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_taken_apart() {
        let message = b"SIP/2.0 200 OK\r\nv: SIP/2.0/UDP a;branch=1\r\nContact : <sip:a@b>\r\nl: 3\r\nm: c\r\n\r\nabc";
        let head = Head::parse(message).unwrap();
        assert_eq!((head.status(), head.body_length(), head.length), (Some(200), Some(3), message.len() - 3));
        assert_eq!(head.all(CONTACT).collect::<Vec<_>>(), [&b"<sip:a@b>"[..], b"c"]);
        assert_eq!((head.only(CONTACT), head.only(VIA)), (None, Some(&b"SIP/2.0/UDP a;branch=1"[..])));
        for damaged in [&b""[..], b"SIP/2.0 200 OK\r\n", b"SIP/2.0 200 OK\r\nx\r\n\r\n", b"A b SIP/2.0\r\nl: 1\n\r\n"] {
            assert!(Head::parse(damaged).is_none(), "{damaged:?}");
        }
        let lengths = |text: &str| Head::parse(format!("A b SIP/2.0\r\n{text}\r\n").as_bytes()).unwrap().body_length();
        assert_eq!((lengths(""), lengths("l: 07\r\n")), (Some(0), Some(7)));
        for wrong in ["l: -1\r\n", "l: 1\r\nContent-Length: 1\r\n", "l: 99999999999\r\n", "l:\r\n"] {
            assert_eq!(lengths(wrong), None, "{wrong}");
        }
        let many = format!("A b SIP/2.0\r\n{}\r\n", "x: y\r\n".repeat(HEADERS_MAX + 1));
        assert!(Head::parse(many.as_bytes()).is_none());
    }

    #[test]
    fn values_are_taken_apart() {
        let contacts = b"\"a, b\" <sip:a@b;x=1,2>;expires=60 , <sip:c>;q=\"1,0\",d";
        let found: Vec<_> = list(contacts).collect();
        assert_eq!(found, [&b"\"a, b\" <sip:a@b;x=1,2>;expires=60"[..], b"<sip:c>;q=\"1,0\"", b"d"]);
        let (uri, parameters) = address(found[0]).unwrap();
        assert_eq!((uri, parameter(parameters, "Expires")), (&b"sip:a@b;x=1,2"[..], Some(&b"60"[..])));
        assert_eq!(address(b"sip:a@b;tag=1"), Some((&b"sip:a@b"[..], &b";tag=1"[..])));
        assert_eq!((address(b""), address(b"<sip:a"), address(b";x")), (None, None, None));
        assert_eq!((tag(b"<sip:a;tag=2>;tag=1"), tag(b"<sip:a;tag=2>")), (Some(&b"1"[..]), None));
        assert_eq!(parameter(b";oc;oc-algo=\"loss,rate\"", "oc-algo"), Some(&b"loss,rate"[..]));
        assert_eq!((parameter(b";oc ; x", "oc"), parameter(b";x=\"", "oc")), (Some(&b""[..]), None));
        assert_eq!(cseq(b"17 INVITE"), Some((17, &b"INVITE"[..])));
        assert_eq!((cseq(b"x INVITE"), cseq(b"99999999999 A")), (None, None));
    }
}
