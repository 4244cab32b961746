// SPDX-License-Identifier: Apache-2.0
//! How old a response is and for how long it is fresh (RFC 9111 §4.2).

use std::time::Duration;

use crate::date;
use crate::directives::{ResponseControl, delta_seconds};
use crate::fields::{Fields, members, text};
use crate::limits::{DELTA_SECONDS_MAX, HEURISTIC_MAX};
use crate::policy::Times;

/// Why a response is fresh for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The response says how long.
    Explicit(Duration),
    /// The response says nothing, and may be guessed about.
    Unsaid,
}

/// Returns what the response says of its lifetime.
pub fn lifetime(control: &ResponseControl, fields: &Fields, date: Duration, now: Duration) -> Lifetime {
    if let Some(seconds) = control.s_maxage.or(control.max_age) {
        return Lifetime::Explicit(Duration::from_secs(seconds));
    }
    match text(fields, "expires") {
        // What is no date is in the past (RFC 9111 §5.3).
        Some(expires) if !control.is_targeted => {
            Lifetime::Explicit(date::parse(expires, now).unwrap_or_default().saturating_sub(date))
        }
        Some(_) | None => Lifetime::Unsaid,
    }
}

/// Returns a tenth of the time that passed since the last change (RFC 9111 §4.2.2).
pub fn heuristic(fields: &Fields, date: Duration, now: Duration) -> Option<Duration> {
    let modified = date::parse(text(fields, "last-modified")?, now)?;
    Some((date.saturating_sub(modified) / 10).min(HEURISTIC_MAX))
}

/// Returns how old a response is as it comes: the corrected initial age. If it names no cache on its way (`Age`, `Via`), it comes from its
/// origin, and only the delay counts: an origin whose clock is late would have nothing cached otherwise (RFC 9111 §4.2.3).
pub fn initial_age(fields: &Fields, date: Duration, times: &Times) -> Duration {
    let apparent = Duration::from_secs(times.received.as_secs().saturating_sub(date.as_secs()));
    // Of a list the first member counts (RFC 9111 §5.1). What is no age may stand for any.
    let said = match members(fields, "age").next() {
        Some(age) => delta_seconds(age).unwrap_or(DELTA_SECONDS_MAX),
        None => 0,
    };
    let delay = times.received.saturating_sub(times.requested);
    if text(fields, "age").is_none() && text(fields, "via").is_none() {
        return delay;
    }
    apparent.max(Duration::from_secs(said) + delay)
}

/// Returns the date of a response: when it came, if it says none.
pub fn date(fields: &Fields, received: Duration) -> Duration {
    text(fields, "date").and_then(|date| date::parse(date, received)).unwrap_or(received)
}
