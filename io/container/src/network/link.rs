// SPDX-License-Identifier: Apache-2.0
//! Links, addresses, routes and neighbours as routing netlink messages.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use ipnet::IpNet;
use netserv_model::container_link::container_link_group;
use netserv_model::usage::Traffic;
use netserv_netlink::message::{FLAG_DUMP, Message, address, attributes, nested, octets};
use netserv_netlink::rtnetlink::{
    ADDRESS_HEADER_BYTES, ADDRESS_LOCAL, ADDRESS_PEER, CREATE, DELETE_ADDRESS, DELETE_LINK, DELETE_NEIGHBOUR,
    EXCLUSIVE, GET_ADDRESS, GET_LINK, LINK_ADDRESS, LINK_INFO, LINK_INFO_DATA, LINK_INFO_KIND, LINK_MTU, LINK_NAME,
    LINK_QUEUES_IN, LINK_QUEUES_OUT, LINK_UP, LOOPBACK_INDEX, NEIGHBOUR_ADDRESS, NEIGHBOUR_STATION, NEW_ADDRESS,
    NEW_LINK, NEW_NEIGHBOUR, NEW_ROUTE, ON_LINK, OWN_PROTOCOL, PERMANENT, REPLACE, ROUTE_DESTINATION, ROUTE_GATEWAY,
    ROUTE_INTERFACE_OUT, ROUTE_UNICAST, SCOPE_LINK, SET_LINK,
};
use netserv_netlink::{Refused, Requests, Socket};

use super::error::NetworkError;
use super::limits::MTU;

/// An Ethernet address.
type Station = [u8; 6];

/// What the container's interface is called.
pub(super) const INSIDE_NAME: &str = "net0";
/// The stations of both ends; each link has but these two, so all links have the same.
const HOST_STATION: Station = [0x02, 0x4e, 0x53, 0, 0, 1];
pub(super) const INSIDE_STATION: Station = [0x02, 0x4e, 0x53, 0, 0, 2];
/// The next hops: addresses of one link that nobody has, beside a neighbour entry that says where they are.
const NEXT_HOP_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1));
const NEXT_HOP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));

/// The same for intercepted packets, from the node to the container, which need not have addresses of both versions.
const INSIDE_HOPS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(169, 254, 1, 2)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2))];

/// Makes the pair of devices: one end here, the other in the namespace. Both are down.
pub(super) fn make_pair(host: &Socket, name: &str, namespace: BorrowedFd<'_>) -> Result<(), NetworkError> {
    let (inside_name, mtu, queue) = (text(INSIDE_NAME), MTU.to_ne_bytes(), 1_u32.to_ne_bytes());
    let descriptor = u32::try_from(namespace.as_raw_fd()).expect("descriptors are positive").to_ne_bytes();
    let inside: [(u16, &[u8]); 6] = [
        (LINK_NAME, &inside_name),
        (LINK_ADDRESS, &INSIDE_STATION),
        (LINK_MTU, &mtu),
        (LINK_QUEUES_OUT, &queue),
        (LINK_QUEUES_IN, &queue),
        (LINK_NAMESPACE, &descriptor),
    ];
    let peer = [link_header(0, false).as_slice(), &nested(&inside)].concat();
    let info = nested(&[(LINK_INFO_KIND, b"veth\0"), (LINK_INFO_DATA, &nested(&[(VETH_PEER, &peer)]))]);
    let group = container_link_group(name).unwrap_or_default().to_ne_bytes();
    let list: [(u16, &[u8]); 7] = [
        (LINK_NAME, &text(name)),
        (LINK_GROUP, &group),
        (LINK_ADDRESS, &HOST_STATION),
        (LINK_MTU, &mtu),
        (LINK_QUEUES_OUT, &queue),
        (LINK_QUEUES_IN, &queue),
        (LINK_INFO, &info),
    ];
    let mut requests = Requests::default();
    requests.push(NEW_LINK, CREATE | EXCLUSIVE, &link_header(0, false), &list, format!("make the device {name}"));
    Ok(host.carry_out(&requests)?)
}

/// Sets up what is inside: interface, addresses, and the way out.
pub(super) fn set_up_inside(inside: &Socket, addresses: &[IpAddr]) -> Result<(), NetworkError> {
    let index = index_of(inside, INSIDE_NAME).map_err(NetworkError::kernel("find the container's interface"))?;
    let mut requests = Requests::default();
    start_loopback(&mut requests);
    start_link(&mut requests, index, &[]);
    for address in addresses {
        container_address(&mut requests, index, *address, false, format!("give the container {address}"));
    }
    ways_out(&mut requests, index, |v4| addresses.iter().any(|address| address.is_ipv4() == v4));
    Ok(inside.carry_out(&requests)?)
}

