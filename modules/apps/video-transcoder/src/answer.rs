// SPDX-License-Identifier: Apache-2.0
//! What a source answers: HTTP/1 (RFC 9112), with a length, in chunks, or up to the end of the connection.

use crate::limits::{ANSWER_HEAD_BYTES_MAX, CHUNK_LINE_BYTES_MAX};

/// Reads an answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// What has come of the head, or of the line before a chunk.
    line: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// Up to the end of the connection.
    All,
    /// So many bytes more.
    Length(u64),
    /// A line that says how long the next chunk is.
    Size,
    /// So many bytes more of a chunk.
    Chunk(u64),
    /// The end of the line behind a chunk.
    ChunkEnd,
    Ended,
}

/// Why an answer is of no use, in words.
pub type Bad = &'static str;

impl Answer {
    /// Takes bytes, and appends those of the body to `body`.
    ///
    /// # Errors
    /// The answer is of no use.
    pub fn push(&mut self, mut bytes: &[u8], body: &mut Vec<u8>) -> Result<(), Bad> {
        while !bytes.is_empty() && self.state != State::Ended {
            bytes = match self.state {
                State::Head => self.head(bytes)?,
                State::All => take(bytes, u64::MAX, body).1,
                State::Length(left) => {
                    let (left, rest) = take(bytes, left, body);
                    self.state = if left == 0 { State::Ended } else { State::Length(left) };
                    rest
                }
                State::Chunk(left) => {
                    let (left, rest) = take(bytes, left, body);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                    rest
                }
                State::Size | State::ChunkEnd => self.chunk_line(bytes)?,
                State::Ended => bytes,
            };
        }
        Ok(())
    }

    /// Returns whether all of it has come.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns whether its body has begun.
    pub fn has_begun(&self) -> bool {
        self.state != State::Head
    }

    fn head<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Bad> {
        let before = self.line.len();
        // More than one head is not looked at.
        self.line.extend_from_slice(&bytes[..bytes.len().min(ANSWER_HEAD_BYTES_MAX + 4)]);
        let from = before.saturating_sub(3);
        let Some(end) = self.line[from..].windows(4).position(|end| end == b"\r\n\r\n").map(|place| from + place + 4)
        else {
            return if self.line.len() > ANSWER_HEAD_BYTES_MAX { Err("the head has no end") } else { Ok(&[]) };
        };
        if end > ANSWER_HEAD_BYTES_MAX {
            return Err("the head has no end");
        }
        self.state = body_of(&self.line[..end])?;
        self.line = Vec::new();
        Ok(&bytes[end - before..])
    }

    /// Takes a line of a chunk's length, or the end of a line behind a chunk.
    fn chunk_line<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Bad> {
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |place| place + 1);
        let (part, rest) = bytes.split_at(end);
        if self.line.len() + part.len() > CHUNK_LINE_BYTES_MAX {
            return Err("the length of a chunk has no end");
        }
        self.line.extend_from_slice(part);
        if part.last() == Some(&b'\n') {
            let line = std::mem::take(&mut self.line);
            let text = std::str::from_utf8(&line).map_err(|_| NO_CHUNK)?;
            let word = text.split(';').next().unwrap_or_default().trim();
            let is_end = self.state == State::ChunkEnd;
            if is_end != word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(NO_CHUNK);
            }
            self.state = match is_end {
                true => State::Size,
                false => match u64::from_str_radix(word, 16).map_err(|_| NO_CHUNK)? {
                    0 => State::Ended,
                    length => State::Chunk(length),
                },
            };
        }
        Ok(rest)
    }
}

const NO_CHUNK: Bad = "there is no chunk where one is to be";

fn take<'b>(bytes: &'b [u8], left: u64, body: &mut Vec<u8>) -> (u64, &'b [u8]) {
    let (part, rest) = bytes.split_at(usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len()));
    body.extend_from_slice(part);
    (left - part.len() as u64, rest)
}

fn body_of(head: &[u8]) -> Result<State, Bad> {
    let text = std::str::from_utf8(head).map_err(|_| "the head is no text")?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().splitn(3, ' ');
    match (first.next(), first.next()) {
        (Some("HTTP/1.1" | "HTTP/1.0"), Some("200")) => {}
        (Some("HTTP/1.1" | "HTTP/1.0"), Some(status)) if status.starts_with('3') => {
            return Err("it says that the video is elsewhere");
        }
        (Some("HTTP/1.1" | "HTTP/1.0"), Some(_)) => return Err("it has no video there"),
        _ => return Err("it does not speak HTTP/1"),
    }
    let mut state = State::All;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err("its transfer coding is not known");
            }
            // RFC 9112 §6.3: it counts more than a length.
            return Ok(State::Size);
        }
        if name.eq_ignore_ascii_case("content-length") {
            let length = value.parse().map_err(|_| "its length is no number")?;
            if !matches!(state, State::All) && state != State::Length(length) {
                return Err("it has two lengths");
            }
            state = if length == 0 { State::Ended } else { State::Length(length) };
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_all_kinds_are_read_however_they_come() {
        for (answer, expected, ends) in [
            ("HTTP/1.0 200 OK\r\n\r\nabc", "abc", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", "abc", true),
            ("HTTP/1.1 200\r\ncontent-length: 5\r\nContent-Length: 5\r\n\r\nabc", "abc", false),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                "abc",
                true,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nabc", "", true),
        ] {
            for size in [1, 2, 5, 1000] {
                let (mut read, mut body) = (Answer::default(), Vec::new());
                for piece in answer.as_bytes().chunks(size) {
                    read.push(piece, &mut body).unwrap();
                }
                assert_eq!((&*body, read.has_ended()), (expected.as_bytes(), ends), "{answer:?} by {size}");
            }
        }
    }

    #[test]
    fn what_is_of_no_use_is_said_to_be() {
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(ANSWER_HEAD_BYTES_MAX));
        let long =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", "a".repeat(CHUNK_LINE_BYTES_MAX));
        for (answer, why) in [
            ("HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n", "elsewhere"),
            ("HTTP/1.1 404 Not Found\r\n\r\n", "no video"),
            ("SSH-2.0-x\r\n\r\n", "HTTP/1"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n", "length"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", "two"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "coding"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "chunk"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "chunk"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "chunk"),
            ("HTTP/1.1 200 OK\r\nx: \u{ff}\r\n\r\n", ""),
            (&endless, "no end"),
            (&long, "no end"),
        ] {
            for size in [1, 1000, 1 << 20] {
                let (mut read, mut body) = (Answer::default(), Vec::new());
                let outcome = answer.as_bytes().chunks(size).try_for_each(|piece| read.push(piece, &mut body));
                match why {
                    "" => assert_eq!(outcome, Ok(())),
                    why => assert!(outcome.unwrap_err().contains(why), "{answer:.60?} by {size}"),
                }
            }
        }
    }
}
