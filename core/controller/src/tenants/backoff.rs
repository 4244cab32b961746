// SPDX-License-Identifier: Apache-2.0
//! How long what failed waits.

use std::collections::VecDeque;
use std::time::Duration;

use netserv_model::Instant;

use crate::limits::{BACKOFF_MAX, BACKOFF_MIN, FAILURE_WINDOW, FAILURES_MAX};

/// How often something failed of late, and how long to wait therefore.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    recent: VecDeque<Instant>,
    streak: u32,
}

impl Backoff {
    /// Counts a failure; returns how long to wait, or `None` if there were too many within the window.
    pub(crate) fn fail(&mut self, now: Instant) -> Option<Duration> {
        let wait = self.retry(now);
        (self.recent.len() < FAILURES_MAX).then_some(wait)
    }

    /// Counts a failure and returns how long to wait, however many there were.
    pub(crate) fn retry(&mut self, now: Instant) -> Duration {
        while self.recent.front().is_some_and(|at| now.since(*at) > FAILURE_WINDOW) {
            self.recent.pop_front();
        }
        if self.recent.is_empty() {
            self.streak = 0;
        }
        if self.recent.len() >= FAILURES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.streak = self.streak.saturating_add(1);
        wait_after(self.streak)
    }
}

fn wait_after(streak: u32) -> Duration {
    let Some(doublings) = streak.checked_sub(2) else { return Duration::ZERO };
    BACKOFF_MIN.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound() {
        let waits: Vec<u128> = (1..=11).map(|streak| wait_after(streak).as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
        assert_eq!(wait_after(u32::MAX), BACKOFF_MAX);
    }

    #[test]
    fn failures_far_apart_start_afresh() {
        let mut backoff = Backoff::default();
        for n in 0..10 {
            let at = Instant::from_millis(0) + (FAILURE_WINDOW + Duration::from_secs(1)) * n;
            assert_eq!(backoff.fail(at), Some(Duration::ZERO));
        }
    }

    #[test]
    fn too_many_failures_within_the_window_are_too_many() {
        let mut backoff = Backoff::default();
        let mut fail = |second: u64| backoff.fail(Instant::from_millis(second * 1000)).map(|wait| wait.as_millis());
        let waits = [0, 10, 20, 30].map(&mut fail);
        assert_eq!(waits, [Some(0), Some(100), Some(200), Some(400)]);
        assert_eq!(fail(61), Some(800));
        assert_eq!(fail(62), None);
    }
}
