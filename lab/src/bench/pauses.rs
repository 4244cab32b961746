// SPDX-License-Identifier: Apache-2.0
//! The machine's own pauses: how often and how long a core stands still for a program that wants nothing but it.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;

/// What counts as a pause.
pub const PAUSE: Duration = Duration::from_millis(1);

/// The pauses of all cores together while they were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pauses {
    /// Seconds that each core was looked at, summed up.
    pub seconds: f64,
    /// How many there were.
    pub count: usize,
    /// How long they were together, in ms.
    pub sum_ms: f64,
    /// The longest one, in ms.
    pub longest_ms: f64,
}

impl Pauses {
    /// Keeps every core busy for a time, one thread each, and looks when they do not come to run. Other programs on the
    /// machine make pauses, too.
    pub fn look(length: Duration) -> Pauses {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let watches: Vec<_> = (0..cores).map(|core| std::thread::spawn(move || watch(core, length))).collect();
        let seen = watches.into_iter().filter_map(|watch| watch.join().ok());
        seen.fold(Pauses::default(), Pauses::and)
    }

    /// Returns these and others.
    pub fn and(self, other: Pauses) -> Pauses {
        Pauses {
            seconds: self.seconds + other.seconds,
            count: self.count + other.count,
            sum_ms: self.sum_ms + other.sum_ms,
            longest_ms: self.longest_ms.max(other.longest_ms),
        }
    }

    /// Returns them in words.
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    pub fn line(&self) -> String {
        let seconds = self.seconds.max(f64::MIN_POSITIVE);
        format!(
            "the machine stood still {:.1} times a second and core for 1 ms or more, {:.1} ms at most, {:.2} % of the time",
            self.count as f64 / seconds,
            self.longest_ms,
            self.sum_ms / 10.0 / seconds
        )
    }
}

fn watch(core: usize, length: Duration) -> Pauses {
    let mut cores = CpuSet::new();
    cores.set(core);
    // A machine may have fewer cores for us than it has; then two threads share one, which they see as pauses.
    let _ = sched_setaffinity(None, &cores);
    let began = Instant::now();
    let mut pauses = Pauses::default();
    let mut last = began;
    while last - began < length {
        let now = Instant::now();
        pauses.add(now - last);
        last = now;
    }
    pauses.seconds = (last - began).as_secs_f64();
    pauses
}

impl Pauses {
    fn add(&mut self, gap: Duration) {
        if gap >= PAUSE {
            let ms = gap.as_secs_f64() * 1000.0;
            self.count += 1;
            self.sum_ms += ms;
            self.longest_ms = self.longest_ms.max(ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_gaps_are_pauses() {
        let mut one = Pauses { seconds: 1.0, ..Pauses::default() };
        [0, 999, 1000, 5000].into_iter().for_each(|micros| one.add(Duration::from_micros(micros)));
        assert_eq!((one.count, one.sum_ms, one.longest_ms), (2, 6.0, 5.0));
        let both = one.and(Pauses { seconds: 1.0, count: 1, sum_ms: 9.0, longest_ms: 9.0 });
        assert_eq!((both.count, both.longest_ms), (3, 9.0));
        assert!(both.line().contains("1.5 times") && both.line().contains("0.75 %"), "{}", both.line());
    }

    #[test]
    fn cores_are_looked_at_together() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let pauses = Pauses::look(Duration::from_millis(5));
        assert!(pauses.seconds >= 0.005 * f64::from(u16::try_from(cores).unwrap()));
    }
}
