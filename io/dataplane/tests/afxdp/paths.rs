// SPDX-License-Identifier: Apache-2.0
//! Where packets go: by us, by the kernel, back, out of nothing.

use std::net::SocketAddr;
use std::time::Duration;

use netserv_model::effect::FilterId;
use netserv_plane::{
    Batch, Change, Driver, DriverConfig, DriverError, Egress, Final, InterfaceId, PacketId, XdpForward,
};
use netserv_plane_afxdp::AttachMode;
use netserv_skips::not_run;
use netserv_wire::ip::build;

use crate::common::{Chain, address, contract, receive, test};
use crate::{Flow, LANES, RECEIVER, ROUTER, SENDER, config, for_each_packet, idle, open, open_with, pass, snmp};

#[test]
fn a_packet_turned_around_reaches_its_sender() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(ROUTER, &["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1", "net.ipv4.conf.left.rp_filter=1"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("swap", &["udp port 5060"]);
    // The first goes by the kernel, which asks for the neighbour; the second by us.
    contract::a_packet_turned_around_reaches_its_sender(&chain, &mut driver, 2);
    assert_eq!(driver.handed_over(), 0);
}

#[test]
fn a_packet_longer_than_its_new_way_arrives() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("long", &["udp port 5060"]);
    contract::a_packet_longer_than_its_new_way_arrives(&chain, &mut driver, 2);
}

/// What is told of a packet beforehand is what becomes of it.
#[test]
fn the_way_of_a_packet_is_told() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("explain", &["udp port 5060"]);
    for v6 in [false, true] {
        let flow = Flow::new(&chain, v6, 5060);
        for number in 0..2 {
            let (ttl, handed_over) = (64 - number, driver.handed_over());
            let packet = build::udp(flow.sender.local_addr().unwrap(), flow.to, ttl, b"x").unwrap();
            let short_lived = build::udp(flow.to, flow.sender.local_addr().unwrap(), 1, b"x").unwrap();
            flow.send(b"x");
            for_each_packet(&mut driver, |driver, id, _| {
                let refused = |egress| matches!(egress, Egress::Refused { .. });
                assert!(refused(driver.explain(id, Final::Drop)));
                assert!(refused(driver.explain(id, Final::Replace(b"no packet"))));
                assert!(refused(driver.explain(id, Final::Replace(&short_lived))));
                assert!(refused(driver.explain(PacketId(id.0 + (1 << 32)), Final::Pass)));
                let told = driver.explain(id, Final::Pass);
                assert_eq!(driver.explain(id, Final::Replace(&packet)), told);
                match told {
                    Egress::Kernel { why } => assert!(number == 0 && why.contains("not known yet"), "{why}"),
                    Egress::Out { name, next_hop, vlan, mtu, .. } => {
                        let expected = ("right", address(v6, 1, 2), None, 1500);
                        assert_eq!((name.as_str(), next_hop, vlan, mtu), expected);
                    }
                    Egress::Refused { why } => panic!("{why}"),
                }
                driver.finish(id, Final::Pass);
            });
            assert_eq!(flow.received().unwrap(), b"x");
            assert_eq!(driver.handed_over() - handed_over, u64::from(number == 0));
            // Notices of the kernel are read at most once in a millisecond.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!((driver.counters().unknown, driver.counters().bad_verdict), (0, 0));
}

#[test]
fn a_packet_whose_ttl_runs_out_on_its_new_way_is_dropped() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("ttl", &["udp port 5060"]);
    contract::a_packet_whose_ttl_runs_out_on_its_new_way_is_dropped(&chain, &mut driver);
}

#[test]
fn a_packet_whose_ttl_runs_out_here_is_answered_by_the_kernel() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("exceeded", &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    flow.sender.set_ttl(1).unwrap();
    flow.send(b"x");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(driver.handed_over(), 1);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(snmp(&chain, SENDER, "Icmp", "InTimeExcds"), 1);
    flow.sender.set_ttl(2).unwrap();
    flow.send(b"y");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(flow.received().unwrap(), b"y", "it came with a TTL of 1");
}

#[test]
fn packets_are_counted_by_destination() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    for xdp_forward in [XdpForward::Auto, XdpForward::Off] {
        let config = DriverConfig { xdp_forward, ..config("counted") };
        let mut driver = open_with(&config, &[]);
        contract::packets_are_counted_by_destination(&chain, &mut driver);
    }
}

