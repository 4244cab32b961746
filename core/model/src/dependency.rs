// SPDX-License-Identifier: Apache-2.0
//! Building blocks that modules need.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A building block with the lowest version that will do, written `kv>=1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Dependency {
    /// The block's name.
    pub block: String,
    /// The lowest version.
    pub version_min: u32,
}

impl std::str::FromStr for Dependency {
    type Err = crate::ids::ParseIdError;

    fn from_str(text: &str) -> Result<Dependency, Self::Err> {
        let bad = || crate::ids::ParseIdError::new(text, "a dependency such as kv>=1");
        let (block, version) = text.split_once(">=").unwrap_or((text, "1"));
        let name_ok = !block.is_empty()
            && block.len() <= 32
            && block.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let version_min = version.parse().map_err(|_| bad())?;
        if name_ok { Ok(Dependency { block: block.to_owned(), version_min }) } else { Err(bad()) }
    }
}

impl TryFrom<String> for Dependency {
    type Error = crate::ids::ParseIdError;

    fn try_from(text: String) -> Result<Dependency, Self::Error> {
        text.parse()
    }
}

impl From<Dependency> for String {
    fn from(dependency: Dependency) -> String {
        dependency.to_string()
    }
}

impl std::fmt::Display for Dependency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}>={}", self.block, self.version_min)
    }
}

/// Building blocks that every node of this version has, and the packet ABI as block `packet`.
pub const BLOCKS_ALWAYS: [&str; 11] =
    ["clock", "connection", "counters", "inject", "log", "node", "packet", "properties", "random", "timers", "wasm"];
/// Building blocks that an operator may leave out.
pub const BLOCKS_OPTIONAL: [&str; 18] = [
    "cache",
    "channel",
    "command",
    "compress",
    "control",
    "crypto",
    "hash",
    "http",
    "http-client",
    "kv",
    "match",
    "media",
    "messages",
    "metrics",
    "sip",
    "state",
    "tcp",
    "udp",
];
/// Those that are of use only where containers have a network.
pub const BLOCKS_OF_NETWORK: [&str; 5] = ["command", "http", "http-client", "tcp", "udp"];
/// Those that bundles have without a node, in `netserv module test`: those that only compute, messages of a test, and states.
pub const BLOCKS_OF_TESTS: [&str; 7] = ["compress", "control", "crypto", "hash", "match", "sip", "state"];
