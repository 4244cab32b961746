// SPDX-License-Identifier: Apache-2.0
//! Token buckets (RFC 5971 §5.3.3).

use netserv_model::Instant;

use crate::limits::RateLimit;

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
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = TokenBucket::new(RateLimit { per_second: 10, burst: 3 });
        let now = Instant::from_millis(5000);
        assert_eq!((0..5).filter(|_| bucket.take(now)).count(), 3);
        assert!(!bucket.take(now + Duration::from_millis(99)));
        assert!(bucket.take(now + Duration::from_millis(100)));
        assert_eq!((0..9).filter(|_| bucket.take(now + Duration::from_secs(60))).count(), 3);
    }
}
