// SPDX-License-Identifier: Apache-2.0
//! Kv state: what a module remembers beyond its own replacement.
//!
//! What is in memory counts. Where the node gives a file, changes are written to it a little later, on a thread of its
//! own ([`writer`](crate::storage::writer)), so that no packet waits for a disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netserv_model::manifest::ModuleLimits;
use netserv_model::{Instant, ModuleName};

use crate::error::HostError;
use crate::limits;
use crate::storage::StoreFile;
use crate::storage::journal::{Batch, Entries, StateId, cost_of};
use crate::storage::limits::{KV_CHANGES_MAX, KV_ENTRY_COST};
use crate::storage::writer::{Bell, Writer};

/// One module's state. Iteration is in byte order of the keys.
#[derive(Debug, Default)]
pub struct KvStore {
    entries: BTreeMap<Box<[u8]>, Entry>,
    bytes: u64,
    /// Nothing where there is no file.
    changes: Option<Changes>,
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
    fn kept(entries: Entries, account: &Arc<Account>, bell: &Arc<Bell>) -> KvStore {
        let bytes = entries.iter().map(|(key, value)| size(key, value)).sum();
        account.used.fetch_add(cost_of(&entries), Ordering::Relaxed);
        let changes = Changes { keys: vec![], all: false, account: Arc::clone(account), bell: Arc::clone(bell) };
        let unchanged = |(key, value)| (key, Entry { value, is_changed: false });
        KvStore { entries: entries.into_iter().map(unchanged).collect(), bytes, changes: Some(changes) }
    }

