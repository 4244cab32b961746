// SPDX-License-Identifier: Apache-2.0
//! Nodes beside a path: which of them a request is for, and what they said.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ParseIdError;
use crate::request::NodeReport;

/// GIST hops that a request may go away from its path at most.
pub const RADIUS_MAX: u8 = 4;

/// Which nodes beside its path a request is for, written `hose 1` or `hose:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct OffPath {
    /// Around which nodes of the path.
    pub shape: Shape,
    /// GIST hops from them, 1 to [`RADIUS_MAX`].
    pub radius: u8,
}

/// Around which nodes of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// The first one: those near the requester.
    Bubble,
    /// The last one: those near the flow's destination.
    Balloon,
    /// Every one.
    Hose,
}

impl Shape {
    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Shape::Bubble => "bubble",
            Shape::Balloon => "balloon",
            Shape::Hose => "hose",
        }
    }
}

impl FromStr for OffPath {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<OffPath, ParseIdError> {
        let bad = || ParseIdError::new(text, "a shape and a radius of 1 to 4, such as hose 1, bubble 2 or balloon 1");
        let (shape, radius) = text.split_once([' ', ':']).ok_or_else(bad)?;
        let shape = [Shape::Bubble, Shape::Balloon, Shape::Hose].into_iter().find(|known| known.as_str() == shape);
        let radius = radius.parse().ok().filter(|radius| (1..=RADIUS_MAX).contains(radius) && !text.contains('+'));
        Ok(OffPath { shape: shape.ok_or_else(bad)?, radius: radius.ok_or_else(bad)? })
    }
}

impl fmt::Display for OffPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.shape.as_str(), self.radius)
    }
}

/// What one node beside the path says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// GIST hops between it and the path, as the request went.
    pub hops: u8,
    /// What it says.
    #[serde(flatten)]
    pub report: NodeReport,
}

/// What is known of the nodes beside the path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Off {
    /// One entry per node that the request reached, in no order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Beside>,
    /// Neighbours of whom nothing is known: they did not answer, were too many to ask, or their entries found no room.
    #[serde(default)]
    pub missing: u32,
}

impl Off {
    /// Returns whether nobody beside the path was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.missing == 0
    }

    /// Takes in what others say, up to so many nodes in all.
    pub fn add(&mut self, more: Off, nodes_max: usize) {
        let room = nodes_max.saturating_sub(self.nodes.len());
        let left_out = u32::try_from(more.nodes.len().saturating_sub(room)).unwrap_or(u32::MAX);
        self.nodes.extend(more.nodes.into_iter().take(room));
        self.missing = self.missing.saturating_add(more.missing).saturating_add(left_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_a_word_and_a_radius() {
        for (text, expected) in [
            ("hose 1", Some((Shape::Hose, 1))),
            ("bubble:4", Some((Shape::Bubble, 4))),
            ("balloon 2", Some((Shape::Balloon, 2))),
            ("hose 0", None),
            ("hose 5", None),
            ("hose", None),
            ("hose -1", None),
            ("hose +1", None),
            ("hose  1", None),
            ("Hose 1", None),
            ("", None),
        ] {
            let parsed = text.parse::<OffPath>().ok();
            assert_eq!(parsed.map(|off| (off.shape, off.radius)), expected, "{text}");
            assert!(parsed.is_none_or(|off| off.to_string().parse() == Ok(off)));
        }
    }
}
