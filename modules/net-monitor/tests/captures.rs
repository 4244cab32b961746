// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{check_capture, udp};

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
