// SPDX-License-Identifier: Apache-2.0
//! JSON (RFC 8259) as far as the ng protocol has it: no fractions, and texts that are no UTF-8 are written with replacements.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::limits::{DEPTH_MAX, VALUES_MAX};
use crate::value::Value;

/// Reads one value, which has all the bytes. `true` and `false` are 1 and 0, `null` is an empty text.
pub fn parse(bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader { rest: bytes, values: 0 };
    let value = reader.value(0)?;
    reader.space();
    reader.rest.is_empty().then_some(value)
}

/// Writes a value.
pub fn emit(value: &Value, into: &mut String) {
    match value {
        Value::Int(number) => into.push_str(&number.to_string()),
        Value::Text(text) => emit_text(text, into),
        Value::List(list) => {
            into.push('[');
            for (number, value) in list.iter().enumerate() {
                into.push_str(if number > 0 { "," } else { "" });
                emit(value, into);
            }
            into.push(']');
        }
        Value::Dict(dict) => {
            into.push('{');
            for (number, (name, value)) in dict.iter().enumerate() {
                into.push_str(if number > 0 { "," } else { "" });
                emit_text(name, into);
                into.push(':');
                emit(value, into);
            }
            into.push('}');
        }
    }
}

fn emit_text(text: &[u8], into: &mut String) {
    into.push('"');
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\0'..='\x1f' => {
                let _ = write!(into, "\\u{:04x}", u32::from(character));
            }
            _ => into.push(character),
        }
    }
    into.push('"');
}

struct Reader<'a> {
    rest: &'a [u8],
    values: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.values += 1;
        if depth > DEPTH_MAX || self.values > VALUES_MAX {
            return None;
        }
        self.space();
        match *self.rest.first()? {
            b'{' => self.dict(depth),
            b'[' => self.list(depth),
            b'"' => self.text().map(Value::Text),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true", Value::Int(1)),
            b'f' => self.word(b"false", Value::Int(0)),
            b'n' => self.word(b"null", Value::text("")),
            _ => None,
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        let mut dict = BTreeMap::new();
        let mut more = self.opens(b'}')?;
        while more {
            self.space();
            let name = self.text()?;
            self.space();
            self.take(b':').then_some(())?;
            dict.insert(name, self.value(depth + 1)?);
            more = self.goes_on(b'}')?;
        }
        Some(Value::Dict(dict))
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut list = Vec::new();
        let mut more = self.opens(b']')?;
        while more {
            list.push(self.value(depth + 1)?);
            more = self.goes_on(b']')?;
        }
        Some(Value::List(list))
    }

    /// Takes a bracket, and returns whether something is in it.
    fn opens(&mut self, end: u8) -> Option<bool> {
        self.rest = self.rest.get(1..)?;
        self.space();
        Some(!self.take(end))
    }

    /// Takes what is behind a value, and returns whether there is another one.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        self.space();
        if self.take(b',') {
            return Some(true);
        }
        self.take(end).then_some(false)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        self.take(b'"').then_some(())?;
        let mut text = Vec::new();
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'"' => return std::str::from_utf8(&text).is_ok().then_some(text),
                b'\\' => self.escaped(&mut text)?,
                0..=0x1f => return None,
                _ => text.push(*byte),
            }
        }
    }

    fn escaped(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        text.push(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'"' | b'\\' | b'/' => *byte,
            b'u' => {
                let character = self.character()?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Some(());
            }
            _ => return None,
        });
        Some(())
    }

    /// Takes what is behind `\u`: a character of the first plane, or the two halves of another one.
    fn character(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        (self.take(b'\\') && self.take(b'u')).then_some(())?;
        let second = self.hex().filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        self.rest = rest;
        digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
    }

    fn number(&mut self) -> Option<Value> {
        let length = self.rest.iter().position(|byte| !matches!(byte, b'-' | b'0'..=b'9')).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(length);
        if matches!(rest.first(), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok().map(Value::Int)
    }

    fn word(&mut self, word: &[u8], value: Value) -> Option<Value> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(value)
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_here = self.rest.first() == Some(&byte);
        self.rest = &self.rest[usize::from(is_here)..];
        is_here
    }

    fn space(&mut self) {
        while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let value = Value::dict([
            ("command", Value::text("offer")),
            ("flags", Value::List(vec![Value::text("a \"b\" \\ \u{1}\t"), Value::Int(-7), Value::List(Vec::new())])),
            ("sdp", Value::text("v=0\r\nä😀")),
            ("none", Value::dict([])),
        ]);
        let mut text = String::new();
        emit(&value, &mut text);
        assert_eq!(parse(text.as_bytes()), Some(value));
        for length in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn escapes_and_words_are_understood() {
        let value = parse(br#" { "a" : [ true , false,null ], "b":"\u00e4\ud83d\ude00\/" } "#).unwrap();
        let list = Value::List(vec![Value::Int(1), Value::Int(0), Value::text("")]);
        assert_eq!(value, Value::dict([("a", list), ("b", Value::text("ä😀/"))]));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in [
            "",
            "{",
            "{}x",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "1.5",
            "1e3",
            "--1",
            "tru",
            "\"\\ud800\\u0041\"",
            "[1 2]",
            "-",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse(b"\"\xff\""), None);
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(parse(&nested(DEPTH_MAX + 1)).is_some());
        assert_eq!(parse(&nested(DEPTH_MAX + 2)), None);
        let many = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert!(parse(many(VALUES_MAX - 1).as_bytes()).is_some());
        assert_eq!(parse(many(VALUES_MAX).as_bytes()), None);
    }
}
