// SPDX-License-Identifier: Apache-2.0
//! When the loop leaves what comes with the driver for a moment, so that one wake-up serves several packets.
//!
//! A packet that comes alone wakes the loop, the loop the worker, and the worker the loop: where packets come one by one,
//! that is most of what they cost. So after a small batch, while packets are frequent, the next is not taken before a moment has
//! passed; answers of workers are. The first packet after a pause, and each while packets are rare, is taken at once.

use std::time::{Duration, Instant};

use crate::limits::{GATHER_BATCH_MAX, GATHER_RATE_MIN, GATHER_WINDOW};

/// Says when the next packets are taken.
#[derive(Debug)]
pub(super) struct Coalescing {
    /// For how long they gather; zero if they do not.
    time: Duration,
    /// When the current count began, and how many came since.
    counted_since: Instant,
    came: u32,
    is_frequent: bool,
    until: Option<Instant>,
}

impl Coalescing {
    pub(super) fn new(time: Duration, now: Instant) -> Coalescing {
        Coalescing { time, counted_since: now, came: 0, is_frequent: false, until: None }
    }

    /// Takes note of a look for packets, in which so many came.
    pub(super) fn received(&mut self, now: Instant, came: usize) {
        if self.time.is_zero() {
            return;
        }
        self.count(now, came);
        let gathers = self.is_frequent && (1..=GATHER_BATCH_MAX).contains(&came);
        self.until = gathers.then(|| now + self.time);
    }

    fn count(&mut self, now: Instant, came: usize) {
        self.came = self.came.saturating_add(u32::try_from(came).unwrap_or(u32::MAX));
        let since = now.duration_since(self.counted_since);
        if since >= GATHER_WINDOW {
            self.is_frequent = f64::from(self.came) >= f64::from(GATHER_RATE_MIN) * since.as_secs_f64();
            (self.counted_since, self.came) = (now, 0);
        }
    }

    /// Returns how long packets still gather; nothing if they are to be taken.
    #[inline]
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        self.until?.checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_micros(100);

    /// Takes packets of so many a second, one by one, for a while; returns after how many of them the next ones gathered.
    fn gathered(coalescing: &mut Coalescing, now: &mut Instant, rate: u32) -> usize {
        let each = Duration::from_secs(1) / rate;
        let packets = 4 * GATHER_WINDOW.as_micros() / each.as_micros() + 4;
        let taken = (0..packets).filter(|_| {
            *now += each;
            coalescing.received(*now, 1);
            coalescing.left(*now).is_some()
        });
        taken.count()
    }

    #[test]
    fn packets_gather_from_gather_rate_min_on() {
        let mut now = Instant::now();
        let mut coalescing = Coalescing::new(TIME, now);
        assert_eq!(gathered(&mut coalescing, &mut now, GATHER_RATE_MIN / 2), 0);
        assert!(gathered(&mut coalescing, &mut now, GATHER_RATE_MIN * 2) > 20);
        // What is counted in a window holds for the next one.
        let last = gathered(&mut coalescing, &mut now, GATHER_RATE_MIN / 2);
        assert!(last <= 20, "{last}");
        assert_eq!(gathered(&mut coalescing, &mut now, GATHER_RATE_MIN / 2), 0);
    }

    #[test]
    fn they_do_not_after_more_than_gather_batch_max_nor_after_none_nor_after_a_pause() {
        let mut now = Instant::now();
        let mut coalescing = Coalescing::new(TIME, now);
        gathered(&mut coalescing, &mut now, 10 * GATHER_RATE_MIN);
        let mut gathers = |came| {
            coalescing.received(now, came);
            coalescing.left(now)
        };
        assert_eq!(gathers(1), Some(TIME));
        assert_eq!(gathers(GATHER_BATCH_MAX), Some(TIME));
        assert_eq!((gathers(GATHER_BATCH_MAX + 1), gathers(0)), (None, None));
        coalescing.received(now + Duration::from_millis(100), 1);
        assert_eq!(coalescing.left(now + Duration::from_millis(100)), None);
    }

    #[test]
    fn they_gather_until_the_time_is_over() {
        let mut now = Instant::now();
        let mut coalescing = Coalescing::new(TIME, now);
        gathered(&mut coalescing, &mut now, 10 * GATHER_RATE_MIN);
        assert_eq!(coalescing.left(now + TIME / 4), Some(TIME * 3 / 4));
        assert_eq!((coalescing.left(now + TIME), coalescing.left(now + 2 * TIME)), (None, None));
        let mut none = Coalescing::new(Duration::ZERO, now);
        assert_eq!(gathered(&mut none, &mut now, 10 * GATHER_RATE_MIN), 0);
    }
}
