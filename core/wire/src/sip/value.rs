// SPDX-License-Identifier: Apache-2.0
//! What is inside of the values of a few headers.

use memchr::{memchr, memchr2, memchr3};

use super::Span;

/// A From or To value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) uri: Span,
    pub(super) tag: Option<Span>,
}

/// The first of the values of a Via.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Via {
    pub(super) whole: Span,
    pub(super) sent_by: Span,
    pub(super) branch: Option<Span>,
}

/// Returns the URI and the tag of a From or To value (RFC 3261 §20.10).
pub(super) fn address(message: &[u8], value: Span) -> Option<Address> {
    let end = value.end();
    let mut at = usize::from(value.start);
    while matches!(message[..end].get(at), Some(byte) if *byte != b'<' && *byte != b';') {
        at = match message[at] {
            b'"' => quote_end(&message[..end], at)? + 1,
            _ => at + 1,
        };
    }
    let (uri, parameters) = if message[..end].get(at) == Some(&b'<') {
        let close = at + 1 + memchr(b'>', &message[at + 1..end])?;
        (Span::between(at + 1, close), close + 1)
    } else {
        (trimmed(message, usize::from(value.start), at), at)
    };
    if uri.length == 0 || memchr3(b' ', b'\t', b'"', uri.of(message)).is_some() {
        return None;
    }
    Some(Address { uri, tag: parameter(message, parameters, end, b"tag")? })
}

/// Returns the first part of a Via value (RFC 3261 §20.42).
pub(super) fn via(message: &[u8], value: Span) -> Option<Via> {
    let start = usize::from(value.start);
    let end = part_end(message, start, value.end(), b',')?;
    let whole = trimmed(message, start, end);
    let protocol_end = sent_protocol_end(message, start, end)?;
    let first_parameter = part_end(message, protocol_end, end, b';')?;
    let sent_by = trimmed(message, protocol_end, first_parameter);
    let is_spaced = message.get(protocol_end).is_some_and(u8::is_ascii_whitespace);
    if !is_spaced || sent_by.length == 0 {
        return None;
    }
    let branch = parameter(message, first_parameter, end, b"branch")?;
    Some(Via { whole, sent_by, branch })
}

/// Returns the number and the method of a CSeq value (RFC 3261 §20.16).
pub(super) fn cseq(message: &[u8], value: Span) -> Option<(u32, Span)> {
    let text = value.of(message);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = number(&text[..digits]).filter(|number| *number < 1 << 31)?;
    let method = trimmed(message, usize::from(value.start) + digits, value.end());
    let is_spaced = text.get(digits)?.is_ascii_whitespace();
    (is_spaced && is_token(method.of(message))).then_some((number, method))
}

/// Returns a decimal number below 2³² of at most ten digits.
pub(super) fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 10 {
        return None;
    }
    digits.iter().try_fold(0_u32, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Returns a place without the white space around it.
pub(super) fn trimmed(message: &[u8], start: usize, end: usize) -> Span {
    let text = &message[start..end.max(start)];
    let lead = text.len() - text.trim_ascii_start().len();
    Span::between(start + lead, start + lead + text.trim_ascii().len())
}

/// Returns whether this is a token (RFC 3261 §25.1).
pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_token_byte(*byte))
}

pub(super) fn is_token_byte(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// Returns where `SIP/2.0/UDP` ends, between whose parts there may be spaces.
fn sent_protocol_end(message: &[u8], start: usize, end: usize) -> Option<usize> {
    let mut at = start;
    for part in 0..3 {
        at = skip_spaces(message, at, end);
        if part > 0 {
            if message[..end].get(at) != Some(&b'/') {
                return None;
            }
            at = skip_spaces(message, at + 1, end);
        }
        let token = message[at..end].iter().take_while(|byte| is_token_byte(**byte)).count();
        if token == 0 {
            return None;
        }
        at += token;
    }
    Some(at)
}

fn skip_spaces(message: &[u8], at: usize, end: usize) -> usize {
    at + message[at..end].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Returns the value of a parameter of this name between two places, the first of which is a semicolon if there are
/// parameters. Nothing at all if the parameters are damaged.
fn parameter(message: &[u8], start: usize, end: usize, name: &[u8]) -> Option<Option<Span>> {
    let mut at = skip_spaces(message, start, end);
    let mut found = None;
    while at < end {
        if message[at] != b';' {
            return None;
        }
        let next = part_end(message, at + 1, end, b';')?;
        let name_start = skip_spaces(message, at + 1, next);
        let name_end = name_start + message[name_start..next].iter().take_while(|byte| is_token_byte(**byte)).count();
        if message[name_start..name_end].eq_ignore_ascii_case(name) {
            let equals = skip_spaces(message, name_end, next);
            let value = trimmed(message, (equals + 1).min(next), next);
            let is_given = message[..next].get(equals) == Some(&b'=') && is_token(value.of(message));
            if !is_given || found.replace(value).is_some() {
                return None;
            }
        }
        at = next;
    }
    Some(found)
}

/// Returns where the part ends that starts at `start`: at the first `separator` outside quotes, or at the end.
fn part_end(message: &[u8], start: usize, end: usize, separator: u8) -> Option<usize> {
    let mut at = start;
    loop {
        match memchr2(b'"', separator, message.get(at..end)?) {
            None => return Some(end),
            Some(next) if message[at + next] == separator => return Some(at + next),
            Some(next) => at = quote_end(&message[..end], at + next)? + 1,
        }
    }
}

/// Returns where the quoted string's closing quote is that opens at `start`.
fn quote_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let set = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.!%*_+`'~";
    let mut at = 0;
    while at < set.len() {
        table[set[at] as usize] = true;
        at += 1;
    }
    table
};
