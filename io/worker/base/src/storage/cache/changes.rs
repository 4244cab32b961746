// SPDX-License-Identifier: Apache-2.0
//! What becomes of entries that are there: other details, lists, and purges.

use std::sync::Arc;

use super::block::PAYLOAD_BYTES;
use super::details::{Details, is_tag};
use super::entry::Entry;
use super::error::CacheError;
use super::index::Index;
use super::pool::Blocks;
use super::scope::Scope;
use super::shares::Share;
use super::writer::write_first;
use crate::storage::limits::{CACHE_KEY_BYTES_MAX, CACHE_LISTED_MAX, CACHE_PURGE_STEP};

impl Share {
    /// Says something else of an entry, whose body stays as it is, and whose age begins again at `now` seconds since 1970.
    /// Returns whether it was there.
    ///
    /// # Errors
    /// [`CacheError::Invalid`]; [`CacheError::TooLarge`] if there is no block for it; those of the disk.
    pub fn update(&self, key: &str, details: &Details, now: u64) -> Result<bool, CacheError> {
        match self.stat(key) {
            Some(old) => self.update_read(&old, details, now),
            None if details.is_valid() => Ok(false),
            None => Err(CacheError::Invalid),
        }
    }

    /// Does what [`Share::update`] does, unless another entry, or another revision of it, has come in the place of `old`.
    ///
    /// # Errors
    /// Those of [`Share::update`].
    pub fn update_read(&self, old: &Arc<Entry>, details: &Details, now: u64) -> Result<bool, CacheError> {
        if !details.is_valid() {
            return Err(CacheError::Invalid);
        }
        if self.stat(old.key()).is_none_or(|current| current.number() != old.number()) {
            return Ok(false);
        }
        let inline = self.or_forget(old, old.read_inline(&self.cache.file))?;
        let number = self.cache.number();
        let mut head = details.head(self.module.clone(), Arc::clone(old.key()), now, old.head.rest_number);
        (head.size, head.inline) = (old.head.size, old.head.inline);
        head.revision = old.head.revision.wrapping_add(1);
        let mut bytes = head.encode();
        let text_bytes = bytes.len();
        bytes.extend_from_slice(&details.meta);
        bytes.extend_from_slice(&inline);
        let mut blocks = Blocks::none(&self.cache.pool);
        let written = self.write_revision(number, &mut blocks, &bytes);
        let count = blocks.count();
        let rest = old.rest.clone();
        let entry = Entry::new(head, text_bytes, number, blocks, rest, true).map(Arc::new);
        let uncount = |index: &mut Index| index.uncount(&self.module, count);
        let entry = match (written, entry) {
            (Ok(()), Some(entry)) => entry,
            (written, _) => {
                uncount(&mut self.cache.lock());
                return Err(written.err().unwrap_or(CacheError::Damaged));
            }
        };
        let gone = self.cache.add(&entry, |index| {
            uncount(index);
            index.revise(old, Arc::clone(&entry))
        });
        match gone {
            Some(gone) => {
                self.cache.forget_all(&gone);
                self.cache.forget_revised(old);
                Ok(true)
            }
            // While it was written, another one came, which may have the same rest.
            None => {
                self.cache.forget_revised(&entry);
                Ok(false)
            }
        }
    }

    fn write_revision(&self, number: u64, blocks: &mut Blocks, bytes: &[u8]) -> Result<(), CacheError> {
        for _ in 0..bytes.len().div_ceil(PAYLOAD_BYTES) {
            blocks.numbers.push(self.cache.take_block(&self.module)?);
        }
        write_first(self, number, &blocks.numbers, bytes)
    }

    /// Returns up to `max` entries, at most [`CACHE_LISTED_MAX`], whose keys begin with `prefix`, in byte order, from
    /// behind `after` on. There are no more only if there is none.
    ///
    /// # Errors
    /// [`CacheError::Invalid`] if one of the texts is longer than keys are.
    pub fn list(&self, prefix: &str, after: Option<&str>, max: u32) -> Result<Vec<Arc<Entry>>, CacheError> {
        if [Some(prefix), after].into_iter().flatten().any(|text| text.len() > CACHE_KEY_BYTES_MAX) {
            return Err(CacheError::Invalid);
        }
        let max = max.min(CACHE_LISTED_MAX) as usize;
        let mut after = after.map(Arc::from);
        loop {
            let mut listed = self.cache.lock().list(&self.module, prefix, after.as_deref(), max);
            let Some(last) = listed.last().map(|entry| Arc::clone(entry.key())) else { return Ok(listed) };
            listed.retain(|entry| self.is_there(entry));
            if !listed.is_empty() {
                return Ok(listed);
            }
            after = Some(last);
        }
    }

    /// Begins to forget all entries of a scope. Those that are being written are not kept once they were read.
    ///
    /// # Errors
    /// [`CacheError::Invalid`], and [`CacheError::Busy`] while the module purges something else.
    pub fn purge(self: &Arc<Share>, scope: Scope) -> Result<Purge, CacheError> {
        let is_valid = match &scope {
            Scope::Prefix(prefix) => prefix.len() <= CACHE_KEY_BYTES_MAX,
            Scope::Tag(tag) => is_tag(tag),
        };
        if !is_valid {
            return Err(CacheError::Invalid);
        }
        if !self.cache.lock().begin_purge(&self.module, &scope) {
            return Err(CacheError::Busy);
        }
        Ok(Purge { share: Arc::clone(self), scope, after: None, gone: 0, is_done: false })
    }
}

/// A purge that goes on step by step. What is put behind the place where it is may stay. Dropping it ends it.
pub struct Purge {
    share: Arc<Share>,
    scope: Scope,
    after: Option<Arc<str>>,
    gone: u64,
    is_done: bool,
}

impl Purge {
    /// Looks at the next [`CACHE_PURGE_STEP`] entries. Returns whether there may be more.
    pub fn step(&mut self) -> bool {
        let share = &self.share;
        let (gone, last) =
            share.cache.lock().purge(&share.module, &self.scope, self.after.as_deref(), CACHE_PURGE_STEP);
        share.cache.forget_all(&gone);
        self.gone += gone.len() as u64;
        self.is_done = last.is_none();
        self.after = last;
        !self.is_done
    }

    /// Returns how many entries it forgot.
    pub fn gone(&self) -> u64 {
        self.gone
    }
}

impl Drop for Purge {
    fn drop(&mut self) {
        self.share.cache.lock().end_purge(&self.share.module);
    }
}
