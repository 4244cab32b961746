// SPDX-License-Identifier: Apache-2.0
//! How fast a counter counts, over the last moments.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::limits::RATE_LOOKS;

/// The looks at a counter of the last moments.
#[derive(Debug, Default)]
pub struct Rate {
    looks: VecDeque<(Instant, u64)>,
}

impl Rate {
    /// Takes a look at the counter. One that went back began anew.
    pub fn look(&mut self, at: Instant, count: u64) {
        if self.looks.back().is_some_and(|(_, before)| *before > count) {
            self.looks.clear();
        }
        if self.looks.len() == RATE_LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back((at, count));
    }

    /// Returns how many a second there were between the first look and the last; nothing before there are enough of them.
    pub fn per_second(&self) -> Option<u64> {
        if self.looks.len() < RATE_LOOKS {
            return None;
        }
        let ((from, first), (to, last)) = (self.looks.front()?, self.looks.back()?);
        let micros = to.saturating_duration_since(*from).max(Duration::from_micros(1)).as_micros();
        let per_second = u128::from(last - first) * 1_000_000 / micros;
        Some(u64::try_from(per_second).unwrap_or(u64::MAX))
    }
}

/// Whether a service is wanted, by how fast what its conditions name comes.
///
/// It is wanted from when one of them is over its bound, until all of them have been at half of theirs or below for a while.
#[derive(Debug)]
pub struct Watch {
    hold: Duration,
    /// When one of the conditions last held, as long as the service is wanted.
    held: Option<Instant>,
}

impl Watch {
    /// Returns one for a service that stays so long after its conditions are over.
    pub fn new(hold: Duration) -> Watch {
        Watch { hold, held: None }
    }

    /// Takes note of the rates and bounds of all conditions at one moment; returns whether the service is wanted.
    pub fn note(&mut self, now: Instant, rates: impl IntoIterator<Item = (u64, u64)>) -> bool {
        let is_wanted = self.held.is_some();
        let holds = |(rate, bound): (u64, u64)| rate > if is_wanted { bound / 2 } else { bound };
        if rates.into_iter().any(holds) {
            self.held = Some(now);
        }
        self.held = self.held.filter(|held| now.saturating_duration_since(*held) < self.hold);
        self.held.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    #[test]
    fn a_rate_is_that_of_the_last_looks() {
        let (start, mut rate) = (Instant::now(), Rate::default());
        let mut counts = [5, 5, 5, 5, 105, 205, 305, 305].into_iter();
        let mut look = |rate: &mut Rate, tick: u32| {
            rate.look(start + TICK * tick, counts.next().unwrap());
            rate.per_second()
        };
        let rates: Vec<_> = (0..8).map(|tick| look(&mut rate, tick)).collect();
        assert_eq!(rates, [None, None, None, Some(0), Some(333), Some(666), Some(1000), Some(666)]);
    }

    #[test]
    fn a_counter_that_went_back_and_a_clock_that_stands_do_no_harm() {
        let (start, mut rate) = (Instant::now(), Rate::default());
        (0..4).for_each(|tick| rate.look(start + TICK * tick, u64::MAX));
        assert_eq!(rate.per_second(), Some(0));
        rate.look(start + TICK * 4, 3);
        assert_eq!(rate.per_second(), None);
        (0..4).for_each(|count| rate.look(start, u64::MAX - 3 + count));
        assert!(rate.per_second() > Some(1_000_000));
        let mut most = Rate::default();
        (0..4).for_each(|look| most.look(start, if look == 0 { 0 } else { u64::MAX }));
        assert_eq!(most.per_second(), Some(u64::MAX));
    }

    #[test]
    fn a_service_stays_while_half_its_bound_comes_and_a_while_after() {
        let (start, mut watch) = (Instant::now(), Watch::new(TICK * 3));
        let rates = [0, 100, 101, 60, 51, 50, 0, 51, 0, 0, 0, 60];
        let wanted: Vec<bool> =
            (0..).zip(rates).map(|(tick, rate)| watch.note(start + TICK * tick, [(rate, 100), (0, 5)])).collect();
        let expected = [false, false, true, true, true, true, true, true, true, true, false, false];
        assert_eq!(wanted, expected);
        assert!(!Watch::new(Duration::ZERO).note(start, []));
    }
}
