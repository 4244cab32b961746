// SPDX-License-Identifier: Apache-2.0
//! Dates of HTTP (RFC 9110 §5.6.7), as time since 1970.
//!
//! httpdate refuses those from before 1970, those with a wrong day of the week, and leap seconds.

use std::time::Duration;

/// Reads a date in any of the three forms; nothing if it is none.
///
/// `now` says the century of years that have two digits.
#[must_use]
pub fn parse(text: &str, now: Duration) -> Option<Duration> {
    let parts: Vec<&str> = text.split(' ').collect();
    match *parts.as_slice() {
        [day_name, day, month, year, time, "GMT"] if day_name.ends_with(',') => {
            of(number(year, 4)?, month, number(day, 2)?, time)
        }
        [day_name, date, time, "GMT"] if day_name.ends_with(',') => {
            let mut parts = date.splitn(3, '-');
            let (day, month, year) = (number(parts.next()?, 2)?, parts.next()?, number(parts.next()?, 2)?);
            of(full_year(year, now), month, day, time)
        }
        [_, month, day, time, year] => of(number(year, 4)?, month, number(day, 2)?, time),
        [_, month, "", day, time, year] => of(number(year, 4)?, month, number(day, 1)?, time),
        _ => None,
    }
}

/// Writes a date in the preferred form.
#[must_use]
pub fn format(time: Duration) -> String {
    let days = i64::try_from(time.as_secs() / DAY).unwrap_or(0);
    let (year, month, day) = civil(days);
    let of_day = time.as_secs() % DAY;
    let name = DAYS.get(usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0)).unwrap_or(&"Thu");
    let month = usize::try_from(month - 1).ok().and_then(|month| MONTHS.get(month)).unwrap_or(&"Jan");
    format!("{name}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

fn of(year: i64, month: &str, day: i64, time: &str) -> Option<Duration> {
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let mut parts = time.splitn(3, ':');
    let mut next = || number(parts.next()?, 2);
    let (hours, minutes, seconds) = (next()?, next()?, next()?);
    // A leap second counts as the one before.
    if !(1..=31).contains(&day) || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let days = days_since_1970(year, month, day);
    let since = days * 86_400 + hours * 3600 + minutes * 60 + seconds.min(59);
    // What was before 1970 is as old as anything can be.
    Some(Duration::from_secs(u64::try_from(since).unwrap_or(0)))
}

/// Reads exactly so many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Returns the year that ends so and is not more than 50 years ahead.
fn full_year(year: i64, now: Duration) -> i64 {
    let (this, _, _) = civil(i64::try_from(now.as_secs() / DAY).unwrap_or(0));
    let year = this - this.rem_euclid(100) + year;
    if year > this + 50 { year - 100 } else { year }
}

/// Returns the days from 1970 to a date of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns year, month and day of the day so many days after 1970 began.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Seconds of a day.
const DAY: u64 = 86_400;
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_forms_are_read() {
        let now = Duration::from_secs(1_700_000_000);
        let time = Some(Duration::from_secs(784_111_777));
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(parse(text, now), time, "{text}");
        }
        assert_eq!(parse("Thursday, 18-Aug-50 02:01:18 GMT", now), parse("Thu, 18 Aug 2050 02:01:18 GMT", now));
        assert_eq!(parse("Thu, 01 Jan 1903 00:00:00 GMT", now), Some(Duration::ZERO));
    }

    #[test]
    fn whatever_else_is_no_date() {
        for text in [
            "",
            "0",
            "-1",
            "soon",
            "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 24:00:00 GMT",
            "Thu, 00 Aug 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT, ",
            "Thu, 18 Aug 99999999999999999999 02:01:18 GMT",
        ] {
            assert_eq!(parse(text, Duration::ZERO), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for seconds in [0, 68_169_599, 951_782_400, 1_709_210_096, 4_102_444_800, 9_999_999_999] {
            let time = Duration::from_secs(seconds);
            assert_eq!(parse(&format(time), Duration::ZERO), Some(time), "{}", format(time));
        }
        assert_eq!(format(Duration::from_secs(784_111_777)), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
