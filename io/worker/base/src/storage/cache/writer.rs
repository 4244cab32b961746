// SPDX-License-Identifier: Apache-2.0
//! The writer of an entry.

use std::sync::Arc;

use super::block::{Head, PAYLOAD_BYTES, REST};
use super::details::{About, Details};
use super::entry::{Entry, Rest};
use super::error::CacheError;
use super::file::Lent;
use super::fill::{Failure, Fill};
use super::joined::Joined;
use super::pool::Blocks;
use super::shares::Share;
use crate::storage::limits::{CACHE_KEY_BYTES_MAX, CACHE_WRITERS_MAX};

/// The writer of an entry. Dropping it forgets the entry, and who reads it fails.
pub struct Writer {
    share: Arc<Share>,
    fill: Arc<Fill>,
    /// Nothing before [`Writer::begin`].
    begun: Option<Begun>,
    /// Blocks of the first part, which are taken before those of the rest are, and blocks of the rest; nothing once the
    /// entry is there.
    blocks: Option<(Blocks, Blocks)>,
}

/// What is known of the entry.
struct Begun {
    head: Head,
    text_bytes: usize,
    meta: Vec<u8>,
    /// The bytes that the body is to have.
    promised: Option<u64>,
}

/// What who wants a key gets.
pub enum Opened {
    /// The entry, which is fresh. Whether it is on the disk is known by [`Share::is_there`].
    Entry(Arc<Entry>),
    /// Another one writes it.
    Joined(Joined),
    /// The caller writes it.
    Writer(Box<Writer>),
}

impl Share {
    /// Returns an entry that is fresh at `now` seconds since 1970, else a place among the readers of the one that is being
    /// written, else its writer.
    ///
    /// # Errors
    /// [`CacheError::Invalid`]; [`CacheError::Busy`] if the module writes as much as it may; [`CacheError::Crowded`] if the
    /// entry has as many readers as it may.
    pub fn open_or_join(self: &Arc<Share>, key: &str, now: u64) -> Result<Opened, CacheError> {
        check_key(key)?;
        let mut index = self.cache.lock();
        let fresh = index.find(&self.module, key, true).filter(|entry| entry.age(now) < entry.max_age());
        if let Some(entry) = fresh {
            return Ok(Opened::Entry(entry));
        }
        if let Some(fill) = index.fill(&self.module, key) {
            drop(index);
            return Ok(Opened::Joined(Joined::new(self, fill)?));
        }
        let fill = Arc::new(Fill::new(key, self.cache.number(), true));
        if !index.begin(&self.module, &fill, CACHE_WRITERS_MAX) {
            return Err(CacheError::Busy);
        }
        drop(index);
        Ok(Opened::Writer(Box::new(Writer::of(self, fill))))
    }

    /// Returns the writer of an entry, which is put in the place of the one that is there; others may join it.
    ///
    /// # Errors
    /// [`CacheError::Invalid`] and [`CacheError::Busy`].
    pub fn put(self: &Arc<Share>, key: &str) -> Result<Writer, CacheError> {
        self.writer(key, true)
    }

    fn writer(self: &Arc<Share>, key: &str, is_joinable: bool) -> Result<Writer, CacheError> {
        check_key(key)?;
        let fill = Arc::new(Fill::new(key, self.cache.number(), is_joinable));
        let is_begun = self.cache.lock().begin(&self.module, &fill, CACHE_WRITERS_MAX);
        is_begun.then(|| Writer::of(self, fill)).ok_or(CacheError::Busy)
    }
}

impl Writer {
    /// Begins an entry of a module's, as of `put_at` seconds since 1970, that nobody else sees before it is whole.
    ///
    /// # Errors
    /// [`CacheError::Invalid`] and [`CacheError::Busy`].
    pub fn alone(share: &Arc<Share>, key: &str, details: Details, put_at: u64) -> Result<Writer, CacheError> {
        let mut writer = share.writer(key, false)?;
        writer.begin(details, None, put_at)?;
        Ok(writer)
    }

