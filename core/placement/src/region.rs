// SPDX-License-Identifier: Apache-2.0
//! What is known of the clients of one region, for one rule.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::Instant;

use crate::deployment::DeploymentId;
use crate::limits::{BACKOFF_MAX, BACKOFF_MIN};

/// Clients of one region.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// The client seen last.
    pub(crate) client: IpAddr,
    pub(crate) seen: Instant,
    pub(crate) stage: Stage,
    count: u32,
    window_since: Instant,
    failures: u32,
}

/// What happens with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its clients are counted.
    Counting,
    /// The nodes on the way are asked for.
    Asking,
    /// It has a deployment, until the way is to be asked for again.
    Served(DeploymentId, Instant),
    /// It is left alone until then: there is no node, or there was a failure.
    Resting(Instant),
}

impl Region {
    pub(crate) fn new(now: Instant, client: IpAddr) -> Region {
        Region { client, seen: now, stage: Stage::Counting, count: 0, window_since: now, failures: 0 }
    }

    /// Counts observations; returns whether there are enough of them.
    pub(crate) fn count(&mut self, now: Instant, client: IpAddr, more: u32, (enough, window): (u32, Duration)) -> bool {
        (self.client, self.seen) = (client, now);
        if now.since(self.window_since) > window {
            (self.count, self.window_since) = (0, now);
        }
        self.count = self.count.saturating_add(more);
        self.count >= enough
    }

    /// Takes note of a success.
    pub(crate) fn succeed(&mut self, stage: Stage) {
        (self.failures, self.stage) = (0, stage);
    }

    /// Leaves the region alone for a while, the longer the more often it failed.
    pub(crate) fn rest(&mut self, now: Instant) {
        self.stage = Stage::Resting(now + wait_after(self.failures));
        self.failures = self.failures.saturating_add(1);
        self.count = 0;
    }
}

/// Returns how long to wait after a failure, before which there were so many in a row.
pub(crate) fn wait_after(failures: u32) -> Duration {
    BACKOFF_MIN.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX)
}
