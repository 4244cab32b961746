// SPDX-License-Identifier: Apache-2.0
//! What is known of the clients of one region, for one rule. There may be a million: it is small.

use std::time::Duration;

use netserv_model::Instant;

use crate::deployment::DeploymentId;
use crate::limits::{BACKOFF_MAX, BACKOFF_MIN};

/// Clients of one region.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) stage: Stage,
    seen: Moment,
    window_since: Moment,
    count: u32,
    failures: u8,
}

/// What happens with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its clients are counted.
    Counting,
    /// The nodes on the way are asked for.
    Asking,
    /// It has a deployment, until the way is to be asked for again. One that is gone or leaving serves nobody.
    Served(DeploymentId, Moment),
    /// It is left alone until then: there is no node, or there was a failure.
    Resting(Moment),
}

/// A time, in tenths of a second since the clock's start: enough for 13 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u32);

impl Moment {
    const NANOS: u64 = 100_000_000;

    pub(crate) fn of(at: Instant) -> Moment {
        Moment(u32::try_from(at.as_nanos() / Moment::NANOS).unwrap_or(u32::MAX))
    }

    pub(crate) fn instant(self) -> Instant {
        Instant::from_nanos(u64::from(self.0) * Moment::NANOS)
    }
}

impl Region {
    pub(crate) fn new(now: Instant) -> Region {
        let now = Moment::of(now);
        Region { stage: Stage::Counting, seen: now, window_since: now, count: 0, failures: 0 }
    }

    /// Counts observations; returns whether there are enough of them.
    pub(crate) fn count(&mut self, now: Instant, more: u32, (enough, window): (u32, Duration)) -> bool {
        self.seen = Moment::of(now);
        if now.since(self.window_since.instant()) > window {
            (self.count, self.window_since) = (0, self.seen);
        }
        self.count = self.count.saturating_add(more);
        self.count >= enough
    }

    /// Takes note of a success.
    pub(crate) fn succeed(&mut self, stage: Stage) {
        (self.failures, self.stage) = (0, stage);
    }

    /// Returns the deployment that serves it, if it is that one.
    pub(crate) fn served_by(&mut self, deployment: DeploymentId) -> Option<&mut DeploymentId> {
        match &mut self.stage {
            Stage::Served(by, _) if *by == deployment => Some(by),
            Stage::Served(..) | Stage::Counting | Stage::Asking | Stage::Resting(_) => None,
        }
    }

    /// Leaves the region alone for a while, the longer the more often it failed.
    pub(crate) fn rest(&mut self, now: Instant) {
        self.stage = Stage::Resting(Moment::of(now + wait_after(self.failures.into())));
        self.failures = self.failures.saturating_add(1);
        self.count = 0;
    }

    /// Returns until when it is known if nobody is seen, where regions are forgotten after a while; nothing while it waits for an answer.
    pub(crate) fn forget_at(&self, after: Duration) -> Option<Instant> {
        let unseen = self.seen.instant() + after;
        match self.stage {
            // Its answer is to find it.
            Stage::Asking => None,
            // It stays so long as it is left alone.
            Stage::Resting(until) => Some(unseen.max(until.instant())),
            Stage::Counting | Stage::Served(..) => Some(unseen),
        }
    }
}

/// Returns how long to wait after a failure, before which there were so many in a row.
pub(crate) fn wait_after(failures: u32) -> Duration {
    BACKOFF_MIN.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_small() {
        assert!(size_of::<Region>() <= 32, "{}", size_of::<Region>());
        assert!(size_of::<(crate::RuleId, ipnet::IpNet)>() <= 24);
    }

    #[test]
    fn moments_are_tenths_of_a_second_for_years() {
        let at = Instant::from_millis(12_345);
        assert_eq!(Moment::of(at).instant(), Instant::from_millis(12_300));
        let years = Instant::from_millis(12 * 365 * 24 * 3600 * 1000);
        assert_eq!(Moment::of(years).instant(), years);
        assert!(Moment::of(Instant::from_nanos(u64::MAX)).instant() > years);
    }
}
