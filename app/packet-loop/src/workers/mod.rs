// SPDX-License-Identifier: Apache-2.0
//! The workers, by numbers that packets can carry, and which of them have something to do.

mod ring_end;
mod rings;
mod seen;
mod slot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use netserv_model::{Flavour, WorkerId};

use crate::budget::{Budget, Budgets};
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
    active: Vec<WorkerSlot>,
    /// Where the next round begins among the active ones.
    next: usize,
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
        Workers { slots: Vec::new(), by_worker: BTreeMap::new(), budgets, active: Vec::new(), next: 0 }
    }

    /// Returns a worker's slot, and makes it if there is none.
    pub(crate) fn of(&mut self, worker: &WorkerId) -> WorkerSlot {
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

    /// Returns the ring end in a slot.
    pub(crate) fn end(&mut self, slot: WorkerSlot) -> Option<&mut RingEnd> {
        self.slots.get_mut(slot.0 as usize)?.end.as_deref_mut()
    }

    /// Returns a worker's ring end.
    pub(crate) fn end_of(&mut self, worker: &WorkerId) -> Option<&mut RingEnd> {
        self.end(*self.by_worker.get(worker)?)
    }

    /// Takes the ring end out of a slot.
    pub(crate) fn take(&mut self, slot: WorkerSlot) -> Option<Box<RingEnd>> {
        self.slots[slot.0 as usize].end.take()
    }

    /// Puts a ring end into a slot.
    pub(crate) fn put(&mut self, slot: WorkerSlot, end: Box<RingEnd>) {
        self.slots[slot.0 as usize].end = Some(end);
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

    /// Has rounds visit a slot; returns whether they did not.
    pub(crate) fn activate(&mut self, slot: WorkerSlot) -> bool {
        let Some(place) = self.slots.get_mut(slot.0 as usize) else { return false };
        if place.active {
            return false;
        }
        place.active = true;
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
}
