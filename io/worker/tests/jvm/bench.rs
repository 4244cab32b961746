// SPDX-License-Identifier: Apache-2.0
//! How long a crossing takes, for people; with `JAVA_HOME` set, on that Java:
//! `cargo test --release -p netserv-worker --test jvm -- --ignored --nocapture bench`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::ring::{Arrival, HostEnd, Ingress, WorkerEnd};
use netserv_worker_base::link::ring_memory::RingMemory;
use netserv_worker_jvm::bundles::Bundles;
use netserv_worker_jvm::home::{JavaHome, Places};
use netserv_worker_jvm::options::Archive;
use netserv_worker_jvm::outbox::{FromJava, Outbox};
use netserv_worker_jvm::start::{HEADER_WORDS, Host, Purpose, RingParts};
use netserv_worker_jvm::{BundleLoad, packet_thread};

use crate::host::{built, odd};
use crate::node::sys;
use crate::support::{host_jars, java_homes};

/// Which Java the process of a bench runs.
const JAVA: &str = "NETSERV_BENCH_JAVA";
/// Whether it runs the real host, with a bundle that passes packets, and not the stand-in.
const REAL: &str = "NETSERV_BENCH_HOST";

#[test]
#[ignore = "prints times, which nothing is checked against"]
fn nanoseconds_per_packet() {
    // A process has one JVM, so each gets its own.
    println!("Java  what            batch of 1  of 64  of it in Java, ns per packet");
    for (java_home, is_real) in java_homes().into_iter().flat_map(|home| [(home.clone(), false), (home, true)]) {
        if is_real && built().is_none() {
            continue;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--nocapture", "--exact", "bench::of_one_java"]).env(JAVA, java_home);
        if is_real {
            command.env(REAL, "1");
        }
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
    let home = JavaHome::open(java_home.as_ref()).unwrap();
    let is_real = std::env::var_os(REAL).is_some();
    packet_thread(|| {
        let mut rig = Rig::new(&home, is_real);
        let mut best = [[f64::MAX; 2]; 2];
        for _ in 0..40 {
            for (best, count) in best.iter_mut().zip([1, BATCH_PACKETS_MAX]) {
                for (best, run) in best.iter_mut().zip(rig.run(count)) {
                    *best = best.min(run);
                }
            }
        }
        let [[one, _], [many, inside]] = best;
        let what = if is_real { "host and bundle" } else { "crossing alone" };
        println!("\n| {:4}  {what:15} {one:10.1} {many:6.1}   {inside:6.1}", home.version);
    });
}

/// Both ends of a ring in this process, with the stand-in at the worker's.
struct Rig {
    node: HostEnd<&'static [AtomicU64]>,
    worker: WorkerEnd<&'static [AtomicU64]>,
    host: Host,
    arrivals: Vec<Arrival>,
    _data: tempfile::TempDir,
}

impl Rig {
    fn new(home: &JavaHome, is_real: bool) -> Rig {
        let (memory, words) = sys::ring();
        let memory = RingMemory::open(memory).unwrap();
        let node = HostEnd::new(words).unwrap();
        let worker = WorkerEnd::new(memory.words()).unwrap();
        let ring = RingParts { slots: memory.slots().words(), header: &memory.words()[..HEADER_WORDS] };
        let data = tempfile::tempdir().unwrap();
        let jar = Bundles::open(data.path()).unwrap().add(File::open(odd()).unwrap()).unwrap();
        let jars = if is_real { built().unwrap().join("host") } else { host_jars() };
        let places = Places { host: jars, blocks: data.path().to_owned(), data: data.path().to_owned() };
        let purpose = Purpose { home, places: &places, memory_bytes: 64 << 20, archive: Archive::Default, test: false };
        let host = Host::start(&purpose, ring, Outbox::leak().unwrap(), Box::new(|end| panic!("{end:?}"))).unwrap();
        let load = BundleLoad {
            slot: ModuleSlot(0),
            module: &"example.org/null@1.0.0".parse().unwrap(),
            jar: &jar,
            properties: &BTreeMap::new(),
            limits: &ModuleLimits::default(),
            state_schema: 1,
            blocks: &BTreeSet::new(),
            control: 0,
        };
        host.bridge.load(&load).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match host.outbox.poll_event() {
                Some(FromJava::Ready(_)) => {}
                Some(event) => break assert_eq!(event, FromJava::Loaded(ModuleSlot(0))),
                None => assert!(Instant::now() < until, "the bundle does not start"),
            }
            std::thread::yield_now();
        }
        Rig { node, worker, host, arrivals: Vec::with_capacity(BATCH_PACKETS_MAX), _data: data }
    }

    /// Sends a batch through. Returns how long the worker's part took, and the call of it.
    fn round(&mut self, count: usize) -> [Duration; 2] {
        for _ in 0..count {
            self.node.push(&[5; 64], Ingress::default(), 1, 0).unwrap();
        }
        self.node.publish();
        let start = Instant::now();
        let batch = &self.host.batch;
        let arrivals = &mut self.arrivals;
        while let Some(arrival) = self.worker.pop().unwrap() {
            batch.write(arrivals.len(), arrival.slot(), arrival.length(), arrival.ingress, arrival.modules);
            arrivals.push(arrival);
        }
        let call = Instant::now();
        assert_eq!(self.host.bridge.process(arrivals.len()), Ok(0));
        let call = call.elapsed();
        for (index, arrival) in arrivals.drain(..).enumerate() {
            let left = batch.read(index).unwrap();
            self.worker.answer(arrival, left.answer, left.module).unwrap();
        }
        self.worker.publish();
        let took = start.elapsed();
        while self.node.pop().unwrap().is_some() {}
        [took, call]
    }

    /// Returns nanoseconds per packet of the worker's part, and of the call, over 20 ms.
    fn run(&mut self, count: usize) -> [f64; 2] {
        let clock = (0..1000).map(|_| Instant::now().elapsed()).min().unwrap();
        let (start, mut took, mut rounds) = (Instant::now(), [Duration::ZERO; 2], 0);
        while start.elapsed() < Duration::from_millis(20) {
            for _ in 0..20 {
                // The first is measured around the second.
                let [whole, call] = self.round(count);
                took[0] += whole.saturating_sub(clock * 3);
                took[1] += call.saturating_sub(clock);
            }
            rounds += 20;
        }
        took.map(|took| took.as_secs_f64() * 1e9 / f64::from(rounds) / count as f64)
    }
}
