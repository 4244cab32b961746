// SPDX-License-Identifier: Apache-2.0
//! An entry, and the blocks that it has for as long as somebody reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::block::{HEADER_BYTES, Head, Header, PAYLOAD_BYTES, place};
use super::details::{About, Details};
use super::error::CacheError;
use super::file::{BlockFile, Lent, Spot, rest_spot};
use super::pool::Blocks;
use crate::storage::Disk;

/// An entry of the cache.
#[derive(Debug)]
pub struct Entry {
    pub(super) head: Head,
    /// Bytes of the head before `meta`.
    text_bytes: usize,
    /// The number of the first part.
    pub(super) number: u64,
    first: Blocks,
    pub(super) rest: Rest,
    /// Whether its head was seen on the disk.
    is_sure: AtomicBool,
    /// Whether its blocks were given back although somebody reads it.
    is_cut: AtomicBool,
}

/// The rest of a body, which the entry's next revision has, too. Of most entries there is none.
#[derive(Clone, Debug)]
pub(super) struct Rest(Option<Arc<RestBlocks>>);

#[derive(Debug)]
struct RestBlocks {
    blocks: Blocks,
    /// How many entries have them.
    entries: AtomicU32,
}

impl Rest {
    /// Returns these blocks.
    pub(super) fn new(blocks: Blocks) -> Rest {
        let blocks = Some(blocks).filter(|blocks| !blocks.numbers.is_empty());
        Rest(blocks.map(|blocks| Arc::new(RestBlocks { blocks, entries: AtomicU32::new(0) })))
    }

    /// Returns their numbers.
    pub(super) fn numbers(&self) -> &[u32] {
        self.0.as_ref().map_or(&[], |rest| &rest.blocks.numbers)
    }

    fn count(&self) -> u32 {
        self.0.as_ref().map_or(0, |rest| rest.blocks.count())
    }

    /// Returns how many entries have them.
    fn entries(&self) -> u32 {
        self.0.as_ref().map_or(0, |rest| rest.entries.load(Ordering::Relaxed))
    }

