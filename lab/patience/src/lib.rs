// SPDX-License-Identifier: Apache-2.0
//! Waits whose time grows with the machine's load: each says what it waits for, and what it saw if that does not come.

use std::fmt;
use std::time::{Duration, Instant};

/// The most by which load makes a time longer.
const GROWTH_MAX: f64 = 10.0;
/// How long a wait says nothing.
const SILENCE: Duration = Duration::from_secs(5);
/// A pause lasts four times as long as the look before it, so that looking takes a fifth of a core at most; it lasts so long at
/// least and at most.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Waits until a condition holds, for the base time multiplied by the machine's load per core, as [`Load::grown`] has it.
///
/// The load is read again while the wait lasts, and the highest counts. `what` completes the sentence "waiting for …", which people
/// are told once if the wait lasts some seconds.
///
/// # Errors
/// The condition does not hold in that time.
pub fn wait_for(what: &str, base: Duration, mut condition: impl FnMut() -> bool) -> Result<(), GaveUp> {
    let begun = Instant::now();
    let mut wait = Wait::new(base, Load::now());
    loop {
        let looked = Instant::now();
        if condition() {
            return Ok(());
        }
        let waited = begun.elapsed();
        match wait.next(waited, Load::now()) {
            Next::Look => {}
            Next::Tell => {
                eprintln!("  … waiting for {what} ({}; up to {:.0} s)", wait.load, wait.bound().as_secs_f64());
            }
            Next::GiveUp => return Err(GaveUp { what: what.to_owned(), waited, load: wait.load, seen: None }),
        }
        std::thread::sleep(pause_after(looked.elapsed()));
    }
}

/// Returns how long a wait pauses after a look that took so long.
pub fn pause_after(look: Duration) -> Duration {
    (4 * look).clamp(PAUSE_MIN, PAUSE_MAX)
}

/// Returns a time for another program's wait: multiplied by the load that the machine has at the moment, as [`Load::grown`] has it.
pub fn grown(base: Duration) -> Duration {
    Load::now().grown(base)
}

/// The machine's load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Processes that wanted a core, on average over the last minute.
    pub average: f64,
    /// The machine's cores.
    pub cores: u32,
}

impl Load {
    /// Reads the load that the machine has; none if `/proc/loadavg` is not what it is on Linux.
    pub fn read() -> Option<Load> {
        let text = std::fs::read_to_string("/proc/loadavg").ok()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Load::of(&text, u32::try_from(cores).ok()?)
    }

    /// Returns the load that the machine has; none if it cannot be read.
    pub fn now() -> Load {
        Load::read().unwrap_or(Load { average: 0.0, cores: 1 })
    }

    /// Returns the load that a text of `/proc/loadavg` tells of.
    fn of(loadavg: &str, cores: u32) -> Option<Load> {
        let average: f64 = loadavg.split_whitespace().next()?.parse().ok()?;
        average.is_finite().then_some(Load { average, cores })
    }

    /// Returns how many processes wanted each core.
    pub fn per_core(self) -> f64 {
        self.average / f64::from(self.cores.max(1))
    }

    /// Returns whether there is more to do than the machine has cores for, so that times that are measured on it do not count.
    pub fn is_busy(self) -> bool {
        self.per_core() >= 1.0
    }

    /// Returns a time multiplied by the load per core: never shorter than the time itself, and at most ten times as long.
    pub fn grown(self, base: Duration) -> Duration {
        base.mul_f64(self.per_core().clamp(1.0, GROWTH_MAX))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.cores == 1 { "" } else { "s" };
        write!(f, "load {:.1} on {} core{plural}", self.average, self.cores)
    }
}

/// A wait that ended without what it was for.
#[derive(Clone, Debug)]
pub struct GaveUp {
    what: String,
    waited: Duration,
    load: Load,
    seen: Option<String>,
}

