// SPDX-License-Identifier: Apache-2.0
//! What modules are told of the node, as `[about]` of the configuration says.

use std::collections::BTreeMap;

use netserv_model::NodeId;
use netserv_model::node_info::NodeInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the operator says of the node to modules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct About {
    /// Where the node is, in words that the operator's users know; at most 128 characters.
    pub place: String,
    /// What else modules can read of it, by name: at most 32, of 256 characters each.
    pub facts: BTreeMap<String, String>,
}

impl About {
    /// Returns what modules are told, but for addresses.
    #[must_use]
    pub fn info(&self, node: &NodeId) -> NodeInfo {
        NodeInfo {
            id: node.as_str().to_owned(),
            place: self.place.clone(),
            facts: self.facts.clone(),
            addresses: Vec::new(),
        }
    }
}
