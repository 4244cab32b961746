// SPDX-License-Identifier: Apache-2.0
//! What `bpf/classify.c` is to decide, said once more and plainly: frames are taken apart by `core/wire`, filters are asked
//! one after the other, and what the kernel keeps is a list. `docs/design/0004-afxdp-egress.md` has the reasons.
//!
//! The program and this must agree on every frame, with one exception: when the driver has made filters coarser for lack
//! of tuples, the program may want more packets. It never wants fewer, and never one that the kernel keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::{Filter, Flow};
use netserv_wire::gist::{MAGIC, UDP_PORT};
use netserv_wire::ip::{IpVersion, IpView};

/// What the program is told of the node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its addresses.
    pub own: BTreeSet<IpAddr>,
    /// Stations of its interfaces: of a device (VLAN 0), or of a VLAN on it.
    pub interfaces: BTreeMap<(u32, u16), [u8; 6]>,
    /// Its devices are made of software: what is inside a packet may not be finished.
    pub is_virtual: bool,
    /// Bytes of the longest frame that fits into the driver's memory.
    pub frame_bytes_max: usize,
}

/// Returns whether the driver is to get a frame that came in by a device.
pub fn is_wanted(node: &Node, filters: &[Filter], frame: &[u8], device: u32) -> bool {
    may_be_taken(node, frame, device).is_some_and(|flow| filters.iter().any(|filter| filter.matches(&flow)))
}

/// Returns the flow of a frame that the kernel does not keep for itself, whatever filters there are.
pub fn may_be_taken(node: &Node, frame: &[u8], device: u32) -> Option<Flow> {
    let (_, flow) = of_others(node, frame, device)?;
    let kept = is_signaling(&flow) || (node.is_virtual && may_be_unfinished(&flow));
    (!kept).then_some(flow)
}

/// Returns whether a frame has a signaling message for somebody else, which the interceptor is to get.
pub fn is_message(node: &Node, frame: &[u8], device: u32) -> bool {
    of_others(node, frame, device).is_some_and(|(view, flow)| {
        let start = view.payload_offset() + UDP_HEADER_BYTES;
        is_signaling(&flow)
            && view.bytes().get(start..).is_some_and(|payload| payload.starts_with(&MAGIC.to_be_bytes()))
    })
}

/// Returns the packet of a frame that is neither for the node nor from it.
fn of_others<'a>(node: &Node, frame: &'a [u8], device: u32) -> Option<(IpView<'a>, Flow)> {
    let (vlan, kind, packet) = link_header(frame)?;
    let view = IpView::parse(packet).ok()?;
    let flow = view.flow();
    // A packet that is not of the version that its frame says is none.
    let said = match view.version() {
        IpVersion::V4 => TYPE_IPV4,
        IpVersion::V6 => TYPE_IPV6,
    };
    let known = node.interfaces.get(&(device, vlan)).is_some_and(|station| frame.starts_with(station));
    let kept = kind != said
        || !known
        || !is_beyond_one_link(flow.destination)
        || is_on_the_link(flow.source)
        || node.own.contains(&flow.destination)
        || node.own.contains(&flow.source)
        || frame.len() > node.frame_bytes_max;
    (!kept).then_some((view, flow))
}

fn is_signaling(flow: &Flow) -> bool {
    flow.protocol == UDP && flow.destination_port == Some(UDP_PORT)
}

/// Returns the VLAN, the type and the rest of a frame that has at most one tag, of 802.1Q. A tag without a VLAN is as none.
fn link_header(frame: &[u8]) -> Option<(u16, u16, &[u8])> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    match word(12)? {
        TYPE_VLAN => Some((word(14)? & 0x0fff, word(16)?, &frame[18..])),
        kind => Some((0, kind, &frame[14..])),
    }
}

/// Returns whether packets to an address are forwarded at all.
fn is_beyond_one_link(destination: IpAddr) -> bool {
    match destination {
        // 224.0.0.0/3 is multicast, reserved, and broadcast.
        IpAddr::V4(v4) => v4.octets()[0] < 224 && ![0, 127].contains(&v4.octets()[0]) && !v4.is_link_local(),
        // ::/96 has the unspecified and the loopback address.
        IpAddr::V6(v6) => !v6.is_multicast() && !v6.is_unicast_link_local() && v6.octets()[..12] != [0; 12],
    }
}

/// Returns whether a source is one of IPv6 that counts on one link alone. Routers forward those of IPv4.
fn is_on_the_link(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Returns whether a sender may have left a checksum inside the packet, or that of SCTP, to its card.
fn may_be_unfinished(flow: &Flow) -> bool {
    let tunnel = flow.protocol == UDP && flow.destination_port.is_some_and(|port| TUNNEL_PORTS.contains(&port));
    tunnel || UNFINISHED_PROTOCOLS.contains(&flow.protocol)
}

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_VLAN: u16 = 0x8100;
const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;
/// IPv4 and IPv6 in IP, GRE, SCTP.
const UNFINISHED_PROTOCOLS: [u8; 4] = [4, 41, 47, 132];
/// VXLAN, the same as Linux had it first, Geneve.
const TUNNEL_PORTS: [u16; 3] = [4789, 8472, 6081];
