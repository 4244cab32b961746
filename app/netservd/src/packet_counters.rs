// SPDX-License-Identifier: Apache-2.0
//! Counters of the packet path, written by the packet thread and read by the metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use netserv_dataplane::Counters;
use netserv_model::{DropReason, Verdict};

/// One set per packet thread. Each count is of packets since the node started.
#[derive(Debug, Default)]
pub struct PacketCounters {
    received: AtomicU64,
    unparsed: AtomicU64,
    unmatched: AtomicU64,
    shown: AtomicU64,
    passed: AtomicU64,
    modified: AtomicU64,
    injected: AtomicU64,
    dropped: [AtomicU64; DropReason::ALL.len()],
    unseen: [AtomicU64; DropReason::ALL.len()],
    refused: [AtomicU64; DropReason::ALL.len()],
    driver: Mutex<Counters>,
}

/// The counters at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTotals {
    /// Packets that the driver gave.
    pub received: u64,
    /// Packets that are no IP packet the node understands; they passed.
    pub unparsed: u64,
    /// Packets that no module wanted; they passed.
    pub unmatched: u64,
    /// Packets put into a container's ring, once for each container.
    pub shown: u64,
    /// Packets that modules wanted and that went on as they came.
    pub passed: u64,
    /// Packets that went on changed.
    pub modified: u64,
    /// Packets that modules made and that were sent.
    pub injected: u64,
    /// Received packets that were dropped, by reason. Every received packet that is in no container any more is in one
    /// of `unparsed`, `unmatched`, `passed`, `modified` and this.
    pub dropped: Vec<(DropReason, u64)>,
    /// Packets that a container should have seen and did not, by reason.
    pub unseen: Vec<(DropReason, u64)>,
    /// Packets that modules made and that were not sent, by reason.
    pub refused: Vec<(DropReason, u64)>,
    /// What the driver counted, at most a quarter of a second ago.
    pub driver: Counters,
}

impl PacketCounters {
    pub(crate) fn received(&self) {
        bump(&self.received);
    }

    pub(crate) fn unparsed(&self) {
        bump(&self.unparsed);
    }

    pub(crate) fn unmatched(&self) {
        bump(&self.unmatched);
    }

    pub(crate) fn shown(&self) {
        bump(&self.shown);
    }

    pub(crate) fn injected(&self) {
        bump(&self.injected);
    }

    pub(crate) fn finished(&self, verdict: Verdict) {
        match verdict {
            Verdict::Pass => bump(&self.passed),
            Verdict::Modified => bump(&self.modified),
            Verdict::Drop => self.dropped(DropReason::Module),
        }
    }

    pub(crate) fn dropped(&self, reason: DropReason) {
        bump(&self.dropped[index(reason)]);
    }

    pub(crate) fn unseen(&self, reason: DropReason) {
        bump(&self.unseen[index(reason)]);
    }

    pub(crate) fn refused(&self, reason: DropReason) {
        bump(&self.refused[index(reason)]);
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

fn bump(counter: &AtomicU64) {
    // Only the packet thread writes, so nothing can come between.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
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
        let counters = PacketCounters::default();
        for (times, reason) in DropReason::ALL.into_iter().enumerate() {
            (0..=times).for_each(|_| counters.dropped(reason));
        }
        let totals = counters.totals();
        for (times, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(totals.dropped(reason), times as u64 + 1, "{reason:?}");
            assert_eq!(totals.unseen(reason), 0);
        }
    }
}
