// SPDX-License-Identifier: Apache-2.0
//! Packets that are seen, changed, and too many; rules that come and go.

use std::net::SocketAddr;
use std::time::Duration;

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Batch, Change, Counters, Driver, DriverConfig, DriverError, Final};
use netserv_wire::ip::build;

use crate::common::contract::{self, Flow, RECEIVER, ROUTER, for_each_packet};
use crate::common::{Chain, address, receive};
use crate::{Nfqueue, config, leads_to_queue, open, rules};

#[test]
fn matching_packets_are_seen_and_the_others_pass_alone() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("seen", &["udp port 5060"]);
    contract::matching_packets_are_seen_and_the_others_pass_alone(&chain, &mut driver);
}

#[test]
fn packets_can_be_dropped_and_rewritten_and_stay_in_order() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("rewrite", &["udp port 5060"]);
    contract::packets_can_be_dropped_and_rewritten_and_stay_in_order(&chain, &mut driver);
}

#[test]
fn packets_are_counted_by_destination() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("counted", &[]);
    contract::packets_are_counted_by_destination(&chain, &mut driver);
}

/// They stay while others clean the packet filter, and go with the driver.
#[test]
fn counters_of_destinations_go_with_the_driver() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let prefix = || "10.0.1.0/24".parse().unwrap();
    let driver = open("counted", &[]);
    let counters = driver.destination_counters();
    for _ in 0..2 {
        counters.count(&[prefix(), "fd00::/16".parse().unwrap()]).unwrap();
        chain.run(ROUTER, &["nft", "flush", "ruleset"]);
        assert_eq!(counters.read().unwrap().len(), 2);
        counters.count(&[]).unwrap();
        assert_eq!(counters.read().unwrap(), []);
    }
    drop(driver);
    assert!(counters.count(&[prefix()]).is_err());
    drop(counters);
    assert_eq!(rules(&chain), "");
}

#[test]
fn a_packet_turned_around_reaches_its_sender() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(ROUTER, &["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1", "net.ipv4.conf.left.rp_filter=1"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("swap", &["udp port 5060"]);
    contract::a_packet_turned_around_reaches_its_sender(&chain, &mut driver, 1);
}

#[test]
fn a_packet_longer_than_its_new_way_arrives() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("long", &["udp port 5060"]);
    contract::a_packet_longer_than_its_new_way_arrives(&chain, &mut driver, 1);
}

/// A route may promise more than its device carries.
#[test]
fn a_packet_longer_than_its_new_way_arrives_if_the_kernel_is_wrong() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(ROUTER, &["ip", "route", "change", "10.0.1.0/24", "dev", "right", "src", "10.0.1.1", "mtu", "1500"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("wrong", &["udp port 5060"]);
    contract::a_packet_longer_than_its_new_way_arrives(&chain, &mut driver, 1);
}

#[test]
fn a_packet_whose_ttl_runs_out_on_its_new_way_is_dropped() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("ttl", &["udp port 5060"]);
    contract::a_packet_whose_ttl_runs_out_on_its_new_way_is_dropped(&chain, &mut driver);
}

#[test]
fn injected_packets_go_their_way_unseen_by_us() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("inject", &["udp"]);
    for v6 in [false, true] {
        let far = chain.udp(RECEIVER, &SocketAddr::new(address(v6, 1, 2), 7000).to_string());
        let source = SocketAddr::new(address(v6, 0, 1), 9);
        let packet = build::udp(source, far.local_addr().unwrap(), 64, b"made here").unwrap();
        driver.inject(&packet).unwrap();
        driver.flush().unwrap();
        assert_eq!(receive(&far).unwrap(), (b"made here".to_vec(), source));
    }
    let mut batch = Batch::new();
    assert_eq!(driver.receive(&mut batch, Some(Duration::from_millis(50))).unwrap(), 0);
    assert_eq!((driver.counters().injected, driver.counters().send_failed), (2, 0));
}

#[test]
fn packets_for_no_other_machine_are_neither_injected_nor_redirected() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("own", &["udp port 5060"]);
    contract::packets_for_no_other_machine_are_neither_injected_nor_redirected(&chain, &mut driver);
}

#[test]
fn what_a_full_queue_lets_pass_is_counted_to_the_packet() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = small("full");
    let flow = Flow::new(&chain, false, 5060);
    (0..SENT).for_each(|number| flow.send(&longest(number)));
    let Counters { bypassed, lost, received, .. } = driver.counters();
    let waiting = u64::from(SENT) - bypassed;
    assert!(((PLACES / 2)..=(2 * PLACES)).contains(&waiting) && (lost, received) == (0, 0), "{waiting} wait");
    let passed: Vec<u8> = (0..bypassed).map(|_| flow.received().unwrap()[0]).collect();
    assert_eq!(passed, (SENT - u8::try_from(bypassed).unwrap()..SENT).collect::<Vec<u8>>());
    let mut batch = Batch::new();
    assert_eq!(u64::try_from(driver.receive(&mut batch, None).unwrap()).unwrap(), waiting, "one batch has them all");
    // There is room again, at once and for each packet.
    flow.send(&longest(SENT));
    assert_eq!(driver.counters().bypassed, bypassed);
    drop(driver);
    let released: Vec<u8> = (0..=waiting).map(|_| flow.received().unwrap()[0]).collect();
    assert!(released.is_sorted() && released[0] == 0, "what waits in a closed queue that fails open goes on");
}

