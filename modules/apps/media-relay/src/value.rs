// SPDX-License-Identifier: Apache-2.0
//! Values of the ng protocol, in bencode and in JSON.

use std::collections::BTreeMap;

/// Names and what they stand for.
pub type Dict = BTreeMap<Vec<u8>, Value>;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Int(i64),
    /// Bytes.
    Text(Vec<u8>),
    /// Values in order.
    List(Vec<Value>),
    /// Values by name.
    Dict(Dict),
}

impl Value {
    /// Builds a text.
    pub fn text(text: impl AsRef<[u8]>) -> Value {
        Value::Text(text.as_ref().to_vec())
    }

    /// Builds a dictionary.
    pub fn dict<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Value::dict_of(Vec::from(entries))
    }

    /// Builds a dictionary of any number of entries.
    pub fn dict_of(entries: Vec<(&str, Value)>) -> Value {
        let mut dict = Dict::new();
        for (name, value) in entries {
            dict.insert(name.as_bytes().to_vec(), value);
        }
        Value::Dict(dict)
    }

    /// Builds a number; one that is too large is the largest.
    pub fn number(number: impl TryInto<i64>) -> Value {
        Value::Int(number.try_into().unwrap_or(i64::MAX))
    }

    /// Returns the bytes of a text.
    pub fn as_text(&self) -> Option<&[u8]> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// Returns a number, also one that is written as text.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Value::List(_) | Value::Dict(_) => None,
        }
    }

    /// Returns the values of a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Value::List(list) = self { Some(list) } else { None }
    }

    /// Returns the entries of a dictionary.
    pub fn as_dict(&self) -> Option<&Dict> {
        if let Value::Dict(dict) = self { Some(dict) } else { None }
    }
}

/// Returns the text of a name.
pub fn text<'a>(dict: &'a Dict, name: &str) -> Option<&'a [u8]> {
    dict.get(name.as_bytes())?.as_text()
}

/// Returns the number of a name.
pub fn int(dict: &Dict, name: &str) -> Option<i64> {
    dict.get(name.as_bytes())?.as_int()
}

/// Returns whether the list of a name has a word; words are the same with spaces and with hyphens between their parts.
pub fn has_word(dict: &Dict, name: &str, word: &str) -> bool {
    let is_word = |value: &Value| {
        let Some(text) = value.as_text() else { return false };
        text.len() == word.len()
            && text
                .iter()
                .zip(word.as_bytes())
                .all(|(one, other)| one.eq_ignore_ascii_case(other) || matches!((one, other), (b' ' | b'_', b'-')))
    };
    match dict.get(name.as_bytes()) {
        Some(Value::List(list)) => list.iter().any(is_word),
        Some(value @ Value::Text(_)) => is_word(value),
        Some(Value::Int(_) | Value::Dict(_)) | None => false,
    }
}
