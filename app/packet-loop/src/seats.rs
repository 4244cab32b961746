// SPDX-License-Identifier: Apache-2.0
//! The workers, by numbers that packets can carry, and which of them have something to do.

use std::collections::BTreeMap;
use std::num::TryFromIntError;
use std::sync::Arc;
use std::time::Instant;

use netserv_model::{Flavour, WorkerId};

use super::budget::{Budget, Budgets};
use super::ring_end::RingEnd;

/// The number of a worker's seat. It never becomes that of another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeatId(u32);

impl From<SeatId> for u64 {
    fn from(seat: SeatId) -> u64 {
        seat.0.into()
    }
}

impl TryFrom<u64> for SeatId {
    type Error = TryFromIntError;

    fn try_from(number: u64) -> Result<SeatId, TryFromIntError> {
        u32::try_from(number).map(SeatId)
    }
}

/// One seat for each worker that ever was there or had a filter, in the order of their coming. The operator names the
/// users, so they are few; an empty seat costs its name.
///
/// A worker is active while it holds packets or wants something of the loop. The others sleep or wait for packets, and
/// ring when they have something.
pub(super) struct Seats {
    seats: Vec<Seat>,
    by_worker: BTreeMap<WorkerId, SeatId>,
    /// What each user's modules may still send of their own, in whichever worker they are.
    budgets: Budgets,
    active: Vec<SeatId>,
    /// Where the next round begins among the active ones.
    next: usize,
}

struct Seat {
    worker: WorkerId,
    /// The seat of the user's next worker in the order of flavours.
    next: Option<SeatId>,
    budget: Arc<Budget>,
    end: Option<Box<RingEnd>>,
    active: bool,
}

impl Seats {
    pub(super) fn new(budgets: Budgets) -> Seats {
        Seats { seats: Vec::new(), by_worker: BTreeMap::new(), budgets, active: Vec::new(), next: 0 }
    }

    /// Returns a worker's seat, and makes it if there is none.
    pub(super) fn of(&mut self, worker: &WorkerId) -> SeatId {
        if let Some(seat) = self.by_worker.get(worker) {
            return *seat;
        }
        let number = u32::try_from(self.seats.len()).expect("an operator has fewer users than 32 bits count");
        let seat = SeatId(number);
        let budget = self.budgets.of(&worker.user);
        self.seats.push(Seat { worker: worker.clone(), next: None, budget, end: None, active: false });
        self.by_worker.insert(worker.clone(), seat);
        let seat_of = |flavour| self.by_worker.get(&WorkerId::new(worker.user.clone(), flavour)).copied();
        if let (Some(first), Some(second)) = (seat_of(Flavour::Wasm), seat_of(Flavour::Osgi)) {
            self.seats[first.0 as usize].next = Some(second);
        }
        seat
    }

    /// Returns the worker of a seat.
    pub(super) fn worker(&self, seat: SeatId) -> &WorkerId {
        &self.seats[seat.0 as usize].worker
    }

    /// Returns the seat of the same user's worker that sees a packet after this one, if there is such a worker.
    pub(super) fn next_of_user(&self, seat: SeatId) -> Option<SeatId> {
        self.seats[seat.0 as usize].next
    }

    /// Takes what a packet of so many bytes needs from what the modules of a seat's user may send; false if there is not
    /// enough at this time.
    pub(super) fn may_make_packet(&self, seat: SeatId, bytes: usize, now: Instant) -> bool {
        self.seats[seat.0 as usize].budget.take(bytes, now)
    }

    /// Takes what a packet needs that modules of a seat's user made longer by so many bytes; false if there is not enough.
    pub(super) fn may_add(&self, seat: SeatId, bytes: u16, now: Instant) -> bool {
        bytes == 0 || self.seats[seat.0 as usize].budget.take_bytes(bytes.into(), now)
    }

    /// Returns whether two seats are of the same user.
    pub(super) fn are_of_one_user(&self, one: SeatId, other: SeatId) -> bool {
        self.worker(one).user == self.worker(other).user
    }

    /// Returns the ring end in a seat.
    pub(super) fn end(&mut self, seat: SeatId) -> Option<&mut RingEnd> {
        self.seats.get_mut(seat.0 as usize)?.end.as_deref_mut()
    }

    /// Returns a worker's ring end.
    pub(super) fn end_of(&mut self, worker: &WorkerId) -> Option<&mut RingEnd> {
        self.end(*self.by_worker.get(worker)?)
    }

    /// Takes the ring end out of a seat.
    pub(super) fn take(&mut self, seat: SeatId) -> Option<Box<RingEnd>> {
        self.seats[seat.0 as usize].end.take()
    }

    /// Puts a ring end into a seat.
    pub(super) fn put(&mut self, seat: SeatId, end: Box<RingEnd>) {
        self.seats[seat.0 as usize].end = Some(end);
    }

    /// Returns how many seats there are, empty ones too.
    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    /// Returns the seat at a place of all, in the order of their coming.
    pub(super) fn at(&self, place: usize) -> Option<SeatId> {
        if place < self.seats.len() { u32::try_from(place).ok().map(SeatId) } else { None }
    }

    /// Returns all seats, empty ones too.
    pub(super) fn ids(&self) -> impl Iterator<Item = SeatId> + use<> {
        (0..u32::try_from(self.seats.len()).unwrap_or(u32::MAX)).map(SeatId)
    }

    /// Returns the workers' ring ends, to be changed.
    pub(super) fn ends_mut(&mut self) -> impl Iterator<Item = &mut RingEnd> {
        self.seats.iter_mut().filter_map(|seat| seat.end.as_deref_mut())
    }

    /// Has rounds visit a seat; returns whether they did not.
    pub(super) fn activate(&mut self, seat: SeatId) -> bool {
        let Some(place) = self.seats.get_mut(seat.0 as usize) else { return false };
        if place.active {
            return false;
        }
        place.active = true;
        self.active.push(seat);
        true
    }

    /// Returns the seat at a place of the active ones.
    pub(super) fn active(&self, place: usize) -> Option<SeatId> {
        self.active.get(place).copied()
    }

    /// Returns how many active seats there are.
    pub(super) fn active_len(&self) -> usize {
        self.active.len()
    }

    /// Returns the place among the active ones where the next round begins, which may be their end.
    pub(super) fn round(&self) -> usize {
        if self.next < self.active.len() { self.next } else { 0 }
    }

    /// Has the next round begin there.
    pub(super) fn set_round(&mut self, place: usize) {
        self.next = place;
    }

    /// Has rounds leave out the seat at a place; another one takes that place.
    pub(super) fn deactivate(&mut self, place: usize) {
        let seat = self.active.swap_remove(place);
        self.seats[seat.0 as usize].active = false;
    }
}
