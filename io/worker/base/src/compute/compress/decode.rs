// SPDX-License-Identifier: Apache-2.0
//! Decompression.

use std::io;

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use zstd::stream::raw::{DParameter, Decoder as Zstd, Operation as _};

use super::gzip::Gunzip;
use super::{CodeError, Encoding};
use crate::compute::{Budget, Reserved};
use crate::limits;

/// A stream that is being decompressed: bytes are written to it, and what they mean is read.
pub struct Decompressor {
    coder: Coder,
    /// What was written and not decompressed yet.
    input: Vec<u8>,
    /// How much of it was.
    taken: usize,
    /// How many bytes may still be given out.
    left: u64,
    state: State,
    _memory: Reserved,
}

enum Coder {
    Gzip(Box<Gunzip>),
    Brotli(Box<Brotli>),
    Zstd(Unzstd),
}

struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    is_over: bool,
    budget: Budget,
    window: Option<Reserved>,
}

struct Unzstd {
    coder: Zstd<'static>,
    may_end: bool,
    /// Whether the last output was filled, so that there may be more of it without further input.
    has_more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Going,
    Failed(CodeError),
    Finished,
}

impl Decompressor {
    /// Begins. More than `output_max` bytes in all are an error.
    ///
    /// # Errors
    /// [`CodeError::Quota`] if the budget has not enough memory.
    pub fn open(encoding: Encoding, output_max: u64, budget: &Budget) -> Result<Decompressor, CodeError> {
        let memory = budget.reserve(match encoding {
            Encoding::Gzip => limits::GZIP_DECODER_BYTES,
            Encoding::Brotli => limits::BROTLI_DECODER_BYTES,
            Encoding::Zstd => limits::ZSTD_DECODER_BYTES,
        })?;
        let coder = match encoding {
            Encoding::Gzip => Coder::Gzip(Box::new(Gunzip::new())),
            Encoding::Brotli => Coder::Brotli(Box::new(Brotli::new(budget))),
            Encoding::Zstd => Coder::Zstd(Unzstd::new().map_err(|_| CodeError::Quota)?),
        };
        let left = output_max.min(limits::DECOMPRESS_OUTPUT_BYTES_MAX);
        Ok(Decompressor { coder, input: Vec::new(), taken: 0, left, state: State::Going, _memory: memory })
    }

    /// Takes bytes for [`Decompressor::read`].
    ///
    /// # Errors
    /// [`CodeError::Busy`] if what was written before was not all read, [`CodeError::TooLarge`] for more than
    /// [`limits::DECOMPRESS_INPUT_BYTES_MAX`] bytes, or what the stream failed with.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CodeError> {
        self.check()?;
        if bytes.len() > limits::DECOMPRESS_INPUT_BYTES_MAX {
            return Err(CodeError::TooLarge);
        }
        if self.taken < self.input.len() {
            return Err(CodeError::Busy);
        }
        self.input.clear();
        self.input.extend_from_slice(bytes);
        self.taken = 0;
        Ok(())
    }

    /// Returns at most `max` bytes, at most [`limits::DECOMPRESS_READ_BYTES_MAX`]; none if it needs more to be written.
    ///
    /// # Errors
    /// What the stream fails with, once and for all: [`CodeError::Invalid`], [`CodeError::TooLarge`].
    pub fn read(&mut self, max: usize) -> Result<Vec<u8>, CodeError> {
        self.check()?;
        let read = self.read_some(max.min(limits::DECOMPRESS_READ_BYTES_MAX));
        if let Err(error) = read {
            self.state = State::Failed(error);
        }
        read
    }

    /// Ends the stream, after all of it was read.
    ///
    /// # Errors
    /// [`CodeError::Invalid`] if it is not complete, [`CodeError::Busy`] if what was written was not all read.
    pub fn finish(&mut self) -> Result<(), CodeError> {
        self.check()?;
        if self.taken < self.input.len() {
            return Err(CodeError::Busy);
        }
        let may_end = match &self.coder {
            Coder::Gzip(coder) => coder.may_end(),
            Coder::Brotli(coder) => coder.is_over,
            Coder::Zstd(coder) => coder.may_end,
        };
        self.state = if may_end { State::Finished } else { State::Failed(CodeError::Invalid) };
        if may_end { Ok(()) } else { Err(CodeError::Invalid) }
    }

    fn check(&self) -> Result<(), CodeError> {
        match self.state {
            State::Going => Ok(()),
            State::Failed(error) => Err(error),
            State::Finished => Err(CodeError::Finished),
        }
    }

    fn read_some(&mut self, max: usize) -> Result<Vec<u8>, CodeError> {
        // One byte of room beyond what is allowed shows whether there is more than that.
        let room = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX);
        let mut output = vec![0; max.min(room)];
        let mut length = 0;
        while length < output.len() {
            let (taken, given) = self.coder.step(&self.input[self.taken..], &mut output[length..])?;
            self.taken += taken;
            length += given;
            if taken == 0 && given == 0 {
                break;
            }
        }
        output.truncate(length);
        self.left = self.left.checked_sub(length as u64).ok_or(CodeError::TooLarge)?;
        Ok(output)
    }
}

