// SPDX-License-Identifier: Apache-2.0
//! What is there of the node's end of a link, beside what is wanted there. With the link, the kernel takes down its routes and
//! neighbours, also those that are permanent; other programs take single ones.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use netserv_netlink::message::{FLAG_DUMP, address, attributes};
use netserv_netlink::rtnetlink::{
    CREATE, GET_NEIGHBOUR, NEIGHBOUR_ADDRESS, NEIGHBOUR_STATION, NEW_ROUTE, OWN_PROTOCOL, PERMANENT, REPLACE,
};
use netserv_netlink::{Requests, Socket};

use super::link::{self, ContainerRoute, container_route};
use super::routing;

/// What is wanted at the node's end of a link.
pub(super) struct HostEnd<'a> {
    /// The device.
    pub index: u32,
    /// Who is at the other end.
    pub neighbours: &'a [IpAddr],
    /// Which of these are the container's own addresses, to which a route leads,
    pub own: &'a [IpAddr],
    /// and which are floating ones.
    pub floating: &'a BTreeSet<IpAddr>,
    /// Whether it has an address itself, for interception.
    pub is_open: bool,
}

impl HostEnd<'_> {
    /// Appends requests for what is missing. Returns what that is, for people.
    pub fn mend(&self, host: &Socket, requests: &mut Requests) -> io::Result<Vec<&'static str>> {
        let mut missing = Vec::new();
        if !link::is_up(host, self.index)? {
            link::set_up(requests, self.index);
            missing.push("a link that was up");
        }
        let known = neighbours(host, self.index)?;
        for neighbour in self.neighbours.iter().filter(|neighbour| !known.contains(neighbour)) {
            link::container_neighbour(requests, self.index, *neighbour);
            missing.push("neighbours");
        }
        if self.is_open && !link::has_host_address(host, self.index)? {
            link::host_address(requests, self.index);
            missing.push("the address of a link");
        }
        let own = self.own.iter().map(|address| (address, container_route(*address, self.index, OWN_PROTOCOL, None)));
        let floating = self.floating.iter().map(|address| (address, floating_route(*address, self.index)));
        for (address, route) in own.chain(floating) {
            if routing::goes_out_by(host, *address, None, self.index)? {
                continue;
            }
            let what = format!("lead packets for {address} to the container");
            route.push(requests, NEW_ROUTE, CREATE | REPLACE, what);
            missing.push("routes to containers");
        }
        missing.dedup();
        Ok(missing)
    }
}

/// Returns the route for a floating address.
pub(super) fn floating_route(address: IpAddr, index: u32) -> ContainerRoute {
    container_route(address, index, FLOATING_PROTOCOL, Some(METRIC_V6).filter(|_| address.is_ipv6()))
}

/// The protocol number of routes for floating addresses, as `ip route show proto 79` lists them; 79 is `O`. Neither
/// iproute2 nor a routing daemon has it for anything else.
pub const FLOATING_PROTOCOL: u8 = 79;

/// Before every route that a routing daemon learned from others (bird's have 32). In IPv4 0, as any route without a metric:
/// one of the operator's for the same address is then in the way, and the kernel says so. IPv6 has no 0.
const METRIC_V6: u32 = 1;

/// Returns the addresses that are known for good to be at the container's end.
fn neighbours(host: &Socket, index: u32) -> io::Result<BTreeSet<IpAddr>> {
    let mut found = BTreeSet::new();
    let [a, b, c, d] = index.to_ne_bytes();
    let header = [0, 0, 0, 0, a, b, c, d, 0, 0, 0, 0];
    let wanted = [a, b, c, d];
    host.ask(GET_NEIGHBOUR, FLAG_DUMP, &header, &[(NEIGHBOUR_DEVICE, &wanted)], |message| {
        let body = message.body;
        // Kernels that do not know the question tell of all devices.
        if body.get(4..8) != Some(&wanted) || body.get(8..10) != Some(&PERMANENT.to_ne_bytes()) {
            return;
        }
        let list = body.get(header.len()..).unwrap_or_default();
        let of = |wanted: u16| attributes(list).find(|(kind, _)| *kind == wanted).map(|(_, bytes)| bytes);
        if of(NEIGHBOUR_STATION) == Some(&link::INSIDE_STATION) {
            found.extend(of(NEIGHBOUR_ADDRESS).and_then(address));
        }
    })?;
    Ok(found)
}

/// `NDA_IFINDEX`.
const NEIGHBOUR_DEVICE: u16 = 8;
