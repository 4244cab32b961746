// SPDX-License-Identifier: Apache-2.0
//! Addresses that lead to a module wherever it is.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A floating address that a node does not lead to a module any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenUp {
    /// The address.
    pub address: IpAddr,
    /// The epoch in which another module has it, which this or another node runs.
    pub epoch: u64,
}

/// Returns whether a container can have the address: one of one machine, and not only on one link.
pub fn is_container_address(address: IpAddr) -> bool {
    let near = match address {
        // RFC 1122 §3.2.1.3: 0.0.0.0/8 is "this network".
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    !(near || address.is_unspecified() || address.is_loopback() || address.is_multicast())
}
