// SPDX-License-Identifier: Apache-2.0
//! Properties as text: `k=v,k2=v2`, with `%XX` for what would end a key, a value or a line.

use std::collections::BTreeMap;
use std::fmt::Write;

use netserv_model::limits::{PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX};

use super::lines::shown;

/// Writes properties as the value of a `properties` header.
///
/// Commas, percent signs, control characters, spaces at either end and, in keys, equals signs become `%XX`.
pub fn encode(properties: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (key, value) in properties {
        if !text.is_empty() {
            text.push(',');
        }
        encode_one(&mut text, key, value);
    }
    text
}

/// Reads the value of a `properties` header.
///
/// Spaces around keys and values do not count.
///
/// # Errors
/// Says in one line what is wrong: an item without `=`, an empty key, a key that is there twice, a bad `%XX`, or more
/// than the model's limits allow.
pub fn decode(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut properties = BTreeMap::new();
    decode_into(&mut properties, text)?;
    Ok(properties)
}

/// Adds the properties of one header to those of earlier ones.
pub(super) fn decode_into(properties: &mut BTreeMap<String, String>, text: &str) -> Result<(), String> {
    for item in text.split(',').filter(|_| !text.trim_matches(' ').is_empty()) {
        let (key, value) =
            item.split_once('=').ok_or_else(|| format!("`{}` is not a property such as key=value", shown(item)))?;
        let (key, value) = (decode_text(key)?, decode_text(value)?);
        if key.is_empty() {
            return Err(format!("`{}` has no key", shown(item)));
        }
        if key.len() + value.len() > PROPERTY_BYTES_MAX {
            return Err(format!("property `{}` is longer than {PROPERTY_BYTES_MAX} bytes", shown(&key)));
        }
        if properties.contains_key(&key) {
            return Err(format!("property `{}` is there twice", shown(&key)));
        }
        if properties.len() == PROPERTIES_PER_MODULE_MAX {
            return Err(format!("more than {PROPERTIES_PER_MODULE_MAX} properties"));
        }
        properties.insert(key, value);
    }
    Ok(())
}

pub(super) fn encode_one(text: &mut String, key: &str, value: &str) {
    encode_text(text, key, true);
    text.push('=');
    encode_text(text, value, false);
}

fn encode_text(out: &mut String, text: &str, is_key: bool) {
    let last = text.chars().count().saturating_sub(1);
    for (at, c) in text.chars().enumerate() {
        let at_an_end = c == ' ' && (at == 0 || at == last);
        if matches!(c, ',' | '%') || c.is_control() || (is_key && c == '=') || at_an_end {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                write!(out, "%{byte:02X}").expect("writing to a String cannot fail");
            }
        } else {
            out.push(c);
        }
    }
}

fn decode_text(text: &str) -> Result<String, String> {
    let text = text.trim_matches(' ');
    let bad = || format!("`{}` has a percent sign that is not a %XX of UTF-8", shown(text));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let code = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(code.ok_or_else(bad)?);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}
