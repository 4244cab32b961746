// SPDX-License-Identifier: Apache-2.0
//! What a node's operator allows.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::DomainPolicy;
use crate::filter::PortRange;
use crate::limits;
use crate::manifest::{Amounts, ModuleLimits, Resource};
use crate::request::Environment;
use crate::{Filter, NodeId, PublicKey, UserId};

/// Everything that admission depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePolicy {
    /// The node's name.
    pub node: NodeId,
    /// Whether the node only sends requests and runs nothing.
    pub host_only: bool,
    /// Whether the operator drains the node: it takes nothing new, and renews no lease.
    #[serde(default)]
    pub maintenance: bool,
    /// Whether unsigned requests are taken from known users. Off unless the operator says so.
    pub accept_unsigned: bool,
    /// Whether requests have to name where they are carried out, so that copies are taken nowhere else.
    #[serde(default)]
    pub require_target: bool,
    /// How far `created` may lie from the node's clock.
    pub clock_skew_max: Duration,
    /// The longest lease.
    pub ttl_max: Duration,
    /// The known users.
    pub users: BTreeMap<UserId, UserPolicy>,
    /// Building blocks and flavours with their versions.
    pub blocks: BTreeMap<String, u32>,
    /// What runs modules here, the preferred one first.
    pub environments: Vec<Environment>,
    /// Prefixes of which users' containers get addresses.
    pub container_prefixes: Vec<IpNet>,
    /// Bytes on disk of the cache that one user's modules of one flavour share; 0 without the block.
    #[serde(default)]
    pub cache_bytes: u64,
    /// As whom the operator's own services run.
    #[serde(default)]
    pub operator: Option<OperatorPolicy>,
    /// Whom signaling believes, and what leaves the domain.
    #[serde(default)]
    pub domain: DomainPolicy,
    /// Who may vouch for users that `users` does not name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issuers: Vec<Issuer>,
    /// What such users get, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Class>,
    /// What users get for whom an address vouches, a name of `classes`; without it, none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_class: Option<String>,
    /// How addresses are asked whom they vouch for.
    #[serde(default)]
    pub address_tls: AddressTls,
    /// Addresses that vouch for nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub address_excluded: Vec<IpNet>,
    /// What users get for whom the holder of prefixes vouches by a checklist, a name of `classes`; without it, none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpki_class: Option<String>,
}

words! {
    serde
    /// How an address is asked whom it vouches for.
    #[derive(Default)]
    pub enum AddressTls {
        /// By HTTP; by HTTPS, whatever certificate it has, if it refuses that or leads there.
        #[default]
        Allow = "allow",
        /// By HTTPS alone; it has to have a certificate of a public authority for the address.
        Require = "require",
    }
}

/// One who may vouch for users by grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuer {
    /// What the operator calls it.
    pub name: String,
    /// Keys that it signs grants with.
    pub keys: Vec<PublicKey>,
    /// Prefixes of which it may give parts.
    pub prefixes: Vec<IpNet>,
    /// What its users get, a name of [`NodePolicy::classes`].
    pub class: String,
    /// Where it says what it takes back; without that, nothing is before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocations: Option<RevocationSource>,
}

/// Where an issuer's revocation list is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationSource {
    /// The URL.
    pub url: String,
    /// How often it is asked for.
    pub every: Duration,
    /// For how long after it was made a list is good.
    pub age_max: Duration,
}

/// What each user gets at most whose rights come from a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Users at one time, for each issuer.
    pub users_max: usize,
    /// Prefixes of one user.
    pub prefixes_max: usize,
    /// The longest lease, where it is shorter than the node's.
    pub lease_max: Option<Duration>,
    /// The rest; without keys, prefixes and addresses.
    pub rights: UserPolicy,
}

/// The user as whom the operator's own services run: what it uses is charged to nobody, and its keys sign packages only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorPolicy {
    /// The user.
    pub user: UserId,
    /// The one key that signs its requests, which the node alone has.
    pub key: PublicKey,
}

