// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{check_capture, in_turn, udp};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn no_call() {
    let rtp = [&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0xff; 160]].concat();
    let closed = [
        udp("192.0.2.9:4000", "198.51.100.1:30000", 61, &rtp),
        udp("[2001:db8:9::9]:4000", "[2001:db8:1::1]:30999", 61, &rtp),
    ];
    let passed = [
        udp("192.0.2.9:4000", "198.51.100.1:31000", 61, &rtp),
        udp("192.0.2.9:30000", "198.51.100.1:2223", 61, b"1_2 d7:command4:pinge"),
        udp("[2001:db8:9::9]:4000", "[2001:db8:1::1]:29999", 61, &rtp),
    ];
    let all = in_turn([closed[0].clone(), passed[0].clone(), closed[1].clone(), passed[1].clone(), passed[2].clone()]);
    let left = all.iter().filter(|(_, packet)| passed.contains(packet)).cloned().collect::<Vec<_>>();
    check_capture(CRATE, "tests/no-call.in.pcap", &all);
    check_capture(CRATE, "tests/no-call.out.pcap", &left);
}
