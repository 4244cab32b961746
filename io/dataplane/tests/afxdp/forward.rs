// SPDX-License-Identifier: Apache-2.0
//! Forwarding by the XDP program: what no filter wants, if that is simple; the kernel has the rest, and nothing is
//! lost.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use netserv_model::effect::FilterId;
use netserv_patience::grown;
use netserv_plane::limits::HEARTBEAT_MAX;
use netserv_plane::{Driver, DriverConfig, XdpForward};
use netserv_plane_afxdp::limits;
use netserv_skips::not_run;
use netserv_wire::ip::{IpView, build, checksum};

use crate::classify::device;
use crate::common::{Chain, test};
use crate::{Afxdp, Flow, RECEIVER, ROUTER, SENDER, Tap, config, idle, open_with, pass, snmp, snmp6};

#[test]
fn what_no_filter_wants_is_forwarded_one_hop_on() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("forwards"), &["udp port 7000"]);
    for v6 in [false, true] {
        let (flow, wanted) = (Flow::new(&chain, v6, 5060), Flow::new(&chain, v6, 7000));
        warm_up(&mut driver, &flow);
        let before = driver.counters();
        let tap = Tap::new(&chain, RECEIVER);
        (0..100_u8).for_each(|number| flow.send(&[number]));
        (0..100_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
        let (ttl, good) = tap.find(|view| {
            let udp = view.udp().filter(|udp| udp.destination_port == 5060)?;
            assert_eq!(checksum::verify_transport(view), checksum::TransportChecksum::Good);
            Some((view.ttl(), checksum::verify_header(view) && udp.payload == [0]))
        });
        assert_eq!((ttl, good), (63, true), "v6: {v6}");
        wanted.send(b"wanted");
        assert_eq!(pass(&mut driver, 1), 1);
        assert_eq!(wanted.received().unwrap(), b"wanted");
        let after = driver.counters();
        assert_eq!((after.forwarded - before.forwarded, after.received - before.received), (100, 1));
    }
}

