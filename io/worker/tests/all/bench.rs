// SPDX-License-Identifier: Apache-2.0
//! How long modules take, for people:
//! `cargo test --release -p netserv-worker --test all -- --ignored --nocapture bench`.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use netserv_model::Refusal;
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{BATCH_PACKETS_MAX, PACKET_BYTES_MAX};
use netserv_wire::container::ring::{Arrival, HostEnd, Ingress, WorkerEnd};
use netserv_worker::tools::pcap;
use netserv_worker_base::link::ring_memory::RingMemory;
use netserv_worker_packet::chain::{Chain, Outcome, PacketBatch, Surroundings};
use netserv_worker_packet::host::Host;

use crate::node::sys;
use crate::samples;
use crate::support::{Setup, for_each_packet, repository, roomy};

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

impl PacketBatch for Same {
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

    fn failed(&mut self, _: ModuleSlot, refusal: Refusal, _: Vec<Host>) {
        panic!("{refusal}");
    }
}

/// Both ends of a ring in this process, with a chain of modules at the worker's.
struct Rig {
    host: HostEnd<&'static [AtomicU64]>,
    worker: Around,
    chain: Chain,
    outcomes: Vec<Outcome>,
}

struct Around {
    ring: WorkerEnd<&'static [AtomicU64]>,
    arrivals: Vec<Arrival>,
}

impl Rig {
    fn new(wasm: &[u8], mapped: bool) -> Rig {
        let (memory, words) = sys::ring();
        let memory = RingMemory::open(memory).unwrap();
        let host = HostEnd::new(words).unwrap();
        let worker = Around { ring: WorkerEnd::new(memory.words()).unwrap(), arrivals: Vec::new() };
        let mut chain = Setup::new().chain(&[(0, wasm)]);
        for (_, instance) in chain.iter_mut() {
            assert!(!mapped || instance[0].map(memory.slots()).unwrap(), "the module has room for the ring's slots");
        }
        Rig { host, worker, chain, outcomes: Vec::new() }
    }

    /// Sends a batch through. Returns how long the worker's part took.
    fn round(&mut self, packets: &[Vec<u8>], count: usize) -> Duration {
        for packet in packets.iter().cycle().take(count) {
            self.host.push(packet, Ingress::default(), 1, 0).unwrap();
        }
        self.host.publish();
        let start = Instant::now();
        while let Some(arrival) = self.worker.ring.pop().unwrap() {
            self.worker.arrivals.push(arrival);
        }
        self.chain.process(&mut self.worker, &mut self.outcomes);
        for (arrival, outcome) in self.worker.arrivals.drain(..).zip(&self.outcomes) {
            self.worker.ring.answer(arrival, outcome.answer, outcome.module).unwrap();
        }
        self.worker.ring.publish();
        let took = start.elapsed();
        while self.host.pop().unwrap().is_some() {}
        took
    }

    /// Returns nanoseconds per packet of the worker's part, over 10 ms.
    fn run(&mut self, packets: &[Vec<u8>], count: usize) -> f64 {
        let clock = (0..1000).map(|_| Instant::now().elapsed()).min().unwrap();
        let (start, mut took, mut rounds) = (Instant::now(), Duration::ZERO, 0);
        while start.elapsed() < Duration::from_millis(10) {
            for _ in 0..20 {
                took += self.round(packets, count).saturating_sub(clock);
            }
            rounds += 20;
        }
        took.as_secs_f64() * 1e9 / f64::from(rounds) / count as f64
    }
}

impl PacketBatch for Around {
    fn len(&self) -> usize {
        self.arrivals.len()
    }

    fn length(&self, index: usize) -> usize {
        self.arrivals[index].length()
    }

    fn modules(&self, index: usize) -> u64 {
        self.arrivals[index].modules
    }

    fn ingress(&self, index: usize) -> Ingress {
        self.arrivals[index].ingress
    }

    fn read(&self, index: usize, into: &mut [u8]) {
        self.ring.read(&self.arrivals[index], into);
    }

    fn write(&mut self, index: usize, packet: &[u8]) {
        self.ring.write(&mut self.arrivals[index], packet).unwrap();
    }

    fn slot(&self, index: usize) -> usize {
        self.arrivals[index].slot()
    }

    fn resize(&mut self, index: usize, length: usize) {
        self.ring.resize(&mut self.arrivals[index], length).unwrap();
    }
}

impl Surroundings for Around {
    fn enter(&mut self, slot: ModuleSlot) {
        self.ring.enter(slot);
    }

    fn leave(&mut self) {
        self.ring.leave();
    }

    fn inject(&mut self, slot: ModuleSlot, packet: &[u8]) -> bool {
        self.ring.inject(packet, slot).is_ok()
    }

    fn failed(&mut self, _: ModuleSlot, refusal: Refusal, _: Vec<Host>) {
        panic!("{refusal}");
    }
}

#[test]
#[ignore = "prints times, which nothing is checked against"]
fn nanoseconds_per_packet() {
    let null = roomy("", "");
    println!("module       packets                batch of 1  of 64, ns per packet");
    for length in [64, 340, 1500] {
        show("null", &format!("{length} B"), &null, &udp(length));
    }
    for length in [64, 340, 1500] {
        show("net-monitor", &format!("{length} B"), &module("net_monitor"), &udp(length));
    }
    let capture = |name: &str| -> Vec<Vec<u8>> {
        let bytes = std::fs::read(repository().join("modules/samples/keep-alive/tests").join(name)).unwrap();
        vec![pcap::read(&bytes).unwrap().remove(0).packet]
    };
    show("keep-alive", "REGISTER", &module("keep_alive"), &capture("pass.pcap"));
    show("keep-alive", "NOTIFY", &module("keep_alive"), &capture("answered.in.pcap"));
}