    fn join(&self) {
        if let Some(rest) = &self.0 {
            rest.entries.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn leave(&self) {
        if let Some(rest) = &self.0
            && rest.entries.fetch_sub(1, Ordering::AcqRel) == 1
        {
            rest.blocks.give_back();
        }
    }
}

impl Entry {
    /// Returns an entry; nothing if it has not as many blocks as its head says.
    pub(super) fn new(
        head: Head,
        text_bytes: usize,
        number: u64,
        first: Blocks,
        rest: Rest,
        is_sure: bool,
    ) -> Option<Entry> {
        let (first_count, rest_count) = block_counts(&head, text_bytes)?;
        let is_whole = (first.numbers.len(), rest.numbers().len()) == (first_count, rest_count);
        let [is_sure, is_cut] = [is_sure, false].map(AtomicBool::new);
        is_whole.then(|| {
            rest.join();
            Entry { head, text_bytes, number, first, rest, is_sure, is_cut }
        })
    }

    /// Returns the key.
    pub fn key(&self) -> &Arc<str> {
        &self.head.key
    }

    /// Returns a number that no other entry, and no other revision of this one, has in this process.
    pub fn number(&self) -> u64 {
        self.number
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

    /// Returns whether it is known to be on the disk.
    pub fn is_sure(&self) -> bool {
        self.is_sure.load(Ordering::Relaxed)
    }

    pub(super) fn first_blocks(&self) -> &[u32] {
        &self.first.numbers
    }

    pub(super) fn head_block(&self) -> u32 {
        self.first.numbers[0]
    }

    pub(super) fn block_count(&self) -> u32 {
        self.first.count() + self.rest.count()
    }

    /// Returns what it takes in memory beside the numbers of its blocks.
    pub(super) fn cost(&self) -> u64 {
        self.head.cost()
    }

    /// Returns whether anybody but the caller has it, or reads the rest of its body in another revision.
    pub(super) fn is_read(self: &Arc<Entry>) -> bool {
        Arc::strong_count(self) > 1 || self.rest.entries() > 1
    }

    /// Has `gone` count its blocks until they are nobody's; not those of the rest of its body if another revision may have it.
    pub(super) fn count_as_gone(&self, gone: &Arc<AtomicU32>, is_revised: bool) {
        self.first.count_as_gone(gone);
        if let Some(rest) = self.rest.0.as_ref().filter(|_| !is_revised) {
            rest.blocks.count_as_gone(gone);
        }
    }

    /// Gives its blocks back, whoever reads it.
    pub(super) fn cut(&self) {
        if !self.is_cut.swap(true, Ordering::AcqRel) {
            self.first.give_back();
            self.rest.leave();
        }
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
    pub(super) fn read_meta(&self, file: &BlockFile) -> Result<Vec<u8>, CacheError> {
        let mut meta = Vec::new();
        while meta.len() < self.head.meta_bytes as usize {
            let left = self.head.meta_bytes as usize - meta.len();
            let spot = self.first_spot(self.text_bytes + meta.len(), left)?;
            meta.extend_from_slice(&self.read_spot(file, spot)?.bytes);
        }
        Ok(meta)
    }

    /// Returns what the module keeps beside the body, if that is in memory.
    pub(super) fn find_meta(&self, file: &BlockFile) -> Option<Vec<u8>> {
        let mut meta = Vec::new();
        while meta.len() < self.head.meta_bytes as usize {
            let left = self.head.meta_bytes as usize - meta.len();
            let spot = self.first_spot(self.text_bytes + meta.len(), left).ok()?;
            meta.extend_from_slice(&file.find(spot)?.bytes);
        }
        Some(meta)
    }

    /// Reads the start of the body that is in the first part.
    pub(super) fn read_inline(&self, file: &BlockFile) -> Result<Vec<u8>, CacheError> {
        let mut bytes = Vec::new();
        while bytes.len() < self.head.inline as usize {
            let lent = self.read(file, bytes.len() as u64, self.head.inline as usize - bytes.len())?;
            bytes.extend_from_slice(&lent.bytes);
        }
        Ok(bytes)
    }

    /// Reads some of the body, at most to the end of a block; nothing at its end.
    pub(super) fn read(&self, file: &BlockFile, offset: u64, max: usize) -> Result<Lent, CacheError> {
        match self.spot(offset, max)? {
            Some(spot) => self.read_spot(file, spot),
            None => Ok(Lent::default()),
        }
    }

    fn read_spot(&self, file: &BlockFile, spot: Spot) -> Result<Lent, CacheError> {
        let is_cut = || self.is_cut.load(Ordering::Acquire);
        if is_cut() {
            return Err(CacheError::Cut);
        }
        // Once it is cut, what is there is another's.
        file.read(spot).map_err(|error| if is_cut() { CacheError::Cut } else { error })
    }

    /// Returns some of the body as [`Entry::read`] does, if it is in memory.
    pub(super) fn find(&self, file: &BlockFile, offset: u64, max: usize) -> Option<Lent> {
        file.find(self.spot(offset, max).ok()??)
    }

    /// Returns where some of the body is; nothing at its end.
    fn spot(&self, offset: u64, max: usize) -> Result<Option<Spot>, CacheError> {
        let left = self.head.size.saturating_sub(offset);
        let max = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        if max == 0 {
            return Ok(None);
        }
        let inline = u64::from(self.head.inline);
        match offset.checked_sub(inline) {
            Some(at) => {
                let block = |index| self.rest.numbers().get(index).copied();
                rest_spot(block, self.head.rest_number, at, max).map(Some)
            }
            None => {
                let at = usize::try_from(offset).map_err(|_| CacheError::Damaged)?;
                let left = self.head.inline as usize - at;
                self.first_spot(self.text_bytes + self.head.meta_bytes as usize + at, max.min(left)).map(Some)
            }
        }
    }

    fn first_spot(&self, at: usize, max: usize) -> Result<Spot, CacheError> {
        let index = at / PAYLOAD_BYTES;
        let block = *self.first.numbers.get(index).ok_or(CacheError::Damaged)?;
        let index = u32::try_from(index).map_err(|_| CacheError::Damaged)?;
        Ok(Spot { block, part: (self.number, index), from: at % PAYLOAD_BYTES, max })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Returns how many blocks an entry's first part has, and how many the rest of its body; nothing if these are no numbers.
pub(super) fn block_counts(head: &Head, text_bytes: usize) -> Option<(usize, usize)> {
    let first = text_bytes.checked_add(head.meta_bytes as usize)?.checked_add(head.inline as usize)?;
    let rest = head.size.checked_sub(u64::from(head.inline))?.div_ceil(PAYLOAD_BYTES as u64);
    Some((first.div_ceil(PAYLOAD_BYTES), usize::try_from(rest).ok()?))
}
