// SPDX-License-Identifier: Apache-2.0
//! What the captures of the tutorial's checks hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{Timed, check_capture, in_turn, ip, udp};

const CHECKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/tutorial/checks");

#[test]
fn exercise_2_a_filter() {
    let tcp = |source: &str| ip(source.parse().unwrap(), "198.51.100.7".parse().unwrap(), 6, 60, &[0; 20]);
    let others = [
        udp("192.0.2.1:40000", "198.51.100.7:5060", 60, b"a stranger at the open port"),
        udp("[2001:db8::1]:40000", "[2001:db8:7::7]:9", 60, b"a stranger over IPv6"),
        tcp("192.0.2.2"),
    ];
    let open = [
        udp("192.0.2.66:40000", "198.51.100.7:5060", 60, b"the open port"),
        udp("[2001:db8::66]:40000", "[2001:db8:7::7]:5060", 60, b"the open port over IPv6"),
    ];
    let closed = [
        udp("192.0.2.66:40000", "198.51.100.7:9", 60, b"another port"),
        udp("192.0.2.66:5060", "198.51.100.7:9", 60, b"from the open port, not to it"),
        udp("[2001:db8::66]:40000", "[2001:db8:7::7]:9", 60, b"another port over IPv6"),
        tcp("192.0.2.66"),
        ip("2001:db8::66".parse().unwrap(), "2001:db8:7::7".parse().unwrap(), 58, 60, &[128, 0, 0, 0, 0, 1, 0, 1]),
    ];
    let all: Vec<Timed> = in_turn([&others[..], &open, &closed].concat());
    check_capture(CHECKS, "2/blocked.in.pcap", &all);
    check_capture(CHECKS, "2/blocked.out.pcap", &all[..others.len() + open.len()]);
    // 192.0.2.1 is blocked now, but for port 9.
    check_capture(CHECKS, "2/other.out.pcap", &all[1..]);
}

#[test]
fn exercise_3_state() {
    let knock = |from: &str, port: u16| udp(&format!("{from}:40000"), &format!("198.51.100.7:{port}"), 60, b"knock");
    let door = |from: &str| knock(from, 22);
    let (anna, ben, carl) = ("192.0.2.1", "192.0.2.2", "192.0.2.3");
    // Milliseconds, the packet, and whether it comes out.
    let told = [
        (0, door(anna), false),
        (100, knock(anna, 7001), false),
        (200, knock(anna, 7002), false),
        (250, door(anna), false),
        (300, knock(anna, 7003), false),
        (400, door(anna), true),
        (500, door(ben), false),
        (600, knock(ben, 7002), false),
        (700, knock(ben, 7001), false),
        (800, knock(ben, 7003), false),
        (900, door(ben), false),
        (1000, knock(ben, 7001), false),
        (1100, knock(carl, 7001), false),
        (1200, knock(ben, 7002), false),
        (1300, knock(ben, 7003), false),
        (1400, door(ben), true),
        (1500, knock(carl, 8000), true),
        (10_200, door(anna), true),
        (10_400, door(anna), false),
        (11_200, door(ben), true),
    ];
    let all: Vec<Timed> = told.iter().map(|(at, packet, _)| (*at, packet.clone())).collect();
    let out: Vec<Timed> =
        told.iter().filter(|(.., passes)| *passes).map(|(at, packet, _)| (*at, packet.clone())).collect();
    check_capture(CHECKS, "3/knock.in.pcap", &all);
    check_capture(CHECKS, "3/knock.out.pcap", &out);

    let six = |port: u16| udp("[2001:db8::1]:40000", &format!("[2001:db8:7::7]:{port}"), 60, b"knock");
    let told = [six(2222), six(100), six(200), six(2222), six(22), six(7001)];
    check_capture(CHECKS, "3/ports.in.pcap", &in_turn(told.clone()));
    let out: Vec<Timed> = in_turn(told).split_off(3);
    check_capture(CHECKS, "3/ports.out.pcap", &out);
}
