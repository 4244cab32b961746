// SPDX-License-Identifier: Apache-2.0
//! The frame around deflated bytes (RFC 1952).

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::CodeError;
use crate::limits::GZIP_HEADER_BYTES_MAX;

/// One gzip stream, which may have several members.
pub(super) struct Gunzip {
    state: State,
    inflate: Decompress,
    crc: Crc,
}

enum State {
    /// In a member's header, of which this is what came so far.
    Header(Vec<u8>),
    /// In what was compressed.
    Body,
    /// In the check sum and the length behind it.
    Trailer(Vec<u8>),
    /// Behind a member.
    Between,
}

impl Gunzip {
    pub(super) fn new() -> Gunzip {
        Gunzip { state: State::Header(Vec::new()), inflate: Decompress::new(false), crc: Crc::new() }
    }

    /// Returns whether the stream may end here.
    pub(super) fn may_end(&self) -> bool {
        matches!(self.state, State::Between)
    }

    /// Takes input and gives output, and returns how much of both; neither, if it needs more input.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), CodeError> {
        match &mut self.state {
            State::Between if input.is_empty() => Ok((0, 0)),
            State::Between => {
                self.state = State::Header(Vec::new());
                self.take_header(input)
            }
            State::Header(_) => self.take_header(input),
            State::Body => match self.inflate(input, output)? {
                (0, 0) if matches!(self.state, State::Trailer(_)) => self.take_trailer(input),
                step => Ok(step),
            },
            State::Trailer(_) => self.take_trailer(input),
        }
    }

    fn take_header(&mut self, input: &[u8]) -> Result<(usize, usize), CodeError> {
        let State::Header(header) = &mut self.state else { return Ok((0, 0)) };
        let before = header.len();
        header.extend_from_slice(&input[..input.len().min(GZIP_HEADER_BYTES_MAX - before)]);
        let Some(length) = header_length(header)? else {
            let is_full = header.len() == GZIP_HEADER_BYTES_MAX;
            return if is_full { Err(CodeError::Invalid) } else { Ok((header.len() - before, 0)) };
        };
        self.state = State::Body;
        self.inflate.reset(false);
        self.crc.reset();
        Ok((length - before, 0))
    }

    fn take_trailer(&mut self, input: &[u8]) -> Result<(usize, usize), CodeError> {
        let State::Trailer(trailer) = &mut self.state else { return Ok((0, 0)) };
        let taken = input.len().min(TRAILER_BYTES - trailer.len());
        trailer.extend_from_slice(&input[..taken]);
        if trailer.len() == TRAILER_BYTES {
            let expected = [self.crc.sum().to_le_bytes(), self.crc.amount().to_le_bytes()].concat();
            if *trailer != expected {
                return Err(CodeError::Invalid);
            }
            self.state = State::Between;
        }
        Ok((taken, 0))
    }

    fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), CodeError> {
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, output, FlushDecompress::None).map_err(|_| CodeError::Invalid)?;
        let since = |now: u64, before: u64| usize::try_from(now - before).map_err(|_| CodeError::Invalid);
        let taken = since(self.inflate.total_in(), before.0)?;
        let given = since(self.inflate.total_out(), before.1)?;
        self.crc.update(&output[..given]);
        if status == Status::StreamEnd {
            self.state = State::Trailer(Vec::new());
        }
        Ok((taken, given))
    }
}

/// Returns how long a member's header is; nothing if it goes on.
fn header_length(header: &[u8]) -> Result<Option<usize>, CodeError> {
    let known = header.len().min(3);
    if header[..known] != [0x1f, 0x8b, 8][..known] {
        return Err(CodeError::Invalid);
    }
    let Some(flags) = header.get(3).copied() else { return Ok(None) };
    // RFC 1952 §2.3.1.2: reserved bits must be zero.
    if flags & 0xe0 != 0 {
        return Err(CodeError::Invalid);
    }
    let mut length = 10;
    if flags & EXTRA != 0 {
        let Some(extra) = header.get(length..length + 2) else { return Ok(None) };
        length += 2 + usize::from(u16::from_le_bytes([extra[0], extra[1]]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = header.get(length..).and_then(|rest| rest.iter().position(|byte| *byte == 0));
            let Some(end) = end else { return Ok(None) };
            length += end + 1;
        }
    }
    if flags & HEADER_CRC != 0 {
        length += 2;
    }
    Ok((length <= header.len()).then_some(length))
}

const HEADER_CRC: u8 = 0x02;
const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;
const TRAILER_BYTES: usize = 8;