/// Gives an interface an address. A passive one is the source of what asks for it, and of nothing else: in IPv4 since others
/// come before it, in IPv6 since it is deprecated (RFC 6724 §5, rule 3).
pub(super) fn container_address(requests: &mut Requests, index: u32, address: IpAddr, passive: bool, what: String) {
    let octets = octets(address);
    // `struct ifa_cacheinfo`: preferred, valid, and two times that the kernel sets.
    let preferred: u32 = if passive && address.is_ipv6() { 0 } else { FOREVER };
    let lifetimes = [preferred, FOREVER, 0, 0].map(u32::to_ne_bytes).concat();
    let list: [(u16, &[u8]); 4] = [
        (ADDRESS_LOCAL, &octets),
        (ADDRESS_PEER, &octets),
        (ADDRESS_LIFETIMES, &lifetimes),
        (ADDRESS_FLAGS, &NO_DETECTION.to_ne_bytes()),
    ];
    requests.push(NEW_ADDRESS, CREATE | EXCLUSIVE, &address_header(index, address), &list, what);
}

/// Takes an address from an interface.
pub(super) fn forget_address(requests: &mut Requests, index: u32, address: IpAddr) {
    let list: [(u16, &[u8]); 1] = [(ADDRESS_LOCAL, &octets(address))];
    let what = format!("take {address} from the container");
    requests.push(DELETE_ADDRESS, 0, &address_header(index, address), &list, what);
}

/// Says that an address is at the container's end.
pub(super) fn container_neighbour(requests: &mut Requests, index: u32, address: IpAddr) {
    neighbour(requests, index, address, INSIDE_STATION);
}

/// Forgets who is at the other end.
pub(super) fn forget_neighbour(requests: &mut Requests, index: u32, address: IpAddr) {
    let [a, b, c, d] = index.to_ne_bytes();
    let header = [family(address), 0, 0, 0, a, b, c, d, 0, 0, 0, 0];
    let list: [(u16, &[u8]); 1] = [(NEIGHBOUR_ADDRESS, &octets(address))];
    requests.push(DELETE_NEIGHBOUR, 0, &header, &list, "forget who is at the other end");
}

/// A route for one address to the container's end of a link.
pub(super) struct ContainerRoute {
    header: [u8; 12],
    list: Vec<(u16, Vec<u8>)>,
}

/// Returns the route for an address, with a protocol number and, if it is not the usual one, a metric.
pub(super) fn container_route(address: IpAddr, index: u32, protocol: u8, metric: Option<u32>) -> ContainerRoute {
    let (bits, scope) = if address.is_ipv4() { (32, SCOPE_LINK) } else { (128, 0) };
    let header = [family(address), bits, 0, 0, MAIN_TABLE, protocol, scope, ROUTE_UNICAST, 0, 0, 0, 0];
    let mut list = vec![(ROUTE_DESTINATION, octets(address)), (ROUTE_INTERFACE_OUT, index.to_ne_bytes().to_vec())];
    list.extend(metric.map(|metric| (ROUTE_METRIC, metric.to_ne_bytes().to_vec())));
    ContainerRoute { header, list }
}

impl ContainerRoute {
    /// Appends the request that makes it or takes it away.
    pub(super) fn push(&self, requests: &mut Requests, kind: u16, flags: u16, what: String) {
        let list: Vec<(u16, &[u8])> = self.list.iter().map(|(kind, bytes)| (*kind, bytes.as_slice())).collect();
        requests.push(kind, flags, &self.header, &list, what);
    }
}

/// Sets the loopback interface up.
pub(super) fn start_loopback(requests: &mut Requests) {
    requests.push(SET_LINK, 0, &link_header(LOOPBACK_INDEX, true), &[], "set up loopback");
}

/// Leads what goes out to the node, in the wanted versions of IP (`true` is asked for 4).
pub(super) fn ways_out(requests: &mut Requests, index: u32, wanted: impl Fn(bool) -> bool) {
    for next_hop in [NEXT_HOP_V4, NEXT_HOP_V6].into_iter().filter(|next_hop| wanted(next_hop.is_ipv4())) {
        neighbour(requests, index, next_hop, HOST_STATION);
        let [a, b, c, d] = ON_LINK.to_ne_bytes();
        let header = [family(next_hop), 0, 0, 0, MAIN_TABLE, OWN_PROTOCOL, 0, ROUTE_UNICAST, a, b, c, d];
        let list: [(u16, &[u8]); 2] = [(ROUTE_INTERFACE_OUT, &index.to_ne_bytes()), (ROUTE_GATEWAY, &octets(next_hop))];
        requests.push(NEW_ROUTE, CREATE | REPLACE, &header, &list, "lead the container's packets to the node");
    }
}

