// SPDX-License-Identifier: Apache-2.0
//! Regions whose clients are not seen any more are forgotten, some at a time.

use std::ops::Bound;
use std::time::Duration;

use netserv_model::Instant;

use super::{Due, Placement};
use crate::limits::{SWEEP_EVERY, SWEEP_REST, SWEEP_STEP};
use crate::rule::Rule;

impl Placement {
    /// Forgets those of the next regions in whose time nobody was seen.
    pub(super) fn sweep(&mut self, now: Instant) {
        let from = self.swept.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.regions.range((from, Bound::Unbounded)).take(SWEEP_STEP);
        let (mut looked, mut last, mut gone) = (0, None, Vec::new());
        for (key, region) in next {
            (looked, last) = (looked + 1, Some(*key));
            let after = self.rules.get(&key.0).map(forget_after).unwrap_or_default();
            if region.forget_at(after).is_some_and(|at| at <= now) {
                gone.push(*key);
            }
        }
        for key in gone {
            self.remove_region(key);
        }
        let is_through = looked < SWEEP_STEP;
        self.swept = last.filter(|_| !is_through);
        self.is_swept = !(is_through && self.regions.is_empty());
        if self.is_swept {
            self.due.insert((now + if is_through { SWEEP_REST } else { SWEEP_EVERY }, Due::Sweep));
        }
    }
}

/// How long a region is known after its last client: while it may count, and as long as a deployment stays that sees nobody.
fn forget_after(rule: &Rule) -> Duration {
    rule.window.max(rule.idle)
}
