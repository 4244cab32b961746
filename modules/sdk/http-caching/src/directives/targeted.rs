// SPDX-License-Identifier: Apache-2.0
//! Fields for caches of a kind: `CDN-Cache-Control` (RFC 9213) and, before it, `Surrogate-Control` (Edge Architecture 1.0).
//!
//! sfv would read these dictionaries too, in 15 kB of the 18 kB that active-cdn has left.

use crate::fields::{Directive, Fields, directive, members, split, values};

/// Reads a dictionary of structured fields (RFC 9651 §3.2); nothing if it is empty or damaged.
pub fn dictionary(fields: &Fields, name: &str) -> Option<Vec<Directive>> {
    let lines: Vec<&[u8]> = values(fields, name).collect();
    let joined = lines.join(&b',');
    let mut input = Input { rest: joined.trim_ascii() };
    let mut known: Vec<(String, Value)> = Vec::new();
    while !input.rest.is_empty() {
        let (key, value) = input.member()?;
        known.retain(|(other, _)| *other != key);
        known.push((key, value));
        input.skip_blanks();
        if input.rest.is_empty() {
            break;
        }
        input.expect(b',')?;
        input.skip_blanks();
        if input.rest.is_empty() {
            return None;
        }
    }
    let directives = known.iter().filter_map(|(key, value)| {
        let takes_seconds = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"].contains(&&**key);
        match value {
            Value::Integer(seconds) if takes_seconds => Some((key.clone(), Some(seconds.clone().into_bytes()))),
            Value::True if !takes_seconds => Some((key.clone(), None)),
            // A value of another type is as if it were not there.
            Value::Integer(_) | Value::True | Value::Other => None,
        }
    });
    (!known.is_empty()).then(|| directives.collect())
}

/// Reads directives that have no target, or the target `name`; nothing if there are none.
pub fn surrogate(fields: &Fields, name: &str) -> Option<Vec<Directive>> {
    let mut directives = Vec::new();
    for member in members(fields, "surrogate-control") {
        let mut pieces = split(member, b';');
        let (text, target) = (pieces.next().unwrap_or_default(), pieces.next());
        if target.is_none_or(|target| target == name.as_bytes()) {
            let (key, value) = directive(text);
            // `max-age=3600+600`: fresh for an hour, and served stale for ten minutes.
            let value = value.map(|value| value.split(|byte| *byte == b'+').next().unwrap_or_default().to_vec());
            directives.push((key, value));
        }
    }
    (!directives.is_empty()).then_some(directives)
}

/// What a member of a dictionary has, as far as directives use it.
enum Value {
    /// The digits of an integer.
    Integer(String),
    /// A boolean that is true.
    True,
    /// What no directive has.
    Other,
}

/// What is not read yet.
struct Input<'a> {
    rest: &'a [u8],
}

impl Input<'_> {
    fn member(&mut self) -> Option<(String, Value)> {
        let key = self.key()?;
        let value = if self.take(b'=') { self.item_or_list()? } else { Value::True };
        self.parameters()?;
        Some((key, value))
    }

    fn item_or_list(&mut self) -> Option<Value> {
        if !self.take(b'(') {
            return self.bare_item();
        }
        loop {
            self.skip_spaces();
            if self.take(b')') {
                return Some(Value::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.rest.first(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip_spaces();
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn key(&mut self) -> Option<String> {
        self.rest.first().filter(|first| first.is_ascii_lowercase() || **first == b'*')?;
        let of_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte);
        Some(String::from_utf8_lossy(self.while_(of_key)).into_owned())
    }

    fn bare_item(&mut self) -> Option<Value> {
        match self.rest.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'?' => {
                let value = match self.rest.get(1)? {
                    b'1' => Value::True,
                    b'0' => Value::Other,
                    _ => return None,
                };
                self.rest = &self.rest[2..];
                Some(value)
            }
            b':' => {
                self.rest = &self.rest[1..];
                self.while_(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.expect(b':').map(|()| Value::Other)
            }
            b'@' => {
                self.rest = &self.rest[1..];
                self.number().map(|_| Value::Other)
            }
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.while_(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte));
                Some(Value::Other)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Value> {
        let negative = self.take(b'-');
        let digits = String::from_utf8_lossy(self.while_(|byte| byte.is_ascii_digit())).into_owned();
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        if self.take(b'.') {
            let behind = self.while_(|byte| byte.is_ascii_digit()).len();
            return (1..=3).contains(&behind).then_some(Value::Other);
        }
        Some(Value::Integer(if negative { "0".to_owned() } else { digits }))
    }

    fn string(&mut self) -> Option<Value> {
        let mut bytes = self.rest.iter().enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' => _ = bytes.next().filter(|(_, next)| b"\"\\".contains(*next))?,
                b'"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(Value::Other);
                }
                0x20..=0x7e => {}
                _ => return None,
            }
        }
        None
    }

    fn while_(&mut self, of: impl Fn(u8) -> bool) -> &[u8] {
        let end = self.rest.iter().position(|byte| !of(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.rest.first() == Some(&byte);
        self.rest = &self.rest[usize::from(taken)..];
        taken
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn skip_spaces(&mut self) {
        self.while_(|byte| byte == b' ');
    }

    fn skip_blanks(&mut self) {
        self.while_(|byte| byte == b' ' || byte == b'\t');
    }
}