#[test]
fn what_is_more_than_forwarding_is_left_to_the_kernel() {
    let Some(chain) = chain() else { return };
    chain.run(ROUTER, &["ip", "link", "set", "right", "mtu", "1300"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("leaves"), &[]);
    for v6 in [false, true] {
        let flow = Flow::new(&chain, v6, 5060);
        warm_up(&mut driver, &flow);
        let forwarded = driver.counters().forwarded;
        let exceeded =
            || if v6 { snmp6(&chain, SENDER, "Icmp6InTimeExcds") } else { snmp(&chain, SENDER, "Icmp", "InTimeExcds") };
        let too_big = || {
            if v6 { snmp6(&chain, SENDER, "Icmp6InPktTooBigs") } else { snmp(&chain, SENDER, "Icmp", "InDestUnreachs") }
        };
        let (exceeded_before, too_big_before) = (exceeded(), too_big());
        flow.send(&[7; 1400]);
        eventually(|| too_big() > too_big_before, "the kernel says how long a packet may be");
        set_hop_limit(&flow, v6, 1);
        flow.send(b"x");
        eventually(|| exceeded() > exceeded_before, "the kernel answers a packet whose TTL runs out");
        assert_eq!(driver.counters().forwarded, forwarded);
        set_hop_limit(&flow, v6, 2);
        chain.run(ROUTER, &["ip", "neigh", "flush", "dev", "right"]);
        flow.send(b"asked for");
        assert_eq!(flow.received().unwrap(), b"asked for", "the kernel asks for the neighbour");
        assert_eq!(driver.counters().forwarded, forwarded);
        flow.send(b"known");
        assert_eq!(flow.received().unwrap(), b"known");
        assert_eq!(driver.counters().forwarded, forwarded + 1);
    }
}

#[test]
fn a_device_that_cannot_send_for_others_is_no_target() {
    let Some(chain) = chain() else { return };
    chain.run(RECEIVER, &["ethtool", "-K", "left", "gro", "off"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("targets"), &[]);
    let flow = Flow::new(&chain, false, 5060);
    for number in 0..20_u8 {
        flow.send(&[number]);
        assert_eq!(flow.received().unwrap(), [number]);
    }
    assert_eq!(driver.counters().forwarded, 0);
    chain.run(RECEIVER, &["ethtool", "-K", "left", "gro", "on"]);
    warm_up(&mut driver, &flow);
    chain.run(RECEIVER, &["ethtool", "-K", "left", "gro", "off"]);
    idle(&mut driver);
    let forwarded = driver.counters().forwarded;
    (0..20_u8).for_each(|number| flow.send(&[number]));
    (0..20_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
    assert_eq!(driver.counters().forwarded, forwarded);
}

/// A sender that leaves the checksum to its card, on a link that has none: only the kernel knows of that.
#[test]
fn packets_without_their_checksum_are_left_to_the_kernel() {
    let Some(chain) = chain() else { return };
    chain.run(SENDER, &["ethtool", "-K", "right", "tx", "on"]);
    let _entered = chain.enter(ROUTER);
    let driver = open_with(&forwarding("partial"), &[]);
    for v6 in [false, true] {
        let flow = Flow::new(&chain, v6, 5060);
        (0..20_u8).for_each(|number| flow.send(&[number; 5]));
        (0..20_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number; 5]));
    }
    assert_eq!(driver.counters().forwarded, 0);
}

/// RFC 8950. The kernel answers a question about such a way in terms of the other version.
#[test]
fn ipv4_packets_go_by_way_of_an_ipv6_neighbour() {
    let Some(chain) = chain() else { return };
    chain.run(RECEIVER, &["ip", "address", "add", "10.99.0.1/32", "dev", "lo"]);
    chain.run(SENDER, &["ip", "route", "add", "10.99.0.0/24", "via", "10.0.0.2"]);
    chain.run(ROUTER, &["ip", "route", "add", "10.99.0.0/24", "via", "inet6", "fd00:0:0:1::2", "dev", "right"]);
    let to = SocketAddr::from(([10, 99, 0, 1], 5060));
    let flow = Flow { sender: chain.udp(SENDER, "10.0.0.1:0"), receiver: chain.udp(RECEIVER, &to.to_string()), to };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("by-v6"), &[]);
    warm_up(&mut driver, &flow);
    let forwarded = driver.counters().forwarded;
    let tap = Tap::new(&chain, RECEIVER);
    (0..20_u8).for_each(|number| flow.send(&[number]));
    (0..20_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
    let is_ours = |view: &IpView<'_>| view.destination() == to.ip() && view.udp().is_some();
    let arrived = tap.find(|view| is_ours(view).then(|| (view.ttl(), checksum::verify_header(view))));
    assert_eq!((arrived, driver.counters().forwarded - forwarded), ((63, true), 20));
    driver.install(FilterId(0), &"udp port 5060".parse().unwrap()).unwrap();
    flow.send(b"wanted");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(flow.received().unwrap(), b"wanted");
}

/// The way back is that of an answer: from the packet's destination, not from the gateway to it.
#[test]
fn sources_are_checked_behind_gateways_as_the_kernel_does() {
    let Some(chain) = chain() else { return };
    chain.run(ROUTER, &["sysctl", "-qw", "net.ipv4.conf.left.rp_filter=1"]);
    for (net, gateway) in [("10.98.0.0/24", "10.0.1.2"), ("10.99.0.0/24", "fd00:0:0:1::2")] {
        let family = if gateway.contains(':') { "inet6" } else { "inet" };
        chain.run(ROUTER, &["ip", "route", "add", net, "via", family, gateway, "dev", "right"]);
    }
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("behind"), &[]);
    for v6 in [false, true] {
        warm_up(&mut driver, &Flow::new(&chain, v6, 5060));
    }
    let check = |from: &str, expected: bool| {
        for to in ["10.0.1.2:1", "10.98.0.1:1", "10.99.0.1:1"] {
            assert_eq!(is_forwarded(&driver, &chain, from, to), expected, "{from} to {to}");
        }
    };
    check("10.0.0.1:1", true);
    check("203.0.113.7:1", false);
    // Answers from there would go another way.
    chain.run(ROUTER, &["ip", "route", "add", "10.0.0.0/24", "via", "10.0.1.2", "table", "100"]);
    chain.run(ROUTER, &["ip", "rule", "add", "from", "10.98.0.0/15", "lookup", "100"]);
    // A new rule withholds forwarding until it is known that it intercepts nothing.
    std::thread::sleep(Duration::from_millis(20));
    warm_up(&mut driver, &Flow::new(&chain, false, 5060));
    for (to, expected) in [("10.0.1.2:1", true), ("10.98.0.1:1", false), ("10.99.0.1:1", false)] {
        assert_eq!(is_forwarded(&driver, &chain, "10.0.0.1:1", to), expected, "{to}");
    }
}

