// SPDX-License-Identifier: Apache-2.0
//! Devices, queues, routes and neighbours that come, go and change while packets flow.

use std::time::{Duration, Instant};

use netserv_plane::{Batch, Driver, DriverConfig, Egress, Final};
use netserv_skips::not_run;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::common::{Chain, test};
use crate::{Afxdp, Flow, LANES, RECEIVER, ROUTER, SENDER, config, idle, open, open_with, pass};

#[test]
fn devices_that_come_later_are_served() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("later", &["udp port 5060"]);
    let mut named = None;
    for round in 0..3 {
        add_extra(&chain);
        until(&mut driver, |driver| driver.devices().len() == 3);
        let to = "10.9.0.2:5060".parse().unwrap();
        let flow = Flow { receiver: chain.udp(RECEIVER, "10.9.0.2:5060"), to, ..Flow::new(&chain, false, 5061) };
        exchange(&mut driver, &flow, 1);
        idle(&mut driver);
        let handed_over = driver.handed_over();
        exchange(&mut driver, &flow, 20);
        assert_eq!(driver.handed_over(), handed_over, "what goes by the new device is sent by us");
        let sender = chain.udp(SENDER, "10.0.0.1:5060");
        let back =
            Flow { sender: chain.udp(RECEIVER, "10.9.0.2:0"), receiver: sender, to: "10.0.0.1:5060".parse().unwrap() };
        exchange(&mut driver, &back, 20);
        named = driver.devices().into_iter().find(|device| device.name == "extra").or(named);
        chain.run(ROUTER, &["ip", "link", "del", "extra"]);
        until(&mut driver, |driver| driver.devices().len() == 2);
        let (all, accounted_for) = driver.frames();
        assert_eq!(accounted_for, all, "round {round}");
    }
    assert_eq!(named.unwrap().mode, "native");
}

/// Goal: a device in the place of another one is served, also if it has the same index and the driver hears of both changes at once. Method: a device
/// with an index of ours is taken out and made again, and then moved to another namespace and back, while the driver is not asked.
#[test]
fn a_device_with_the_index_of_one_that_is_gone_is_served() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("again", &["udp port 5060"]);
    let add = || {
        add_extra_as(&chain, &["index", "4077"]);
        chain.run(RECEIVER, &["ip", "route", "add", "10.0.0.1/32", "via", "10.9.0.1"]);
        Flow {
            sender: chain.udp(RECEIVER, "10.9.0.2:0"),
            receiver: chain.udp(SENDER, "10.0.0.1:5060"),
            to: "10.0.0.1:5060".parse().unwrap(),
        }
    };
    let flow = add();
    until(&mut driver, |driver| driver.devices().len() == 3);
    exchange(&mut driver, &flow, 5);
    drop(flow);
    chain.run(ROUTER, &["ip", "link", "del", "extra"]);
    let flow = add();
    idle(&mut driver);
    exchange(&mut driver, &flow, 5);

    let names = chain.names();
    chain.run(ROUTER, &["ip", "link", "set", "extra", "netns", &names[SENDER]]);
    chain.run(SENDER, &["ip", "link", "set", "extra", "netns", &names[ROUTER]]);
    chain.run(ROUTER, &["ip", "addr", "add", "10.9.0.1/24", "dev", "extra"]);
    chain.run(ROUTER, &["ip", "link", "set", "extra", "up"]);
    idle(&mut driver);
    exchange(&mut driver, &flow, 5);
    let (all, accounted_for) = driver.frames();
    assert_eq!(accounted_for, all);
}

#[test]
fn named_devices_are_served_when_they_come_and_others_never() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let interfaces = ["left", "extra"].map(str::to_owned).to_vec();
    let mut driver = open_with(&DriverConfig { interfaces, ..config("named") }, &["udp port 5060"]);
    let names = |driver: &Afxdp| driver.devices().into_iter().map(|device| device.name).collect::<Vec<_>>();
    assert_eq!(names(&driver), ["left"]);
    // The way out is by a device that is not served: the kernel's.
    exchange(&mut driver, &Flow::new(&chain, false, 5060), 10);
    assert_eq!(driver.handed_over(), 10);
    add_extra(&chain);
    until(&mut driver, |driver| names(driver) == ["left", "extra"]);
    chain.run(ROUTER, &["ip", "link", "set", "extra", "down"]);
    chain.run(ROUTER, &["ip", "link", "set", "extra", "name", "other"]);
    until(&mut driver, |driver| names(driver) == ["left"]);
}

