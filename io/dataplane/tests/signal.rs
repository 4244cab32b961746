// SPDX-License-Identifier: Apache-2.0
//! Signaling on real packets: a sender, one or two routers, a receiver.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod common;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::signaling::{check_datagram, intercept, next, socket, wait_until};
use common::{Chain, address, receive};
use netserv_model::route::RouteChange;
use netserv_netlink::routes::{RouteMonitor, Routes};
use netserv_plane::{DriverConfig, DriverError, InterfaceId, PacketId};
use netserv_signal::{Interceptor, QModeHeader, Received, SignalKind, SignalSocket, UnreachableKind, limits};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

const MESSAGE: &[u8] = b"\x4e\x04\xbd\xa5 a message of some length";

/// Queues of each veth.
pub(crate) const LANES: usize = 1;

#[test]
fn queries_are_intercepted_with_and_without_router_alert() {
    let Some(chain) = Chain::new(3) else { return };
    let sender = socket(&chain, 0);
    let receiver = socket(&chain, 2);
    let _entered = chain.enter(1);
    let mut interceptor = Interceptor::open(&DriverConfig::new("node"), None).unwrap();
    for v6 in [false, true] {
        let (from, to) = (address(v6, 0, 1), address(v6, 1, 2));
        for rao in [None, Some(0), Some(33), Some(32_710)] {
            sender
                .send_q_mode(from, to, QModeHeader { ttl: Some(77), rao, ..QModeHeader::default() }, MESSAGE)
                .unwrap();
            let message = intercept(&mut interceptor);
            assert_eq!((message.source, message.destination), (SocketAddr::new(from, 270), to));
            assert_eq!((message.ttl, message.rao, message.payload()), (77, rao, MESSAGE));
            assert!(v6 || message.packet()[6] & 0x40 != 0, "a query is never fragmented");
            let udp = message.packet().len() - MESSAGE.len() - 8;
            assert_ne!(message.packet()[udp + 6..udp + 8], [0, 0], "it has a checksum");
            interceptor.accept(message.id).unwrap();
            check_datagram(&receiver, from, to, 76, MESSAGE);

            sender
                .send_q_mode(from, to, QModeHeader { ttl: Some(77), rao, ..QModeHeader::default() }, MESSAGE)
                .unwrap();
            let message = intercept(&mut interceptor);
            let changed = [MESSAGE, b" and more"].concat();
            interceptor.accept_modified(message.id, &changed).unwrap();
            check_datagram(&receiver, from, to, 76, &changed);

            sender.send_q_mode(from, to, QModeHeader { rao, ..QModeHeader::default() }, MESSAGE).unwrap();
            let message = intercept(&mut interceptor);
            interceptor.drop(message.id).unwrap();
            interceptor.accept(message.id).unwrap();
        }
    }
    assert_eq!((interceptor.counters().intercepted, interceptor.counters().unknown), (24, 8));
    assert_eq!(receiver.receive().unwrap(), None);
}

#[test]
fn datagrams_that_find_no_room_are_lost_and_counted() {
    const SENT: u64 = 20_000;
    let Some(chain) = Chain::new(2) else { return };
    let (sender, receiver) = (socket(&chain, 0), socket(&chain, 1));
    let to = SocketAddr::new(address(false, 0, 2), 270);
    for _ in 0..SENT {
        sender.send_datagram(SignalKind::Peer, address(false, 0, 1), to, &[7; 1000]).unwrap();
    }
    let mut sent = 0;
    wait_until(|| {
        sender.send_waiting();
        let before = sent;
        sent = sender.send_counters()[&SignalKind::Peer].sent;
        sent == before
    });
    let received = std::iter::from_fn(|| receiver.receive().unwrap()).count();
    let lost = receiver.lost();
    assert!(received > 1000 && lost > 1000, "{received} were received and {lost} lost");
    assert!(received as u64 + lost <= sent, "{received} + {lost} of {sent}");
    assert_eq!(sender.lost(), 0);
}

