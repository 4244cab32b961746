// SPDX-License-Identifier: Apache-2.0
//! Digests.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use xxhash_rust::xxh3::Xxh3;

use crate::error::HostError;
use crate::limits;

/// How to digest. The numbers are part of the packet ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Algorithm {
    /// SHA-1 (RFC 3174), for protocols that ask for it: collisions are known.
    Sha1 = 0,
    /// SHA-256 (RFC 6234).
    Sha256 = 1,
    /// SHA-512 (RFC 6234).
    Sha512 = 2,
    /// MD5 (RFC 1321), for protocols that ask for it: it is broken.
    Md5 = 3,
    /// CRC-32 as in gzip (RFC 1952), big-endian.
    Crc32 = 4,
    /// XXH3 of 64 bits, big-endian: fast, and no secret from anybody.
    Xxh3 = 5,
}

/// A digest of bytes that come one after the other.
#[derive(Clone)]
pub enum Hasher {
    /// Of [`Algorithm::Sha1`].
    Sha1(Sha1),
    /// Of [`Algorithm::Sha256`].
    Sha256(Sha256),
    /// Of [`Algorithm::Sha512`].
    Sha512(Sha512),
    /// Of [`Algorithm::Md5`].
    Md5(Md5),
    /// Of [`Algorithm::Crc32`].
    Crc32(u32),
    /// Of [`Algorithm::Xxh3`].
    Xxh3(Box<Xxh3>),
}

impl Algorithm {
    /// All of them, in the order of their numbers.
    pub const ALL: [Algorithm; 6] =
        [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512, Algorithm::Md5, Algorithm::Crc32, Algorithm::Xxh3];

    /// Returns the algorithm of a number.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if there is none.
    pub fn of(number: i32) -> Result<Algorithm, HostError> {
        usize::try_from(number).ok().and_then(|number| Algorithm::ALL.get(number)).copied().ok_or(HostError::Invalid)
    }

    /// Returns the digest of some bytes.
    ///
    /// # Errors
    /// [`HostError::TooLarge`] for more than [`limits::HASH_BYTES_MAX`] bytes.
    pub fn digest(self, bytes: &[u8]) -> Result<Vec<u8>, HostError> {
        let mut hasher = Hasher::new(self);
        hasher.update(bytes)?;
        Ok(hasher.finish())
    }
}

impl Hasher {
    /// Begins.
    pub fn new(algorithm: Algorithm) -> Hasher {
        match algorithm {
            Algorithm::Sha1 => Hasher::Sha1(Sha1::new()),
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Sha512::new()),
            Algorithm::Md5 => Hasher::Md5(Md5::new()),
            Algorithm::Crc32 => Hasher::Crc32(0),
            Algorithm::Xxh3 => Hasher::Xxh3(Box::default()),
        }
    }

    /// Takes further bytes.
    ///
    /// # Errors
    /// [`HostError::TooLarge`] for more than [`limits::HASH_BYTES_MAX`] in one call; none was taken then.
    pub fn update(&mut self, bytes: &[u8]) -> Result<(), HostError> {
        if bytes.len() > limits::HASH_BYTES_MAX {
            return Err(HostError::TooLarge);
        }
        match self {
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
            Hasher::Md5(hasher) => hasher.update(bytes),
            Hasher::Crc32(sum) => {
                let mut hasher = crc32fast::Hasher::new_with_initial(*sum);
                hasher.update(bytes);
                *sum = hasher.finalize();
            }
            Hasher::Xxh3(hasher) => hasher.update(bytes),
        }
        Ok(())
    }

    /// Returns the digest of all bytes that were taken.
    pub fn finish(self) -> Vec<u8> {
        match self {
            Hasher::Sha1(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha256(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha512(hasher) => hasher.finalize().to_vec(),
            Hasher::Md5(hasher) => hasher.finalize().to_vec(),
            Hasher::Crc32(sum) => sum.to_be_bytes().to_vec(),
            Hasher::Xxh3(hasher) => hasher.digest().to_be_bytes().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digests of `abc`, from the RFCs; the last two from the reference programs.
    const OF_ABC: [&str; 6] = [
        "a9993e364706816aba3e25717850c26c9cd0d89d",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd\
         454d4423643ce80e2a9ac94fa54ca49f",
        "900150983cd24fb0d6963f7d28e17f72",
        "352441c2",
        "78af5f94892f3950",
    ];

    #[test]
    fn digests_are_those_of_everywhere() {
        for (number, expected) in (0..).zip(OF_ABC) {
            let algorithm = Algorithm::of(number).unwrap();
            assert_eq!(hex(&algorithm.digest(b"abc").unwrap()), expected, "{algorithm:?}");
            let mut hasher = Hasher::new(algorithm);
            hasher.update(b"a").unwrap();
            hasher.update(b"").unwrap();
            hasher.update(b"bc").unwrap();
            assert_eq!(hex(&hasher.finish()), expected, "{algorithm:?}");
        }
        assert_eq!(Algorithm::of(6), Err(HostError::Invalid));
        assert_eq!(Algorithm::of(-1), Err(HostError::Invalid));
    }

    #[test]
    fn one_call_is_bounded() {
        let long = vec![0; limits::HASH_BYTES_MAX + 1];
        assert_eq!(Algorithm::Crc32.digest(&long), Err(HostError::TooLarge));
        assert!(Algorithm::Crc32.digest(&long[1..]).is_ok());
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
