// SPDX-License-Identifier: Apache-2.0
//! Bounds on how much a node does within a time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{Instant, share};

/// So many within a time, which begins with the first of them.
#[derive(Debug)]
pub(crate) struct Burst {
    max: usize,
    interval: Duration,
    since: Instant,
    count: usize,
}

impl Burst {
    /// Returns one that nothing was taken of.
    pub(crate) fn new(max: usize, interval: Duration) -> Burst {
        Burst { max, interval, since: Instant::default(), count: 0 }
    }

    /// Takes as many of those that are wanted as may still be, and returns how many.
    pub(crate) fn take_up_to(&mut self, now: Instant, wanted: usize) -> usize {
        if self.count == 0 || now >= self.since + self.interval {
            (self.since, self.count) = (now, 0);
        }
        let taken = wanted.min(self.max - self.count);
        self.count += taken;
        taken
    }

    /// Takes all that are wanted, or none; returns whether it took them.
    pub(crate) fn take(&mut self, now: Instant, wanted: usize) -> bool {
        let taken = self.take_up_to(now, wanted);
        if taken < wanted {
            self.count -= taken;
        }
        taken == wanted
    }
}

/// A bound for each source, and one for all, which bounds how many sources are remembered.
#[derive(Debug)]
pub(crate) struct SourceBursts {
    each: usize,
    interval: Duration,
    all: Burst,
    sources: BTreeMap<IpAddr, Burst>,
}

impl SourceBursts {
    /// Returns one that nothing was taken of.
    pub(crate) fn new(each: usize, all: usize, interval: Duration) -> SourceBursts {
        SourceBursts { each, interval, all: Burst::new(all, interval), sources: BTreeMap::new() }
    }

    /// Takes one of a source's, if it and all have one left.
    pub(crate) fn take(&mut self, now: Instant, source: IpAddr) -> bool {
        let source = whose(source);
        if self.sources.len() >= self.all.max {
            self.sources.retain(|_, burst| now < burst.since + burst.interval);
        }
        if self.sources.len() >= 2 * self.all.max && !self.sources.contains_key(&source) {
            return false;
        }
        let (each, interval) = (self.each, self.interval);
        let of_source = self.sources.entry(source).or_insert_with(|| Burst::new(each, interval));
        // A source that has had its own takes nothing of the others'.
        of_source.take(now, 1) && self.all.take(now, 1)
    }
}

/// Returns what a source is known by: whoever has one address of an IPv6 network has all 2⁶⁴ of it.
fn whose(source: IpAddr) -> IpAddr {
    share::network(source, 32, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_has_a_bound_and_comes_again_after_the_time() {
        let mut burst = Burst::new(5, Duration::from_secs(1));
        let at = Instant::from_millis;
        assert!(burst.take(at(7), 3));
        assert!(!burst.take(at(7), 3), "all or none");
        assert_eq!(burst.take_up_to(at(1006), 3), 2);
        assert!(!burst.take(at(1006), 1));
        assert_eq!(burst.take_up_to(at(1007), 9), 5);
        assert!(!burst.take(at(2006), 6), "never more than the bound");
    }

    #[test]
    fn a_source_uses_up_its_own_and_sources_are_forgotten() {
        let mut bursts = SourceBursts::new(2, 5, Duration::from_secs(1));
        let at = Instant::from_millis;
        let mut take = |ms: u64, source: &str| bursts.take(at(ms), source.parse().unwrap());
        assert_eq!([1, 2, 3, 4].map(|_| take(7, "10.0.0.1")), [true, true, false, false]);
        assert_eq!([take(7, "fd00::1"), take(7, "fd00::2"), take(7, "fd00::3")], [true, true, false]);
        assert_eq!([take(7, "10.0.0.2"), take(7, "10.0.0.3")], [true, false], "all have had theirs");
        assert!(take(1007, "10.0.0.1"));
        for n in 0..10_000_u32 {
            bursts.take(at(1008 + u64::from(n)), IpAddr::from(n.to_be_bytes()));
            assert!(bursts.sources.len() <= 10, "{}", bursts.sources.len());
        }
        let flood = (0..10_000_u32).filter(|n| bursts.take(at(20_000), IpAddr::from(n.to_be_bytes())));
        assert_eq!(flood.count(), 5);
        assert!(bursts.sources.len() <= 10);
    }
}
