// SPDX-License-Identifier: Apache-2.0
//! SIP messages as the packet ABI gives them to modules, and conditions on them.

use netserv_wire::sip::{Header, HeaderName, Message, SipError, Span, Start, parse};

use crate::error::HostError;

/// Bytes of what [`encode`] writes in front of the headers.
pub const HEAD_BYTES: usize = 64;
/// Bytes of each header after it.
pub const HEADER_BYTES: usize = 12;

/// What a message may be asked for. An empty one fits every message.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// The methods of which it must have one, unless there are none here. A response has that of its request.
    pub methods: Vec<String>,
    /// The status codes that a response must be between, with both. No request fits then.
    pub status: Option<(u16, u16)>,
    /// Headers of which each must be there, with a value that contains the text in any case.
    pub headers: Vec<(String, String)>,
}

impl Condition {
    /// Returns whether a message fits.
    pub fn fits(&self, bytes: &[u8], message: &Message, headers: &[Header]) -> bool {
        let method = message.method_name.of(bytes);
        let status = match message.start {
            Start::Request { .. } => None,
            Start::Response { status, .. } => Some(status),
        };
        let method_fits = self.methods.is_empty() || self.methods.iter().any(|wanted| wanted.as_bytes() == method);
        let status_fits = self.status.is_none_or(|(least, most)| status.is_some_and(|it| (least..=most).contains(&it)));
        method_fits
            && status_fits
            && self.headers.iter().all(|(name, text)| {
                let mut named = headers.iter().filter(|header| is_named(header, bytes, name));
                named.any(|header| contains(header.value.of(bytes), text.as_bytes()))
            })
    }
}

/// Returns the error of a host call.
pub fn host_error(error: SipError) -> HostError {
    match error {
        SipError::NotSip => HostError::NotFound,
        SipError::Incomplete | SipError::Malformed(_) => HostError::Invalid,
        SipError::TooManyHeaders | SipError::TooLarge => HostError::TooLarge,
    }
}

/// Reads a message, and writes where its parts are as the packet ABI says into `out`: as many headers as fit.
/// Returns how many headers it has and how many bytes were written. `headers` is room to work in.
///
/// # Errors
/// Those of [`host_error`]; [`HostError::NotFound`] for empty lines alone, which keep connections alive; and
/// [`HostError::Invalid`] if not even the head fits in `room` bytes.
pub fn encode(bytes: &[u8], headers: &mut Vec<Header>, out: &mut Vec<u8>, room: usize) -> Result<usize, HostError> {
    out.clear();
    if room < HEAD_BYTES {
        return Err(HostError::Invalid);
    }
    if bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
        return Err(HostError::NotFound);
    }
    let message = parse(bytes, headers).map_err(host_error)?;
    out.extend_from_slice(&head(&message, headers.len()));
    for header in headers.iter().take((room - HEAD_BYTES) / HEADER_BYTES) {
        put(out, &[header.name.number(), header.name_text.start, header.name_text.length]);
        put(out, &[header.value.start, header.value.length, 0]);
    }
    Ok(headers.len())
}

fn head(message: &Message, headers: usize) -> Vec<u8> {
    let (status, subject) = match message.start {
        Start::Request { uri } => (0, uri),
        Start::Response { status, reason } => (status, reason),
    };
    let mut out = Vec::with_capacity(HEAD_BYTES);
    put(&mut out, &[status, message.method.number(), u16::try_from(headers).unwrap_or(u16::MAX), 0]);
    out.extend_from_slice(&message.cseq.to_le_bytes());
    out.extend_from_slice(&message.content_length.unwrap_or(u32::MAX).to_le_bytes());
    let nothing = Span::default();
    for span in [
        message.method_name,
        subject,
        message.call_id,
        message.from_uri,
        message.from_tag.unwrap_or(nothing),
        message.to_uri,
        message.to_tag.unwrap_or(nothing),
        message.via,
        message.via_sent_by,
        message.via_branch.unwrap_or(nothing),
        message.body,
        nothing,
    ] {
        put(&mut out, &[span.start, span.length]);
    }
    out
}

