// SPDX-License-Identifier: Apache-2.0
//! Bounds on how much a node does within a time.

use std::time::Duration;

use netserv_model::Instant;

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
}
