// SPDX-License-Identifier: Apache-2.0
//! An entry, and the blocks that it has for as long as somebody reads it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::{self, Head, PAYLOAD_BYTES, place};
use super::error::CacheError;
use crate::storage::Disk;
use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_ENTRY_COST};

/// An entry of the cache.
#[derive(Debug)]
pub struct Entry {
    pub(super) head: Head,
    head_bytes: usize,
    pub(super) number: u64,
    blocks: Blocks,
}

impl Entry {
    pub(super) fn new(head: Head, head_bytes: usize, number: u64, blocks: Blocks) -> Entry {
        Entry { head, head_bytes, number, blocks }
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

    /// Returns the seconds after which it counts as stale.
    pub fn max_age(&self) -> u64 {
        self.head.max_age
    }

    /// Returns the seconds since it was put, at `now` seconds since 1970.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.head.put_at)
    }

    pub(super) fn head_block(&self) -> u32 {
        self.blocks.numbers[0]
    }

    pub(super) fn block_count(&self) -> u32 {
        u32::try_from(self.blocks.numbers.len()).expect("a file has few blocks")
    }

    /// Returns what it takes in memory beside the numbers of its blocks.
    pub(super) fn cost(&self) -> u64 {
        let Head { module, key, content_type, etag, .. } = &self.head;
        let texts = [module.as_str(), key, content_type, etag];
        CACHE_ENTRY_COST + texts.iter().map(|text| text.len() as u64).sum::<u64>()
    }

    pub(super) fn read(&self, disk: &dyn Disk, offset: u64, max: usize) -> Result<Vec<u8>, CacheError> {
        let left = self.head.size.saturating_sub(offset);
        let max = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        if max == 0 {
            return Ok(vec![]);
        }
        // The body begins behind what the head has, as if that were bytes of it.
        let at = offset + self.head_bytes as u64;
        let (index, from) = (at / PAYLOAD_BYTES as u64, at % PAYLOAD_BYTES as u64);
        let (index, from) =
            (u32::try_from(index).map_err(|_| CacheError::Damaged)?, usize::try_from(from).unwrap_or(0));
        let number = self.blocks.numbers.get(index as usize).ok_or(CacheError::Damaged)?;
        let mut bytes = vec![0; CACHE_BLOCK_BYTES];
        disk.read_at(place(*number), &mut bytes)?;
        let payload = block::payload(&bytes, self.number, index).ok_or(CacheError::Damaged)?;
        let to = payload.len().min(from.saturating_add(max));
        match payload.get(from..to) {
            Some(part) if !part.is_empty() => Ok(part.to_vec()),
            Some(_) | None => Err(CacheError::Damaged),
        }
    }
}

/// Returns how many blocks a body of `size` bytes takes behind a head of `head_bytes`; nothing if that is no number.
pub(super) fn blocks_of(size: u64, head_bytes: usize) -> Option<usize> {
    let bytes = size.checked_add(head_bytes as u64)?;
    usize::try_from(bytes.div_ceil(PAYLOAD_BYTES as u64)).ok()
}

/// Blocks that are somebody's.
pub(super) struct Blocks {
    pub(super) numbers: Vec<u32>,
    pool: Arc<Pool>,
}

impl Blocks {
    pub(super) fn new(numbers: Vec<u32>, pool: Arc<Pool>) -> Blocks {
        Blocks { numbers, pool }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let mut free = self.pool.lock();
        self.numbers.iter().for_each(|block| free.mark(*block, true));
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.numbers)
    }
}

/// The blocks of the file, and which of them are nobody's.
pub(super) struct Pool {
    count: u32,
    free: Mutex<Free>,
}

/// A bit for each block, which is set while it is nobody's.
struct Free {
    words: Vec<u64>,
    /// No word before this one has a bit.
    first: usize,
}

impl Free {
    fn mark(&mut self, block: u32, is_free: bool) {
        let (word, bit) = (block as usize / 64, 1 << (block % 64));
        if is_free {
            self.words[word] |= bit;
            self.first = self.first.min(word);
        } else {
            self.words[word] &= !bit;
        }
    }
}

impl Pool {
    pub(super) fn new(count: u32) -> Pool {
        let mut free = Free { words: vec![0; count.div_ceil(64) as usize], first: 0 };
        (0..count).for_each(|block| free.mark(block, true));
        Pool { count, free: Mutex::new(free) }
    }

    pub(super) fn len(&self) -> u32 {
        self.count
    }

    pub(super) fn take(&self) -> Option<u32> {
        let mut free = self.lock();
        while let Some(word) = free.words.get(free.first) {
            if *word != 0 {
                let block = u32::try_from(free.first * 64).expect("a file has few blocks") + word.trailing_zeros();
                free.mark(block, false);
                return Some(block);
            }
            free.first += 1;
        }
        None
    }

    pub(super) fn claim(&self, blocks: &[u32]) {
        let mut free = self.lock();
        blocks.iter().for_each(|block| free.mark(*block, false));
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
