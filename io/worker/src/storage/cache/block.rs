// SPDX-License-Identifier: Apache-2.0
//! The blocks of the cache's file: what an entry is made of.
//!
//! ```text
//! 0   magic
//! 4   which block of its entry this is; 0 is the head
//! 8   the entry's number, which no other entry ever has
//! 16  bytes that follow
//! 20  not zero once the entry is forgotten, which who is reading it does not mind
//! 24  checksum of the first 20 bytes and of what follows
//! 32  what follows: of the head, what is known of the entry and the start of its body; of others, more of the body
//! ```

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_KEY_BYTES_MAX, CACHE_META_BYTES_MAX};
use netserv_model::ModuleName;

/// Bytes of a block's header.
pub(super) const HEADER_BYTES: usize = 32;
/// Bytes that a block holds.
pub(super) const PAYLOAD_BYTES: usize = CACHE_BLOCK_BYTES - HEADER_BYTES;
/// So many entries that no file ever sees them; a block that names a later one is none.
pub(super) const NUMBER_MAX: u64 = 1 << 62;

/// Where a head says whether its entry is forgotten.
pub(super) const FORGOTTEN_AT: usize = 20;

const MAGIC: u32 = 0x3143_534e;

/// A block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) is_forgotten: bool,
    pub(super) index: u32,
    pub(super) number: u64,
    pub(super) length: usize,
    sum: u64,
}

impl Header {
    /// Returns the header of a block that may be one.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let is_forgotten = word(FORGOTTEN_AT) != 0;
        let header = Header { is_forgotten, index: word(4), number: long(8), length: word(16) as usize, sum: long(24) };
        let is_one = word(0) == MAGIC && header.length <= PAYLOAD_BYTES && (1..NUMBER_MAX).contains(&header.number);
        is_one.then_some(header)
    }
}

/// Returns a whole block.
pub(super) fn build(number: u64, index: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend_from_slice(&index.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(payload.len()).expect("a block is small").to_le_bytes());
    let sum = checksum(&bytes, payload);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns what a block of an entry holds; nothing if this is another block, or a damaged one.
pub(super) fn payload(bytes: &[u8], number: u64, index: u32) -> Option<&[u8]> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let parsed = Header::parse(header).filter(|parsed| parsed.number == number && parsed.index == index)?;
    let payload = rest.get(..parsed.length)?;
    (checksum(&header[..FORGOTTEN_AT], payload) == parsed.sum).then_some(payload)
}

fn checksum(header: &[u8], payload: &[u8]) -> u64 {
    xxh3_64(payload) ^ xxh3_64(header).rotate_left(1)
}

/// What is known of an entry, as the head has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) module: ModuleName,
    pub(super) key: Arc<str>,
    pub(super) content_type: String,
    pub(super) etag: String,
    pub(super) max_age: u64,
    /// Seconds since 1970.
    pub(super) put_at: u64,
    /// Bytes of the body.
    pub(super) size: u64,
}

impl Head {
    /// Returns it as bytes, as many whatever the numbers in it are.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![];
        for number in [self.max_age, self.put_at, self.size] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for text in [self.module.as_str(), &self.key, &self.content_type, &self.etag] {
            bytes.extend_from_slice(&u16::try_from(text.len()).expect("texts are short").to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Returns what `bytes` begin with, and how long that is.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Head, usize)> {
        let mut rest = bytes;
        let mut number = || {
            let (number, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_le_bytes(*number))
        };
        let (max_age, put_at, size) = (number()?, number()?, number()?);
        let mut text = |max: usize| {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_le_bytes(*length));
            let (text, after) = after.split_at_checked(length).filter(|_| length <= max)?;
            rest = after;
            Some(std::str::from_utf8(text).ok()?.to_owned())
        };
        let module = text(usize::from(u16::MAX))?.parse().ok()?;
        let key = text(CACHE_KEY_BYTES_MAX)?.into();
        let (content_type, etag) = (text(CACHE_META_BYTES_MAX)?, text(CACHE_META_BYTES_MAX)?);
        let head = Head { module, key, content_type, etag, max_age, put_at, size };
        Some((head, bytes.len() - rest.len()))
    }
}

/// Returns where a block is in the file.
pub(super) fn place(block: u32) -> u64 {
    u64::from(block) * CACHE_BLOCK_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_by_its_entry_its_place_and_its_bytes() {
        let mut block = build(7, 3, b"some bytes");
        assert_eq!(payload(&block, 7, 3), Some(&b"some bytes"[..]));
        assert_eq!((payload(&block, 8, 3), payload(&block, 7, 2)), (None, None));
        for at in 0..block.len() {
            block[at] ^= 4;
            let expected = (FORGOTTEN_AT..FORGOTTEN_AT + 4).contains(&at).then_some(&b"some bytes"[..]);
            assert_eq!(payload(&block, 7, 3), expected, "byte {at}");
            block[at] ^= 4;
        }
        assert_eq!(payload(&block[..block.len() - 1], 7, 3), None);
        assert_eq!(payload(&[], 7, 3), None);
    }

    #[test]
    fn a_head_is_read_as_it_was_written_and_never_half() {
        let head = Head {
            module: "example.org/a".parse().unwrap(),
            key: "k".repeat(CACHE_KEY_BYTES_MAX).into(),
            content_type: "text/plain".to_owned(),
            etag: "e".repeat(CACHE_META_BYTES_MAX),
            max_age: u64::MAX,
            put_at: 1,
            size: 2,
        };
        let bytes = head.encode();
        assert!(bytes.len() < PAYLOAD_BYTES / 2);
        assert_eq!(Head::parse(&[&bytes[..], b"body"].concat()), Some((head.clone(), bytes.len())));
        assert!((0..bytes.len()).all(|length| Head::parse(&bytes[..length]).is_none()));
        let long = Head { key: "k".repeat(CACHE_KEY_BYTES_MAX + 1).into(), ..head };
        assert_eq!(Head::parse(&long.encode()), None);
    }
}
