// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{check_capture, in_turn, udp};

#[test]
fn every_packet_passes() {
    let packets = [
        udp("128.59.20.92:50000", "128.59.19.206:44444", 64, b"test"),
        udp("[2001:db8::1]:50000", "[2001:db8::2]:44444", 64, b"test"),
        vec![0x4f; 20],
    ];
    check_capture(env!("CARGO_MANIFEST_DIR"), "tests/pass.pcap", &in_turn(packets));
}
