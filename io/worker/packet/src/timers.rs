// SPDX-License-Identifier: Apache-2.0
//! Timers of one instance.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netserv_model::Instant;
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::TIMER_DELAY_MIN;

use crate::limits;

/// The timers of one instance, by the module's own numbers.
#[derive(Debug, Default)]
pub struct Timers {
    timers: BTreeMap<i32, Timer>,
    queue: BTreeSet<(Instant, i32)>,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    due: Instant,
    period: Option<Duration>,
}

impl Timers {
    /// Sets a timer, replacing an earlier one of the same number.
    ///
    /// # Errors
    /// A negative number, a delay or period that is too long, or more than `max` timers.
    pub fn set(
        &mut self,
        now: Instant,
        id: i32,
        delay: Duration,
        period: Option<Duration>,
        max: u32,
    ) -> Result<(), HostError> {
        if id < 0 || delay > limits::TIMER_DELAY_MAX || period.is_some_and(|period| period > limits::TIMER_DELAY_MAX) {
            return Err(HostError::Invalid);
        }
        if !self.timers.contains_key(&id) && self.timers.len() >= max as usize {
            return Err(HostError::Quota);
        }
        let due = now + delay.max(TIMER_DELAY_MIN);
        let period = period.map(|period| period.max(TIMER_DELAY_MIN));
        self.insert(id, Timer { due, period });
        Ok(())
    }

    /// Forgets a timer.
    ///
    /// # Errors
    /// There is no such timer.
    pub fn cancel(&mut self, id: i32) -> Result<(), HostError> {
        let timer = self.timers.remove(&id).ok_or(HostError::NotFound)?;
        self.queue.remove(&(timer.due, id));
        Ok(())
    }

    /// Returns a timer that is due, if there is one; a periodic one is set anew, without the periods that were missed.
    pub fn poll_due(&mut self, now: Instant) -> Option<i32> {
        let (due, id) = *self.queue.first().filter(|(due, _)| *due <= now)?;
        self.queue.pop_first();
        let timer = self.timers.remove(&id).expect("each queued timer is in the table");
        if let Some(period) = timer.period {
            let missed = now.since(due).as_nanos() / period.as_nanos();
            let skipped = Duration::from_nanos_u128(missed.saturating_mul(period.as_nanos()));
            self.insert(id, Timer { due: due + skipped + period, period: Some(period) });
        }
        Some(id)
    }

    /// Returns when the next timer is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    fn insert(&mut self, id: i32, timer: Timer) {
        if let Some(old) = self.timers.insert(id, timer) {
            self.queue.remove(&(old.due, id));
        }
        self.queue.insert((timer.due, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn timers_come_due_in_order() {
        let mut timers = Timers::default();
        timers.set(at(0), 1, ms(20), None, 9).unwrap();
        timers.set(at(0), 2, ms(10), Some(ms(10)), 9).unwrap();
        assert_eq!(timers.poll_timeout(), Some(at(10)));
        assert_eq!(timers.poll_due(at(9)), None);
        assert_eq!(timers.poll_due(at(10)), Some(2));
        assert_eq!(timers.poll_due(at(10)), None);
        assert_eq!(timers.poll_due(at(45)), Some(1));
        assert_eq!(timers.poll_due(at(45)), Some(2));
        assert_eq!(timers.poll_due(at(45)), None);
        assert_eq!(timers.poll_timeout(), Some(at(50)));
        assert_eq!(timers.cancel(2), Ok(()));
        assert_eq!(timers.cancel(1), Err(HostError::NotFound));
        assert_eq!(timers.poll_timeout(), None);
    }

    #[test]
    fn a_timer_set_again_counts_once() {
        let mut timers = Timers::default();
        timers.set(at(0), 1, ms(10), None, 1).unwrap();
        timers.set(at(0), 1, ms(30), None, 1).unwrap();
        assert_eq!(timers.poll_due(at(20)), None);
        assert_eq!(timers.poll_due(at(30)), Some(1));
        assert_eq!(timers.poll_due(at(99)), None);
    }

    #[test]
    fn timers_are_bounded() {
        let mut timers = Timers::default();
        timers.set(at(0), 1, ms(0), Some(ms(0)), 1).unwrap();
        assert_eq!(timers.poll_timeout(), Some(at(1)));
        assert_eq!(timers.set(at(0), 2, ms(1), None, 1), Err(HostError::Quota));
        assert_eq!(timers.set(at(0), -1, ms(1), None, 9), Err(HostError::Invalid));
        let too_long = limits::TIMER_DELAY_MAX + Duration::from_nanos(1);
        assert_eq!(timers.set(at(0), 2, too_long, None, 9), Err(HostError::Invalid));
        assert_eq!(timers.set(at(0), 2, ms(1), Some(too_long), 9), Err(HostError::Invalid));
    }

    #[test]
    fn a_clock_far_ahead_skips_every_missed_period() {
        let mut timers = Timers::default();
        timers.set(at(0), 1, ms(1), Some(ms(1)), 1).unwrap();
        assert_eq!(timers.poll_due(Instant::from_nanos(u64::MAX / 2)), Some(1));
        assert_eq!(timers.poll_due(Instant::from_nanos(u64::MAX / 2)), None);
    }
}
