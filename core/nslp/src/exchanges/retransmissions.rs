// SPDX-License-Identifier: Apache-2.0
//! When requests that go by datagram are sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::Instant;

use crate::cx::ExchangeKey;
use crate::limits::{RETRANSMISSION_FIRST, RETRANSMISSION_GAP_MAX};

/// A request that goes by datagram: along its path, or to a neighbour off it.
pub(crate) type Target = (ExchangeKey, Option<IpAddr>);

/// The requests that go by datagram, and when the next copy of each is due. Each belongs to an exchange that waits.
#[derive(Debug, Default)]
pub(crate) struct Retransmissions {
    timers: BTreeSet<(Instant, Target)>,
    gaps: BTreeMap<Target, (Instant, Duration)>,
}

impl Retransmissions {
    pub(crate) fn has(&self, key: Target) -> bool {
        self.gaps.contains_key(&key)
    }

    pub(crate) fn end(&mut self, key: Target) {
        if let Some((at, _)) = self.gaps.remove(&key) {
            self.timers.remove(&(at, key));
        }
    }

    /// Returns the first request of which a copy is due.
    pub(crate) fn due(&self, now: Instant) -> Option<Target> {
        self.timers.first().filter(|(at, _)| *at <= now).map(|(_, target)| *target)
    }

    /// Returns when the next copy is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Takes that a request goes by datagram from now on.
    pub(crate) fn begin(&mut self, now: Instant, key: Target) {
        self.set(now + RETRANSMISSION_FIRST, key, RETRANSMISSION_FIRST);
    }

    /// Takes that a copy is sent; the next one follows after twice the time.
    pub(crate) fn put_off(&mut self, now: Instant, key: Target) {
        let gap = self.gaps.get(&key).map_or(RETRANSMISSION_GAP_MAX, |(_, gap)| *gap);
        let gap = (gap * 2).min(RETRANSMISSION_GAP_MAX);
        self.set(now + gap, key, gap);
    }

    fn set(&mut self, at: Instant, key: Target, gap: Duration) {
        self.end(key);
        self.timers.insert((at, key));
        self.gaps.insert(key, (at, gap));
    }
}
