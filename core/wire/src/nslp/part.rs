// SPDX-License-Identifier: Apache-2.0
//! Long texts in parts: an NSLP-Data object holds at most 4095 words (RFC 5971 §A.2), a message up to 60 KiB.
//!
//! A text that fits goes as it is. A longer one goes in order, each part with a line of its own in front:
//! `NETSERV/1 PART 2/4 <nonce>`.

use netserv_model::Nonce;
use netserv_model::limits::MESSAGE_BYTES_MAX;

/// Bytes of one NSLP-Data object at most, with the part's own line: below 4095 words.
pub const PART_BYTES_MAX: usize = 16_000;
/// Parts of one text at most.
pub const PARTS_MAX: usize = MESSAGE_BYTES_MAX / (PART_BYTES_MAX - LINE_BYTES_MAX) + 1;

const PREFIX: &str = "NETSERV/1 PART ";
const LINE_BYTES_MAX: usize = PREFIX.len() + "9/9 ".len() + 32 + 1;

/// One part of a longer text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which part, counting from 1.
    pub index: usize,
    /// How many there are, 2 to [`PARTS_MAX`].
    pub count: usize,
    /// The nonce of the request that the text is or answers.
    pub nonce: Nonce,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Part {
    /// Reads a part; `None` if the bytes are not one.
    pub fn parse(bytes: &[u8]) -> Option<Part> {
        let head = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
        let end = head.iter().position(|&byte| byte == b'\n')?;
        let line = std::str::from_utf8(&head[..end]).ok()?.strip_prefix(PREFIX)?;
        let (place, nonce) = line.split_once(' ')?;
        let (index, count) = place.split_once('/')?;
        let digit = |text: &str| -> Option<usize> { (text.len() == 1).then(|| text.parse().ok())? };
        let (index, count) = (digit(index)?, digit(count)?);
        let in_range = (2..=PARTS_MAX).contains(&count) && (1..=count).contains(&index);
        let nonce = nonce.parse().ok()?;
        in_range.then(|| Part { index, count, nonce, bytes: bytes[end + 1..].to_vec() })
    }

    /// Writes the part.
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = format!("{PREFIX}{}/{} {}\n", self.index, self.count, self.nonce).into_bytes();
        bytes.extend_from_slice(&self.bytes);
        bytes
    }
}

/// Cuts a text of at most 60 KiB, with or without an envelope, into NSLP-Data of whole words; the last one is filled up with LF.
pub fn parts(text: &str, nonce: Nonce) -> Vec<Vec<u8>> {
    let mut pieces = if text.len() <= PART_BYTES_MAX {
        vec![text.as_bytes().to_vec()]
    } else {
        // Every line has the same length, so a full part is a whole number of words and needs no padding.
        let room = PART_BYTES_MAX - LINE_BYTES_MAX;
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(room).collect();
        let count = chunks.len();
        let part = |(at, chunk): (usize, &&[u8])| Part { index: at + 1, count, nonce, bytes: chunk.to_vec() }.emit();
        chunks.iter().enumerate().map(part).collect()
    };
    for piece in &mut pieces {
        piece.resize(piece.len().next_multiple_of(4), b'\n');
    }
    pieces
}
