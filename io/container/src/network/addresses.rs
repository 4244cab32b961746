// SPDX-License-Identifier: Apache-2.0
//! Addresses of the node, and which ones a container can have.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use netserv_netlink::{Family, Socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::NetworkError;
use super::limits::NODE_ADDRESSES_MAX;
use super::{link, sockets};

/// Tells when addresses of the node change, in the network namespace in which it was made.
#[derive(Debug)]
pub struct AddressWatch(Socket);

impl AddressWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The kernel gives no socket.
    pub fn open() -> io::Result<AddressWatch> {
        Socket::listening(Family::Route, link::ADDRESS_GROUPS).map(AddressWatch)
    }

    /// Waits for a change at most so long, and returns whether there was one.
    pub fn wait(&self, time: Duration) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let time = Timespec::try_from(time).ok();
        let changed = poll(&mut fds, time.as_ref()).is_ok_and(|ready| ready > 0);
        if changed {
            self.0.drain();
        }
        changed
    }
}

/// Returns what this network namespace takes for itself, but for loopback: its addresses and the broadcasts of their
/// networks, at most [`NODE_ADDRESSES_MAX`] of each version
/// of IP.
///
/// # Errors
/// [`NetworkError`] if the kernel does not tell.
pub fn node_addresses() -> Result<BTreeSet<IpAddr>, NetworkError> {
    let host = sockets::routes()?;
    addresses_of(&host)
}

/// As [`node_addresses`], asked over a socket of the namespace.
pub(super) fn addresses_of(host: &Socket) -> Result<BTreeSet<IpAddr>, NetworkError> {
    let mut all: BTreeSet<IpAddr> =
        link::addresses(host).map_err(NetworkError::kernel("ask for the node's addresses"))?.into_iter().collect();
    for is_v4 in [true, false] {
        let over: Vec<IpAddr> =
            all.iter().copied().filter(|address| address.is_ipv4() == is_v4).skip(NODE_ADDRESSES_MAX).collect();
        if !over.is_empty() {
            tracing::warn!(over = over.len(), "containers are not kept from all addresses of this node");
            all.retain(|address| !over.contains(address));
        }
    }
    Ok(all)
}
