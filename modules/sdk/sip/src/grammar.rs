// SPDX-License-Identifier: Apache-2.0
//! Lines, headers and quoted strings of a message (RFC 3261 §7.3, §25.1).

use netserv_sdk::text::ByteSet;

pub(crate) enum Header<'a> {
    End,
    One { name: &'a [u8], value: &'a [u8], goes_on: bool, rest: &'a [u8] },
}

/// Splits the first header off, with the lines that it goes on in (RFC 3261 §7.3.1).
#[inline]
pub(crate) fn split_header(bytes: &[u8]) -> Option<Header<'_>> {
    if bytes.starts_with(b"\r\n") {
        return Some(Header::End);
    }
    // Where the line ends does not wait for where its name does: the processor looks for both at once.
    let (mut line, mut rest) = split_line(bytes, 0)?;
    let name_end = TOKEN.find_other(bytes, 0);
    let mut colon = name_end;
    while matches!(line.get(colon)?, b' ' | b'\t') {
        colon += 1;
    }
    if name_end == 0 || line[colon] != b':' {
        return None;
    }
    let goes_on = matches!(rest.first(), Some(b' ' | b'\t'));
    while matches!(rest.first(), Some(b' ' | b'\t')) {
        (line, rest) = split_line(bytes, bytes.len() - rest.len())?;
    }
    Some(Header::One { name: &bytes[..name_end], value: line[colon + 1..].trim_ascii(), goes_on, rest })
}

/// Splits at the first end of a line at `from` or after it. Nothing if there is none, or a stray CR, LF or NUL before.
#[inline]
pub(crate) fn split_line(bytes: &[u8], from: usize) -> Option<(&[u8], &[u8])> {
    let (line, rest) = bytes.split_at_checked(LINE_END.find(bytes, from))?;
    Some((line, rest.strip_prefix(b"\r\n")?))
}

/// Returns whether both are the same but for upper and lower case, soonest if they are wholly the same.
#[inline]
pub(crate) fn is_text<const N: usize>(text: &[u8], expected: &[u8; N]) -> bool {
    text == expected || text.eq_ignore_ascii_case(expected)
}

/// Returns whether a From or To value has a tag parameter, outside its display name and address.
pub(crate) fn has_tag(value: &[u8]) -> bool {
    let (mut at, mut bracketed) = (0, false);
    loop {
        at = ADDRESS_PARTS.find(value, at);
        match value.get(at) {
            Some(b'<') => bracketed = true,
            Some(b'>') => bracketed = false,
            Some(b'"') if !bracketed => at = quote_end(value, at),
            Some(b';') if !bracketed && names_tag(&value[at + 1..]) => return true,
            Some(_) => {}
            None => return false,
        }
        at += 1;
    }
}

/// Returns whether the first parameter there has the name `tag`.
fn names_tag(parameters: &[u8]) -> bool {
    let Some((name, rest)) = parameters.trim_ascii_start().split_at_checked(3) else { return false };
    name.eq_ignore_ascii_case(b"tag") && matches!(rest.trim_ascii_start().first(), None | Some(b'=' | b';'))
}

/// Returns where the quoted string ends that starts at `start`: at its closing quote, or at the end of `bytes`.
pub(crate) fn quote_end(bytes: &[u8], start: usize) -> usize {
    let mut at = QUOTED_STOPS.find(bytes, start + 1);
    while bytes.get(at) == Some(&b'\\') {
        at = QUOTED_STOPS.find(bytes, at + 2);
    }
    at
}

pub(crate) const TOKEN: ByteSet =
    ByteSet::of(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.!%*_+`'~");
const LINE_END: ByteSet = ByteSet::of(b"\r\n\0");
const ADDRESS_PARTS: ByteSet = ByteSet::of(b"\"<>;");
const QUOTED_STOPS: ByteSet = ByteSet::of(b"\"\\");
/// Headers of a request; one with more is not looked at.
pub(crate) const HEADERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_where_they_count() {
        for value in ["<sip:a@b>;tag=1", "\"x\" <sip:a@b> ; Tag = 1", "sip:a@b;tag=1", "\"\\\"\" <sip:a@b>;x;tag=1"] {
            assert!(has_tag(value.as_bytes()), "{value}");
        }
        for value in ["<sip:a@b;tag=1>", "\";tag=1\" <sip:a@b>", "sip:a@b", "<sip:a@b>;tagged=1", "\"\\\";tag=1\" <a>"]
        {
            assert!(!has_tag(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn lines_end_at_the_first_control_byte_that_counts() {
        let text: Vec<u8> = (1..=255).filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        assert_eq!(split_line(&text, 0), None);
        for at in 0..text.len() {
            let mut line = text.clone();
            line.splice(at..at, *b"\r\n");
            assert_eq!(split_line(&line, 0), Some((&text[..at], &text[at..])));
            for stray in [b'\r', b'\n', 0] {
                let mut damaged = line.clone();
                damaged.insert(at, stray);
                assert_eq!(split_line(&damaged, 0), None);
            }
        }
    }
}
