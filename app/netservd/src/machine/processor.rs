// SPDX-License-Identifier: Apache-2.0
//! What became of a thread's time: whether it ran, or could have run, or waited for something.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use netserv_container::thread_sleeps;
use rustix::time::{ClockId, clock_gettime};

/// What the kernel says of one thread's time.
#[derive(Debug)]
pub struct ThreadTime {
    /// Nothing if this kernel does not say it.
    schedstat: Option<File>,
}

/// How a thread spent its time. What is left of a clock's time it slept, or its machine had no processor: that of a virtual
/// one stands still at times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// How long it ran.
    pub running: Duration,
    /// How long it could have run and had no processor; zero if the kernel does not say it.
    pub runnable: Duration,
    /// How often it slept until something came that it waited for.
    pub sleeps: u64,
}

impl ThreadTime {
    /// Returns that of the calling thread, which alone may ask for it.
    pub fn of_this_thread() -> ThreadTime {
        ThreadTime { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Returns how the thread spent its time since it began.
    pub fn spent(&self) -> Spent {
        let mut text = [0; 96];
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        // The first number of the text is not up to date while the thread runs.
        let running = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        Spent { running, runnable: runnable(&text[..read]).unwrap_or_default(), sleeps: thread_sleeps() }
    }
}

impl Spent {
    /// Returns what was spent since an earlier look.
    pub fn since(self, earlier: Spent) -> Spent {
        Spent {
            running: self.running.saturating_sub(earlier.running),
            runnable: self.runnable.saturating_sub(earlier.runnable),
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
        }
    }
}

/// Reads the second of three numbers: nanoseconds on a processor, nanoseconds of waiting for one, and how often.
fn runnable(schedstat: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(schedstat).ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_kernels_text_is_understood() {
        assert_eq!(runnable(b"80 64616 1\n"), Some(Duration::from_nanos(64_616)));
        for other in [&b""[..], b"80", b"80 x 1", b"\xff \xff"] {
            assert_eq!(runnable(other), None);
        }
    }

    #[test]
    fn a_thread_that_sleeps_neither_runs_nor_could() {
        let time = ThreadTime::of_this_thread();
        let (begun, before) = (Instant::now(), time.spent());
        std::thread::sleep(Duration::from_millis(300));
        let spent = time.spent().since(before);
        assert!(spent.running + spent.runnable <= begun.elapsed() - Duration::from_millis(299), "{spent:?}");
        assert!(spent.sleeps >= 1, "{spent:?}");
    }

    #[test]
    fn a_thread_that_computes_does_not_sleep() {
        let time = ThreadTime::of_this_thread();
        let (begun, before) = (Instant::now(), time.spent());
        while begun.elapsed() < Duration::from_millis(50) {}
        let spent = time.spent().since(before);
        assert!(spent.sleeps == 0 && spent.running > Duration::ZERO, "{spent:?}");
    }
}
