// SPDX-License-Identifier: Apache-2.0
//! The packets inside containers, found again by their cookie.

use std::collections::VecDeque;
use std::net::IpAddr;

use netserv_dataplane::PacketId;
use netserv_model::verdict::FailureMode;

use super::seats::SeatId;
use super::trace::Record;

/// One stop on a packet's way through containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) seat: SeatId,
    /// The bits of the modules that are to see the packet.
    pub(super) modules: u64,
    /// The bits of those that fail closed.
    pub(super) closed: u64,
}

impl Stop {
    /// Returns what happens to the packet while its modules cannot say.
    pub(super) fn on_failure(&self) -> FailureMode {
        if self.modules & self.closed == 0 { FailureMode::Open } else { FailureMode::Closed }
    }
}

/// A packet inside a container.
pub(super) struct Held {
    pub(super) packet: PacketId,
    /// Its source and destination, as changed so far.
    pub(super) ends: (IpAddr, IpAddr),
    /// The number of the interface that it came in by.
    pub(super) interface: u32,
    pub(super) at: Stop,
    /// What is only needed on a way through several containers.
    pub(super) way: Option<Box<Way>>,
    /// What happened to it so far, if a trace follows it.
    pub(super) trace: Option<Box<Record>>,
}

/// The way of a packet through several containers.
pub(super) struct Way {
    /// The stops that are still to come.
    pub(super) rest: VecDeque<Stop>,
    pub(super) changed: bool,
    /// Its bytes, as changed so far.
    pub(super) bytes: Vec<u8>,
}

impl Held {
    /// Returns the bytes that the packet was changed to, if it was.
    pub(super) fn changed(&self) -> Option<&[u8]> {
        self.way.as_deref().filter(|way| way.changed).map(|way| way.bytes.as_slice())
    }

    /// Moves the packet on to its next stop; false if there is none.
    pub(super) fn step(&mut self) -> bool {
        let next = self.way.as_deref_mut().and_then(|way| way.rest.pop_front());
        if let Some(next) = next {
            self.at = next;
        }
        next.is_some()
    }
}

/// The packets inside containers, found again by their cookie.
#[derive(Default)]
pub(super) struct Pending {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Place {
    generation: u32,
    held: Option<Held>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the cookie that the next inserted packet gets.
    pub(super) fn next_cookie(&self) -> u64 {
        match self.free.last() {
            Some(number) => cookie(*number, self.places[*number as usize].generation),
            None => cookie(u32::try_from(self.places.len()).unwrap_or(u32::MAX), 0),
        }
    }

    pub(super) fn insert(&mut self, held: Held) {
        match self.free.pop() {
            Some(number) => self.places[number as usize].held = Some(held),
            None => self.places.push(Place { generation: 0, held: Some(held) }),
        }
    }

    /// Takes out the packet of a cookie; a cookie that is not of this moment gives none.
    pub(super) fn remove(&mut self, wanted: u64) -> Option<Held> {
        let number = u32::try_from(wanted & u64::from(u32::MAX)).ok()?;
        let place = self.places.get_mut(number as usize)?;
        if wanted != cookie(number, place.generation) {
            return None;
        }
        let held = place.held.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(number);
        Some(held)
    }
}

fn cookie(place: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(place)
}
