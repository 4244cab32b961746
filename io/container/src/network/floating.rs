// SPDX-License-Identifier: Apache-2.0
//! Addresses that follow a module from node to node.
//!
//! Each is an address of the container's interface, and a route of the node with a protocol number of its own, by which a
//! routing daemon knows it and tells others of it. Both are on the container's link, so they go when the link goes: also
//! when `netservd` is killed, and with it the last process in the container's namespace.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use netserv_model::floating::is_container_address;
use netserv_netlink::rtnetlink::{CREATE, DELETE_ROUTE, EXCLUSIVE, NEW_ROUTE};
use netserv_netlink::{Requests, Socket};

use super::container_network::ContainerNetwork;
use super::error::NetworkError;
use super::limits::FLOATING_MAX;
use super::link;
use super::link_state::floating_route;
use super::sockets;

impl ContainerNetwork {
    /// Has these addresses lead to the container beside its own, and no other floating ones. Those that stay are not touched.
    ///
    /// # Errors
    /// [`NetworkError`] if there are too many, one is no address for a container or its own, or the kernel refuses one that
    /// comes; then all is as it was.
    pub fn float(&self, wanted: &BTreeSet<IpAddr>) -> Result<(), NetworkError> {
        let (own, before) = (self.addresses(), self.floating());
        check(&own, wanted)?;
        let host = sockets::routes()?;
        let come: Vec<IpAddr> = wanted.difference(&before).copied().collect();
        if !come.is_empty() {
            let both: BTreeSet<IpAddr> = wanted.union(&before).copied().collect();
            // The route comes last, so that what it leads here is taken.
            let given = self.give(&come).and_then(|()| self.change(|permits| permits.floating = both));
            if let Err(error) = given.and_then(|()| self.lead_here(&host, &come)) {
                self.let_go(&host, &come, &before);
                return Err(error);
            }
        }
        let gone: Vec<IpAddr> = before.difference(wanted).copied().collect();
        if !gone.is_empty() {
            self.let_go(&host, &gone, wanted);
        }
        Ok(())
    }

    /// Returns the floating addresses that lead to the container.
    pub fn floating(&self) -> BTreeSet<IpAddr> {
        self.permits().floating.clone()
    }

    fn give(&self, addresses: &[IpAddr]) -> Result<(), NetworkError> {
        let mut requests = Requests::default();
        for address in addresses {
            let what = format!("give the container {address}");
            link::container_address(&mut requests, self.indices.1, *address, true, what);
        }
        link::ways_out(&mut requests, self.indices.1, |v4| addresses.iter().any(|address| address.is_ipv4() == v4));
        Ok(self.routes.carry_out(&requests)?)
    }

    fn lead_here(&self, host: &Socket, addresses: &[IpAddr]) -> Result<(), NetworkError> {
        let mut requests = Requests::default();
        for address in addresses {
            link::container_neighbour(&mut requests, self.indices.0, *address);
            let route = floating_route(*address, self.indices.0);
            let what = format!("lead packets for {address} to the container");
            route.push(&mut requests, NEW_ROUTE, CREATE | EXCLUSIVE, what);
        }
        Ok(host.carry_out(&requests)?)
    }

    /// Takes addresses away, or what is there of them: the route first, so that nothing more comes.
    fn let_go(&self, host: &Socket, addresses: &[IpAddr], left: &BTreeSet<IpAddr>) {
        let warn = |changed: Result<(), NetworkError>| {
            if let Err(error) = changed.or_else(unless_missing) {
                tracing::warn!(%error, name = self.name(), "something of a floating address is left behind");
            }
        };
        for address in addresses {
            let mut requests = Requests::default();
            let route = floating_route(*address, self.indices.0);
            route.push(&mut requests, DELETE_ROUTE, 0, format!("lead packets for {address} nowhere"));
            warn(host.carry_out(&requests).map_err(NetworkError::from));
            let mut requests = Requests::default();
            link::forget_neighbour(&mut requests, self.indices.0, *address);
            warn(host.carry_out(&requests).map_err(NetworkError::from));
        }
        warn(self.change(|permits| permits.floating.clone_from(left)));
        for address in addresses {
            let mut requests = Requests::default();
            link::forget_address(&mut requests, self.indices.1, *address);
            warn(self.routes.carry_out(&requests).map_err(NetworkError::from));
        }
    }
}

fn check(own: &[IpAddr], wanted: &BTreeSet<IpAddr>) -> Result<(), NetworkError> {
    if wanted.len() > FLOATING_MAX {
        let count = wanted.len();
        return Err(NetworkError::Spec(format!("{count} floating addresses, but {FLOATING_MAX} are the most")));
    }
    match wanted.iter().find(|address| own.contains(address) || !is_container_address(**address)) {
        Some(address) => Err(NetworkError::Spec(format!("{address} cannot be a floating address here"))),
        None => Ok(()),
    }
}

/// What is to go may be gone: with the link, or since it never came.
fn unless_missing(error: NetworkError) -> Result<(), NetworkError> {
    match &error {
        NetworkError::Kernel { source, .. } if is_missing(source) => Ok(()),
        NetworkError::Kernel { .. } | NetworkError::Spec(_) => Err(error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT | libc::EADDRNOTAVAIL | libc::ENODEV))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_float_is_refused() {
        let own = ["192.0.2.1".parse().unwrap()];
        let set = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<BTreeSet<IpAddr>>();
        let most: Vec<String> = (0..FLOATING_MAX).map(|n| format!("2001:db8::{n:x}")).collect();
        let most: Vec<&str> = most.iter().map(String::as_str).collect();
        for good in [&[][..], &["192.0.2.2", "2001:db8::1"], &most] {
            assert!(check(&own, &set(good)).is_ok(), "{good:?}");
        }
        let more = [&most[..], &["192.0.2.2"]].concat();
        for bad in [&["192.0.2.1"][..], &["fe80::1"], &["127.0.0.1"], &["224.0.0.1"], &more] {
            assert!(matches!(check(&own, &set(bad)), Err(NetworkError::Spec(_))), "{bad:?}");
        }
    }
}
