// SPDX-License-Identifier: Apache-2.0
//! Guests and surroundings for the worker's tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Instant, Now, Refusal, UnixTime};
use netserv_wire::container::ring::Ingress;
use netserv_worker_base::shared::kv::SharedKv;
use netserv_worker_packet::chain::{Chain, Outcome, PacketBatch, Surroundings};
use netserv_worker_packet::engine::{Interruption, Runtime};
use netserv_worker_packet::host::{Clock, Entropy, Host, ManualClock};
use netserv_worker_packet::instance::Instance;

/// Where the guests of [`guest`] have their first descriptor's verdict, and the first packet.
pub const VERDICT: u32 = 65_536 + 12;
pub const PACKET: u32 = 2 * 65_536 + 64;

/// Returns a guest that runs `process` for each batch. Its parameter is `$count`.
pub fn guest(process: &str) -> Vec<u8> {
    guest_with(process, "")
}

/// Returns a guest with further fields of the module.
pub fn guest_with(process: &str, fields: &str) -> Vec<u8> {
    guest_of("5", process, fields)
}

/// Returns a guest whose area has room for all slots of the ring, and whose memory cannot grow by more than a page.
pub fn roomy(process: &str, fields: &str) -> Vec<u8> {
    guest_of("42 43", process, fields)
}

/// The same for the rings of four lanes.
pub fn roomy_for_four(process: &str, fields: &str) -> Vec<u8> {
    guest_of("162 163", process, fields)
}

/// Runs `each` for every packet of a batch, with `$d` the address of its descriptor and `$p` of its first byte.
pub fn for_each_packet(each: &str) -> String {
    format!(
        "(local $n i32) (local $d i32) (local $p i32)
        (loop $next
            (local.set $d (i32.add (i32.const 65536) (i32.mul (local.get $n) (i32.const 32))))
            (local.set $p (i32.load (local.get $d)))
            {each}
            (br_if $next (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (local.get $count))))"
    )
}

