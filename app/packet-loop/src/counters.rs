// SPDX-License-Identifier: Apache-2.0
//! Counters of the packet path, written by the packet thread and read by the metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use netserv_model::api::PacketSums;
use netserv_model::{DropReason, Verdict};
use netserv_plane::Counters;

/// One set per packet thread. Each count is of packets since the node started.
#[derive(Debug, Default)]
pub struct PacketCounters {
    received: AtomicU64,
    unparsed: AtomicU64,
    unmatched: AtomicU64,
    shown: AtomicU64,
    buffered: AtomicU64,
    passed: AtomicU64,
    modified: AtomicU64,
    injected: AtomicU64,
    dropped: [AtomicU64; DropReason::ALL.len()],
    unseen: [AtomicU64; DropReason::ALL.len()],
    refused: [AtomicU64; DropReason::ALL.len()],
    driver: Mutex<Counters>,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketTotals {
    /// Packets that the driver gave.
    pub received: u64,
    /// Packets that are no IP packet the node understands; they passed.
    pub unparsed: u64,
    /// Packets that no module wanted; they passed.
    pub unmatched: u64,
    /// Packets put into a container's ring, once for each container.
    pub shown: u64,
    /// Packets that waited for a module that moves, once for each container.
    pub buffered: u64,
    /// Packets that modules wanted and that went on as they came.
    pub passed: u64,
    /// Packets that went on changed.
    pub modified: u64,
    /// Packets that modules made and that were sent.
    pub injected: u64,
    /// Received packets that were dropped, by reason. Every received packet that is in no container any more, and waits for none, is in one
    /// of `unparsed`, `unmatched`, `passed`, `modified` and this.
    pub dropped: Vec<(DropReason, u64)>,
    /// Packets that a container should have seen and did not, by reason.
    pub unseen: Vec<(DropReason, u64)>,
    /// Packets that modules made and that were not sent, by reason.
    pub refused: Vec<(DropReason, u64)>,
    /// What the driver counted, at most a quarter of a second ago.
    pub driver: Counters,
}

/// The counts in the packet thread's own hands, which [`PacketCounters::publish`] lets others see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    received: u64,
    unparsed: u64,
    unmatched: u64,
    shown: u64,
    buffered: u64,
    passed: u64,
    modified: u64,
    injected: u64,
    dropped: [u64; DropReason::ALL.len()],
    unseen: [u64; DropReason::ALL.len()],
    refused: [u64; DropReason::ALL.len()],
}

impl Tally {
    pub(crate) fn received(&mut self) {
        self.received += 1;
    }

    pub(crate) fn unparsed(&mut self) {
        self.unparsed += 1;
    }

    pub(crate) fn unmatched(&mut self) {
        self.unmatched += 1;
    }

    pub(crate) fn shown(&mut self) {
        self.shown += 1;
    }

    pub(crate) fn buffered(&mut self) {
        self.buffered += 1;
    }

    pub(crate) fn injected(&mut self) {
        self.injected += 1;
    }

    pub(crate) fn finished(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Modified => self.modified += 1,
            Verdict::Drop => self.dropped(DropReason::Module),
        }
    }

    pub(crate) fn dropped(&mut self, reason: DropReason) {
        self.dropped[index(reason)] += 1;
    }

    pub(crate) fn unseen(&mut self, reason: DropReason) {
        self.unseen[index(reason)] += 1;
    }

    pub(crate) fn refused(&mut self, reason: DropReason) {
        self.refused[index(reason)] += 1;
    }
}

impl PacketCounters {
    /// Lets others see what was counted.
    pub(crate) fn publish(&self, tally: &Tally) {
        let one = |counter: &AtomicU64, count: u64| counter.store(count, Ordering::Relaxed);
        one(&self.received, tally.received);
        one(&self.unparsed, tally.unparsed);
        one(&self.unmatched, tally.unmatched);
        one(&self.shown, tally.shown);
        one(&self.buffered, tally.buffered);
        one(&self.passed, tally.passed);
        one(&self.modified, tally.modified);
        one(&self.injected, tally.injected);
        let many = |counters: &[AtomicU64], counts: &[u64]| {
            counters.iter().zip(counts).for_each(|(counter, count)| one(counter, *count));
        };
        many(&self.dropped, &tally.dropped);
        many(&self.unseen, &tally.unseen);
        many(&self.refused, &tally.refused);
    }

    /// Takes over what the driver counted, unless somebody reads it at this moment.
    pub(crate) fn set_driver(&self, counters: Counters) {
        if let Ok(mut driver) = self.driver.try_lock() {
            *driver = counters;
        }
    }

    /// Returns the counters as they are; packets under way may be in one and not yet in another.
    pub fn totals(&self) -> PacketTotals {
        let by_reason = |counts: &[AtomicU64]| DropReason::ALL.into_iter().zip(counts.iter().map(read)).collect();
        PacketTotals {
            received: read(&self.received),
            unparsed: read(&self.unparsed),
            unmatched: read(&self.unmatched),
            shown: read(&self.shown),
            buffered: read(&self.buffered),
            passed: read(&self.passed),
            modified: read(&self.modified),
            injected: read(&self.injected),
            dropped: by_reason(&self.dropped),
            unseen: by_reason(&self.unseen),
            refused: by_reason(&self.refused),
            driver: *self.driver.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl PacketTotals {
    /// Returns the sums of these and of others, which another lane counted.
    #[must_use]
    pub fn with(self, other: PacketTotals) -> PacketTotals {
        let by_reason = |counts: Vec<(DropReason, u64)>, more: Vec<(DropReason, u64)>| {
            counts.into_iter().zip(more).map(|((reason, count), (_, more))| (reason, count + more)).collect()
        };
        PacketTotals {
            received: self.received + other.received,
            unparsed: self.unparsed + other.unparsed,
            unmatched: self.unmatched + other.unmatched,
            shown: self.shown + other.shown,
            buffered: self.buffered + other.buffered,
            passed: self.passed + other.passed,
            modified: self.modified + other.modified,
            injected: self.injected + other.injected,
            dropped: by_reason(self.dropped, other.dropped),
            unseen: by_reason(self.unseen, other.unseen),
            refused: by_reason(self.refused, other.refused),
            driver: self.driver + other.driver,
        }
    }

    /// Returns what people look at first.
    pub fn sums(&self) -> PacketSums {
        PacketSums {
            received: self.received,
            unseen: self.unseen.iter().map(|(_, packets)| packets).sum(),
            bypassed: self.driver.bypassed,
            lost: self.driver.lost,
        }
    }
}

#[cfg(test)]
impl PacketTotals {
    /// Returns the count of packets dropped for one reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[index(reason)].1
    }

    /// Returns the count of packets that a container did not see for one reason.
    pub fn unseen(&self, reason: DropReason) -> u64 {
        self.unseen[index(reason)].1
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn index(reason: DropReason) -> usize {
    reason as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let (counters, mut tally) = (PacketCounters::default(), Tally::default());
        for (times, reason) in DropReason::ALL.into_iter().enumerate() {
            (0..=times).for_each(|_| tally.dropped(reason));
        }
        counters.publish(&tally);
        let totals = counters.totals();
        for (times, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(totals.dropped(reason), times as u64 + 1, "{reason:?}");
            assert_eq!(totals.unseen(reason), 0);
        }
    }
}
