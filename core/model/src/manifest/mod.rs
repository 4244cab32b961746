// SPDX-License-Identifier: Apache-2.0
//! What a module package says of itself to the nodes that run it.
//!
//! The developer's own file, `netserv.toml`, says more and is another format: `netserv module build` derives the manifest
//! from it. A node takes manifests of its own major version only. Inside one it reads over keys that it does not know,
//! unless the manifest names them in `requires`: see [`Feature`].

mod check;
mod feature;
mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::feature::Feature;
pub use self::limits::{Amounts, ModuleLimits, Resource};
use crate::ids::ParseIdError;
use crate::request::Dependency;
use crate::verdict::FailureMode;
use crate::{Filter, ModuleName, ModuleRef, WantedFilter};

/// The major version of manifests that this code writes and reads.
pub const MANIFEST_VERSION: u32 = 1;

/// Packages of WASI 0.2 whose interfaces the components of server parts may import.
pub const WASI_PACKAGES: [&str; 7] =
    ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:http", "wasi:io", "wasi:random", "wasi:sockets"];

/// A module's manifest. It is written with all its keys, so that no default of a reader changes what a package means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// The major version of this format: 1.
    pub manifest: u32,
    /// What a node must know to run the module, beside the keys that every node of the major version knows; all that the
    /// manifest uses is named.
    #[serde(default)]
    pub requires: BTreeSet<Feature>,
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
    /// The modules that a service is made of; a package with it has no code of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServicePart>,
    /// What it needs at most; the node's own limits stay above these.
    #[serde(default, deserialize_with = "limits::packaged")]
    pub limits: ModuleLimits,
    /// What it cannot do with less of: a node that grants less refuses it, and says of what. Only written if there is any.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    pub needs: Amounts,
    /// Properties that a SETUP may override.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// The version of what it keeps in kv state; a replacement with another version starts with none.
    #[serde(default = "one")]
    pub state_schema: u32,
}

impl Manifest {
    /// Returns the module's name and version together.
    pub fn module(&self) -> ModuleRef {
        ModuleRef { name: self.name.clone(), version: self.version.clone() }
    }

    /// Returns which packets the module sees unless the SETUP says otherwise; a server alone sees none.
    pub fn filters(&self) -> &[WantedFilter] {
        self.packet.as_ref().map_or(&[], |packet| &packet.filters)
    }

    /// Returns what happens to the module's packets while it cannot say.
    pub fn on_failure(&self) -> FailureMode {
        self.packet.as_ref().map(|packet| packet.on_failure).unwrap_or_default()
    }

    /// Returns whether the part in the packet path may run as several instances.
    pub fn is_parallel(&self) -> bool {
        self.packet.as_ref().is_some_and(|packet| packet.parallel)
    }

    /// Returns where the module takes connections.
    pub fn listen(&self) -> &[Filter] {
        self.server.as_ref().map_or(&[], |server| &server.listen)
    }

    /// Returns which connections between others the module takes over.
    pub fn intercept(&self) -> &[Filter] {
        self.server.as_ref().map_or(&[], |server| &server.intercept)
    }

    /// Returns the names whose intercepted connections of TLS the module serves.
    pub fn intercept_tls(&self) -> &[String] {
        self.server.as_ref().map_or(&[], |server| &server.intercept_tls)
    }

    /// Returns what becomes of the connections that the module takes over when it goes.
    pub fn drain(&self) -> Drain {
        self.server.as_ref().map(|server| server.drain).unwrap_or_default()
    }

    /// Returns the features that the manifest's keys make use of, which its `requires` must name.
    pub fn used_features(&self) -> BTreeSet<Feature> {
        Feature::ALL.into_iter().filter(|feature| self.uses(*feature)).collect()
    }

