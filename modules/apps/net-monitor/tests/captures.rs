// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{check_capture, in_turn, ip, udp};

#[test]
fn packets_are_counted() {
    let packet = |host: u8, ttl| udp(&format!("10.1.0.{host}:5060"), "10.2.0.1:5060", ttl, b"OPTIONS");
    let packets = [
        (0, packet(1, 61)),
        (0, packet(1, 61)),
        (5, packet(1, 60)),
        (900, packet(2, 61)),
        (1800, packet(1, 61)),
        (2700, udp("[2001:db8::1]:5060", "[2001:db8::2]:5060", 63, b"OPTIONS")),
        (2700, vec![0x45, 0, 0, 99, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]),
    ];
    check_capture(env!("CARGO_MANIFEST_DIR"), "tests/count.pcap", &packets);
}

/// Packets of every kind that has an IP header, and such that only seem to.
#[test]
fn odd_packets_are_counted_too() {
    let (a, b) = ("10.1.0.1", "10.2.0.1");
    let (c, d) = ("2001:db8::1", "2001:db8:0:0:1::");
    let packet = |source: &str, destination: &str, protocol: u8, ttl: u8, payload: &[u8]| {
        ip(source.parse().expect("an address"), destination.parse().expect("an address"), protocol, ttl, payload)
    };
    let change = |mut packet: Vec<u8>, at: usize, byte: u8| {
        packet[at] = byte;
        packet
    };
    let whole = packet(a, b, 17, 61, &[0; 40]);
    let whole_v6 = packet(c, d, 17, 61, &[0; 40]);
    let counted = [
        packet(a, b, 6, 0, b""),
        packet(a, b, 1, 255, &[8; 1400]),
        packet("0.0.0.0", "255.255.255.255", 253, 1, b"x"),
        change(whole.clone(), 0, 0x4f),
        change(whole.clone(), 6, 0x3f),
        packet("::", "::1", 58, 1, b""),
        packet("::ffff:10.1.0.1", "1::", 59, 2, b""),
        packet(c, d, 44, 3, &[17, 0, 0x0b, 0xb8, 0, 0, 0, 1, 9]),
        packet(c, d, 0, 4, &[17, 0, 1, 4, 0, 0, 0, 0]),
        packet(c, d, 60, 5, &[0]),
        packet("1:0:0:2:0:0:0:3", "1:2:3:4:5:6:0:8", 17, 6, b""),
    ];
    let not_counted = [
        change(whole.clone(), 0, 0x44),
        change(whole.clone(), 3, 19),
        change(whole.clone(), 3, 61),
        change(whole_v6.clone(), 5, 41),
        packet(c, d, 0, 7, &[17, 1, 1, 4, 0, 0, 0, 0]),
        packet(c, d, 44, 8, &[17, 0, 0]),
    ];
    check_capture(env!("CARGO_MANIFEST_DIR"), "tests/odd.pcap", &in_turn(counted.into_iter().chain(not_counted)));
}