impl NodePolicy {
    /// Returns a policy that knows nobody and refuses everything unsigned.
    pub fn new(node: NodeId) -> NodePolicy {
        NodePolicy {
            node,
            host_only: false,
            maintenance: false,
            accept_unsigned: false,
            require_target: false,
            clock_skew_max: limits::CLOCK_SKEW_MAX,
            ttl_max: limits::TTL_MAX,
            users: BTreeMap::new(),
            blocks: BTreeMap::new(),
            environments: Vec::new(),
            container_prefixes: Vec::new(),
            cache_bytes: 0,
            operator: None,
            domain: DomainPolicy::default(),
            issuers: Vec::new(),
            classes: BTreeMap::new(),
            address_class: None,
            address_tls: AddressTls::default(),
            address_excluded: Vec::new(),
            rpki_class: None,
        }
    }

    /// Returns whether containers have a network of their own, so that modules can be servers.
    pub fn has_network(&self) -> bool {
        let given = || self.users.values().any(|user| !user.addresses.is_empty());
        !self.host_only && (!self.container_prefixes.is_empty() || given())
    }

    /// Returns of what users' containers get their addresses; empty if they have no network.
    pub fn address_plan(&self) -> AddressPlan {
        if !self.has_network() {
            return AddressPlan::default();
        }
        let users = self.users.iter().map(|(user, policy)| (user.clone(), policy.addresses.clone())).collect();
        AddressPlan { prefixes: self.container_prefixes.clone(), users }
    }
}

/// Of what users' containers get their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPlan {
    /// Prefixes with addresses for users who have none of their own.
    pub prefixes: Vec<IpNet>,
    /// The known users with the addresses that the operator gave each; none for one of `prefixes`.
    pub users: BTreeMap<UserId, Vec<IpAddr>>,
}

/// What one user may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserPolicy {
    /// Keys that the user signs with.
    pub keys: Vec<PublicKey>,
    /// Prefixes of the user's own: each filter's source or destination must lie in one of them.
    pub prefixes: Vec<IpNet>,
    /// Destination ports that the user's filters may name; empty means every port.
    pub ports: Vec<PortRange>,
    /// Modules at most.
    pub modules_max: u32,
    /// The highest limits that a module of the user's gets.
    pub module_limits: ModuleLimits,
    /// The limits of the container as a whole.
    pub container: ContainerLimits,
    /// Connections that the user's container may take; empty means none.
    pub listen: Vec<Filter>,
    /// Connections that the user's container may open; empty means none.
    pub connect: Vec<Filter>,
    /// How fast the user sends and receives.
    pub network: NetworkRate,
    /// The addresses of the user's container, in place of free ones of [`NodePolicy::container_prefixes`].
    pub addresses: Vec<IpAddr>,
    /// What each hour costs in which one of the user's modules is installed, in a unit that both agreed on, if the operator says so.
    #[serde(default)]
    pub price_per_hour: Option<u64>,
}

impl Default for UserPolicy {
    /// Returns what a user may do for whom the operator says nothing: with no keys and no prefixes, nothing.
    fn default() -> UserPolicy {
        UserPolicy {
            keys: Vec::new(),
            prefixes: Vec::new(),
            ports: Vec::new(),
            modules_max: 8,
            module_limits: ModuleLimits::ceiling(),
            container: ContainerLimits::default(),
            listen: Vec::new(),
            connect: Vec::new(),
            network: NetworkRate::default(),
            addresses: Vec::new(),
            price_per_hour: None,
        }
    }
}

impl UserPolicy {
    /// Returns whether the user's container may take or open connections, so that it is to have a network.
    pub fn needs_network(&self) -> bool {
        !self.listen.is_empty() || !self.connect.is_empty()
    }

