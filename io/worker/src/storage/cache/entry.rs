// SPDX-License-Identifier: Apache-2.0
//! An entry, and the blocks that it has for as long as somebody reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::{self, HEADER_BYTES, Head, Header, PAYLOAD_BYTES, REST, place};
use super::details::{About, Details};
use super::error::CacheError;
use super::pool::Blocks;
use crate::storage::Disk;
use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_ENTRY_COST};

/// An entry of the cache.
#[derive(Debug)]
pub struct Entry {
    pub(super) head: Head,
    /// Bytes of the head before `meta`.
    text_bytes: usize,
    /// The number of the first part.
    pub(super) number: u64,
    first: Blocks,
    /// The rest of the body, which the entry's next revision has, too.
    pub(super) rest: Arc<Blocks>,
    /// Whether its head was seen on the disk.
    is_sure: AtomicBool,
}

impl Entry {
    /// Returns an entry; nothing if it has not as many blocks as its head says.
    pub(super) fn new(
        head: Head,
        text_bytes: usize,
        number: u64,
        first: Blocks,
        rest: Arc<Blocks>,
        is_sure: bool,
    ) -> Option<Entry> {
        let (first_count, rest_count) = block_counts(&head, text_bytes)?;
        let is_whole = (first.numbers.len(), rest.numbers.len()) == (first_count, rest_count);
        is_whole.then_some(Entry { head, text_bytes, number, first, rest, is_sure: AtomicBool::new(is_sure) })
    }

    /// Returns the key.
    pub fn key(&self) -> &Arc<str> {
        &self.head.key
    }

    /// Returns the bytes of the body.
    pub fn size(&self) -> u64 {
        self.head.size
    }

    /// Returns the media type.
    pub fn content_type(&self) -> &str {
        &self.head.content_type
    }

    /// Returns the validator.
    pub fn etag(&self) -> &str {
        &self.head.etag
    }

    /// Returns the tags.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.head.tags.iter().map(|tag| &**tag)
    }

    /// Returns the seconds after which it counts as stale.
    pub fn max_age(&self) -> u64 {
        self.head.max_age
    }

    /// Returns the seconds since it was put or updated, at `now` seconds since 1970.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.head.put_at)
    }

    /// Returns all that is known of it, with the `meta` that was read.
    pub fn about(&self, meta: Vec<u8>) -> About {
        let details = Details {
            content_type: self.content_type().to_owned(),
            etag: self.etag().to_owned(),
            max_age: self.max_age(),
            meta,
            tags: self.tags().map(str::to_owned).collect(),
        };
        About { details, size: Some(self.size()), put_at: self.head.put_at }
    }

    /// Returns whether it is known to be on the disk, and has no `meta` there that was not read.
    pub fn needs_no_disk(&self) -> bool {
        self.is_sure() && self.head.meta_bytes == 0
    }

    /// Returns whether it is known to be on the disk.
    pub fn is_sure(&self) -> bool {
        self.is_sure.load(Ordering::Relaxed)
    }

    pub(super) fn head_block(&self) -> u32 {
        self.first.numbers[0]
    }

    pub(super) fn block_count(&self) -> u32 {
        self.first.count() + self.rest.count()
    }

    /// Returns what it takes in memory beside the numbers of its blocks.
    pub(super) fn cost(&self) -> u64 {
        let Head { module, key, content_type, etag, tags, .. } = &self.head;
        let texts = [module.as_str(), key, content_type, etag];
        let tags: u64 = tags.iter().map(|tag| tag.len() as u64 + TAG_COST).sum();
        CACHE_ENTRY_COST + tags + texts.iter().map(|text| text.len() as u64).sum::<u64>()
    }

    /// Looks whether the disk has it still: what was written down of it may be of long ago.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn make_sure(&self, disk: &dyn Disk) -> Result<bool, CacheError> {
        let mut bytes = [0; HEADER_BYTES];
        disk.read_at(place(self.head_block()), &mut bytes)?;
        let is_there = Header::parse(&bytes)
            .is_some_and(|header| header.number == self.number && header.index == 0 && !header.is_forgotten);
        self.is_sure.store(is_there, Ordering::Relaxed);
        Ok(is_there)
    }

    /// Reads what the module keeps beside the body.
    pub(super) fn read_meta(&self, disk: &dyn Disk) -> Result<Vec<u8>, CacheError> {
        let mut meta = Vec::new();
        while meta.len() < self.head.meta_bytes as usize {
            let left = self.head.meta_bytes as usize - meta.len();
            meta.extend(self.read_first(disk, self.text_bytes + meta.len(), left)?);
        }
        Ok(meta)
    }

    /// Reads the start of the body that is in the first part.
    pub(super) fn read_inline(&self, disk: &dyn Disk) -> Result<Vec<u8>, CacheError> {
        let mut bytes = Vec::new();
        while bytes.len() < self.head.inline as usize {
            bytes.extend(self.read(disk, bytes.len() as u64, self.head.inline as usize - bytes.len())?);
        }
        Ok(bytes)
    }

    /// Reads some of the body, at most to the end of a block; nothing at its end.
    pub(super) fn read(&self, disk: &dyn Disk, offset: u64, max: usize) -> Result<Vec<u8>, CacheError> {
        let left = self.head.size.saturating_sub(offset);
        let max = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        if max == 0 {
            return Ok(vec![]);
        }
        let inline = u64::from(self.head.inline);
        match offset.checked_sub(inline) {
            Some(at) => {
                let block = |index| self.rest.numbers.get(index).copied();
                read_rest(disk, block, self.head.rest_number, at, max)
            }
            None => {
                let at = usize::try_from(offset).map_err(|_| CacheError::Damaged)?;
                let left = self.head.inline as usize - at;
                self.read_first(disk, self.text_bytes + self.head.meta_bytes as usize + at, max.min(left))
            }
        }
    }

    fn read_first(&self, disk: &dyn Disk, at: usize, max: usize) -> Result<Vec<u8>, CacheError> {
        let index = at / PAYLOAD_BYTES;
        let block = self.first.numbers.get(index).ok_or(CacheError::Damaged)?;
        let index = u32::try_from(index).map_err(|_| CacheError::Damaged)?;
        read_block(disk, *block, (self.number, index), at % PAYLOAD_BYTES, max)
    }
}

