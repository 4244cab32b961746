// SPDX-License-Identifier: Apache-2.0
//! When the loop sleeps so that workers get its core.
//!
//! Outside of the real-time class, giving way (`sched_yield`) counts only among threads of one control group, and a worker
//! is in its container's. Where the kernel's tick is 4 ms, one that shares this core then answers nothing for as long, and
//! its ring overflows while the driver's has room. So the loop sleeps for a moment if workers hold packets and none answers.

use std::time::Duration;

use crate::limits::{HELD_PACKETS_MANY, UNANSWERED_TURNS_MAX, UNANSWERED_TURNS_MIN};

/// How long it sleeps: as long as a worker takes for a few batches.
pub(super) const IDLE_SLEEP: Duration = Duration::from_micros(80);

/// Counts turns without answers.
#[derive(Debug)]
pub(super) struct IdleSleep {
    unanswered: u32,
    /// After so many the loop sleeps.
    due_at: u32,
    /// It slept since the last turn.
    slept: bool,
}

impl Default for IdleSleep {
    fn default() -> IdleSleep {
        IdleSleep { unanswered: 0, due_at: UNANSWERED_TURNS_MIN, slept: false }
    }
}

impl IdleSleep {
    /// Takes note of a turn in which workers gave back so many packets, and hold so many.
    pub(super) fn turn(&mut self, returned: usize, held: usize) {
        if held < HELD_PACKETS_MANY {
            *self = IdleSleep::default();
            return;
        }
        let slept = std::mem::take(&mut self.slept);
        if returned == 0 {
            self.unanswered = self.unanswered.saturating_add(1);
            return;
        }
        if slept {
            self.due_at = (self.due_at / 4).max(UNANSWERED_TURNS_MIN);
        } else if self.unanswered > 0 {
            // It answers by itself, so it has a core.
            self.due_at = (self.due_at * 2).min(UNANSWERED_TURNS_MAX);
        }
        self.unanswered = 0;
    }

    /// Returns whether to sleep now. What does not bring answers is done ever less often.
    pub(super) fn take_due(&mut self) -> bool {
        let is_due = self.unanswered >= self.due_at;
        if is_due {
            (self.unanswered, self.slept) = (0, true);
            self.due_at = (self.due_at * 2).min(UNANSWERED_TURNS_MAX);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_answer_are_given_no_sleep() {
        let mut idle_sleep = IdleSleep::default();
        for _ in 0..100 {
            for _ in 1..UNANSWERED_TURNS_MIN {
                idle_sleep.turn(0, HELD_PACKETS_MANY);
                assert!(!idle_sleep.take_due());
            }
            idle_sleep.turn(1, HELD_PACKETS_MANY);
            assert!(!idle_sleep.take_due());
        }
    }

    #[test]
    fn one_that_never_answers_costs_a_sleep_in_unanswered_turns_max() {
        let mut idle_sleep = IdleSleep::default();
        let turns = UNANSWERED_TURNS_MAX * 100;
        let mut sleeps_in = |turns| {
            let sleeps = (0..turns).filter(|_| {
                idle_sleep.turn(0, HELD_PACKETS_MANY);
                idle_sleep.take_due()
            });
            sleeps.count()
        };
        assert_eq!(sleeps_in(UNANSWERED_TURNS_MIN), 1);
        // Each doubling once, and then one in so many turns.
        assert!(sleeps_in(turns) <= 100 + 10);
        assert_eq!(sleeps_in(turns), 100);
        // They came by a sleep, so there is one sooner.
        (0..UNANSWERED_TURNS_MAX).for_each(|_| idle_sleep.turn(0, HELD_PACKETS_MANY));
        assert!(idle_sleep.take_due());
        idle_sleep.turn(1, HELD_PACKETS_MANY);
        assert_eq!(turns_before_sleep(&mut idle_sleep), UNANSWERED_TURNS_MAX / 4);
    }

    /// A worker on a core of its own needs none, however slow it is.
    #[test]
    fn one_that_answers_by_itself_is_given_ever_fewer_sleeps() {
        let mut idle_sleep = IdleSleep::default();
        for _ in 0..20 {
            for _ in 0..UNANSWERED_TURNS_MIN - 1 {
                idle_sleep.turn(0, HELD_PACKETS_MANY);
                assert!(!idle_sleep.take_due());
            }
            idle_sleep.turn(1, HELD_PACKETS_MANY);
        }
        assert_eq!(turns_before_sleep(&mut idle_sleep), UNANSWERED_TURNS_MAX);
        idle_sleep.turn(0, HELD_PACKETS_MANY - 1);
        assert_eq!(turns_before_sleep(&mut idle_sleep), UNANSWERED_TURNS_MIN, "until little is held");
    }

    /// Returns after how many turns without answers there is a sleep.
    fn turns_before_sleep(idle_sleep: &mut IdleSleep) -> u32 {
        let mut turns = 1;
        idle_sleep.turn(0, HELD_PACKETS_MANY);
        while !idle_sleep.take_due() {
            idle_sleep.turn(0, HELD_PACKETS_MANY);
            turns += 1;
        }
        turns
    }
}