    fn of(share: &Arc<Share>, fill: Arc<Fill>) -> Writer {
        let blocks = (Blocks::none(&share.cache.pool), Blocks::none(&share.cache.pool));
        Writer { share: Arc::clone(share), fill, begun: None, blocks: Some(blocks) }
    }

    /// Says what the entry is, as of `put_at` seconds since 1970, and how many bytes its body is to have. Nothing is
    /// written yet.
    ///
    /// # Errors
    /// [`CacheError::Invalid`], also if it was said before; [`CacheError::TooLarge`] if it is to be larger than the module's share.
    pub fn begin(&mut self, details: Details, promised: Option<u64>, put_at: u64) -> Result<(), CacheError> {
        if self.begun.is_some() || !details.is_valid() {
            return Err(CacheError::Invalid);
        }
        if promised.is_some_and(|promised| promised > self.share.bytes()) {
            return Err(CacheError::TooLarge);
        }
        let head = details.head(self.share.module.clone(), Arc::clone(self.fill.key()), put_at, self.fill.number());
        let (text_bytes, meta) = (head.encode().len(), details.meta.clone());
        let before = text_bytes + meta.len();
        self.begun = Some(Begun { head, text_bytes, meta, promised });
        let about = About { details, size: promised, put_at };
        self.fill.begin(about, before.next_multiple_of(PAYLOAD_BYTES) - before);
        Ok(())
    }

