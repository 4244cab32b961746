// SPDX-License-Identifier: Apache-2.0

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::{PortRange, Protocol};

#[test]
fn filters_are_found_in_the_order_of_their_ids() {
    let mut index = FilterIndex::new(1);
    for (id, filter) in [(9, "udp"), (3, "dst 10.0.0.0/8"), (5, "udp port 5000-5999"), (4, "tcp"), (7, "ip")] {
        index.insert(FilterId(id), filter.parse().unwrap(), id * 10);
    }
    let flow = flow("192.0.2.1", "10.1.2.3", 17, Some((9, 5060)));
    check(&index, &flow, &[(3, 30), (5, 50), (7, 70), (9, 90)]);
    assert_eq!(index.remove(FilterId(5)), Some(50));
    assert_eq!(index.remove(FilterId(5)), None);
    index.insert(FilterId(3), "tcp port 1".parse().unwrap(), 31);
    check(&index, &flow, &[(7, 70), (9, 90)]);
    assert_eq!((index.len(), index.value(FilterId(3)), index.value(FilterId(5))), (4, Some(31), None));
}

#[test]
fn a_later_fragment_is_found_by_filters_without_ports_only() {
    let mut index = FilterIndex::new(1);
    for (id, filter) in (0..).zip(["udp", "udp port 0-100", "udp sport 0-65535", "dst 10.0.0.1"]) {
        index.insert(FilterId(id), filter.parse().unwrap(), ());
    }
    check(&index, &flow("10.0.0.2", "10.0.0.1", 17, None), &[(0, ()), (3, ())]);
    check(&index, &flow("10.0.0.2", "10.0.0.9", 17, Some((7, 0))), &[(0, ()), (1, ()), (2, ())]);
}

#[test]
fn filter_tuples_max_tuples_hold_every_filter() {
    let mut index = FilterIndex::new(1);
    let mut filters = BTreeMap::new();
    // More masks than there are places, and then the coarse ones that are kept free.
    let fine =
        (9..33).flat_map(|bits| [format!("udp dst 10.0.0.0/{bits}"), format!("tcp src 10.0.0.0/{bits} port 6-7")]);
    let both = (33..120).map(|bits| format!("src 2001:db8::/{bits} dst 2001:db8::/40"));
    let rest = ["src", "dst"].into_iter().flat_map(|side| {
        let v4 = [8, 16, 24, 32].map(|bits| format!("{side} 10.0.0.0/{bits}"));
        let v6 = [32, 64, 96, 128].map(|bits| format!("{side} 2001:db8::/{bits}"));
        v4.into_iter().chain(v6).flat_map(|net| [format!("udp {net} port 9"), net])
    });
    let all = ["udp port 9", "ip"].map(str::to_owned);
    for (id, text) in (0..).zip(fine.chain(both).chain(rest).chain(all)) {
        let filter: Filter = text.parse().unwrap();
        index.insert(FilterId(id), filter.clone(), ());
        filters.insert(FilterId(id), filter);
        assert!(index.tuples() <= FILTER_TUPLES_MAX);
    }
    assert_eq!(index.tuples(), FILTER_TUPLES_MAX);
    for flow in [
        flow("10.0.0.0", "10.0.0.0", 6, Some((1, 7))),
        flow("10.0.0.0", "10.0.0.0", 17, Some((1, 7))),
        flow("2001:db8::", "2001:db8::", 58, None),
        flow("2001:db8:0:1::", "2001:db8::1", 58, None),
    ] {
        let expected: Vec<_> = scan(&filters, &flow).map(|id| (id.0, ())).collect();
        check(&index, &flow, &expected);
    }
    filters.keys().for_each(|id| assert_eq!(index.remove(*id), Some(())));
    assert_eq!((index.tuples(), index.is_empty()), (0, true));
}

/// Ten thousand filters cost a packet no more than one: it is asked only by those that it matches.
#[test]
fn a_look_up_does_not_grow_with_the_filters() {
    let mut index = FilterIndex::new(7);
    for id in 0..10_000 {
        let filter = format!("udp dst 10.{}.{}.0/24 port {}", id / 200, id % 200, 1000 + id);
        index.insert(FilterId(id), filter.parse().unwrap(), ());
    }
    assert_eq!(index.tuples(), 1);
    for id in 0..10_000_u16 {
        let to = format!("10.{}.{}.9", id / 200, id % 200);
        for (port, expected) in [(1000 + id, 1), (999 + id, 0)] {
            let mut candidates = 0;
            index.for_each_candidate(&flow("192.0.2.1", &to, 17, Some((5, port))), |_, _| candidates += 1);
            assert_eq!(candidates, expected);
        }
    }
}

