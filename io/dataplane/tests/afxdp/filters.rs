// SPDX-License-Identifier: Apache-2.0
//! Filters: many of them, and changes while packets flow.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_patience::grown;
use netserv_plane::{Change, Driver, DriverError};
use netserv_plane_afxdp::limits;
use netserv_wire::ip::build;

use crate::classify::device;
use crate::common::Chain;
use crate::{Flow, ROUTER, idle, open, pass, settle};

#[test]
fn ten_thousand_filters_cost_as_much_as_their_masks() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("many", &["udp dst 10.0.1.2 port 5060"]);
    let filters: Vec<Filter> = (1..10_000_u32)
        .map(|number| format!("udp dst 172.16.{}.{} port {}", number >> 8, number & 255, 1024 + number))
        .map(|text| text.parse().unwrap())
        .collect();
    let changes: Vec<Change<'_>> =
        (1..).zip(&filters).map(|(id, filter)| Change::Install(FilterId(id), filter)).collect();
    let start = Instant::now();
    driver.filters().change(&changes).unwrap();
    eprintln!("10,000 filters installed in {:?}", start.elapsed());
    assert_eq!(driver.tuples(), 1);
    let (flow, other) = (Flow::new(&chain, false, 5060), Flow::new(&chain, false, 5061));
    flow.send(b"wanted");
    other.send(b"other");
    assert_eq!(other.received().unwrap(), b"other");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(flow.received().unwrap(), b"wanted");
    let removals: Vec<Change<'_>> = (1..10_000).map(|id| Change::Remove(FilterId(id))).collect();
    driver.filters().change(&removals).unwrap();
    driver.remove(FilterId(0)).unwrap();
    settle(&driver);
    assert_eq!(driver.tuples(), 0);
    flow.send(b"by the kernel");
    assert_eq!(flow.received().unwrap(), b"by the kernel");
    assert_eq!(driver.counters().received, 1);
}

/// The filter that wants the packets is exchanged for another of the same kind, and others with ever new masks come and
/// go; each packet is seen and arrives.
#[test]
fn changes_under_traffic_lose_nothing() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("changes", &["udp port 5060"]);
    let table = driver.filters();
    let changes = AtomicU64::new(0);
    let wanted: Filter = "udp port 5060".parse().unwrap();
    let flow = Flow::new(&chain, false, 5060);
    let start = Instant::now();
    let (sent, passed) = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..5000 {
                let other: Filter = format!("tcp src 10.0.0.0/{} port 80", 8 + number % 20).parse().unwrap();
                let exchange = [Change::Remove(FilterId(number)), Change::Install(FilterId(number + 1), &wanted)];
                table.change(&exchange).unwrap();
                table.change(&[Change::Install(FilterId(u64::MAX), &other)]).unwrap();
                table.change(&[Change::Remove(FilterId(u64::MAX))]).unwrap();
                changes.fetch_add(3, Ordering::Relaxed);
            }
        });
        let (mut sent, mut passed) = (0, 0);
        while changes.load(Ordering::Relaxed) < 15_000 && start.elapsed() < Duration::from_secs(60) {
            (0..20).for_each(|_| flow.send(b"x"));
            sent += 20;
            passed += pass(&mut driver, 20);
            (0..20).for_each(|_| assert!(flow.received().is_some()));
        }
        (sent, passed)
    });
    eprintln!("15,000 changes in {:?} while {passed} packets passed", start.elapsed());
    assert_eq!(passed, sent);
    assert!(sent > 1000);
}

#[test]
fn tuples_max_combinations_of_masks_are_kept_and_filters_made_coarser() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("tuples", &[]);
    for number in 0..200_u64 {
        let filter = format!("udp src 10.0.0.0/{} dst 10.0.1.0/{} port 5060", 1 + number / 20, 1 + number % 20);
        driver.install(FilterId(number), &filter.parse().unwrap()).unwrap();
        assert!(driver.tuples() <= limits::TUPLES_MAX);
    }
    assert!(driver.tuples() > limits::TUPLES_MAX / 2);
    // So many changes take longer than a driver may be silent.
    idle(&mut driver);
    let flow = Flow::new(&chain, false, 5060);
    flow.send(b"x");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(flow.received().unwrap(), b"x");
    (0..200).for_each(|id| driver.remove(FilterId(id)).unwrap());
    settle(&driver);
    assert_eq!(driver.tuples(), 0);
}

