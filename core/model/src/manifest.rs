// SPDX-License-Identifier: Apache-2.0
//! `netserv.toml`: what a module package says of itself. Unknown keys are refused.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ParseIdError;
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
    /// The modules that a service is made of; a package with it has no code of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServicePart>,
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
    /// HTTP requests with the responses they must have, run by `netserv module test`.
    #[serde(default, rename = "http-test", skip_serializing_if = "Vec::is_empty")]
    pub http_tests: Vec<HttpTest>,
    /// TCP connections with the bytes that must come out, run by `netserv module test`.
    #[serde(default, rename = "tcp-test", skip_serializing_if = "Vec::is_empty")]
    pub tcp_tests: Vec<TcpTest>,
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

    /// Returns which connections between others the module takes over.
    pub fn intercept(&self) -> &[Filter] {
        self.server.as_ref().map_or(&[], |server| &server.intercept)
    }

    /// Returns whether there is a test of any kind.
    pub fn has_tests(&self) -> bool {
        !(self.tests.is_empty() && self.http_tests.is_empty() && self.tcp_tests.is_empty())
    }

    /// Returns the parts of the service that the package is, in order; none if it has code of its own.
    pub fn chain(&self) -> &[ChainPart] {
        self.service.as_ref().map_or(&[], |service| &service.chain)
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
    /// Connections between others that it takes over, such as `tcp dst 10.2.0.0/16 port 80`, seen from the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercept: Vec<Filter>,
    /// What happens to new connections of `intercept` while it cannot take them.
    #[serde(default)]
    pub on_failure: FailureMode,
    /// With it, HTTP on its own ports is HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// The files that a server shows to its clients to prove who it is; `netserv module build` packages them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tls {
    /// The certificate chain in PEM, the server's own first, relative to the manifest.
    pub certificate: String,
    /// The certificate's key in PEM, relative to the manifest.
    pub key: String,
}

/// What a service is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
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

/// What one module may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ModuleLimits {
    /// Memory in bytes: the linear memory of WebAssembly code, of each instance that serves an HTTP request, too; a
    /// bundle shares the heap of its JVM, which has so much.
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
    /// Milliseconds that one HTTP request may take, from its head to the end of the response.
    pub request_ms: u32,
    /// HTTP requests at a time.
    pub requests: u32,
    /// Connections at a time, at ports of its own and intercepted.
    pub connections: u32,
    /// Bytes of one HTTP request's body.
    pub body_bytes: u64,
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
            request_ms: 10_000,
            requests: 64,
            connections: 8192,
            body_bytes: 16 * 1024 * 1024,
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

/// One test of an HTTP module: a request, and what its response must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HttpTest {
    /// What the test is called.
    pub name: String,
    /// The request's method.
    #[serde(default = "get")]
    pub method: String,
    /// The request's path, with its query if there is one.
    #[serde(default = "root")]
    pub path: String,
    /// The request's headers; `host` is `module.test` if it is not here.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The request's body, as text.
    #[serde(default)]
    pub body: Option<String>,
    /// A file with the request's body, relative to the manifest.
    #[serde(default)]
    pub body_file: Option<String>,
    /// Properties for this test.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// The response's status.
    #[serde(default = "ok_status")]
    pub status: u16,
    /// Headers that the response must have.
    #[serde(default)]
    pub expect_headers: BTreeMap<String, String>,
    /// The response's whole body, as text.
    #[serde(default)]
    pub expect_body: Option<String>,
    /// A file with the response's whole body, relative to the manifest; `netserv module test --accept` writes it.
    #[serde(default)]
    pub expect_body_file: Option<String>,
    /// Text that must be somewhere in the response's body.
    #[serde(default)]
    pub expect_contains: Vec<String>,
}

/// One test of a module that handles TCP connections as events: a connection, and what must come out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TcpTest {
    /// What the test is called.
    pub name: String,
    /// Whether the connection is one between others that the module takes over; else it is opened to the module, and
    /// there is no server.
    #[serde(default)]
    pub intercepted: bool,
    /// The client's address and port.
    #[serde(default = "test_client")]
    pub client: SocketAddr,
    /// The address and port that the client connects to.
    #[serde(default = "test_server")]
    pub server: SocketAddr,
    /// Properties for this test.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// What happens, in order.
    #[serde(default)]
    pub steps: Vec<TcpStep>,
    /// What has become of the connection after the last step.
    #[serde(default)]
    pub outcome: TcpOutcome,
}

/// One step of a TCP test: what the sides send, and all that they get before the next step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TcpStep {
    /// What the client sends.
    pub from_client: Option<TestBytes>,
    /// What the server sends, after the client.
    pub from_server: Option<TestBytes>,
    /// Who sends no more from here on.
    pub end: Option<TcpSide>,
    /// Milliseconds that pass then, for modules with timers.
    pub wait_ms: u64,
    /// What the client gets; without it nothing.
    pub to_client: Option<TestBytes>,
    /// What the server gets; without it nothing.
    pub to_server: Option<TestBytes>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpSide {
    /// Who opened it.
    Client,
    /// Whom it was opened to.
    Server,
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpOutcome {
    /// It goes on, with the module.
    #[default]
    Open,
    /// The module did not take it.
    Refused,
    /// It goes on without the module.
    Spliced,
    /// It was closed.
    Closed,
    /// It was reset: what the module wanted to send is more than it may.
    Reset,
}

impl fmt::Display for TcpOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TcpOutcome::Open => "open",
            TcpOutcome::Refused => "refused",
            TcpOutcome::Spliced => "spliced",
            TcpOutcome::Closed => "closed",
            TcpOutcome::Reset => "reset",
        })
    }
}

/// Bytes of a test: a text, a list of numbers, or a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields, expecting = "expected a text, a list of bytes, or { file = \"PATH\" }")]
pub enum TestBytes {
    /// A text.
    Text(String),
    /// Numbers, one for each byte.
    Bytes(Vec<u8>),
    /// The content of a file, relative to the manifest; `netserv module test --accept` writes those that must come out.
    File {
        /// The file.
        file: String,
    },
}

fn get() -> String {
    "GET".to_owned()
}

fn root() -> String {
    "/".to_owned()
}

fn ok_status() -> u16 {
    200
}

/// Returns who opens connections in tests that do not say.
pub fn test_client() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 40_000))
}

/// Returns whom connections are opened to in tests that do not say.
pub fn test_server() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 7000))
}

/// How the code is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Build {
    /// A shell command, run where the manifest is; nothing if the code is made some other way.
    pub command: Option<String>,
    /// The WebAssembly core module that the command leaves, for `[packet]`, relative to the manifest.
    pub wasm: Option<String>,
    /// The WebAssembly component that the command leaves, for `[server]`, relative to the manifest.
    pub component: Option<String>,
    /// The OSGi bundle that the command leaves, relative to the manifest.
    pub bundle: Option<String>,
}

impl Build {
    /// Returns the file that has the code of a flavour for packets, if there is one.
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