    /// Puts what changed since the last time into a batch, or everything.
    fn collect(&mut self, id: &StateId, whole: bool, batch: &mut Batch) {
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
struct Changes {
    keys: Vec<Box<[u8]>>,
    /// Whether more changed than was noted.
    all: bool,
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
}

/// What the modules of a user keep together.
#[derive(Debug)]
struct Account {
    limit: u64,
    used: AtomicU64,
    /// Whether somebody was refused, so that state that nobody uses has to go.
    is_short: AtomicBool,
}

impl Account {
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

/// One module's state, as its packet part and its server part share it.
#[derive(Clone, Debug, Default)]
pub struct SharedKv(Arc<Mutex<KvStore>>);

impl SharedKv {
    /// Returns the state, which nobody else uses meanwhile: let go of it before anything that waits.
    pub fn lock(&self) -> MutexGuard<'_, KvStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether nobody else has the state.
    fn is_left(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The state of all modules of the container, by name and schema version.
///
/// Without a file, state lasts for a while after its last module. With one, it lasts until others need the room.
#[derive(Debug, Default)]
pub struct KvStores {
    kept: Arc<Kept>,
    /// Whether the file was looked for.
    is_open: bool,
    file: Option<StoreFile>,
    writer: Option<Writer>,
}

/// What the thread that writes shares with the one that serves modules.
#[derive(Debug, Default)]
pub struct Kept {
    states: Mutex<States>,
}

#[derive(Debug, Default)]
struct States {
    states: BTreeMap<StateId, State>,
    /// States that are to be forgotten in the file too.
    forgotten: Vec<StateId>,
    /// Where there is a file.
    kept: Option<(Arc<Account>, Arc<Bell>)>,
}

impl States {
    /// Returns the states that nobody uses and that have to go: those without a file after a while, empty ones, those
    /// over the bound, and the one that was left first if the others are short of room.
    fn to_forget(&self, now: Instant, is_short: bool) -> Vec<StateId> {
        let since = |state: &State| state.left.filter(|left| *left <= now);
        let mut left: Vec<(Instant, &StateId, &State)> =
            self.states.iter().filter_map(|(id, state)| Some((since(state)?, id, state))).collect();
        left.sort_by_key(|(left, id, _)| (*left, *id));
        let is_over = |left: Instant, state: &State| match &self.kept {
            None => now.since(left) >= limits::KV_KEPT,
            Some(_) => state.store.lock().is_empty(),
        };
        let (over, left): (Vec<_>, Vec<_>) = left.into_iter().partition(|(left, _, state)| is_over(*left, state));
        let too_many = left.len().saturating_sub(limits::KV_KEPT_MAX).max(usize::from(is_short));
        over.iter().chain(left.iter().take(too_many)).map(|(_, id, _)| (*id).clone()).collect()
    }

    fn forget(&mut self, id: &StateId) {
        self.states.remove(id);
        if let Some((_, bell)) = &self.kept {
            self.forgotten.push(id.clone());
            bell.ring();
        }
    }
}

#[derive(Debug)]
struct State {
    store: SharedKv,
    left: Option<Instant>,
}

impl KvStores {
    /// Returns stores that keep what they hold in a file, from where also comes what earlier ones held. It is read when
    /// the first module comes.
    pub fn in_file(file: Option<StoreFile>) -> KvStores {
        KvStores { file, ..KvStores::default() }
    }

    /// Returns the state of a module, which all versions of the same schema share.
    pub fn open(&mut self, name: &ModuleName, schema: u32) -> SharedKv {
        if !std::mem::replace(&mut self.is_open, true)
            && let Some(file) = self.file.take()
        {
            self.writer = Some(Writer::start(file, Arc::clone(&self.kept), crate::clock::monotonic()));
        }
        self.kept.open((name.clone(), schema))
    }

    /// Forgets state that no module has used for a while, or whose room is needed. To be called after modules were
    /// unloaded, and at [`KvStores::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        let left = self.kept.handle_timeout(now);
        // A module that was unloaded may be followed by the worker's end.
        if let Some(writer) = self.writer.as_ref().filter(|_| left) {
            writer.hurry();
        }
    }

    /// Returns when state is next to be forgotten.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.kept.poll_timeout()
    }

    /// Has what changed written at once, without waiting for that.
    pub fn hurry(&self) {
        self.writer.iter().for_each(Writer::hurry);
    }

    /// Returns what there is to say about the file since the last time, for the log.
    pub fn take_reports(&self) -> Vec<String> {
        self.writer.as_ref().map(Writer::take_reports).unwrap_or_default()
    }

    /// Returns how many times the file could not be read or written.
    pub fn failures(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::failures)
    }

    /// Writes what is not in the file yet, and waits for that, at most so long.
    pub fn close(&mut self, at_most: Duration) {
        if let Some(writer) = self.writer.take() {
            writer.close(at_most);
        }
    }
}

impl Kept {
    /// Takes over what was in a file, and keeps what there is in one from here on. Returns how many states were left
    /// out, since those before them take what `usable` allows.
    pub fn keep(&self, found: Vec<(StateId, Entries)>, usable: u64, bell: &Arc<Bell>, now: Instant) -> usize {
        let account = Arc::new(Account { limit: usable, used: AtomicU64::new(0), is_short: AtomicBool::new(false) });
        let mut this = self.lock();
        // The modules of these states are about to be loaded, or gone.
        let (mut left, mut left_out) = (now + limits::KV_KEPT, 0);
        for (id, entries) in found {
            if account.used.load(Ordering::Relaxed) + cost_of(&entries) > usable {
                left_out += 1;
                continue;
            }
            let store = SharedKv(Arc::new(Mutex::new(KvStore::kept(entries, &account, bell))));
            this.states.insert(id, State { store, left: Some(left) });
            // In the order in which they were written.
            left = left + Duration::from_nanos(1);
        }
        this.kept = Some((account, Arc::clone(bell)));
        left_out
    }

    /// Returns the changes since the last time.
    pub fn collect(&self) -> Batch {
        let mut batch = Batch::default();
        let mut this = self.lock();
        for id in std::mem::take(&mut this.forgotten) {
            batch.state(&id);
            batch.forget();
        }
        for (id, state) in &this.states {
            state.store.lock().collect(id, false, &mut batch);
        }
        batch
    }

    /// Returns everything, state by state. What changes after a state was returned is among the next changes.
    pub fn collect_all(&self) -> impl Iterator<Item = Batch> {
        let ids: Vec<StateId> = {
            let mut this = self.lock();
            this.forgotten.clear();
            this.states.keys().cloned().collect()
        };
        ids.into_iter().filter_map(|id| {
            let mut batch = Batch::default();
            self.lock().states.get(&id)?.store.lock().collect(&id, true, &mut batch);
            Some(batch)
        })
    }

    fn open(&self, id: StateId) -> SharedKv {
        let mut this = self.lock();
        let States { states, kept, .. } = &mut *this;
        let state = states.entry(id).or_insert_with(|| {
            let store = kept.as_ref().map(|(account, bell)| KvStore::kept(Entries::new(), account, bell));
            State { store: SharedKv(Arc::new(Mutex::new(store.unwrap_or_default()))), left: None }
        });
        state.left = None;
        state.store.clone()
    }

    /// Returns whether a state was left since the last time.
    fn handle_timeout(&self, now: Instant) -> bool {
        let mut this = self.lock();
        let mut any_left = false;
        for state in this.states.values_mut().filter(|state| state.left.is_none() && state.store.is_left()) {
            state.left = Some(now);
            any_left = true;
        }
        let account = this.kept.as_ref().map(|(account, _)| account);
        let is_short = account.is_some_and(|account| account.is_short.swap(false, Ordering::Relaxed));
        for id in this.to_forget(now, is_short) {
            this.forget(&id);
        }
        any_left
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let this = self.lock();
        let mut left = this.states.values().filter_map(|state| state.left);
        match &this.kept {
            None => left.min().map(|left| left + limits::KV_KEPT),
            Some((account, _)) => left.find(|_| account.is_short.load(Ordering::Relaxed)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Returns what an entry takes of what the user's modules may keep together.
pub(crate) fn cost(key: &[u8], value: &[u8]) -> u64 {
    size(key, value) + KV_ENTRY_COST
}

#[cfg(test)]
mod tests;
