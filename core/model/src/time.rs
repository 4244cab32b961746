// SPDX-License-Identifier: Apache-2.0
//! Time as a value: the engines never read a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point on the node's monotonic clock, in nanoseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instant(u64);

impl Instant {
    /// Returns the instant `nanos` nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Returns the instant `millis` milliseconds after the clock's start.
    pub const fn from_millis(millis: u64) -> Instant {
        Instant(millis * 1_000_000)
    }

    /// Returns the nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns how long `earlier` lies before `self`; zero if it does not.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Wall-clock time in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// The last second of the year 9999, the latest that certificates and texts can name.
    pub const LAST: UnixTime = UnixTime::from_secs(253_402_300_799);

    /// Returns the time `seconds` after the epoch.
    pub const fn from_secs(seconds: u64) -> UnixTime {
        UnixTime(seconds * 1000)
    }

    /// Returns the distance between two times, whichever is first.
    pub fn distance(self, other: UnixTime) -> Duration {
        Duration::from_millis(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for UnixTime {
    type Output = UnixTime;

    fn add(self, rhs: Duration) -> UnixTime {
        UnixTime(self.0.saturating_add(u64::try_from(rhs.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for UnixTime {
    /// Writes RFC 3339 in UTC with whole seconds, as in `2026-11-21T02:00:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let of_day = seconds % 86_400;
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
    }
}

impl std::str::FromStr for UnixTime {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<UnixTime, ParseTimeError> {
        parse_rfc3339_utc(text).ok_or(ParseTimeError)
    }
}

/// Text that is not a UTC time of the form `2026-11-21T02:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a UTC time such as 2026-11-21T02:00:00Z")]
pub struct ParseTimeError;

/// Both clocks, read once per event: leases and timers use `instant`, signatures and replay use `wall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The monotonic clock.
    pub instant: Instant,
    /// The wall clock.
    pub wall: UnixTime,
}

impl Add<Duration> for Now {
    type Output = Now;

    fn add(self, rhs: Duration) -> Now {
        Now { instant: self.instant + rhs, wall: self.wall + rhs }
    }
}

fn parse_rfc3339_utc(text: &str) -> Option<UnixTime> {
    let bytes = text.as_bytes();
    if bytes.len() != 20 || !text.is_ascii() {
        return None;
    }
    for (at, expected) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')] {
        if bytes[at] != expected {
            return None;
        }
    }
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = &text[from..to];
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    (civil_from_days(days) == (year, month, day))
        .then(|| UnixTime::from_secs(days * 86_400 + hour * 3600 + minute * 60 + second))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, counting years from March.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    shifted_year * 365 + leap_days + day_of_year - 719_468
}

fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let since_year_zero = days + 719_468;
    let era = since_year_zero / 146_097;
    let day_of_era = since_year_zero % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip_through_text() {
        for seconds in [0, 951_782_400, 951_868_800, 1_795_226_400, 4_102_444_799] {
            let time = UnixTime::from_secs(seconds);
            assert_eq!(time.to_string().parse::<UnixTime>(), Ok(time));
        }
        assert_eq!(UnixTime::from_secs(951_827_696).to_string(), "2000-02-29T12:34:56Z");
    }

    #[test]
    fn impossible_times_are_refused() {
        for text in ["", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21 02:00:00Z"]
        {
            assert_eq!(text.parse::<UnixTime>(), Err(ParseTimeError), "{text}");
        }
    }
}
