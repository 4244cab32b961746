// SPDX-License-Identifier: Apache-2.0
//! Compression.

use std::io::{self, Write as _};

use brotli::CompressorWriter as Brotli;
use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder as Zstd;

use super::{CodeError, Encoding};
use crate::compute::{Budget, Reserved};
use crate::limits;

/// A stream that is being compressed.
pub struct Compressor {
    coder: Option<Coder>,
    _memory: Reserved,
}

enum Coder {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(Box<Brotli<Vec<u8>>>),
    Zstd(Zstd<'static, Vec<u8>>),
}

impl Compressor {
    /// Begins. `level` is 0 (fast) to 9 (small); higher ones are taken for 9.
    ///
    /// # Errors
    /// [`CodeError::Quota`] if the budget has not enough memory.
    pub fn open(encoding: Encoding, level: u8, budget: &Budget) -> Result<Compressor, CodeError> {
        let level = u32::from(level.min(9));
        let memory = budget.reserve(match encoding {
            Encoding::Gzip => limits::GZIP_ENCODER_BYTES,
            Encoding::Brotli => limits::BROTLI_ENCODER_BYTES,
            Encoding::Zstd => limits::ZSTD_ENCODER_BYTES,
        })?;
        let coder = match encoding {
            Encoding::Gzip => Coder::Gzip(GzEncoder::new(Vec::new(), Compression::new(level.max(1)))),
            Encoding::Brotli => {
                // From quality 7 on, Brotli's tables take 8 to 32 MiB.
                let quality = level * BROTLI_QUALITY_MAX / 9;
                Coder::Brotli(Box::new(Brotli::new(Vec::new(), BUFFER_BYTES, quality, BROTLI_WINDOW_BITS)))
            }
            Encoding::Zstd => Coder::Zstd(zstd(level).map_err(|_| CodeError::Quota)?),
        };
        Ok(Compressor { coder: Some(coder), _memory: memory })
    }

    /// Takes bytes, and returns what is ready.
    ///
    /// # Errors
    /// [`CodeError::TooLarge`] for more than [`limits::COMPRESS_INPUT_BYTES_MAX`] bytes, [`CodeError::Finished`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<Vec<u8>, CodeError> {
        if bytes.len() > limits::COMPRESS_INPUT_BYTES_MAX {
            return Err(CodeError::TooLarge);
        }
        let coder = self.coder.as_mut().ok_or(CodeError::Finished)?;
        // A Vec takes everything, so that the coder alone can fail.
        coder.write_all(bytes).map_err(|_| CodeError::Invalid)?;
        Ok(coder.take())
    }

    /// Returns what belongs to the bytes so far, so that who decompresses gets them all. Costs some compression.
    ///
    /// # Errors
    /// [`CodeError::Finished`].
    pub fn flush(&mut self) -> Result<Vec<u8>, CodeError> {
        let coder = self.coder.as_mut().ok_or(CodeError::Finished)?;
        coder.flush().map_err(|_| CodeError::Invalid)?;
        Ok(coder.take())
    }

    /// Returns the rest.
    ///
    /// # Errors
    /// [`CodeError::Finished`].
    pub fn finish(&mut self) -> Result<Vec<u8>, CodeError> {
        let finished = match self.coder.take().ok_or(CodeError::Finished)? {
            Coder::Gzip(coder) => coder.finish(),
            Coder::Brotli(coder) => Ok(coder.into_inner()),
            Coder::Zstd(coder) => coder.finish(),
        };
        finished.map_err(|_| CodeError::Invalid)
    }
}

impl Coder {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Coder::Gzip(coder) => coder.write_all(bytes),
            Coder::Brotli(coder) => coder.write_all(bytes),
            Coder::Zstd(coder) => coder.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Coder::Gzip(coder) => coder.flush(),
            Coder::Brotli(coder) => coder.flush(),
            Coder::Zstd(coder) => coder.flush(),
        }
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Coder::Gzip(coder) => coder.get_mut(),
            Coder::Brotli(coder) => coder.get_mut(),
            Coder::Zstd(coder) => coder.get_mut(),
        })
    }
}

fn zstd(level: u32) -> io::Result<Zstd<'static, Vec<u8>>> {
    let mut coder = Zstd::new(Vec::new(), i32::try_from(level + 1).unwrap_or(1))?;
    coder.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_LOG))?;
    coder.set_parameter(CParameter::HashLog(ZSTD_TABLE_LOG))?;
    coder.set_parameter(CParameter::ChainLog(ZSTD_TABLE_LOG))?;
    coder.include_checksum(true)?;
    Ok(coder)
}

const BUFFER_BYTES: usize = 16 * 1024;
const BROTLI_QUALITY_MAX: u32 = 6;
const BROTLI_WINDOW_BITS: u32 = 18;
const ZSTD_WINDOW_LOG: u32 = 20;
const ZSTD_TABLE_LOG: u32 = 18;
