// SPDX-License-Identifier: Apache-2.0
//! Flows over the queues of several lanes: order, loss, counts, and ends.

use std::net::SocketAddr;
use std::time::Duration;

use netserv_model::effect::FilterId;
use netserv_plane::{Batch, Change, Counters, Driver, DriverConfig, DriverError, Final, limits};
use netserv_plane_nfqueue::Nfqueue as Lane;

use crate::common::contract::{RECEIVER, ROUTER, SENDER};
use crate::common::load::{LaneThread, Load};
use crate::common::{Chain, receive};
use crate::{LANES, Nfqueue, config, leads_to_queue, open, rules};

#[test]
fn flows_over_all_queues_stay_in_order_and_none_is_lost() {
    let Some((chain, flows)) = chain() else { return };
    let entered = chain.enter(ROUTER);
    let driver = open("rows", &["udp port 5060"]);
    let balanced = rules(&chain).lines().filter(|line| leads_to_queue(line)).count();
    assert_eq!(balanced, 2, "a rule in each version of IP");
    let closed = [Change::InstallClosed(FilterId(7), &"udp port 5061".parse().unwrap())];
    driver.filters().change(&closed).unwrap();
    let lanes: Vec<LaneThread<Lane>> = driver.lanes.into_iter().map(LaneThread::start).collect();
    drop(entered);
    for port in [5060, 5061] {
        let load = Load::start(&chain, &flows.iter().map(|from| (*from, to(port))).collect::<Vec<_>>(), 256);
        std::thread::sleep(Duration::from_millis(500));
        load.stop().check(&format!("{LANES} queues, port {port}"));
    }
    let counters: Vec<Counters> = lanes.into_iter().map(|lane| lane.end().counters()).collect();
    assert!(counters.iter().all(|lane| lane.received > 0), "{counters:?}");
    let all: Counters = counters.into_iter().sum();
    assert_eq!((all.received, all.lost, all.bypassed, all.overdue), (all.passed, 0, 0, 0));
}

/// Nobody receives until all is sent; what is bypassed and lost is counted to the packet, whatever the queue.
#[test]
fn what_full_queues_let_pass_or_drop_is_counted_to_the_packet() {
    const SENT: u64 = 20;
    let Some((chain, flows)) = chain() else { return };
    let entered = chain.enter(ROUTER);
    let small = DriverConfig { queue_packets: 8, ..config("full") };
    let mut driver = crate::common::contract::with_filters(Nfqueue::open(&small).unwrap(), &["udp port 5060"]);
    let closed = [Change::InstallClosed(FilterId(7), &"udp port 5061".parse().unwrap())];
    driver.filters().change(&closed).unwrap();
    for (port, fails_open) in [(5060, true), (5061, false)] {
        let before = driver.counters();
        let receiver = chain.udp(RECEIVER, &to(port).to_string());
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 16 * 1024 * 1024).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        for from in &flows {
            let sender = chain.udp(SENDER, &from.to_string());
            (0..SENT).for_each(|_| assert_eq!(sender.send_to(&[7; 1400], to(port)).unwrap(), 1400));
        }
        let sent = SENT * u64::try_from(flows.len()).unwrap();
        let mut batch = Batch::new();
        while driver.receive(&mut batch, Some(Duration::from_millis(100))).unwrap() > 0 {
            batch.iter().for_each(|packet| driver.finish(packet.id, Final::Pass));
            driver.flush().unwrap();
        }
        let after = driver.counters();
        let (seen, bypassed, lost) =
            (after.received - before.received, after.bypassed - before.bypassed, after.lost - before.lost);
        let arrived = u64::try_from(std::iter::from_fn(|| receive(&receiver)).count()).unwrap();
        assert_eq!((seen + bypassed + lost, arrived), (sent, sent - lost), "{seen} {bypassed} {lost}");
        assert!(if fails_open { bypassed > 0 && lost == 0 } else { lost > 0 && bypassed == 0 }, "{bypassed} {lost}");
    }
    drop(entered);
}

#[test]
fn lanes_that_end_under_load_lose_nothing() {
    for backwards in [false, true] {
        let Some((chain, flows)) = chain() else { return };
        let entered = chain.enter(ROUTER);
        let mut lanes = open("ends", &["udp port 5060"]).lanes;
        if backwards {
            lanes.reverse();
        }
        let mut lanes: Vec<LaneThread<Lane>> = lanes.into_iter().map(LaneThread::start).collect();
        let load = Load::start(&chain, &flows.iter().map(|from| (*from, to(5060))).collect::<Vec<_>>(), 256);
        while let Some(lane) = lanes.pop() {
            std::thread::sleep(Duration::from_millis(80));
            drop(lane.end());
        }
        let account = load.stop();
        drop(entered);
        eprintln!("{account:?}");
        assert_eq!(account.received, account.sent, "backwards: {backwards}");
    }
}

#[test]
fn queues_of_lanes_are_in_a_row_and_lanes_max_at_most() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let numbers = |lanes: &[Lane]| lanes.iter().map(Lane::queue_numbers).collect::<Vec<_>>();
    let at = |queue: u16| DriverConfig { queue, ..config(&format!("row-{queue}")) };
    let one = Lane::open_lanes(&at(102), 1).unwrap();
    assert_eq!(numbers(&one), [[102, 103]]);
    // Two numbers are free, which is too few, and then there is one that is not.
    let four = Lane::open_lanes(&at(100), 4).unwrap();
    assert_eq!(numbers(&four), [[104, 108], [105, 109], [106, 110], [107, 111]]);
    let most = Lane::open_lanes(&at(200), limits::LANES_MAX + 5).unwrap();
    assert_eq!(most.len(), limits::LANES_MAX);
    let refused = Lane::open_lanes(&DriverConfig { queue: u16::MAX - 6, ..config("none") }, 4);
    assert!(matches!(refused, Err(DriverError::QueuesTaken { last: u16::MAX, .. })));
}

/// A chain whose sender has many addresses, by which the kernel chooses among queues; and these.
fn chain() -> Option<(Chain, Vec<SocketAddr>)> {
    let chain = Chain::new(3)?;
    let addresses: Vec<String> = (100..132).map(|number| format!("10.0.0.{number}")).collect();
    for address in &addresses {
        chain.run(SENDER, &["ip", "address", "add", &format!("{address}/24"), "dev", "right"]);
    }
    Some((chain, addresses.iter().map(|address| format!("{address}:20000").parse().unwrap()).collect()))
}

fn to(port: u16) -> SocketAddr {
    SocketAddr::new(crate::common::address(false, 1, 2), port)
}