impl GaveUp {
    /// Adds what was there in place of what was waited for, such as a log.
    pub fn seeing(self, seen: impl Into<String>) -> GaveUp {
        GaveUp { seen: Some(seen.into()), ..self }
    }
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gave up waiting for {} after {:.1} s ({})", self.what, self.waited.as_secs_f64(), self.load)?;
        match &self.seen {
            Some(seen) => write!(f, "; seen last:\n{}", seen.trim_end()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for GaveUp {}

/// A wait that lasts. Time and load come in.
struct Wait {
    base: Duration,
    /// The highest load since it began.
    load: Load,
    is_told: bool,
}

/// What a wait does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It looks again.
    Look,
    /// It tells people what it waits for, and looks again.
    Tell,
    /// It ends.
    GiveUp,
}

impl Wait {
    fn new(base: Duration, load: Load) -> Wait {
        Wait { base, load, is_told: false }
    }

    fn bound(&self) -> Duration {
        self.load.grown(self.base)
    }

    /// Returns what to do after so long a time, with the load that the machine has at that moment.
    fn next(&mut self, waited: Duration, load: Load) -> Next {
        if load.per_core() > self.load.per_core() {
            self.load = load;
        }
        if waited >= self.bound() {
            return Next::GiveUp;
        }
        if waited >= SILENCE && !self.is_told {
            self.is_told = true;
            return Next::Tell;
        }
        Next::Look
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_grows_with_the_load_and_has_a_bound() {
        let check = |average, cores, expected_s| {
            let load = Load { average, cores };
            assert_eq!(load.grown(seconds(20)), seconds(expected_s), "{load}");
        };
        check(0.0, 2, 20);
        check(2.0, 2, 20);
        check(5.0, 2, 50);
        check(5.0, 1, 100);
        check(15.0, 4, 75);
        check(1000.0, 2, 200);
        check(3.0, 0, 60);
    }

    #[test]
    fn a_machine_is_busy_from_one_process_for_each_core_on() {
        assert!(!Load { average: 1.99, cores: 2 }.is_busy());
        assert!(Load { average: 2.0, cores: 2 }.is_busy());
    }

    #[test]
    fn the_kernels_text_is_understood() {
        assert_eq!(Load::of("15.25 0.50 0.20 2/300 4711\n", 2), Some(Load { average: 15.25, cores: 2 }));
        for text in ["", "\n", "much 0.50", "nan 0.50", "inf"] {
            assert_eq!(Load::of(text, 2), None, "{text:?}");
        }
        assert!(Load::read().unwrap().cores > 0);
    }

    #[test]
    fn a_wait_tells_once_what_it_is_for_and_then_gives_up() {
        let mut wait = Wait::new(seconds(20), of_two_cores(0.5));
        assert_eq!(wait.next(seconds(4), of_two_cores(0.5)), Next::Look);
        assert_eq!(wait.next(seconds(5), of_two_cores(0.5)), Next::Tell);
        assert_eq!(wait.next(seconds(6), of_two_cores(0.5)), Next::Look);
        assert_eq!(wait.next(seconds(20), of_two_cores(0.5)), Next::GiveUp);
    }

    #[test]
    fn a_short_wait_gives_up_without_a_word() {
        let mut wait = Wait::new(seconds(2), of_two_cores(0.0));
        assert_eq!(wait.next(seconds(5), of_two_cores(0.0)), Next::GiveUp);
    }

    #[test]
    fn load_that_comes_during_a_wait_makes_it_longer() {
        let mut wait = Wait::new(seconds(20), of_two_cores(0.0));
        assert_eq!(wait.next(seconds(19), of_two_cores(15.0)), Next::Tell);
        // What was slow then is not made good at once.
        assert_eq!(wait.next(seconds(149), of_two_cores(1.0)), Next::Look);
        assert_eq!((wait.bound(), wait.load), (seconds(150), of_two_cores(15.0)));
        assert_eq!(wait.next(seconds(150), of_two_cores(1.0)), Next::GiveUp);
    }

    #[test]
    fn who_gives_up_says_what_was_waited_for_how_long_the_load_and_what_was_seen() {
        let (what, load) = ("Icecast to take connections".to_owned(), of_two_cores(15.2));
        let gave_up = GaveUp { what, waited: seconds(152), load, seen: None };
        let said = "gave up waiting for Icecast to take connections after 152.0 s (load 15.2 on 2 cores)";
        assert_eq!(gave_up.to_string(), said);
        assert_eq!(gave_up.seeing("no log\n").to_string(), format!("{said}; seen last:\nno log"));
        assert_eq!(Load { average: 0.0, cores: 1 }.to_string(), "load 0.0 on 1 core");
    }

    #[test]
    fn a_wait_ends_when_its_condition_holds() {
        let mut looks = 0;
        let third = || {
            looks += 1;
            looks == 3
        };
        wait_for("the third look", seconds(20), third).unwrap();
        let gave_up = wait_for("what never comes", Duration::ZERO, || false).unwrap_err();
        assert!(gave_up.to_string().starts_with("gave up waiting for what never comes after "), "{gave_up}");
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn of_two_cores(average: f64) -> Load {
        Load { average, cores: 2 }
    }
}