    /// Returns the most that one of the user's modules is granted, on a node whose caches have so many bytes.
    pub fn ceilings(&self, cache_bytes: u64) -> Amounts {
        let mut amounts = self.module_limits.amounts();
        amounts.extend([
            (Resource::CpuPermille, self.container.cpu_permille.into()),
            (Resource::DiskBytes, self.container.disk_bytes),
            (Resource::PacketsPerSecond, self.network.packets_per_second),
            (Resource::BitsPerSecond, self.network.bits_per_second),
            (Resource::CacheBytes, cache_bytes),
        ]);
        amounts
    }

    /// Returns what the user's containers are held to while they run.
    pub fn permits(&self) -> Permits {
        Permits {
            prefixes: self.prefixes.clone(),
            listen: self.listen.clone(),
            connect: self.connect.clone(),
            rate: self.network,
        }
    }
}

/// What the containers of one user are held to on the network, whatever is loaded into them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Sources that packets of its modules may have beside those of the packets that they were shown.
    pub prefixes: Vec<IpNet>,
    /// Connections that they may take.
    pub listen: Vec<Filter>,
    /// Connections that they may open.
    pub connect: Vec<Filter>,
    /// How fast they send, and receive.
    pub rate: NetworkRate,
}

impl Permits {
    /// Returns whether they may take or open connections, so that they are to have a network.
    pub fn needs_network(&self) -> bool {
        !self.listen.is_empty() || !self.connect.is_empty()
    }
}

/// How fast one user sends, and as much again receives; what is over it waits for a moment or is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NetworkRate {
    /// Packets in a second.
    pub packets_per_second: u64,
    /// Bits in a second, with all headers.
    pub bits_per_second: u64,
}

impl NetworkRate {
    /// Says what is wrong with a rate that no network can have.
    ///
    /// # Errors
    /// A figure out of its bounds, in words.
    pub fn check(&self) -> Result<(), String> {
        let packets = 1..=limits::NETWORK_PACKETS_PER_SECOND_MAX;
        let bits = limits::NETWORK_BITS_PER_SECOND_MIN..=limits::NETWORK_BITS_PER_SECOND_MAX;
        for (key, value, range) in
            [("packets-per-second", self.packets_per_second, packets), ("bits-per-second", self.bits_per_second, bits)]
        {
            if !range.contains(&value) {
                return Err(format!("`{key}` is {} to {}, not {value}", range.start(), range.end()));
            }
        }
        Ok(())
    }
}

impl Default for NetworkRate {
    fn default() -> NetworkRate {
        NetworkRate {
            packets_per_second: limits::NETWORK_PACKETS_PER_SECOND,
            bits_per_second: limits::NETWORK_BITS_PER_SECOND,
        }
    }
}

/// What one service container may use, enforced by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ContainerLimits {
    /// Memory in bytes, with everything that its processes use.
    pub memory_bytes: u64,
    /// Processor time in thousandths of one core.
    pub cpu_permille: u32,
    /// Processes and threads.
    pub pids: u32,
    /// Bytes in its writable directory.
    pub disk_bytes: u64,
}

impl Default for ContainerLimits {
    fn default() -> ContainerLimits {
        ContainerLimits { memory_bytes: 96 * 1024 * 1024, cpu_permille: 1000, pids: 64, disk_bytes: 16 * 1024 * 1024 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_bounds() {
        let good = NetworkRate::default();
        let check = |rate: NetworkRate, expected: bool| assert_eq!(rate.check().is_ok(), expected, "{rate:?}");
        for (packets_per_second, expected) in
            [(0, false), (1, true), (limits::NETWORK_PACKETS_PER_SECOND_MAX, true), (u64::MAX, false)]
        {
            check(NetworkRate { packets_per_second, ..good }, expected);
        }
        for (bits_per_second, expected) in [
            (limits::NETWORK_BITS_PER_SECOND_MIN - 1, false),
            (limits::NETWORK_BITS_PER_SECOND_MIN, true),
            (limits::NETWORK_BITS_PER_SECOND_MAX, true),
            (limits::NETWORK_BITS_PER_SECOND_MAX + 1, false),
        ] {
            check(NetworkRate { bits_per_second, ..good }, expected);
        }
    }
}
