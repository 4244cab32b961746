// SPDX-License-Identifier: Apache-2.0
//! What a machine is for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a machine is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Forwards packets and runs modules.
    #[default]
    Node,
    /// Sends requests, and answers as the last one on a path; runs nothing.
    Host,
}

impl Role {
    /// Returns the word used in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Node => "node",
            Role::Host => "host",
        }
    }
}
