// SPDX-License-Identifier: Apache-2.0
//! The installed filters, and the program's maps that follow them.
//!
//! A change first adds the keys that are new, then exchanges the set of tuples in one step, waits until no packet sees the
//! old one, then takes away the keys that nobody needs any more. So a packet that is wanted before and after a change is
//! wanted all through it, and when a step fails those before it are undone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::Filter;
use netserv_model::effect::FilterId;

use super::layout;
use super::program::Program;
use super::tuples::{COARSE_MASKS, Grain, Mask, Pattern, patterns};
use crate::{Change, DriverError, FilterTable, limits};

/// The maps that follow the filters: those of a program in the kernel, or others to look at.
pub trait Maps: Send + Sync {
    /// Adds a key of `filters`, which is not there.
    ///
    /// # Errors
    /// If there is no room for it.
    fn add_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError>;
    /// Removes a key of `filters`.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError>;
    /// Writes a word of `struct tuple_table`; who sees it sees all that was done before.
    fn store(&self, word: usize, value: u64);
    /// Waits until no packet is in the program that saw the table as it was before.
    ///
    /// # Errors
    /// If that cannot be known.
    fn wait(&self) -> Result<(), DriverError>;
}

impl Maps for Program {
    fn add_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError> {
        self.update("filters", key, &[1])
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
    maps: Arc<dyn Maps>,
    summary: Mutex<Summary>,
    state: Mutex<State>,
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

#[derive(Default)]
struct State {
    closed: bool,
    filters: BTreeMap<FilterId, Vec<Pattern>>,
    /// How many filters have each pattern.
    uses: HashMap<Pattern, usize>,
    /// The tuples in use: their place, and how many patterns they have.
    tuples: BTreeMap<Mask, Tuple>,
    /// Which of the two sets is in use.
    active: usize,
}

#[derive(Clone, Copy)]
struct Tuple {
    slot: u8,
    patterns: usize,
}

/// What a change comes down to.
struct Plan {
    removed: BTreeSet<FilterId>,
    added: BTreeMap<FilterId, Vec<Pattern>>,
    /// Places for masks that are new.
    slots: BTreeMap<Mask, u8>,
}

impl Table {
    /// Returns a table without filters.
    pub fn new<M: Maps + 'static>(maps: Arc<M>) -> Table {
        let summary = Summary { keys: vec![0; layout::SUMMARY_BITS] };
        Table { maps, summary: Mutex::new(summary), state: Mutex::default() }
    }

    /// Refuses changes from now on.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Returns how many tuples there are, which is what a look-up costs.
    pub fn tuples(&self) -> usize {
        self.lock().tuples.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the keys that the plan needs and that are not there; gives them back for undoing.
    fn add_keys(&self, state: &State, plan: &Plan) -> Result<BTreeSet<Pattern>, DriverError> {
        let mut added = BTreeSet::new();
        for pattern in plan.added.values().flatten() {
            if state.uses.contains_key(pattern) || !added.insert(*pattern) {
                continue;
            }
            if let Err(error) = self.add_key(&pattern.emit(slot_of(state, plan, pattern))) {
                added.remove(pattern);
                self.remove_keys(added.iter().map(|pattern| pattern.emit(slot_of(state, plan, pattern))));
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

    fn remove_keys(&self, keys: impl Iterator<Item = [u8; layout::KEY_BYTES]>) {
        for key in keys {
            self.summarize(&key, -1);
            // What stays costs a detour of packets that no filter matches, no more.
            if let Err(error) = self.maps.remove_key(&key) {
                tracing::warn!(%error, "a filter's key is left behind");
            }
        }
    }

    /// Counts a key that comes or goes in the summary.
    fn summarize(&self, key: &[u8; layout::KEY_BYTES], by: i32) {
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        let (word, bits) = summary.changed(layout::summary_bit(key), by);
        self.maps.store(word, bits);
    }

    /// Makes a set of tuples the one in use, for every packet at once; returns which of the two it is.
    fn exchange(&self, active: usize, tuples: &BTreeMap<Mask, Tuple>) -> Result<usize, DriverError> {
        let next = 1 - active;
        let number = |set: usize| u64::try_from(set).expect("usize fits in 64 bits");
        let start = layout::SETS_WORD + next * layout::SET_WORDS;
        let words = tuples.iter().flat_map(|(mask, tuple)| mask.emit(tuple.slot));
        for (word, value) in std::iter::once(number(tuples.len())).chain(words).enumerate() {
            self.maps.store(start + word, value);
        }
        self.maps.store(layout::ACTIVE_WORD, number(next));
        self.maps.wait().inspect_err(|_| self.maps.store(layout::ACTIVE_WORD, number(active)))?;
        Ok(next)
    }
}

impl FilterTable for Table {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        let mut state = self.lock();
        if state.closed {
            return Err(DriverError::Closed);
        }
        let plan = state.plan(changes)?;
        let added = self.add_keys(&state, &plan)?;
        let unneeded = state.unneeded(&plan);
        let tuples = state.tuples_after(&plan, &added, &unneeded);
        if !tuples.keys().eq(state.tuples.keys()) {
            match self.exchange(state.active, &tuples) {
                Ok(active) => state.active = active,
                Err(error) => {
                    self.remove_keys(added.iter().map(|pattern| pattern.emit(slot_of(&state, &plan, pattern))));
                    return Err(error);
                }
            }
        }
        self.remove_keys(unneeded.iter().map(|pattern| pattern.emit(slot_of(&state, &plan, pattern))));
        state.commit(plan, tuples);
        Ok(())
    }
}

impl State {
    /// Finds out what the changes come down to, and how coarse new filters have to be.
    fn plan(&self, changes: &[Change<'_>]) -> Result<Plan, DriverError> {
        let (mut removed, mut wanted) = (BTreeSet::new(), BTreeMap::new());
        for change in changes {
            match *change {
                Change::Install(id, filter) | Change::InstallClosed(id, filter) => {
                    let there = self.filters.contains_key(&id) && !removed.contains(&id);
                    if there || wanted.contains_key(&id) {
                        return Err(DriverError::FilterExists(id));
                    }
                    if self.filters.len() - removed.len() + wanted.len() >= limits::FILTERS_MAX {
                        return Err(DriverError::FiltersFull);
                    }
                    wanted.insert(id, filter);
                }
                Change::Remove(id) => {
                    if wanted.remove(&id).is_none() && !(self.filters.contains_key(&id) && removed.insert(id)) {
                        return Err(DriverError::FilterUnknown(id));
                    }
                }
            }
        }
        let mut slots = BTreeMap::new();
        let added = wanted.into_iter().map(|(id, filter)| (id, self.fit(filter, &mut slots))).collect();
        Ok(Plan { removed, added, slots })
    }

    /// Returns the finest patterns of a filter for whose masks there is a place.
    fn fit(&self, filter: &Filter, slots: &mut BTreeMap<Mask, u8>) -> Vec<Pattern> {
        for grain in Grain::ALL {
            let Some(patterns) = patterns(filter, grain) else { continue };
            let known =
                |mask: &Mask, slots: &BTreeMap<Mask, u8>| self.tuples.contains_key(mask) || slots.contains_key(mask);
            let new: BTreeSet<Mask> =
                patterns.iter().map(|pattern| pattern.mask).filter(|mask| !known(mask, slots)).collect();
            let fine = |masks: &mut dyn Iterator<Item = &Mask>| masks.filter(|mask| !mask.is_coarse()).count();
            let new_fine = fine(&mut new.iter());
            // Coarse masks are so few that their places can be kept for them.
            let places = limits::TUPLES_MAX - COARSE_MASKS;
            let is_full = new_fine > 0 && fine(&mut self.tuples.keys().chain(slots.keys())) + new_fine > places;
            if is_full || new.len() > limits::NEW_TUPLES_PER_FILTER_MAX {
                continue;
            }
            if grain != Grain::Exact {
                tracing::debug!(%filter, ?grain, "a filter is made coarser for lack of tuples");
            }
            for mask in new {
                let slot = self.free_slot(slots);
                slots.insert(mask, slot);
            }
            return patterns;
        }
        unreachable!("the last grain has one mask, for which a place is kept")
    }

    fn free_slot(&self, slots: &BTreeMap<Mask, u8>) -> u8 {
        let taken: BTreeSet<u8> = self.tuples.values().map(|tuple| tuple.slot).chain(slots.values().copied()).collect();
        (0..=u8::MAX).find(|slot| !taken.contains(slot)).expect("there are fewer tuples than numbers")
    }

    /// Returns the patterns that no filter has after the change.
    fn unneeded(&self, plan: &Plan) -> BTreeSet<Pattern> {
        let mut left: BTreeMap<Pattern, usize> = BTreeMap::new();
        for pattern in plan.removed.iter().flat_map(|id| &self.filters[id]) {
            *left.entry(*pattern).or_insert_with(|| self.uses[pattern]) -= 1;
        }
        for pattern in plan.added.values().flatten() {
            left.remove(pattern);
        }
        left.into_iter().filter(|(_, uses)| *uses == 0).map(|(pattern, _)| pattern).collect()
    }

    fn tuples_after(
        &self,
        plan: &Plan,
        added: &BTreeSet<Pattern>,
        unneeded: &BTreeSet<Pattern>,
    ) -> BTreeMap<Mask, Tuple> {
        let mut tuples = self.tuples.clone();
        for pattern in added {
            let tuple = tuples.entry(pattern.mask);
            tuple.or_insert_with(|| Tuple { slot: plan.slots[&pattern.mask], patterns: 0 }).patterns += 1;
        }
        for pattern in unneeded {
            let tuple = tuples.get_mut(&pattern.mask).expect("a pattern in use has a tuple");
            tuple.patterns -= 1;
        }
        tuples.retain(|_, tuple| tuple.patterns > 0);
        tuples
    }

    fn commit(&mut self, plan: Plan, tuples: BTreeMap<Mask, Tuple>) {
        for pattern in plan.removed.iter().filter_map(|id| self.filters.remove(id)).flatten() {
            let uses = self.uses.get_mut(&pattern).expect("a pattern of a filter is in use");
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(&pattern);
            }
        }
        for pattern in plan.added.values().flatten() {
            *self.uses.entry(*pattern).or_default() += 1;
        }
        self.filters.extend(plan.added);
        self.tuples = tuples;
    }
}

fn slot_of(state: &State, plan: &Plan, pattern: &Pattern) -> u8 {
    let known = state.tuples.get(&pattern.mask).map(|tuple| tuple.slot);
    known.unwrap_or_else(|| plan.slots[&pattern.mask])
}

#[cfg(test)]
mod tests;
