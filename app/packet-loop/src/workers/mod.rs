// SPDX-License-Identifier: Apache-2.0
//! The workers, by numbers that packets can carry, and which of them have something to do.

mod ring_end;
mod rings;
mod seen;
mod slot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ipnet::IpNet;
use netserv_model::effect::{EffectId, ModuleSlot};
use netserv_model::{Flavour, UserId, WorkerId};

use crate::budget::{Budget, Budgets, SendLimits};
use crate::meters::{self, ModuleCounts};
pub(crate) use ring_end::{RingEnd, Shown};
pub use rings::WorkerRings;
pub(crate) use seen::WorkerSeen;
pub(crate) use slot::WorkerSlot;

/// One slot for each worker that ever was there or had a filter, in the order of their coming. The operator names the
/// users, so they are few; an empty slot costs its name.
///
/// A worker is active while it holds packets or wants something of the loop. The others sleep or wait for packets, and
/// write their eventfds when they have something.
pub(crate) struct Workers {
    slots: Vec<Slot>,
    by_worker: BTreeMap<WorkerId, WorkerSlot>,
    /// What each user's modules may still send of their own, in whichever worker they are.
    budgets: Budgets,
    /// Changes of users' send limits that this lane was told of.
    limit_changes: u64,
    active: Vec<WorkerSlot>,
    /// Where the next round begins among the active ones.
    next: usize,
    /// Workers with packets in their rings that are not published yet.
    staged: Vec<WorkerSlot>,
    /// How many workers this lane lets look for packets again and again.
    spinners: usize,
    /// What loads of modules counted whose place another one has, or whose worker is gone.
    ended: ModuleCounts,
}

struct Slot {
    worker: WorkerId,
    /// The slot of the user's next worker in the order of flavours.
    next: Option<WorkerSlot>,
    budget: Arc<Budget>,
    end: Option<Box<RingEnd>>,
    active: bool,
}

impl Workers {
    pub(crate) fn new(budgets: Budgets) -> Workers {
        Workers {
            slots: Vec::new(),
            by_worker: BTreeMap::new(),
            budgets,
            limit_changes: 0,
            active: Vec::new(),
            next: 0,
            staged: Vec::new(),
            spinners: 0,
            ended: ModuleCounts::new(),
        }
    }

    /// Returns a worker's slot, and makes it if there is none.
    pub(crate) fn slot_of(&mut self, worker: &WorkerId) -> WorkerSlot {
        if let Some(slot) = self.by_worker.get(worker) {
            return *slot;
        }
        let number = u32::try_from(self.slots.len()).expect("an operator has fewer users than 32 bits count");
        let slot = WorkerSlot(number);
        let budget = self.budgets.of(&worker.user);
        self.slots.push(Slot { worker: worker.clone(), next: None, budget, end: None, active: false });
        self.by_worker.insert(worker.clone(), slot);
        let slot_of = |flavour| self.by_worker.get(&WorkerId::new(worker.user.clone(), flavour)).copied();
        if let (Some(first), Some(second)) = (slot_of(Flavour::Wasm), slot_of(Flavour::Osgi)) {
            self.slots[first.0 as usize].next = Some(second);
        }
        slot
    }

    /// Returns the name of a slot's worker.
    pub(crate) fn id(&self, slot: WorkerSlot) -> &WorkerId {
        &self.slots[slot.0 as usize].worker
    }

    /// Returns the slot of the same user's worker that sees a packet after this one, if there is such a worker.
    pub(crate) fn next_of_user(&self, slot: WorkerSlot) -> Option<WorkerSlot> {
        self.slots[slot.0 as usize].next
    }

    /// Takes what a packet of so many bytes needs from what the modules of a slot's user may send; false if there is not
    /// enough at this time.
    pub(crate) fn may_make_packet(&self, slot: WorkerSlot, bytes: usize, now: Instant) -> bool {
        self.slots[slot.0 as usize].budget.take(bytes, now)
    }

