// SPDX-License-Identifier: Apache-2.0
//! The packets that wait at containers for modules that move.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use netserv_model::Flow;
use netserv_model::effect::FilterId;
use netserv_model::limits::BUFFERING_TIME_MAX;

use super::module_filter::Buffers;
use super::pending::{Held, Stop};
use super::seats::SeatId;
use crate::limits::{BUFFERED_BYTES_MAX, BUFFERED_PART};

/// The packets that wait, at each container the first one first.
#[derive(Default)]
pub(super) struct Buffered {
    /// Which packets wait by a filter, and until when.
    by: BTreeMap<FilterId, (Buffers, Instant)>,
    at: BTreeMap<Queue, VecDeque<Waiting>>,
    len: usize,
    bytes: usize,
}

/// Where packets wait, and by which filter; by none, until their container takes them.
pub(super) type Queue = (SeatId, Option<FilterId>);

pub(super) struct Waiting {
    pub(super) held: Held,
    /// The packet's bytes, unless its journey has them.
    pub(super) received: Vec<u8>,
    pub(super) since: Instant,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.received.len() + self.held.journey.as_deref().map_or(0, |journey| journey.bytes.len())
    }
}

impl Buffered {
    /// Has packets wait by a filter from now on.
    pub(super) fn wait_by(&mut self, id: FilterId, buffers: Buffers, now: Instant) {
        self.by.insert(id, (buffers, now + BUFFERING_TIME_MAX));
    }

    /// Has none wait by a filter; returns whether they did.
    pub(super) fn wait_no_longer_by(&mut self, id: FilterId) -> bool {
        self.by.remove(&id).is_some()
    }

    /// Returns whether a packet does not wait by a filter.
    pub(super) fn lets_by(&self, id: FilterId, flow: &Flow, interface: u32) -> bool {
        self.by.get(&id).is_some_and(|(buffers, _)| buffers.lets_by(flow, interface))
    }

    pub(super) fn waits_by(&self, id: FilterId, now: Instant) -> bool {
        self.by.get(&id).is_some_and(|(_, until)| now < *until)
    }

    /// Takes out all packets.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waiting> + use<> {
        (self.len, self.bytes) = (0, 0);
        std::mem::take(&mut self.at).into_values().flatten()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether packets wait where one would.
    pub(super) fn any_wait_at(&self, at: &Stop) -> bool {
        !self.is_empty() && self.at.contains_key(&queue(at))
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        (self.len, self.bytes) = (self.len + 1, self.bytes + waiting.bytes());
        self.at.entry(queue(&waiting.held.at)).or_default().push_back(waiting);
    }

    pub(super) fn push_front(&mut self, waiting: Waiting) {
        (self.len, self.bytes) = (self.len + 1, self.bytes + waiting.bytes());
        self.at.entry(queue(&waiting.held.at)).or_default().push_front(waiting);
    }

    pub(super) fn pop(&mut self, queue: &Queue) -> Option<Waiting> {
        let waiting = self.at.get_mut(queue)?;
        let first = waiting.pop_front()?;
        if waiting.is_empty() {
            self.at.remove(queue);
        }
        (self.len, self.bytes) = (self.len - 1, self.bytes - first.bytes());
        Some(first)
    }

    /// Returns the queues of packets that have to wait no longer.
    pub(super) fn over(&self, now: Instant) -> Vec<Queue> {
        let waits = |queue: &&Queue| queue.1.is_some_and(|id| self.waits_by(id, now));
        self.at.keys().filter(|queue| !waits(queue)).copied().collect()
    }

    /// Returns whether more wait than may, of so many packets that can be taken in without loss.
    pub(super) fn is_over_full(&self, room: usize) -> bool {
        self.len > room / BUFFERED_PART || self.bytes > BUFFERED_BYTES_MAX
    }

    pub(super) fn longest(&self) -> Option<Queue> {
        self.at.iter().max_by_key(|(_, waiting)| waiting.len()).map(|(queue, _)| *queue)
    }
}

fn queue(at: &Stop) -> Queue {
    (at.seat, at.wait)
}