#[test]
#[ignore = "prints times, which nothing is checked against"]
fn nanoseconds_per_search() {
    println!("search       packets                batch of 1  of 64, ns per packet");
    for length in [64, 340, 1500] {
        let packets = packet_with_needle(length);
        let what = format!("{length} B");
        show("nothing", &what, &searching("", "(i32.const 0)"), &packets);
        show("own loop", &what, &searching("", OWN_LOOP), &packets);
        show("find", &what, &searching("", FIND), &packets);
        for count in [1, 10, 100, 1000] {
            // They begin with any letter, so that hardly a byte can be skipped.
            let letters = (b'a'..=b'z').map(char::from).cycle();
            let list = (0..count).zip(letters).map(|(number, letter)| format!("\\08\\00{letter}{number:03}none"));
            let list = list.collect::<String>();
            let start = format!(
                "(global.set $set (call $patterns_open (i32.const 16) (i32.const {}) (i32.const 0)))",
                10 * count
            );
            show(&format!("{count} patterns"), &what, &searching(&list, &start), &packets);
        }
    }
    let register = std::fs::read(repository().join("modules/samples/keep-alive/tests/pass.pcap")).unwrap();
    let register = vec![pcap::read(&register).unwrap().remove(0).packet];
    show("sip_parse", "REGISTER", &searching("", SIP_PARSE), &register);
    show(
        "xxh3",
        "REGISTER",
        &searching("", "(call $hash (i32.const 5) (local.get $p) (local.get $length) (i32.const 0) (i32.const 8))"),
        &register,
    );
    show(
        "sha256",
        "REGISTER",
        &searching("", "(call $hash (i32.const 1) (local.get $p) (local.get $length) (i32.const 0) (i32.const 32))"),
        &register,
    );
}

/// Looks for four bytes one after the other, as a module without the node's help does.
const OWN_LOOP: &str = "(block $found (result i32)
    (local.set $at (local.get $p))
    (loop $search
        (drop (br_if $found (local.get $at) (i32.eq (i32.load (local.get $at)) (i32.load (i32.const 0)))))
        (br_if $search (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1)))
            (i32.add (local.get $p) (i32.sub (local.get $length) (i32.const 3))))))
    (i32.const -1))";
const FIND: &str = "(call $find (local.get $p) (local.get $length) (i32.const 0) (i32.const 4))";
const SIP_PARSE: &str = "(call $sip_parse (i32.add (local.get $p) (i32.const 28))
    (i32.sub (local.get $length) (i32.const 28)) (i32.const 1024) (i32.const 1024))";

/// Returns a guest that runs an expression for each packet, which is at `$p`, or that opens patterns in it once and then
/// looks for them. Its memory begins with what is looked for.
fn searching(patterns: &str, expression: &str) -> Vec<u8> {
    let search = match patterns {
        "" => expression.to_owned(),
        _ => format!(
            "(call $patterns_find (block (result i32)
                (if (i32.lt_s (global.get $set) (i32.const 0)) (then {expression}))
                (if (i32.lt_s (global.get $set) (i32.const 0)) (then unreachable)) (global.get $set))
                (local.get $p) (local.get $length) (i32.const 1024) (i32.const 120))"
        ),
    };
    let each = for_each_packet(&format!("(local.set $length (i32.load offset=4 (local.get $d))) (drop {search})"));
    let fields = format!(
        "(global $set (mut i32) (i32.const -1)) (data (i32.const 0) \"ndle\") (data (i32.const 16) \"{patterns}\")"
    );
    roomy(&format!("(local $at i32) (local $length i32) {each}"), &fields)
}

/// Returns a packet whose last bytes are what is looked for.
fn packet_with_needle(length: usize) -> Vec<Vec<u8>> {
    let mut packet = udp(length).remove(0);
    for (at, byte) in (28..).zip(&mut packet[28..]) {
        *byte = b"the quick brown fox jumps over the lazy dog "[at % 44];
    }
    packet[length - 4..].copy_from_slice(b"ndle");
    vec![packet]
}

fn show(name: &str, what: &str, wasm: &[u8], packets: &[Vec<u8>]) {
    let mut ways = [("copied", Rig::new(wasm, false)), ("mapped", Rig::new(wasm, true))];
    let mut best = [[f64::MAX; 2]; 2];
    for _ in 0..20 {
        for ((_, rig), best) in ways.iter_mut().zip(&mut best) {
            for (best, count) in best.iter_mut().zip([1, BATCH_PACKETS_MAX]) {
                *best = best.min(rig.run(packets, count));
            }
        }
    }
    for ((way, _), [one, many]) in ways.iter().zip(best) {
        println!("{name:12} {what:10} {way:10} {one:12.1} {many:10.1}");
    }
}

/// Returns a UDP packet of so many bytes, as the only one of its kind.
fn udp(length: usize) -> Vec<Vec<u8>> {
    let mut packet = vec![0; length];
    let total = u16::try_from(length).unwrap();
    packet[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]);
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 2, 0, 1]);
    packet[20..24].copy_from_slice(&[0x13, 0xc4, 0x13, 0xc4]);
    packet[24..26].copy_from_slice(&(total - 20).to_be_bytes());
    vec![packet]
}

/// Returns a sample module.
pub fn module(name: &str) -> Vec<u8> {
    std::fs::read(samples::wasm("wasm32-unknown-unknown", name)).unwrap()
}
