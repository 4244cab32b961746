// SPDX-License-Identifier: Apache-2.0
//! The installed filters, and the program's maps that follow them.
//!
//! What a change adds goes into the maps at once: first the keys, then the tuples, each into a place of its own where it
//! stays. What nobody needs any more leaves them later, when no packet is in the program that may have looked for what
//! came in its stead before that was there. So a packet that is wanted before and after a change, or several, is wanted
//! all through them, and no change waits for packets.

mod state;

use std::collections::BTreeSet;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_plane::{Change, DriverError, FilterTable};

use super::layout;
use super::program::Program;
use super::tuples::{Mask, Pattern};
use crate::limits;
use state::{Plan, State};

/// The maps that follow the filters: those of a program in the kernel, or others to look at.
pub trait Maps: Send + Sync {
    /// Adds a key of `filters`, which is not there.
    ///
    /// # Errors
    /// If there is no room for it.
    fn add_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError>;
    /// Says of a key of `filters` whether a module that fails closed wants its packets.
    ///
    /// # Errors
    /// If that cannot be said.
    fn set_closed(&self, key: &[u8; layout::KEY_BYTES], is_closed: bool) -> Result<(), DriverError>;
    /// Removes a key of `filters`.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError>;
    /// Writes a word of `struct tuple_table`; who sees it sees all that was done before.
    fn store(&self, word: usize, value: u64);
    /// Waits until no packet is in the program that saw the maps as they were before.
    ///
    /// # Errors
    /// If that cannot be known.
    fn wait(&self) -> Result<(), DriverError>;
}

impl Maps for Program {
    fn add_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError> {
        self.update("filters", key, &[layout::WANTED])
    }

    fn set_closed(&self, key: &[u8; layout::KEY_BYTES], is_closed: bool) -> Result<(), DriverError> {
        self.update("filters", key, &[if is_closed { layout::WANTED_CLOSED } else { layout::WANTED }])
    }

    fn remove_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError> {
        self.delete("filters", key)
    }

    fn store(&self, word: usize, value: u64) {
        Program::store(self, word, value);
    }

    fn wait(&self) -> Result<(), DriverError> {
        Program::wait(self)
    }
}

/// The filters of one driver.
pub(super) struct Table {
    shared: Arc<Shared>,
    /// Has a thread take away what leaves; `None` if each change does it itself.
    leaver: Option<SyncSender<()>>,
}

/// What the table's users have in common with the thread that takes away.
struct Shared {
    maps: Arc<dyn Maps>,
    summary: Mutex<Summary>,
    state: Mutex<State>,
    /// Held by who takes away. Comes before `state`.
    clearing: Mutex<()>,
}

/// How many keys have each bit of the summary.
struct Summary {
    keys: Vec<u32>,
}

impl Summary {
    /// Returns the word with a bit, and its number, after one key more or less has the bit.
    fn changed(&mut self, bit: usize, by: i32) -> (usize, u64) {
        self.keys[bit] = self.keys[bit].checked_add_signed(by).expect("a key that goes was there");
        let word = bit / 64;
        let bits = self.keys[64 * word..64 * word + 64].iter().rev();
        (layout::SUMMARY_WORD + word, bits.fold(0, |bits, keys| bits << 1 | u64::from(*keys > 0)))
    }
}

impl Table {
    /// Returns a table without filters, from which a thread takes away what leaves.
    pub fn new<M: Maps + 'static>(maps: Arc<M>) -> Result<Table, DriverError> {
        let mut table = Table::without_thread(maps);
        // More than one word to say so is not needed.
        let (leaver, left) = sync_channel(1);
        let shared = Arc::clone(&table.shared);
        let take_away = move || left.iter().for_each(|()| shared.clear_or_warn());
        let thread = std::thread::Builder::new().name("filters-leave".to_owned()).spawn(take_away);
        thread.map_err(|error| DriverError::system("starting a thread for filters", error))?;
        table.leaver = Some(leaver);
        Ok(table)
    }

    /// Returns a table without filters. Its changes wait for packets when something leaves.
    pub fn without_thread<M: Maps + 'static>(maps: Arc<M>) -> Table {
        let summary = Mutex::new(Summary { keys: vec![0; layout::SUMMARY_BITS] });
        let shared = Shared { maps, summary, state: Mutex::default(), clearing: Mutex::default() };
        Table { shared: Arc::new(shared), leaver: None }
    }

    /// Refuses changes from now on.
    pub fn close(&self) {
        self.shared.lock().closed = true;
    }

    /// Returns how many tuples there are, which is what a look-up costs.
    pub fn tuples(&self) -> usize {
        self.shared.lock().tuples.len()
    }

    /// Returns whether nothing is left to be taken away.
    pub fn is_settled(&self) -> bool {
        let state = self.shared.lock();
        state.leaving.is_empty() && state.awaited.is_empty()
    }
}

