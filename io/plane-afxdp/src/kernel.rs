// SPDX-License-Identifier: Apache-2.0
//! What the kernel knows of links, addresses, routes and neighbours, asked over routing netlink.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd};

use netserv_model::container_link::is_container_link;
use netserv_netlink::message::{self, FLAG_ACK, FLAG_DUMP, Message};
use netserv_netlink::routes::{self, Routes};
use netserv_netlink::rtnetlink::{
    ADDRESS_LOCAL, ADDRESS_PEER, GET_LINK, GET_NEIGHBOUR, GET_ROUTE, GET_RULE, LINK_ADDRESS, LINK_HEADER_BYTES,
    LINK_INFO, LINK_INFO_DATA, LINK_INFO_KIND, LINK_MTU, LINK_NAME, LINK_QUEUES_IN, LINK_UP, NEIGHBOUR_ADDRESS,
    NEIGHBOUR_STATION, NEW_ADDRESS, NEW_LINK, NEW_NEIGHBOUR, NEW_ROUTE, NEW_RULE, OWN_PROTOCOL, ROUTE_DESTINATION,
    ROUTE_GATEWAY, ROUTE_HEADER_BYTES, ROUTE_INTERFACE_OUT, ROUTE_LOCAL, ROUTE_UNICAST, RULE_HEADER_BYTES,
    RULE_INTERFACE_IN, RULE_MARK, RULE_MARK_MASK, RULE_ORIGIN, RULE_PRIORITY, RULE_TABLE, SCOPE_LINK,
};
use netserv_netlink::{Family, Socket};
use netserv_plane::{DriverError, InterfaceId};

use super::queueing;

/// An Ethernet address.
pub(super) type Station = [u8; 6];

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub name: String,
    /// `None` for what is no Ethernet.
    pub station: Option<Station>,
    pub mtu: usize,
    /// Receive queues, at most.
    pub queues: u32,
    /// For a VLAN: the device below, and its identifier.
    pub vlan: Option<(u32, u16)>,
    /// It is a port of a bridge, a bond or the like.
    pub enslaved: bool,
    /// That one.
    pub master: Option<u32>,
    /// Its packets come in by the interface that it is a port of.
    pub is_port: bool,
    pub is_loopback: bool,
    /// Made of software: packets on it may lack their checksums, which a card would have filled in.
    pub is_virtual: bool,
    pub up: bool,
    pub forwards_v4: bool,
    pub forwards_v6: bool,
    /// How IPv4 sources are checked against the way back to them.
    pub source_check: SourceCheck,
}

/// What the rules of policy routing look at, beside interfaces and destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Some look at sources.
    pub by_source: bool,
    /// Some look at what a question for a route does not tell: marks, ports, protocols, the kind of service.
    pub by_more: bool,
    /// There are others than those that every system has.
    pub by_choice: bool,
    /// Some lead flows to containers that take them over.
    pub intercepts: bool,
}

/// What `rp_filter` asks of the way back to a packet's source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SourceCheck {
    /// Nothing.
    #[default]
    Off,
    /// It leads out where the packet came in.
    Strict,
    /// There is one.
    Loose,
}

/// Where packets to a destination go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To a station on a link.
    Next {
        /// Leaving by this interface.
        interface: u32,
        /// To this neighbour.
        neighbour: IpAddr,
        /// Bytes of the longest packet, if the route has its own bound.
        mtu: Option<usize>,
    },
    /// Something that only the kernel can do, and why: deliver here, answer with an error, wrap in a tunnel.
    Kernel(&'static str),
    /// A router does not forward such a packet: its source cannot be true, or the interface does not forward.
    Refused,
}

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// It was heard of lately, or was set by hand.
    Known(Station),
    /// It was known, and is to be asked for again.
    Stale(Station),
    /// It has to be asked for first.
    Unknown,
}

impl Interface {
    /// Returns whether packets for others may come in here. Those of containers are their modules', and not looked at.
    pub fn brings_packets(&self) -> bool {
        self.up && !self.is_loopback && !self.is_port && !is_container_link(&self.name)
    }
}

/// Asks the kernel.
pub(super) struct Kernel {
    routes: Routes,
    /// Tells when links, addresses or their settings change.
    links: Socket,
    /// Tells when routes or neighbours change.
    route_changes: Socket,
    /// Tells when rules of policy routing change.
    rules: Socket,
}

