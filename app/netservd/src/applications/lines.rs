// SPDX-License-Identifier: Apache-2.0
//! Lines that somebody sends, none of which is held that is too long.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::limits::APPLICATION_LINE_BYTES_MAX;

/// Reads lines.
pub struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
}

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// It has at most [`APPLICATION_LINE_BYTES_MAX`] bytes.
    Whole(Vec<u8>),
    /// It has more.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Returns what reads lines.
    pub fn new(from: R) -> Lines<R> {
        Lines { from: BufReader::new(from), line: Vec::new(), too_long: false }
    }

    /// Returns the next line; nothing at the end, where bytes without an end of line are none. What was read when the call is
    /// given up is not lost.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let bytes = self.from.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.too_long |= self.line.len() + part.len() > APPLICATION_LINE_BYTES_MAX;
            match self.too_long {
                true => self.line.clear(),
                false => self.line.extend_from_slice(part),
            }
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(if std::mem::take(&mut self.too_long) { Line::TooLong } else { Line::Whole(line) }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn application_line_bytes_max_bytes_are_a_line_and_one_more_is_none() {
        let long = "x".repeat(APPLICATION_LINE_BYTES_MAX);
        let text = format!("a\n\n{long}\n{long}x\n{long}{long}{long}\nb\nno end");
        let mut lines = Lines::new(text.as_bytes());
        let whole = |text: &str| Some(Line::Whole(text.as_bytes().to_vec()));
        for expected in
            [whole("a"), whole(""), whole(&long), Some(Line::TooLong), Some(Line::TooLong), whole("b"), None]
        {
            assert_eq!(lines.next().await.unwrap(), expected);
        }
    }
}
