// SPDX-License-Identifier: Apache-2.0
//! What a module is told of the node that it runs on.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Characters of a node's place.
pub const PLACE_CHARS_MAX: usize = 128;
/// Facts of a node.
pub const FACTS_MAX: usize = 32;
/// Characters of the name of a fact: of `a-z 0-9 - _ .`.
pub const FACT_NAME_CHARS_MAX: usize = 64;
/// Characters of a fact.
pub const FACT_CHARS_MAX: usize = 256;

/// What a module is told of its node: what the operator wrote, and the addresses of the module's container. Empty where a module
/// runs without a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeInfo {
    /// The node's name.
    pub id: String,
    /// Where it is; empty if the operator does not say.
    pub place: String,
    /// What else the operator says, by name.
    pub facts: BTreeMap<String, String>,
    /// The addresses of the module's container there; none without a network.
    pub addresses: Vec<IpAddr>,
}

impl NodeInfo {
    /// Checks that its texts are within their bounds, on one line each.
    ///
    /// # Errors
    /// Says in a clause which one is not.
    pub fn check(&self) -> Result<(), String> {
        let is_line =
            |text: &str, most: usize| text.chars().count() <= most && !text.contains(|c: char| c.is_control());
        if !is_line(&self.place, PLACE_CHARS_MAX) {
            return Err(format!("the place is longer than {PLACE_CHARS_MAX} characters or has a control character"));
        }
        if self.facts.len() > FACTS_MAX {
            return Err(format!("there are more than {FACTS_MAX} facts"));
        }
        let is_name = |name: &str| {
            let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
            (1..=FACT_NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed)
        };
        match self.facts.iter().find(|(name, fact)| !is_name(name) || !is_line(fact, FACT_CHARS_MAX)) {
            None => Ok(()),
            Some((name, _)) if !is_name(name) => {
                let name: String = name.chars().take(80).collect();
                Err(format!("`{name}` is not the name of a fact (1-{FACT_NAME_CHARS_MAX} characters of a-z 0-9 - _ .)"))
            }
            Some((name, _)) => {
                Err(format!("fact `{name}` is longer than {FACT_CHARS_MAX} characters or has a control character"))
            }
        }
    }

    /// Returns what has a key in the packet ABI: `id`, `place`, `addresses` with spaces between, or `fact.NAME`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<String> {
        match key {
            "id" => Some(self.id.clone()),
            "place" => Some(self.place.clone()),
            "addresses" => Some(self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
            _ => self.facts.get(key.strip_prefix("fact.")?).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_bounds() {
        let with = |place: usize, facts: usize, name: &str, fact: &str| {
            let mut all: BTreeMap<String, String> = (1..facts).map(|n| (format!("f{n}"), String::new())).collect();
            all.insert(name.to_owned(), fact.to_owned());
            NodeInfo { place: "ü".repeat(place), facts: all, ..NodeInfo::default() }.check()
        };
        assert_eq!(with(PLACE_CHARS_MAX, FACTS_MAX, &"n".repeat(64), &"ü".repeat(FACT_CHARS_MAX)), Ok(()));
        for (bad, what) in [
            (with(PLACE_CHARS_MAX + 1, 1, "a", ""), "the place is longer than 128"),
            (with(0, FACTS_MAX + 1, "a", ""), "more than 32 facts"),
            (with(0, 1, &"n".repeat(65), ""), "is not the name of a fact"),
            (with(0, 1, "", ""), "`` is not the name of a fact"),
            (with(0, 1, "A", ""), "`A` is not the name of a fact"),
            (with(0, 1, "a", &"f".repeat(FACT_CHARS_MAX + 1)), "fact `a` is longer than 256"),
            (with(0, 1, "a", "two\nlines"), "fact `a` is longer than 256 characters or has a control"),
        ] {
            assert!(bad.as_ref().is_err_and(|error| error.contains(what)), "{bad:?}");
        }
    }

    #[test]
    fn values_have_keys() {
        let info = NodeInfo {
            id: "n1".to_owned(),
            place: "berlin".to_owned(),
            facts: [("uplink".to_owned(), "10G".to_owned())].into(),
            addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        };
        for (key, value) in [
            ("id", Some("n1")),
            ("place", Some("berlin")),
            ("addresses", Some("192.0.2.1 2001:db8::1")),
            ("fact.uplink", Some("10G")),
            ("fact.other", None),
            ("uplink", None),
            ("", None),
        ] {
            assert_eq!(info.value(key).as_deref(), value, "{key}");
        }
    }
}
