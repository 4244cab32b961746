// SPDX-License-Identifier: Apache-2.0
//! `netserv.toml`: what a module package says of itself. Unknown keys are refused.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::request::Dependency;
use crate::verdict::FailureMode;
use crate::{Filter, Flavour, ModuleName, ModuleRef};

/// The manifest version that this code writes and reads.
pub const MANIFEST_VERSION: u32 = 1;

/// A module's manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// The version of this format: 1.
    pub manifest: u32,
    /// The unique name, a domain and a path.
    pub name: ModuleName,
    /// The semantic version.
    pub version: semver::Version,
    /// One line for people.
    #[serde(default)]
    pub description: String,
    /// The building blocks it needs, as `kv>=1`.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// The part in the packet path; a module has this part, a server part, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketPart>,
    /// The part that takes connections in the container's own network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerPart>,
    /// What it needs at most; the node's own limits stay above these.
    #[serde(default)]
    pub limits: ModuleLimits,
    /// Properties that a SETUP may override.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// The version of what it keeps in kv state; a replacement with another version starts with none.
    #[serde(default = "one")]
    pub state_schema: u32,
    /// Recorded packets that go in and must come out, run by `netserv module test`.
    #[serde(default, rename = "test")]
    pub tests: Vec<PacketTest>,
    /// How `netserv module build` makes the code.
    #[serde(default)]
    pub build: Build,
}

impl Manifest {
    /// Returns the module's name and version together.
    pub fn module(&self) -> ModuleRef {
        ModuleRef { name: self.name.clone(), version: self.version.clone() }
    }

    /// Returns which packets the module sees unless the SETUP says otherwise; a server alone sees none.
    pub fn filters(&self) -> &[Filter] {
        self.packet.as_ref().map_or(&[], |packet| &packet.filters)
    }

    /// Returns what happens to the module's packets while it cannot say.
    pub fn on_failure(&self) -> FailureMode {
        self.packet.as_ref().map(|packet| packet.on_failure).unwrap_or_default()
    }

    /// Returns where the module takes connections.
    pub fn listen(&self) -> &[Filter] {
        self.server.as_ref().map_or(&[], |server| &server.listen)
    }
}

/// The part of a module in the packet path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PacketPart {
    /// The packet ABI that the WebAssembly code was built for (`wit/packet-abi.md`); 0 where there is none.
    #[serde(default)]
    pub abi: u32,
    /// Which packets it sees unless the SETUP says otherwise.
    #[serde(default)]
    pub filters: Vec<Filter>,
    /// What happens to its packets while it cannot say.
    #[serde(default)]
    pub on_failure: FailureMode,
}

/// The part of a module that takes connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerPart {
    /// Where it takes connections, such as `tcp port 80`: a protocol and its ports at the container's own addresses,
    /// from everywhere or from `src PREFIX`.
    #[serde(default)]
    pub listen: Vec<Filter>,
}

/// What one module may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ModuleLimits {
    /// Memory in bytes: the linear memory of WebAssembly code; a bundle shares the heap of its JVM, which has so much.
    pub memory_bytes: u64,
    /// Entries of kv state.
    pub kv_entries: u32,
    /// Bytes of kv state, keys and values together.
    pub kv_bytes: u64,
    /// Timers at a time.
    pub timers: u32,
    /// Counters.
    pub counters: u32,
    /// Milliseconds that one batch, timer or start may take before the module counts as stalled.
    pub call_ms: u32,
}

impl Default for ModuleLimits {
    fn default() -> ModuleLimits {
        ModuleLimits {
            memory_bytes: 4 * 1024 * 1024,
            kv_entries: 65_536,
            kv_bytes: 4 * 1024 * 1024,
            timers: 64,
            counters: 1024,
            call_ms: 500,
        }
    }
}

/// One recorded test of a packet module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PacketTest {
    /// What the test is called.
    pub name: String,
    /// A capture of the packets that go in, relative to the manifest.
    pub input: String,
    /// A capture of the packets that must come out, in order.
    pub output: String,
    /// Properties for this test.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// Counters that must have these values afterwards.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
}

/// How the code is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Build {
    /// A shell command, run where the manifest is; nothing if the code is made some other way.
    pub command: Option<String>,
    /// The WebAssembly file that the command leaves, relative to the manifest.
    pub wasm: Option<String>,
    /// The OSGi bundle that the command leaves, relative to the manifest.
    pub bundle: Option<String>,
}

impl Build {
    /// Returns the file that has the code of a flavour, if there is one.
    pub fn code(&self, flavour: Flavour) -> Option<&String> {
        match flavour {
            Flavour::Wasm => self.wasm.as_ref(),
            Flavour::Osgi => self.bundle.as_ref(),
        }
    }
}

fn one() -> u32 {
    1
}