fn guest_of(pages: &str, process: &str, fields: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "netserv" "log" (func $log (param i32 i32 i32) (result i32)))
            (import "netserv" "monotonic_ns" (func $monotonic_ns (result i64)))
            (import "netserv" "wall_ns" (func $wall_ns (result i64)))
            (import "netserv" "random" (func $random (param i32 i32) (result i32)))
            (import "netserv" "property_get" (func $property_get (param i32 i32 i32 i32) (result i32)))
            (import "netserv" "counter_open" (func $counter_open (param i32 i32) (result i32)))
            (import "netserv" "counter_add" (func $counter_add (param i32 i64) (result i32)))
            (import "netserv" "counter_set" (func $counter_set (param i32 i64) (result i32)))
            (import "netserv" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
            (import "netserv" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
            (import "netserv" "kv_delete" (func $kv_delete (param i32 i32) (result i32)))
            (import "netserv" "kv_next" (func $kv_next (param i32 i32 i32 i32) (result i32)))
            (import "netserv" "kv_increment" (func $kv_increment (param i32 i32 i64 i32) (result i32)))
            (import "netserv" "kv_compare_and_set"
                (func $kv_compare_and_set (param i32 i32 i32 i32 i32 i32) (result i32)))
            (import "netserv" "message_send" (func $message_send (param i32 i32) (result i32)))
            (import "netserv" "message_receive" (func $message_receive (param i32 i32) (result i32)))
            (import "netserv" "state_write" (func $state_write (param i32 i32) (result i32)))
            (import "netserv" "state_read" (func $state_read (param i32 i32) (result i32)))
            (import "netserv" "timer_set" (func $timer_set (param i32 i64 i64) (result i32)))
            (import "netserv" "timer_cancel" (func $timer_cancel (param i32) (result i32)))
            (import "netserv" "inject" (func $inject (param i32 i32) (result i32)))
            (import "netserv" "find" (func $find (param i32 i32 i32 i32) (result i32)))
            (import "netserv" "patterns_open" (func $patterns_open (param i32 i32 i32) (result i32)))
            (import "netserv" "patterns_find" (func $patterns_find (param i32 i32 i32 i32 i32) (result i32)))
            (import "netserv" "patterns_close" (func $patterns_close (param i32) (result i32)))
            (import "netserv" "sip_parse" (func $sip_parse (param i32 i32 i32 i32) (result i32)))
            (import "netserv" "hash" (func $hash (param i32 i32 i32 i32 i32) (result i32)))
            (memory (export "memory") {pages})
            (func (export "netserv_abi") (result i32) (i32.const 1))
            (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
            (func (export "netserv_start") (result i32) (i32.const 0))
            {fields}
            (func (export "netserv_process") (param $count i32) {process}))"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a guest that puts the result of an expression over the first packet's first four bytes.
pub fn guest_returning(expression: &str, fields: &str) -> Vec<u8> {
    let process =
        format!("(i32.store (i32.const {PACKET}) {expression}) (i32.store (i32.const {VERDICT}) (i32.const 2))");
    guest_with(&process, fields)
}

/// Returns one of the guests in `modules/fixtures/bad`.
pub fn bad_module(name: &str) -> Vec<u8> {
    let path = repository().join("modules/fixtures/bad").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if name.ends_with(".wat") { wat::parse_bytes(&bytes).unwrap().into_owned() } else { bytes }
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a guest gets unless a test says otherwise.
pub struct Setup {
    pub runtime: Runtime,
    pub limits: ModuleLimits,
    pub properties: BTreeMap<String, String>,
    pub kv: SharedKv,
    pub clock: ManualClock,
}

impl Setup {
    pub fn new() -> Setup {
        Setup {
            runtime: Runtime::new(Interruption::None).unwrap(),
            limits: ModuleLimits::default(),
            properties: BTreeMap::new(),
            kv: SharedKv::default(),
            clock: ManualClock::new(Now { instant: Instant::from_nanos(1_234), wall: UnixTime(5) }),
        }
    }

    pub fn start(&self, wasm: &[u8]) -> Result<Instance, Refusal> {
        let clock = Clock::Manual(self.clock.clone());
        let host = Host::new(self.properties.clone(), self.limits, self.kv.clone(), clock, Entropy::Seeded(7));
        Instance::start(&self.runtime.compile(wasm)?, host)
    }

    pub fn chain(&self, guests: &[(u8, &[u8])]) -> Chain {
        let mut chain = Chain::default();
        for (slot, wasm) in guests {
            assert!(chain.insert(ModuleSlot(*slot), vec![self.start(wasm).unwrap()]).is_none());
        }
        chain
    }
}

/// A batch in plain memory, and a record of what the chain did around it.
#[derive(Default)]
pub struct Bench {
    pub packets: Vec<(u64, Vec<u8>)>,
    pub running: Option<ModuleSlot>,
    pub entered: Vec<u8>,
    pub injected: Vec<(u8, Vec<u8>)>,
    pub room: Option<usize>,
    pub failed: Vec<(u8, Refusal)>,
    pub lines: Vec<String>,
}

impl Bench {
    pub fn new(packets: &[(u64, &[u8])]) -> Bench {
        let packets = packets.iter().map(|(modules, packet)| (*modules, packet.to_vec())).collect();
        Bench { packets, ..Bench::default() }
    }

    pub fn run(&mut self, chain: &mut Chain) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        chain.process(self, &mut outcomes);
        assert_eq!(self.running, None);
        outcomes
    }
}

impl PacketBatch for Bench {
    fn len(&self) -> usize {
        self.packets.len()
    }

    fn length(&self, index: usize) -> usize {
        self.packets[index].1.len()
    }

    fn modules(&self, index: usize) -> u64 {
        self.packets[index].0
    }

    fn ingress(&self, index: usize) -> Ingress {
        Ingress { interface: 3, timestamp_ns: 100 + index as u64 }
    }

    fn read(&self, index: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.packets[index].1);
    }

    fn write(&mut self, index: usize, packet: &[u8]) {
        self.packets[index].1 = packet.to_vec();
    }

    fn slot(&self, _: usize) -> usize {
        panic!("these packets are in no ring")
    }

    fn resize(&mut self, _: usize, _: usize) {
        panic!("these packets are in no ring")
    }
}

impl Surroundings for Bench {
    fn enter(&mut self, slot: ModuleSlot) {
        assert_eq!(self.running.replace(slot), None);
        self.entered.push(slot.0);
    }

    fn leave(&mut self) {
        assert!(self.running.take().is_some());
    }

    fn inject(&mut self, slot: ModuleSlot, packet: &[u8]) -> bool {
        if self.room.is_some_and(|room| self.injected.len() >= room) {
            return false;
        }
        self.injected.push((slot.0, packet.to_vec()));
        true
    }

    fn failed(&mut self, slot: ModuleSlot, refusal: Refusal, rest: Vec<Host>) {
        self.failed.push((slot.0, refusal));
        let lines = rest.into_iter().flat_map(|mut host| host.log.take());
        self.lines.extend(lines.map(|line| line.text));
    }
}
