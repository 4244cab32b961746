// SPDX-License-Identifier: Apache-2.0
//! The instructions of modules and of what is around them, counted from outside: `./dev guards`.

use std::hint::black_box;

use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_worker::pcap;

use crate::bench::{Same, module};
use crate::support::{Setup, guest, repository};

/// Packets of a case.
const PACKETS: usize = 1024;

#[test]
#[ignore = "means something only under callgrind"]
fn modules_per_packet() {
    let capture = std::fs::read(repository().join("modules/net-monitor/tests/count.pcap")).unwrap();
    let packets: Vec<_> = pcap::read(&capture).unwrap().into_iter().map(|one| one.packet).collect();
    for (name, wasm) in [("null", guest("")), ("net-monitor", module("net_monitor"))] {
        for count in [1, BATCH_PACKETS_MAX] {
            guard(&format!("{name} in batches of {count}"), &wasm, &packets, count);
        }
    }
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
