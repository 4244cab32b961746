// SPDX-License-Identifier: Apache-2.0
//! Texts as numbered lines and headers, within the bounds of the model.

use netserv_model::limits::{HEADER_LINE_BYTES_MAX, HEADERS_MAX, MESSAGE_BYTES_MAX};
use netserv_model::{Refusal, RefusalKind};

/// Bytes that may follow the empty line to fill up a word.
const PADDING_BYTES_MAX: usize = 3;

/// One header line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The line that it stands on, counting from 1.
    pub line: usize,
    /// The name in lower case.
    pub name: String,
    /// The value as it stands after the colon, without one leading space.
    pub value: String,
}

/// A text taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// The first line.
    pub first: String,
    /// The headers in order.
    pub headers: Vec<Header>,
    /// Bytes from the start up to and with the empty line.
    pub bytes: usize,
}

impl Lines {
    /// Takes a text apart; `bytes` may be anything.
    pub(super) fn parse(bytes: &[u8]) -> Result<Lines, Refusal> {
        if bytes.len() > MESSAGE_BYTES_MAX + PADDING_BYTES_MAX {
            return Err(bad(0, format!("the message is longer than {MESSAGE_BYTES_MAX} bytes")));
        }
        let lines = Lines::head(bytes, HEADERS_MAX)?;
        check_padding(&bytes[lines.bytes..], lines.headers.len() + 2)?;
        if lines.bytes > MESSAGE_BYTES_MAX {
            return Err(bad(0, format!("the message is longer than {MESSAGE_BYTES_MAX} bytes")));
        }
        Ok(lines)
    }

    /// Takes apart what is in front of the first empty line; `bytes` may be anything, and go on after that.
    pub(super) fn head(bytes: &[u8], headers_max: usize) -> Result<Lines, Refusal> {
        let mut rest = bytes;
        let mut first = None;
        let mut headers = Vec::new();
        for number in 1.. {
            let Some(line) = take_line(&mut rest, number)? else { break };
            if line.is_empty() {
                break;
            }
            if first.is_none() {
                first = Some(line.to_owned());
            } else if headers.len() == headers_max {
                return Err(bad(number, format!("more than {headers_max} headers")));
            } else {
                headers.push(parse_header(line, number)?);
            }
        }
        let bytes = bytes.len() - rest.len();
        Ok(Lines { first: first.ok_or_else(|| bad(1, "an empty message"))?, headers, bytes })
    }
}

/// Builds a refusal that names the line; line 0 stands for the whole message.
pub(super) fn bad(line: usize, what: impl AsRef<str>) -> Refusal {
    let what = what.as_ref();
    let detail = if line == 0 { what.to_owned() } else { format!("line {line}: {what}") };
    Refusal::new(RefusalKind::BadRequest, detail)
}

/// Cuts foreign text short for a message to people.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns whether a text can stand before a header's colon.
pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn take_line<'a>(rest: &mut &'a [u8], number: usize) -> Result<Option<&'a str>, Refusal> {
    let window = &rest[..rest.len().min(HEADER_LINE_BYTES_MAX + 2)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        let too_long = window.len() > HEADER_LINE_BYTES_MAX;
        let what = if too_long { "the line is longer than 8 KiB" } else { "the message ends without an empty line" };
        return Err(bad(number, what));
    };
    let line = window[..end].strip_suffix(b"\r").unwrap_or(&window[..end]);
    if line.len() > HEADER_LINE_BYTES_MAX {
        return Err(bad(number, "the line is longer than 8 KiB"));
    }
    let line = std::str::from_utf8(line).map_err(|_| bad(number, "not UTF-8"))?;
    if line.chars().any(char::is_control) {
        return Err(bad(number, "a control character"));
    }
    *rest = &rest[end + 1..];
    Ok(Some(line))
}

fn parse_header(line: &str, number: usize) -> Result<Header, Refusal> {
    let not_a_header = || bad(number, format!("`{}` is not a header; write `name: value`", shown(line)));
    let (name, value) = line.split_once(':').ok_or_else(not_a_header)?;
    if !is_header_name(name) {
        return Err(not_a_header());
    }
    let value = value.strip_prefix(' ').unwrap_or(value);
    Ok(Header { line: number, name: name.to_ascii_lowercase(), value: value.to_owned() })
}

fn check_padding(rest: &[u8], line: usize) -> Result<(), Refusal> {
    let padding = rest.len() <= PADDING_BYTES_MAX && rest.iter().all(|byte| matches!(byte, b'\n' | 0));
    if padding { Ok(()) } else { Err(bad(line, "something follows the empty line that ends a message")) }
}