    /// Takes what a packet needs that modules of a slot's user made longer by so many bytes; false if there is not enough.
    pub(crate) fn may_add(&self, slot: WorkerSlot, bytes: u16, now: Instant) -> bool {
        bytes == 0 || self.slots[slot.0 as usize].budget.take_bytes(bytes.into(), now)
    }

    /// Returns whether two slots are of the same user.
    pub(crate) fn are_of_one_user(&self, one: WorkerSlot, other: WorkerSlot) -> bool {
        self.id(one).user == self.id(other).user
    }

    /// Says how much a user's modules may send of their own.
    pub(crate) fn set_send_limits(&mut self, user: &UserId, limits: SendLimits, now: Instant) {
        self.limit_changes += 1;
        self.budgets.set(self.limit_changes, user, limits, now);
    }

    /// Says which source addresses a user's packets may have beside their own.
    pub(crate) fn set_prefixes(&mut self, user: &UserId, prefixes: &[IpNet]) {
        for flavour in Flavour::ALL {
            if let Some(end) = self.end_of(&WorkerId::new(user.clone(), flavour)) {
                prefixes.clone_into(&mut end.prefixes);
            }
        }
    }

    /// Returns the ring end in a slot.
    #[inline]
    pub(crate) fn end(&mut self, slot: WorkerSlot) -> Option<&mut RingEnd> {
        self.slots.get_mut(slot.0 as usize)?.end.as_deref_mut()
    }

    /// Returns the ring end in a slot, with its worker's name.
    pub(crate) fn named_end(&mut self, slot: WorkerSlot) -> Option<(&WorkerId, &mut RingEnd)> {
        let slot = self.slots.get_mut(slot.0 as usize)?;
        Some((&slot.worker, slot.end.as_deref_mut()?))
    }

    /// Returns a worker's ring end.
    pub(crate) fn end_of(&mut self, worker: &WorkerId) -> Option<&mut RingEnd> {
        self.end(*self.by_worker.get(worker)?)
    }

    /// Takes the ring end out of a slot, to put it back.
    pub(crate) fn take(&mut self, slot: WorkerSlot) -> Option<Box<RingEnd>> {
        self.slots[slot.0 as usize].end.take()
    }

    /// Puts a ring end into a slot.
    pub(crate) fn put(&mut self, slot: WorkerSlot, end: Box<RingEnd>) {
        self.slots[slot.0 as usize].end = Some(end);
    }

    /// Takes the ring end of a worker that is gone.
    pub(crate) fn remove(&mut self, slot: WorkerSlot) -> Option<Box<RingEnd>> {
        let mut end = self.take(slot)?;
        self.spinners -= usize::from(end.end_spinning());
        Some(end)
    }

    /// Returns how many slots there are, empty ones too.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the slot at a place of all, in the order of their coming.
    pub(crate) fn at(&self, place: usize) -> Option<WorkerSlot> {
        if place < self.slots.len() { u32::try_from(place).ok().map(WorkerSlot) } else { None }
    }