/// Devices come and go until each frame of memory would have been lost many times.
#[test]
fn no_frame_is_lost_with_devices_and_links() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let small = DriverConfig { receive_buffer_bytes: LANES * 4 * 1024 * 1024, ..config("frames") };
    let mut driver = open_with(&small, &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    for round in 0..8 {
        if round % 2 == 0 {
            chain.run(ROUTER, &["ip", "link", "add", "spare", "type", "veth", "peer", "name", "spare2"]);
            until(&mut driver, |driver| driver.devices().len() == 4);
            (0..50).for_each(|_| flow.send(b"owed"));
            driver.receive(&mut Batch::new(), Some(Duration::from_secs(1))).unwrap();
            chain.run(ROUTER, &["ip", "link", "del", "spare"]);
            until(&mut driver, |driver| driver.devices().len() == 2);
        } else {
            chain.run(ROUTER, &["ip", "link", "set", "right", "down"]);
            (0..50).for_each(|_| flow.send(b"lost"));
            pass(&mut driver, 50);
            chain.run(ROUTER, &["ip", "link", "set", "right", "up"]);
        }
        let (all, accounted_for) = driver.frames();
        assert_eq!(accounted_for, all, "round {round}");
    }
    // The neighbour is known again, and what was on its way has arrived.
    until(&mut driver, |driver| {
        flow.send(b"marker");
        pass(driver, 1);
        (0..500).map_while(|_| flow.received()).any(|payload| payload == b"marker")
    });
    let (all, _) = driver.frames();
    for _ in 0..3 * all / 50 {
        (0..50).for_each(|_| flow.send(b"flows"));
        assert_eq!(pass(&mut driver, 50), 50);
        (0..50).for_each(|_| assert_eq!(flow.received().as_deref(), Some(b"flows".as_slice())));
    }
}

