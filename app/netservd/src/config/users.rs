// SPDX-License-Identifier: Apache-2.0
//! The users that a node knows, and what each may do.

use std::net::IpAddr;

use anyhow::{Context, Result};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netserv_model::manifest::ModuleLimits;
use netserv_model::policy::{ContainerLimits, NetworkRate, UserPolicy};
use netserv_model::{Filter, PortRange, PublicKey, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::SERVICES_MAX;

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
    #[serde(default = "modules_max")]
    pub modules_max: u32,
    /// The highest limits of one module.
    #[serde(default = "ModuleLimits::ceiling", deserialize_with = "ModuleLimits::deserialize_ceiling")]
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
    /// What each hour costs in which one of its modules is installed, in a unit that it and the operator agreed on. It is told in answer to
    /// PROBE, for `netserv candidates`; the node charges nothing by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<u64>,
}

impl User {
    /// Returns what admission depends on.
    ///
    /// # Errors
    /// Ports that are none.
    pub fn policy(&self) -> Result<UserPolicy> {
        Ok(UserPolicy {
            keys: self.keys.clone(),
            prefixes: self.prefixes.clone(),
            ports: ports_of(&self.ports).with_context(|| format!("ports of user {}", self.name))?,
            modules_max: self.modules_max,
            module_limits: self.module_limits,
            container: self.container,
            listen: self.listen.clone(),
            connect: self.connect.clone(),
            network: self.network,
            addresses: self.addresses.clone(),
            price_per_hour: self.price_per_hour,
        })
    }

    /// Returns what the node's own services may do: see every packet, without a network.
    pub fn operator(keys: Vec<PublicKey>) -> UserPolicy {
        let everywhere = [IpNet::from(Ipv4Net::default()), IpNet::from(Ipv6Net::default())];
        let services = u32::try_from(SERVICES_MAX).expect("there are few services");
        UserPolicy { keys, prefixes: everywhere.to_vec(), modules_max: services, ..UserPolicy::default() }
    }
}

/// Reads ports as configurations write them.
pub(super) fn ports_of(texts: &[String]) -> Result<Vec<PortRange>> {
    texts.iter().map(|text| Ok(text.parse()?)).collect()
}

fn modules_max() -> u32 {
    UserPolicy::default().modules_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_of_module_limits_leaves_the_others_as_they_are_without_it() {
        let user = |more: &str| toml::from_str::<User>(&format!("name = 'jane'\nkeys = []\nprefixes = []\n{more}"));
        let plain = user("").unwrap().module_limits;
        assert_eq!(plain, ModuleLimits::ceiling());
        assert_eq!(user("module-limits = {}").unwrap().module_limits, plain);
        let one = user("module-limits = { timers = 7 }").unwrap().module_limits;
        assert_eq!(one, ModuleLimits { timers: 7, ..plain });
        let unknown = user("module-limits = { timer = 7 }").unwrap_err().to_string();
        assert!(unknown.contains("unknown field `timer`"), "{unknown}");
    }
}
