// SPDX-License-Identifier: Apache-2.0
//! How fast a media job works, by the processor time that it takes: one whose input does not come, or whose output nobody reads, takes little.

use std::time::{Duration, Instant};

use crate::limits::{MEDIA_SLOW_TIME, MEDIA_WORK_SHARE};

/// The pace of a job.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    since: Instant,
    /// Its processor time then.
    before: Duration,
    /// What it took in the time before that.
    took: Option<Duration>,
}

impl Pace {
    /// Returns that of a job which has begun.
    pub fn begin(now: Instant) -> Pace {
        Pace { since: now, before: Duration::ZERO, took: None }
    }

    /// Looks at the processor time once it is time for that.
    pub fn look(&mut self, now: Instant, cpu_time: impl FnOnce() -> Duration) {
        if now.duration_since(self.since) < MEDIA_SLOW_TIME {
            return;
        }
        let cpu_time = cpu_time();
        *self = Pace { since: now, before: cpu_time, took: Some(cpu_time.saturating_sub(self.before)) };
    }

    /// Returns how slow it is, the more the slower; nothing of a job that is at work, or of which that is not known yet.
    pub fn slowness(&self) -> Option<Duration> {
        let work = MEDIA_SLOW_TIME / MEDIA_WORK_SHARE;
        self.took.and_then(|took| work.checked_sub(took)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_slow_that_takes_little_of_the_processor_for_a_while() {
        let begun = Instant::now();
        let mut pace = Pace::begin(begun);
        let work = MEDIA_SLOW_TIME / MEDIA_WORK_SHARE;
        pace.look(begun + MEDIA_SLOW_TIME / 2, || panic!("it is not time"));
        assert_eq!(pace.slowness(), None);
        pace.look(begun + MEDIA_SLOW_TIME, || work);
        assert_eq!(pace.slowness(), None, "it was at work");
        pace.look(begun + 2 * MEDIA_SLOW_TIME, || work + work / 4);
        assert_eq!(pace.slowness(), Some(work - work / 4));
        pace.look(begun + 3 * MEDIA_SLOW_TIME, || work + work / 4);
        assert_eq!(pace.slowness(), Some(work), "it stands still");
    }
}