#[test]
fn queries_carry_the_dscp_and_flow_label_that_they_are_given() {
    let Some(chain) = Chain::new(3) else { return };
    let sender = socket(&chain, 0);
    let _entered = chain.enter(1);
    let mut interceptor = Interceptor::open(&DriverConfig::new("node"), None).unwrap();
    for rao in [None, Some(33)] {
        for (v6, dscp, flow_label) in [
            (false, None, None),
            (false, Some(46), Some(0xa_bcde)),
            (true, Some(46), None),
            (true, None, Some(0xa_bcde)),
            (true, Some(63), Some(0xf_ffff)),
        ] {
            let header = QModeHeader { ttl: None, rao, dscp, flow_label };
            sender.send_q_mode(address(v6, 0, 1), address(v6, 1, 2), header, MESSAGE).unwrap();
            let message = intercept(&mut interceptor);
            let first = u32::from_be_bytes(*message.packet().first_chunk().unwrap());
            let class = if v6 { first >> 20 & 0xff } else { first >> 16 & 0xff };
            assert_eq!(class, u32::from(dscp.unwrap_or(0)) << 2, "{header:?}");
            if let (true, Some(label)) = (v6, flow_label) {
                assert_eq!(first & 0xf_ffff, label, "{header:?}");
            }
            interceptor.drop(message.id).unwrap();
        }
    }
    // The socket's own datagrams stay as they were.
    let to = SocketAddr::new(address(false, 1, 2), 270);
    sender.send_datagram(SignalKind::Query, address(false, 0, 1), to, MESSAGE).unwrap();
    assert_eq!(intercept(&mut interceptor).packet()[1], 0);
}

#[test]
fn what_is_no_query_for_others_is_left_alone() {
    let Some(chain) = Chain::new(3) else { return };
    let sender = socket(&chain, 0);
    let receiver = socket(&chain, 2);
    let own = socket(&chain, 1);
    let _entered = chain.enter(1);
    let mut interceptor = Interceptor::open(&DriverConfig::new("node"), None).unwrap();
    for v6 in [false, true] {
        let (from, to) = (address(v6, 0, 1), address(v6, 1, 2));
        sender.send_datagram(SignalKind::Peer, from, SocketAddr::new(to, 270), b"no magic number").unwrap();
        // IPv6 has no rule for the magic number: the interceptor itself lets such packets go on.
        let mut none = Vec::new();
        wait_until(|| {
            assert_eq!(interceptor.receive(&mut none).unwrap(), 0);
            receiver.receive().unwrap().is_some()
        });
        sender.send_q_mode(from, address(v6, 0, 2), QModeHeader::default(), MESSAGE).unwrap();
        check_datagram(&own, from, address(v6, 0, 2), 64, MESSAGE);
        let other = chain.udp(2, &SocketAddr::new(to, 271).to_string());
        sender.send_datagram(SignalKind::Peer, from, SocketAddr::new(to, 271), MESSAGE).unwrap();
        assert_eq!(receive(&other).unwrap().0, MESSAGE);
    }
    assert_eq!((interceptor.counters().intercepted, interceptor.counters().foreign), (0, 1));
}

#[test]
fn the_rules_of_an_interceptor_go_with_it() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let rules = || chain.run(0, &["nft", "list", "ruleset"]);
    let interceptor = Interceptor::open(&DriverConfig::new("node"), None).unwrap();
    chain.run(0, &["nft", "flush", "ruleset"]);
    assert_eq!(rules().matches("netserv-s-node").count(), 2, "one table in each version of IP");
    drop(interceptor);
    assert!(!rules().contains("netserv"));
}

#[test]
fn the_oldest_query_is_lost_when_too_many_wait() {
    let Some(chain) = Chain::new(3) else { return };
    let sender = socket(&chain, 0);
    let receiver = socket(&chain, 2);
    let _entered = chain.enter(1);
    let mut interceptor = Interceptor::open(&DriverConfig::new("node"), None).unwrap();
    let (from, to) = (address(false, 0, 1), address(false, 1, 2));
    let mut held = Vec::new();
    for number in 0..=limits::INTERCEPTED_WAITING_MAX {
        let message = [MESSAGE, &number.to_be_bytes()].concat();
        sender.send_q_mode(from, to, QModeHeader::default(), &message).unwrap();
        wait_until(|| interceptor.receive(&mut held).unwrap() > 0);
    }
    assert_eq!((receiver.receive().unwrap(), interceptor.counters().overdue), (None, 1));
    interceptor.accept(PacketId(held[0].id.0)).unwrap();
    assert_eq!(interceptor.counters().unknown, 1);
    let too_long = interceptor.accept_modified(held[1].id, &[0; 65_536]);
    assert!(matches!(too_long, Err(DriverError::BadPacket { .. })));
    interceptor.accept(held[1].id).unwrap();
    check_datagram(&receiver, from, to, 63, &[MESSAGE, &1_usize.to_be_bytes()].concat());
}

