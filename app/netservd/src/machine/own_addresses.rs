// SPDX-License-Identifier: Apache-2.0
//! Which addresses packages are not fetched from: the node's own, and those of its containers.

use std::net::IpAddr;

use anyhow::{Context, Result};
use netserv_netlink::routes::Routes;
use netserv_repository::IsOwn;

/// Returns what tells them, as the kernel's routes are when it is asked. `is_container` tells containers' addresses.
///
/// # Errors
/// The kernel cannot be asked about routes.
pub fn is_own(is_container: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Result<IsOwn> {
    let routes = Routes::open().context("the routing table cannot be asked")?;
    Ok(IsOwn::new(move |address| is_container(address) || leads_here(&routes, address)))
}

/// Returns whether there is a route to the address and it is none to another machine. What the kernel does not tell is
/// taken for the node's own.
fn leads_here(routes: &Routes, address: IpAddr) -> bool {
    let leads = routes.source_for(address).and_then(|way| Ok(way.is_some() && !routes.is_unicast(address, NO_MARK)?));
    leads.unwrap_or_else(|error| {
        tracing::warn!(%error, "nothing is fetched: the kernel does not tell where addresses lead");
        true
    })
}

/// Connections of the node carry no mark.
const NO_MARK: u32 = 0;
