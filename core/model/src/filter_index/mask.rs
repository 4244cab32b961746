// SPDX-License-Identifier: Apache-2.0
//! What filters ask for, as values under masks that a hash table can hold.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Filter, Flow, PortRange, Protocol};

/// What a filter looks at in a packet, as numbers. An IPv4 address stands in the upper bits of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub source: u128,
    pub destination: u128,
    /// The protocol and the two ports; a port that the packet does not show is 0.
    pub rest: u64,
}

impl Bits {
    pub fn of(flow: &Flow) -> Bits {
        // Both numbers of ICMP are one to filters.
        let protocol = if flow.protocol == ICMP_V6 { ICMP } else { flow.protocol };
        let (source_port, destination_port) = (flow.source_port.unwrap_or(0), flow.destination_port.unwrap_or(0));
        Bits {
            source: address_bits(flow.source),
            destination: address_bits(flow.destination),
            rest: rest_bits(protocol, source_port, destination_port),
        }
    }

    pub fn under(&self, mask: &Bits) -> Bits {
        Bits {
            source: self.source & mask.source,
            destination: self.destination & mask.destination,
            rest: self.rest & mask.rest,
        }
    }
}

/// Which bits of a packet count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mask {
    /// 4 or 6; 0 for both.
    version: u8,
    protocol: bool,
    /// Length of the prefixes.
    source: u8,
    destination: u8,
    /// Bits of the ports.
    source_port: u16,
    destination_port: u16,
}

impl Mask {
    /// Returns the mask as numbers.
    pub fn bits(&self) -> Bits {
        Bits {
            source: leading_ones(self.source),
            destination: leading_ones(self.destination),
            rest: rest_bits(if self.protocol { u8::MAX } else { 0 }, self.source_port, self.destination_port),
        }
    }

    /// Returns a number that no other mask has.
    pub fn number(&self) -> u64 {
        let bytes = [self.version, u8::from(self.protocol), self.source, self.destination];
        u64::from(u32::from_be_bytes(bytes)) << 32
            | u64::from(self.source_port) << 16
            | u64::from(self.destination_port)
    }

    /// Returns whether packets of an address's version can be under this mask.
    pub fn takes(&self, address: IpAddr) -> bool {
        self.version == 0 || self.version == version(address)
    }

    /// Returns whether the mask is one of the [`COARSE_MASKS`] to which every filter can be brought.
    pub fn is_coarse(&self) -> bool {
        let step = prefix_step(self.version);
        let one_side = (self.source == 0) != (self.destination == 0);
        let whole = self.source.is_multiple_of(step) && self.destination.is_multiple_of(step);
        let sides = if self.version == 0 { true } else { one_side && whole };
        sides && !self.protocol && self.source_port == 0 && self.destination_port == 0
    }
}

/// How closely a pattern follows its filter. Each matches at least what the filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grain {
    /// A range of ports is the smallest block of ports with common upper bits that holds it; all else is exact.
    PortBlocks,
    /// Ports do not matter.
    NoPorts,
    /// Nor do the last bits of prefixes.
    ShortPrefixes,
    /// Only the longer one of the prefixes matters, without its last bits.
    OnePrefix,
}

impl Grain {
    /// From the finest to the coarsest.
    pub const ALL: [Grain; 4] = [Grain::PortBlocks, Grain::NoPorts, Grain::ShortPrefixes, Grain::OnePrefix];
}

/// How many masks there are of the coarsest grain: source or destination, in four lengths for each version, and none.
pub(super) const COARSE_MASKS: usize = 2 * 2 * 4 + 1;

/// Returns the mask of a filter and what must stand under it.
pub(super) fn pattern(filter: &Filter, grain: Grain) -> (Mask, Bits) {
    let block = |ports: Option<PortRange>| match ports {
        Some(range) if grain == Grain::PortBlocks => block_around(range),
        Some(_) | None => (0, 0),
    };
    let (source_port, source_port_mask) = block(filter.source_ports());
    let (destination_port, destination_port_mask) = block(filter.destination_ports());
    let protocol = (grain < Grain::OnePrefix).then(|| protocol_number(filter.protocol())).flatten();
    let (source, destination) = lengths(filter, grain);
    let mask = Mask {
        version: if source == 0 && destination == 0 { 0 } else { filter.version().unwrap_or(0) },
        protocol: protocol.is_some(),
        source,
        destination,
        source_port: source_port_mask,
        destination_port: destination_port_mask,
    };
    let bits = |net: Option<IpNet>| net.map_or(0, |net| address_bits(net.addr()));
    let rest = rest_bits(protocol.unwrap_or(0), source_port, destination_port);
    let wanted = Bits { source: bits(filter.source()), destination: bits(filter.destination()), rest };
    (mask, wanted.under(&mask.bits()))
}

fn lengths(filter: &Filter, grain: Grain) -> (u8, u8) {
    let length = |net: Option<IpNet>| {
        let Some(net) = net else { return 0 };
        let step = if grain >= Grain::ShortPrefixes { prefix_step(version(net.addr())) } else { 1 };
        net.prefix_len() / step * step
    };
    let (source, destination) = (length(filter.source()), length(filter.destination()));
    match grain {
        Grain::PortBlocks | Grain::NoPorts | Grain::ShortPrefixes => (source, destination),
        Grain::OnePrefix if source > destination => (source, 0),
        Grain::OnePrefix => (0, destination),
    }
}

fn protocol_number(protocol: Protocol) -> Option<u8> {
    match protocol {
        Protocol::Any => None,
        Protocol::Tcp => Some(TCP),
        Protocol::Udp => Some(UDP),
        Protocol::Icmp => Some(ICMP),
    }
}

/// Returns the first port of the smallest block that holds a range, and the bits that its ports share.
fn block_around(range: PortRange) -> (u16, u16) {
    let differing = range.first() ^ range.last();
    let mask = !u16::MAX.checked_shr(differing.leading_zeros()).unwrap_or(0);
    (range.first() & mask, mask)
}

fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn rest_bits(protocol: u8, source_port: u16, destination_port: u16) -> u64 {
    u64::from(protocol) << 32 | u64::from(source_port) << 16 | u64::from(destination_port)
}

fn leading_ones(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

fn prefix_step(version: u8) -> u8 {
    if version == 4 { 8 } else { 32 }
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;
