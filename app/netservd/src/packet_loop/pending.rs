// SPDX-License-Identifier: Apache-2.0
//! The packets inside containers, found again by their cookie.

use std::net::IpAddr;

use netserv_dataplane::PacketId;
use netserv_model::UserId;
use netserv_model::verdict::FailureMode;

/// Packets inside containers at a time, over all containers; more get their modules' failure verdict.
pub const PENDING_PACKETS_MAX: usize = 65_536;

/// One stop on a packet's way through containers.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) user: UserId,
    pub(super) modules: u64,
    pub(super) on_failure: FailureMode,
}

/// A packet inside a container.
pub(super) struct Held {
    pub(super) packet: PacketId,
    pub(super) source: IpAddr,
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