/// Sets up the node's end, and leads packets for the container there.
pub(super) fn set_up_host(host: &Socket, name: &str, addresses: &[IpAddr]) -> Result<(), NetworkError> {
    let index = index_of(host, name).map_err(NetworkError::kernel("find the node's end of the container's link"))?;
    let mut requests = Requests::default();
    // Only what the way back to leads here is a source that may come from here. IPv6 has no such switch.
    start_link(&mut requests, index, &[(SETTING_FORWARDING, 1), (SETTING_SOURCE_CHECK, 1)]);
    for address in addresses {
        container_neighbour(&mut requests, index, *address);
        let route = container_route(*address, index, OWN_PROTOCOL, None);
        let what = format!("lead packets for {address} to the container");
        route.push(&mut requests, NEW_ROUTE, CREATE | EXCLUSIVE, what);
    }
    Ok(host.carry_out(&requests)?)
}

/// Lets packets with other sources than the container's come from the node's end of its link, if there is any way back to
/// them: the source is then checked by rules. Returns the link's index, where a table of routes is to lead for the container, and whether
/// the link has IPv6, which operators may have switched off.
pub(super) fn open_host_end(host: &Socket, name: &str) -> Result<(u32, [IpAddr; 2], bool), NetworkError> {
    let index = index_of(host, name).map_err(NetworkError::kernel("find the node's end of the container's link"))?;
    let mut requests = Requests::default();
    start_link(&mut requests, index, &[(SETTING_FORWARDING, 1), (SETTING_SOURCE_CHECK, LOOSE)]);
    let [hop_v4, hop_v6] = INSIDE_HOPS;
    neighbour(&mut requests, index, hop_v4, INSIDE_STATION);
    // Without any address, the kernel takes the only source of a device to be what leads there.
    host_address(&mut requests, index);
    host.carry_out(&requests)?;
    let mut requests = Requests::default();
    neighbour(&mut requests, index, hop_v6, INSIDE_STATION);
    let neighbour_v6 = host.carry_out(&requests);
    let has_v6 = !neighbour_v6.as_ref().is_err_and(is_without_v6);
    if has_v6 {
        neighbour_v6?;
    }
    Ok((index, INSIDE_HOPS, has_v6))
}

/// Says that a link has no IPv6 (`disable_ipv6`), or the kernel none, for errors of a neighbour.
fn is_without_v6(refused: &Refused) -> bool {
    matches!(refused.source.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EAFNOSUPPORT))
}

/// Has sources be checked as before. The address stays until the link goes: with a device's last address of IPv4, the kernel takes away
/// all routes of IPv4 that lead there, so those of the container's own addresses.
pub(super) fn close_host_end(host: &Socket, name: &str) -> Result<(), NetworkError> {
    let index = index_of(host, name).map_err(NetworkError::kernel("find the node's end of the container's link"))?;
    let mut requests = Requests::default();
    start_link(&mut requests, index, &[(SETTING_FORWARDING, 1), (SETTING_SOURCE_CHECK, 1)]);
    Ok(host.carry_out(&requests)?)
}

/// Gives the node's end an address.
pub(super) fn host_address(requests: &mut Requests, index: u32) {
    let ([a, b, c, d], octets) = (index.to_ne_bytes(), octets(NEXT_HOP_V4));
    let header = [family(NEXT_HOP_V4), 32, 0, SCOPE_LINK, a, b, c, d];
    let list: [(u16, &[u8]); 2] = [(ADDRESS_LOCAL, &octets), (ADDRESS_PEER, &octets)];
    let what = "give the node's end of the link an address";
    requests.push(NEW_ADDRESS, CREATE | REPLACE, &header, &list, what);
}

/// Returns whether the node's end has the address that it is given for interception.
pub(super) fn has_host_address(host: &Socket, index: u32) -> io::Result<bool> {
    let mut found = false;
    host.ask(GET_ADDRESS, FLAG_DUMP, &[0; ADDRESS_HEADER_BYTES], &[], |message| {
        let Some((header, list)) = message.body.split_at_checked(ADDRESS_HEADER_BYTES) else { return };
        let local = attributes(list).find(|(kind, _)| *kind == ADDRESS_LOCAL).and_then(|(_, bytes)| address(bytes));
        found |= header[4..] == index.to_ne_bytes() && local == Some(NEXT_HOP_V4);
    })?;
    Ok(found)
}

