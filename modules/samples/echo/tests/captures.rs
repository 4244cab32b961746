// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{check_capture, in_turn, ip, udp};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn packets_come_back() {
    let long = [b'x'; 1400];
    let there = [
        udp("10.1.0.2:50000", "10.2.0.1:44444", 61, b"test\n"),
        udp("10.1.0.2:50000", "10.2.0.1:44444", 61, &long),
        udp("[2001:db8:1::2]:50000", "[2001:db8:2::1]:44444", 61, b"test"),
    ];
    let back = [
        udp("10.2.0.1:44444", "10.1.0.2:50000", 64, b"test\n"),
        udp("10.2.0.1:44444", "10.1.0.2:50000", 64, &long),
        udp("[2001:db8:2::1]:44444", "[2001:db8:1::2]:50000", 64, b"test"),
    ];
    check_capture(CRATE, "tests/back.in.pcap", &in_turn(there));
    check_capture(CRATE, "tests/back.out.pcap", &in_turn(back));
}

#[test]
fn everything_else_passes() {
    let (source, destination) = ("10.1.0.2".parse().unwrap(), "10.2.0.1".parse().unwrap());
    let mut fragment = udp("10.1.0.2:50000", "10.2.0.1:44444", 61, b"test");
    fragment[6] = 0x20;
    let mut cut = udp("10.1.0.2:50000", "10.2.0.1:44444", 61, b"test");
    cut.truncate(27);
    let packets = [
        udp("10.1.0.2:50000", "10.2.0.1:44445", 61, b"another port"),
        udp("10.1.0.2:44444", "10.2.0.1:44444", 61, b"between echoes"),
        ip(source, destination, 6, 61, &[0xad; 20]),
        ip(source, destination, 17, 61, b"short"),
        fragment,
        cut,
    ];
    let packets = in_turn(packets);
    check_capture(CRATE, "tests/pass.in.pcap", &packets);
    check_capture(CRATE, "tests/pass.out.pcap", &packets);
}

#[test]
fn the_port_is_a_property() {
    let there =
        [udp("10.1.0.2:50000", "10.2.0.1:7", 61, b"test"), udp("10.1.0.2:50000", "10.2.0.1:44444", 61, b"test")];
    let back = [udp("10.2.0.1:7", "10.1.0.2:50000", 64, b"test"), there[1].clone()];
    check_capture(CRATE, "tests/port.in.pcap", &in_turn(there));
    check_capture(CRATE, "tests/port.out.pcap", &in_turn(back));
}
