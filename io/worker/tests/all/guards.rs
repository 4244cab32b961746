// SPDX-License-Identifier: Apache-2.0
//! The instructions of modules and of what is around them, counted from outside: `./dev guards`.

use std::hint::black_box;

use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_worker::tools::pcap;

use crate::bench::{Same, module};
use crate::support::{Setup, for_each_packet, guest, guest_with, repository};

/// Packets of a case.
const PACKETS: usize = 1024;

#[test]
#[ignore = "means something only under callgrind"]
fn modules_per_packet() {
    let capture = std::fs::read(repository().join("modules/apps/net-monitor/tests/count.pcap")).unwrap();
    let packets: Vec<_> = pcap::read(&capture).unwrap().into_iter().map(|one| one.packet).collect();
    let modules = [("null", guest("")), ("net-monitor", module("net_monitor")), ("kv get and set", kv())];
    for (name, wasm) in modules {
        for count in [1, BATCH_PACKETS_MAX] {
            guard(&format!("{name} in batches of {count}"), &wasm, &packets, count);
        }
    }
}

/// Returns a guest that reads and stores an entry for each packet.
fn kv() -> Vec<u8> {
    let calls = "(drop (call $kv_get (i32.const 0) (i32.const 4) (i32.const 8) (i32.const 8)))
        (drop (call $kv_set (i32.const 0) (i32.const 4) (i32.const 8) (i32.const 8)))";
    guest_with(&for_each_packet(calls), "(data (i32.const 0) \"name\")")
}

fn guard(name: &str, wasm: &[u8], packets: &[Vec<u8>], count: usize) {
    let mut chain = Setup::new().chain(&[(0, wasm)]);
    let mut batch = Same::new(packets, count);
    let mut outcomes = Vec::new();
    chain.process(&mut batch, &mut outcomes);
    // On a line of its own: the test's name stands before it.
    println!("\nguard {name} {PACKETS}");
    netserv_guarded(|| (0..PACKETS / count).for_each(|_| chain.process(black_box(&mut batch), &mut outcomes)));
}

/// What happens in here is counted from outside, and so are the calls.
#[inline(never)]
fn netserv_guarded(work: impl FnOnce()) {
    work();
}
