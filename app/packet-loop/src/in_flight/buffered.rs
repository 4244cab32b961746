// SPDX-License-Identifier: Apache-2.0
//! The packets that wait at containers for modules that move.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use netserv_model::Flow;
use netserv_model::effect::FilterId;
use netserv_model::limits::BUFFERING_TIME_MAX;

use super::held::Held;
use super::stop::Stop;
use crate::limits::{BUFFERED_BYTES_MAX, BUFFERED_PART};
use crate::module_filter::Buffers;
use crate::workers::WorkerSlot;

/// The packets that wait, at each container the first one first.
#[derive(Default)]
pub(crate) struct Buffered {
    /// Which packets wait by a filter, and until when.
    by: BTreeMap<FilterId, (Buffers, Instant)>,
    at: BTreeMap<Queue, VecDeque<Waiting>>,
    len: usize,
    bytes: usize,
    /// How often filters came or went by which packets wait.
    changes: u64,
}

/// Where packets wait, and by which filter; by none, until their container takes them.
pub(crate) type Queue = (WorkerSlot, Option<FilterId>);

pub(crate) struct Waiting {
    pub(crate) held: Held,
    /// The packet's bytes, unless its journey has them.
    pub(crate) received: Vec<u8>,
    pub(crate) since: Instant,
}

impl Waiting {
    /// Returns a packet that waits from now on. `received` are its bytes.
    pub(crate) fn new(held: Held, received: &[u8], now: Instant) -> Waiting {
        let received = if held.journey.is_some() { Vec::new() } else { received.to_vec() };
        Waiting { held, received, since: now }
    }

    fn bytes(&self) -> usize {
        self.received.len() + self.held.journey.as_deref().map_or(0, |journey| journey.bytes.len())
    }
}

impl Buffered {
    /// Has packets wait by a filter from now on.
    pub(crate) fn wait_by(&mut self, id: FilterId, buffers: Buffers, now: Instant) {
        self.changes += 1;
        self.by.insert(id, (buffers, now + BUFFERING_TIME_MAX));
    }

    /// Has none wait by a filter; returns whether they did.
    pub(crate) fn wait_no_longer_by(&mut self, id: FilterId) -> bool {
        let did = self.by.remove(&id).is_some();
        self.changes += u64::from(did);
        did
    }

    /// Returns how often filters came or went by which packets wait: a packet's way that was found before then may be another one.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the one of two waits that is longer.
    pub(crate) fn longer(&self, one: Option<FilterId>, other: Option<FilterId>) -> Option<FilterId> {
        let until = |wait: &Option<FilterId>| wait.and_then(|id| self.by.get(&id)).map(|(_, until)| *until);
        if until(&other) > until(&one) { other } else { one.or(other) }
    }

    /// Returns whether a packet does not wait by a filter.
    pub(crate) fn lets_by(&self, id: FilterId, flow: &Flow, interface: u32) -> bool {
        self.by.get(&id).is_some_and(|(buffers, _)| buffers.lets_by(flow, interface))
    }

    /// Returns whether a packet at a stop has to wait there.
    pub(crate) fn holds_up(&self, at: &Stop, now: Instant) -> bool {
        at.wait.is_some_and(|id| self.waits_by(id, now)) || self.any_wait_at(at)
    }

    fn waits_by(&self, id: FilterId, now: Instant) -> bool {
        self.by.get(&id).is_some_and(|(_, until)| now < *until)
    }

    /// Takes out the packets that wait by filters which went, and those that wait for their containers alone.
    pub(crate) fn take_released(&mut self) -> Vec<Waiting> {
        let by = &self.by;
        let released = |(_, wait): &Queue| wait.is_none_or(|id| !by.contains_key(&id));
        let queues: Vec<Queue> = self.at.keys().filter(|queue| released(queue)).copied().collect();
        queues.iter().flat_map(|queue| self.take(queue)).collect()
    }

    /// Takes out all packets; none waits by a filter any more.
    pub(crate) fn take_all(&mut self) -> Vec<Waiting> {
        self.by.clear();
        self.take_released()
    }

    fn take(&mut self, queue: &Queue) -> VecDeque<Waiting> {
        let taken = self.at.remove(queue).unwrap_or_default();
        (self.len, self.bytes) = (self.len - taken.len(), self.bytes - taken.iter().map(Waiting::bytes).sum::<usize>());
        taken
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether packets wait where one would.
    fn any_wait_at(&self, at: &Stop) -> bool {
        !self.is_empty() && self.at.contains_key(&queue(at))
    }

    pub(crate) fn push(&mut self, mut waiting: Waiting) {
        (self.len, self.bytes) = (self.len + 1, self.bytes + waiting.bytes());
        let queue = self.at.entry(queue(&waiting.held.at)).or_default();
        if let (None, Some(last)) = (waiting.held.at.wait, queue.back()) {
            // It waits for those before it, and no longer than they do.
            waiting.since = waiting.since.min(last.since);
        }
        queue.push_back(waiting);
    }

    pub(crate) fn push_front(&mut self, waiting: Waiting) {
        (self.len, self.bytes) = (self.len + 1, self.bytes + waiting.bytes());
        self.at.entry(queue(&waiting.held.at)).or_default().push_front(waiting);
    }

    pub(crate) fn pop(&mut self, queue: &Queue) -> Option<Waiting> {
        let waiting = self.at.get_mut(queue)?;
        let first = waiting.pop_front()?;
        if waiting.is_empty() {
            self.at.remove(queue);
        }
        (self.len, self.bytes) = (self.len - 1, self.bytes - first.bytes());
        Some(first)
    }

    /// Returns the queues of packets that have to wait no longer.
    pub(crate) fn over(&self, now: Instant) -> Vec<Queue> {
        let waits = |queue: &&Queue| queue.1.is_some_and(|id| self.waits_by(id, now));
        self.at.keys().filter(|queue| !waits(queue)).copied().collect()
    }

    /// Returns whether more wait than may, of so many packets that can be taken in without loss.
    pub(super) fn is_over_full(&self, room: usize) -> bool {
        self.len > room / BUFFERED_PART || self.bytes > BUFFERED_BYTES_MAX
    }

    /// Returns the longest queue of the container at which most wait.
    pub(super) fn longest(&self) -> Option<Queue> {
        let mut by_worker: BTreeMap<WorkerSlot, usize> = BTreeMap::new();
        for ((worker, _), waiting) in &self.at {
            *by_worker.entry(*worker).or_default() += waiting.len();
        }
        let most = by_worker.into_iter().max_by_key(|(_, waiting)| *waiting)?.0;
        let its = self.at.iter().filter(|((worker, _), _)| *worker == most);
        its.max_by_key(|(_, waiting)| waiting.len()).map(|(queue, _)| *queue)
    }
}

fn queue(at: &Stop) -> Queue {
    (at.worker, at.wait)
}
