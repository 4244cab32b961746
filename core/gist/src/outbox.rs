// SPDX-License-Identifier: Apache-2.0
//! What waits to be polled, with its bounds, and the counters.

use std::collections::VecDeque;

use netserv_model::Instant;

use crate::api::{AssociationId, Counter, Counters, Event, Transmit};
use crate::limits::{self, RateLimit};
use crate::timer::TokenBucket;

#[derive(Debug)]
pub(crate) struct Outbox {
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    limiter: TokenBucket,
    pub(crate) counters: Counters,
}

impl Outbox {
    pub(crate) fn new(limit: RateLimit) -> Outbox {
        Outbox {
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            limiter: TokenBucket::new(limit),
            counters: Counters::default(),
        }
    }

    /// Queues a datagram of this node's own, of whatever type, unless there were too many lately.
    pub(crate) fn datagram(&mut self, now: Instant, transmit: Transmit) -> bool {
        if self.transmits.len() >= limits::TRANSMITS_MAX {
            self.count(Counter::TransmitsDropped);
            return false;
        }
        if !self.limiter.take(now) {
            self.count(Counter::DatagramsLimited);
            return false;
        }
        self.transmits.push_back(transmit);
        true
    }

    /// Queues bytes of a connection. If this fails the connection has lost bytes and must be closed.
    pub(crate) fn stream(&mut self, association: AssociationId, bytes: Vec<u8>) -> bool {
        if self.transmits.len() >= limits::TRANSMITS_MAX {
            self.count(Counter::TransmitsDropped);
            return false;
        }
        self.transmits.push_back(Transmit::Stream { association, bytes });
        true
    }

    /// Queues the opening or the end of a connection: at most one of each per association, so these need no bound.
    pub(crate) fn connection(&mut self, transmit: Transmit) {
        self.transmits.push_back(transmit);
    }

    pub(crate) fn event(&mut self, event: Event) {
        if self.events.len() >= limits::EVENTS_MAX {
            self.count(Counter::EventsDropped);
            return;
        }
        self.events.push_back(event);
    }

    pub(crate) fn count(&mut self, counter: Counter) {
        self.counters.add(counter);
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
