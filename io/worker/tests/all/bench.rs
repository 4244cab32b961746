// SPDX-License-Identifier: Apache-2.0
//! How long modules take, for people:
//! `cargo test --release -p netserv-worker --test all -- --ignored --nocapture bench`.

use std::time::{Duration, Instant};

use netserv_model::Refusal;
use netserv_model::command::ModuleSlot;
use netserv_model::limits::{BATCH_PACKETS_MAX, PACKET_BYTES_MAX};
use netserv_wire::container::ring::Ingress;
use netserv_worker::chain::{Batch, Chain, Surroundings};
use netserv_worker::host::Host;
use netserv_worker::pcap;

use crate::support::{Setup, guest, repository};

/// A batch whose packets are always the same, and that forgets what becomes of them.
pub struct Same {
    packets: Vec<Vec<u8>>,
    count: usize,
    scratch: [u8; PACKET_BYTES_MAX],
}

impl Same {
    /// Returns a batch of so many packets, taken from these in turn.
    pub fn new(packets: &[Vec<u8>], count: usize) -> Same {
        Same { packets: packets.to_vec(), count, scratch: [0; PACKET_BYTES_MAX] }
    }
}

impl Batch for Same {
    fn len(&self) -> usize {
        self.count
    }

    fn length(&self, index: usize) -> usize {
        self.packets[index % self.packets.len()].len()
    }

    fn modules(&self, _: usize) -> u64 {
        1
    }

    fn ingress(&self, _: usize) -> Ingress {
        Ingress::default()
    }

    fn read(&self, index: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.packets[index % self.packets.len()]);
    }

    fn write(&mut self, _: usize, packet: &[u8]) {
        self.scratch[..packet.len()].copy_from_slice(packet);
    }

    fn slot(&self, index: usize) -> usize {
        index
    }

    fn resize(&mut self, _: usize, _: usize) {}
}

impl Surroundings for Same {
    fn enter(&mut self, _: ModuleSlot) {}

    fn leave(&mut self) {}

    fn inject(&mut self, _: ModuleSlot, _: &[u8]) -> bool {
        true
    }

    fn failed(&mut self, _: ModuleSlot, refusal: Refusal, _: Host) {
        panic!("{refusal}");
    }
}

#[test]
#[ignore = "prints times, which nothing is checked against"]
fn nanoseconds_per_packet() {
    let null = guest("");
    let capture = |name: &str| -> Vec<Vec<u8>> {
        let bytes = std::fs::read(repository().join("modules").join(name)).unwrap();
        pcap::read(&bytes).unwrap().into_iter().map(|one| one.packet).collect()
    };
    let small = vec![capture("echo/tests/back.in.pcap")[0].clone()];
    let large = vec![capture("echo/tests/back.in.pcap")[1].clone()];
    let mixed = capture("net-monitor/tests/count.pcap");
    let register = vec![capture("keep-alive/tests/pass.pcap")[0].clone()];
    let notify = vec![capture("keep-alive/tests/answered.in.pcap")[0].clone()];
    println!("module        packets          batch of 1  of 64, ns per packet");
    show("null", "33 B", &null, &small);
    show("null", "1,428 B", &null, &large);
    show("echo", "33 B", &module("echo"), &small);
    show("echo", "1,428 B", &module("echo"), &large);
    show("net-monitor", "33 B", &module("net_monitor"), &small);
    show("net-monitor", "5 keys", &module("net_monitor"), &mixed);
    show("keep-alive", "REGISTER", &module("keep_alive"), &register);
    show("keep-alive", "NOTIFY", &module("keep_alive"), &notify);
}

fn show(name: &str, what: &str, wasm: &[u8], packets: &[Vec<u8>]) {
    let setup = Setup::new();
    let (one, many) =
        (time(setup.chain(&[(0, wasm)]), packets, 1), time(setup.chain(&[(0, wasm)]), packets, BATCH_PACKETS_MAX));
    println!("{name:13} {what:16} {one:10.1} {many:10.1}");
}

fn time(mut chain: Chain, packets: &[Vec<u8>], count: usize) -> f64 {
    let mut batch = Same::new(packets, count);
    let mut outcomes = Vec::new();
    let mut best = f64::MAX;
    for _ in 0..20 {
        let (start, mut rounds) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_millis(10) {
            for _ in 0..100 {
                chain.process(&mut batch, &mut outcomes);
            }
            rounds += 100;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds) / count as f64);
    }
    best
}

/// Returns a sample module.
pub fn module(name: &str) -> Vec<u8> {
    let path = repository().join("modules/target/wasm32-unknown-unknown/release").join(format!("{name}.wasm"));
    std::fs::read(path).expect("built by the other tests")
}
