// SPDX-License-Identifier: Apache-2.0
//! What other parts of the daemon count, as plain data.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use netserv_model::effect::ModuleSlot;
use netserv_model::request::{PacketCounts, ServerCounts};
use netserv_model::{UserId, WorkerId};
use netserv_wire::container::frames::StorageFailures;
use netserv_wire::container::media::MediaOutcome;

/// What one module counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Its packets.
    pub packets: PacketCounts,
    /// Counters that it keeps, by name.
    pub counters: BTreeMap<String, u64>,
    /// Its connections, if it is a server.
    pub server: Option<ServerCounts>,
}

/// A module's worker, and its place there.
pub type WorkerSlot = (WorkerId, ModuleSlot);

/// What workers say of themselves, beside what their modules count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerGauges {
    /// Their media jobs.
    pub media: MediaCounts,
    /// What they could not read or write of their files.
    pub storage_failures: Vec<(WorkerId, StorageFailures)>,
}

/// How many media jobs there are, and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaCounts {
    /// Jobs that ended, by user and outcome.
    pub ended: BTreeMap<(UserId, MediaOutcome), u64>,
    /// Milliseconds that ended jobs took, by user.
    pub ms: BTreeMap<UserId, u64>,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that wait for their turn.
    pub waiting: usize,
}

/// What is counted on the socket of programs that are NSLPs.
#[derive(Debug, Default)]
pub struct ApplicationCounts {
    /// Connections that are open.
    pub open: AtomicU64,
    /// Connections.
    pub connected: AtomicU64,
    /// Connections that were turned away, since there were too many.
    pub turned_away: AtomicU64,
    /// Lines that were no call.
    pub malformed: AtomicU64,
    /// Times that a program had to wait, since it called too often.
    pub paused: AtomicU64,
    /// Programs that were cut, since they did not read.
    pub cut: AtomicU64,
    /// Events that such programs were not told of.
    pub lost: AtomicU64,
}

impl ApplicationCounts {
    /// Counts one.
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns what has a total, with its name.
    pub fn totals(&self) -> [(&'static str, u64); 6] {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("connected", of(&self.connected)),
            ("turned-away", of(&self.turned_away)),
            ("malformed-line", of(&self.malformed)),
            ("paused", of(&self.paused)),
            ("cut", of(&self.cut)),
            ("event-lost", of(&self.lost)),
        ]
    }
}

/// How often something took how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Times up to each of [`Histogram::BOUNDS_US`], and above, each counted once.
    counts: [u64; Histogram::BOUNDS_US.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// The upper bounds in microseconds.
    pub const BOUNDS_US: [u64; 12] = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000];

    /// Counts one.
    pub fn add(&mut self, took: Duration) {
        let us = took.as_micros();
        let place = Histogram::BOUNDS_US.iter().position(|bound| us <= u128::from(*bound));
        self.counts[place.unwrap_or(Histogram::BOUNDS_US.len())] += 1;
        self.sum += took;
    }

    /// Returns how many took at most as long as each bound.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Histogram::BOUNDS_US.into_iter().zip(counts)
    }

    /// Returns how many there were, and how long all of them took.
    pub fn total(&self) -> (u64, Duration) {
        (self.counts.iter().sum(), self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_up_to_their_bounds() {
        let mut histogram = Histogram::default();
        for us in [10, 50, 51, 999, 2_000_000] {
            histogram.add(Duration::from_micros(us));
        }
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(counts, [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(histogram.total(), (5, Duration::from_micros(2_001_110)));
    }
}
