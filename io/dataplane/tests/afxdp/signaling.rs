// SPDX-License-Identifier: Apache-2.0
//! Queries on their way to others, taken off by the XDP program.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use netserv_plane::{Batch, Driver, Final, InterfaceId};
use netserv_signal::{Interceptor, QModeHeader, Received, SignalKind, limits};
use netserv_skips::not_run;
use netserv_wire::ip::build;

use crate::classify::device;
use crate::common::signaling::{check_datagram, intercept, socket, wait_until};
use crate::common::{Chain, address, test};
use crate::{Afxdp, RECEIVER, ROUTER, SENDER, config, open, pass};

const MESSAGE: &[u8] = b"\x4e\x04\xbd\xa5 a message of some length";

#[test]
fn queries_are_intercepted_with_and_without_router_alert_and_without_rules() {
    let Some(chain) = Chain::new(3) else { return };
    let (sender, receiver) = (socket(&chain, SENDER), socket(&chain, RECEIVER));
    let _entered = chain.enter(ROUTER);
    let (came, _) = device(&chain);
    with_interceptor(open("queries", &["ip"]), |interceptor| {
        for v6 in [false, true] {
            let (from, to) = (address(v6, 0, 1), address(v6, 1, 2));
            for rao in [None, Some(0), Some(33), Some(32_710)] {
                let send = |ttl| {
                    sender.send_q_mode(from, to, QModeHeader { ttl, rao, ..QModeHeader::default() }, MESSAGE).unwrap();
                };
                send(Some(77));
                let message = intercept(interceptor);
                assert_eq!((message.source, message.destination), (SocketAddr::new(from, 270), to));
                assert_eq!((message.ttl, message.rao, message.payload()), (77, rao, MESSAGE));
                assert_eq!(message.interface, InterfaceId(came));
                interceptor.accept(message.id).unwrap();
                check_datagram(&receiver, from, to, 76, MESSAGE);
                send(Some(77));
                let message = intercept(interceptor);
                let changed = [MESSAGE, b" and more"].concat();
                interceptor.accept_modified(message.id, &changed).unwrap();
                check_datagram(&receiver, from, to, 76, &changed);
                send(None);
                let message = intercept(interceptor);
                interceptor.drop(message.id).unwrap();
                interceptor.accept(message.id).unwrap();
            }
        }
        let counters = interceptor.counters();
        assert_eq!((counters.intercepted, counters.unknown, counters.foreign, counters.send_failed), (24, 8, 0, 0));
        assert_eq!(receiver.receive().unwrap(), None);
    });
    assert!(!chain.run(ROUTER, &["nft", "list", "tables"]).contains("netserv-s"));
}

#[test]
fn what_is_no_query_for_others_is_left_to_the_kernel() {
    let Some(chain) = Chain::new(3) else { return };
    let (sender, receiver, own) = (socket(&chain, SENDER), socket(&chain, RECEIVER), socket(&chain, ROUTER));
    let _entered = chain.enter(ROUTER);
    with_interceptor(open("left", &["ip"]), |interceptor| {
        for v6 in [false, true] {
            let (from, to) = (address(v6, 0, 1), address(v6, 1, 2));
            sender.send_datagram(SignalKind::Peer, from, SocketAddr::new(to, 270), b"no magic number").unwrap();
            check_datagram(&receiver, from, to, 63, b"no magic number");
            sender.send_datagram(SignalKind::Peer, from, SocketAddr::new(to, 270), &MESSAGE[..3]).unwrap();
            check_datagram(&receiver, from, to, 63, &MESSAGE[..3]);
            sender.send_q_mode(from, address(v6, 0, 2), QModeHeader::default(), MESSAGE).unwrap();
            check_datagram(&own, from, address(v6, 0, 2), 64, MESSAGE);
        }
        assert_eq!(interceptor.receive(&mut Vec::new()).unwrap(), 0);
        assert_eq!(interceptor.counters().foreign, 0);
        // Its first part looks like a message.
        let long = [MESSAGE, &[0; 3000]].concat();
        chain.udp(SENDER, "10.0.0.1:9").send_to(&long, "10.0.1.2:270").unwrap();
        wait_until(|| {
            assert_eq!(interceptor.receive(&mut Vec::new()).unwrap(), 0);
            matches!(receiver.receive().unwrap(), Some(Received::Datagram { payload, .. }) if payload == long)
        });
    });
}

/// Without an interceptor the program leaves Queries alone, and modules see them in no case.
#[test]
fn queries_are_nobodys_without_an_interceptor() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("nobody", &["ip"]);
    let (device, station) = device(&chain);
    let frame = |tags: &[u8]| {
        let packet = build::udp("10.0.0.1:9".parse().unwrap(), "10.0.1.2:270".parse().unwrap(), 64, MESSAGE).unwrap();
        [&station[..], &[2; 6], tags, &[8, 0], &packet].concat()
    };
    let takes = |driver: &Afxdp, frame: &[u8]| driver.classify(frame, device).unwrap();
    assert!(!takes(&driver, &frame(&[])));
    let passage = driver.intercept().unwrap().unwrap();
    assert!(takes(&driver, &frame(&[])) && takes(&driver, &frame(&[0x81, 0, 0, 0])));
    assert!(!takes(&driver, &frame(&[0x81, 0, 0, 5])), "a VLAN that is not the node's");
    let interceptor = Interceptor::open(&config("nobody"), Some(passage)).unwrap();
    drop(interceptor);
    let (sender, receiver) = (socket(&chain, SENDER), socket(&chain, RECEIVER));
    sender.send_q_mode(address(false, 0, 1), address(false, 1, 2), QModeHeader::default(), MESSAGE).unwrap();
    assert_eq!(pass(&mut driver, 1), 0);
    check_datagram(&receiver, address(false, 0, 1), address(false, 1, 2), 63, MESSAGE);
}

