// SPDX-License-Identifier: Apache-2.0
//! The packets in flight: inside containers, or waiting for modules that move.

mod buffered;
mod held;
mod pending;
mod stop;

pub(crate) use buffered::{Buffered, Waiting};
pub(crate) use held::{Held, Journey, length_of};
pub(crate) use pending::Pending;
pub(crate) use stop::Stop;

/// The packets that the loop took and that have no verdict yet.
pub(crate) struct InFlight {
    /// Those inside containers.
    pub(crate) pending: Pending,
    /// Those that wait for modules that move.
    pub(crate) buffered: Buffered,
    /// How many packets the driver and this loop can do without at a time.
    pub(crate) capacity: usize,
}

impl InFlight {
    pub(crate) fn new(capacity: usize) -> InFlight {
        InFlight { pending: Pending::default(), buffered: Buffered::default(), capacity }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.buffered.is_empty()
    }

    /// Returns how many packets can still be taken in without loss.
    #[inline]
    pub(crate) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.pending.len() + self.buffered.len())
    }

    /// If too many packets wait, takes out the first of the longest queue.
    pub(crate) fn pop_surplus(&mut self) -> Option<Waiting> {
        if !self.buffered.is_over_full(self.capacity) {
            return None;
        }
        self.buffered.longest().and_then(|queue| self.buffered.pop(&queue))
    }
}
