// SPDX-License-Identifier: Apache-2.0
//! From bytes to the parts of a message.

use memchr::{memchr, memchr3};

use super::value::{self, Address, Via};
use super::{HeaderName, Method, SipError, Span, limits};

/// A message: where its parts are in the bytes that were parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What its first line says.
    pub start: Start,
    /// The Call-ID.
    pub call_id: Span,
    /// The number of the CSeq.
    pub cseq: u32,
    /// The method of the CSeq: a request's own, or that of the request which a response answers.
    pub method: Method,
    /// The name of that method.
    pub method_name: Span,
    /// The URI of the From.
    pub from_uri: Span,
    /// The tag of the From.
    pub from_tag: Option<Span>,
    /// The URI of the To.
    pub to_uri: Span,
    /// The tag of the To.
    pub to_tag: Option<Span>,
    /// The topmost Via value, with its parameters.
    pub via: Span,
    /// The host of that Via, with its port if it has one.
    pub via_sent_by: Span,
    /// The branch of that Via.
    pub via_branch: Option<Span>,
    /// What Content-Length says.
    pub content_length: Option<u32>,
    /// The body: as long as Content-Length says, or all that is left.
    pub body: Span,
}

/// What a message's first line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A request.
    Request {
        /// The Request-URI.
        uri: Span,
    },
    /// A response.
    Response {
        /// The status code, 100 to 699.
        status: u16,
        /// The reason phrase, which may be empty.
        reason: Span,
    },
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub name: HeaderName,
    /// Its name as it was written.
    pub name_text: Span,
    /// Its value without white space around it; it may go on in further lines.
    pub value: Span,
}

impl Header {
    /// Returns the header's long name in lower case, whichever form it was written in.
    pub fn long_name(&self, message: &[u8]) -> String {
        match self.name.text() {
            Some(name) => name.to_ascii_lowercase(),
            None => String::from_utf8_lossy(self.name_text.of(message)).to_ascii_lowercase(),
        }
    }

    /// Returns the header's value as one line: where it goes on in the next one, with a space. What is no UTF-8 becomes
    /// U+FFFD.
    pub fn text(&self, message: &[u8]) -> String {
        let value = String::from_utf8_lossy(self.value.of(message));
        if !value.contains('\n') {
            return value.into_owned();
        }
        let lines = value.lines().map(|line| line.trim_matches([' ', '\t'])).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    }
}

/// Reads a message, and puts its headers into `headers`, in their order, in the place of what was there.
///
/// CRLFs in front of the message are skipped (RFC 3261 §7.5). Bytes behind the body are left alone.
///
/// # Errors
/// [`SipError`]; what `headers` has then means nothing.
pub fn parse(bytes: &[u8], headers: &mut Vec<Header>) -> Result<Message, SipError> {
    headers.clear();
    if bytes.len() > limits::MESSAGE_BYTES_MAX {
        return Err(SipError::TooLarge);
    }
    let first = first_byte(bytes)?;
    let line = line_end(bytes, first).map_err(|error| if looks_like_sip(bytes) { error } else { SipError::NotSip })?;
    let (start, method_name) = start_line(bytes, first, line)?;
    let mut once = Once::default();
    let mut at = line + 2;
    while let Some((header, after)) = next_header(bytes, at)? {
        if headers.len() >= limits::HEADERS_MAX {
            return Err(SipError::TooManyHeaders);
        }
        once.take(header.name, header.value)?;
        headers.push(header);
        at = after;
    }
    once.into_message(bytes, start, method_name, at + 2)
}

/// The headers that there may be only one of, and the topmost Via.
#[derive(Default)]
struct Once {
    via: Option<Span>,
    from: Option<Span>,
    to: Option<Span>,
    call_id: Option<Span>,
    cseq: Option<Span>,
    content_length: Option<Span>,
}

impl Once {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only a few of the many headers matter here")]
    fn take(&mut self, name: HeaderName, value: Span) -> Result<(), SipError> {
        let place = match name {
            HeaderName::Via => {
                self.via.get_or_insert(value);
                return Ok(());
            }
            HeaderName::From => &mut self.from,
            HeaderName::To => &mut self.to,
            HeaderName::CallId => &mut self.call_id,
            HeaderName::CSeq => &mut self.cseq,
            HeaderName::ContentLength => &mut self.content_length,
            _ => return Ok(()),
        };
        match place.replace(value) {
            Some(_) => Err(SipError::Malformed(name.text().unwrap_or("header"))),
            None => Ok(()),
        }
    }

    fn into_message(
        self,
        bytes: &[u8],
        start: Start,
        method_name: Option<Span>,
        body: usize,
    ) -> Result<Message, SipError> {
        let via: Via = of(self.via, "Via", |span| value::via(bytes, span))?;
        let from: Address = of(self.from, "From", |span| value::address(bytes, span))?;
        let to: Address = of(self.to, "To", |span| value::address(bytes, span))?;
        let call_id = of(self.call_id, "Call-ID", |span| {
            (span.length > 0 && !span.of(bytes).iter().any(u8::is_ascii_whitespace)).then_some(span)
        })?;
        let (cseq, cseq_method) = of(self.cseq, "CSeq", |span| value::cseq(bytes, span))?;
        // RFC 3261 §8.1.1.5: the method of a request is that of its CSeq.
        if method_name.is_some_and(|name| name.of(bytes) != cseq_method.of(bytes)) {
            return Err(SipError::Malformed("CSeq"));
        }
        let content_length = match self.content_length {
            Some(span) => Some(of(Some(span), "Content-Length", |span| value::number(span.of(bytes)))?),
            None => None,
        };
        Ok(Message {
            start,
            call_id,
            cseq,
            method: Method::of(cseq_method.of(bytes)),
            method_name: cseq_method,
            from_uri: from.uri,
            from_tag: from.tag,
            to_uri: to.uri,
            to_tag: to.tag,
            via: via.whole,
            via_sent_by: via.sent_by,
            via_branch: via.branch,
            content_length,
            body: body_of(bytes, body, content_length)?,
        })
    }
}

