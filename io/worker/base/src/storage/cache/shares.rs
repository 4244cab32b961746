// SPDX-License-Identifier: Apache-2.0
//! The cache's file with what is known of it, and each module's share of it.

use std::io;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use netserv_model::ModuleName;
use netserv_model::limits::CACHE_FILE_BYTES_MAX;

use super::block::{self, FORGOTTEN_AT, NUMBER_MAX, place};
use super::catalog::{self, Catalog, CatalogError, Records};
use super::entry::Entry;
use super::error::CacheError;
use super::file::{BlockFile, Lent};
use super::index::Index;
use super::pool::{Blocks, Pool};
use super::scan::scan;
use crate::compute::Budget;
use crate::storage::Disk;
use crate::storage::limits::{
    CACHE_BLOCK_BYTES, CACHE_CATALOG_STEP, CACHE_CONTAINER_BYTES, CACHE_FILE_BYTES_MIN, CACHE_INDEX_BYTES_MIN,
    CACHE_INDEX_MEMORY_SHARE,
};

/// The cache.
pub struct Cache {
    pub(super) file: BlockFile,
    pub(super) pool: Arc<Pool>,
    /// Nothing if the file is small. Lock order: this before the index.
    catalog: Mutex<Option<Catalog>>,
    /// Its blocks.
    _own: Blocks,
    index: Mutex<Index>,
    next_number: AtomicU64,
    failures: AtomicU64,
}

impl Cache {
    /// Opens a file as a cache, of which little is in memory: as in a container of [`CACHE_CONTAINER_BYTES`].
    ///
    /// # Errors
    /// As [`Cache::open_within`].
    pub fn open(disk: impl Disk + 'static) -> Result<Arc<Cache>, CacheError> {
        Cache::open_within(disk, CACHE_CONTAINER_BYTES)
    }