impl Kernel {
    pub fn open() -> Result<Kernel, DriverError> {
        Kernel::open_for([LINK_GROUPS, ROUTE_GROUPS, RULE_GROUPS])
    }

    /// Opens the way to ask, without notices of changes.
    pub fn open_silent() -> Result<Kernel, DriverError> {
        Kernel::open_for([0; 3])
    }

    fn open_for([links, route_changes, rules]: [u32; 3]) -> Result<Kernel, DriverError> {
        Ok(Kernel {
            routes: Routes::open()?,
            links: routes::listen(Family::Route, links)?,
            route_changes: routes::listen(Family::Route, route_changes)?,
            rules: routes::listen(Family::Route, rules)?,
        })
    }

    /// Returns what becomes readable when something changed.
    pub fn notices(&self) -> [BorrowedFd<'_>; 3] {
        [self.links.as_fd(), self.route_changes.as_fd(), self.rules.as_fd()]
    }

    /// Returns whether links or addresses changed since the last call.
    pub fn links_changed(&self) -> bool {
        self.links.drain()
    }

    /// Returns whether routes or neighbours changed since the last call.
    pub fn ways_changed(&self) -> bool {
        self.route_changes.drain()
    }

    /// Returns whether rules of policy routing changed since the last call.
    pub fn rules_changed(&self) -> bool {
        self.rules.drain()
    }

    /// Returns what the rules of policy routing look at.
    pub fn rules(&self) -> Result<Rules, DriverError> {
        let mut rules = Rules::default();
        self.dump(GET_RULE, &[0; RULE_HEADER_BYTES], "asking for rules of routing", |message| {
            let Some(rule) = parse_rule(message) else { return };
            rules.by_source |= rule.by_source;
            rules.by_more |= rule.by_more;
            rules.by_choice |= rule.by_choice;
            rules.intercepts |= rule.intercepts;
        })?;
        Ok(rules)
    }

    /// Returns the queueing disciplines that do more than to queue, a kind for each device, in words.
    pub fn queueing(&self) -> Result<BTreeMap<u32, String>, DriverError> {
        let mut found = BTreeMap::new();
        let header = [0; queueing::QUEUEING_HEADER_BYTES];
        self.dump(queueing::GET_QUEUEING, &header, "asking for queueing disciplines", |message| {
            found.extend(queueing::parse_queueing(message));
        })?;
        Ok(found.into_iter().map(|(device, kind)| (device, format!("its queueing discipline `{kind}`"))).collect())
    }

