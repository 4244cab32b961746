// SPDX-License-Identifier: Apache-2.0
//! Bencode, as BEP 3 has it, but that names of dictionaries come in any order.
//!
//! serde_bencode bounds neither the depth nor the number of values, and ignores what follows a value.

use std::collections::BTreeMap;

use crate::limits::{DEPTH_MAX, VALUES_MAX};
use crate::value::Value;

/// Reads one value, which has all the bytes.
pub fn parse(bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader { rest: bytes, values: 0 };
    let value = reader.value(0)?;
    reader.rest.is_empty().then_some(value)
}

/// Writes a value.
pub fn emit(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Int(number) => into.extend_from_slice(format!("i{number}e").as_bytes()),
        Value::Text(text) => emit_text(text, into),
        Value::List(list) => {
            into.push(b'l');
            list.iter().for_each(|value| emit(value, into));
            into.push(b'e');
        }
        Value::Dict(dict) => {
            into.push(b'd');
            for (name, value) in dict {
                emit_text(name, into);
                emit(value, into);
            }
            into.push(b'e');
        }
    }
}

fn emit_text(text: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(format!("{}:", text.len()).as_bytes());
    into.extend_from_slice(text);
}

struct Reader<'a> {
    rest: &'a [u8],
    values: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.values += 1;
        if depth > DEPTH_MAX || self.values > VALUES_MAX {
            return None;
        }
        match *self.rest.first()? {
            b'i' => {
                self.rest = &self.rest[1..];
                self.number(b'e').map(Value::Int)
            }
            b'l' => {
                self.rest = &self.rest[1..];
                let mut list = Vec::new();
                while !self.ends()? {
                    list.push(self.value(depth + 1)?);
                }
                Some(Value::List(list))
            }
            b'd' => {
                self.rest = &self.rest[1..];
                let mut dict = BTreeMap::new();
                while !self.ends()? {
                    let name = self.text()?.to_vec();
                    dict.insert(name, self.value(depth + 1)?);
                }
                Some(Value::Dict(dict))
            }
            b'0'..=b'9' => self.text().map(Value::text),
            _ => None,
        }
    }

    /// Takes the end of a list or a dictionary if it is here; nothing if the bytes are over.
    fn ends(&mut self) -> Option<bool> {
        let is_end = *self.rest.first()? == b'e';
        self.rest = &self.rest[usize::from(is_end)..];
        Some(is_end)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        self.rest.first().filter(|first| first.is_ascii_digit())?;
        let length = usize::try_from(self.number(b':')?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }

    /// Takes digits and what ends them.
    fn number(&mut self, end: u8) -> Option<i64> {
        let length = self.rest.iter().take(DIGITS_MAX + 1).position(|byte| *byte == end)?;
        let digits = std::str::from_utf8(&self.rest[..length]).ok().filter(|digits| !digits.starts_with('+'))?;
        let number = digits.parse().ok()?;
        self.rest = &self.rest[length + 1..];
        Some(number)
    }
}

/// Characters of a number of 64 bits.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let value = Value::dict([
            ("command", Value::text("offer")),
            ("flags", Value::List(vec![Value::text("trust-address"), Value::Int(-7), Value::List(Vec::new())])),
            ("sdp", Value::text(b"v=0\r\n\xff\0")),
            ("none", Value::dict([])),
        ]);
        let mut bytes = Vec::new();
        emit(&value, &mut bytes);
        assert_eq!(parse(&bytes), Some(value));
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]), None, "{length} bytes");
        }
        bytes.push(b'e');
        assert_eq!(parse(&bytes), None);
    }

    #[test]
    fn names_come_in_any_order() {
        let value = parse(b"d2:zzi1e2:aa2:xye").unwrap();
        assert_eq!(value, Value::dict([("aa", Value::text("xy")), ("zz", Value::Int(1))]));
    }

    #[test]
    fn what_is_no_bencode_is_refused() {
        for bad in [
            "",
            "i",
            "ie",
            "i1",
            "i+1e",
            "i1 e",
            "i99999999999999999999e",
            "-1:a",
            "5:abc",
            "99999999999999999999:a",
            "l",
            "d",
            "d1:ae",
            "di1ei2ee",
            "x",
            "1",
            ":",
            "d5:abce",
            "li1e",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let nested = |depth: usize| [vec![b'l'; depth], vec![b'e'; depth]].concat();
        assert!(parse(&nested(DEPTH_MAX + 1)).is_some());
        assert_eq!(parse(&nested(DEPTH_MAX + 2)), None);
        assert_eq!(parse(&nested(60_000)), None);
        let many = |count: usize| [&b"l"[..], &b"le".repeat(count), b"e"].concat();
        assert!(parse(&many(VALUES_MAX - 1)).is_some());
        assert_eq!(parse(&many(VALUES_MAX)), None);
    }
}