    /// Opens a file as a cache, in a container of `memory_bytes`. What it has is in its catalog; without a sound one all of its
    /// blocks are looked at, which takes a read for each.
    ///
    /// # Errors
    /// It is too short to be of use.
    pub fn open_within(disk: impl Disk + 'static, memory_bytes: u64) -> Result<Arc<Cache>, CacheError> {
        if disk.len() < CACHE_FILE_BYTES_MIN {
            return Err(io::Error::other(format!("it has under {CACHE_FILE_BYTES_MIN} bytes")).into());
        }
        let count = u32::try_from(disk.len().min(CACHE_FILE_BYTES_MAX) / CACHE_BLOCK_BYTES as u64);
        let pool = Arc::new(Pool::new(count.expect("a file has few blocks")));
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let own = Blocks::at_begin(catalog::blocks_of(pool.len()), &pool);
        let index_bytes = (memory_bytes / CACHE_INDEX_MEMORY_SHARE).max(CACHE_INDEX_BYTES_MIN);
        let empty = || Index::new(pool.len() - own.count(), index_bytes);
        let mut catalog = Catalog::new(&disk, pool.len());
        let (index, next, failures) = restore(&*disk, &pool, catalog.as_mut(), empty);
        let [next_number, failures] = [next, failures].map(AtomicU64::new);
        let (file, catalog, index) = (BlockFile::new(disk, memory_bytes), Mutex::new(catalog), Mutex::new(index));
        Ok(Arc::new(Cache { file, pool, catalog, _own: own, index, next_number, failures }))
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

    /// Returns a free block for a module, from what was least recently used if need be, or else from what is gone for long and still
    /// read.
    pub(super) fn take_block(&self, module: &ModuleName) -> Result<u32, CacheError> {
        loop {
            let mut index = self.lock();
            let room = if index.is_over_share(module) { None } else { self.pool.take() };
            if let Some(block) = room {
                index.count(module, 1);
                return Ok(block);
            }
            let gone = index.evict_for(module);
            if gone.is_none() && index.cut_for(module, Instant::now()) {
                continue;
            }
            let gone = gone.or_else(|| index.evict_any_for(module)).ok_or(CacheError::TooLarge)?;
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
        let written = self.file.disk.write_at(place(block), &block::build(number, index, payload));
        written.map_err(|error| {
            self.failed();
            CacheError::Disk(error)
        })
    }

    /// Puts an entry into the index, and writes down that it came. Returns what `insert` does: those that are gone, or nothing if
    /// the entry is not to be there, which leaves the one with its key as it is.
    pub(super) fn add(
        &self,
        entry: &Entry,
        insert: impl FnOnce(&mut Index) -> Option<Vec<Arc<Entry>>>,
    ) -> Option<Vec<Arc<Entry>>> {
        // That it went is written down behind this, whoever removes it meanwhile.
        let mut catalog = self.lock_catalog();
        let gone = insert(&mut self.lock());
        if gone.is_some() {
            let mut records = Records::default();
            records.came(entry);
            self.write_down(&mut catalog, &records);
        }
        gone
    }

    /// Writes changes down, and all of it anew if there is no room for them.
    fn write_down(&self, catalog: &mut Option<Catalog>, records: &Records) {
        let Some(catalog) = catalog else { return };
        let mut written = catalog.append(records);
        if written == Err(CatalogError::Full) {
            written = self.checkpoint(catalog).and_then(|()| catalog.append(records));
        }
        if written.is_err() {
            self.failed();
        }
    }

    /// Writes all entries down anew. Others use the index meanwhile, but none comes.
    pub(super) fn checkpoint(&self, catalog: &mut Catalog) -> Result<(), CatalogError> {
        let mut walk = self.lock().walk();
        let page = || self.lock().page(&mut walk, CACHE_CATALOG_STEP);
        catalog.rewrite(page, self.next_number.load(Ordering::Relaxed))
    }

    pub(super) fn lock_catalog(&self) -> MutexGuard<'_, Option<Catalog>> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that entries are not found again.
    pub(super) fn forget_all(&self, entries: &[Arc<Entry>]) {
        let mut records = Records::default();
        for entry in entries {
            self.mark_forgotten(entry);
            records.went(entry);
        }
        if entries.is_empty() {
            return;
        }
        self.write_down(&mut self.lock_catalog(), &records);
        let (mut index, now) = (self.lock(), Instant::now());
        entries.iter().for_each(|entry| index.note_gone(entry, false, now));
    }

    /// Sees to it that an entry is not found again.
    pub(super) fn forget(&self, entry: &Arc<Entry>) {
        self.forget_all(slice::from_ref(entry));
    }

    /// Sees to it that a revision is not found again, of whose rest another one may be there.
    pub(super) fn forget_revised(&self, entry: &Arc<Entry>) {
        self.mark_forgotten(entry);
        let mut records = Records::default();
        records.went(entry);
        self.write_down(&mut self.lock_catalog(), &records);
        self.lock().note_gone(entry, true, Instant::now());
    }

    fn mark_forgotten(&self, entry: &Entry) {
        if self.file.disk.write_at(place(entry.head_block()) + FORGOTTEN_AT as u64, &[1; 4]).is_err() {
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

/// Returns what a file has, with a number that no part has, and how many failures there were.
fn restore(
    disk: &dyn Disk,
    pool: &Arc<Pool>,
    mut catalog: Option<&mut Catalog>,
    empty: impl Fn() -> Index,
) -> (Index, u64, u64) {
    let mut index = empty();
    if let Some(catalog) = &mut catalog
        && let Ok(next) = catalog.load(pool, &mut index)
    {
        let mut walk = index.walk();
        // Parts that this start does not write down have numbers, too.
        let noted = catalog.note(next, || index.page(&mut walk, CACHE_CATALOG_STEP));
        return (index, next, u64::from(noted.is_err()));
    }
    // What it has of a damaged catalog is nobody's again.
    drop(index);
    let mut index = empty();
    let (mut last, failed) = scan(disk, pool, &mut index);
    let mut failures = failed + u64::from(catalog.as_ref().is_some_and(|catalog| catalog.was_there()));
    if last >= NUMBER_MAX / 2 {
        // No file that was written here comes near it.
        (index, last, failures) = (empty(), 0, failures + 1);
    }
    if let Some(catalog) = catalog {
        let mut walk = index.walk();
        // Without it, the next start looks at all blocks, too.
        let _ = catalog.rewrite(|| index.page(&mut walk, CACHE_CATALOG_STEP), last + 1);
    }
    (index, last + 1, failures)
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
    /// becomes of the key meanwhile, but for one whose blocks others need when it is gone for a minute.
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
            || entry.make_sure(&*self.cache.file.disk).unwrap_or_else(|_| {
                self.cache.failed();
                false
            });
        if !is_there {
            let gone = self.cache.lock().remove_one(entry);
            if gone.is_some() {
                // The next start would have it again, with blocks that are another's by then.
                let mut records = Records::default();
                records.went(entry);
                self.cache.write_down(&mut self.cache.lock_catalog(), &records);
            }
        }
        is_there
    }

    /// Reads what the module keeps beside an entry's body.
    ///
    /// # Errors
    /// The disk failed or the entry is damaged; it is forgotten then.
    pub fn meta(&self, entry: &Entry) -> Result<Vec<u8>, CacheError> {
        self.or_forget(entry, entry.read_meta(&self.cache.file))
    }

    /// Forgets an entry. Returns whether it was there. One that is being written is read to its end by who joined, and not kept.
    /// After a power cut in the next moment it may be back.
    pub fn remove(&self, key: &str) -> bool {
        let mut index = self.cache.lock();
        index.fills_of(&self.module, key).for_each(|fill| fill.forget());
        let gone = index.remove(&self.module, key);
        drop(index);
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

    /// Returns what blocks in memory may take, for tests.
    pub fn memory(&self) -> &Budget {
        self.cache.file.memory.budget()
    }

    /// Reads a part of an entry's body, at most to the end of one block; nothing at its end.
    ///
    /// # Errors
    /// The disk failed or the entry is damaged; it is forgotten then.
    pub fn read(&self, entry: &Entry, offset: u64, max: usize) -> Result<Lent, CacheError> {
        self.or_forget(entry, entry.read(&self.cache.file, offset, max))
    }

    /// Returns a part of an entry's body as [`Share::read`] does, if it is in memory.
    pub fn find_bytes(&self, entry: &Entry, offset: u64, max: usize) -> Option<Lent> {
        entry.find(&self.cache.file, offset, max)
    }

    /// Returns what the module keeps beside an entry's body, if that is known to be there and in memory.
    pub fn find_meta(&self, entry: &Entry) -> Option<Vec<u8>> {
        if entry.is_sure() { entry.find_meta(&self.cache.file) } else { None }
    }

    /// Forgets an entry that cannot be read.
    pub(super) fn or_forget<T>(&self, entry: &Entry, read: Result<T, CacheError>) -> Result<T, CacheError> {
        if read.as_ref().is_err_and(|error| !matches!(error, CacheError::Cut)) {
            self.cache.failed();
            // Another one may have come in its place.
            let gone = self.cache.lock().remove_one(entry);
            if let Some(entry) = gone {
                self.cache.forget(&entry);
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
