// SPDX-License-Identifier: Apache-2.0
//! The users that a node knows, and what each may do.

use std::net::IpAddr;

use anyhow::{Context, Result};
use ipnet::IpNet;
use netserv_model::manifest::ModuleLimits;
use netserv_model::policy::{ContainerLimits, NetworkRate, UserPolicy};
use netserv_model::{Filter, PortRange, PublicKey, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One user and what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct User {
    /// The user's name.
    pub name: UserId,
    /// Keys that it signs with.
    pub keys: Vec<PublicKey>,
    /// Its own prefixes: a filter's source or destination must lie in one of them.
    #[schemars(with = "Vec<String>")]
    pub prefixes: Vec<IpNet>,
    /// Ports that its filters may name, as `5060` or `16384-32767`; empty means every port.
    #[serde(default)]
    pub ports: Vec<String>,
    /// Modules at most.
    #[serde(default = "eight")]
    pub modules_max: u32,
    /// The highest limits of one module.
    #[serde(default = "module_ceiling")]
    pub module_limits: ModuleLimits,
    /// Limits of the user's container.
    #[serde(default)]
    pub container: ContainerLimits,
    /// What the user's containers may accept; with neither this nor `connect`, they have no network.
    #[serde(default)]
    pub listen: Vec<Filter>,
    /// What the user's containers may open. Without `dst`, it is about other machines only.
    #[serde(default)]
    pub connect: Vec<Filter>,
    /// How fast the user's containers send and receive by their network, each way.
    #[serde(default)]
    pub network: NetworkRate,
    /// The addresses of the user's container, in place of free ones of `network.prefixes`.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
}

impl User {
    /// Returns what admission depends on.
    ///
    /// # Errors
    /// Ports that are none.
    pub fn policy(&self) -> Result<UserPolicy> {
        let ports = self.ports.iter().map(|text| Ok(text.parse::<PortRange>()?)).collect::<Result<Vec<_>>>();
        Ok(UserPolicy {
            keys: self.keys.clone(),
            prefixes: self.prefixes.clone(),
            ports: ports.with_context(|| format!("ports of user {}", self.name))?,
            modules_max: self.modules_max,
            module_limits: self.module_limits,
            container: self.container,
            listen: self.listen.clone(),
            connect: self.connect.clone(),
            network: self.network,
            addresses: self.addresses.clone(),
        })
    }
}

fn eight() -> u32 {
    8
}

/// Twice what a manifest gets by default, so that a plain module never meets the ceiling.
fn module_ceiling() -> ModuleLimits {
    let default = ModuleLimits::default();
    ModuleLimits { memory_bytes: 2 * default.memory_bytes, call_ms: 2 * default.call_ms, ..default }
}