#[test]
fn ipv6_sources_that_the_kernel_drops_are_left_to_it() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("odd-v6"), &[]);
    warm_up(&mut driver, &Flow::new(&chain, true, 5060));
    for (from, expected) in [
        ("[fd00:0:0:7::1]:1", true),
        ("[::fffe:102:304]:1", true),
        ("[::ffff:1.2.3.4]:1", false),
        ("[::1.2.3.4]:1", false),
        ("[::1]:1", false),
        ("[ff0e::1]:1", false),
    ] {
        assert_eq!(is_forwarded(&driver, &chain, from, "[fd00:0:0:1::2]:1"), expected, "{from}");
    }
}

#[test]
fn sources_are_checked_where_the_link_says_so() {
    for (check, arrives) in [("1", false), ("2", true)] {
        let Some(chain) = chain() else { return };
        chain.run(ROUTER, &["sysctl", "-qw", &format!("net.ipv4.conf.left.rp_filter={check}")]);
        chain.run(SENDER, &["ip", "address", "add", "10.0.1.200/32", "dev", "lo"]);
        chain.run(ROUTER, &["ip", "neigh", "add", "10.0.1.200", "lladdr", "02:00:00:00:00:01", "dev", "right"]);
        let _entered = chain.enter(ROUTER);
        let mut driver = open_with(&forwarding("spoofed"), &[]);
        let flow = Flow::new(&chain, false, 5060);
        warm_up(&mut driver, &flow);
        let forwarded = driver.counters().forwarded;
        chain.udp(SENDER, "10.0.1.200:0").send_to(b"false", flow.to).unwrap();
        flow.receiver.set_read_timeout(Some(grown(Duration::from_millis(if arrives { 2000 } else { 200 })))).unwrap();
        assert_eq!(flow.received().is_some(), arrives, "rp_filter={check}");
        assert_eq!(driver.counters().forwarded - forwarded, u64::from(arrives));
    }
}

/// The program alone, on frames that no traffic of this kernel would make.
#[test]
fn only_plain_frames_are_forwarded() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("plain"), &[]);
    warm_up(&mut driver, &Flow::new(&chain, false, 5060));
    let (device, station) = device(&chain);
    let udp = |from: &str, to: &str| build::udp(from.parse().unwrap(), to.parse().unwrap(), 64, b"abc").unwrap();
    let plain = udp("10.0.0.1:1", "10.0.1.2:1");
    let check = |head: &[u8], packet: &[u8], expected: bool| {
        let frame = [&station[..], &[2; 6], head, packet].concat();
        assert_eq!(driver.classify(&frame, device).unwrap(), expected, "{frame:02x?}");
    };
    let changed = |change: &dyn Fn(&mut Vec<u8>), fill: bool| {
        let mut packet = plain.clone();
        change(&mut packet);
        if fill {
            checksum::fill(&mut packet).unwrap();
        }
        packet
    };
    check(&[8, 0], &plain, true);
    check(&[8, 0], &[plain.as_slice(), &[0; 30]].concat(), true);
    check(&[0x81, 0, 0, 0, 8, 0], &plain, false);
    check(&[0x81, 0, 0, 5, 8, 0], &plain, false);
    check(&[8, 0], &changed(&|packet| packet[8] = 1, true), false);
    check(&[8, 0], &changed(&|packet| packet[8] = 0, true), false);
    check(&[8, 0], &changed(&|packet| packet[10] ^= 1, false), false);
    check(&[8, 0], &changed(&|packet| packet[12..16].copy_from_slice(&[127, 0, 0, 1]), true), false);
    check(&[8, 0], &changed(&|packet| packet[12..16].copy_from_slice(&[224, 0, 0, 1]), true), false);
    let with_option = |packet: &mut Vec<u8>| {
        packet.splice(20..20, [1; 4]);
        (packet[0], packet[3]) = (0x46, packet[3] + 4);
    };
    check(&[8, 0], &changed(&with_option, true), false);
    // The node's own source, signaling, the node itself, no route, back where it came from.
    check(&[8, 0], &udp("10.0.1.1:1", "10.0.1.2:1"), false);
    check(&[8, 0], &udp("10.0.0.1:1", "10.0.1.2:270"), false);
    check(&[8, 0], &udp("10.0.0.1:1", "10.0.1.1:1"), false);
    check(&[8, 0], &udp("10.0.0.1:1", "203.0.113.1:1"), false);
    check(&[8, 0], &udp("10.0.0.3:1", "10.0.0.1:1"), false);
    let other = [&[2; 12], &[8, 0][..], &plain].concat();
    assert!(!driver.classify(&other, device).unwrap(), "another station's");
    for length in 14..plain.len() {
        let frame = [&station[..], &[2; 6], &[8, 0], &plain].concat();
        assert!(!driver.classify(&frame[..length], device).unwrap(), "cut after {length} bytes");
    }
}