/// Bytes of memory that a tag takes beside its text.
const TAG_COST: u64 = 32;

/// Reads some of the rest of a body, at most to the end of a block. `block` says which one has which place.
pub(super) fn read_rest(
    disk: &dyn Disk,
    block: impl Fn(usize) -> Option<u32>,
    number: u64,
    at: u64,
    max: usize,
) -> Result<Vec<u8>, CacheError> {
    let (index, from) = (at / PAYLOAD_BYTES as u64, at % PAYLOAD_BYTES as u64);
    let index = u32::try_from(index).map_err(|_| CacheError::Damaged)?;
    let block = block(index as usize).ok_or(CacheError::Damaged)?;
    read_block(disk, block, (number, index | REST), usize::try_from(from).unwrap_or(0), max)
}

/// Reads some of a block of a part, which is given by the part's number and the block's place in it.
fn read_block(
    disk: &dyn Disk,
    block: u32,
    (number, index): (u64, u32),
    from: usize,
    max: usize,
) -> Result<Vec<u8>, CacheError> {
    let mut bytes = vec![0; CACHE_BLOCK_BYTES];
    disk.read_at(place(block), &mut bytes)?;
    let payload = block::payload(&bytes, number, index).ok_or(CacheError::Damaged)?;
    let to = payload.len().min(from.saturating_add(max));
    match payload.get(from..to) {
        Some(part) if !part.is_empty() => Ok(part.to_vec()),
        Some(_) | None => Err(CacheError::Damaged),
    }
}

/// Returns how many blocks an entry's first part has, and how many the rest of its body; nothing if these are no numbers.
pub(super) fn block_counts(head: &Head, text_bytes: usize) -> Option<(usize, usize)> {
    let first = text_bytes.checked_add(head.meta_bytes as usize)?.checked_add(head.inline as usize)?;
    let rest = head.size.checked_sub(u64::from(head.inline))?.div_ceil(PAYLOAD_BYTES as u64);
    Some((first.div_ceil(PAYLOAD_BYTES), usize::try_from(rest).ok()?))
}