#[test]
fn vlans_are_named_as_the_kernel_names_them() {
    let Some(chain) = Chain::new(3) else { return };
    for (node, parent, host) in [(SENDER, "right", 1), (ROUTER, "left", 2)] {
        if !chain.try_run(node, &["ip", "link", "add", "link", parent, "name", "tagged", "type", "vlan", "id", "7"]) {
            return not_run(&test(), "this kernel has no VLANs");
        }
        chain.run(node, &["ip", "addr", "add", &format!("10.7.0.{host}/24"), "dev", "tagged"]);
        chain.run(node, &["ip", "link", "set", "tagged", "up"]);
    }
    chain.run(SENDER, &["ip", "route", "replace", "10.0.1.0/24", "via", "10.7.0.2"]);
    let sender = socket(&chain, SENDER);
    let _entered = chain.enter(ROUTER);
    let index = chain.run(ROUTER, &["cat", "/sys/class/net/tagged/ifindex"]).trim().parse().unwrap();
    with_interceptor(open("tagged", &[]), |interceptor| {
        sender.send_q_mode("10.7.0.1".parse().unwrap(), address(false, 1, 2), QModeHeader::default(), MESSAGE).unwrap();
        assert_eq!(intercept(interceptor).interface, InterfaceId(index));
    });
}

/// The rules come with the first device that has no XDP, and go with the last one.
#[test]
fn rules_are_there_as_long_as_a_device_needs_them() {
    let Some(chain) = Chain::new(3) else { return };
    let (sender, receiver) = (socket(&chain, SENDER), socket(&chain, RECEIVER));
    let _entered = chain.enter(ROUTER);
    let has_rules = || chain.run(ROUTER, &["nft", "list", "tables"]).contains("netserv-s-devices");
    with_interceptor(open("devices", &[]), |interceptor| {
        assert!(!has_rules());
        let until = |interceptor: &mut Interceptor, wanted: bool| {
            let start = Instant::now();
            while has_rules() != wanted {
                assert!(start.elapsed() < Duration::from_secs(60), "rules: {wanted}");
                assert_eq!(interceptor.receive(&mut Vec::new()).unwrap(), 0);
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        chain.run(ROUTER, &["ip", "tuntap", "add", "other", "mode", "tun"]);
        chain.run(ROUTER, &["ip", "link", "set", "other", "up"]);
        until(interceptor, true);
        let (from, to) = (address(false, 0, 1), address(false, 1, 2));
        // What was seen once and goes on by the kernel is not seen again.
        sender.send_q_mode(from, to, QModeHeader::default(), MESSAGE).unwrap();
        let message = intercept(interceptor);
        interceptor.accept(message.id).unwrap();
        check_datagram(&receiver, from, to, 63, MESSAGE);
        chain.run(ROUTER, &["ip", "link", "del", "other"]);
        until(interceptor, false);
        assert_eq!(interceptor.counters().intercepted, 1);
    });
}

#[test]
fn the_oldest_query_is_lost_when_too_many_wait_and_the_others_go_on_in_the_end() {
    let Some(chain) = Chain::new(3) else { return };
    let (sender, receiver) = (socket(&chain, SENDER), socket(&chain, RECEIVER));
    let _entered = chain.enter(ROUTER);
    let (from, to) = (address(false, 0, 1), address(false, 1, 2));
    let message = |number: usize| [MESSAGE, &number.to_be_bytes()].concat();
    let mut driver = open("oldest", &[]);
    let passage = driver.intercept().unwrap();
    let mut interceptor = Interceptor::open(&config("oldest"), passage).unwrap();
    running(driver, || {
        let mut held = Vec::new();
        for number in 0..=limits::INTERCEPTED_WAITING_MAX {
            sender.send_q_mode(from, to, QModeHeader::default(), &message(number)).unwrap();
            wait_until(|| interceptor.receive(&mut held).unwrap() > 0);
        }
        assert_eq!((receiver.receive().unwrap(), interceptor.counters().overdue), (None, 1));
        drop(interceptor);
        for number in 1..=limits::INTERCEPTED_WAITING_MAX {
            check_datagram(&receiver, from, to, 63, &message(number));
        }
    });
}

/// Runs something beside a driver that passes what comes, with an interceptor of its messages.
fn with_interceptor(mut driver: Afxdp, body: impl FnOnce(&mut Interceptor)) {
    let passage = driver.intercept().unwrap();
    assert!(passage.is_some());
    let mut interceptor = Interceptor::open(&config("devices"), passage).unwrap();
    running(driver, || body(&mut interceptor));
}

fn running(mut driver: Afxdp, body: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let mut batch = Batch::new();
                driver.receive(&mut batch, Some(Duration::from_millis(10))).unwrap();
                batch.iter().for_each(|packet| driver.finish(packet.id, Final::Pass));
                driver.flush().unwrap();
            }
        });
        let over = Over(&is_over);
        body();
        drop(over);
    });
}

/// Ends the driver's thread, also when a check fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
