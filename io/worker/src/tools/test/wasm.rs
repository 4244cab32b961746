// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker test`: a Wasm module under test.

use std::fs::File;
use std::time::Duration;

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::PACKET_BYTES_MAX;
use netserv_model::request::PacketCounts;
use netserv_model::{Instant, Refusal, RefusalKind};
use netserv_wire::container::ring::{Answer, Ingress};
use netserv_worker_base::shared::kv::KvStores;
use netserv_worker_packet::chain::{Chain, Outcome, PacketBatch, Surroundings, inject_all};
use netserv_worker_packet::engine::{Checked, Interruption, Runtime};
use netserv_worker_packet::host::{Clock, Entropy, Host, ManualClock};
use netserv_worker_packet::instance::{EPOCH_MS, Instance};

use super::case::{self, Case, Finished, Report, Tested, at};
use crate::tools::pcap::Captured;

/// A packet module that is compiled for tests: epochs end its endless loops.
pub struct Code {
    runtime: Runtime,
    checked: Checked,
}

impl Code {
    /// Compiles a module.
    ///
    /// # Errors
    /// Those of [`Runtime::compile`].
    pub fn compile(wasm: &[u8]) -> Result<Code, Refusal> {
        let runtime = runtime()?;
        let checked = runtime.compile(wasm)?;
        Ok(Code { runtime, checked })
    }

    /// Takes what `netserv-worker compile --for-tests` made of a module.
    ///
    /// # Errors
    /// Those of [`Runtime::load`].
    pub fn load(code: File) -> Result<Code, Refusal> {
        let runtime = runtime()?;
        let checked = runtime.load(code)?;
        Ok(Code { runtime, checked })
    }
}

fn runtime() -> Result<Runtime, Refusal> {
    Runtime::new(Interruption::Epochs).map_err(|error| Refusal::new(RefusalKind::NodeFailed, error.to_string()))
}

/// Runs a module on a test's packets. Code that there is not fails the test.
pub fn run(code: Result<&Code, &Refusal>, case: &Case) -> Report {
    case::run(case, |first, output| Run::start(code.map_err(Clone::clone)?, case, first, output))
}

const SLOT: ModuleSlot = ModuleSlot(0);

struct Run {
    clock: ManualClock,
    chain: Chain,
    outcomes: Vec<Outcome>,
    failed: Option<Finished>,
    _epochs: EpochThread,
}

/// The packets of a batch, and all that comes out.
struct Bench<'a> {
    time: Duration,
    batch: Vec<Vec<u8>>,
    output: &'a mut Vec<Captured>,
    failed: &'a mut Option<Finished>,
}

impl Run {
    fn start(code: &Code, case: &Case, first: Duration, output: &mut Vec<Captured>) -> Result<Run, Refusal> {
        let epochs = EpochThread::start(code.runtime.engine().clone());
        let clock = ManualClock::new(at(first));
        let name = "example.org/tested".parse().expect("a module name");
        let kv = KvStores::default().open(&name, 1);
        let host =
            Host::new(case.properties.clone(), case.limits, kv, Clock::Manual(clock.clone()), Entropy::Seeded(1));
        let mut instance = Instance::start(&code.checked, host)?;
        let mut failed = None;
        inject_all(SLOT, &mut instance, &mut Bench { time: first, batch: Vec::new(), output, failed: &mut failed });
        let mut chain = Chain::default();
        chain.insert(SLOT, vec![instance]);
        Ok(Run { clock, chain, outcomes: Vec::new(), failed, _epochs: epochs })
    }
}

impl Tested for Run {
    fn process(&mut self, time: Duration, packets: Vec<Vec<u8>>, output: &mut Vec<Captured>) {
        self.clock.set(at(time));
        let mut bench = Bench { time, batch: packets, output, failed: &mut self.failed };
        self.chain.process(&mut bench, &mut self.outcomes);
        bench.answer(&self.outcomes);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.chain.poll_timeout()
    }

    fn handle_timeout(&mut self, time: Duration, output: &mut Vec<Captured>) {
        self.clock.set(at(time));
        let mut bench = Bench { time, batch: Vec::new(), output, failed: &mut self.failed };
        self.chain.handle_timeout(at(time).instant, &mut bench);
    }

    fn finish(mut self, output: &mut Vec<Captured>) -> Finished {
        let Some(mut instance) = self.chain.remove(SLOT).and_then(|mut all| all.pop()) else {
            return self.failed.unwrap_or_default();
        };
        let failure = instance.stop().err();
        let time = Duration::from_nanos(self.clock.get().instant.as_nanos());
        inject_all(SLOT, &mut instance, &mut Bench { time, batch: Vec::new(), output, failed: &mut self.failed });
        let packets = instance.counts;
        let mut host = instance.into_host();
        Finished { failure, packets, counters: host.counters.all(), log: host.log.take() }
    }
}

impl Bench<'_> {
    fn answer(&mut self, outcomes: &[Outcome]) {
        for (packet, outcome) in self.batch.drain(..).zip(outcomes) {
            match outcome.answer {
                Answer::Pass | Answer::Modified => self.output.push(Captured { time: self.time, packet }),
                Answer::Drop | Answer::Failed => {}
            }
        }
    }
}

impl PacketBatch for Bench<'_> {
    fn len(&self) -> usize {
        self.batch.len()
    }

    fn length(&self, index: usize) -> usize {
        self.batch[index].len().min(PACKET_BYTES_MAX)
    }

    fn modules(&self, index: usize) -> u64 {
        // A packet that no slot holds is never shown to modules.
        u64::from(self.batch[index].len() <= PACKET_BYTES_MAX)
    }

    fn ingress(&self, _: usize) -> Ingress {
        Ingress { interface: 1, timestamp_ns: at(self.time).instant.as_nanos() }
    }

    fn read(&self, index: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.batch[index]);
    }

    fn write(&mut self, index: usize, packet: &[u8]) {
        self.batch[index] = packet.to_vec();
    }

    fn slot(&self, index: usize) -> usize {
        index
    }

    fn resize(&mut self, index: usize, length: usize) {
        self.batch[index].resize(length, 0);
    }
}

impl Surroundings for Bench<'_> {
    fn enter(&mut self, _: ModuleSlot) {}

    fn leave(&mut self) {}

    fn inject(&mut self, _: ModuleSlot, packet: &[u8]) -> bool {
        self.output.push(Captured { time: self.time, packet: packet.to_vec() });
        true
    }

    fn failed(&mut self, _: ModuleSlot, refusal: Refusal, rest: Vec<Host>) {
        let Some(mut rest) = rest.into_iter().next() else { return };
        *self.failed = Some(Finished {
            failure: Some(refusal),
            packets: PacketCounts::default(),
            counters: rest.counters.all(),
            log: rest.log.take(),
        });
    }
}

/// Steps the engine's epoch until it is dropped.
struct EpochThread {
    stop: std::sync::mpsc::Sender<()>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl EpochThread {
    fn start(engine: wasmtime::Engine) -> EpochThread {
        let (stop, stopped) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(EPOCH_MS))
                == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                engine.increment_epoch();
            }
        });
        EpochThread { stop, thread: Some(thread) }
    }
}

impl Drop for EpochThread {
    fn drop(&mut self) {
        // The thread may have ended; then nobody is left to be told.
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
