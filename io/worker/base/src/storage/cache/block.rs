// SPDX-License-Identifier: Apache-2.0
//! The blocks of the cache's file.
//!
//! An entry has a *first part*, which is its head and the start of its body, in one block or two, and the rest of its body
//! in further blocks. A new head needs no new rest.
//!
//! ```text
//! 0   magic
//! 4   which block of its part this is; the highest bit is set in the rest of a body
//! 8   the number of the part, which no other part of its kind ever has
//! 16  bytes of payload
//! 20  in the first block of a head: not zero once the entry is forgotten
//! 24  checksum of the first 20 bytes and of the payload
//! 32  payload
//! ```

use std::sync::Arc;

use netserv_model::ModuleName;
use xxhash_rust::xxh3::xxh3_64;

use crate::storage::limits::{
    CACHE_BLOCK_BYTES, CACHE_ENTRY_COST, CACHE_KEY_BYTES_MAX, CACHE_META_BYTES_MAX, CACHE_TAG_BYTES_MAX,
    CACHE_TAGS_MAX, CACHE_TEXT_BYTES_MAX,
};

/// Bytes of a block's header.
pub(super) const HEADER_BYTES: usize = 32;
/// Bytes of payload that a block holds.
pub(super) const PAYLOAD_BYTES: usize = CACHE_BLOCK_BYTES - HEADER_BYTES;
/// Numbers of parts are below this; a block with a higher one is none.
pub(super) const NUMBER_MAX: u64 = 1 << 62;
/// Set in the place of a block that has a part of the rest of a body.
pub(super) const REST: u32 = 1 << 31;
/// Where a head says whether its entry is forgotten.
pub(super) const FORGOTTEN_AT: usize = 20;

const MAGIC: u32 = 0x3243_534e;
/// Bytes of memory that a tag takes beside its text.
const TAG_COST: u64 = 32;

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
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&MAGIC.to_le_bytes());
    bytes.extend_from_slice(&index.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(payload.len()).expect("a block is small").to_le_bytes());
    let sum = checksum(&bytes, payload);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the payload of a block; nothing if this is another block, or a damaged one.
pub(super) fn payload(bytes: &[u8], number: u64, index: u32) -> Option<&[u8]> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let parsed = Header::parse(header).filter(|parsed| parsed.number == number && parsed.index == index)?;
    let payload = rest.get(..parsed.length)?;
    (checksum(&header[..FORGOTTEN_AT], payload) == parsed.sum).then_some(payload)
}

fn checksum(header: &[u8], payload: &[u8]) -> u64 {
    xxh3_64(payload) ^ xxh3_64(header).rotate_left(1)
}

/// What is known of an entry, as its head has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) module: ModuleName,
    pub(super) key: Arc<str>,
    pub(super) content_type: Box<str>,
    pub(super) etag: Box<str>,
    pub(super) tags: Box<[Box<str>]>,
    pub(super) max_age: u64,
    /// Seconds since 1970.
    pub(super) put_at: u64,
    /// Bytes of the body.
    pub(super) size: u64,
    /// How many bytes of it are in the first part.
    pub(super) inline: u32,
    /// The number of the rest of the body.
    pub(super) rest_number: u64,
    /// How many heads the body had before this one.
    pub(super) revision: u32,
    /// Bytes of `meta`, which follow the head's texts.
    pub(super) meta_bytes: u32,
}