impl Coder {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), CodeError> {
        match self {
            Coder::Gzip(coder) => coder.step(input, output),
            Coder::Brotli(coder) => coder.step(input, output),
            Coder::Zstd(coder) => coder.step(input, output),
        }
    }
}

impl Unzstd {
    fn new() -> io::Result<Unzstd> {
        let mut coder = Zstd::new()?;
        coder.set_parameter(DParameter::WindowLogMax(limits::ZSTD_WINDOW_LOG_MAX))?;
        Ok(Unzstd { coder, may_end: false, has_more: false })
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), CodeError> {
        // The library takes repeated calls without any progress for an error.
        if input.is_empty() && !self.has_more {
            return Ok((0, 0));
        }
        let status = self.coder.run_on_buffers(input, output).map_err(|_| CodeError::Invalid)?;
        self.may_end = status.remaining == 0;
        self.has_more = !self.may_end && status.bytes_written == output.len();
        Ok((status.bytes_read, status.bytes_written))
    }
}

impl Brotli {
    fn new(budget: &Budget) -> Brotli {
        let alloc = StandardAlloc::default();
        let state = BrotliState::new_strict(alloc, alloc, alloc);
        Brotli { state, is_over: false, budget: budget.clone(), window: None }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), CodeError> {
        if self.is_over {
            return if input.is_empty() { Ok((0, 0)) } else { Err(CodeError::Invalid) };
        }
        if let (None, Some(first)) = (&self.window, input.first()) {
            self.window = Some(self.budget.reserve(1 << window_bits(*first)?)?);
        }
        let (mut available_in, mut taken) = (input.len(), 0);
        let (mut available_out, mut given, mut total) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut taken,
            input,
            &mut available_out,
            &mut given,
            output,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultSuccess => self.is_over = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
            BrotliResult::ResultFailure => return Err(CodeError::Invalid),
        }
        Ok((taken, given))
    }
}

/// Returns the logarithm of the window that a stream with this first byte has (RFC 7932 §9.1).
fn window_bits(first: u8) -> Result<u8, CodeError> {
    match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, _, _) => Ok(16),
        (_, 0, 0) => Ok(17),
        (_, 0, 1) => Err(CodeError::Invalid),
        (_, 0, bits) => Ok(8 + bits),
        (_, bits, _) => Ok(17 + bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_allows_more_than_the_worker_does() {
        let budget = Budget::new(limits::COMPRESS_MEMORY_BYTES_MAX);
        let left = |output_max| Decompressor::open(Encoding::Gzip, output_max, &budget).unwrap().left;
        assert_eq!((left(u64::MAX), left(7)), (limits::DECOMPRESS_OUTPUT_BYTES_MAX, 7));
    }
}
