// SPDX-License-Identifier: Apache-2.0
//! Frames of MPEG audio (layers I to III) and of AAC in ADTS, found in a stream of bytes.

mod adts;
mod header;
pub mod mpeg;

pub use header::{Codec, HEADER_BYTES, Header, Kind};

/// Returns the header at the begin of these bytes, if there is one.
pub fn parse_header(bytes: &[u8]) -> Option<Header> {
    let first: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    mpeg::header(first).or_else(|| adts::header(first))
}

/// Finds frames: what is none of a stream's is left out, so that a listener gets whole frames alone.
#[derive(Clone, Debug, Default)]
pub struct Framer {
    buffer: Vec<u8>,
    dropped: u64,
}

impl Framer {
    /// Goes on with bytes that another one had left.
    pub fn with(buffer: Vec<u8>) -> Framer {
        Framer { buffer, dropped: 0 }
    }

    /// Takes the next bytes, and calls `found` for each frame that is whole and that another one follows.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(&[u8], &Header)) {
        self.buffer.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = &self.buffer[at..];
            let skipped = rest.iter().position(|byte| *byte == 0xff).unwrap_or(rest.len());
            self.dropped += skipped as u64;
            at += skipped;
            let rest = &self.buffer[at..];
            if rest.len() < HEADER_BYTES {
                break;
            }
            let Some(header) = parse_header(rest) else {
                self.dropped += 1;
                at += 1;
                continue;
            };
            let Some(next) = rest.get(header.length..header.length + HEADER_BYTES) else { break };
            if parse_header(next).is_some_and(|next| next.kind == header.kind) {
                found(&rest[..header.length], &header);
                at += header.length;
            } else {
                self.dropped += 1;
                at += 1;
            }
        }
        self.buffer.drain(..at);
    }

    /// Returns how many bytes were none of a frame, from here on anew.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Returns the bytes of which it is not known yet what they are.
    pub fn left(&self) -> &[u8] {
        &self.buffer
    }
}

#[cfg(test)]
mod tests;