impl FilterTable for Table {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        if !self.shared.change(changes, false)? {
            self.shared.clear()?;
            self.shared.change(changes, true)?;
        }
        match &self.leaver {
            _ if self.shared.lock().leaving.is_empty() => {}
            // If one word waits, the thread will see all that leaves; it ends after us.
            Some(leaver) => drop(leaver.try_send(())),
            None => self.shared.clear_or_warn(),
        }
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes changes; returns false, and has done nothing, if there would be more room without what leaves. The last
    /// attempt makes do with what there is.
    fn change(&self, changes: &[Change<'_>], is_last: bool) -> Result<bool, DriverError> {
        let mut state = self.lock();
        if state.closed {
            return Err(DriverError::Closed);
        }
        let plan = state.plan(changes)?;
        let leaving = state.leaving.len() + state.awaited.len();
        let is_crowded = !plan.added.is_empty() && leaving > limits::LEAVING_PATTERNS_MAX;
        if !is_last && (is_crowded || plan.cramped && leaving > 0) {
            return Ok(false);
        }
        let added = match self.add_keys(&state, &plan) {
            Err(_) if !is_last && leaving > 0 => return Ok(false),
            added => added?,
        };
        for (mask, slot) in &plan.slots {
            self.place(*slot, mask);
        }
        for (pattern, is_closed) in state.commit(plan, &added) {
            let Some(slot) = state.slot_in_maps(&pattern) else { continue };
            if let Err(error) = self.maps.set_closed(&pattern.emit(slot), is_closed) {
                tracing::warn!(%error, is_closed, "packets that the driver cannot take go on as if it were otherwise");
            }
        }
        self.maps.store(layout::COUNT_WORD, state.places());
        Ok(true)
    }

    /// Adds the keys that the plan needs and that are not there, and returns them; adds none if one cannot be.
    fn add_keys(&self, state: &State, plan: &Plan) -> Result<BTreeSet<Pattern>, DriverError> {
        let mut added = BTreeSet::new();
        for pattern in plan.added.values().flat_map(|fitted| &fitted.patterns) {
            if state.is_there(pattern) || !added.insert(*pattern) {
                continue;
            }
            if let Err(error) = self.add_key(&pattern.emit(state.slot_of(plan, pattern))) {
                added.remove(pattern);
                added.iter().for_each(|pattern| self.remove_key(&pattern.emit(state.slot_of(plan, pattern))));
                return Err(error);
            }
        }
        Ok(added)
    }

    fn add_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError> {
        self.maps.add_key(key)?;
        self.summarize(key, 1);
        Ok(())
    }

    fn remove_key(&self, key: &[u8; layout::KEY_BYTES]) {
        self.summarize(key, -1);
        // What stays costs a detour of packets that no filter matches, no more.
        if let Err(error) = self.maps.remove_key(key) {
            tracing::warn!(%error, "a filter's key is left behind");
        }
    }

    /// Counts a key that comes or goes in the summary.
    fn summarize(&self, key: &[u8; layout::KEY_BYTES], by: i32) {
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        let (word, bits) = summary.changed(layout::summary_bit(key), by);
        self.maps.store(word, bits);
    }

    /// Writes a tuple to a free place. A packet on its way may see it half written, and then takes it for what it is not:
    /// for that it has to be wanted by a key, and is one packet more.
    fn place(&self, slot: u8, mask: &Mask) {
        for (word, value) in (tuple_word(slot)..).zip(mask.emit(slot)) {
            self.maps.store(word, value);
        }
    }

    /// Takes away what leaves, when no packet is in the program any more that may need it.
    fn clear(&self) -> Result<(), DriverError> {
        let _clearing = self.clearing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let leaving = std::mem::take(&mut state.leaving);
        state.awaited.extend(leaving);
        let is_done = state.awaited.is_empty();
        drop(state);
        if is_done {
            return Ok(());
        }
        self.maps.wait()?;
        while self.take_away(limits::LEAVING_BATCH_PATTERNS) {}
        Ok(())
    }

    fn clear_or_warn(&self) {
        if let Err(error) = self.clear() {
            tracing::warn!(%error, "filters that are gone still lead packets here, which pass");
        }
    }

    /// Takes away so many of the patterns that were waited for; returns whether there are more.
    fn take_away(&self, at_most: usize) -> bool {
        let mut state = self.lock();
        for _ in 0..at_most {
            let Some(pattern) = state.awaited.pop_first() else { break };
            let tuple = state.tuples.get_mut(&pattern.mask).expect("a pattern in the maps has a tuple");
            let slot = tuple.slot;
            tuple.patterns -= 1;
            if tuple.patterns == 0 {
                self.maps.store(tuple_word(slot) + layout::NEEDS_WORD, layout::needs_word(layout::NEEDS_IMPOSSIBLE));
                state.tuples.remove(&pattern.mask);
            }
            self.remove_key(&pattern.emit(slot));
        }
        self.maps.store(layout::COUNT_WORD, state.places());
        !state.awaited.is_empty()
    }
}

/// Returns where a place starts among the words of `struct tuple_table`.
fn tuple_word(slot: u8) -> usize {
    layout::TUPLES_WORD + usize::from(slot) * layout::TUPLE_WORDS
}

#[cfg(test)]
mod tests;
