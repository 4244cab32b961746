// SPDX-License-Identifier: Apache-2.0
//! Deadlines, one per owner, and token buckets.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::Instant;

use crate::api::{AssociationId, RateLimit};
use crate::routing::RouteId;

/// When something is due, and why.
pub(crate) type Deadline = (Instant, &'static str);

/// What a deadline belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Route(RouteId),
    Association(AssociationId),
}

/// The next deadline of each owner.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_owner: BTreeMap<Owner, Deadline>,
    by_time: BTreeSet<(Instant, Owner)>,
}

impl Timers {
    pub(crate) fn set(&mut self, owner: Owner, deadline: Option<Deadline>) {
        let old = match deadline {
            Some(deadline) => self.by_owner.insert(owner, deadline),
            None => self.by_owner.remove(&owner),
        };
        if old.map(|(at, _)| at) == deadline.map(|(at, _)| at) {
            return;
        }
        if let Some((at, _)) = old {
            self.by_time.remove(&(at, owner));
        }
        if let Some((at, _)) = deadline {
            self.by_time.insert((at, owner));
        }
    }

    pub(crate) fn next(&self) -> Option<Deadline> {
        let (_, owner) = self.by_time.first()?;
        self.by_owner.get(owner).copied()
    }

    /// Takes one owner that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Owner> {
        let (at, owner) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.set(owner, None);
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
        let (a, b) = (Owner::Association(AssociationId(1)), Owner::Association(AssociationId(2)));
        timers.set(a, Some((Instant::from_millis(20), "a")));
        timers.set(b, Some((Instant::from_millis(10), "b")));
        assert_eq!(timers.next(), Some((Instant::from_millis(10), "b")));
        timers.set(b, Some((Instant::from_millis(30), "b")));
        assert_eq!(timers.next(), Some((Instant::from_millis(20), "a")));
        assert_eq!(timers.pop(Instant::from_millis(19)), None);
        assert_eq!(timers.pop(Instant::from_millis(20)), Some(a));
        timers.set(b, None);
        assert_eq!(timers.next(), None);
        assert!(timers.by_time.is_empty());
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
