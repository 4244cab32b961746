// SPDX-License-Identifier: Apache-2.0
//! The tests of a module, as `netserv module test` runs them without a node.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One recorded test of a packet module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PacketTest {
    /// What the test is called.
    pub name: String,
    /// A capture of the packets that go in, relative to the project's file.
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
    /// A file with the request's body, relative to the project's file.
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
    /// A file with the response's whole body, relative to the project's file; `netserv module test --accept` writes it.
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
    /// The content of a file, relative to the project's file; `netserv module test --accept` writes those that must come out.
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