/// Returns whether a device is set up.
pub(super) fn is_up(socket: &Socket, index: u32) -> io::Result<bool> {
    let mut flags = None;
    socket.ask(GET_LINK, 0, &link_header(index, false), &[], |message| {
        flags = message.body.get(8..12).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes));
    })?;
    flags.map(|flags| flags & LINK_UP != 0).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Sets a device up.
pub(super) fn set_up(requests: &mut Requests, index: u32) {
    requests.push(SET_LINK, 0, &link_header(index, true), &[], "set a device up");
}

/// Has the container's end know where to send packets of both versions of IP, whichever it has addresses of.
pub(super) fn open_inside_end(inside: &Socket) -> Result<(), NetworkError> {
    let index = index_of(inside, INSIDE_NAME).map_err(NetworkError::kernel("find the container's interface"))?;
    let mut requests = Requests::default();
    ways_out(&mut requests, index, |_| true);
    Ok(inside.carry_out(&requests)?)
}

/// Removes a device by its name, and with it the other end, routes and neighbours. One that is not there is removed.
pub(super) fn remove(host: &Socket, name: &str) -> Result<(), NetworkError> {
    let mut requests = Requests::default();
    let header = link_header(0, false);
    requests.push(DELETE_LINK, 0, &header, &[(LINK_NAME, &text(name))], format!("remove the device {name}"));
    match host.carry_out(&requests) {
        Err(refused) if refused.source.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        other => Ok(other?),
    }
}

/// Removes the devices of a group, all at once.
pub(super) fn remove_group(host: &Socket, group: u32) -> Result<(), NetworkError> {
    let mut requests = Requests::default();
    let list: [(u16, &[u8]); 1] = [(LINK_GROUP, &group.to_ne_bytes())];
    requests.push(DELETE_LINK, 0, &link_header(0, false), &list, "remove the links of all containers");
    Ok(host.carry_out(&requests)?)
}

/// Returns the names of all devices.
pub(super) fn names(socket: &Socket) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    socket.ask(GET_LINK, FLAG_DUMP, &link_header(0, false), &[], |message| names.extend(link_name(message)))?;
    Ok(names)
}

/// Returns what the namespace takes for itself, but for loopback's network: its own addresses, the broadcasts of their
/// networks, and in IPv6 the address of every router there (RFC 4291 §2.6.1).
pub(super) fn addresses(socket: &Socket) -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    socket.ask(GET_ADDRESS, FLAG_DUMP, &[0; ADDRESS_HEADER_BYTES], &[], |message| {
        let Some(list) = message.body.get(ADDRESS_HEADER_BYTES..).filter(|_| message.kind == NEW_ADDRESS) else {
            return;
        };
        let of = |wanted: u16| attributes(list).find(|(kind, _)| *kind == wanted).and_then(|(_, bytes)| address(bytes));
        let own = of(ADDRESS_LOCAL).or_else(|| of(ADDRESS_PEER));
        let Some(own) = own.filter(|address| !address.is_loopback()) else { return };
        found.push(own);
        found.extend(of(ADDRESS_BROADCAST));
        // The network of a link with a peer is the peer's.
        let network = of(ADDRESS_PEER).unwrap_or(own);
        let Ok(network) = IpNet::new(network, message.body.get(1).copied().unwrap_or(u8::MAX)) else { return };
        if network.max_prefix_len() - network.prefix_len() > 1 {
            // The first one is a broadcast in IPv4 too, for kernels before 5.14.
            found.push(network.network());
            found.extend(Some(network.broadcast()).filter(IpAddr::is_ipv4));
        }
    })?;
    Ok(found)
}

/// Changes of addresses of both versions.
pub(super) const ADDRESS_GROUPS: u32 = 0x10 | 0x100;