    /// Adds to the body.
    ///
    /// # Errors
    /// [`CacheError::Invalid`] before [`Writer::begin`] or for more than was promised, [`CacheError::TooLarge`] once the
    /// body is larger than the module's share, [`CacheError::Stalled`] if readers waited too long, and
    /// [`CacheError::Disk`]. Nothing can be done with the entry then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CacheError> {
        let written = self.try_write(bytes);
        self.note(written)
    }

    /// Returns whether so many bytes more are kept in memory: the disk is not waited for.
    pub fn has_room(&self, length: usize) -> bool {
        length < self.fill.room()
    }

    /// Gives the entry up unless somebody reads it or has joined. Returns whether it did.
    pub fn give_up(&self) -> bool {
        self.fill.give_up()
    }

    /// Returns whether nothing more can be done with the entry.
    pub fn has_failed(&self) -> bool {
        self.fill.failure().is_some()
    }

    /// Makes the entry visible, in place of an older one.
    ///
    /// # Errors
    /// Those of earlier writes, and the same ones.
    pub fn finish(mut self) -> Result<(), CacheError> {
        let finished = self.try_finish();
        self.note(finished)
    }

    /// Has those who read the entry know of an error.
    fn note(&self, done: Result<(), CacheError>) -> Result<(), CacheError> {
        let failure = match &done {
            Ok(()) => return done,
            Err(CacheError::TooLarge) => Failure::TooLarge,
            Err(CacheError::Invalid) => Failure::Invalid,
            Err(CacheError::Stalled) => Failure::Stalled,
            Err(CacheError::Abandoned | CacheError::Busy | CacheError::Crowded | CacheError::Cut) => Failure::Abandoned,
            Err(CacheError::Disk(_) | CacheError::Damaged) => Failure::Disk,
        };
        self.fill.end(Err(failure));
        done
    }

    fn try_write(&mut self, mut bytes: &[u8]) -> Result<(), CacheError> {
        if let Some(failure) = self.fill.failure() {
            return Err(failure.into());
        }
        let begun = self.begun.as_mut().ok_or(CacheError::Invalid)?;
        let size = begun.head.size + bytes.len() as u64;
        if begun.promised.is_some_and(|promised| size > promised) {
            return Err(CacheError::Invalid);
        }
        begun.head.size = size;
        while !bytes.is_empty() {
            let (taken, full) = self.fill.take(&self.share.cache.file, bytes);
            bytes = &bytes[taken..];
            if let Some(payload) = full {
                let block = self.write_rest(&payload.bytes, Some(&payload))?;
                self.fill.wrote(block);
            }
        }
        Ok(())
    }

    fn try_finish(&mut self) -> Result<(), CacheError> {
        if let Some(failure) = self.fill.failure() {
            return Err(failure.into());
        }
        self.take_first()?;
        let (inline, tail) = self.fill.ends();
        if !tail.is_empty() {
            self.write_rest(&tail, None)?;
        }
        let begun = self.begun.as_mut().ok_or(CacheError::Invalid)?;
        if begun.promised.is_some_and(|promised| begun.head.size != promised) {
            return Err(CacheError::Invalid);
        }
        begun.head.inline = u32::try_from(inline.len()).expect("it is less than a block");
        let bytes = [&begun.head.encode()[..], &begun.meta, &inline].concat();
        let (head, text_bytes) = (begun.head.clone(), begun.text_bytes);
        let (first, _) = self.blocks.as_ref().expect("it is not finished");
        write_first(&self.share, self.fill.number(), &first.numbers, &bytes)?;
        if self.fill.has_readers() {
            let payloads = (0..).zip(bytes.chunks(PAYLOAD_BYTES));
            let file = &self.share.cache.file;
            payloads.for_each(|(index, payload)| file.keep((self.fill.number(), index), file.lend(payload.to_vec())));
        }
        let (first, rest) = self.blocks.take().expect("it is not finished");
        let count = first.count() + rest.count();
        let entry = Entry::new(head, text_bytes, self.fill.number(), first, Rest::new(rest), true);
        let entry = Arc::new(entry.expect("it has the blocks that it takes"));
        let cache = &self.share.cache;
        let gone = cache.add(&entry, |index| {
            index.end(&self.share.module, &self.fill, count);
            // What was begun later stays: it was asked for later.
            let younger = index.find(&self.share.module, self.fill.key(), false);
            let is_late = younger.is_some_and(|younger| younger.head.rest_number > self.fill.number());
            (!is_late && !self.fill.is_purged()).then(|| index.insert(Arc::clone(&entry)))
        });
        cache.forget_all(&gone.unwrap_or_else(|| vec![Arc::clone(&entry)]));
        self.fill.end(Ok(entry));
        Ok(())
    }

    /// Writes a block of the rest behind those that are there, and returns which one it is.
    fn write_rest(&mut self, payload: &[u8], lent: Option<&Lent>) -> Result<u32, CacheError> {
        self.take_first()?;
        let block = self.share.cache.take_block(&self.share.module)?;
        let (_, rest) = self.blocks.as_mut().expect("it is not finished");
        let index = rest.count() | REST;
        rest.numbers.push(block);
        self.share.cache.write_block(block, self.fill.number(), index, payload)?;
        if self.fill.has_readers() {
            let lent = lent.map_or_else(|| self.share.cache.file.lend(payload.to_vec()), Lent::clone);
            self.share.cache.file.keep((self.fill.number(), index), lent);
        }
        Ok(block)
    }

    /// Takes the blocks of the first part, if there are none.
    fn take_first(&mut self) -> Result<(), CacheError> {
        let begun = self.begun.as_ref().ok_or(CacheError::Invalid)?;
        let (first, _) = self.blocks.as_mut().expect("it is not finished");
        // The start of the body fills up the last one of those that have the head.
        while first.numbers.len() < (begun.text_bytes + begun.meta.len()).div_ceil(PAYLOAD_BYTES) {
            first.numbers.push(self.share.cache.take_block(&self.share.module)?);
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // An entry that is there has them.
        if let Some((first, rest)) = &self.blocks {
            // First, so that who reads a block that is another's by now knows why.
            self.fill.end(Err(Failure::Abandoned));
            self.share.cache.lock().end(&self.share.module, &self.fill, first.count() + rest.count());
        }
    }
}

fn check_key(key: &str) -> Result<(), CacheError> {
    (1..=CACHE_KEY_BYTES_MAX).contains(&key.len()).then_some(()).ok_or(CacheError::Invalid)
}

/// Writes the first part of an entry, its head last.
pub(super) fn write_first(share: &Share, number: u64, blocks: &[u32], bytes: &[u8]) -> Result<(), CacheError> {
    for (index, (block, payload)) in blocks.iter().zip(bytes.chunks(PAYLOAD_BYTES)).enumerate().rev() {
        let index = u32::try_from(index).expect("a first part has few blocks");
        share.cache.write_block(*block, number, index, payload)?;
    }
    Ok(())
}
