// SPDX-License-Identifier: Apache-2.0
//! The node's addresses, and which one the kernel would send from.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use ipnet::IpNet;
use netserv_model::route::RouteChange;
use rustix::net::{AddressFamily, SocketType, netdevice};

use crate::message::{self, FLAG_DUMP, Message, octets};
use crate::rtnetlink::{
    ADDRESS_HEADER_BYTES, ADDRESS_LOCAL, ADDRESS_PEER, DELETE_ROUTE, FAMILY_V4, FAMILY_V6, GET_ADDRESS, GET_ROUTE,
    LOOPBACK_INDEX, NEW_ADDRESS, NEW_ROUTE, ROUTE_DESTINATION, ROUTE_HEADER_BYTES, ROUTE_INTERFACE_OUT, ROUTE_MARK,
    ROUTE_UNICAST,
};
use crate::{Family, Socket};

/// A network interface by the kernel's index; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u32);

/// Why the kernel tells nothing of routes.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct Unanswered {
    /// What was tried.
    pub what: &'static str,
    /// What the kernel said.
    pub source: io::Error,
}

/// One of the node's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalAddress {
    /// The interface that has it.
    pub interface: InterfaceId,
    /// The address.
    pub address: IpAddr,
    /// Bits of the network that it is in.
    pub prefix_length: u8,
}

/// The node's addresses at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalAddresses {
    addresses: Vec<LocalAddress>,
    /// The names of the interfaces that have one.
    names: BTreeMap<InterfaceId, String>,
}

impl LocalAddresses {
    /// Returns all addresses, sorted by interface.
    pub fn all(&self) -> &[LocalAddress] {
        &self.addresses
    }

    /// Returns the addresses of an interface by its name; none if there is none of that name.
    pub fn of_interface(&self, name: &str) -> impl Iterator<Item = &LocalAddress> {
        let named = move |interface: &InterfaceId| self.names.get(interface).is_some_and(|known| known == name);
        self.addresses.iter().filter(move |local| named(&local.interface))
    }

    /// Returns whether a packet to this address is for the node itself.
    pub fn is_local(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.iter().any(|local| local.address == address)
    }

    /// Returns an address in one version of IP by which somebody beyond an interface reaches the node: its first one there,
    /// else its first one anywhere. Addresses of one link or of the machine alone are none.
    pub fn reached_by(&self, interface: InterfaceId, v6: bool) -> Option<IpAddr> {
        let is_wide = |address: IpAddr| !is_link_local(address) && !address.is_loopback();
        let mut wide = self.addresses.iter().filter(|local| local.address.is_ipv6() == v6 && is_wide(local.address));
        let on_it = wide.clone().find(|local| local.interface == interface);
        on_it.or_else(|| wide.next()).map(|local| local.address)
    }
}

/// Asks the kernel about routes and addresses.
#[derive(Debug)]
pub struct Routes {
    socket: Mutex<Socket>,
}