impl Head {
    /// Returns it as bytes, as many whatever the numbers in it are, without `meta`.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![];
        for number in [self.max_age, self.put_at, self.size, self.rest_number] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.inline, self.revision, self.meta_bytes] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let texts = [self.module.as_str(), &self.key, &self.content_type, &self.etag];
        bytes.push(u8::try_from(self.tags.len()).expect("there are few tags"));
        for text in texts.into_iter().chain(self.tags.iter().map(|tag| &**tag)) {
            bytes.extend_from_slice(&u16::try_from(text.len()).expect("texts are short").to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Returns what an entry takes in memory beside the numbers of its blocks.
    pub(super) fn cost(&self) -> u64 {
        let Head { module, key, content_type, etag, tags, .. } = self;
        let texts = [module.as_str(), key, content_type, etag];
        let tags: u64 = tags.iter().map(|tag| tag.len() as u64 + TAG_COST).sum();
        CACHE_ENTRY_COST + tags + texts.iter().map(|text| text.len() as u64).sum::<u64>()
    }

    /// Returns what `bytes` begin with, and how long that is.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Head, usize)> {
        let mut rest = bytes;
        let mut long = || {
            let (number, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_le_bytes(*number))
        };
        let (max_age, put_at, size, rest_number) = (long()?, long()?, long()?, long()?);
        let mut word = || {
            let (number, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            Some(u32::from_le_bytes(*number))
        };
        let (inline, revision, meta_bytes) = (word()?, word()?, word()?);
        let (tag_count, after) = rest.split_first()?;
        rest = after;
        let mut text = |max: usize| {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_le_bytes(*length));
            let (text, after) = after.split_at_checked(length).filter(|_| length <= max)?;
            rest = after;
            std::str::from_utf8(text).ok()
        };
        let module = text(usize::from(u16::MAX))?.parse().ok()?;
        let key = text(CACHE_KEY_BYTES_MAX)?.into();
        let (content_type, etag) = (text(CACHE_TEXT_BYTES_MAX)?.into(), text(CACHE_TEXT_BYTES_MAX)?.into());
        let tag_count = usize::from(*tag_count);
        let tags: Option<Box<[Box<str>]>> = (0..tag_count).map(|_| Some(text(CACHE_TAG_BYTES_MAX)?.into())).collect();
        let is_short = tag_count <= CACHE_TAGS_MAX && meta_bytes as usize <= CACHE_META_BYTES_MAX;
        let is_one = is_short && inline as usize <= PAYLOAD_BYTES && u64::from(inline) <= size;
        let head = Head {
            module,
            key,
            content_type,
            etag,
            tags: tags?,
            max_age,
            put_at,
            size,
            inline,
            rest_number,
            revision,
            meta_bytes,
        };
        is_one.then_some((head, bytes.len() - rest.len()))
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
        assert_eq!((payload(&block, 8, 3), payload(&block, 7, 2), payload(&block, 7, 3 | REST)), (None, None, None));
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
            content_type: "text/plain".into(),
            etag: "e".repeat(CACHE_TEXT_BYTES_MAX).into(),
            tags: vec!["t".repeat(CACHE_TAG_BYTES_MAX).into(); CACHE_TAGS_MAX].into(),
            max_age: u64::MAX,
            put_at: 1,
            size: 2,
            inline: 2,
            rest_number: 3,
            revision: 4,
            meta_bytes: 5,
        };
        let bytes = head.encode();
        assert!(bytes.len() < PAYLOAD_BYTES / 2, "it is in the first block");
        assert_eq!(Head::parse(&[&bytes[..], b"meta and body"].concat()), Some((head.clone(), bytes.len())));
        assert!((0..bytes.len()).all(|length| Head::parse(&bytes[..length]).is_none()));
        let long_tag = vec!["t".repeat(CACHE_TAG_BYTES_MAX + 1).into()].into();
        for bad in [
            Head { key: "k".repeat(CACHE_KEY_BYTES_MAX + 1).into(), ..head.clone() },
            Head { tags: long_tag, ..head.clone() },
            Head { tags: vec!["t".into(); CACHE_TAGS_MAX + 1].into(), ..head.clone() },
            Head { meta_bytes: 1 + u32::try_from(CACHE_META_BYTES_MAX).unwrap(), ..head.clone() },
            Head { inline: 3, ..head.clone() },
        ] {
            assert_eq!(Head::parse(&bad.encode()), None, "{bad:?}");
        }
    }
}