    /// Returns the node's own addresses.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, DriverError> {
        Ok(self.routes.addresses()?.all().iter().map(|local| local.address).collect())
    }

    /// Returns the interfaces of the namespace by their index.
    pub fn interfaces(&self) -> Result<BTreeMap<u32, Interface>, DriverError> {
        let mut interfaces = BTreeMap::new();
        self.dump(GET_LINK, &[0; LINK_HEADER_BYTES], "asking for links", |message| {
            interfaces.extend(parse_link(message));
        })?;
        let (mut checked_everywhere, mut forwards_v6) = (SourceCheck::Off, false);
        for family in [libc::AF_INET, libc::AF_INET6] {
            let family = u8::try_from(family).expect("families are small");
            self.dump(GET_SETTINGS, &[family, 0, 0, 0], "asking for the settings of links", |message| {
                let Some((index, forwards, check)) = parse_settings(message) else { return };
                if index == ALL_INTERFACES {
                    checked_everywhere = checked_everywhere.max(check);
                    forwards_v6 |= forwards && i32::from(family) == libc::AF_INET6;
                }
                let Some(interface) = u32::try_from(index).ok().and_then(|index| interfaces.get_mut(&index)) else {
                    return;
                };
                if i32::from(family) == libc::AF_INET {
                    interface.forwards_v4 = forwards;
                    interface.source_check = check;
                } else {
                    interface.forwards_v6 = true;
                }
            })?;
        }
        // Documentation/networking/ip-sysctl.rst: the greater of the two counts.
        for interface in interfaces.values_mut() {
            interface.source_check = interface.source_check.max(checked_everywhere);
            // `ip6_forward` asks for `all` alone: NetworkManager has the devices that it manages not forward.
            interface.forwards_v6 &= forwards_v6;
        }
        Ok(interfaces)
    }

    /// Returns the route of a packet that came in by an interface, or, without one, of a packet of the node's own.
    pub fn route(&self, destination: IpAddr, came: Option<(u32, IpAddr)>) -> Result<Route, DriverError> {
        let (family, destination_octets) = octets(destination);
        let bits = u8::try_from(destination_octets.len() * 8).expect("an address has at most 128 bits");
        let mut attributes = vec![(ROUTE_DESTINATION, destination_octets.as_slice())];
        let came = came.map(|(interface, source)| (interface.to_ne_bytes(), octets(source).1));
        if let Some((interface, source)) = &came {
            attributes.extend([(ROUTE_SOURCE, source.as_slice()), (ROUTE_INTERFACE_IN, interface.as_slice())]);
        }
        let source_bits = if came.is_some() { bits } else { 0 };
        let header = [family, bits, source_bits, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut found = Route::Kernel("the kernel told of no route");
        let each = |message: Message<'_>| found = parse_route(message, destination);
        match self.routes.ask(GET_ROUTE, 0, &header, &attributes, each) {
            Ok(()) => Ok(found),
            Err(error) if [libc::EXDEV, libc::EINVAL].iter().any(|number| error.raw_os_error() == Some(*number)) => {
                Ok(Route::Refused)
            }
            // No route, a prohibition and the like: the kernel has the words for the sender.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(Route::Kernel("its route is a prohibition")),
            Err(error) if error.raw_os_error() == Some(libc::EHOSTUNREACH) => {
                Ok(Route::Kernel("its route says that the destination cannot be reached"))
            }
            Err(error) if error.raw_os_error().is_some() => Ok(Route::Kernel("there is no route to its destination")),
            Err(error) => Err(DriverError::system("asking for a route", error)),
        }
    }

    /// Returns what is known of a neighbour.
    pub fn neighbour(&self, interface: u32, address: IpAddr) -> Neighbour {
        let (family, octets) = octets(address);
        let (header, list) = (neighbour_header(family, interface, 0), [(NEIGHBOUR_ADDRESS, octets.as_slice())]);
        let mut found = Neighbour::Unknown;
        let answer = self.routes.ask(GET_NEIGHBOUR, 0, &header, &list, |message| found = parse_neighbour(message));
        if answer.is_err() { Neighbour::Unknown } else { found }
    }

    /// Returns neighbours that were known and are to be asked for again, with the interface that they are on.
    pub fn stale_neighbours(&self) -> Result<Vec<(u32, IpAddr)>, DriverError> {
        let mut stale = Vec::new();
        let header = neighbour_header(0, 0, 0);
        self.dump(GET_NEIGHBOUR, &header, "asking for neighbours", |message| {
            if matches!(parse_neighbour(message), Neighbour::Stale(_)) {
                stale.extend(parse_neighbour_name(message));
            }
        })?;
        Ok(stale)
    }

    /// Has the kernel find out whether a neighbour is still there.
    pub fn use_neighbour(&self, interface: u32, address: IpAddr) {
        let (family, octets) = octets(address);
        let (header, list) = (neighbour_header(family, interface, FLAG_USE), [(NEIGHBOUR_ADDRESS, octets.as_slice())]);
        if let Err(error) = self.routes.ask(NEW_NEIGHBOUR, FLAG_ACK | FLAG_REPLACE, &header, &list, |_| ()) {
            tracing::debug!(%error, %address, "a neighbour cannot be asked for");
        }
    }

    /// Sets a link up.
    pub fn set_up(&self, interface: u32) -> Result<(), DriverError> {
        let mut header = [0; LINK_HEADER_BYTES];
        header[4..8].copy_from_slice(&interface.to_ne_bytes());
        header[8..12].copy_from_slice(&LINK_UP.to_ne_bytes());
        header[12..16].copy_from_slice(&LINK_UP.to_ne_bytes());
        let asked = self.routes.ask(NEW_LINK, FLAG_ACK, &header, &[], |_| ());
        asked.map_err(|error| DriverError::system("setting up a device", error))
    }

    /// Gives a link an address of this link alone, if it does not have it.
    pub fn add_link_address(&self, interface: u32, address: Ipv4Addr) -> Result<(), DriverError> {
        let [a, b, c, d] = interface.to_ne_bytes();
        let family = u8::try_from(libc::AF_INET).expect("families are small");
        let octets = address.octets();
        let header = [family, 32, 0, SCOPE_LINK, a, b, c, d];
        let list: [(u16, &[u8]); 2] = [(ADDRESS_PEER, &octets), (ADDRESS_LOCAL, &octets)];
        let asked = self.routes.ask(NEW_ADDRESS, FLAG_ACK | FLAG_REPLACE, &header, &list, |_| ());
        asked.map_err(|error| DriverError::system("giving a device an address", error))
    }

    fn dump(
        &self,
        kind: u16,
        header: &[u8],
        what: &'static str,
        each: impl FnMut(Message<'_>),
    ) -> Result<(), DriverError> {
        self.routes.ask(kind, FLAG_DUMP, header, &[], each).map_err(|error| DriverError::system(what, error))
    }
}

/// Returns the interface as packets name it.
pub(super) fn interface_id(index: u32) -> InterfaceId {
    InterfaceId(index)
}

const LINK_BELOW: u16 = 5;
const LINK_MASTER: u16 = 10;
const LINK_INFO_PORT_KIND: u16 = 4;
/// Unlike VRFs, whose members' packets are seen as their own.
const PORT_KINDS: [&str; 3] = ["bridge", "bond", "team"];
const VLAN_IDENTIFIER: u16 = 1;
/// `ARPHRD_ETHER`.
const TYPE_ETHERNET: u16 = 1;

const ROUTE_SOURCE: u16 = 2;
const ROUTE_INTERFACE_IN: u16 = 3;
const ROUTE_METRICS: u16 = 8;
const ROUTE_VIA: u16 = 18;
const ROUTE_ENCAPSULATION: u16 = 22;
const METRIC_MTU: u16 = 2;

const NEIGHBOUR_HEADER_BYTES: usize = 12;
/// `NUD_REACHABLE`, `NUD_NOARP`, `NUD_PERMANENT`.
const STATES_KNOWN: u16 = 0x02 | 0x40 | 0x80;
/// `NUD_STALE`, `NUD_DELAY`, `NUD_PROBE`.
const STATES_STALE: u16 = 0x04 | 0x08 | 0x10;
/// `NTF_USE`.
const FLAG_USE: u8 = 0x01;
/// `NLM_F_CREATE | NLM_F_REPLACE`.
const FLAG_REPLACE: u16 = 0x400 | 0x100;

const RULE_PROTOCOL: u16 = 22;
const RULE_SOURCE_PORTS: u16 = 23;
const RULE_DESTINATION_PORTS: u16 = 24;

/// Priority and table of the rules that every system has: local, main, default.
const USUAL_RULES: [(u32, u32); 3] = [(0, 255), (32_766, 254), (32_767, 253)];

/// `RTM_GETNETCONF`.
const GET_SETTINGS: u16 = 82;
const NEW_SETTINGS: u16 = 80;
const SETTINGS_HEADER_BYTES: usize = 4;
const SETTINGS_INTERFACE: u16 = 1;
const SETTINGS_FORWARDING: u16 = 2;
const SETTINGS_SOURCE_CHECK: u16 = 3;
/// `NETCONFA_IFINDEX_ALL`.
const ALL_INTERFACES: i32 = -1;

/// Links, addresses and settings of both versions.
const LINK_GROUPS: u32 = 0x1 | 0x10 | 0x100 | 1 << 23 | 1 << 24;
/// Neighbours and routes of both versions.
const ROUTE_GROUPS: u32 = 0x4 | 0x40 | 0x400;
/// Rules of both versions.
const RULE_GROUPS: u32 = 1 << 7 | 1 << 18;

fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    (if address.is_ipv4() { 2 } else { 10 }, message::octets(address))
}