    /// Returns all slots, empty ones too.
    pub(crate) fn ids(&self) -> impl Iterator<Item = WorkerSlot> + use<> {
        (0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX)).map(WorkerSlot)
    }

    /// Returns the workers' ring ends, to be changed.
    pub(crate) fn ends_mut(&mut self) -> impl Iterator<Item = &mut RingEnd> {
        self.slots.iter_mut().filter_map(|slot| slot.end.as_deref_mut())
    }

    /// Makes a worker active, so that rounds visit it; returns whether it was not.
    pub(crate) fn activate(&mut self, slot: WorkerSlot) -> bool {
        let Some(place) = self.slots.get_mut(slot.0 as usize) else { return false };
        if place.active {
            return false;
        }
        place.active = true;
        if let Some(end) = &mut place.end {
            end.ring.cancel_sleep();
        }
        self.active.push(slot);
        true
    }

    /// Returns the slot at a place of the active ones.
    pub(crate) fn active(&self, place: usize) -> Option<WorkerSlot> {
        self.active.get(place).copied()
    }

    /// Returns how many active slots there are.
    pub(crate) fn active_len(&self) -> usize {
        self.active.len()
    }

    /// Returns the place among the active ones where the next round begins, which may be their end.
    pub(crate) fn round(&self) -> usize {
        if self.next < self.active.len() { self.next } else { 0 }
    }

    /// Has the next round begin there.
    pub(crate) fn set_round(&mut self, place: usize) {
        self.next = place;
    }

    /// Has rounds leave out the slot at a place; another one takes that place.
    pub(crate) fn deactivate(&mut self, place: usize) {
        let slot = self.active.swap_remove(place);
        self.slots[slot.0 as usize].active = false;
    }

    /// Has active workers write their eventfds; returns the place of one that has data pending, if one has.
    pub(crate) fn listen(&mut self) -> Option<usize> {
        (0..self.active.len()).find(|place| self.active_end(*place).is_some_and(|end| !end.listen()))
    }

    /// Has active workers write their eventfds no longer.
    pub(crate) fn stop_listening(&mut self) {
        for place in 0..self.active.len() {
            if let Some(end) = self.active_end(place) {
                end.ring.cancel_sleep();
            }
        }
    }

    /// Returns whether all active workers are in the real-time class.
    pub(crate) fn active_are_real_time(&mut self) -> bool {
        (0..self.active.len()).all(|place| self.active_end(place).is_none_or(|end| end.is_real_time()))
    }

    fn active_end(&mut self, place: usize) -> Option<&mut RingEnd> {
        let slot = self.active(place)?;
        self.end(slot)
    }

    /// Notes that a worker's ring has something that is not published yet.
    #[inline]
    pub(crate) fn stage(&mut self, slot: WorkerSlot) {
        self.staged.push(slot);
    }

    /// Gives `publish` the ring end of each worker that has something to be published.
    pub(crate) fn publish_staged(&mut self, mut publish: impl FnMut(&mut Workers, WorkerSlot)) {
        let mut staged = std::mem::take(&mut self.staged);
        staged.drain(..).for_each(|slot| publish(self, slot));
        self.staged = staged;
    }

    /// Returns how many workers this lane lets look for packets again and again.
    pub(crate) fn spinners(&self) -> usize {
        self.spinners
    }

    /// Lets a worker look for packets again and again, if it is one of a few and hands the core over where it has none.
    pub(crate) fn let_spin(&mut self, slot: WorkerSlot) {
        if let Some(end) = self.end(slot).filter(|end| !end.spins && end.is_real_time()) {
            let spins = end.let_spin();
            self.spinners += usize::from(spins);
        }
    }

    /// Has all workers sleep that have no packets.
    pub(crate) fn end_spinning(&mut self) {
        if self.spinners > 0 {
            self.spinners = 0;
            for end in self.ends_mut() {
                end.end_spinning();
            }
        }
    }

    /// Counts for another load of a module in a place from here on.
    pub(crate) fn begin_meter(&mut self, worker: &WorkerId, slot: ModuleSlot, load: EffectId) {
        let before = self.end_of(worker).and_then(|end| end.meters.begin(slot, load));
        self.ended.extend(before);
    }

    /// Keeps what the modules of a worker counted that is gone.
    pub(crate) fn keep_counts(&mut self, end: &RingEnd) {
        meters::add(&mut self.ended, end.meters.counts());
    }

    /// Adds what all loads of modules counted; those of an ordered list are forgotten.
    pub(crate) fn read_meters(&mut self, ended: &[EffectId], counts: &mut ModuleCounts) {
        meters::add(counts, self.ended.iter().map(|(load, count)| (*load, *count)));
        for end in self.ends_mut() {
            meters::add(counts, end.meters.counts());
            end.meters.forget(ended);
        }
        self.ended.retain(|load, _| ended.binary_search(load).is_err());
    }
}

#[cfg(test)]
impl Workers {
    /// Returns how many workers have something that is not published yet.
    pub(crate) fn staged_len(&self) -> usize {
        self.staged.len()
    }
}
