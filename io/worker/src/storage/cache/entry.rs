// SPDX-License-Identifier: Apache-2.0
//! An entry, and the blocks that it has for as long as somebody reads it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::{self, Head, PAYLOAD_BYTES};
use super::{CacheError, place};
use crate::storage::Disk;
use crate::storage::limits::CACHE_BLOCK_BYTES;

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
        self.pool.lock().extend(self.numbers.iter().copied());
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
    free: Mutex<BTreeSet<u32>>,
}

impl Pool {
    pub(super) fn new(count: u32) -> Pool {
        Pool { count, free: Mutex::new((0..count).collect()) }
    }

    pub(super) fn len(&self) -> u32 {
        self.count
    }

    pub(super) fn take(&self) -> Option<u32> {
        self.lock().pop_first()
    }

    pub(super) fn claim(&self, blocks: &[u32]) {
        let mut free = self.lock();
        for block in blocks {
            free.remove(block);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