fn of<T>(value: Option<Span>, name: &'static str, read: impl FnOnce(Span) -> Option<T>) -> Result<T, SipError> {
    value.and_then(read).ok_or(SipError::Malformed(name))
}

/// RFC 3261 §18.3: bytes after the body do not count, a body that is cut off does.
fn body_of(bytes: &[u8], start: usize, content_length: Option<u32>) -> Result<Span, SipError> {
    let rest = bytes.len() - start;
    let length = content_length.map_or(rest, |length| length as usize);
    if length > rest { Err(SipError::Incomplete) } else { Ok(Span::between(start, start + length)) }
}

fn first_byte(bytes: &[u8]) -> Result<usize, SipError> {
    let crlfs = bytes.chunks(2).take_while(|pair| *pair == b"\r\n").count();
    match bytes.get(crlfs * 2) {
        Some(byte) if value::is_token_byte(*byte) => Ok(crlfs * 2),
        Some(_) if bytes[crlfs * 2..] != *b"\r" => Err(SipError::NotSip),
        Some(_) | None => Err(SipError::Incomplete),
    }
}

/// Returns whether bytes without the end of a line may be the start of a message.
fn looks_like_sip(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| !byte.is_ascii_control() || matches!(byte, b'\t' | b'\r' | b'\n'))
}

/// Returns what the first line says; of a request, where its method is, too.
fn start_line(bytes: &[u8], start: usize, end: usize) -> Result<(Start, Option<Span>), SipError> {
    let line = &bytes[start..end];
    let space = memchr(b' ', line).ok_or(SipError::NotSip)?;
    if line[..space].eq_ignore_ascii_case(VERSION) {
        return Ok((status_line(bytes, start + space + 1, end)?, None));
    }
    let uri = start + space + 1;
    let uri_end = uri + memchr(b' ', &bytes[uri..end]).ok_or(SipError::NotSip)?;
    if !bytes[uri_end + 1..end].eq_ignore_ascii_case(VERSION) {
        return Err(SipError::NotSip);
    }
    let is_method = space <= limits::METHOD_BYTES_MAX && value::is_token(&line[..space]);
    if !is_method || uri == uri_end || bytes[uri..uri_end].iter().any(u8::is_ascii_control) {
        return Err(SipError::Malformed("start line"));
    }
    Ok((Start::Request { uri: Span::between(uri, uri_end) }, Some(Span::between(start, start + space))))
}

/// Returns what `200 OK` says.
fn status_line(bytes: &[u8], start: usize, end: usize) -> Result<Start, SipError> {
    let malformed = SipError::Malformed("start line");
    let text = &bytes[start..end];
    let status = text.get(..3).and_then(value::number).and_then(|status| u16::try_from(status).ok());
    let status = status.filter(|status| (100..700).contains(status)).ok_or(malformed)?;
    if text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(malformed);
    }
    match text.get(3) {
        Some(b' ') => Ok(Start::Response { status, reason: Span::between(start + 4, end) }),
        // Some leave the space before an empty reason phrase out.
        None => Ok(Start::Response { status, reason: Span::between(end, end) }),
        Some(_) => Err(malformed),
    }
}

/// Returns the header at a place and where the next one is; nothing at the empty line.
fn next_header(bytes: &[u8], at: usize) -> Result<Option<(Header, usize)>, SipError> {
    let mut end = line_end(bytes, at)?;
    if end == at {
        return Ok(None);
    }
    let name_end = at + bytes[at..end].iter().take_while(|byte| value::is_token_byte(**byte)).count();
    let colon = name_end + bytes[name_end..end].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if name_end == at || bytes[colon] != b':' {
        return Err(SipError::Malformed("header"));
    }
    // RFC 3261 §7.3.1: a line that starts with white space is part of the one before.
    loop {
        match bytes.get(end + 2) {
            Some(b' ' | b'\t') => end = line_end(bytes, end + 2)?,
            Some(_) => break,
            None => return Err(SipError::Incomplete),
        }
    }
    let name_text = Span::between(at, name_end);
    let name = HeaderName::of(name_text.of(bytes));
    Ok(Some((Header { name, name_text, value: value::trimmed(bytes, colon + 1, end) }, end + 2)))
}

/// Returns where the CRLF is that ends the line which starts at `start`.
fn line_end(bytes: &[u8], start: usize) -> Result<usize, SipError> {
    let rest = bytes.get(start..).unwrap_or_default();
    let at = memchr3(b'\r', b'\n', 0, rest).ok_or(SipError::Incomplete)?;
    match rest[at..] {
        [b'\r', b'\n', ..] => Ok(start + at),
        [b'\r'] => Err(SipError::Incomplete),
        [..] => Err(SipError::Malformed("line end")),
    }
}

const VERSION: &[u8] = b"SIP/2.0";
