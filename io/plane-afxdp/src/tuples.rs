// SPDX-License-Identifier: Apache-2.0
//! Filters as patterns that a hash table can hold: values under masks.
//!
//! A range of ports becomes a few blocks that each share their upper bits. What would need too many masks is made
//! coarser: the driver then yields packets that no filter matches, which its contract allows, and never misses one.

use ipnet::IpNet;
use netserv_model::{Filter, PortRange, Protocol};

use super::layout::{self, AddressBytes, KeyRepr, TupleRepr};
use crate::limits;

/// Which bits a pattern looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Mask {
    /// 4 or 6; 0 for both.
    pub version: u8,
    /// The packet must show ports.
    pub with_ports: bool,
    /// Whether the protocol counts.
    pub protocol: bool,
    /// Bits of the ports.
    pub source_port: u16,
    pub destination_port: u16,
    /// Length of the prefixes.
    pub source: u8,
    pub destination: u8,
}

/// A mask and what must stand under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pattern {
    pub mask: Mask,
    protocol: u8,
    source_port: u16,
    destination_port: u16,
    source: AddressBytes,
    destination: AddressBytes,
}

/// How closely patterns follow a filter. Each matches at least what the filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grain {
    /// They match what it matches.
    Exact,
    /// A range of ports becomes the one block that holds it.
    PortBlocks,
    /// Only the longer one of the prefixes, without its last bits, and the destination ports matter, which are few and
    /// taken one by one; without a prefix the protocol does, too.
    SinglePorts,
    /// Ports do not matter.
    NoPorts,
    /// Nor do the last bits of prefixes.
    ShortPrefixes,
    /// Only the longer one of the prefixes matters, without its last bits, or, if there is none, the protocol.
    OnePrefix,
}

impl Grain {
    /// From the finest to the coarsest.
    pub const ALL: [Grain; 6] =
        [Grain::Exact, Grain::PortBlocks, Grain::SinglePorts, Grain::NoPorts, Grain::ShortPrefixes, Grain::OnePrefix];

    /// Returns whether a filter has what the grain looks at.
    fn suits(self, filter: &Filter) -> bool {
        let few = |ports: PortRange| usize::from(ports.last() - ports.first()) < limits::PATTERNS_PER_FILTER_MAX / 2;
        self != Grain::SinglePorts || filter.destination_ports().is_some_and(few)
    }

    /// Returns whether only one prefix counts.
    fn is_coarse(self) -> bool {
        matches!(self, Grain::SinglePorts | Grain::OnePrefix)
    }
}

/// How many masks there are of the coarse grains: source or destination, in four lengths, and none, for each version;
/// for both versions with and without the protocol; all with and without one destination port.
pub(super) const COARSE_MASKS: usize = 2 * (2 * (2 * 4 + 1) + 2);

impl Mask {
    /// Returns whether the mask is one of the [`COARSE_MASKS`] to which every filter can be brought.
    pub fn is_coarse(&self) -> bool {
        let step = prefix_step(self.version == 4);
        let whole = self.source.is_multiple_of(step) && self.destination.is_multiple_of(step);
        let sides = whole && (self.source == 0 || self.destination == 0);
        let ports = matches!((self.with_ports, self.destination_port), (false, _) | (true, u16::MAX));
        sides && ports && self.source_port == 0 && (!self.protocol || self.version == 0)
    }

    /// Returns `struct tuple` for a place among the tuples.
    pub fn emit(&self, slot: u8) -> [u64; layout::TUPLE_WORDS] {
        let whole = |counts: bool| if counts { u8::MAX } else { 0 };
        let mask = KeyRepr {
            slot: 0,
            version: whole(self.version != 0),
            protocol: whole(self.protocol),
            source_port: self.source_port,
            destination_port: self.destination_port,
            source: leading_ones(self.source),
            destination: leading_ones(self.destination),
        };
        let version = match self.version {
            0 => 0,
            4 => layout::NEEDS_V4,
            _ => layout::NEEDS_V6,
        };
        let ports = if self.with_ports { layout::NEEDS_PORTS } else { 0 };
        TupleRepr { mask, slot, needs: version | ports }.emit()
    }
}

impl Pattern {
    /// Returns `struct filter_key` for a tuple's place.
    pub fn emit(&self, slot: u8) -> [u8; layout::KEY_BYTES] {
        let repr = KeyRepr {
            slot,
            version: self.mask.version,
            protocol: self.protocol,
            source_port: self.source_port,
            destination_port: self.destination_port,
            source: self.source,
            destination: self.destination,
        };
        repr.emit()
    }
}

