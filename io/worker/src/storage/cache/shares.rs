// SPDX-License-Identifier: Apache-2.0
//! The cache's file with what is known of it, and each module's share of it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::ModuleName;
use netserv_model::limits::CACHE_FILE_BYTES_MAX;

use super::block::{self, FORGOTTEN_AT, NUMBER_MAX, place};
use super::entry::Entry;
use super::error::CacheError;
use super::index::Index;
use super::pool::Pool;
use super::scan::scan;
use crate::storage::Disk;
use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_FILE_BYTES_MIN};

/// The cache.
pub struct Cache {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) pool: Arc<Pool>,
    index: Mutex<Index>,
    next_number: AtomicU64,
    failures: AtomicU64,
}

impl Cache {
    /// Looks through a file for entries, which takes a read for each of its blocks, and opens it as a cache.
    ///
    /// # Errors
    /// It is too short to be of use.
    pub fn open(disk: impl Disk + 'static) -> Result<Arc<Cache>, CacheError> {
        if disk.len() < CACHE_FILE_BYTES_MIN {
            return Err(io::Error::other(format!("it has under {CACHE_FILE_BYTES_MIN} bytes")).into());
        }
        let count = u32::try_from(disk.len().min(CACHE_FILE_BYTES_MAX) / CACHE_BLOCK_BYTES as u64);
        let pool = Arc::new(Pool::new(count.expect("a file has few blocks")));
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let mut index = Index::new(pool.len());
        let (mut last, mut failures) = scan(&*disk, &pool, &mut index);
        if last >= NUMBER_MAX / 2 {
            // No file that was written here comes near it.
            (last, failures) = (0, failures + 1);
            index = Index::new(pool.len());
        }
        let [next_number, failures] = [last + 1, failures].map(AtomicU64::new);
        Ok(Arc::new(Cache { disk, pool, index: Mutex::new(index), next_number, failures }))
    }

    /// Returns a module's share, which is its own for as long as that is held. What it has goes on to its next version.
    pub fn share(self: &Arc<Cache>, module: &ModuleName) -> Share {
        self.lock().join(module);
        Share { cache: Arc::clone(self), module: module.clone() }
    }

    /// Returns how many times the file could not be read or written, or was damaged.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns a free block for a module, from what was least recently used if need be.
    pub(super) fn take_block(&self, module: &ModuleName) -> Result<u32, CacheError> {
        loop {
            let mut index = self.lock();
            let room = if index.is_over_share(module) { None } else { self.pool.take() };
            if let Some(block) = room {
                index.count(module, 1);
                return Ok(block);
            }
            let gone = index.evict_for(module).ok_or(CacheError::TooLarge)?;
            // Others use the index while the disk is written.
            drop(index);
            self.forget(&gone);
        }
    }

    /// Returns the number of a new part.
    pub(super) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes a block of a part.
    pub(super) fn write_block(&self, block: u32, number: u64, index: u32, payload: &[u8]) -> Result<(), CacheError> {
        let written = self.disk.write_at(place(block), &block::build(number, index, payload));
        written.map_err(|error| {
            self.failed();
            CacheError::Disk(error)
        })
    }

    /// Sees to it that an entry is not found again.
    pub(super) fn forget(&self, entry: &Entry) {
        if self.disk.write_at(place(entry.head_block()) + FORGOTTEN_AT as u64, &[1; 4]).is_err() {
            self.failed();
        }
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One module's part of the cache.
pub struct Share {
    pub(super) cache: Arc<Cache>,
    pub(super) module: ModuleName,
}

impl Share {
    /// Returns what is known of a key.
    pub fn stat(&self, key: &str) -> Option<Arc<Entry>> {
        self.find(key, false).filter(|entry| self.is_there(entry))
    }

    /// Returns an entry to be read, which makes it the most recently used one. It can be read to its end, whatever
    /// becomes of the key meanwhile.
    pub fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.find(key, true).filter(|entry| self.is_there(entry))
    }

    /// Returns an entry as [`Share::get`] or [`Share::stat`] does, without a look at the disk: [`Share::is_there`] has it.
    pub fn find(&self, key: &str, is_use: bool) -> Option<Arc<Entry>> {
        self.cache.lock().find(&self.module, key, is_use)
    }

    /// Returns whether the disk has an entry that was found; it is forgotten otherwise.
    pub fn is_there(&self, entry: &Entry) -> bool {
        let is_there = entry.is_sure()
            || entry.make_sure(&*self.cache.disk).unwrap_or_else(|_| {
                self.cache.failed();
                false
            });
        if !is_there {
            self.cache.lock().remove_one(entry);
        }
        is_there
    }

    /// Reads what the module keeps beside an entry's body.
    ///
    /// # Errors
    /// The disk failed or the entry is damaged; it is forgotten then.
    pub fn meta(&self, entry: &Entry) -> Result<Vec<u8>, CacheError> {
        self.or_forget(entry, entry.read_meta(&*self.cache.disk))
    }

    /// Forgets an entry. Returns whether it was there. After a power cut in the next moment it may be back.
    pub fn remove(&self, key: &str) -> bool {
        let gone = self.cache.lock().remove(&self.module, key);
        if let Some(entry) = &gone {
            self.cache.forget(entry);
        }
        gone.is_some()
    }

    /// Returns the bytes that the module's entries may take together, heads and all.
    pub fn bytes(&self) -> u64 {
        u64::from(self.cache.lock().share()) * CACHE_BLOCK_BYTES as u64
    }

    /// Returns how many times the file could not be read or written, or was damaged.
    pub fn failures(&self) -> u64 {
        self.cache.failures()
    }

    /// Reads a part of an entry's body, at most to the end of one block; nothing at its end.
    ///
    /// # Errors
    /// The disk failed or the entry is damaged; it is forgotten then.
    pub fn read(&self, entry: &Entry, offset: u64, max: usize) -> Result<Vec<u8>, CacheError> {
        self.or_forget(entry, entry.read(&*self.cache.disk, offset, max))
    }

    /// Forgets an entry that cannot be read.
    pub(super) fn or_forget<T>(&self, entry: &Entry, read: Result<T, CacheError>) -> Result<T, CacheError> {
        if read.is_err() {
            self.cache.failed();
            // Another one may have come in its place.
            let gone = self.cache.lock().remove_one(entry);
            if gone {
                self.cache.forget(entry);
            }
        }
        read
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.cache.lock().leave(&self.module);
    }
}
