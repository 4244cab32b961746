// SPDX-License-Identifier: Apache-2.0
//! A bound with two sides, so that what is near it does not open and shut all the time.

use crate::event::Reading;
use crate::limits::METRIC_MISSES_MAX;

/// Whether a number is over a bound. It is shut at first.
#[derive(Clone, Debug)]
pub struct Threshold {
    over: f64,
    until: f64,
    is_open: bool,
    misses: u32,
}

impl Threshold {
    /// Returns one that opens over a bound, and shuts at another one or below.
    pub fn new(over: f64, until: f64) -> Threshold {
        Threshold { over, until, is_open: false, misses: 0 }
    }

    /// Returns whether it has the bounds of another one.
    pub fn has_bounds_of(&self, other: &Threshold) -> bool {
        (self.over, self.until) == (other.over, other.until)
    }

    /// Returns whether it is open.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes note of what was read; returns whether it is open. What cannot be read for a while is not over anything.
    pub fn note(&mut self, reading: &Reading) -> bool {
        match reading {
            Ok(value) => {
                self.misses = 0;
                // What is no number is over nothing.
                self.is_open = if self.is_open { *value > self.until } else { *value > self.over };
            }
            Err(_) => {
                self.misses = self.misses.saturating_add(1);
                self.is_open &= self.misses < METRIC_MISSES_MAX;
            }
        }
        self.is_open
    }
}

/// Whether what a metric is read from is there. Before the first reading that is not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presence {
    is_known: bool,
    misses: u32,
}

impl Presence {
    /// Returns whether it is there.
    pub fn is_there(&self) -> bool {
        self.is_known && !self.is_gone()
    }

    /// Returns whether it is gone.
    pub fn is_gone(&self) -> bool {
        self.misses >= METRIC_MISSES_MAX
    }

    /// Takes note of what was read.
    pub fn note(&mut self, reading: &Reading) {
        match reading {
            Ok(_) => *self = Presence { is_known: true, misses: 0 },
            Err(_) => self.misses = self.misses.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_over_one_bound_and_shuts_at_the_other() {
        let mut threshold = Threshold::new(10.0, 5.0);
        let noted = [0.0, 10.0, 10.1, 9.0, 5.1, 5.0, 6.0, f64::NAN, f64::INFINITY, f64::NAN]
            .map(|value| threshold.note(&Ok(value)));
        assert_eq!(noted, [false, false, true, true, true, false, false, false, true, false]);
    }

    #[test]
    fn what_cannot_be_read_for_a_while_shuts_it() {
        let mut threshold = Threshold::new(10.0, 5.0);
        let missing = || Err("away".to_owned());
        assert!(!threshold.note(&missing()) && threshold.note(&Ok(11.0)));
        for _ in 1..METRIC_MISSES_MAX {
            assert!(threshold.note(&missing()));
        }
        assert!(threshold.note(&Ok(6.0)), "it is back in time");
        assert!((0..METRIC_MISSES_MAX).map(|_| threshold.note(&missing())).last().is_some_and(|open| !open));
        assert!(!threshold.note(&Ok(6.0)) && threshold.note(&Ok(11.0)));
    }
}
