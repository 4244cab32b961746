// SPDX-License-Identifier: Apache-2.0
//! Parts of bodies (RFC 9110 §14).

/// A part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// How many bytes; at least one.
    pub length: u64,
}

/// What `Range` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// All of it: there is no range, several, or none that can be read.
    Whole,
    /// One part.
    Part(ByteRange),
    /// Nothing that is there: 416.
    Nothing,
}

/// Reads `Range` for a body of `size` bytes. Several parts are answered by the whole.
pub fn asked(range: &str, size: u64) -> Asked {
    let Some((unit, set)) = range.split_once('=') else { return Asked::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Asked::Whole;
    }
    let Some((first, last)) = set.trim().split_once('-') else { return Asked::Whole };
    match (position(first), position(last)) {
        (Some(Some(first)), Some(last)) if last.is_none_or(|last| last >= first) => {
            let end = last.map_or(size, |last| size.min(last.saturating_add(1)));
            part(first, end)
        }
        // The last so many bytes.
        (Some(None), Some(Some(length))) => part(size.saturating_sub(length), size),
        _ => Asked::Whole,
    }
}

fn part(start: u64, end: u64) -> Asked {
    match end.checked_sub(start) {
        Some(length) if length > 0 => Asked::Part(ByteRange { start, length }),
        // There is nothing in an empty body that is not asked for: all of it is the answer, as nginx has it.
        Some(_) if start == 0 => Asked::Whole,
        Some(_) | None => Asked::Nothing,
    }
}

/// Reads a position, or that there is none; nothing if it is something else.
fn position(text: &str) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    let add = |sum: u64, digit: u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| Some(text.bytes().fold(0, add)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let of = |start, length| Asked::Part(ByteRange { start, length });
        for (text, wanted) in [
            ("bytes=0-1", of(0, 2)),
            ("bytes=1-", of(1, 10)),
            ("bytes=-1", of(10, 1)),
            ("bytes=-99", of(0, 11)),
            ("Bytes=10-99", of(10, 1)),
            ("bytes=0-18446744073709551615", of(0, 11)),
            ("bytes=0-99999999999999999999999", of(0, 11)),
            ("bytes=11-", Asked::Nothing),
            ("bytes=99999999999999999999999-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=5-4", Asked::Whole),
            ("bytes=0-1,3-4", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("bytes=1--2", Asked::Whole),
            ("lines=0-1", Asked::Whole),
            ("", Asked::Whole),
        ] {
            assert_eq!(asked(text, 11), wanted, "{text}");
        }
    }

    /// Goal: a file without a byte can be downloaded, whatever range a client makes of that (`github.com/NVIDIA/nvcf/issues/1338`).
    #[test]
    fn all_of_nothing_is_nothing() {
        for text in ["bytes=0-", "bytes=0-0", "bytes=0--1", "bytes=-5", "bytes=-0"] {
            assert_eq!(asked(text, 0), Asked::Whole, "{text}");
        }
        assert_eq!(asked("bytes=5-", 0), Asked::Nothing);
    }
}
