// SPDX-License-Identifier: Apache-2.0
//! Search in packets, done by the node: the block `match`.
//!
//! A search costs one host call, some tens of nanoseconds, and is then many times as fast as a loop in WebAssembly. It is
//! worth it for whole packets and for many patterns, not for a few bytes at a known place.

use crate::error::Error;
use crate::host;

/// Returns the offset of the first `needle`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::Invalid`] for an empty needle, [`Error::TooLarge`] for more than 1 MiB.
pub fn find(bytes: &[u8], needle: &[u8]) -> Result<usize, Error> {
    host::find(bytes, needle)
}

/// Patterns that are looked for all at once.
#[derive(Debug)]
pub struct Patterns {
    set: u32,
}

/// Where a pattern was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// The number of the pattern in its list.
    pub pattern: u32,
    /// The offset of its first byte.
    pub start: u32,
    /// The offset behind its last byte.
    pub end: u32,
}

impl Patterns {
    /// Prepares patterns, which takes up to milliseconds: do it at the start. With `ignore_ascii_case`, ASCII letters of
    /// both cases are the same.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty pattern or none at all, [`Error::TooLarge`] for one over 1,024 bytes,
    /// [`Error::Quota`] for more than 4,096 or 131,072 bytes of them, or more than 16 sets.
    pub fn open<P: AsRef<[u8]>>(patterns: &[P], ignore_ascii_case: bool) -> Result<Patterns, Error> {
        let mut list = Vec::new();
        for pattern in patterns.iter().map(AsRef::as_ref) {
            list.extend_from_slice(&u16::try_from(pattern.len()).map_err(|_| Error::TooLarge)?.to_le_bytes());
            list.extend_from_slice(pattern);
        }
        host::patterns_open(&list, u32::from(ignore_ascii_case)).map(|set| Patterns { set })
    }

    /// Returns whether one of the patterns is there.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 1 MiB.
    pub fn is_match(&self, bytes: &[u8]) -> Result<bool, Error> {
        host::patterns_find(self.set, bytes, &mut []).map(|count| count > 0)
    }

    /// Returns the first of the patterns that is there; of those that begin at the same place, the longest.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 1 MiB.
    pub fn first(&self, bytes: &[u8]) -> Result<Option<Hit>, Error> {
        let mut hits = [Hit::default()];
        Ok((self.find(bytes, &mut hits)? > 0).then_some(hits[0]))
    }

    /// Puts hits that do not overlap, from left to right, into `hits` as far as there is room, at most 64, and returns how
    /// many.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 1 MiB.
    pub fn find(&self, bytes: &[u8], hits: &mut [Hit]) -> Result<usize, Error> {
        let mut out = [0; HITS_MAX * HIT_BYTES];
        let room = &mut out[..hits.len().min(HITS_MAX) * HIT_BYTES];
        let count = if room.is_empty() { 0 } else { host::patterns_find(self.set, bytes, room)? };
        for (hit, bytes) in hits.iter_mut().zip(out.as_chunks::<HIT_BYTES>().0).take(count) {
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
            *hit = Hit { pattern: word(0), start: word(4), end: word(8) };
        }
        Ok(count)
    }
}

impl Drop for Patterns {
    fn drop(&mut self) {
        host::patterns_close(self.set);
    }
}

const HITS_MAX: usize = 64;
const HIT_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_what_the_node_says() {
        crate::fake::reset(&[]);
        let patterns = Patterns::open(&["ab", "abc", "X"], true).unwrap();
        let mut hits = [Hit::default(); 3];
        assert_eq!(patterns.find(b"xxABCab", &mut hits), Ok(3));
        assert_eq!(hits[2], Hit { pattern: 1, start: 2, end: 5 });
        assert_eq!(patterns.find(b"ab", &mut []), Ok(0));
        assert_eq!(patterns.first(b"..ab"), Ok(Some(Hit { pattern: 0, start: 2, end: 4 })));
        assert_eq!(patterns.first(b".."), Ok(None));
        assert_eq!(patterns.is_match(b"..x"), Ok(true));
        assert_eq!(find(b"needle in", b" in"), Ok(6));
        assert_eq!(find(b"needle in", b"hay"), Err(Error::NotFound));
        assert_eq!(Patterns::open(&[""], false).unwrap_err(), Error::Invalid);
    }
}
