// SPDX-License-Identifier: Apache-2.0
//! Digests, made by the node.

use crate::error::Error;
use crate::host;

/// Returns SHA-256 of at most 16 MiB.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn sha256(bytes: &[u8]) -> Result<[u8; 32], Error> {
    digest(1, bytes)
}

/// Returns SHA-512 of at most 16 MiB.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn sha512(bytes: &[u8]) -> Result<[u8; 64], Error> {
    digest(2, bytes)
}

/// Returns SHA-1 of at most 16 MiB, for protocols that ask for it: collisions are known.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn sha1(bytes: &[u8]) -> Result<[u8; 20], Error> {
    digest(0, bytes)
}

/// Returns MD5 of at most 16 MiB, for protocols that ask for it: it is broken.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn md5(bytes: &[u8]) -> Result<[u8; 16], Error> {
    digest(3, bytes)
}

/// Returns the CRC-32 of gzip of at most 16 MiB.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn crc32(bytes: &[u8]) -> Result<u32, Error> {
    digest(4, bytes).map(u32::from_be_bytes)
}

/// Returns XXH3 of 64 bits of at most 16 MiB: fast, and no secret from anybody.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn xxh3(bytes: &[u8]) -> Result<u64, Error> {
    digest(5, bytes).map(u64::from_be_bytes)
}

fn digest<const N: usize>(algorithm: i32, bytes: &[u8]) -> Result<[u8; N], Error> {
    let mut digest = [0; N];
    match host::hash(algorithm, bytes, &mut digest)? {
        length if length == N => Ok(digest),
        _ => Err(Error::Invalid),
    }
}