#[test]
fn a_changed_mtu_counts_at_once() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(SENDER, &["sysctl", "-qw", "net.ipv4.ip_no_pmtu_disc=1"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("mtus", &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    exchange(&mut driver, &flow, 1);
    let mut expected = driver.handed_over();
    for mtu in ["1300", "1500", "1200", "1500"] {
        chain.run(ROUTER, &["ip", "link", "set", "right", "mtu", mtu]);
        idle(&mut driver);
        flow.send(&[7; 1400]);
        assert_eq!(pass(&mut driver, 1), 1);
        assert_eq!(flow.received().unwrap(), [7; 1400]);
        expected += u64::from(mtu != "1500");
        assert_eq!(driver.handed_over(), expected, "{mtu}");
    }
}

#[test]
fn a_neighbour_that_vanishes_is_looked_for_again() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("neighbours", &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    exchange(&mut driver, &flow, 10);
    for station in ["02:00:00:00:00:07", "02:00:00:00:00:08"] {
        chain.run(RECEIVER, &["ip", "link", "set", "left", "address", station]);
        chain.run(ROUTER, &["ip", "neigh", "flush", "dev", "right"]);
        idle(&mut driver);
        exchange(&mut driver, &flow, 1);
        idle(&mut driver);
        let handed_over = driver.handed_over();
        exchange(&mut driver, &flow, 10);
        assert_eq!(driver.handed_over(), handed_over);
    }
}

#[test]
fn a_changed_route_counts_at_once() {
    let Some(chain) = Chain::new(3) else { return };
    add_extra(&chain);
    chain.run(RECEIVER, &["ip", "address", "add", "10.77.0.1/32", "dev", "lo"]);
    chain.run(ROUTER, &["ip", "route", "add", "10.77.0.1/32", "via", "10.0.1.2"]);
    chain.run(SENDER, &["ip", "route", "add", "10.77.0.1/32", "via", "10.0.0.2"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("routes", &["udp port 5060"]);
    let to = "10.77.0.1:5060".parse().unwrap();
    let flow = Flow { receiver: chain.udp(RECEIVER, "10.77.0.1:5060"), to, ..Flow::new(&chain, false, 5061) };
    for (via, device) in [("10.9.0.2", "extra"), ("10.0.1.2", "right"), ("10.9.0.2", "extra")] {
        chain.run(ROUTER, &["ip", "route", "replace", "10.77.0.1/32", "via", via]);
        idle(&mut driver);
        exchange(&mut driver, &flow, 1);
        idle(&mut driver);
        flow.send(b"which way");
        let mut batch = Batch::new();
        assert_eq!(driver.receive(&mut batch, Some(Duration::from_secs(2))).unwrap(), 1);
        let id = batch.get(0).unwrap().id;
        let way = driver.explain(id, Final::Pass);
        assert!(matches!(&way, Egress::Out { name, .. } if name == device), "{way:?}");
        driver.finish(id, Final::Pass);
        driver.flush().unwrap();
        assert_eq!(flow.received().unwrap(), b"which way");
    }
    chain.run(ROUTER, &["ip", "route", "replace", "unreachable", "10.77.0.1/32"]);
    idle(&mut driver);
    let handed_over = driver.handed_over();
    flow.send(b"nowhere");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(driver.handed_over(), handed_over + 1, "the kernel tells the sender");
}

/// Goal: while a routing daemon brings a full table, a lane that has nothing to do takes a turn for each route at most, not a whole core. Method: turns
/// as the packet loop's, which waits for the driver's descriptor, and then asks for what there is.
#[test]
fn routes_that_keep_changing_leave_an_idle_lane_asleep() {
    const ROUTES: usize = 10_000;
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("churn", &["udp port 5060"]);
    idle(&mut driver);
    let last = format!("10.{}.{}.0/24", 90 + (ROUTES - 1) / 250, (ROUTES - 1) % 250);
    let routes = format!(
        "{{ for (n = 0; n < {ROUTES}; n++) printf \"route add 10.%d.%d.0/24 via 10.0.1.2\\n\", 90 + n / 250, n % 250 }}"
    );
    chain.run(ROUTER, &["sh", "-c", &format!("(sleep 0.3; awk 'BEGIN {routes}' | ip -batch -) > /dev/null 2>&1 &")]);
    let (begun, mut turns, mut batch) = (Instant::now(), 0, Batch::new());
    while chain.run(ROUTER, &["ip", "route", "show", "exact", &last]).is_empty() {
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let events = driver.lanes[0].poll_fd().unwrap();
            turns += poll(&mut [PollFd::from_borrowed_fd(events, PollFlags::IN)], Some(&timeout)).unwrap();
            driver.lanes[0].receive(&mut batch, Some(Duration::ZERO)).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    eprintln!("{turns} turns for {ROUTES} routes");
    assert!((10..ROUTES + ROUTES / 10).contains(&turns), "{turns} turns");
}

#[test]
fn queues_that_come_later_are_served() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    // One queue at first, as a veth has; with that the other lanes have no socket.
    chain.try_run(ROUTER, &["ethtool", "-L", "left", "rx", "1", "tx", "1"]);
    chain.try_run(SENDER, &["ethtool", "-L", "right", "rx", "1", "tx", "1"]);
    let mut driver = open("growing", &["udp port 5060"]);
    let grown = chain.try_run(ROUTER, &["ethtool", "-L", "left", "rx", "2", "tx", "2"])
        && chain.try_run(SENDER, &["ethtool", "-L", "right", "rx", "2", "tx", "2"]);
    if !grown {
        return not_run(&test(), "no `ethtool`, or no second queue for veth here");
    }
    let flow = Flow::new(&chain, false, 5060);
    let round = |driver: &mut Afxdp| {
        let senders: Vec<_> = (0..16).map(|_| chain.udp(SENDER, "10.0.0.1:0")).collect();
        senders.iter().for_each(|sender| assert_eq!(sender.send_to(b"x", flow.to).unwrap(), 1));
        let passed = pass(driver, 16);
        (0..16).for_each(|_| assert_eq!(flow.received().unwrap(), b"x"));
        passed
    };
    // Packets of the new queue pass unseen until the driver has found out.
    assert!(round(&mut driver) < 16);
    until(&mut driver, |driver| driver.devices().iter().any(|one| one.name == "left" && one.queues == 2));
    assert_eq!(round(&mut driver), 16);
}

/// All queues of a device are read in turn by one thread, and packets leave by the queue that answers to theirs.
#[test]
fn four_queues_are_served_by_one_driver() {
    let Some(chain) = Chain::new(3) else { return };
    let names = chain.names();
    for (node, device, other, (near, far)) in [
        (SENDER, "wide", ROUTER, ("10.7.0.1/24", "10.7.0.2/24")),
        (ROUTER, "out", RECEIVER, ("10.8.0.1/24", "10.8.0.2/24")),
    ] {
        let add = ["ip", "link", "add", device, "numrxqueues", "4", "numtxqueues", "4", "type", "veth", "peer", "name"];
        let peer = [device, "netns", &names[other], "numrxqueues", "4", "numtxqueues", "4"];
        chain.run(node, &[&add[..], &peer].concat());
        for (node, address) in [(node, near), (other, far)] {
            chain.run(node, &["ip", "address", "add", address, "dev", device]);
            chain.run(node, &["ip", "link", "set", device, "up"]);
            chain.run(node, &["ethtool", "-L", device, "rx", "4", "tx", "4"]);
        }
    }
    chain.run(SENDER, &["ip", "route", "add", "10.8.0.0/24", "via", "10.7.0.2"]);
    chain.run(RECEIVER, &["ip", "route", "add", "10.7.0.0/24", "via", "10.8.0.1"]);
    chain.run(ROUTER, &["sysctl", "-qw", "net.ipv4.conf.wide.forwarding=1", "net.ipv4.conf.out.forwarding=1"]);
    chain.run(RECEIVER, &["ethtool", "-K", "out", "gro", "on"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("wide", &["udp port 5060"]);
    assert!(
        driver.devices().iter().any(|device| device.name == "wide" && device.queues == 4),
        "{:?}",
        driver.devices()
    );
    let receiver = chain.udp(RECEIVER, "10.8.0.2:5060");
    let senders: Vec<_> = (0..64).map(|_| chain.udp(SENDER, "10.7.0.1:0")).collect();
    let mut packets = 0;
    for round in 0..20_u8 {
        for sender in &senders {
            sender.send_to(&[round], receiver.local_addr().unwrap()).unwrap();
        }
        assert_eq!(pass(&mut driver, senders.len()), senders.len());
        packets += senders.len();
        for _ in &senders {
            assert_eq!(crate::common::receive(&receiver).unwrap().0, [round]);
        }
    }
    for (node, device) in [(ROUTER, "wide"), (RECEIVER, "out")] {
        let text = chain.run(node, &["ethtool", "-S", device]);
        let seen = |queue: usize| -> usize {
            let name = format!("rx_queue_{queue}_xdp_packets:");
            let line = text.lines().find_map(|line| line.trim().strip_prefix(&name));
            line.unwrap().trim().parse().unwrap()
        };
        let seen: Vec<usize> = (0..4).map(seen).collect();
        assert!(seen.iter().all(|count| *count > 20) || node == RECEIVER, "{seen:?}");
        eprintln!("{packets} packets by the queues of {device}: {seen:?}");
    }
    assert_eq!(driver.counters().lost, 0);
}

/// Adds a second link between router and receiver, 10.9.0.1 and 10.9.0.2.
fn add_extra(chain: &Chain) {
    add_extra_as(chain, &[]);
}

fn add_extra_as(chain: &Chain, more: &[&str]) {
    let names = chain.names();
    let kind = ["type", "veth", "peer", "name", "extra", "netns", &names[RECEIVER]];
    chain.run(ROUTER, &[&["ip", "link", "add", "extra"], more, &kind].concat());
    for (node, address) in [(ROUTER, "10.9.0.1/24"), (RECEIVER, "10.9.0.2/24")] {
        chain.run(node, &["ip", "address", "add", address, "dev", "extra"]);
        chain.run(node, &["ip", "link", "set", "extra", "up"]);
    }
    // To the other end there is a way by the first link only.
    chain.try_run(SENDER, &["ip", "route", "replace", "10.9.0.0/24", "via", "10.0.0.2"]);
}

/// Lets packets flow, each by the driver.
fn exchange(driver: &mut Afxdp, flow: &Flow, count: u8) {
    for number in 0..count {
        flow.send(&[number]);
        assert_eq!(pass(driver, 1), 1);
        assert_eq!(flow.received().unwrap(), [number]);
    }
}

fn until(driver: &mut Afxdp, mut is_so: impl FnMut(&mut Afxdp) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so(driver) {
        assert!(Instant::now() < end, "{:?} {:?}", driver.devices(), driver.counters());
        driver.receive(&mut Batch::new(), Some(Duration::from_millis(5))).unwrap();
    }
}