#[test]
fn injected_packets_go_their_way_unseen_by_us() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("inject", &["udp"]);
    for v6 in [false, true] {
        let far = chain.udp(RECEIVER, &SocketAddr::new(address(v6, 1, 2), 7000).to_string());
        let source = SocketAddr::new(address(v6, 0, 1), 9);
        for _ in 0..3 {
            let packet = build::udp(source, far.local_addr().unwrap(), 64, b"made here").unwrap();
            driver.inject(&packet).unwrap();
            driver.flush().unwrap();
            assert_eq!(receive(&far).unwrap(), (b"made here".to_vec(), source));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    // The link of a cloud's metadata service is an Ethernet like any other.
    chain.run(ROUTER, &["ip", "address", "add", "169.254.0.1/16", "dev", "right"]);
    chain.run(RECEIVER, &["ip", "address", "add", "169.254.169.254/16", "dev", "left"]);
    chain.run(ROUTER, &["ping", "-qc1", "169.254.169.254"]);
    assert_eq!(driver.receive(&mut Batch::new(), Some(Duration::from_millis(50))).unwrap(), 0);
    let near = build::udp("10.0.0.1:9".parse().unwrap(), "169.254.169.254:80".parse().unwrap(), 64, b"x").unwrap();
    assert!(matches!(driver.inject(&near), Err(DriverError::NoMachine(_))));
    let mut batch = Batch::new();
    assert_eq!(driver.receive(&mut batch, Some(Duration::from_millis(50))).unwrap(), 0);
    assert_eq!((driver.counters().injected, driver.counters().send_failed), (6, 0));
}

#[test]
fn packets_for_no_other_machine_are_neither_injected_nor_redirected() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("nobody", &["udp port 5060"]);
    contract::packets_for_no_other_machine_are_neither_injected_nor_redirected(&chain, &mut driver);
}

#[test]
fn what_is_for_the_node_itself_stays_with_the_kernel() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("own", &["ip"]);
    for v6 in [false, true] {
        let own = chain.udp(ROUTER, &SocketAddr::new(address(v6, 1, 1), 7000).to_string());
        let signaling = chain.udp(RECEIVER, &SocketAddr::new(address(v6, 1, 2), 270).to_string());
        let sender = chain.udp(SENDER, &SocketAddr::new(address(v6, 0, 1), 0).to_string());
        for socket in [&own, &signaling] {
            sender.send_to(b"x", socket.local_addr().unwrap()).unwrap();
            assert_eq!(receive(socket).unwrap().0, b"x");
        }
        // An address that comes later is known soon.
        if !v6 {
            chain.run(ROUTER, &["ip", "address", "add", "10.0.1.77/32", "dev", "right"]);
            assert_eq!(pass(&mut driver, 1), 0);
            let later = chain.udp(ROUTER, "10.0.1.77:7000");
            sender.send_to(b"x", later.local_addr().unwrap()).unwrap();
            assert_eq!(receive(&later).unwrap().0, b"x");
        }
    }
    assert_eq!(driver.counters().received, 0);
}

