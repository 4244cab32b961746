// SPDX-License-Identifier: Apache-2.0
//! Routing by mark: rules that lead marked packets to a table of their own, and what stands in it.

use std::io;
use std::net::IpAddr;

use netserv_netlink::message::{FLAG_DUMP, Message, address, attributes, octets};
use netserv_netlink::rtnetlink::{
    CREATE, DELETE_RULE, EXCLUSIVE, GET_ROUTE, GET_RULE, LOOPBACK_INDEX, NEW_ROUTE, NEW_RULE, ON_LINK, OWN_PROTOCOL,
    REPLACE, ROUTE_DESTINATION, ROUTE_GATEWAY, ROUTE_INTERFACE_OUT, ROUTE_LOCAL, ROUTE_MARK, ROUTE_TABLE,
    ROUTE_UNICAST, RULE_HEADER_BYTES, RULE_INTERFACE_IN, RULE_MARK, RULE_MARK_MASK, RULE_ORIGIN, RULE_PRIORITY,
    RULE_TABLE,
};
use netserv_netlink::{Refused, Requests, Socket};
use netserv_wire::ip::IpVersion;

use super::link::family;

/// The place of our rules among others': after the node's own addresses, before what is usual.
pub const PRIORITY: u32 = 7800;

/// Leads packets with a mark to the table of a number, in one version of IP.
pub(super) fn add_rule(requests: &mut Requests, version: IpVersion, mark: u32, table: u32) {
    let list = rule_attributes(mark, table);
    let list: Vec<(u16, &[u8])> = list.iter().map(|(kind, bytes)| (*kind, bytes.as_slice())).collect();
    requests.push(NEW_RULE, CREATE | EXCLUSIVE, &rule_header(version), &list, "add a rule of policy routing");
}

/// Takes such a rule away.
pub(super) fn remove_rule(requests: &mut Requests, version: IpVersion, mark: u32, table: u32) {
    let list = rule_attributes(mark, table);
    let list: Vec<(u16, &[u8])> = list.iter().map(|(kind, bytes)| (*kind, bytes.as_slice())).collect();
    requests.push(DELETE_RULE, 0, &rule_header(version), &list, "remove a rule of policy routing");
}

/// Returns the marks of rules of ours whose mark is also the number of their table.
pub(super) fn marks(socket: &Socket, version: IpVersion) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    let asked = socket.ask(GET_RULE, FLAG_DUMP, &rule_header(version), &[], |message| found.extend(own_mark(message)));
    match asked {
        // The kernel knows no policy routing, or not this version.
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        asked => asked.map(|()| found),
    }
}

/// Returns the rules of others that come before ours and are about packets with such marks that are forwarded, in the words of
/// `ip rule`.
pub(super) fn preceding(socket: &Socket, version: IpVersion, marks: &[u32]) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    socket.ask(GET_RULE, FLAG_DUMP, &rule_header(version), &[], |message| found.extend(before_ours(message, marks)))?;
    Ok(found)
}

/// Leads a whole table to the station at the other end of a link.
pub(super) fn lead_to(requests: &mut Requests, table: u32, index: u32, next_hop: IpAddr) {
    let header = table_header(next_hop.is_ipv4(), SCOPE_UNIVERSE, ROUTE_UNICAST, ON_LINK);
    let (gateway, device, table) = (octets(next_hop), index.to_ne_bytes(), table.to_ne_bytes());
    let list: [(u16, &[u8]); 3] = [(ROUTE_TABLE, &table), (ROUTE_INTERFACE_OUT, &device), (ROUTE_GATEWAY, &gateway)];
    requests.push(NEW_ROUTE, CREATE | REPLACE, &header, &list, "lead intercepted packets to the container");
}

/// Returns whether packets with a mark go out by a link, whatever their destination.
pub(super) fn leads(socket: &Socket, version: IpVersion, mark: u32, index: u32) -> io::Result<bool> {
    // Of networks for documentation (RFC 5737, RFC 3849), where nobody is.
    let anywhere: IpAddr = match version {
        IpVersion::V4 => [192, 0, 2, 1].into(),
        IpVersion::V6 => [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
    };
    goes_out_by(socket, anywhere, Some(mark), index)
}

/// Returns whether packets to an address, with a mark or none, go out by a link.
pub(super) fn goes_out_by(socket: &Socket, to: IpAddr, mark: Option<u32>, index: u32) -> io::Result<bool> {
    let (destination, mark) = (octets(to), mark.map(u32::to_ne_bytes));
    let bits = u8::try_from(8 * destination.len()).expect("an address is short");
    let header = [family(to), bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut list: Vec<(u16, &[u8])> = vec![(ROUTE_DESTINATION, &destination)];
    list.extend(mark.as_ref().map(|mark| (ROUTE_MARK, mark.as_slice())));
    let mut out = None;
    let asked = socket.ask(GET_ROUTE, 0, &header, &list, |message| {
        let list = message.body.get(header.len()..).unwrap_or_default();
        let device = attributes(list).find(|(kind, _)| *kind == ROUTE_INTERFACE_OUT);
        out = device.and_then(|(_, bytes)| bytes.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes)).or(out);
    });
    match asked {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => Ok(false),
        asked => asked.map(|()| out == Some(index)),
    }
}

/// Has a whole table's packets delivered here, whatever their destination.
pub(super) fn deliver_here(requests: &mut Requests, version: IpVersion, table: u32) {
    let header = table_header(version == IpVersion::V4, SCOPE_HOST, ROUTE_LOCAL, 0);
    let (device, table) = (LOOPBACK_INDEX.to_ne_bytes(), table.to_ne_bytes());
    let list: [(u16, &[u8]); 2] = [(ROUTE_TABLE, &table), (ROUTE_INTERFACE_OUT, &device)];
    requests.push(NEW_ROUTE, CREATE | REPLACE, &header, &list, "deliver intercepted packets in the container");
}

/// Returns whether the kernel says that it has no such thing.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT))
}

