// SPDX-License-Identifier: Apache-2.0
//! Which filters there are, and what the maps hold for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Change, DriverError};

use crate::limits;
use crate::tuples::{COARSE_MASKS, Grain, Mask, Pattern, patterns};

#[derive(Default)]
pub(super) struct State {
    pub closed: bool,
    filters: BTreeMap<FilterId, Fitted>,
    /// How many filters have each pattern.
    uses: HashMap<Pattern, usize>,
    /// How many of them are of modules that fail closed.
    closed_uses: HashMap<Pattern, usize>,
    /// The tuples in the maps: their place, and how many patterns they have there.
    pub tuples: BTreeMap<Mask, Tuple>,
    /// Patterns in the maps that no filter has any more.
    pub leaving: BTreeSet<Pattern>,
    /// Those among them that are waited for, or were before.
    pub awaited: BTreeSet<Pattern>,
}

/// A filter as it stands in the maps.
pub(super) struct Fitted {
    pub patterns: Vec<Pattern>,
    /// Its module fails closed.
    pub is_closed: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Tuple {
    pub slot: u8,
    pub patterns: usize,
}

/// What a change comes down to.
pub(super) struct Plan {
    removed: BTreeSet<FilterId>,
    pub added: BTreeMap<FilterId, Fitted>,
    /// Places for masks that are new.
    pub slots: BTreeMap<Mask, u8>,
    /// Some filter is coarser than it would be with more places.
    pub cramped: bool,
}

impl State {
    /// Finds out what the changes come down to, and how coarse new filters have to be.
    pub fn plan(&self, changes: &[Change<'_>]) -> Result<Plan, DriverError> {
        let (mut removed, mut wanted) = (BTreeSet::new(), BTreeMap::new());
        for change in changes {
            match *change {
                Change::Install(id, filter) | Change::InstallClosed(id, filter) => {
                    let is_closed = matches!(change, Change::InstallClosed(..));
                    let there = self.filters.contains_key(&id) && !removed.contains(&id);
                    if there || wanted.contains_key(&id) {
                        return Err(DriverError::FilterExists(id));
                    }
                    if self.filters.len() - removed.len() + wanted.len() >= limits::FILTERS_MAX {
                        return Err(DriverError::FiltersFull);
                    }
                    wanted.insert(id, (filter, is_closed));
                }
                Change::Remove(id) => {
                    if wanted.remove(&id).is_none() && !(self.filters.contains_key(&id) && removed.insert(id)) {
                        return Err(DriverError::FilterUnknown(id));
                    }
                }
            }
        }
        let mut plan = Plan { removed, added: BTreeMap::new(), slots: BTreeMap::new(), cramped: false };
        for (id, (filter, is_closed)) in wanted {
            let patterns = self.fit(filter, &mut plan);
            plan.added.insert(id, Fitted { patterns, is_closed });
        }
        Ok(plan)
    }

    /// Returns the finest patterns of a filter for whose masks there is a place.
    fn fit(&self, filter: &Filter, plan: &mut Plan) -> Vec<Pattern> {
        let slots = &mut plan.slots;
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
            plan.cramped |= is_full;
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

    /// Returns whether a pattern is in the maps, needed or not.
    pub fn is_there(&self, pattern: &Pattern) -> bool {
        self.uses.contains_key(pattern) || self.leaving.contains(pattern) || self.awaited.contains(pattern)
    }

    /// Returns the number of places up to the last one that is taken.
    pub fn places(&self) -> u64 {
        self.tuples.values().map(|tuple| u64::from(tuple.slot) + 1).max().unwrap_or(0)
    }

    /// Takes note of a change whose keys and tuples are in the maps. Returns of which patterns it is another than before whether a
    /// module that fails closed wants them.
    pub fn commit(&mut self, plan: Plan, added: &BTreeSet<Pattern>) -> BTreeMap<Pattern, bool> {
        let mut before: BTreeMap<Pattern, bool> = BTreeMap::new();
        for pattern in added {
            let tuple = self.tuples.entry(pattern.mask);
            tuple.or_insert_with(|| Tuple { slot: plan.slots[&pattern.mask], patterns: 0 }).patterns += 1;
        }
        for fitted in plan.added.values().filter(|fitted| fitted.is_closed) {
            for pattern in &fitted.patterns {
                let uses = self.closed_uses.entry(*pattern).or_default();
                before.entry(*pattern).or_insert(*uses > 0);
                *uses += 1;
            }
        }
        for pattern in plan.added.values().flat_map(|fitted| &fitted.patterns) {
            *self.uses.entry(*pattern).or_default() += 1;
            self.leaving.remove(pattern);
            self.awaited.remove(pattern);
        }
        let removed: Vec<Fitted> = plan.removed.iter().filter_map(|id| self.filters.remove(id)).collect();
        for pattern in removed.iter().filter(|fitted| fitted.is_closed).flat_map(|fitted| &fitted.patterns) {
            let uses = self.closed_uses.get_mut(pattern).expect("a pattern of a filter is in use");
            before.entry(*pattern).or_insert(true);
            *uses -= 1;
            if *uses == 0 {
                self.closed_uses.remove(pattern);
            }
        }
        for pattern in removed.into_iter().flat_map(|fitted| fitted.patterns) {
            let uses = self.uses.get_mut(&pattern).expect("a pattern of a filter is in use");
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(&pattern);
                self.leaving.insert(pattern);
            }
        }
        self.filters.extend(plan.added);
        let is_closed = |pattern: &Pattern| self.closed_uses.contains_key(pattern);
        before
            .into_iter()
            .filter(|(pattern, was)| is_closed(pattern) != *was)
            .map(|(pattern, was)| (pattern, !was))
            .collect()
    }

    /// Returns the place of a tuple in the maps.
    pub fn slot_in_maps(&self, pattern: &Pattern) -> Option<u8> {
        self.tuples.get(&pattern.mask).map(|tuple| tuple.slot)
    }

    /// Returns the place of a pattern's tuple, now or after a change.
    pub fn slot_of(&self, plan: &Plan, pattern: &Pattern) -> u8 {
        let known = self.tuples.get(&pattern.mask).map(|tuple| tuple.slot);
        known.unwrap_or_else(|| plan.slots[&pattern.mask])
    }
}
