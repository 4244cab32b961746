// SPDX-License-Identifier: Apache-2.0
//! The table over maps in memory, read as the program reads them.

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::Filter;
use netserv_model::effect::FilterId;
use proptest::prelude::*;

use super::*;
use crate::tuples::COARSE_MASKS;

struct Memory {
    keys: Mutex<BTreeSet<[u8; layout::KEY_BYTES]>>,
    /// Those of modules that fail closed.
    closed: Mutex<BTreeSet<[u8; layout::KEY_BYTES]>>,
    words: Mutex<Vec<u64>>,
    fails: Mutex<bool>,
    /// How many keys there may be.
    room: Mutex<usize>,
}

impl Memory {
    fn new() -> Arc<Memory> {
        let words = Mutex::new(vec![0; layout::TABLE_WORDS]);
        Arc::new(Memory {
            keys: Mutex::default(),
            closed: Mutex::default(),
            words,
            fails: Mutex::default(),
            room: Mutex::new(usize::MAX),
        })
    }

    /// What `is_wanted` of `bpf/classify.h` says.
    fn wants(&self, packet: &Packet) -> bool {
        (0..).map_while(|place| self.wants_at(place, packet)).any(|wants| wants)
    }

    /// What one round of it says; `None` if it was the last one.
    fn wants_at(&self, place: usize, packet: &Packet) -> Option<bool> {
        let (keys, words) = (self.keys.lock().unwrap(), self.words.lock().unwrap());
        let count = usize::try_from(words[layout::COUNT_WORD]).unwrap();
        assert!(count <= limits::TUPLES_MAX);
        if place >= count {
            return None;
        }
        let tuple = &words[layout::TUPLES_WORD + place * layout::TUPLE_WORDS..][..layout::TUPLE_WORDS];
        let shown = packet.key();
        let key: Vec<u8> = (0..5)
            .flat_map(|at| {
                let slot = if at == 0 { tuple[5] } else { 0 };
                (u64::from_ne_bytes(shown[8 * at..8 * at + 8].try_into().unwrap()) & tuple[at] | slot).to_ne_bytes()
            })
            .collect();
        let key = key.try_into().unwrap();
        let lacks = if packet.source.is_ipv4() { layout::NEEDS_V6 } else { layout::NEEDS_V4 };
        let bit = layout::summary_bit(&key);
        let in_summary = words[layout::SUMMARY_WORD + bit / 64] >> (bit % 64) & 1 == 1;
        assert!(in_summary || !keys.contains(&key));
        Some(tuple[layout::NEEDS_WORD].to_ne_bytes()[0] & lacks == 0 && in_summary && keys.contains(&key))
    }
}

impl Maps for Memory {
    fn add_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError> {
        let mut keys = self.keys.lock().unwrap();
        if keys.len() >= *self.room.lock().unwrap() {
            return Err(DriverError::FiltersFull);
        }
        assert!(keys.insert(*key));
        Ok(())
    }

    fn set_closed(&self, key: &[u8; layout::KEY_BYTES], is_closed: bool) -> Result<(), DriverError> {
        assert!(self.keys.lock().unwrap().contains(key));
        let mut closed = self.closed.lock().unwrap();
        assert!(if is_closed { closed.insert(*key) } else { closed.remove(key) }, "it is so already");
        Ok(())
    }

    fn remove_key(&self, key: &[u8; layout::KEY_BYTES]) -> Result<(), DriverError> {
        assert!(self.keys.lock().unwrap().remove(key));
        assert!(!self.closed.lock().unwrap().contains(key), "no module is left that fails closed");
        Ok(())
    }

    fn store(&self, word: usize, value: u64) {
        self.words.lock().unwrap()[word] = value;
    }

    fn wait(&self) -> Result<(), DriverError> {
        if *self.fails.lock().unwrap() { Err(DriverError::Closed) } else { Ok(()) }
    }
}

