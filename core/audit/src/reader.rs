// SPDX-License-Identifier: Apache-2.0
//! Bytes of files become lines.

use std::io::{self, Read};

use netserv_model::Digest;
use netserv_model::audit::AuditLine;
use sha2::{Digest as _, Sha256};

use crate::limits::{LINE_BYTES_MAX, READ_BYTES};

/// Finds lines in bytes that come in pieces. It keeps one line at most.
#[derive(Debug, Default)]
pub struct Reader {
    /// The line that has not ended, as far as it is no longer than a line may be.
    text: Vec<u8>,
    /// What came since the last good line, if something did.
    damaged: Option<Sha256>,
    is_too_long: bool,
}

/// What a reader found.
#[derive(Debug)]
pub enum Found<'a> {
    /// A line, and its text without the end of line.
    Line(Box<AuditLine>, &'a str),
    /// What is none, up to the next line or the end of all: the digest of it, each line with an end.
    Damaged(Digest),
}

impl Reader {
    /// Takes all bytes that there are, and gives each line on that ends in them.
    ///
    /// # Errors
    /// The bytes cannot be read.
    pub fn take_all(&mut self, from: &mut impl Read, found: &mut impl FnMut(Found<'_>)) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(()),
                bytes => self.take(&buffer[..bytes], found),
            }
        }
    }

    /// Takes bytes, and gives each line on that ends in them.
    pub fn take(&mut self, mut bytes: &[u8], found: &mut impl FnMut(Found<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end]);
            self.end_line(found);
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    /// Takes the end of a file. If its last line has no end, it ends here; returns whether that is so.
    pub fn end_file(&mut self, found: &mut impl FnMut(Found<'_>)) -> bool {
        let is_unfinished = !self.text.is_empty() || self.is_too_long;
        if is_unfinished {
            self.end_line(found);
        }
        is_unfinished
    }

    /// Takes the end of all files. What has no end of line there is not looked at, as it may be being written; it is if the last file was ended
    /// by [`Reader::end_file`].
    pub fn end(mut self, found: &mut impl FnMut(Found<'_>)) {
        self.say_damaged(found);
    }

    fn add(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        if self.text.len() > LINE_BYTES_MAX {
            self.is_too_long = true;
        }
        if self.is_too_long {
            self.spoil(b"");
        }
    }

    fn end_line(&mut self, found: &mut impl FnMut(Found<'_>)) {
        let text = std::mem::take(&mut self.text);
        let whole = std::str::from_utf8(&text).ok().filter(|_| !self.is_too_long);
        let line = whole.and_then(|text| Some((serde_json::from_str(text).ok()?, text)));
        match line {
            Some((line, text)) => {
                self.say_damaged(found);
                found(Found::Line(Box::new(line), text));
            }
            None => {
                self.text = text;
                self.spoil(b"\n");
                self.is_too_long = false;
            }
        }
    }

    /// Counts the text among what is damaged.
    fn spoil(&mut self, end: &[u8]) {
        let hash = self.damaged.get_or_insert_with(Sha256::new);
        hash.update(&self.text);
        hash.update(end);
        self.text.clear();
    }

    fn say_damaged(&mut self, found: &mut impl FnMut(Found<'_>)) {
        if let Some(hash) = self.damaged.take() {
            found(Found::Damaged(Digest(hash.finalize().into())));
        }
    }
}
