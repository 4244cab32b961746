// SPDX-License-Identifier: Apache-2.0
//! Flows of this machine in the configuration.

use std::time::Duration;

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::Deserialize;

/// Flows of programs of this machine, which know nothing of it. The client that a rule goes by is the other end of each.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flows {
    /// Its name in rules.
    pub name: String,
    /// What they are carried by.
    pub protocol: FlowProtocol,
    /// The port of the other end, for flows that programs here open. It takes one of both ports.
    #[serde(default)]
    pub remote_port: Option<u16>,
    /// The port of this end, for flows that come to servers here.
    #[serde(default)]
    pub local_port: Option<u16>,
    /// Seconds between two looks at them, 0.1 at least.
    #[serde(default = "every_s")]
    pub every_s: f64,
}

/// What flows are carried by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowProtocol {
    /// TCP, from when a connection is being opened.
    Tcp,
    /// UDP, as far as sockets are connected.
    Udp,
}

/// By which end flows are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPort {
    /// The other end's port.
    Remote(u16),
    /// This end's port.
    Local(u16),
}

impl Flows {
    /// Returns the port by which flows are told; none if that is not clear.
    pub fn port(&self) -> Option<FlowPort> {
        match (self.remote_port.filter(|port| *port != 0), self.local_port.filter(|port| *port != 0)) {
            (Some(port), None) => Some(FlowPort::Remote(port)),
            (None, Some(port)) => Some(FlowPort::Local(port)),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// Returns the time between two looks.
    pub fn every(&self) -> Duration {
        Duration::from_secs_f64(self.every_s)
    }

    /// Checks what the shape of a file does not hold.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<()> {
        ensure!(self.port().is_some(), "it needs `remote-port` or `local-port`, one of them, from 1 on");
        ensure!((0.1..=60.0).contains(&self.every_s), "`every-s` is {}, not 0.1 to 60", self.every_s);
        Ok(())
    }
}

fn every_s() -> f64 {
    0.5
}
