// SPDX-License-Identifier: Apache-2.0
//! How long a crossing takes, for people; with `JAVA_HOME` set, on that Java:
//! `cargo test --release -p netserv-worker --test jvm -- --ignored --nocapture bench`.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use netserv_model::command::ModuleSlot;
use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::ring::{HostEnd, Ingress, WorkerEnd};
use netserv_worker::jvm::home::{JavaHome, Places};
use netserv_worker::jvm::options::Archive;
use netserv_worker::jvm::outbox::FromJava;
use netserv_worker::jvm::start::{HEADER_WORDS, Host, Purpose, RingParts};
use netserv_worker::jvm::{Load, packet_thread};
use netserv_worker::ring_memory::RingMemory;

use crate::node::sys;
use crate::support::{host_jars, java_homes};

/// Which Java the process of a bench runs.
const JAVA: &str = "NETSERV_BENCH_JAVA";

#[test]
#[ignore = "prints times, which nothing is checked against"]
fn nanoseconds_per_packet() {
    // A process has one JVM, so each gets its own.
    println!("Java  packets  batch of 1  of 64, ns per packet");
    for java_home in java_homes() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--nocapture", "--exact", "bench::of_one_java"]).env(JAVA, java_home);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        text.lines().filter_map(|line| line.strip_prefix("| ")).for_each(|line| println!("{line}"));
    }
}

#[test]
#[ignore = "a part of the bench"]
fn of_one_java() {
    let Some(java_home) = std::env::var_os(JAVA) else { return };
    packet_thread(|| {
        let mut rig = Rig::new(&JavaHome::open(java_home.as_ref()).unwrap());
        let mut best = [f64::MAX; 2];
        for _ in 0..40 {
            for (best, count) in best.iter_mut().zip([1, BATCH_PACKETS_MAX]) {
                *best = best.min(rig.run(count));
            }
        }
        let [one, many] = best;
        println!("\n| {:4}  null     {one:10.1} {many:6.1}", rig.version);
    });
}

/// Both ends of a ring in this process, with the stand-in at the worker's.
struct Rig {
    version: u32,
    node: HostEnd<&'static [AtomicU64]>,
    worker: WorkerEnd<&'static [AtomicU64]>,
    host: Host,
}

impl Rig {
    fn new(home: &JavaHome) -> Rig {
        let (memory, words) = sys::ring();
        let memory = RingMemory::open(memory).unwrap();
        let node = HostEnd::new(words).unwrap();
        let worker = WorkerEnd::new(memory.words()).unwrap();
        let ring = RingParts { slots: memory.slots(), header: &memory.words()[..HEADER_WORDS] };
        let data = tempfile::tempdir().unwrap();
        let places = Places { host: host_jars(), blocks: data.path().to_owned(), data: data.path().to_owned() };
        let purpose = Purpose { home, places: &places, memory_bytes: 64 << 20, archive: Archive::Default, test: false };
        let host = Host::start(&purpose, ring, Box::new(|end| panic!("{end:?}"))).unwrap();
        let load = Load {
            slot: ModuleSlot(0),
            module: &"example.org/null@1.0.0".parse().unwrap(),
            jar: data.path(),
            properties: &BTreeMap::new(),
            limits: &ModuleLimits::default(),
            state_schema: 1,
        };
        host.bridge.load(&load).unwrap();
        let events: Vec<_> = std::iter::from_fn(|| host.outbox.poll_event()).collect();
        assert_eq!(events.last(), Some(&FromJava::Loaded(ModuleSlot(0))));
        Rig { version: home.version, node, worker, host }
    }

    /// Sends a batch through. Returns how long the worker's part took.
    fn round(&mut self, count: usize) -> Duration {
        for _ in 0..count {
            self.node.push(&[5; 64], Ingress::default(), 1, 0).unwrap();
        }
        self.node.publish();
        let start = Instant::now();
        let batch = &self.host.batch;
        let mut arrivals = Vec::with_capacity(BATCH_PACKETS_MAX);
        while let Some(arrival) = self.worker.pop().unwrap() {
            batch.write(arrivals.len(), arrival.slot(), arrival.length(), arrival.ingress, arrival.modules);
            arrivals.push(arrival);
        }
        assert_eq!(self.host.bridge.process(arrivals.len()), Ok(0));
        for (index, arrival) in arrivals.into_iter().enumerate() {
            let left = batch.read(index).unwrap();
            self.worker.answer(arrival, left.answer, left.module).unwrap();
        }
        self.worker.publish();
        let took = start.elapsed();
        while self.node.pop().unwrap().is_some() {}
        took
    }

    /// Returns nanoseconds per packet of the worker's part, over 20 ms.
    fn run(&mut self, count: usize) -> f64 {
        let clock = (0..1000).map(|_| Instant::now().elapsed()).min().unwrap();
        let (start, mut took, mut rounds) = (Instant::now(), Duration::ZERO, 0);
        while start.elapsed() < Duration::from_millis(20) {
            for _ in 0..20 {
                took += self.round(count).saturating_sub(clock);
            }
            rounds += 20;
        }
        took.as_secs_f64() * 1e9 / f64::from(rounds) / count as f64
    }
}
