// SPDX-License-Identifier: Apache-2.0
//! Logs in the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern::Pattern;

/// Where log lines come to, as syslog sends them: one line in each datagram.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Log {
    /// Its name in rules.
    pub name: String,
    /// The path of a Unix socket. It takes this or `udp`.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// A loopback address and port, to which every user of this machine may write.
    #[serde(default)]
    pub udp: Option<SocketAddr>,
    /// The group, by name or number, whose processes may write to the Unix socket beside the agent's user; nobody else may.
    #[serde(default)]
    pub group: Option<String>,
    /// What lines look like: text with `{client}` and other fields.
    #[schemars(with = "String")]
    pub pattern: Pattern,
}

impl Log {
    /// Returns whether both read the same socket.
    pub fn has_socket_of(&self, other: &Log) -> bool {
        (&self.socket, self.udp) == (&other.socket, other.udp)
    }

    /// Returns where its lines come to, for people.
    pub fn at(&self) -> String {
        let path = self.socket.as_ref().map(|path| path.display().to_string());
        path.or_else(|| self.udp.map(|address| format!("UDP {address}"))).unwrap_or_default()
    }

    /// Checks what the shape of a file does not hold.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<()> {
        ensure!(self.pattern.has("client"), "the pattern has no `{{client}}`");
        ensure!(self.socket.is_some() != self.udp.is_some(), "it needs `socket` or `udp`, one of them");
        let is_local = self.udp.is_none_or(|address| address.ip().is_loopback());
        ensure!(is_local, "`udp` is no loopback address: whoever reaches it says who clients are");
        ensure!(self.udp.is_none() || self.group.is_none(), "`group` is for `socket`");
        Ok(())
    }
}
