// SPDX-License-Identifier: Apache-2.0
//! The node's own addresses, and those it has toward others.

use std::net::IpAddr;

use anyhow::{Context, Result};
use netserv_dataplane::InterfaceId;
use netserv_dataplane::signal::{LocalAddresses, RouteMonitor, Routes};

/// What the kernel knows of addresses and routes.
pub struct OwnAddresses {
    routes: Routes,
    addresses: LocalAddresses,
    monitor: RouteMonitor,
}

impl OwnAddresses {
    /// Asks for the addresses.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn open() -> Result<OwnAddresses> {
        let routes = Routes::open().context("the routing table cannot be asked")?;
        let addresses = routes.addresses()?;
        let monitor = RouteMonitor::open()?;
        Ok(OwnAddresses { routes, addresses, monitor })
    }

    /// Returns the node's own addresses if they may have changed since the last call.
    pub fn changed(&mut self) -> Option<Vec<IpAddr>> {
        if !self.monitor.changed() {
            return None;
        }
        self.addresses = self.routes.addresses().ok()?;
        Some(self.all())
    }

    /// Returns the node's own addresses.
    pub fn all(&self) -> Vec<IpAddr> {
        self.addresses.all().iter().map(|local| local.address).collect()
    }

    /// Returns the node's address toward a destination.
    pub fn source_for(&self, destination: IpAddr) -> Option<IpAddr> {
        self.routes.source_for(destination).ok().flatten().map(|(local, _)| local)
    }

    /// Returns the node's address on an interface, of the version of `like`.
    pub fn on(&self, interface: u32, like: IpAddr) -> IpAddr {
        let found = self.addresses.on(InterfaceId(interface), like.is_ipv6());
        found.unwrap_or(if like.is_ipv4() { [0_u8; 4].into() } else { [0_u8; 16].into() })
    }
}
