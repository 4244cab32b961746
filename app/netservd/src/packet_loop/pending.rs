// SPDX-License-Identifier: Apache-2.0
//! The packets inside containers, found again by their cookie.

use std::net::IpAddr;

use netserv_dataplane::PacketId;
use netserv_model::verdict::FailureMode;

use super::seats::SeatId;
use super::trace::Record;
use crate::limits::PENDING_PACKETS_MAX;

/// One stop on a packet's way through containers.
#[derive(Clone, Copy, Debug)]
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
    pub(super) rest: Vec<Stop>,
    pub(super) changed: bool,
    /// The bytes as they went into the container, kept only if they may be needed again.
    pub(super) bytes: Vec<u8>,
    /// What happened to it so far, if a trace follows it.
    pub(super) trace: Option<Box<Record>>,
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
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.places.len() == PENDING_PACKETS_MAX
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