#[test]
fn packets_flow_on_without_the_driver() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&DriverConfig { fail_open: true, ..forwarding("gone") }, &[]);
    let flow = Flow::new(&chain, false, 5060);
    warm_up(&mut driver, &flow);
    // One that hangs forwards no longer, since what devices can do may change meanwhile.
    let forwarded = driver.counters().forwarded;
    std::thread::sleep(HEARTBEAT_MAX + Duration::from_millis(100));
    (0..20_u8).for_each(|number| flow.send(&[number]));
    (0..20_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
    assert_eq!(driver.counters().forwarded, forwarded);
    drop(driver);
    (0..20_u8).for_each(|number| flow.send(&[number]));
    (0..20_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
}

/// The kernel does not see that the program uses neighbours; who forwards sees to it that they are asked for.
#[test]
fn at_most_neighbours_asked_max_stale_neighbours_are_asked_for_at_a_time() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&forwarding("stale"), &[]);
    let flow = Flow::new(&chain, false, 5060);
    warm_up(&mut driver, &flow);
    let all = limits::NEIGHBOURS_ASKED_MAX + 40;
    let neighbour = |number| format!("neigh replace fd00:0:0:1::{number:x} lladdr 2:0:0:0:0:1 dev right nud stale\n");
    let batch: String = (0x100..0x100 + all).map(neighbour).collect();
    chain.input(ROUTER, &["ip", "-batch", "-"], &batch);
    let stale = || chain.run(ROUTER, &["ip", "-6", "neigh", "show", "dev", "right", "nud", "stale"]).lines().count();
    assert!(stale() >= all);
    let end = Instant::now() + Duration::from_secs(60);
    let mut left = stale();
    while left >= all && Instant::now() < end {
        flow.send(b"x");
        assert_eq!(flow.received().unwrap(), b"x");
        idle(&mut driver);
        left = stale();
    }
    assert!((1..=all - limits::NEIGHBOURS_ASKED_MAX + 8).contains(&left), "{left} of {all} are left");
}

/// Returns whether the program would forward a UDP packet that comes from the sender's side.
fn is_forwarded(driver: &Afxdp, chain: &Chain, from: &str, to: &str) -> bool {
    let (device, station) = device(chain);
    let packet = build::udp(from.parse().unwrap(), to.parse().unwrap(), 64, b"abc").unwrap();
    let kind: [u8; 2] = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    driver.classify(&[&station[..], &[2; 6], &kind, &packet].concat(), device).unwrap()
}

/// A chain on which senders complete their checksums, and the receiver's end takes what XDP sends.
pub(crate) fn chain() -> Option<Chain> {
    let chain = Chain::new(3)?;
    chain.run(SENDER, &["ethtool", "-K", "right", "tx", "off"]);
    if !chain.try_run(RECEIVER, &["ethtool", "-K", "left", "gro", "on"]) {
        not_run(&test(), "veth of this kernel has no NAPI of its own");
        return None;
    }
    Some(chain)
}

pub(crate) fn forwarding(instance: &str) -> DriverConfig {
    DriverConfig { xdp_forward: XdpForward::On, ..config(instance) }
}

/// Sends until the program forwards: neighbours are known, and the device's ability has been heard of.
pub(crate) fn warm_up(driver: &mut Afxdp, flow: &Flow) {
    let (before, end) = (driver.counters().forwarded, Instant::now() + Duration::from_secs(60));
    while driver.counters().forwarded == before {
        assert!(Instant::now() < end, "nothing is forwarded: {:?}", driver.devices());
        flow.send(b"warm");
        assert_eq!(flow.received().unwrap(), b"warm");
        idle(driver);
    }
}

fn set_hop_limit(flow: &Flow, v6: bool, limit: u32) {
    if v6 {
        rustix::net::sockopt::set_ipv6_unicast_hops(&flow.sender, Some(limit.try_into().unwrap())).unwrap();
    } else {
        flow.sender.set_ttl(limit).unwrap();
    }
}

fn eventually(is_so: impl Fn() -> bool, what: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