/// Thousands of changes a second in a table of ten thousand: filters of the crowd go and come, and that which wants the
/// packets is exchanged for one with another mask, for as long as packets flow. Each packet is seen, and arrives.
#[test]
fn thousands_of_changes_a_second_lose_nothing() {
    const ROUNDS: u64 = 1000;
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("churn", &["udp port 5060"]);
    let table = driver.filters();
    let filter = |text: String| text.parse::<Filter>().unwrap();
    let crowd = |number: u64| filter(format!("udp dst 172.16.{}.{} port 9", number >> 8 & 255, number & 255));
    let crowd: Vec<Filter> = (0..10_000).map(crowd).collect();
    let changes: Vec<Change<'_>> =
        (10_000..).zip(&crowd).map(|(id, filter)| Change::Install(FilterId(id), filter)).collect();
    table.change(&changes).unwrap();
    let wanted: Vec<Filter> = (8..24).map(|bits| filter(format!("udp src 10.0.0.0/{bits} port 5060"))).collect();
    let flow = Flow::new(&chain, false, 5060);
    let done = AtomicU64::new(0);
    let (sent, passed, mut took) = std::thread::scope(|scope| {
        let changer = scope.spawn(|| {
            let start = Instant::now();
            let change = |changes: &[Change<'_>]| {
                let start = Instant::now();
                table.change(changes).unwrap();
                start.elapsed()
            };
            let mut took = Vec::new();
            for number in 0..ROUNDS {
                let (one, next) = (usize::try_from(number).unwrap(), FilterId(number + 1));
                let crowded = FilterId(10_000 + number);
                took.push(change(&[Change::Remove(crowded)]));
                took.push(change(&[Change::Install(crowded, &crowd[one])]));
                took.push(change(&[Change::Install(next, &wanted[one % wanted.len()])]));
                took.push(change(&[Change::Remove(FilterId(number))]));
                done.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep((start + Duration::from_millis(number)).saturating_duration_since(Instant::now()));
            }
            took
        });
        let (mut sent, mut passed) = (0, 0);
        while done.load(Ordering::Relaxed) < ROUNDS && !changer.is_finished() {
            (0..32).for_each(|_| flow.send(b"x"));
            sent += 32;
            passed += pass(&mut driver, 32);
            (0..32).for_each(|_| assert!(flow.received().is_some()));
        }
        (sent, passed, changer.join().unwrap())
    });
    took.sort_unstable();
    let (half, most) = (took[took.len() / 2], took[took.len() - took.len() / 100]);
    eprintln!("{passed} packets among {} changes; half took {half:?} at most, 99 % {most:?}", took.len());
    assert_eq!((passed, driver.counters().lost), (sent, 0));
    assert!(sent > 1000);
}

/// All of one user, in his own prefix, and each bringing as many masks as it can.
#[test]
fn new_tuples_per_filter_max_leaves_strangers_packets_alone() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
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
    let driver = open("strangers", &filters);
    let (device, station) = device(&chain);
    let takes = |to: &str, port: u16| {
        let to = SocketAddr::new(to.parse().unwrap(), port);
        let packet = build::udp("10.0.0.1:1".parse().unwrap(), to, 64, b"abc").unwrap();
        driver.classify(&[&station[..], &[2; 6], &[8, 0], &packet].concat(), device).unwrap()
    };
    assert!(!takes("10.0.1.2", 9) && !takes("10.0.1.2", 1) && !takes("10.8.1.1", 1));
    assert!(takes("10.9.77.1", 1) && takes("10.9.1.1", 2));
    assert!(driver.tuples() <= filters.len() * limits::NEW_TUPLES_PER_FILTER_MAX);
}

#[test]
fn a_refused_change_changes_nothing() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("refused", &["udp port 5060"]);
    let filter: Filter = "tcp".parse().unwrap();
    let unknown = [Change::Install(FilterId(7), &filter), Change::Remove(FilterId(0)), Change::Remove(FilterId(8))];
    let table = driver.filters();
    assert!(matches!(table.change(&unknown), Err(DriverError::FilterUnknown(FilterId(8)))));
    let twice = [Change::Install(FilterId(0), &filter)];
    assert!(matches!(table.change(&twice), Err(DriverError::FilterExists(FilterId(0)))));
    let flow = Flow::new(&chain, false, 5060);
    flow.send(b"x");
    assert_eq!((pass(&mut driver, 1), driver.tuples()), (1, 1));
    drop(driver);
    assert!(matches!(table.change(&twice), Err(DriverError::Closed)));
    flow.receiver.set_read_timeout(Some(grown(Duration::from_secs(1)))).unwrap();
    assert_eq!(flow.received().unwrap(), b"x");
}
