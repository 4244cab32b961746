// SPDX-License-Identifier: Apache-2.0
//! Deadlines, one per owner, and token buckets.

use std::collections::BTreeSet;

use netserv_model::Instant;

use crate::api::{AssociationId, RouteId};
use crate::limits::RateLimit;

/// When something is due, and why.
pub(crate) type Deadline = (Instant, &'static str);

/// What a deadline belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Route(RouteId),
    Association(AssociationId),
    HeldQueries,
}

/// When the timer of each owner fires; the owner knows it, too, and why.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, Owner)>);

impl Timers {
    /// Sets an owner's timer, which was to fire `before`.
    pub(crate) fn set(&mut self, owner: Owner, before: Option<Instant>, at: Option<Instant>) {
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.0.remove(&(before, owner));
        }
        if let Some(at) = at {
            self.0.insert((at, owner));
        }
    }

    pub(crate) fn next(&self) -> Option<(Instant, Owner)> {
        self.0.first().copied()
    }

    /// Takes one owner that is due; its timer is not set any more.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Owner> {
        let (_, owner) = self.next().filter(|(at, _)| *at <= now)?;
        self.0.pop_first();
        Some(owner)
    }
}

/// Returns the earlier of two deadlines.
pub(crate) fn earlier(a: Option<Deadline>, b: Option<Deadline>) -> Option<Deadline> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// A rate limiter (RFC 5971 §5.3.3).
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    limit: RateLimit,
    /// Tokens times `NANOS`, so that no time is lost in rounding.
    level: u128,
    filled_at: Instant,
}

impl TokenBucket {
    pub(crate) fn new(limit: RateLimit) -> TokenBucket {
        TokenBucket { limit, level: u128::from(limit.burst) * NANOS, filled_at: Instant::default() }
    }

    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let gained = now.since(self.filled_at).as_nanos() * u128::from(self.limit.per_second);
        self.filled_at = self.filled_at.max(now);
        self.level = (self.level + gained).min(u128::from(self.limit.burst) * NANOS);
        if self.level < NANOS {
            return false;
        }
        self.level -= NANOS;
        true
    }
}

const NANOS: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_earliest_owner_comes_first_and_once() {
        let mut timers = Timers::default();
        let at = |ms| Some(Instant::from_millis(ms));
        let (a, b) = (Owner::Association(AssociationId(1)), Owner::Association(AssociationId(2)));
        timers.set(a, None, at(20));
        timers.set(b, None, at(10));
        assert_eq!(timers.next(), Some((Instant::from_millis(10), b)));
        timers.set(b, at(10), at(30));
        assert_eq!(timers.next(), Some((Instant::from_millis(20), a)));
        assert_eq!(timers.pop(Instant::from_millis(19)), None);
        assert_eq!(timers.pop(Instant::from_millis(20)), Some(a));
        timers.set(b, at(30), None);
        assert_eq!((timers.next(), timers.pop(Instant::from_millis(90))), (None, None));
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = TokenBucket::new(RateLimit { per_second: 10, burst: 3 });
        let now = Instant::from_millis(5000);
        assert_eq!((0..5).filter(|_| bucket.take(now)).count(), 3);
        assert!(!bucket.take(now + Duration::from_millis(99)));
        assert!(bucket.take(now + Duration::from_millis(100)));
        assert_eq!((0..9).filter(|_| bucket.take(now + Duration::from_secs(60))).count(), 3);
    }
}
