// SPDX-License-Identifier: Apache-2.0
//! The states of all modules, as those who use them and the thread that writes them share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netserv_model::Instant;

use super::bell::Bell;
use super::store::{Account, KvStore};
use crate::limits;
use crate::storage::journal::{Entries, StateId, WriteBatch, cost_of};

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

/// What the thread that writes shares with the one that serves modules.
#[derive(Debug, Default)]
pub struct Kept {
    states: Mutex<States>,
}

#[derive(Debug, Default)]
pub(super) struct States {
    pub(super) states: BTreeMap<StateId, State>,
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
pub(super) struct State {
    store: SharedKv,
    left: Option<Instant>,
}

impl Kept {
    /// Takes over what was in a file, and keeps what there is in one from here on. Returns how many states were left
    /// out, since those before them take what `usable` allows.
    pub fn keep(&self, found: Vec<(StateId, Entries)>, usable: u64, bell: &Arc<Bell>, now: Instant) -> usize {
        let account = Arc::new(Account::new(usable));
        let mut this = self.lock();
        // The modules of these states are about to be loaded, or gone.
        let (mut left, mut left_out) = (now + limits::KV_KEPT, 0);
        for (id, entries) in found {
            if !account.has_room(cost_of(&entries)) {
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
    pub fn collect(&self) -> WriteBatch {
        let mut batch = WriteBatch::default();
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
    pub fn collect_all(&self) -> impl Iterator<Item = WriteBatch> {
        let ids: Vec<StateId> = {
            let mut this = self.lock();
            this.forgotten.clear();
            this.states.keys().cloned().collect()
        };
        ids.into_iter().filter_map(|id| {
            let mut batch = WriteBatch::default();
            self.lock().states.get(&id)?.store.lock().collect(&id, true, &mut batch);
            Some(batch)
        })
    }

    pub(super) fn open(&self, id: StateId) -> SharedKv {
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
    pub(super) fn handle_timeout(&self, now: Instant) -> bool {
        let mut this = self.lock();
        let mut any_left = false;
        for state in this.states.values_mut().filter(|state| state.left.is_none() && state.store.is_left()) {
            state.left = Some(now);
            any_left = true;
        }
        let account = this.kept.as_ref().map(|(account, _)| account);
        let is_short = account.is_some_and(|account| account.take_short());
        for id in this.to_forget(now, is_short) {
            this.forget(&id);
        }
        any_left
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let this = self.lock();
        let mut left = this.states.values().filter_map(|state| state.left);
        match &this.kept {
            None => left.min().map(|left| left + limits::KV_KEPT),
            Some((account, _)) => left.find(|_| account.is_short()),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
