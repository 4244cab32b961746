// SPDX-License-Identifier: Apache-2.0
//! What the captures of `netserv.toml` hold.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use netserv_testing::{Timed, check_capture, ip};

/// Goal: two SYNs of unknown clients pass in a second, then others are dropped; one that comes again passes, and so does its client's next.
#[test]
fn captures_are_what_they_say() {
    let syn = |client: u8, port: u32, sequence: u32| {
        let words = [port << 16 | 80, sequence, 0, 5 << 28 | 2 << 16 | 0xffff, 0].map(u32::to_be_bytes);
        ip([192, 0, 2, client].into(), [198, 51, 100, 7].into(), 6, 61, words.as_flattened())
    };
    let passes = |at: u64| ![20, 30, 40, 60].contains(&at);
    let packets: Vec<Timed> = [
        (0, syn(1, 1000, 1)),
        (10, syn(2, 1000, 2)),
        (20, syn(3, 1000, 3)),
        (30, syn(4, 1000, 4)),
        (40, syn(5, 1000, 5)),
        (60, syn(7, 1000, 8)),
        (550, syn(6, 1000, 6)),
        (560, syn(4, 1000, 4)),
        (570, syn(4, 1001, 7)),
    ]
    .into();
    let out: Vec<Timed> = packets.iter().filter(|(at, _)| passes(*at)).cloned().collect();
    check_capture(env!("CARGO_MANIFEST_DIR"), "tests/flood.in.pcap", &packets);
    check_capture(env!("CARGO_MANIFEST_DIR"), "tests/flood.out.pcap", &out);
}
