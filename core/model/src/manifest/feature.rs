// SPDX-License-Identifier: Apache-2.0
//! What of a manifest a node must not read over.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A key of the manifest without which the module would do something else than its author meant.
///
/// A node that does not know a feature by name refuses the package. Each key that is added to the format is either one
/// that a node may read over, or a feature here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// `server.intercept`: the module takes over connections between others.
    Intercept,
    /// `server.intercept-tls`: the node speaks TLS in the place of servers.
    InterceptTls,
    /// `needs`: a node that grants less is to refuse the module.
    Needs,
    /// A filter of `packet.filters` has the word `self`.
    SelfFilter,
    /// `service`: the package is a chain of other modules.
    Service,
    /// A filter of `packet.filters` has the word `syn`.
    SynFilter,
    /// `server.tls`: the node speaks TLS with the package's certificate.
    Tls,
}

impl Feature {
    /// Every feature that this version knows, in the order of their names.
    pub const ALL: [Feature; 7] = [
        Feature::Intercept,
        Feature::InterceptTls,
        Feature::Needs,
        Feature::SelfFilter,
        Feature::Service,
        Feature::SynFilter,
        Feature::Tls,
    ];

    /// Returns the feature's name in `requires`.
    pub fn as_str(self) -> &'static str {
        match self {
            Feature::Intercept => "intercept",
            Feature::InterceptTls => "intercept-tls",
            Feature::Needs => "needs",
            Feature::SelfFilter => "self-filter",
            Feature::Service => "service",
            Feature::SynFilter => "syn-filter",
            Feature::Tls => "tls",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
