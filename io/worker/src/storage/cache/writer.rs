// SPDX-License-Identifier: Apache-2.0
//! An entry that is being written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::{self, Head, PAYLOAD_BYTES, place};
use super::entry::{Blocks, Entry};
use super::error::CacheError;
use super::shares::Share;
use crate::storage::limits::{CACHE_KEY_BYTES_MAX, CACHE_META_BYTES_MAX, CACHE_WRITERS_MAX};

/// What a module says of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The media type, at most [`CACHE_META_BYTES_MAX`] bytes.
    pub content_type: String,
    /// The validator, at most as many.
    pub etag: String,
    /// Seconds after which it counts as stale.
    pub max_age: u64,
}

/// An entry that is being written. Dropping it forgets it.
pub struct Writer {
    share: Arc<Share>,
    head: Head,
    number: u64,
    /// Nothing once the entry is there.
    blocks: Option<Blocks>,
    /// What the head begins with, and the start of the body, which are written last.
    first: Vec<u8>,
    head_bytes: usize,
    /// The part of the body that fills no block yet, if the first one is full.
    rest: Vec<u8>,
    failed: bool,
}

impl Writer {
    /// Begins an entry of a module's, as of `put_at` seconds since 1970. Nothing is written yet.
    ///
    /// # Errors
    /// [`CacheError::Invalid`] and [`CacheError::Busy`].
    pub fn begin(share: &Arc<Share>, key: &str, meta: Meta, put_at: u64) -> Result<Writer, CacheError> {
        let Meta { content_type, etag, max_age } = meta;
        let is_long = [&content_type, &etag].iter().any(|text| text.len() > CACHE_META_BYTES_MAX);
        if key.is_empty() || key.len() > CACHE_KEY_BYTES_MAX || is_long {
            return Err(CacheError::Invalid);
        }
        let (cache, module) = (&share.cache, share.module.clone());
        if !cache.lock().begin(&module, CACHE_WRITERS_MAX) {
            return Err(CacheError::Busy);
        }
        let head = Head { module, key: key.into(), content_type, etag, max_age, put_at, size: 0 };
        let number = cache.next_number.fetch_add(1, Ordering::Relaxed);
        let first = head.encode();
        let head_bytes = first.len();
        let blocks = Some(Blocks::new(vec![], Arc::clone(&cache.pool)));
        let share = Arc::clone(share);
        Ok(Writer { share, head, number, blocks, first, head_bytes, rest: vec![], failed: false })
    }

    /// Adds to the body.
    ///
    /// # Errors
    /// [`CacheError::TooLarge`] once the body is larger than the module's share, and [`CacheError::Disk`]. Nothing can
    /// be done with the entry then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CacheError> {
        let written = self.try_write(bytes);
        self.failed |= written.is_err();
        written
    }

    /// Returns whether so many bytes more are kept in memory: the disk is not waited for.
    pub fn has_room(&self, length: usize) -> bool {
        length < (PAYLOAD_BYTES - self.first.len()) + (PAYLOAD_BYTES - self.rest.len())
    }

    /// Returns whether nothing more can be done with the entry.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Makes the entry visible, in place of an older one.
    ///
    /// # Errors
    /// Those of earlier writes, and the same ones.
    pub fn finish(mut self) -> Result<(), CacheError> {
        if self.failed {
            return Err(CacheError::TooLarge);
        }
        if self.blocks().numbers.is_empty() {
            self.take_block()?;
        }
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            self.write_block(&rest)?;
        }
        let head = self.head.encode();
        self.first[..head.len()].copy_from_slice(&head);
        let block = self.blocks().numbers[0];
        self.write_at(block, 0, &self.first)?;
        let cache = Arc::clone(&self.share.cache);
        let mut index = cache.lock();
        let blocks = self.blocks.take().expect("it is not finished");
        index.end(&self.share.module, count(&blocks));
        let gone = index.insert(Arc::new(Entry::new(self.head.clone(), self.head_bytes, self.number, blocks)));
        drop(index);
        gone.iter().for_each(|entry| cache.forget(entry));
        Ok(())
    }

    fn try_write(&mut self, bytes: &[u8]) -> Result<(), CacheError> {
        if self.failed {
            return Err(CacheError::TooLarge);
        }
        let into_first = bytes.len().min(PAYLOAD_BYTES - self.first.len());
        let (first, mut bytes) = bytes.split_at(into_first);
        self.first.extend_from_slice(first);
        self.head.size += first.len() as u64;
        while !bytes.is_empty() {
            let (part, after) = bytes.split_at(bytes.len().min(PAYLOAD_BYTES - self.rest.len()));
            self.rest.extend_from_slice(part);
            self.head.size += part.len() as u64;
            bytes = after;
            if self.rest.len() == PAYLOAD_BYTES {
                let rest = std::mem::take(&mut self.rest);
                self.write_block(&rest)?;
            }
        }
        Ok(())
    }

    /// Writes a block behind those that are there.
    fn write_block(&mut self, payload: &[u8]) -> Result<(), CacheError> {
        if self.blocks().numbers.is_empty() {
            self.take_block()?;
        }
        let index = count(self.blocks());
        let block = self.take_block()?;
        self.write_at(block, index, payload)
    }

    fn take_block(&mut self) -> Result<u32, CacheError> {
        let block = self.share.cache.take_block(&self.share.module)?;
        self.blocks.as_mut().expect("it is not finished").numbers.push(block);
        Ok(block)
    }

    fn write_at(&self, block: u32, index: u32, payload: &[u8]) -> Result<(), CacheError> {
        let written = self.share.cache.disk.write_at(place(block), &block::build(self.number, index, payload));
        written.map_err(|error| {
            self.share.cache.failed();
            CacheError::Disk(error)
        })
    }

    fn blocks(&self) -> &Blocks {
        self.blocks.as_ref().expect("it is not finished")
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // An entry that is there has them.
        if let Some(blocks) = &self.blocks {
            self.share.cache.lock().end(&self.share.module, count(blocks));
        }
    }
}

fn count(blocks: &Blocks) -> u32 {
    u32::try_from(blocks.numbers.len()).expect("a file has few blocks")
}
