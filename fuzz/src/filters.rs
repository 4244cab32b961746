// SPDX-License-Identifier: Apache-2.0
//! Filters and flows out of bytes, from so few addresses and ports that they often meet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netserv_model::effect::FilterId;
use netserv_model::{Filter, FilterIndex, Flow, PortRange, Protocol};

use crate::input::Input;

/// Filters that come and go.
const FILTERS_MAX: usize = 200;

/// Inserts, removes and looks up filters in the index and in a list.
///
/// # Panics
/// If they do not find the same.
pub fn filter_index(data: &[u8]) {
    let mut input = Input::new(data);
    let mut index = FilterIndex::new(u64::from(input.word()));
    let mut list: Vec<(FilterId, Filter, u32)> = Vec::new();
    let mut found = Vec::new();
    for number in 0_u32.. {
        let Some(step) = input.next() else { break };
        match step % 4 {
            0 if !list.is_empty() => {
                let (id, _, value) = list.remove(usize::from(step / 4) % list.len());
                assert_eq!(index.remove(id), Some(value));
                assert_eq!(index.remove(id), None);
            }
            0 | 1 if list.len() < FILTERS_MAX => {
                let Some(filter) = filter(&mut input) else { continue };
                // Ids are taken anew, and used again.
                let id = FilterId(u64::from(step / 4));
                list.retain(|(other, ..)| *other != id);
                list.push((id, filter.clone(), number));
                index.insert(id, filter, number);
            }
            _ => {
                let flow = flow(&mut input);
                index.matching(&flow, &mut found);
                let matching = list.iter().filter(|(_, filter, _)| filter.matches(&flow));
                let mut expected: Vec<(FilterId, u32)> = matching.map(|(id, _, value)| (*id, *value)).collect();
                expected.sort_unstable();
                assert_eq!(found, expected, "{flow:?}");
            }
        }
        assert_eq!((index.len(), index.is_empty()), (list.len(), list.is_empty()));
        assert!(index.tuples() <= list.len());
    }
    for (id, _, value) in &list {
        assert_eq!(index.value(*id), Some(*value));
    }
}

/// Returns a filter, if the bytes stand for one that can be.
pub(crate) fn filter(input: &mut Input<'_>) -> Option<Filter> {
    let parts = input.byte();
    let protocol = [Protocol::Any, Protocol::Tcp, Protocol::Udp, Protocol::Icmp][usize::from(parts & 3)];
    let v6 = parts & 4 != 0;
    let source = (parts & 8 != 0).then(|| prefix(input, v6));
    let destination = (parts & 16 != 0).then(|| prefix(input, v6));
    let source_ports = (parts & 32 != 0).then(|| ports(input));
    let destination_ports = (parts & 64 != 0).then(|| ports(input));
    let opens_only = protocol == Protocol::Tcp && parts & 128 != 0;
    Filter::new(protocol, source, destination, source_ports, destination_ports)
        .and_then(|filter| filter.opening(opens_only))
        .ok()
}

fn flow(input: &mut Input<'_>) -> Flow {
    let parts = input.byte();
    let (v6, with_ports) = (parts & 1 != 0, parts & 2 != 0);
    let protocol = if parts & 4 == 0 { [1, 6, 17, 58][usize::from(parts >> 3 & 3)] } else { input.byte() };
    let (source, destination) = (address(input, v6), address(input, v6));
    let port = |input: &mut Input<'_>| with_ports.then(|| input.word());
    let opens = protocol == 6 && parts & 32 != 0;
    Flow { source, destination, protocol, source_port: port(input), destination_port: port(input), opens }
}

fn prefix(input: &mut Input<'_>, v6: bool) -> IpNet {
    let address = address(input, v6);
    let bits = if v6 { input.byte() % 129 } else { input.byte() % 33 };
    IpNet::new(address, bits).expect("a prefix is no longer than its address")
}

fn address(input: &mut Input<'_>, v6: bool) -> IpAddr {
    let (high, low) = (input.byte(), input.byte());
    match v6 {
        false => Ipv4Addr::new(10, high, 0, low).into(),
        true => Ipv6Addr::new(0xfd00, high.into(), 0, 0, 0, 0, 0, low.into()).into(),
    }
}

fn ports(input: &mut Input<'_>) -> PortRange {
    let first = input.word();
    let length = input.byte();
    // Now and then half of all ports.
    let length = if length < 0xf0 { u16::from(length / 8) } else { 1 << (length & 0x0f) };
    PortRange::new(first, first.saturating_add(length)).expect("the last port is not below the first")
}

/// Returns how many tuples a filter needs at most to be followed exactly.
pub(crate) fn tuples_max(filter: &Filter) -> usize {
    blocks(filter.source_ports()) * blocks(filter.destination_ports())
}

/// Returns how many blocks, which start at a multiple of their size, a power of two, make up a range.
fn blocks(range: Option<PortRange>) -> usize {
    let Some(range) = range else { return 1 };
    let (mut first, last, mut count) = (u32::from(range.first()), u32::from(range.last()), 0);
    while first <= last {
        let fits = |bits: &u32| first.is_multiple_of(1 << bits) && first + (1 << bits) - 1 <= last;
        first += 1 << (0..=16).rev().find(fits).expect("one port is a block");
        count += 1;
    }
    count
}