/// Returns the patterns of a filter; `None` if there would be more than [`limits::PATTERNS_PER_FILTER_MAX`], or the grain
/// is not for this filter.
pub(super) fn patterns(filter: &Filter, grain: Grain) -> Option<Vec<Pattern>> {
    grain.suits(filter).then_some(())?;
    let (source_ports, destination_ports) = match grain {
        Grain::Exact | Grain::PortBlocks => (filter.source_ports(), filter.destination_ports()),
        Grain::SinglePorts => (None, filter.destination_ports()),
        Grain::NoPorts | Grain::ShortPrefixes | Grain::OnePrefix => (None, None),
    };
    let with_ports = source_ports.is_some() || destination_ports.is_some();
    let blocks = |ports: Option<PortRange>| match ports {
        Some(range) if grain == Grain::Exact => blocks_of(range),
        Some(range) if grain == Grain::SinglePorts => {
            (range.first()..=range.last()).map(|port| Block { first: port, mask: u16::MAX }).collect()
        }
        Some(range) => vec![block_around(range)],
        None => vec![Block { first: 0, mask: 0 }],
    };
    let (source_blocks, destination_blocks) = (blocks(source_ports), blocks(destination_ports));
    let with_protocol = filter.protocol() != Protocol::Any && (!grain.is_coarse() || filter.version().is_none());
    let protocols: &[u8] = match filter.protocol() {
        _ if !with_protocol => &[0],
        Protocol::Any => &[0],
        Protocol::Tcp => &[6],
        Protocol::Udp => &[17],
        Protocol::Icmp => &[1, 58],
    };
    let [(source_bits, source), (destination_bits, destination)] = prefixes(filter, grain);
    let mut patterns = Vec::new();
    for source_block in &source_blocks {
        for destination_block in &destination_blocks {
            let mask = Mask {
                version: filter.version().unwrap_or(0),
                with_ports,
                protocol: with_protocol,
                source_port: source_block.mask,
                destination_port: destination_block.mask,
                source: source_bits,
                destination: destination_bits,
            };
            let (source_port, destination_port) = (source_block.first, destination_block.first);
            let pattern = |protocol| Pattern { mask, protocol, source_port, destination_port, source, destination };
            patterns.extend(protocols.iter().copied().map(pattern));
        }
    }
    (patterns.len() <= limits::PATTERNS_PER_FILTER_MAX).then_some(patterns)
}

/// Ports that share the bits of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    first: u16,
    mask: u16,
}

/// Returns the fewest blocks that together are the range.
fn blocks_of(range: PortRange) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut first, last) = (u32::from(range.first()), u32::from(range.last()));
    while first <= last {
        let aligned = if first == 0 { 1 << 16 } else { first & first.wrapping_neg() };
        let mut size: u32 = aligned;
        while first + size - 1 > last {
            size /= 2;
        }
        let port = |number: u32| u16::try_from(number).expect("a port or a mask of one has 16 bits");
        blocks.push(Block { first: port(first), mask: port(0x1_0000 - size) });
        first += size;
    }
    blocks
}

/// Returns the smallest block that holds the range.
fn block_around(range: PortRange) -> Block {
    let differing = range.first() ^ range.last();
    let mask = !(u16::MAX.checked_shr(differing.leading_zeros()).unwrap_or(0));
    Block { first: range.first() & mask, mask }
}

/// Returns the length of both prefixes and what stands under them.
fn prefixes(filter: &Filter, grain: Grain) -> [(u8, AddressBytes); 2] {
    let length = |net: Option<IpNet>| net.map_or(0, |net| net.prefix_len());
    let source_is_longer = length(filter.source()) > length(filter.destination());
    let prefix = |net: Option<IpNet>, is_longer: bool| match net {
        Some(net) if is_longer || !grain.is_coarse() => {
            let step =
                if grain.is_coarse() || grain == Grain::ShortPrefixes { prefix_step(net.addr().is_ipv4()) } else { 1 };
            under(net, net.prefix_len() / step * step)
        }
        Some(_) | None => (0, [0; 16]),
    };
    [prefix(filter.source(), source_is_longer), prefix(filter.destination(), !source_is_longer)]
}

/// Returns the first bits of an address, and how many they are.
fn under(net: IpNet, bits: u8) -> (u8, AddressBytes) {
    let mut address = layout::address_bytes(net.addr());
    for (byte, mask) in address.iter_mut().zip(leading_ones(bits)) {
        *byte &= mask;
    }
    (bits, address)
}

fn prefix_step(is_v4: bool) -> u8 {
    if is_v4 { 8 } else { 32 }
}

fn leading_ones(bits: u8) -> AddressBytes {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_become_blocks() {
        let check = |text: &str, expected: &[(u16, u16)]| {
            let blocks = blocks_of(text.parse().unwrap());
            assert_eq!(blocks.iter().map(|block| (block.first, block.mask)).collect::<Vec<_>>(), expected, "{text}");
        };
        check("5060", &[(5060, 0xffff)]);
        check("0-65535", &[(0, 0)]);
        check("16384-32767", &[(16384, 0xc000)]);
        check("1-4", &[(1, 0xffff), (2, 0xfffe), (4, 0xffff)]);
        assert_eq!(blocks_of("1-65534".parse().unwrap()).len(), 30);
    }

    #[test]
    fn patterns_per_filter_max_is_kept() {
        let filter: Filter = "udp sport 1-65534 port 1-65534".parse().unwrap();
        assert_eq!(patterns(&filter, Grain::Exact), None);
        assert_eq!(patterns(&filter, Grain::PortBlocks).unwrap().len(), 1);
        let filter: Filter = "udp sport 1-65534 port 1-2".parse().unwrap();
        assert_eq!(patterns(&filter, Grain::Exact).unwrap().len(), 60);
    }

    proptest! {
        #[test]
        fn blocks_hold_the_range_and_nothing_else(first: u16, length in 0_u16..3000, port: u16) {
            let range = PortRange::new(first, first.saturating_add(length)).unwrap();
            let holds = |block: &Block, port: u16| port & block.mask == block.first;
            let around = block_around(range);
            for port in [port, range.first(), range.last(), range.first().wrapping_sub(1), range.last().wrapping_add(1)] {
                let exact = blocks_of(range).iter().filter(|block| holds(block, port)).count();
                prop_assert_eq!(exact, usize::from(range.contains(port)));
                prop_assert!(!range.contains(port) || holds(&around, port));
            }
        }
    }
}