/// Filters of modules that fail open and closed may share their keys, in whatever order they come and go.
#[test]
fn a_key_is_closed_as_long_as_any_of_its_filters_is() {
    let maps = Memory::new();
    let table = Table::without_thread(Arc::clone(&maps));
    let filter: Filter = "udp dst 10.2.0.0/24 port 5060".parse().unwrap();
    let closed = || maps.closed.lock().unwrap().len();
    let change = |changes: &[Change<'_>]| table.change(changes).unwrap();
    change(&[Change::Install(FilterId(1), &filter)]);
    assert_eq!(closed(), 0);
    change(&[Change::InstallClosed(FilterId(2), &filter), Change::InstallClosed(FilterId(3), &filter)]);
    assert_eq!(closed(), 1);
    change(&[Change::Remove(FilterId(2))]);
    assert_eq!(closed(), 1);
    // A successor takes its place in the same change.
    change(&[Change::InstallClosed(FilterId(4), &filter), Change::Remove(FilterId(3))]);
    assert_eq!(closed(), 1);
    change(&[Change::Install(FilterId(5), &filter), Change::Remove(FilterId(4))]);
    assert_eq!(closed(), 0);
    change(&[Change::InstallClosed(FilterId(6), &filter)]);
    change(&[1, 5, 6].map(|id| Change::Remove(FilterId(id))));
    assert_eq!((closed(), maps.keys.lock().unwrap().len()), (0, 0));
}

/// A UDP packet.
#[derive(Clone, Debug)]
struct Packet {
    source: IpAddr,
    destination: IpAddr,
    ports: [u16; 2],
}

impl Packet {
    fn new(source: &str, destination: &str, ports: [u16; 2]) -> Packet {
        Packet { source: source.parse().unwrap(), destination: destination.parse().unwrap(), ports }
    }

    fn key(&self) -> [u8; layout::KEY_BYTES] {
        let key = layout::KeyRepr {
            slot: 0,
            version: if self.source.is_ipv4() { 4 } else { 6 },
            protocol: 17,
            source_port: self.ports[0],
            destination_port: self.ports[1],
            source: layout::address_bytes(self.source),
            destination: layout::address_bytes(self.destination),
        };
        key.emit()
    }

    fn flow(&self) -> netserv_model::Flow {
        netserv_model::Flow {
            source: self.source,
            destination: self.destination,
            protocol: 17,
            source_port: Some(self.ports[0]),
            destination_port: Some(self.ports[1]),
            opens: false,
        }
    }

    /// Returns whether the longer prefix of a filter, without its last bits, holds the packet.
    fn is_near(&self, filter: &Filter) -> bool {
        let length = |net: Option<IpNet>| net.map_or(0, |net| net.prefix_len());
        let by_source = length(filter.source()) > length(filter.destination());
        let (net, address) = match by_source {
            true => (filter.source(), self.source),
            false => (filter.destination(), self.destination),
        };
        net.is_none_or(|net| {
            let step = if net.addr().is_ipv4() { 8 } else { 32 };
            IpNet::new(net.addr(), net.prefix_len() / step * step).unwrap().contains(&address)
        })
    }
}

fn filter(text: &str) -> Filter {
    text.parse().unwrap()
}

fn install(table: &Table, id: u64, filter: &Filter) {
    table.change(&[Change::Install(FilterId(id), filter)]).unwrap();
}

/// Eight filters of one user, in his own prefix, once took all places and led everybody's packets away.
#[test]
fn new_tuples_per_filter_max_keeps_places_for_others() {
    let memory = Memory::new();
    let table = Table::without_thread(Arc::clone(&memory));
    let filters = [
        "udp dst 10.9.0.0/16 sport 1-65534 port 1-2",
        "udp dst 10.9.1.0/24 sport 1-65534 port 1-2",
        "udp dst 10.9.1.1/32 sport 1-65534 port 1-2",
        "udp dst 10.9.1.0/31 sport 1-65534 port 1-2",
        "udp dst 10.9.1.0/30 port 1",
        "udp dst 10.9.1.0/30 port 2-3",
        "udp dst 10.9.1.0/30",
        "tcp dst 10.9.0.0/17",
    ];
    let other = Packet::new("10.0.0.1", "10.0.1.2", [1, 9]);
    for (id, text) in (0..).zip(filters) {
        let before = table.tuples();
        install(&table, id, &filter(text));
        assert!(table.tuples() - before <= limits::NEW_TUPLES_PER_FILTER_MAX);
        assert!(!memory.wants(&other), "{text}");
    }
    assert!(memory.wants(&Packet::new("10.0.0.1", "10.9.1.1", [1, 1])));
    let fine: Filter = filter("udp dst 10.7.0.0/27 sport 4-7 port 1-4");
    install(&table, 100, &fine);
    assert!(memory.wants(&Packet::new("10.0.0.1", "10.7.0.1", [5, 4])));
    assert!(!memory.wants(&Packet::new("10.0.0.1", "10.7.0.1", [5, 5])), "it is exact");
}

#[test]
fn tuples_max_leaves_filters_for_one_port_apart() {
    let memory = Memory::new();
    let table = Table::without_thread(Arc::clone(&memory));
    for number in 0..100 {
        install(
            &table,
            number,
            &filter(&format!("udp src 10.{number}.0.0/17 dst 10.0.1.0/{} port 1-4", 9 + number % 20)),
        );
        let v6 = format!("tcp src fd00:{number}::/33 dst fd00::/{} port 1-4", 17 + number % 15);
        install(&table, 100 + number, &filter(&v6));
        install(&table, 200 + number, &filter(&format!("ip src 10.200.0.0/{}", 16 + number % 17)));
    }
    assert!(table.tuples() > limits::TUPLES_MAX - COARSE_MASKS && table.tuples() <= limits::TUPLES_MAX);
    install(&table, 1000, &filter("udp port 5060-5061"));
    install(&table, 1001, &filter("udp port 77"));
    install(&table, 1002, &filter("udp src 10.99.0.0/17 dst 11.1.1.1/31 port 78"));
    let there = |destination, port| memory.wants(&Packet::new("11.0.0.1", destination, [9, port]));
    assert!(there("12.0.0.1", 77) && there("12.0.0.1", 5060) && there("12.0.0.1", 5061) && there("11.1.1.1", 78));
    assert!(!there("12.0.0.1", 5062) && !there("12.0.0.1", 78) && !there("11.1.1.1", 79));
    assert!(there("11.1.1.2", 78), "its prefix has become shorter, or this tests nothing");
}

#[test]
fn what_is_added_waits_for_nothing_and_what_leaves_is_taken_away_when_it_can_be() {
    let memory = Memory::new();
    let table = Table::without_thread(Arc::clone(&memory));
    *memory.fails.lock().unwrap() = true;
    install(&table, 1, &filter("udp dst 10.1.0.0/16"));
    let wants = |destination| memory.wants(&Packet::new("1.1.1.1", destination, [1, 1]));
    assert!(wants("10.1.2.3") && !wants("10.2.0.1"));
    let other = filter("udp dst 10.2.0.0/24");
    table.change(&[Change::Install(FilterId(2), &other), Change::Remove(FilterId(1))]).unwrap();
    assert!(wants("10.1.2.3") && wants("10.2.0.1") && table.tuples() == 2, "it may be needed by a packet on its way");
    // What comes back does not leave, and comes to where it was.
    install(&table, 3, &filter("udp dst 10.1.0.0/16"));
    assert_eq!((memory.keys.lock().unwrap().len(), table.tuples()), (2, 2));
    *memory.fails.lock().unwrap() = false;
    table.change(&[Change::Remove(FilterId(2))]).unwrap();
    assert!(wants("10.1.2.3") && !wants("10.2.0.1") && table.tuples() == 1);
    table.change(&[Change::Remove(FilterId(3))]).unwrap();
    let words = memory.words.lock().unwrap();
    assert!(words[..layout::TUPLES_WORD].iter().all(|word| *word == 0) && memory.keys.lock().unwrap().is_empty());
}

#[test]
fn a_refused_key_undoes_the_change() {
    let memory = Memory::new();
    let table = Table::without_thread(Arc::clone(&memory));
    install(&table, 1, &filter("udp dst 10.1.0.0/16"));
    let before = (memory.keys.lock().unwrap().clone(), memory.words.lock().unwrap().clone());
    *memory.room.lock().unwrap() = 2;
    let other = filter("udp dst 10.2.0.0/24 port 1-2");
    assert!(table.change(&[Change::Remove(FilterId(1)), Change::Install(FilterId(2), &other)]).is_err());
    assert_eq!(before, (memory.keys.lock().unwrap().clone(), memory.words.lock().unwrap().clone()));
}

#[test]
fn leaving_patterns_max_is_what_waits_to_be_taken_away() {
    let memory = Memory::new();
    let table = Table::new(Arc::clone(&memory)).unwrap();
    *memory.fails.lock().unwrap() = true;
    let filters: Vec<Filter> = (0..=limits::LEAVING_PATTERNS_MAX)
        .map(|number| filter(&format!("udp src 10.{}.{}.1 port 7", number >> 8 & 255, number & 255)))
        .collect();
    let half = filters.len() / 2;
    let mut id = 0;
    for some in [&filters[..half], &filters[half..]] {
        let changes: Vec<Change<'_>> =
            (id..).zip(some).map(|(id, filter)| Change::Install(FilterId(id), filter)).collect();
        table.change(&changes).unwrap();
        let changes: Vec<Change<'_>> = (id..).zip(some).map(|(id, _)| Change::Remove(FilterId(id))).collect();
        table.change(&changes).unwrap();
        id += u64::try_from(some.len()).unwrap();
    }
    let one = filter("tcp port 9");
    let change = [Change::Install(FilterId(id), &one)];
    assert!(matches!(table.change(&change), Err(DriverError::Closed)), "the error of the wait");
    *memory.fails.lock().unwrap() = false;
    table.change(&change).unwrap();
    assert_eq!((memory.keys.lock().unwrap().len(), table.tuples()), (1, 1));
}

/// Places that leave are waited for before a filter is made coarser for lack of them.
#[test]
fn filters_are_as_fine_as_without_those_that_leave() {
    let memory = Memory::new();
    let table = Table::new(Arc::clone(&memory)).unwrap();
    for round in 0..20_u64 {
        for number in 0..60_u64 {
            let text = format!("udp src 10.0.0.0/{} dst 10.0.1.0/{} port 5060", 9 + number / 15, 9 + number % 15);
            install(&table, 100 * round + number, &filter(&text));
        }
        assert!(!memory.wants(&Packet::new("11.0.0.1", "10.0.1.2", [1, 5060])), "{round}");
        let changes: Vec<Change<'_>> = (0..60).map(|number| Change::Remove(FilterId(100 * round + number))).collect();
        table.change(&changes).unwrap();
        install(&table, 99, &filter(&format!("udp src 10.0.0.0/17 dst 10.{round}.0.0/17 port 1")));
        table.change(&[Change::Remove(FilterId(99))]).unwrap();
    }
}

fn any_filter() -> impl Strategy<Value = Filter> {
    let ports = |name: &'static str| {
        prop_oneof![
            Just(String::new()),
            (any::<u16>(), 0..3000_u16)
                .prop_map(move |(first, more)| format!(" {name} {first}-{}", first.saturating_add(more))),
            (1..4_u16).prop_map(move |port| format!(" {name} {port}")),
        ]
    };
    let prefix = |side: &'static str| {
        let v4 = (0..4_u8, any::<u8>(), 1..=32_u8).prop_map(move |(a, b, bits)| format!(" {side} 10.{a}.{b}.1/{bits}"));
        let v6 =
            (0..4_u8, any::<u8>(), 1..=128_u8).prop_map(move |(a, b, bits)| format!(" {side} fd0{a}:{b}::1/{bits}"));
        [prop_oneof![v4, Just(String::new())].boxed(), prop_oneof![v6, Just(String::new())].boxed()]
    };
    let ([from_v4, from_v6], [to_v4, to_v6]) = (prefix("src"), prefix("dst"));
    let sides = prop_oneof![(from_v4, to_v4), (from_v6, to_v6)];
    (sides, ports("sport"), ports("port"), prop_oneof![Just("udp"), Just("tcp")])
        .prop_map(|((from, to), sport, port, protocol)| format!("{protocol}{from}{to}{sport}{port}").parse().unwrap())
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let address = |v6: bool| {
        (any::<u8>(), 0..4_u8, any::<u8>()).prop_map(move |(first, a, b)| match v6 {
            false => IpAddr::from([if first > 9 { 10 } else { first }, a, b, 1]),
            true => format!("fd0{a}:{b}::{}", if first > 9 { 1 } else { first }).parse().unwrap(),
        })
    };
    let both = prop_oneof![(address(false), address(false)), (address(true), address(true))];
    (both, [0..6_u16, 0..6_u16]).prop_map(|((source, destination), ports)| Packet { source, destination, ports })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However many filters there are, each packet that one matches is wanted, and none that is in no filter's prefix.
    #[test]
    fn filters_become_coarser_in_their_own_prefixes_only(
        filters in prop::collection::vec(any_filter(), 1..120),
        packets in prop::collection::vec(any_packet(), 60),
        gone in prop::collection::vec(any::<bool>(), 120),
    ) {
        // Filters without a prefix may want packets from anywhere.
        let filters: Vec<Filter> = filters.into_iter().filter(|filter| filter.version().is_some()).collect();
        let memory = Memory::new();
        let table = Table::without_thread(Arc::clone(&memory));
        (0..).zip(&filters).for_each(|(id, filter)| install(&table, id, filter));
        let check = |filters: &[&Filter]| {
            for packet in &packets {
                let wanted = memory.wants(packet);
                prop_assert!(wanted || !filters.iter().any(|filter| filter.matches(&packet.flow())), "{:?}", packet);
                let near = filters.iter().any(|filter| packet.is_near(filter));
                prop_assert!(near || !wanted, "{:?} is in no prefix", packet);
            }
            Ok(())
        };
        check(&filters.iter().collect::<Vec<_>>())?;
        for (id, _) in (0..).zip(&filters).zip(&gone).filter(|(_, gone)| **gone).map(|(at, _)| at) {
            table.change(&[Change::Remove(FilterId(id))]).unwrap();
        }
        let left = filters.iter().zip(&gone).filter(|(_, gone)| !**gone).map(|(filter, _)| filter);
        check(&left.collect::<Vec<_>>())?;
    }

    /// However changes fall between the steps of a look-up, a packet that is wanted all the time is found.
    #[test]
    fn a_packet_that_is_wanted_all_the_time_is_found(
        looks in prop::collection::vec(prop::collection::vec((0..4_usize, 0..12_u8, any::<bool>()), 0..40), 1..12),
    ) {
        // Each wants the packet, by a mask of its own; some share a pattern.
        let filters: Vec<Filter> =
            (0..12_u8).map(|number| filter(&format!("udp src 10.0.0.0/{} port 7", 8 + number % 9))).collect();
        let packet = Packet::new("10.0.0.1", "10.9.9.9", [1, 7]);
        let memory = Memory::new();
        let table = Table::without_thread(Arc::clone(&memory));
        let mut current = 0_u8;
        install(&table, 0, &filters[0]);
        for (number, look) in (1..).zip(looks) {
            // No wait ends while a packet is in the program.
            *memory.fails.lock().unwrap() = true;
            let (mut place, mut found) = (0, false);
            let mut changes = look.into_iter().peekable();
            while let Some(wants) = memory.wants_at(place, &packet) {
                found |= wants;
                place += 1;
                while let Some((_, next, in_one)) = changes.next_if(|(after, _, _)| *after < place) {
                    let (old, new) = (FilterId(current.into()), FilterId(next.into()));
                    let install = Change::Install(new, &filters[usize::from(next)]);
                    if next == current {
                        continue;
                    } else if in_one {
                        table.change(&[Change::Remove(old), install]).unwrap();
                    } else {
                        table.change(&[install]).unwrap();
                        table.change(&[Change::Remove(old)]).unwrap();
                    }
                    current = next;
                }
            }
            prop_assert!(found, "look {number}");
            *memory.fails.lock().unwrap() = false;
            let other = filter("tcp port 80");
            table.change(&[Change::Install(FilterId(99), &other)]).unwrap();
            table.change(&[Change::Remove(FilterId(99))]).unwrap();
            prop_assert_eq!(memory.keys.lock().unwrap().len(), 1);
        }
    }
}