#[test]
fn a_missing_neighbour_is_found_by_the_kernel_and_then_we_forward() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("neighbour", &["udp port 5060"]);
    for v6 in [false, true] {
        let flow = Flow::new(&chain, v6, 5060);
        chain.run(ROUTER, &["ip", "neighbour", "flush", "all"]);
        let before = driver.handed_over();
        (0..3_u8).for_each(|number| flow.send(&[number]));
        assert_eq!(pass(&mut driver, 3), 3);
        (0..3_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
        let found = driver.handed_over();
        assert_eq!(found - before, 3, "all three waited with the kernel");
        // Notices of the kernel are read at most once in a millisecond.
        std::thread::sleep(Duration::from_millis(5));
        (0..3_u8).for_each(|number| flow.send(&[number]));
        assert_eq!(pass(&mut driver, 3), 3);
        (0..3_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
        assert_eq!(driver.handed_over(), found, "v6: {v6}");
    }
}

#[test]
fn a_packet_too_long_for_its_way_is_cut_by_the_kernel() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(ROUTER, &["ip", "link", "set", "right", "mtu", "1300"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("mtu", &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    // Linux sets "do not fragment" on its own packets unless told otherwise.
    chain.run(SENDER, &["sysctl", "-qw", "net.ipv4.ip_no_pmtu_disc=1"]);
    let flow = Flow { sender: chain.udp(SENDER, "10.0.0.1:0"), ..flow };
    flow.send(&[7; 1400]);
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(flow.received().unwrap(), [7; 1400]);
    assert_eq!(driver.handed_over(), 1);
}

#[test]
fn fragments_match_filters_without_ports_and_arrive_in_any_case() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    for (filter, seen) in [("udp port 5060", 1), ("udp", 3)] {
        let mut driver = open("fragments", &[filter]);
        for v6 in [false, true] {
            let flow = Flow::new(&chain, v6, 5060);
            let payload: Vec<u8> = (0..4000_u32).map(|number| (number % 251).to_le_bytes()[0]).collect();
            flow.send(&payload);
            assert_eq!(pass(&mut driver, seen), seen, "{filter}, v6: {v6}");
            assert_eq!(flow.received().unwrap(), payload);
        }
    }
}

#[test]
fn tagged_frames_come_from_and_go_to_vlans() {
    let Some(chain) = Chain::new(3) else { return };
    if !chain.try_run(ROUTER, &["ip", "link", "add", "link", "left", "name", "try", "type", "vlan", "id", "9"]) {
        return not_run(&test(), "this kernel has no VLANs");
    }
    chain.run(ROUTER, &["ip", "link", "del", "try"]);
    // Without `reorder_hdr` the tag stands in the frame, as it does on a wire.
    for (node, device, net) in [(SENDER, "right", 7), (ROUTER, "left", 7), (ROUTER, "right", 8), (RECEIVER, "left", 8)]
    {
        let end = if (node, device) == (SENDER, "right") || (node, device) == (ROUTER, "right") { 1 } else { 2 };
        let (vlan, id) = (format!("vlan{net}"), net.to_string());
        let add = ["ip", "link", "add", "link", device, "name", &vlan, "type", "vlan", "id", &id, "reorder_hdr", "off"];
        chain.run(node, &add);
        chain.run(node, &["ip", "address", "add", &format!("10.0.{net}.{end}/24"), "dev", &vlan]);
        chain.run(node, &["ip", "link", "set", &vlan, "up"]);
    }
    chain.run(SENDER, &["ip", "route", "add", "10.0.8.0/24", "via", "10.0.7.2"]);
    chain.run(RECEIVER, &["ip", "route", "add", "10.0.7.0/24", "via", "10.0.8.1"]);
    chain.run(ROUTER, &["sysctl", "-qw", "net.ipv4.conf.vlan7.forwarding=1", "net.ipv4.conf.vlan8.forwarding=1"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("vlan", &["udp port 5060"]);
    let flow = Flow {
        sender: chain.udp(SENDER, "10.0.7.1:0"),
        receiver: chain.udp(RECEIVER, "10.0.8.2:5060"),
        to: "10.0.8.2:5060".parse().unwrap(),
    };
    let index = chain.run(ROUTER, &["ip", "-o", "link", "show", "vlan7"]);
    let index: u32 = index.split(':').next().unwrap().parse().unwrap();
    let mut batch = Batch::new();
    for number in 0..4_u8 {
        flow.send(&[number]);
        assert_eq!(driver.receive(&mut batch, Some(Duration::from_secs(2))).unwrap(), 1);
        let packet = batch.get(0).unwrap();
        assert_eq!(packet.interface, InterfaceId(index));
        driver.finish(packet.id, Final::Pass);
        driver.flush().unwrap();
        assert_eq!(flow.received().unwrap(), [number]);
    }
    assert!(driver.handed_over() < 4, "only until the neighbour was found");
}

#[test]
fn sources_that_cannot_be_true_are_refused_where_the_link_says_so() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(ROUTER, &["sysctl", "-qw", "net.ipv4.conf.left.rp_filter=1"]);
    chain.run(SENDER, &["ip", "address", "add", "10.0.1.200/32", "dev", "lo"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("spoofed", &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    let spoofing = chain.udp(SENDER, "10.0.1.200:0");
    for _ in 0..2 {
        flow.send(b"true");
        assert_eq!(pass(&mut driver, 1), 1);
        assert_eq!(flow.received().unwrap(), b"true");
        if driver.counters().send_failed == 0 {
            spoofing.send_to(b"false", flow.to).unwrap();
            assert_eq!(pass(&mut driver, 1), 1);
        }
    }
    assert_eq!(driver.counters().send_failed, 1);
}

/// Rules may come at any time, and look at more than a question for a route can tell: then the kernel decides.
#[test]
fn rules_of_routing_by_source_or_by_port_are_kept() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(SENDER, &["ip", "address", "add", "10.0.0.9/24", "dev", "right"]);
    for switch in ["all", "left"] {
        chain.run(ROUTER, &["sysctl", "-qw", &format!("net.ipv4.conf.{switch}.rp_filter=0")]);
    }
    chain.run(ROUTER, &["ip", "route", "add", "blackhole", "default", "table", "100"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("rules", &["udp"]);
    let (flow, other) = (Flow::new(&chain, false, 5060), Flow::new(&chain, false, 5061));
    let refused = chain.udp(SENDER, "10.0.0.9:0");
    let receiver = chain.udp(RECEIVER, "10.0.1.2:5062");
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut arrives = |socket: &std::net::UdpSocket| {
        socket.send_to(b"x", "10.0.1.2:5062").unwrap();
        assert_eq!(pass(&mut driver, 1), 1);
        receive(&receiver).is_some()
    };
    let allowed = chain.udp(SENDER, "10.0.0.1:0");
    assert!(arrives(&allowed) && arrives(&refused));
    chain.run(ROUTER, &["ip", "rule", "add", "from", "10.0.0.9", "lookup", "100"]);
    for _ in 0..2 {
        assert!(arrives(&allowed));
        assert!(!arrives(&refused), "the rule by source is not kept");
    }
    chain.run(ROUTER, &["ip", "rule", "add", "ipproto", "udp", "dport", "5061", "lookup", "100"]);
    flow.send(b"good");
    other.send(b"bad");
    assert_eq!(pass(&mut driver, 2), 2);
    assert_eq!(flow.received().unwrap(), b"good");
    assert!(other.received().is_none(), "the rule by port is not kept");
}

#[test]
fn long_links_get_the_generic_program() {
    let Some(chain) = Chain::new(3) else { return };
    for (node, device) in [(SENDER, "right"), (ROUTER, "left"), (ROUTER, "right"), (RECEIVER, "left")] {
        chain.run(node, &["ip", "link", "set", device, "mtu", "9000"]);
    }
    let _entered = chain.enter(ROUTER);
    let mut driver = open("generic", &["udp port 5060"]);
    assert!(driver.modes().all(|(_, mode)| mode == AttachMode::Generic));
    let flow = Flow::new(&chain, false, 5060);
    (0..20_u8).for_each(|number| flow.send(&[number]));
    assert_eq!(pass(&mut driver, 20), 20);
    (0..20_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
    flow.send(&[1; 8000]);
    assert_eq!(flow.received().unwrap(), [1; 8000], "too long for us, so it passes unseen");
    assert_eq!((driver.counters().received, driver.counters().unseen), (20, 1));
}

/// Goal (case 22): what is too long for the driver is dropped, and counted as lost, if a module that fails closed wants it, also beside one
/// that fails open; else it passes unseen.
#[test]
fn what_is_too_long_is_dropped_for_a_module_that_fails_closed() {
    let Some(chain) = Chain::new(3) else { return };
    for (node, device) in [(SENDER, "right"), (ROUTER, "left"), (ROUTER, "right"), (RECEIVER, "left")] {
        chain.run(node, &["ip", "link", "set", device, "mtu", "9000"]);
    }
    let _entered = chain.enter(ROUTER);
    let mut driver = open("closed", &["udp port 5060", "udp port 5061"]);
    let closed = "udp port 5060".parse().unwrap();
    driver.filters().change(&[Change::InstallClosed(FilterId(7), &closed)]).unwrap();
    for v6 in [false, true] {
        let (flow, open) = (Flow::new(&chain, v6, 5060), Flow::new(&chain, v6, 5061));
        flow.send(b"short");
        assert_eq!(pass(&mut driver, 1), 1);
        assert_eq!(flow.received().unwrap(), b"short");
        let before = driver.counters();
        flow.send(&[1; 2205]);
        flow.send(&[1; 7581]);
        open.send(&[2; 2205]);
        assert_eq!(open.received().unwrap(), [2; 2205]);
        let counters = driver.counters();
        assert_eq!((counters.lost - before.lost, counters.unseen - before.unseen), (2, 1), "v6: {v6}");
        flow.receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(flow.received().is_none());
    }
    driver.filters().change(&[Change::Remove(FilterId(7))]).unwrap();
    let flow = Flow::new(&chain, false, 5060);
    flow.send(&[3; 2205]);
    assert_eq!(flow.received().unwrap(), [3; 2205]);
}

#[test]
fn every_queue_of_a_device_is_served() {
    let Some(chain) = Chain::new(3) else { return };
    let both = chain.try_run(SENDER, &["ethtool", "-L", "right", "rx", "2", "tx", "2"])
        && chain.try_run(ROUTER, &["ethtool", "-L", "left", "rx", "2", "tx", "2"]);
    if !both {
        return not_run(&test(), "no `ethtool`, or no second queue for veth here");
    }
    let _entered = chain.enter(ROUTER);
    let mut driver = open("queues", &["udp port 5060"]);
    assert_eq!(driver.sockets(), 2 + LANES, "two of one device, and of the other as many as it has");
    let flow = Flow::new(&chain, false, 5060);
    for round in 0..4_u8 {
        let senders: Vec<_> = (0..16).map(|_| chain.udp(SENDER, "10.0.0.1:0")).collect();
        senders.iter().for_each(|sender| assert_eq!(sender.send_to(&[round], flow.to).unwrap(), 1));
        assert_eq!(pass(&mut driver, 16), 16);
        (0..16).for_each(|_| assert_eq!(flow.received().unwrap(), [round]));
    }
}

/// A bridge has no XDP of its own, and its packets no queue: the generic program serves it, in both directions.
#[test]
fn a_bridge_is_served_by_the_generic_program() {
    let Some(chain) = Chain::new(3) else { return };
    if !chain.try_run(ROUTER, &["ip", "link", "add", "bridge", "type", "bridge"]) {
        return not_run(&test(), "this kernel has no bridges");
    }
    chain.run(ROUTER, &["ip", "address", "flush", "dev", "left"]);
    chain.run(ROUTER, &["ip", "link", "set", "left", "master", "bridge"]);
    chain.run(ROUTER, &["ip", "address", "add", "10.0.0.2/24", "dev", "bridge"]);
    chain.run(ROUTER, &["ip", "link", "set", "bridge", "up"]);
    chain.run(ROUTER, &["sysctl", "-qw", "net.ipv4.conf.bridge.forwarding=1"]);
    chain.try_run(SENDER, &["ip", "neigh", "flush", "dev", "right"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("bridge", &["udp port 5060"]);
    let modes: Vec<_> = driver.devices().into_iter().map(|device| (device.name, device.mode)).collect();
    let expected = [("right", "native"), ("bridge", "generic")].map(|(name, mode)| (name.to_owned(), mode.to_owned()));
    assert!(modes.len() == 2 && expected.iter().all(|one| modes.contains(one)), "{modes:?}");
    let there = Flow::new(&chain, false, 5060);
    let back = Flow {
        sender: chain.udp(RECEIVER, "10.0.1.2:0"),
        receiver: chain.udp(SENDER, "10.0.0.1:5060"),
        to: "10.0.0.1:5060".parse().unwrap(),
    };
    let mut ways = Vec::new();
    for flow in [there, back] {
        for number in 0..10_u8 {
            flow.send(&[number]);
            for_each_packet(&mut driver, |driver, id, _| {
                ways.push(driver.explain(id, Final::Pass));
                driver.finish(id, Final::Pass);
            });
            assert_eq!(flow.received().unwrap(), [number]);
            idle(&mut driver);
        }
    }
    assert!(driver.handed_over() <= 4, "only until neighbours were found: {ways:?}");
}

#[test]
fn streams_arrive_as_they_were_sent_and_their_checksums_are_complete() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    for v6 in [false, true] {
        let mut driver = open("tcp", &["tcp port 8000"]);
        contract::streams_arrive_as_they_were_sent_and_their_checksums_are_complete(&chain, &mut driver, v6);
    }
}