    fn uses(&self, feature: Feature) -> bool {
        match feature {
            Feature::Intercept => !self.intercept().is_empty(),
            Feature::InterceptTls => !self.intercept_tls().is_empty(),
            Feature::Needs => !self.needs.is_empty(),
            Feature::Service => self.service.is_some(),
            Feature::SelfFilter => self.filters().iter().any(WantedFilter::names_container),
            Feature::SynFilter => self.filters().iter().any(|filter| filter.open().opens_only()),
            Feature::Tls => self.server.as_ref().is_some_and(|server| server.tls),
        }
    }

    /// Returns the parts of the service that the package is, in order; none if it has code of its own.
    pub fn chain(&self) -> &[ChainPart] {
        self.service.as_ref().map_or(&[], |service| &service.chain)
    }
}

/// The part of a module in the packet path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PacketPart {
    /// The packet ABI that the WebAssembly code was built for (`wit/packet-abi.md`); 0 where there is none.
    #[serde(default)]
    pub abi: u32,
    /// Which packets it sees unless the SETUP says otherwise.
    #[serde(default)]
    pub filters: Vec<WantedFilter>,
    /// What happens to its packets while it cannot say.
    #[serde(default)]
    pub on_failure: FailureMode,
    /// Whether it may run as several instances at once, one for each lane of the node: each has memory and timers of its own, and
    /// packets of one flow come to the same one. They share kv state, and their counters are summed.
    ///
    /// Only written if it is so: what is not parallel keeps the digest that it had before there was the key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
}

/// The part of a module that takes connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ServerPart {
    /// Where it takes connections, such as `tcp port 80`: a protocol and its ports at the container's own addresses,
    /// from everywhere or from `src PREFIX`.
    #[serde(default)]
    pub listen: Vec<Filter>,
    /// Connections between others that it takes over, such as `tcp dst 10.2.0.0/16 port 80`, seen from the client.
    #[serde(default)]
    pub intercept: Vec<Filter>,
    /// What happens to new connections of `intercept` while it cannot take them.
    #[serde(default)]
    pub on_failure: FailureMode,
    /// Whether HTTP on its own ports is HTTPS, with the package's certificate.
    #[serde(default)]
    pub tls: bool,
    /// Names in the package's certificate: intercepted connections of TLS to them are HTTPS for the module, too.
    ///
    /// Only written if there are some, as `parallel` of the packet part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercept_tls: Vec<String>,
    /// What becomes of open connections of `intercept` when the module is removed or its lease ends.
    #[serde(default, skip_serializing_if = "Drain::is_default")]
    pub drain: Drain,
}

/// What becomes of a module's intercepted connections when it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drain {
    /// They are reset, unless they end within some seconds.
    #[default]
    Close,
    /// The node hands on what comes from either end without the module, for an hour at most.
    Splice,
    /// The module goes on with them until they end, for an hour at most, and takes no others. It is told by a control message
    /// with the topic `draining`.
    Finish,
}

impl Drain {
    fn is_default(&self) -> bool {
        *self == Drain::default()
    }
}

/// What a service is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ServicePart {
    /// Modules of the same user by name and range of versions, `example.org/auth@^1`: packets and requests go through
    /// them in this order.
    pub chain: Vec<ChainPart>,
}

/// One part of a service: a module in any version of a range, written `example.org/auth@^1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ChainPart {
    /// The module's name.
    pub name: ModuleName,
    /// Which versions of it will do.
    pub versions: semver::VersionReq,
}

impl FromStr for ChainPart {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<ChainPart, ParseIdError> {
        let bad = || ParseIdError::new(text, "a part of a service such as example.org/auth@^1");
        let (name, versions) = text.split_once('@').ok_or_else(bad)?;
        Ok(ChainPart { name: name.parse().map_err(|_| bad())?, versions: versions.parse().map_err(|_| bad())? })
    }
}

impl TryFrom<String> for ChainPart {
    type Error = ParseIdError;

    fn try_from(text: String) -> Result<ChainPart, ParseIdError> {
        text.parse()
    }
}

impl From<ChainPart> for String {
    fn from(part: ChainPart) -> String {
        part.to_string()
    }
}

impl fmt::Display for ChainPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.versions)
    }
}

fn one() -> u32 {
    1
}
