// SPDX-License-Identifier: Apache-2.0
//! `netserv.toml` as it is written, key by key. Unknown keys are refused, since they are typing errors.

use std::collections::BTreeMap;

use netserv_model::manifest::{Amounts, ChainPart, Drain, Manifest, ModuleLimits, PacketPart, ServerPart, ServicePart};
use netserv_model::request::Dependency;
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, ModuleName, WantedFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Project;
use crate::cases::{HttpTest, PacketTest, TcpTest};

/// A module's project: what nodes need to run it, how it is built, and its tests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(title = "netserv.toml")]
pub(crate) struct ProjectFile {
    /// The major version of the manifest that it becomes: 1.
    pub(crate) manifest: u32,
    /// The unique name, a domain and a path.
    name: ModuleName,
    /// The semantic version.
    version: semver::Version,
    /// One line for people.
    #[serde(default)]
    description: String,
    /// The building blocks it needs, as `kv>=1`.
    #[serde(default)]
    dependencies: Vec<Dependency>,
    /// The part in the packet path; a module has this part, a server part, or both.
    packet: Option<PacketSection>,
    /// The part that takes connections in the container's own network.
    server: Option<ServerSection>,
    /// The modules that a service is made of; a package with it has no code of its own.
    service: Option<ServiceSection>,
    /// What it needs at most; the node's own limits stay above these.
    #[serde(default)]
    limits: ModuleLimits,
    /// What it cannot do with less of: a node that grants less refuses it, and says of what. Limits of the same names are at
    /// least as high.
    #[serde(default)]
    needs: Amounts,
    /// Properties that a SETUP may override.
    #[serde(default)]
    properties: BTreeMap<String, String>,
    /// The version of what it keeps in kv state; a replacement with another version starts with none.
    #[serde(default = "one")]
    state_schema: u32,
    /// Recorded packets that go in and must come out, run by `netserv module test`.
    #[serde(default, rename = "test")]
    tests: Vec<PacketTest>,
    /// HTTP requests with the responses they must have, run by `netserv module test`.
    #[serde(default, rename = "http-test")]
    http_tests: Vec<HttpTest>,
    /// TCP connections with the bytes that must come out, run by `netserv module test`.
    #[serde(default, rename = "tcp-test")]
    tcp_tests: Vec<TcpTest>,
    /// How `netserv module build` makes the code.
    #[serde(default)]
    build: Build,
}

impl ProjectFile {
    pub(crate) fn into_project(mut self) -> Project {
        let tls = self.server.as_mut().and_then(|server| server.tls.take());
        let server = self.server.map(|server| ServerPart {
            listen: server.listen,
            intercept: server.intercept,
            on_failure: server.on_failure,
            tls: tls.is_some(),
            intercept_tls: server.intercept_tls,
            drain: server.drain,
        });
        let packet = |packet: PacketSection| PacketPart {
            abi: packet.abi,
            filters: packet.filters,
            on_failure: packet.on_failure,
            parallel: packet.parallel,
        };
        let mut manifest = Manifest {
            manifest: self.manifest,
            requires: [].into(),
            name: self.name,
            version: self.version,
            description: self.description,
            dependencies: self.dependencies,
            packet: self.packet.map(packet),
            server,
            service: self.service.map(|service| ServicePart { chain: service.chain }),
            limits: self.limits.raised_to(&self.needs),
            needs: self.needs,
            properties: self.properties,
            state_schema: self.state_schema,
        };
        manifest.requires = manifest.used_features();
        Project {
            manifest,
            tls,
            build: self.build,
            tests: self.tests,
            http_tests: self.http_tests,
            tcp_tests: self.tcp_tests,
        }
    }
}

/// The part of a module in the packet path.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PacketSection {
    /// The packet ABI that the WebAssembly code was built for (`wit/packet-abi.md`); 0 where there is none.
    #[serde(default)]
    abi: u32,
    /// Which packets it sees unless the SETUP says otherwise.
    #[serde(default)]
    filters: Vec<WantedFilter>,
    /// What happens to its packets while it cannot say.
    #[serde(default)]
    on_failure: FailureMode,
    /// Whether it may run as several instances at once, one for each lane of the node: each has memory and timers of its own, and
    /// packets of one flow come to the same one. They share kv state, and their counters are summed.
    #[serde(default)]
    parallel: bool,
}

/// The part of a module that takes connections.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServerSection {
    /// Where it takes connections, such as `tcp port 80`: a protocol and its ports at the container's own addresses,
    /// from everywhere or from `src PREFIX`.
    #[serde(default)]
    listen: Vec<Filter>,
    /// Connections between others that it takes over, such as `tcp dst 10.2.0.0/16 port 80`, seen from the client.
    #[serde(default)]
    intercept: Vec<Filter>,
    /// What happens to new connections of `intercept` while it cannot take them.
    #[serde(default)]
    on_failure: FailureMode,
    /// With it, HTTP on its own ports is HTTPS.
    tls: Option<Tls>,
    /// Names in that certificate: intercepted connections of TLS to them are HTTPS for the module, too.
    #[serde(default)]
    intercept_tls: Vec<String>,
    /// What becomes of open connections of `intercept` when the module is removed or its lease ends.
    #[serde(default)]
    drain: Drain,
}

/// The files that a server shows to its clients to prove who it is; `netserv module build` packages them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tls {
    /// The certificate chain in PEM, the server's own first, relative to the project's file.
    pub certificate: String,
    /// The certificate's key in PEM, relative to the project's file.
    pub key: String,
}

/// What a service is made of.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServiceSection {
    /// Modules of the same user by name and range of versions, `example.org/auth@^1`: packets and requests go through
    /// them in this order.
    chain: Vec<ChainPart>,
}

/// How the code is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Build {
    /// A shell command, run where the project's file is; nothing if the code is made some other way.
    pub command: Option<String>,
    /// The WebAssembly core module that the command leaves, for `[packet]`, relative to the project's file.
    pub wasm: Option<String>,
    /// The WebAssembly component that the command leaves, for `[server]`, relative to the project's file.
    pub component: Option<String>,
    /// The OSGi bundle that the command leaves, relative to the project's file.
    pub bundle: Option<String>,
}

fn one() -> u32 {
    1
}
