// SPDX-License-Identifier: Apache-2.0
//! Properties of modules on the command line.

/// Reads `KEY=VALUE`.
///
/// # Errors
/// There is no `=`, or nothing before it.
pub fn parse_property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("`{text}` is not KEY=VALUE")),
    }
}
