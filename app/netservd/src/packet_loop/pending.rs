// SPDX-License-Identifier: Apache-2.0
//! The packets inside containers, found again by their cookie.

use std::net::IpAddr;

use netserv_dataplane::PacketId;
use netserv_model::UserId;
use netserv_model::verdict::FailureMode;

use crate::limits::PENDING_PACKETS_MAX;

/// One stop on a packet's way through containers.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) user: UserId,
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
}

/// The packets inside containers, found again by their cookie.
#[derive(Default)]
pub(super) struct Pending {
    held: Vec<Option<Held>>,
    free: Vec<u32>,
    generations: Vec<u32>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.held.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.held.len() == PENDING_PACKETS_MAX
    }

    /// Returns the cookie that the next inserted packet gets.
    pub(super) fn next_cookie(&self) -> u64 {
        match self.free.last() {
            Some(place) => cookie(*place, self.generations[*place as usize]),
            None => cookie(u32::try_from(self.held.len()).unwrap_or(u32::MAX), 0),
        }
    }

    pub(super) fn insert(&mut self, held: Held) {
        match self.free.pop() {
            Some(place) => self.held[place as usize] = Some(held),
            None => {
                self.held.push(Some(held));
                self.generations.push(0);
            }
        }
    }

    /// Takes out the packet of a cookie; a cookie that is not of this moment gives none.
    pub(super) fn remove(&mut self, wanted: u64) -> Option<Held> {
        let place = u32::try_from(wanted & u64::from(u32::MAX)).ok()?;
        let generation = self.generations.get_mut(place as usize)?;
        if wanted != cookie(place, *generation) {
            return None;
        }
        let held = self.held[place as usize].take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(place);
        Some(held)
    }
}

fn cookie(place: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(place)
}