fn neighbour_header(family: u8, interface: u32, flags: u8) -> [u8; NEIGHBOUR_HEADER_BYTES] {
    let [a, b, c, d] = interface.to_ne_bytes();
    [family, 0, 0, 0, a, b, c, d, 0, 0, flags, 0]
}

fn native_u32(content: &[u8]) -> Option<u32> {
    content.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn parse_link(message: Message<'_>) -> Option<(u32, Interface)> {
    (message.kind == NEW_LINK).then_some(())?;
    let (header, attributes) = message.body.split_first_chunk::<LINK_HEADER_BYTES>()?;
    let hardware = u16::from_ne_bytes([header[2], header[3]]);
    let (index, flags) = (native_u32(&header[4..])?, native_u32(&header[8..])?);
    let (mut station, mut name, mut mtu, mut below) = (None, String::new(), 1500, None);
    let (mut enslaved, mut master, mut is_port) = (false, None, false);
    let (mut kind, mut vlan, mut queues) = (None, None, 1);
    for (attribute, content) in message::attributes(attributes) {
        match attribute {
            LINK_ADDRESS if hardware == TYPE_ETHERNET => station = content.first_chunk::<6>().copied(),
            LINK_NAME => name = String::from_utf8_lossy(content).trim_end_matches('\0').to_owned(),
            LINK_MTU => mtu = usize::try_from(native_u32(content)?).ok()?,
            LINK_BELOW => below = native_u32(content),
            LINK_QUEUES_IN => queues = native_u32(content)?,
            LINK_MASTER => (enslaved, master) = (true, native_u32(content)),
            LINK_INFO => (kind, vlan, is_port) = parse_link_info(content),
            _ => {}
        }
    }
    let is_vlan = kind.as_deref() == Some("vlan");
    let interface = Interface {
        name,
        station: station.filter(|_| flags & LINK_LOOPBACK == 0),
        mtu,
        queues,
        vlan: below.zip(vlan).filter(|_| is_vlan),
        enslaved,
        master,
        is_port,
        is_loopback: flags & LINK_LOOPBACK != 0,
        is_virtual: kind.is_some(),
        up: flags & LINK_UP != 0,
        forwards_v4: false,
        forwards_v6: false,
        source_check: SourceCheck::Off,
    };
    Some((index, interface))
}

/// `IFF_LOOPBACK`.
const LINK_LOOPBACK: u32 = 8;

/// Returns the kind of a link, the identifier of a VLAN, and whether the packets are those of the link that it is a port of.
fn parse_link_info(content: &[u8]) -> (Option<String>, Option<u16>, bool) {
    let (mut kind, mut vlan, mut is_port) = (None, None, false);
    let name = |content: &[u8]| String::from_utf8_lossy(content).trim_end_matches('\0').to_owned();
    for (attribute, content) in message::attributes(content) {
        match attribute {
            LINK_INFO_KIND => kind = Some(name(content)),
            LINK_INFO_PORT_KIND => is_port = PORT_KINDS.contains(&name(content).as_str()),
            LINK_INFO_DATA => {
                let mut found = message::attributes(content).filter(|(attribute, _)| *attribute == VLAN_IDENTIFIER);
                vlan = found.next().and_then(|(_, id)| id.first_chunk()).map(|id| u16::from_ne_bytes(*id));
            }
            _ => {}
        }
    }
    (kind, vlan, is_port)
}

fn parse_settings(message: Message<'_>) -> Option<(i32, bool, SourceCheck)> {
    (message.kind == NEW_SETTINGS).then_some(())?;
    let (mut interface, mut forwards, mut check) = (None, false, SourceCheck::Off);
    for (attribute, content) in message::attributes(message.body.get(SETTINGS_HEADER_BYTES..)?) {
        let value = content.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
        match attribute {
            SETTINGS_INTERFACE => interface = value,
            SETTINGS_FORWARDING => forwards = value != Some(0),
            SETTINGS_SOURCE_CHECK => {
                check = match value {
                    None | Some(0) => SourceCheck::Off,
                    Some(1) => SourceCheck::Strict,
                    Some(_) => SourceCheck::Loose,
                };
            }
            _ => {}
        }
    }
    Some((interface?, forwards, check))
}

fn parse_rule(message: Message<'_>) -> Option<Rules> {
    (message.kind == NEW_RULE).then_some(())?;
    let (header, attributes) = message.body.split_first_chunk::<RULE_HEADER_BYTES>()?;
    let (source_bits, service) = (header[2], header[3]);
    let is_more = |attribute: u16| {
        // Those behind the ports came with later kernels: the kind of service and the flow label.
        matches!(attribute, RULE_MARK | RULE_MARK_MASK | RULE_PROTOCOL | RULE_SOURCE_PORTS | RULE_DESTINATION_PORTS..)
    };
    let by_more = service != 0 || message::attributes(attributes).any(|(attribute, _)| is_more(attribute));
    let find =
        |wanted: u16| message::attributes(attributes).find(|(kind, _)| *kind == wanted).map(|(_, content)| content);
    let number = |wanted: u16| find(wanted).and_then(native_u32);
    let table = number(RULE_TABLE).unwrap_or_else(|| header[4].into());
    let is_plain = header[1] == 0 && source_bits == 0 && !by_more && find(RULE_INTERFACE_IN).is_none();
    // The others are for multicast, which is not forwarded in XDP.
    let is_unicast = matches!(header[0], 2 | 10);
    let by_choice = is_unicast && (!is_plain || !USUAL_RULES.contains(&(number(RULE_PRIORITY).unwrap_or(0), table)));
    let intercepts = find(RULE_ORIGIN) == Some(&[OWN_PROTOCOL]) && find(RULE_MARK).is_some();
    Some(Rules { by_source: source_bits != 0, by_more, by_choice, intercepts })
}

fn parse_route(message: Message<'_>, destination: IpAddr) -> Route {
    let body = message.body;
    match body.get(7) {
        Some(&ROUTE_UNICAST) if message.kind == NEW_ROUTE => {}
        Some(&ROUTE_LOCAL) => return Route::Kernel("its destination is an address of this node"),
        Some(_) | None => return Route::Kernel("its route is of a kind that only the kernel follows"),
    }
    let (mut interface, mut neighbour, mut mtu) = (None, destination, None);
    for (attribute, content) in message::attributes(body.get(ROUTE_HEADER_BYTES..).unwrap_or_default()) {
        match attribute {
            ROUTE_INTERFACE_OUT => interface = native_u32(content),
            ROUTE_GATEWAY => neighbour = message::address(content).unwrap_or(neighbour),
            // A gateway of the other version, after its family.
            ROUTE_VIA => neighbour = content.get(2..).and_then(message::address).unwrap_or(neighbour),
            ROUTE_METRICS => {
                let mut found = message::attributes(content).filter(|(attribute, _)| *attribute == METRIC_MTU);
                mtu = found.next().and_then(|(_, bytes)| native_u32(bytes)).and_then(|mtu| usize::try_from(mtu).ok());
            }
            ROUTE_ENCAPSULATION => return Route::Kernel("its route leads into a tunnel"),
            _ => {}
        }
    }
    let mtu = mtu.filter(|mtu| *mtu > 0);
    let next = |interface| Route::Next { interface, neighbour, mtu };
    interface.map_or(Route::Kernel("its route names no interface"), next)
}

fn parse_neighbour(message: Message<'_>) -> Neighbour {
    let body = message.body;
    let Some(state) = body.get(8..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u16::from_ne_bytes(*bytes))
    else {
        return Neighbour::Unknown;
    };
    let attributes = message::attributes(body.get(NEIGHBOUR_HEADER_BYTES..).unwrap_or_default());
    let mut stations = attributes.filter(|(attribute, _)| *attribute == NEIGHBOUR_STATION);
    let station = stations.next().and_then(|(_, content)| content.first_chunk::<6>().copied());
    match station {
        Some(station) if message.kind == NEW_NEIGHBOUR && state & STATES_KNOWN != 0 => Neighbour::Known(station),
        Some(station) if message.kind == NEW_NEIGHBOUR && state & STATES_STALE != 0 => Neighbour::Stale(station),
        Some(_) | None => Neighbour::Unknown,
    }
}

/// Returns the interface and the address of a neighbour.
fn parse_neighbour_name(message: Message<'_>) -> Option<(u32, IpAddr)> {
    let attributes = message::attributes(message.body.get(NEIGHBOUR_HEADER_BYTES..)?);
    let mut addresses = attributes.filter(|(attribute, _)| *attribute == NEIGHBOUR_ADDRESS);
    Some((native_u32(message.body.get(4..)?)?, message::address(addresses.next()?.1)?))
}

#[cfg(test)]
impl Interface {
    /// Returns a card as most are.
    pub fn example() -> Interface {
        Interface {
            name: "eth0".to_owned(),
            station: Some([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            queues: 4,
            vlan: None,
            enslaved: false,
            master: None,
            is_port: false,
            is_loopback: false,
            is_virtual: false,
            up: true,
            forwards_v4: true,
            forwards_v6: true,
            source_check: SourceCheck::Off,
        }
    }
}
