// SPDX-License-Identifier: Apache-2.0
//! Compression and decompression of streams, piece by piece.
//!
//! A coder's memory is taken from a [`Budget`](super::Budget) as long as it lives. What a decompressor gives out is
//! bounded per call, and altogether by who opens it.

mod decode;
mod encode;
mod gzip;

pub use decode::Decompressor;
pub use encode::Compressor;

use crate::error::HostError;

/// How a stream is compressed, as in HTTP's `content-encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// RFC 1952.
    Gzip,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 3] = [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd];
}

/// Why a coder did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The bytes are not of this encoding, or end early.
    #[error("invalid")]
    Invalid,
    /// The output would be larger than allowed, or the input of one call is.
    #[error("too large")]
    TooLarge,
    /// The module has too many coders.
    #[error("quota")]
    Quota,
    /// What was written before has to be read first.
    #[error("busy")]
    Busy,
    /// The stream is over.
    #[error("finished")]
    Finished,
}

impl From<HostError> for CodeError {
    fn from(error: HostError) -> CodeError {
        match error {
            HostError::Quota => CodeError::Quota,
            HostError::TooLarge => CodeError::TooLarge,
            HostError::NotFound | HostError::BadAddress | HostError::Invalid => CodeError::Invalid,
        }
    }
}

#[cfg(test)]
mod tests;