/// Says that the kernel has no such thing, for errors of requests.
pub(super) fn is_missing_here(refused: &Refused) -> bool {
    is_missing(&refused.source)
}

/// `FRA_PRIORITY` and others.
const RULE_DESTINATION: u16 = 1;
const RULE_SOURCE: u16 = 2;
const RULE_DEVICE_OUT: u16 = 17;
/// `FRA_L3MDEV`
const RULE_DOMAIN: u16 = 19;
/// `RT_TABLE_LOCAL`
const LOCAL_TABLE: u32 = 255;
/// `FR_ACT_TO_TBL`.
const TO_TABLE: u8 = 1;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_HOST: u8 = 254;

fn rule_header(version: IpVersion) -> [u8; RULE_HEADER_BYTES] {
    let family = match version {
        IpVersion::V4 => 2,
        IpVersion::V6 => 10,
    };
    [family, 0, 0, 0, 0, 0, 0, TO_TABLE, 0, 0, 0, 0]
}

fn rule_attributes(mark: u32, table: u32) -> [(u16, Vec<u8>); 5] {
    [
        (RULE_PRIORITY, PRIORITY.to_ne_bytes().to_vec()),
        (RULE_MARK, mark.to_ne_bytes().to_vec()),
        (RULE_MARK_MASK, u32::MAX.to_ne_bytes().to_vec()),
        (RULE_TABLE, table.to_ne_bytes().to_vec()),
        (RULE_ORIGIN, vec![OWN_PROTOCOL]),
    ]
}

fn table_header(v4: bool, scope: u8, kind: u8, flags: u32) -> [u8; 12] {
    let address: IpAddr = if v4 { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let [a, b, c, d] = flags.to_ne_bytes();
    // The table's number stands in an attribute, since it does not fit here.
    [family(address), 0, 0, 0, 0, OWN_PROTOCOL, scope, kind, a, b, c, d]
}

fn before_ours(message: Message<'_>, marks: &[u32]) -> Option<String> {
    let (header, list) = message.body.split_first_chunk::<RULE_HEADER_BYTES>().filter(|_| message.kind == NEW_RULE)?;
    let of = |wanted: u16| attributes(list).find(|(kind, _)| *kind == wanted).map(|(_, bytes)| bytes);
    let number = |wanted: u16| of(wanted).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes));
    let name = |wanted: u16| of(wanted).map(|bytes| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned());
    let priority = number(RULE_PRIORITY).unwrap_or(0);
    let table = number(RULE_TABLE).unwrap_or_else(|| header[4].into());
    let (came_by, mark) = (name(RULE_INTERFACE_IN), number(RULE_MARK));
    let mask = number(RULE_MARK_MASK).unwrap_or(u32::MAX);
    let is_marked = mark.is_none_or(|mark| marks.iter().any(|own| own & mask == mark));
    // Packets of the node's own, and of virtual routing domains, are none that modules take over.
    let is_other = came_by.as_deref() == Some("lo") || of(RULE_DEVICE_OUT).is_some() || of(RULE_DOMAIN).is_some();
    if priority >= PRIORITY || table == LOCAL_TABLE || is_other || !is_marked {
        return None;
    }
    let prefix = |word: &str, kind: u16, bits: u8| {
        let address = of(kind).and_then(address)?;
        Some(format!(" {word} {address}/{bits}"))
    };
    let mut text = format!("{priority}:{}", prefix("from", RULE_SOURCE, header[2]).unwrap_or(" from all".to_owned()));
    text += &prefix("to", RULE_DESTINATION, header[1]).unwrap_or_default();
    text += &mark.map(|mark| format!(" fwmark {mark:#x}/{mask:#x}")).unwrap_or_default();
    text += &came_by.map(|device| format!(" iif {device}")).unwrap_or_default();
    Some(if header[7] == TO_TABLE { format!("{text} lookup {table}") } else { text })
}

fn own_mark(message: Message<'_>) -> Option<u32> {
    let list = message.body.get(RULE_HEADER_BYTES..).filter(|_| message.kind == NEW_RULE)?;
    let of = |wanted: u16| attributes(list).find(|(kind, _)| *kind == wanted).map(|(_, bytes)| bytes);
    let number = |wanted: u16| of(wanted).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes));
    let ours = of(RULE_ORIGIN) == Some(&[OWN_PROTOCOL]) && number(RULE_PRIORITY) == Some(PRIORITY);
    number(RULE_MARK).filter(|mark| ours && number(RULE_TABLE) == Some(*mark))
}
