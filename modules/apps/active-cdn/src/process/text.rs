// SPDX-License-Identifier: Apache-2.0
//! The text that is laid over pictures: what only this place knows.

use netserv_server_sdk::{control, node, properties};

use super::limits::TEXT_BYTES_MAX;

/// Returns the text for this node, as it is for the moment; empty if there is none.
pub fn here() -> String {
    filled(&template(), |name| match name {
        "node" => node::id(),
        "place" => Some(node::place()).filter(|place| !place.is_empty()).unwrap_or_else(node::id),
        "text" => said(),
        other => node::fact(other).unwrap_or_default(),
    })
}

/// Checks the property `overlay`.
///
/// # Errors
/// What is wrong with it.
pub fn check() -> Result<(), String> {
    let template = template();
    let mut depth = 0_i32;
    for one in template.chars() {
        depth += i32::from(one == '{') - i32::from(one == '}');
        if !(0..=1).contains(&depth) {
            break;
        }
    }
    if depth == 0 { Ok(()) } else { Err(format!("`overlay`: a brace of `{template}` has no other one")) }
}

fn template() -> String {
    properties::get("overlay").filter(|template| !template.is_empty()).unwrap_or_else(|| DEFAULT.to_owned())
}

/// Returns what the provider said last, or the property.
fn said() -> String {
    let told = control::last("text").map(|message| String::from_utf8_lossy(&message.body).into_owned());
    told.or_else(|| properties::get("text")).unwrap_or_default()
}

/// Returns a text with values in place of names in braces, on one line and no longer than may be.
fn filled(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            rest = after;
            break;
        };
        text.push_str(&value(name));
        rest = behind;
    }
    text.push_str(rest);
    let text: Vec<&str> = text.split(|one: char| one.is_whitespace() || one.is_control()).collect();
    let mut text = text.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    while text.len() > TEXT_BYTES_MAX {
        text.pop();
    }
    text
}

/// What is laid over without the property `overlay`.
const DEFAULT: &str = "{place} {text}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_the_text_is_one_line() {
        let value = |name: &str| match name {
            "place" => "Köln".to_owned(),
            "text" => " 21°\n\tsunny\u{7} ".to_owned(),
            _ => String::new(),
        };
        for (template, expected) in [
            ("{place} {text}", "Köln 21° sunny"),
            ("{text}", "21° sunny"),
            ("at {place}, {none}!", "at Köln, !"),
            ("{none}", ""),
            ("{place", "place"),
            ("", ""),
        ] {
            assert_eq!(filled(template, value), expected, "{template}");
        }
        let long = filled("{text}", |_| "ö".repeat(TEXT_BYTES_MAX));
        assert_eq!(long, "ö".repeat(TEXT_BYTES_MAX / 2));
    }
}