#[test]
fn what_modules_that_fail_closed_want_is_lost_where_a_queue_is_full_and_counted_to_the_packet() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = small("closed");
    let closed: Filter = "udp port 5060-5061".parse().unwrap();
    driver.filters().change(&[Change::InstallClosed(FilterId(1), &closed)]).unwrap();
    // Both kinds of modules want 5060, and who fails closed decides.
    for (port, receiver) in [5060, 5061].map(|port| (port, Flow::new(&chain, false, port))) {
        let before = driver.counters();
        (0..SENT).for_each(|number| receiver.send(&longest(number)));
        for_each_packet(&mut driver, |driver, id, _| driver.finish(id, Final::Pass));
        let after = driver.counters();
        let (lost, received) = (after.lost - before.lost, after.received - before.received);
        assert!(lost > 0 && lost + received == u64::from(SENT), "{port}: {lost} lost, {received} received");
        assert_eq!(after.bypassed, 0);
        (0..received).for_each(|number| assert_eq!(u64::from(receiver.received().unwrap()[0]), number));
        assert!(receiver.received().is_none());
    }
    // Without the filter that fails closed, packets pass again.
    driver.filters().change(&[Change::Remove(FilterId(1))]).unwrap();
    let flow = Flow::new(&chain, false, 5060);
    (0..SENT).for_each(|number| flow.send(&longest(number)));
    let bypassed = driver.counters().bypassed;
    assert!(bypassed > 0);
    (0..bypassed).for_each(|_| assert!(flow.received().is_some()));
    drop(driver);
    (bypassed..SENT.into()).for_each(|_| assert!(flow.received().is_some()));
}

#[test]
fn packets_of_both_queues_come_and_are_waited_for() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("both", &["udp port 5060"]);
    let closed: Filter = "udp port 5061".parse().unwrap();
    driver.filters().change(&[Change::InstallClosed(FilterId(1), &closed)]).unwrap();
    let flows = [5060, 5061].map(|port| Flow::new(&chain, false, port));
    for round in 0..50 {
        flows.iter().for_each(|flow| flow.send(&[round]));
        let mut ids = Vec::new();
        while ids.len() < 2 {
            for_each_packet(&mut driver, |driver, id, bytes| {
                assert_eq!(bytes.last(), Some(&round));
                driver.finish(id, Final::Pass);
                driver.finish(id, Final::Drop);
                ids.push(id);
            });
        }
        assert_ne!(ids[0], ids[1], "the kernel numbers the packets of each queue, and we tell them apart");
        flows.iter().for_each(|flow| assert_eq!(flow.received(), Some(vec![round])));
    }
    assert_eq!((driver.counters().received, driver.counters().unknown, driver.counters().passed), (100, 100, 100));
}

#[test]
fn a_packet_held_too_long_does_not_stop_the_others() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = Nfqueue::open(&DriverConfig { queue_packets: 32, ..config("held") }).unwrap();
    driver.install(FilterId(1), &"udp port 5060".parse().unwrap()).unwrap();
    let flow = Flow::new(&chain, false, 5060);
    let (mut held, mut passed) = (None, 0);
    while passed < 100 {
        flow.send(b"x");
        for_each_packet(&mut driver, |driver, id, _| match held {
            None => held = Some(id),
            Some(_) => {
                driver.finish(id, Final::Pass);
                passed += 1;
            }
        });
    }
    assert_eq!(driver.counters().overdue, 1);
    driver.finish(held.unwrap(), Final::Drop);
    assert_eq!((driver.counters().unknown, driver.counters().dropped), (1, 0));
    (0..101).for_each(|_| assert!(flow.received().is_some()));
}

/// Large TCP sends over veth travel as one piece; modules must see packets as on the wire.
#[test]
fn large_sends_are_cut_and_their_checksums_complete() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    for v6 in [false, true] {
        let mut driver = open("gso", &["tcp port 8000"]);
        let longest =
            contract::streams_arrive_as_they_were_sent_and_their_checksums_are_complete(&chain, &mut driver, v6);
        assert_eq!(longest, 1500);
    }
}

#[test]
fn rules_come_and_go_with_the_driver() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let empty = rules(&chain);
    let mut driver = open("rules", &["udp port 5060", "ip src 10.0.0.0/24", "icmp", "tcp dst fd00::/16 sport 1-9"]);
    let lines = rules(&chain);
    let ours = |of: &str| lines.lines().filter(|line| leads_to_queue(line) && line.contains(of)).count();
    assert_eq!([ours("5060"), ours("10.0.0.0/24"), ours("icmp"), ours("fd00::/16")], [2, 1, 2, 1], "{lines}");
    driver.remove(FilterId(1)).unwrap();
    assert!(!rules(&chain).contains("10.0.0.0/24"));
    assert!(matches!(driver.remove(FilterId(1)), Err(DriverError::FilterUnknown(FilterId(1)))));
    let table = driver.filters();
    drop(driver);
    assert!(!rules(&chain).lines().any(leads_to_queue));
    assert!(matches!(table.change(&[Change::Remove(FilterId(2))]), Err(DriverError::Closed)));
    drop(table);
    assert_eq!(rules(&chain), empty);
}

/// A driver for about so many of the longest packets at a time, which more than that are sent of.
fn small(instance: &str) -> Nfqueue {
    let config = DriverConfig { queue_packets: u32::try_from(PLACES).unwrap(), ..config(instance) };
    contract::with_filters(Nfqueue::open(&config).unwrap(), &["udp port 5060"])
}

const PLACES: u64 = 16;
const SENT: u8 = 100;

fn longest(number: u8) -> Vec<u8> {
    vec![number; 1472]
}