/// Returns the index of a device.
pub(super) fn index_of(socket: &Socket, name: &str) -> io::Result<u32> {
    let mut found = None;
    let list: [(u16, &[u8]); 1] = [(LINK_NAME, &text(name))];
    socket.ask(GET_LINK, 0, &link_header(0, false), &list, |message| {
        found = message.body.get(4..8).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes));
    })?;
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Returns what a device received (in) and sent (out).
pub(super) fn traffic_of(socket: &Socket, index: u32) -> io::Result<Traffic> {
    let mut found = None;
    socket.ask(GET_LINK, 0, &link_header(index, false), &[], |message| {
        let list = message.body.get(16..).filter(|_| message.kind == NEW_LINK).unwrap_or_default();
        found = attributes(list).find(|(kind, _)| *kind == LINK_STATISTICS).and_then(|(_, counts)| traffic(counts));
    })?;
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Reads the first four numbers of `struct rtnl_link_stats64`.
fn traffic(counts: &[u8]) -> Option<Traffic> {
    let number = |at: usize| counts.get(at * 8..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let (packets_in, packets_out, bytes_in, bytes_out) = (number(0)?, number(1)?, number(2)?, number(3)?);
    Some(Traffic { packets_in, bytes_in, packets_out, bytes_out })
}

/// Sets a device up, with settings of IPv4, and without an IPv6 address that it would make for itself.
fn start_link(requests: &mut Requests, index: u32, settings: &[(u16, u32)]) {
    let values: Vec<(u16, [u8; 4])> = settings.iter().map(|(key, value)| (*key, value.to_ne_bytes())).collect();
    let values: Vec<(u16, &[u8])> = values.iter().map(|(key, value)| (*key, value.as_slice())).collect();
    let v4 = nested(&[(INET_SETTINGS, &nested(&values))]);
    let v6 = nested(&[(INET6_GENERATION, &[GENERATES_NONE])]);
    let mut families: Vec<(u16, &[u8])> = vec![(FAMILY_V6, &v6)];
    if !settings.is_empty() {
        families.push((FAMILY_V4, &v4));
    }
    let list: [(u16, &[u8]); 1] = [(LINK_FAMILIES, &nested(&families))];
    requests.push(SET_LINK, 0, &link_header(index, false), &list, "set a device's options");
    set_up(requests, index);
}

fn neighbour(requests: &mut Requests, index: u32, address: IpAddr, station: Station) {
    let ([a, b, c, d], [e, f]) = (index.to_ne_bytes(), PERMANENT.to_ne_bytes());
    let header = [family(address), 0, 0, 0, a, b, c, d, e, f, 0, 0];
    let list: [(u16, &[u8]); 2] = [(NEIGHBOUR_ADDRESS, &octets(address)), (NEIGHBOUR_STATION, &station)];
    requests.push(NEW_NEIGHBOUR, CREATE | REPLACE, &header, &list, "say who is at the other end");
}

/// `IFLA_STATS64`.
const LINK_STATISTICS: u16 = 23;
const LINK_FAMILIES: u16 = 26;
const LINK_GROUP: u16 = 27;
/// `IFLA_NET_NS_FD`.
const LINK_NAMESPACE: u16 = 28;
/// `VETH_INFO_PEER`.
const VETH_PEER: u16 = 1;

/// `AF_INET` and `AF_INET6`, as attributes of [`LINK_FAMILIES`] and in headers.
const FAMILY_V4: u16 = 2;
const FAMILY_V6: u16 = 10;
/// `IFLA_INET_CONF`, which holds `IPV4_DEVCONF_FORWARDING` and `IPV4_DEVCONF_RP_FILTER`.
const INET_SETTINGS: u16 = 1;
const SETTING_FORWARDING: u16 = 1;
const SETTING_SOURCE_CHECK: u16 = 8;
/// RFC 3704 §2.4: there is a way to the source, whichever.
const LOOSE: u32 = 2;
/// `IFLA_INET6_ADDR_GEN_MODE` and `IN6_ADDR_GEN_MODE_NONE`.
const INET6_GENERATION: u16 = 8;
const GENERATES_NONE: u8 = 1;

const ADDRESS_BROADCAST: u16 = 4;
/// `IFA_CACHEINFO`, and the lifetime of what has no end.
const ADDRESS_LIFETIMES: u16 = 6;
const FOREVER: u32 = u32::MAX;
const ADDRESS_FLAGS: u16 = 8;
/// `IFA_F_NODAD`: nobody else is on the link who could have the address.
const NO_DETECTION: u32 = 0x02;

/// `RTA_PRIORITY`.
const ROUTE_METRIC: u16 = 6;
/// `RT_TABLE_MAIN`.
const MAIN_TABLE: u8 = 254;

fn link_header(index: u32, up: bool) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    let flags = if up { LINK_UP } else { 0 };
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&flags.to_ne_bytes());
    header
}

/// Of an address that is alone in its network.
fn address_header(index: u32, address: IpAddr) -> [u8; ADDRESS_HEADER_BYTES] {
    let (bits, [a, b, c, d]) = (if address.is_ipv4() { 32 } else { 128 }, index.to_ne_bytes());
    [family(address), bits, 0, 0, a, b, c, d]
}

pub(super) fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { 2 } else { 10 }
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn link_name(message: Message<'_>) -> Option<String> {
    let list = message.body.get(16..).filter(|_| message.kind == NEW_LINK)?;
    let (_, name) = attributes(list).find(|(kind, _)| *kind == LINK_NAME)?;
    Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
}
