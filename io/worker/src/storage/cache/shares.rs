// SPDX-License-Identifier: Apache-2.0
//! The cache's file with what is known of it, and each module's share of it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::ModuleName;
use netserv_model::limits::CACHE_FILE_BYTES_MAX;

use super::block::{self, FORGOTTEN_AT, HEADER_BYTES, Head, Header, NUMBER_MAX, place};
use super::entry::{Blocks, Entry, Pool, blocks_of};
use super::error::CacheError;
use super::index::Index;
use crate::storage::Disk;
use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_FILE_BYTES_MIN};

/// The cache.
pub struct Cache {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) pool: Arc<Pool>,
    index: Mutex<Index>,
    pub(super) next_number: AtomicU64,
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
        let (last, failures) = scan(&disk, &pool, &mut index);
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
    /// Returns what is known of a key, without a look at the disk.
    pub fn stat(&self, key: &str) -> Option<Arc<Entry>> {
        self.cache.lock().find(&self.module, key, false)
    }

    /// Returns an entry to be read, which makes it the most recently used one. It can be read to its end, whatever
    /// becomes of the key meanwhile. The disk is not looked at.
    pub fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.cache.lock().find(&self.module, key, true)
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
        let read = entry.read(&*self.cache.disk, offset, max);
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

/// Finds the entries of a file. Returns the highest number of one that it saw, and how many reads failed.
fn scan(disk: &Arc<dyn Disk>, pool: &Arc<Pool>, index: &mut Index) -> (u64, u64) {
    // Room for all at once, since a vector that grows takes up to three times as much. What is not used costs nothing.
    let mut headers = Vec::with_capacity(pool.len() as usize);
    let (mut last, mut failures) = (0, 0);
    for block in 0..pool.len() {
        let mut bytes = [0; HEADER_BYTES];
        match disk.read_at(place(block), &mut bytes) {
            Ok(()) => {
                let Some(header) = Header::parse(&bytes) else { continue };
                last = last.max(header.number);
                // Without its head, an entry is none.
                if header.index > 0 || !header.is_forgotten {
                    headers.push((header.number, header.index, block));
                }
            }
            Err(_) => failures += 1,
        }
    }
    if last >= NUMBER_MAX / 2 {
        // No file that was written here comes near it.
        return (0, failures + 1);
    }
    headers.sort_unstable();
    // Of two blocks that claim the same place, the first one is as good.
    headers.dedup_by_key(|(number, index, _)| (*number, *index));
    for group in headers.chunk_by(|one, other| one.0 == other.0) {
        let is_whole = group.iter().zip(0..).all(|((_, at, _), place)| *at == place);
        if !is_whole {
            continue;
        }
        let blocks: Vec<u32> = group.iter().map(|(_, _, block)| *block).collect();
        let head = read_head(&**disk, blocks[0], group[0].0);
        if let Some((head, head_bytes)) = head
            && blocks_of(head.size, head_bytes) == Some(blocks.len())
        {
            pool.claim(&blocks);
            let blocks = Blocks::new(blocks, Arc::clone(pool));
            index.insert(Arc::new(Entry::new(head, head_bytes, group[0].0, blocks)));
        }
    }
    (last, failures)
}

fn read_head(disk: &dyn Disk, block: u32, number: u64) -> Option<(Head, usize)> {
    let mut bytes = vec![0; CACHE_BLOCK_BYTES];
    disk.read_at(place(block), &mut bytes).ok()?;
    Head::parse(block::payload(&bytes, number, 0)?)
}
