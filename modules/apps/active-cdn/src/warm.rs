// SPDX-License-Identifier: Apache-2.0
//! The program beside the requests: it obeys its user also while nobody asks, fetches what will be wanted, and sums up.

use netserv_http_caching::Decision;
use netserv_server_sdk::control::inbox;
use netserv_server_sdk::resident;
use netserv_server_sdk::wasi::clocks::monotonic_clock;
use netserv_server_sdk::wasi::io::poll;

use crate::fill::{self, Outcome, count};
use crate::found::{self, Filled, Found};
use crate::site::{Site, now};
use crate::{process, told, usage};

fn run() {
    process::check();
    loop {
        told::obey();
        while let Some(lines) = told::next_to_warm() {
            for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
                warm(line);
                told::obey();
            }
        }
        usage::sum_up();
        let message = inbox::subscribe();
        let later = monotonic_clock::subscribe_duration(PERIOD_NS);
        poll::poll(&[&message, &later]);
    }
}

resident!(run);

/// Has something be in the cache, and says so by a counter.
fn warm(line: &str) {
    match fetch(line) {
        Ok(()) => count("warmed"),
        Err(why) => {
            count("warm-errors");
            eprintln!("{line} was not fetched: {why}");
        }
    }
}

fn fetch(line: &str) -> Result<(), &'static str> {
    let site = Site::of_target(line).ok_or("it is no URL, and no path of the origin's")?;
    let base = site.key().filter(|_| site.is_kept).ok_or("nothing of this host is kept")?;
    let (place, held) = match found::find(base, &site.request()) {
        Found::Stored(held) => match held.stored.decide(&site.request(), now()) {
            Decision::Serve => return Ok(()),
            Decision::ServeAndRefresh | Decision::Unavailable | Decision::Validate { .. } => {
                (held.place.clone(), Some(held))
            }
        },
        Found::Nothing(place) => (place, None),
        Found::Pass => return Err("the origin said that it is not to be kept"),
    };
    if !site.may_ask() {
        return Err("too many wait for the origin");
    }
    match found::open(place, &site.request()) {
        (place, Filled::Writer(writer)) => match fill::ask(&site, &place, Some(writer), held.as_ref()) {
            Outcome::Filling(_, _, fill) => {
                let mut pace = Pace::begin(monotonic_clock::now());
                let goes_on = |length| {
                    told::obey();
                    if pace.is_time(monotonic_clock::now()) {
                        usage::sum_up();
                    }
                    pace.goes_on(monotonic_clock::now(), length)
                };
                fill.run(goes_on).then_some(()).ok_or("it broke off, or comes too slowly")
            }
            Outcome::Refreshed(_) => Ok(()),
            Outcome::Fetched(..) => Err("the response is not to be kept"),
            Outcome::Failed(_) => Err("the origin does not answer"),
        },
        // Another one fetches it.
        (_, Filled::Held(_)) => Ok(()),
        (_, Filled::Alone | Filled::Pass | Filled::Stalled) => {
            Err("too much is fetched at a time, or it is not to be kept")
        }
    }
}

/// How something comes that is fetched beforehand, while which the others wait.
struct Pace {
    begun: u64,
    bytes: u64,
    /// When the totals were made last.
    summed: u64,
}

impl Pace {
    fn begin(now: u64) -> Pace {
        Pace { begun: now, bytes: 0, summed: now }
    }

    /// Returns whether the totals are to be made again, which each second is enough for.
    fn is_time(&mut self, now: u64) -> bool {
        let is_time = now.saturating_sub(self.summed) >= PERIOD_NS;
        self.summed = if is_time { now } else { self.summed };
        is_time
    }

    /// Takes note of some bytes. Returns whether the others can wait for the rest.
    fn goes_on(&mut self, now: u64, bytes: u64) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let seconds = now.saturating_sub(self.begun) / 1_000_000_000;
        self.bytes >= seconds.saturating_sub(SLOW_SECONDS_MAX).saturating_mul(BYTES_PER_SECOND_MIN)
    }
}

/// Nanoseconds after which it looks whether there is something to do without being told.
const PERIOD_NS: u64 = 1_000_000_000;
/// Bytes in a second, in the long run, of what is fetched beforehand; what comes more slowly is given up.
const BYTES_PER_SECOND_MIN: u64 = 1024;
/// Seconds that it may lag behind that.
const SLOW_SECONDS_MAX: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_comes_too_slowly_does_not_keep_the_rest_waiting() {
        let given_up = |rate: u64| {
            let mut pace = Pace::begin(5 * SECOND);
            (1..600).find(|second| !pace.goes_on((5 + second) * SECOND, rate))
        };
        assert_eq!(given_up(0), Some(SLOW_SECONDS_MAX + 1));
        assert_eq!(given_up(BYTES_PER_SECOND_MIN / 2), Some(2 * SLOW_SECONDS_MAX + 1));
        assert_eq!(given_up(BYTES_PER_SECOND_MIN), None);
    }

    #[test]
    fn totals_are_made_each_second_meanwhile() {
        let mut pace = Pace::begin(0);
        let times: Vec<u64> = (1..=30).filter(|tenth| pace.is_time(tenth * SECOND / 10)).collect();
        assert_eq!(times, [10, 20, 30]);
    }
}
