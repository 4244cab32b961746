// SPDX-License-Identifier: Apache-2.0
//! Durations and sizes as people write and read them.

use std::time::Duration;

use netserv_model::limits::FREEZE_TIME_MAX;

/// Parses `500ms`, `90s`, `10m`, `1h`, `7d`, sums such as `1h30m`, and a bare number of seconds.
///
/// # Errors
/// The text is something else or too long a time.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not a duration such as 90s, 10m, 1h30m or 7d");
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let number: u64 = number.parse().map_err(|_| bad())?;
        let millis = match unit {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            "d" => Some(86_400_000),
            _ => None,
        };
        let millis = millis.and_then(|unit: u64| unit.checked_mul(number)).ok_or_else(bad)?;
        total = total.checked_add(Duration::from_millis(millis)).ok_or_else(bad)?;
        rest = tail;
    }
    if text.is_empty() { Err(bad()) } else { Ok(total) }
}

/// Parses for how long a module may stand still: whole seconds, as nodes take it.
///
/// # Errors
/// The text is something else, or no such time.
pub fn parse_freeze(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text)?;
    match time.subsec_nanos() == 0 && time >= Duration::from_secs(1) && time <= FREEZE_TIME_MAX {
        true => Ok(time),
        false => Err(format!("`{text}` is no time of whole seconds, 1 s to {} s", FREEZE_TIME_MAX.as_secs())),
    }
}

/// Writes seconds as `1h 30m`, with the two largest units that are not zero.
pub fn format_seconds(seconds: u64) -> String {
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(3);
    let shown = parts[first..].iter().take(2).filter(|(count, _)| *count > 0 || seconds == 0);
    shown.map(|(count, unit)| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
}

/// Writes microseconds as `0.4 ms`, `12.1 ms` or `3.2 s`.
pub fn format_micros(micros: u64) -> String {
    if micros < 1_000_000 {
        format!("{}.{} ms", micros / 1000, micros / 100 % 10)
    } else {
        format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10)
    }
}

/// Writes a round trip as `0.42 ms`, and from 10 ms on as [`format_micros`] does.
pub fn format_rtt(micros: u64) -> String {
    if micros < 10_000 { format!("{}.{:02} ms", micros / 1000, micros / 10 % 100) } else { format_micros(micros) }
}

/// Writes bytes as `812 B`, `3.1 KiB`, `4.0 MiB` or `2.5 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

/// Writes nanoseconds of processor time as `0.4 ms`, `3.2 s`, `12m 5s` or `3h 20m`.
pub fn format_cpu(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    if seconds < 60 { format_micros(ns / 1000) } else { format_seconds(seconds) }
}

/// Writes bytes times seconds as `812 B·s`, `3.1 MiB·s` or `2.5 GiB·h`.
pub fn format_byte_seconds(byte_seconds: u64) -> String {
    let hours = byte_seconds / 3600;
    if hours >> 30 > 0 { format!("{}·h", format_bytes(hours)) } else { format!("{}·s", format_bytes(byte_seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in
            [("500ms", 500), ("90s", 90_000), ("60", 60_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "h", "1x", "1h30", "-1s", "1.5h", "99999999999999999999s", "999999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_shown_with_units() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (3600, "1h"), (5400, "1h 30m"), (90_061, "1d 1h"), (86_460, "1d")]
        {
            assert_eq!(format_seconds(seconds), text);
        }
        assert_eq!(format_micros(412), "0.4 ms");
        assert_eq!(format_micros(12_150), "12.1 ms");
        assert_eq!(format_micros(3_260_000), "3.2 s");
        assert_eq!([59_900_000_000, 725_000_000_000].map(format_cpu), ["59.9 s", "12m 5s"]);
        assert_eq!([812, 5 << 20, 7200 << 30].map(format_byte_seconds), ["812 B·s", "5.0 MiB·s", "2.0 GiB·h"]);
        assert_eq!(format_bytes(812), "812 B");
        assert_eq!(format_bytes(3200), "3.1 KiB");
        assert_eq!(format_bytes(u64::MAX), "17179869183.9 GiB");
    }
}
