// SPDX-License-Identifier: Apache-2.0
//! A network of which the kernel knows nothing, for tests of those who hand networks on.

use std::fs::File;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::container_network::ContainerNetwork;
use super::error::NetworkError;
use super::matching::Permits;
use super::sockets;

impl ContainerNetwork {
    /// Returns a network that has these addresses and is no network: its namespace is the caller's, and nothing is added
    /// to it or taken from it.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn detached(addresses: &[IpAddr]) -> Result<ContainerNetwork, NetworkError> {
        let namespace = File::open("/proc/self/ns/net").map_err(NetworkError::kernel("open a namespace"))?;
        let permits = Permits { addresses: addresses.to_vec(), ..Permits::default() };
        Ok(ContainerNetwork {
            name: String::new(),
            namespace: OwnedFd::from(namespace),
            routes: sockets::routes()?,
            rules: sockets::routes()?,
            indices: (0, 0),
            permits: Mutex::new(permits),
            prepared: Mutex::new(false),
            removed: AtomicBool::new(true),
        })
    }
}
