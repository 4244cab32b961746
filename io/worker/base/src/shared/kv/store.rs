// SPDX-License-Identifier: Apache-2.0
//! One module's state in memory, and what of it is not in a file yet.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use netserv_model::manifest::ModuleLimits;

use super::bell::Bell;
use crate::error::HostError;
use crate::limits;
use crate::storage::journal::{Entries, StateId, WriteBatch, cost, cost_of};
use crate::storage::limits::KV_CHANGES_MAX;

/// One module's state. Iteration is in byte order of the keys.
#[derive(Debug, Default)]
pub struct KvStore {
    entries: BTreeMap<Box<[u8]>, Entry>,
    bytes: u64,
    /// Nothing where there is no file.
    pub(super) changes: Option<Changes>,
}

#[derive(Debug)]
struct Entry {
    value: Box<[u8]>,
    /// Whether its key is among the changes.
    is_changed: bool,
}

impl KvStore {
    /// Returns the value of a key.
    pub fn value(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(|entry| &*entry.value)
    }

    /// Stores a value.
    ///
    /// # Errors
    /// An empty or long key, a long value, more entries or bytes than `quota` allows, or more than the user's modules
    /// may keep together; the store is as before then.
    pub fn set(&mut self, key: &[u8], value: &[u8], quota: &ModuleLimits) -> Result<(), HostError> {
        check_key(key)?;
        if value.len() > limits::KV_VALUE_BYTES_MAX {
            return Err(HostError::TooLarge);
        }
        let full = self.entries.len() >= quota.kv_entries as usize;
        match self.entries.get_mut(key) {
            Some(entry) => {
                if entry.value.len() == value.len() {
                    entry.value.copy_from_slice(value);
                } else {
                    let after = self.bytes - entry.value.len() as u64 + value.len() as u64;
                    check_bytes(self.bytes, after, quota)?;
                    charge(self.changes.as_ref(), entry.value.len() as u64, value.len() as u64)?;
                    entry.value = value.into();
                    self.bytes = after;
                }
                if let Some(changes) = &mut self.changes
                    && !std::mem::replace(&mut entry.is_changed, true)
                {
                    changes.note(key.into());
                }
            }
            None => {
                if full {
                    return Err(HostError::Quota);
                }
                let after = self.bytes + size(key, value);
                check_bytes(self.bytes, after, quota)?;
                charge(self.changes.as_ref(), 0, cost(key, value))?;
                if let Some(changes) = &mut self.changes {
                    changes.note(key.into());
                }
                let entry = Entry { value: value.into(), is_changed: self.changes.is_some() };
                self.entries.insert(key.into(), entry);
                self.bytes = after;
            }
        }
        Ok(())
    }

    /// Forgets a key.
    ///
    /// # Errors
    /// There is no such key.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), HostError> {
        let (key, entry) = self.entries.remove_entry(key).ok_or(HostError::NotFound)?;
        self.bytes -= size(&key, &entry.value);
        if let Some(changes) = &mut self.changes {
            changes.account.give_back(cost(&key, &entry.value));
            if !entry.is_changed {
                changes.note(key);
            }
        }
        Ok(())
    }

    /// Adds to an entry of eight little-endian bytes, wrapping; one that is not there counts as 0. Returns the sum.
    ///
    /// # Errors
    /// An entry of another length, and as [`KvStore::set`].
    pub fn increment(&mut self, key: &[u8], delta: i64, quota: &ModuleLimits) -> Result<i64, HostError> {
        let before = match self.value(key) {
            None => 0,
            Some(value) => i64::from_le_bytes(value.try_into().map_err(|_| HostError::Invalid)?),
        };
        let sum = before.wrapping_add(delta);
        self.set(key, &sum.to_le_bytes(), quota)?;
        Ok(sum)
    }

    /// Stores `new`, or forgets the key, if its value is `old`. Returns whether it was.
    ///
    /// # Errors
    /// As [`KvStore::set`].
    pub fn compare_and_set(
        &mut self,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        quota: &ModuleLimits,
    ) -> Result<bool, HostError> {
        check_key(key)?;
        if self.value(key) != old {
            return Ok(false);
        }
        match new {
            Some(new) => self.set(key, new, quota)?,
            // One that is not there is forgotten already.
            None => drop(self.delete(key)),
        }
        Ok(true)
    }

    /// Returns all entries in byte order of the keys.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, entry)| (&**key, &*entry.value))
    }

    /// Puts others in the place of all entries. Returns those that were there.
    ///
    /// # Errors
    /// Those of [`KvStore::set`]; the store is as before then.
    pub fn replace(&mut self, entries: Entries, quota: &ModuleLimits) -> Result<Entries, HostError> {
        let bytes = entries.iter().map(|(key, value)| size(key, value)).sum::<u64>();
        for (key, value) in &entries {
            check_key(key)?;
            if value.len() > limits::KV_VALUE_BYTES_MAX {
                return Err(HostError::TooLarge);
            }
        }
        if entries.len() > quota.kv_entries as usize || bytes > quota.kv_bytes {
            return Err(HostError::Quota);
        }
        self.exchange(entries, bytes)
    }

    /// Puts back what [`KvStore::replace`] returned.
    ///
    /// # Errors
    /// Others have taken the room; the store is as before then.
    pub fn put_back(&mut self, entries: Entries) -> Result<(), HostError> {
        let bytes = entries.iter().map(|(key, value)| size(key, value)).sum();
        self.exchange(entries, bytes).map(drop)
    }

    fn exchange(&mut self, entries: Entries, bytes: u64) -> Result<Entries, HostError> {
        let before = self.entries().map(|(key, value)| cost(key, value)).sum();
        charge(self.changes.as_ref(), before, cost_of(&entries))?;
        let is_changed = self.changes.is_some();
        let entries = entries.into_iter().map(|(key, value)| (key, Entry { value, is_changed })).collect();
        let old = std::mem::replace(&mut self.entries, entries);
        self.bytes = bytes;
        if let Some(changes) = &mut self.changes {
            changes.note_all();
        }
        Ok(old.into_iter().map(|(key, entry)| (key, entry.value)).collect())
    }

    /// Returns the first key after `key`; the first of all after the empty key.
    pub fn next(&self, key: &[u8]) -> Option<&[u8]> {
        self.keys(key).next()
    }

    /// Returns the keys after `after` in byte order.
    pub fn keys(&self, after: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.entries.range::<[u8], _>((Bound::Excluded(after), Bound::Unbounded)).map(|(key, _)| &**key)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Builds a state whose changes are noted for a file.
    pub(super) fn kept(entries: Entries, account: &Arc<Account>, bell: &Arc<Bell>) -> KvStore {
        let bytes = entries.iter().map(|(key, value)| size(key, value)).sum();
        account.used.fetch_add(cost_of(&entries), Ordering::Relaxed);
        let changes = Changes { keys: vec![], all: false, account: Arc::clone(account), bell: Arc::clone(bell) };
        let unchanged = |(key, value)| (key, Entry { value, is_changed: false });
        KvStore { entries: entries.into_iter().map(unchanged).collect(), bytes, changes: Some(changes) }
    }

    /// Puts what changed since the last time into a batch, or everything.
    pub(super) fn collect(&mut self, id: &StateId, whole: bool, batch: &mut WriteBatch) {
        let Some(changes) = &mut self.changes else { return };
        let (keys, all) = (std::mem::take(&mut changes.keys), std::mem::take(&mut changes.all));
        if whole || all {
            batch.state(id);
            if !whole {
                batch.forget();
            }
            for (key, entry) in &mut self.entries {
                entry.is_changed = false;
                batch.set(key, &entry.value);
            }
            return;
        }
        for key in &keys {
            batch.state(id);
            match self.entries.get_mut(key) {
                Some(entry) => {
                    entry.is_changed = false;
                    batch.set(key, &entry.value);
                }
                None => batch.delete(key),
            }
        }
    }
}

