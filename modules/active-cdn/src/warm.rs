// SPDX-License-Identifier: Apache-2.0
//! The program beside the requests: it obeys its user also while nobody asks, fetches what will be wanted, and sums up.

use netserv_http_caching::{Decision, key};
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
    let base = key::of(&site.request()).filter(|_| site.is_kept).ok_or("nothing of this host is kept")?;
    let (place, held) = match found::find(base, &site.request()) {
        Found::Stored(held) => match held.stored.decide(&site.request(), now()) {
            Decision::Serve => return Ok(()),
            Decision::ServeAndRefresh | Decision::Unavailable | Decision::Validate { .. } => {
                (held.place, Some(held.stored))
            }
        },
        Found::Nothing(place) => (place, None),
        Found::Pass => return Err("the origin said that it is not to be kept"),
    };
    match found::open(place, &site.request()) {
        (place, Filled::Writer(writer)) => match fill::ask(&site, &place, Some(writer), held.as_ref()) {
            Outcome::Filling(_, _, fill) => fill.run(told::obey).then_some(()).ok_or("it broke off"),
            Outcome::Refreshed(_) => Ok(()),
            Outcome::Fetched(..) => Err("the response is not to be kept"),
            Outcome::Failed(_) => Err("the origin does not answer"),
        },
        // Another one fetches it.
        (_, Filled::Held(_)) => Ok(()),
        (_, Filled::Alone | Filled::Pass) => Err("too much is fetched at a time, or it is not to be kept"),
    }
}

/// Nanoseconds after which it looks whether there is something to do without being told.
const PERIOD_NS: u64 = 1_000_000_000;