fn put(out: &mut Vec<u8>, numbers: &[u16]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn is_named(header: &Header, bytes: &[u8], name: &str) -> bool {
    let known = HeaderName::of(name.as_bytes());
    let is_unknown = known == HeaderName::Other;
    header.name == known && (!is_unknown || header.name_text.of(bytes).eq_ignore_ascii_case(name.as_bytes()))
}

fn contains(value: &[u8], text: &[u8]) -> bool {
    text.is_empty() || value.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"INVITE sip:b@example.org SIP/2.0\r\n\
        v: SIP/2.0/UDP 192.0.2.1;branch=z9\r\n\
        f: <sip:a@example.org>;tag=1\r\n\
        t: <sip:b@example.org>\r\n\
        i: call\r\n\
        CSeq: 7 INVITE\r\n\
        User-Agent: Friendly-Scanner 1\r\n\
        X-Own: yes\r\n\
        \r\nbody";

    fn encoded(room: usize) -> Result<(usize, Vec<u8>), HostError> {
        let mut out = Vec::new();
        encode(REQUEST, &mut Vec::new(), &mut out, room).map(|count| (count, out))
    }

    fn text(out: &[u8], at: usize) -> &str {
        let word = |at: usize| u16::from_le_bytes([out[at], out[at + 1]]);
        std::str::from_utf8(Span { start: word(at), length: word(at + 2) }.of(REQUEST)).unwrap()
    }

    #[test]
    fn parts_are_where_the_abi_says() {
        let (count, out) = encoded(1000).unwrap();
        assert_eq!((count, out.len()), (7, HEAD_BYTES + 7 * HEADER_BYTES));
        assert_eq!(out[..8], [0, 0, 1, 0, 7, 0, 0, 0]);
        assert_eq!((&out[8..12], &out[12..16]), (&[7, 0, 0, 0][..], &[0xff; 4][..]));
        let parts: Vec<_> = (16..HEAD_BYTES).step_by(4).map(|at| text(&out, at)).collect();
        let expected = [
            "INVITE",
            "sip:b@example.org",
            "call",
            "sip:a@example.org",
            "1",
            "sip:b@example.org",
            "",
            "SIP/2.0/UDP 192.0.2.1;branch=z9",
            "192.0.2.1",
            "z9",
            "body",
            "",
        ];
        assert_eq!(parts, expected);
        let last = &out[HEAD_BYTES + 5 * HEADER_BYTES..];
        assert_eq!((last[0], text(last, 2), text(last, 6)), (15, "User-Agent", "Friendly-Scanner 1"));
    }

    #[test]
    fn headers_are_left_out_where_they_do_not_fit() {
        assert_eq!(encoded(HEAD_BYTES - 1), Err(HostError::Invalid));
        for (room, written) in [(HEAD_BYTES, 0), (HEAD_BYTES + HEADER_BYTES - 1, 0), (HEAD_BYTES + HEADER_BYTES, 1)] {
            let (count, out) = encoded(room).unwrap();
            assert_eq!((count, out.len()), (7, HEAD_BYTES + written * HEADER_BYTES));
        }
    }

    #[test]
    fn conditions_fit_as_they_say() {
        let mut headers = Vec::new();
        let message = parse(REQUEST, &mut headers).unwrap();
        let check = |methods: &[&str], status, named: &[(&str, &str)], expected| {
            let condition = Condition {
                methods: methods.iter().map(ToString::to_string).collect(),
                status,
                headers: named.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
            };
            assert_eq!(condition.fits(REQUEST, &message, &headers), expected, "{condition:?}");
        };
        check(&[], None, &[], true);
        check(&["REGISTER", "INVITE"], None, &[], true);
        check(&["invite"], None, &[], false);
        check(&[], Some((100, 699)), &[], false);
        check(&[], None, &[("user-agent", "friendly-SCANNER"), ("Call-ID", ""), ("x-own", "YES")], true);
        check(&[], None, &[("user-agent", "friend"), ("x-other", "")], false);
        check(&[], None, &[("User-Agent", "sipvicious")], false);
    }

    #[test]
    fn errors_are_told_apart() {
        for (bytes, expected) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], HostError::NotFound),
            (b"\r\n\r\n", HostError::NotFound),
            (b"", HostError::NotFound),
            (&REQUEST[..40], HostError::Invalid),
            (&[b'a'; 70_000][..], HostError::TooLarge),
        ] {
            assert_eq!(encode(bytes, &mut Vec::new(), &mut Vec::new(), 1000), Err(expected));
        }
    }
}