impl Drop for KvStore {
    fn drop(&mut self) {
        if let Some(changes) = &self.changes {
            changes.account.give_back(self.entries.iter().map(|(key, entry)| cost(key, &entry.value)).sum());
        }
    }
}

/// What is not in the file yet.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) keys: Vec<Box<[u8]>>,
    /// Whether more changed than was noted.
    pub(super) all: bool,
    account: Arc<Account>,
    bell: Arc<Bell>,
}

impl Changes {
    fn note(&mut self, key: Box<[u8]>) {
        if self.keys.len() < KV_CHANGES_MAX {
            self.keys.push(key);
        } else {
            self.all = true;
        }
        if self.keys.len() == 1 {
            self.bell.ring();
        }
    }

    fn note_all(&mut self) {
        self.keys.clear();
        self.all = true;
        self.bell.ring();
    }
}

/// What the modules of a user keep together.
#[derive(Debug)]
pub(super) struct Account {
    limit: u64,
    used: AtomicU64,
    /// Whether somebody was refused, so that state that nobody uses has to go.
    is_short: AtomicBool,
}

impl Account {
    /// Returns the account of modules that keep nothing.
    pub(super) fn new(limit: u64) -> Account {
        Account { limit, used: AtomicU64::new(0), is_short: AtomicBool::new(false) }
    }

    /// Returns whether there is room for so much.
    pub(super) fn has_room(&self, cost: u64) -> bool {
        self.used.load(Ordering::Relaxed) + cost <= self.limit
    }

    /// Returns whether somebody was refused.
    pub(super) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Returns whether somebody was refused since the last time.
    pub(super) fn take_short(&self) -> bool {
        self.is_short.swap(false, Ordering::Relaxed)
    }

    fn take(&self, cost: u64) -> Result<(), HostError> {
        if self.used.fetch_add(cost, Ordering::Relaxed) + cost > self.limit {
            self.give_back(cost);
            self.is_short.store(true, Ordering::Relaxed);
            return Err(HostError::Quota);
        }
        Ok(())
    }

    fn give_back(&self, cost: u64) {
        self.used.fetch_sub(cost, Ordering::Relaxed);
    }
}

fn check_key(key: &[u8]) -> Result<(), HostError> {
    match key.len() {
        0 => Err(HostError::Invalid),
        1..=limits::KV_KEY_BYTES_MAX => Ok(()),
        _ => Err(HostError::TooLarge),
    }
}

fn check_bytes(before: u64, after: u64, quota: &ModuleLimits) -> Result<(), HostError> {
    if after > quota.kv_bytes && after > before { Err(HostError::Quota) } else { Ok(()) }
}

/// Has the user's account follow a change of what an entry costs.
fn charge(changes: Option<&Changes>, before: u64, after: u64) -> Result<(), HostError> {
    let Some(Changes { account, .. }) = changes else { return Ok(()) };
    if after > before {
        account.take(after - before)
    } else {
        account.give_back(before - after);
        Ok(())
    }
}

fn size(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64
}