impl Routes {
    /// Opens the way to ask.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open() -> Result<Routes, Unanswered> {
        Ok(Routes { socket: Mutex::new(open(Family::Route)?) })
    }

    /// Opens the way to ask a family of generic netlink.
    pub fn generic() -> Result<Routes, Unanswered> {
        Ok(Routes { socket: Mutex::new(open(Family::Generic)?) })
    }

    /// Returns the address that packets to `destination` would be sent from, and the interface that they would leave
    /// by; `None` if there is no way to it.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn source_for(&self, destination: IpAddr) -> Result<Option<(IpAddr, InterfaceId)>, Unanswered> {
        let mut found = None;
        self.ask_for_route(destination, 0, |message| found = found.or_else(|| parse_route(message)))?;
        Ok(found)
    }

    /// Returns whether packets with a mark leave this machine toward `destination`, and for one receiver: whether their
    /// route is of the type `RTN_UNICAST`, and not local, anycast, broadcast, multicast or an error.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn is_unicast(&self, destination: IpAddr, mark: u32) -> Result<bool, Unanswered> {
        let mut unicast = false;
        self.ask_for_route(destination, mark, |message| unicast = is_unicast(message))?;
        Ok(unicast)
    }

    /// Hands over the route of the node's own packets to `destination`, if there is one.
    fn ask_for_route(&self, destination: IpAddr, mark: u32, each: impl FnMut(Message<'_>)) -> Result<(), Unanswered> {
        let (family, octets) = (if destination.is_ipv4() { FAMILY_V4 } else { FAMILY_V6 }, octets(destination));
        let prefix_length = u8::try_from(octets.len() * 8).expect("an address has at most 128 bits");
        let header = [family, prefix_length, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mark = mark.to_ne_bytes();
        let attributes = [(ROUTE_DESTINATION, octets.as_slice()), (ROUTE_MARK, mark.as_slice())];
        match self.ask(GET_ROUTE, 0, &header, &attributes, each) {
            Err(error) if !NO_ROUTE.iter().any(|number| error.raw_os_error() == Some(*number)) => {
                Err(Unanswered { what: "asking for a route", source: error })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the node's addresses.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn addresses(&self) -> Result<LocalAddresses, Unanswered> {
        let mut addresses = Vec::new();
        let each = |message: Message<'_>| addresses.extend(parse_address(message));
        self.ask(GET_ADDRESS, FLAG_DUMP, &[0; ADDRESS_HEADER_BYTES], &[], each)
            .map_err(|error| Unanswered { what: "asking for the node's addresses", source: error })?;
        addresses.sort_unstable_by_key(|local: &LocalAddress| local.interface);
        Ok(LocalAddresses { names: names(&addresses), addresses })
    }

    /// Asks, and hands over each message of the answer, as [`Socket::ask`].
    pub fn ask(
        &self,
        kind: u16,
        flags: u16,
        header: &[u8],
        attributes: &[(u16, &[u8])],
        each: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        socket.ask(kind, flags, header, attributes, each)
    }
}

/// Tells when the node's links, addresses or routes have changed.
#[derive(Debug)]
pub struct RouteMonitor {
    socket: Socket,
}

impl RouteMonitor {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open() -> Result<RouteMonitor, Unanswered> {
        Ok(RouteMonitor { socket: listen(Family::Route, GROUPS)? })
    }

    /// Returns what has changed since the last call, if anything has. What the kernel could not tell us about for lack of
    /// room may have been anything.
    pub fn changed(&self) -> Option<RouteChange> {
        let mut all: Option<RouteChange> = None;
        let mut add = |change: RouteChange| match &mut all {
            Some(all) => all.add(change),
            None => all = Some(change),
        };
        self.socket.hear(|message| add(message.map_or(RouteChange::All, change_of)));
        all
    }
}

impl AsFd for RouteMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const ROUTE_SOURCE: u16 = 7;

/// Links, and the addresses and routes of both versions (`RTMGRP_*`).
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
const NO_ROUTE: [i32; 5] = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EINVAL, libc::EACCES, libc::ESRCH];

/// Returns the names of the interfaces that have these addresses; one that has just gone has none.
fn names(addresses: &[LocalAddress]) -> BTreeMap<InterfaceId, String> {
    // Any socket will do.
    let Ok(socket) = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None) else { return BTreeMap::new() };
    let interfaces: BTreeSet<InterfaceId> = addresses.iter().map(|local| local.interface).collect();
    let name = |interface: InterfaceId| Some((interface, netdevice::index_to_name(&socket, interface.0).ok()?));
    interfaces.into_iter().filter_map(name).collect()
}

/// Opens a socket for questions.
fn open(family: Family) -> Result<Socket, Unanswered> {
    Socket::open(family).map_err(failed)
}

/// Opens a socket that hears of changes in these groups.
pub fn listen(family: Family, groups: u32) -> Result<Socket, Unanswered> {
    Socket::listening(family, groups).map_err(failed)
}

/// As [`listen`]; `None` if the kernel has no such family.
pub fn listen_if_there(family: Family, groups: u32) -> Result<Option<Socket>, Unanswered> {
    match Socket::listening(family, groups) {
        Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => Ok(None),
        opened => opened.map(Some).map_err(failed),
    }
}

fn failed(error: io::Error) -> Unanswered {
    Unanswered { what: "opening a netlink socket", source: error }
}

fn parse_route(message: Message<'_>) -> Option<(IpAddr, InterfaceId)> {
    let (mut source, mut interface) = (None, None);
    if message.kind == NEW_ROUTE {
        for (kind, content) in message::attributes(message.body.get(ROUTE_HEADER_BYTES..)?) {
            match kind {
                ROUTE_SOURCE => source = message::address(content),
                ROUTE_INTERFACE_OUT => {
                    interface = content.first_chunk().map(|bytes| InterfaceId(u32::from_ne_bytes(*bytes)));
                }
                _ => {}
            }
        }
    }
    source.zip(interface)
}

/// A route by the loopback interface leads back to this machine, whatever its type.
fn is_unicast(message: Message<'_>) -> bool {
    let unicast = message.kind == NEW_ROUTE && message.body.get(7) == Some(&ROUTE_UNICAST);
    let attributes = message::attributes(message.body.get(ROUTE_HEADER_BYTES..).unwrap_or_default());
    let mut out = attributes.filter(|(kind, _)| *kind == ROUTE_INTERFACE_OUT).map(|(_, content)| content);
    unicast && !out.any(|content| content == LOOPBACK_INDEX.to_ne_bytes())
}

/// Returns where a message says that routes changed; links and addresses may change any.
fn change_of(message: Message<'_>) -> RouteChange {
    let prefix = |body: &[u8]| {
        let [family, bits, ..] = *body else { return None };
        let mut attributes = message::attributes(body.get(ROUTE_HEADER_BYTES..)?);
        let destination =
            attributes.find(|(kind, _)| *kind == ROUTE_DESTINATION).map(|(_, content)| message::address(content));
        let network = match (destination, family) {
            (Some(found), _) => found?,
            // A default route names no destination.
            (None, FAMILY_V4) => Ipv4Addr::UNSPECIFIED.into(),
            (None, FAMILY_V6) => Ipv6Addr::UNSPECIFIED.into(),
            (None, _) => return None,
        };
        IpNet::new(network, bits).ok()
    };
    match message.kind {
        NEW_ROUTE | DELETE_ROUTE => match prefix(message.body) {
            Some(prefix) => RouteChange::Toward(vec![prefix.trunc()]),
            None => RouteChange::All,
        },
        _ => RouteChange::All,
    }
}

fn parse_address(message: Message<'_>) -> Option<LocalAddress> {
    if message.kind != NEW_ADDRESS {
        return None;
    }
    let (header, attributes) = message.body.split_first_chunk::<ADDRESS_HEADER_BYTES>()?;
    let [_family, prefix_length, _flags, _scope, interface @ ..] = *header;
    let (mut address, mut local) = (None, None);
    for (kind, content) in message::attributes(attributes) {
        match kind {
            ADDRESS_PEER => address = message::address(content),
            // On a point-to-point link the other is the far end's.
            ADDRESS_LOCAL => local = message::address(content),
            _ => {}
        }
    }
    let interface = InterfaceId(u32::from_ne_bytes(interface));
    Some(LocalAddress { interface, address: local.or(address)?, prefix_length })
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}