/// The receiver of a flow is no node: its "port unreachable" tells the last node on the path that it is the last.
#[test]
fn icmp_errors_name_the_destination_of_the_query() {
    let Some(chain) = Chain::new(4) else { return };
    for (tool, reject) in [("iptables", "icmp-admin-prohibited"), ("ip6tables", "icmp6-adm-prohibited")] {
        chain.run(2, &[tool, "-A", "FORWARD", "-p", "udp", "--dport", "271", "-j", "REJECT", "--reject-with", reject]);
    }
    for net in ["192.0.2.0/24", "2001:db8::/32"] {
        let via = address(net.contains(':'), 0, 2).to_string();
        chain.run(0, &["ip", "route", "add", net, "via", &via]);
    }
    // Routers say only so many times per second that something is unreachable.
    for k in 1..4 {
        chain.run(k, &["sysctl", "-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"]);
    }
    let sender = socket(&chain, 0);
    for v6 in [false, true] {
        let (from, to) = (address(v6, 0, 1), address(v6, 2, 2));
        for rao in [None, Some(33)] {
            sender.send_q_mode(from, to, QModeHeader { rao, ..QModeHeader::default() }, MESSAGE).unwrap();
            check_unreachable(&sender, to, 270, UnreachableKind::Port, to);
        }
        sender.send_q_mode(from, to, QModeHeader { ttl: Some(2), ..QModeHeader::default() }, MESSAGE).unwrap();
        check_unreachable(&sender, to, 270, UnreachableKind::TimeExceeded, address(v6, 1, 2));
        sender.send_datagram(SignalKind::Peer, from, SocketAddr::new(to, 271), MESSAGE).unwrap();
        check_unreachable(&sender, to, 271, UnreachableKind::Prohibited, address(v6, 1, 2));
        let nowhere: IpAddr = if v6 { "2001:db8::1" } else { "192.0.2.1" }.parse().unwrap();
        sender.send_q_mode(from, nowhere, QModeHeader::default(), MESSAGE).unwrap();
        check_unreachable(&sender, nowhere, 270, UnreachableKind::Network, address(v6, 0, 2));
    }
}

#[test]
fn errors_break_neither_sending_nor_receiving() {
    let Some(chain) = Chain::new(2) else { return };
    let (sender, peer) = (socket(&chain, 0), chain.udp(1, "10.0.0.2:9000"));
    let (from, to) = (address(false, 0, 1), address(false, 0, 2));
    for _ in 0..20 {
        sender.send_q_mode(from, to, QModeHeader::default(), MESSAGE).unwrap();
    }
    peer.send_to(b"hello", SocketAddr::new(from, 270)).unwrap();
    sender.send_datagram(SignalKind::Peer, from, "10.0.0.2:9000".parse().unwrap(), b"still there").unwrap();
    assert_eq!(receive(&peer).unwrap(), (b"still there".to_vec(), SocketAddr::new(from, 270)));
    let (mut datagrams, mut errors) = (0, 0);
    while let Some(received) = sender.receive().unwrap() {
        match received {
            Received::Datagram { payload, .. } => {
                assert_eq!(payload, b"hello");
                datagrams += 1;
            }
            Received::Unreachable { kind, .. } => {
                assert_eq!(kind, UnreachableKind::Port);
                errors += 1;
            }
        }
    }
    assert!(datagrams == 1 && errors > 0, "{datagrams} {errors}");
    let refused =
        sender.send_datagram(SignalKind::Peer, "10.9.9.9".parse().unwrap(), "10.0.0.2:9000".parse().unwrap(), b"x");
    assert!(matches!(refused, Err(DriverError::System { .. })), "an address that is not ours: {refused:?}");
    let too_long = sender.send_datagram(SignalKind::Peer, from, "10.0.0.2:9000".parse().unwrap(), &[0; 1600]);
    assert!(matches!(too_long, Err(DriverError::System { .. })), "nothing is fragmented: {too_long:?}");
    assert_eq!(sender.receive().unwrap(), None);
}