/// One user's odd masks take every place that is not kept; filters for one port, as most are, stay apart all the same.
#[test]
fn who_takes_all_tuples_makes_look_ups_of_others_no_longer() {
    let mut index = FilterIndex::new(7);
    for bits in 1..=60 {
        let odd = format!("udp src 2001:db8::/{bits} dst 2001:db8::/48 port 7-8");
        index.insert(FilterId(1_000_000 + bits), odd.parse().unwrap(), ());
    }
    for id in 0..10_000 {
        let filter = format!("udp dst 10.7.{}.0/26 sport 1024-65535 port {}", id % 16, 1000 + id / 16);
        index.insert(FilterId(id), filter.parse().unwrap(), ());
    }
    for (port, expected) in [(1000, 1), (999, 0)] {
        let mut candidates = 0;
        index.for_each_candidate(&flow("192.0.2.1", "10.7.3.9", 17, Some((5000, port))), |_, _| candidates += 1);
        assert_eq!(candidates, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_finds_what_a_scan_finds(
        seed: u64,
        changes in proptest::collection::vec((0_u64..40, proptest::option::weighted(0.8, filter())), 1..120),
        flows in proptest::collection::vec(any_flow(), 1..40),
    ) {
        let (mut index, mut filters) = (FilterIndex::new(seed), BTreeMap::new());
        let mut found = Vec::new();
        for (id, change) in changes {
            let id = FilterId(id);
            match change {
                Some(filter) => {
                    index.insert(id, filter.clone(), id.0);
                    filters.insert(id, filter);
                }
                None => prop_assert_eq!(index.remove(id), filters.remove(&id).map(|_| id.0)),
            }
            prop_assert!(index.tuples() <= FILTER_TUPLES_MAX && index.len() == filters.len());
            for flow in &flows {
                index.matching(flow, &mut found);
                prop_assert!(found.iter().copied().eq(scan(&filters, flow).map(|id| (id, id.0))), "{:?}", flow);
            }
        }
    }
}

fn check<T: Copy + PartialEq + std::fmt::Debug>(index: &FilterIndex<T>, flow: &Flow, expected: &[(u64, T)]) {
    let mut found = vec![];
    index.matching(flow, &mut found);
    let found: Vec<_> = found.into_iter().map(|(id, value)| (id.0, value)).collect();
    assert_eq!(found, expected, "{flow:?}");
}

/// What the index is an index of.
fn scan(filters: &BTreeMap<FilterId, Filter>, flow: &Flow) -> impl Iterator<Item = FilterId> {
    filters.iter().filter(|(_, filter)| filter.matches(flow)).map(|(id, _)| *id)
}

fn flow(source: &str, destination: &str, protocol: u8, ports: Option<(u16, u16)>) -> Flow {
    let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
    let (source_port, destination_port) = ports.unzip();
    Flow { source, destination, protocol, source_port, destination_port, opens: protocol == 6 }
}

/// Addresses that share some of their upper bits, so that prefixes match now and then; versions that could be confused.
fn address(version: u8) -> impl Strategy<Value = IpAddr> {
    (0_u32..3, 0_u32..128).prop_map(move |(differing, at)| {
        let bits = 0x0a01_0203_0405_0607_0809_0a0b_0c0d_0e0f_u128 ^ u128::from(differing) << at;
        let upper = u32::try_from(bits >> 96).unwrap();
        if version == 4 { IpAddr::from(upper.to_be_bytes()) } else { IpAddr::from(bits.to_be_bytes()) }
    })
}

fn prefix(version: u8) -> impl Strategy<Value = Option<ipnet::IpNet>> {
    let length = if version == 4 { 0_u8..=32 } else { 0_u8..=128 };
    proptest::option::of(
        (address(version), length).prop_map(|(address, length)| ipnet::IpNet::new(address, length).unwrap()),
    )
}

fn ports() -> impl Strategy<Value = Option<PortRange>> {
    let single = (0_u16..8).prop_map(PortRange::single);
    let range = (0_u16..2000, 0_u16..3000).prop_map(|(first, more)| PortRange::new(first, first + more).unwrap());
    proptest::option::of(prop_oneof![single, range, Just(PortRange::ALL)])
}

fn filter() -> impl Strategy<Value = Filter> {
    let protocol = prop_oneof![Just(Protocol::Any), Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::Icmp)];
    let nets = prop_oneof![(prefix(4), prefix(4)), (prefix(6), prefix(6))];
    (protocol, any::<bool>(), nets, ports(), ports()).prop_map(|(protocol, opens, (source, destination), from, to)| {
        let (from, to) = if protocol.has_ports() { (from, to) } else { (None, None) };
        let filter = Filter::new(protocol, source, destination, from, to).unwrap();
        filter.opening(opens && protocol == Protocol::Tcp).unwrap()
    })
}

fn any_flow() -> impl Strategy<Value = Flow> {
    let ends = prop_oneof![(address(4), address(4)), (address(6), address(6))];
    let port = || proptest::option::weighted(0.9, prop_oneof![0_u16..8, 0_u16..5000]);
    let protocol = prop_oneof![Just(1_u8), Just(6), Just(17), Just(58), any::<u8>()];
    (ends, protocol, port(), port(), any::<bool>()).prop_map(
        |((source, destination), protocol, source_port, destination_port, opens)| Flow {
            source,
            destination,
            protocol,
            source_port,
            destination_port,
            opens: opens && protocol == 6,
        },
    )
}
