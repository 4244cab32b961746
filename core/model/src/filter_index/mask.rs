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
    /// The protocol, whether the packet shows each port, and the two ports.
    pub rest: u64,
}

impl Bits {
    #[inline]
    pub fn of(flow: &Flow) -> Bits {
        // Both numbers of ICMP are one to filters.
        let protocol = if flow.protocol == ICMP_V6 { ICMP } else { flow.protocol };
        Bits {
            source: address_bits(flow.source),
            destination: address_bits(flow.destination),
            rest: rest_bits(protocol, flow.source_port, flow.destination_port),
        }
    }

    #[inline]
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
    /// Bits of the ports, if the packet must show them.
    source_port: Option<u16>,
    destination_port: Option<u16>,
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
        let lengths = u64::from(self.version) << 16 | u64::from(self.source) << 8 | u64::from(self.destination);
        // Below that, 35 bits are in use.
        lengths << 35 | rest_bits(u8::from(self.protocol), self.source_port, self.destination_port)
    }

    /// Returns whether packets of a version can be under this mask.
    #[inline]
    pub fn takes(&self, version: u8) -> bool {
        self.version == 0 || self.version == version
    }

    /// Returns whether the mask is one of the [`COARSE_MASKS`] to which every filter can be brought.
    pub fn is_coarse(&self) -> bool {
        let step = prefix_step(self.version);
        let one_side = (self.source == 0) != (self.destination == 0);
        let whole = self.source.is_multiple_of(step) && self.destination.is_multiple_of(step);
        let sides = self.version == 0 || one_side && whole;
        let ports = self.source_port.is_none() && self.destination_port.is_none_or(|mask| mask == u16::MAX);
        sides && ports && !self.protocol
    }
}

/// How closely a pattern follows its filter. Each matches at least what the filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grain {
    /// A range of ports is the smallest block of ports with common upper bits that holds it; all else is exact.
    PortBlocks,
    /// Only the longer one of the prefixes, without its last bits, and the destination port matter, which is a single one.
    OnePort,
    /// Ports do not matter.
    NoPorts,
    /// Nor do the last bits of prefixes.
    ShortPrefixes,
    /// Only the longer one of the prefixes matters, without its last bits.
    OnePrefix,
}

impl Grain {
    /// From the finest to the coarsest.
    pub const ALL: [Grain; 5] =
        [Grain::PortBlocks, Grain::OnePort, Grain::NoPorts, Grain::ShortPrefixes, Grain::OnePrefix];

    /// Returns whether a filter has what the grain looks at.
    pub fn suits(self, filter: &Filter) -> bool {
        self != Grain::OnePort || filter.destination_ports().is_some_and(|ports| ports.first() == ports.last())
    }

    /// Returns whether only one prefix counts, and no protocol.
    fn is_coarse(self) -> bool {
        matches!(self, Grain::OnePort | Grain::OnePrefix)
    }
}

/// How many masks there are of the coarse grains: source or destination, in four lengths for each version, and none; each
/// with and without one destination port.
pub(super) const COARSE_MASKS: usize = 2 * (2 * 2 * 4 + 1);

/// Returns the mask of a filter and what must stand under it.
pub(super) fn pattern(filter: &Filter, grain: Grain) -> (Mask, Bits) {
    let block = |ports: Option<PortRange>, counts: bool| ports.filter(|_| counts).map(block_around).unzip();
    let (source_port, source_port_mask) = block(filter.source_ports(), grain == Grain::PortBlocks);
    let (destination_port, destination_port_mask) = block(filter.destination_ports(), grain <= Grain::OnePort);
    let protocol = (!grain.is_coarse()).then(|| protocol_number(filter.protocol())).flatten();
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

/// Returns whether a packet matches a filter just if it matches the filter's pattern.
pub(super) fn is_exact(filter: &Filter, grain: Grain) -> bool {
    let is_block = |ports: Option<PortRange>| {
        ports.is_none_or(|range| {
            let (first, mask) = block_around(range);
            (range.first(), range.last()) == (first, first | !mask)
        })
    };
    let (mask, _) = pattern(filter, grain);
    let version = mask.version == filter.version().unwrap_or(0);
    let all = version && !filter.opens_only();
    grain == Grain::PortBlocks && all && is_block(filter.source_ports()) && is_block(filter.destination_ports())
}

fn lengths(filter: &Filter, grain: Grain) -> (u8, u8) {
    let length = |net: Option<IpNet>| {
        let Some(net) = net else { return 0 };
        let is_short = grain.is_coarse() || grain == Grain::ShortPrefixes;
        let step = if is_short { prefix_step(version(net.addr())) } else { 1 };
        net.prefix_len() / step * step
    };
    let (source, destination) = (length(filter.source()), length(filter.destination()));
    match grain {
        Grain::PortBlocks | Grain::NoPorts | Grain::ShortPrefixes => (source, destination),
        Grain::OnePort | Grain::OnePrefix if source > destination => (source, 0),
        Grain::OnePort | Grain::OnePrefix => (0, destination),
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

#[inline]
fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[inline]
fn rest_bits(protocol: u8, source_port: Option<u16>, destination_port: Option<u16>) -> u64 {
    // A port that is there is told from one that is not.
    let port = |port: Option<u16>| port.map_or(0, |port| 1 << 16 | u64::from(port));
    u64::from(protocol) << 34 | port(source_port) << 17 | port(destination_port)
}

fn leading_ones(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

#[inline]
pub(super) fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

fn prefix_step(version: u8) -> u8 {
    if version == 4 { 8 } else { 32 }
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;