/// Goal: neighbours that do not answer keep nobody else waiting. Method: the kernel holds answers to such neighbours until the
/// buffer for answers is full; then peers are sent to, and in the end each answer was sent or lost.
#[test]
fn dead_neighbours_fill_the_buffer_of_one_kind_only() {
    const ANSWERS: u64 = 12_000;
    let Some(chain) = Chain::new(2) else { return };
    let (sender, receiver) = (socket(&chain, 0), socket(&chain, 1));
    let (from, to) = (address(false, 0, 1), address(false, 0, 2));
    sender.send_datagram(SignalKind::Peer, from, SocketAddr::new(to, 270), MESSAGE).unwrap();
    check_datagram(&receiver, from, to, 64, MESSAGE);
    for number in 0..ANSWERS {
        let dead = IpAddr::from([10, 0, 0, 100 + u8::try_from(number % 100).unwrap()]);
        sender.send_datagram(SignalKind::Response, from, SocketAddr::new(dead, 270), &[0x4e; 512]).unwrap();
    }
    let answers = || sender.send_counters()[&SignalKind::Response];
    assert!(answers().delayed > limits::SEND_WAITING_MAX.try_into().unwrap(), "{:?}", answers());
    for kind in [SignalKind::Peer, SignalKind::Error] {
        sender.send_datagram(kind, from, SocketAddr::new(to, 270), MESSAGE).unwrap();
        check_datagram(&receiver, from, to, 64, MESSAGE);
    }
    sender.send_q_mode(from, to, QModeHeader::default(), MESSAGE).unwrap();
    check_datagram(&receiver, from, to, 64, MESSAGE);

    let start = Instant::now();
    while answers().sent + answers().lost + answers().failed < ANSWERS {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", answers());
        std::thread::sleep(limits::SEND_WAITING_TIME_MAX);
        sender.send_waiting();
    }
    assert!(answers().lost > 0, "{:?}", answers());
    let all = [SignalKind::Query, SignalKind::Error, SignalKind::Peer].map(|kind| sender.send_counters()[&kind]);
    assert_eq!(all.map(|sent| (sent.sent, sent.delayed, sent.lost)), [(1, 0, 0), (1, 0, 0), (2, 0, 0)]);
}

/// An outer edge-triggered epoll, as tokio has one, hears of each datagram and each error.
#[test]
fn one_descriptor_tells_of_datagrams_and_errors() {
    let Some(chain) = Chain::new(2) else { return };
    let (sender, peer) = (socket(&chain, 0), chain.udp(1, "10.0.0.2:9000"));
    let outer = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&outer, &sender, epoll::EventData::new_u64(1), flags).unwrap();
    let heard = |milliseconds: i64| {
        let timeout = Timespec { tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000 };
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 4];
        epoll::wait(&outer, &mut events, Some(&timeout)).unwrap()
    };
    for _ in 0..3 {
        peer.send_to(b"hello", "10.0.0.1:270").unwrap();
        assert_eq!(heard(2000), 1, "a datagram");
        assert!(matches!(sender.receive().unwrap(), Some(Received::Datagram { .. })));
        assert_eq!(sender.receive().unwrap(), None);
        sender.send_q_mode(address(false, 0, 1), address(false, 0, 2), QModeHeader::default(), MESSAGE).unwrap();
        assert_eq!(heard(2000), 1, "an error");
        assert!(matches!(sender.receive().unwrap(), Some(Received::Unreachable { .. })));
        assert_eq!(sender.receive().unwrap(), None);
        assert_eq!(heard(10), 0);
    }
}

