// SPDX-License-Identifier: Apache-2.0
//! Properties: what the manifest and the SETUP tell the module.

use std::str::FromStr;

use crate::error::StartError;
use crate::host;

/// Returns a property's value as text.
pub fn text(key: &str) -> Option<String> {
    String::from_utf8(host::property(key)?).ok()
}

/// Returns a property's value as any type that has a text form; `default` if there is none.
///
/// # Errors
/// The text is not of that type.
pub fn parse_or<T: FromStr>(key: &str, default: T) -> Result<T, StartError> {
    let Some(text) = text(key) else { return Ok(default) };
    text.parse().map_err(|_| StartError(format!("property `{key}` has the value `{text}`, which is not understood")))
}

/// Returns a property that is `on` or `off`; `default` if there is none.
///
/// # Errors
/// The text is something else.
pub fn switch_or(key: &str, default: bool) -> Result<bool, StartError> {
    match text(key).as_deref() {
        None => Ok(default),
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(StartError(format!("property `{key}` is `{other}`; write `on` or `off`"))),
    }
}