#[test]
fn routes_and_addresses_are_known() {
    let Some(chain) = Chain::new(4) else { return };
    let _entered = chain.enter(1);
    let routes = Routes::open().unwrap();
    let index = |device| {
        let path = format!("/sys/class/net/{device}/ifindex");
        let shown = chain.run(1, &["cat", &path]);
        InterfaceId(shown.trim().parse().unwrap())
    };
    let (left, right) = (index("left"), index("right"));
    for v6 in [false, true] {
        for (destination, source, interface) in [
            (address(v6, 0, 1), address(v6, 0, 2), left),
            (address(v6, 1, 2), address(v6, 1, 1), right),
            (address(v6, 2, 2), address(v6, 1, 1), right),
        ] {
            assert_eq!(routes.source_for(destination).unwrap(), Some((source, interface)), "{destination}");
        }
        let nowhere = if v6 { "2001:db8::1" } else { "192.0.2.1" };
        assert_eq!(routes.source_for(nowhere.parse().unwrap()).unwrap(), None);
    }
    let monitor = RouteMonitor::open().unwrap();
    assert_eq!(monitor.changed(), None);
    let addresses = routes.addresses().unwrap();
    assert!(addresses.is_local(address(true, 0, 2)) && addresses.is_local("127.0.0.9".parse().unwrap()));
    assert!(!addresses.is_local(address(false, 0, 1)));
    assert_eq!(addresses.reached_by(left, false), Some(address(false, 0, 2)));
    assert_eq!(addresses.reached_by(right, true), Some(address(true, 1, 1)));
    let elsewhere = addresses.reached_by(InterfaceId(99), true);
    assert!([address(true, 0, 2), address(true, 1, 1)].map(Some).contains(&elsewhere), "{elsewhere:?}");
    let one = addresses.all().iter().find(|local| local.address == address(true, 0, 2)).unwrap();
    assert_eq!((one.interface, one.prefix_length), (left, 64));
    chain.run(1, &["ip", "addr", "del", "10.0.0.2/24", "dev", "left"]);
    let timeout = Timespec { tv_sec: 2, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::from_borrowed_fd(monitor.as_fd(), PollFlags::IN)], Some(&timeout)).unwrap(), 1);
    assert_eq!((monitor.changed(), monitor.changed()), (Some(RouteChange::All), None));
    for (route, expected) in [
        (vec!["route", "add", "10.77.1.0/24", "via", "10.0.1.2"], "10.77.1.0/24"),
        (vec!["route", "del", "10.77.1.0/24"], "10.77.1.0/24"),
        (vec!["-6", "route", "add", "fd77::/40", "via", "fd00:0:0:1::2"], "fd77::/40"),
        (vec!["route", "add", "default", "via", "10.0.1.2"], "0.0.0.0/0"),
        (vec!["route", "del", "default"], "0.0.0.0/0"),
    ] {
        chain.run(1, &[&["ip"], &route[..]].concat());
        assert_eq!(poll(&mut [PollFd::from_borrowed_fd(monitor.as_fd(), PollFlags::IN)], Some(&timeout)).unwrap(), 1);
        assert_eq!(monitor.changed(), Some(RouteChange::Toward(vec![expected.parse().unwrap()])), "{route:?}");
    }
    assert!(!routes.addresses().unwrap().is_local(address(false, 0, 2)));
    assert_eq!(routes.source_for(address(false, 0, 1)).unwrap(), None);
}

/// Goal: of a burst of changes for which a monitor had no room it knows that it may have been anything. Method: one route that comes and goes
/// more often than is kept, which alone would be a change of one prefix.
#[test]
fn changes_that_were_not_kept_may_have_been_anything() {
    let Some(chain) = Chain::new(4) else { return };
    let _entered = chain.enter(1);
    let monitor = RouteMonitor::open().unwrap();
    let turns = |count: usize| {
        let text = "route add 10.77.1.0/24 via 10.0.1.2\\nroute del 10.77.1.0/24\\n";
        let script = format!("awk 'BEGIN {{ for (n = 0; n < {count}; n++) printf \"{text}\" }}' | ip -batch -");
        chain.run(1, &["sh", "-c", &script]);
        monitor.changed()
    };
    assert_eq!(turns(1), Some(RouteChange::Toward(vec!["10.77.1.0/24".parse().unwrap()])));
    assert_eq!((turns(20_000), monitor.changed()), (Some(RouteChange::All), None));
    assert_eq!(turns(1), Some(RouteChange::Toward(vec!["10.77.1.0/24".parse().unwrap()])));
}

fn check_unreachable(socket: &SignalSocket, to: IpAddr, port: u16, kind: UnreachableKind, by: IpAddr) {
    let received = next(socket);
    let Received::Unreachable { destination, kind: found, reporter, payload } = received else {
        panic!("a datagram came in place of an error: {received:?}");
    };
    assert_eq!((destination, found, reporter), (SocketAddr::new(to, port), kind, Some(by)));
    assert!(payload.starts_with(MESSAGE), "{payload:?}");
}
