// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker test`: recorded packets in, expected packets out, without a node and without root.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use netserv_model::command::ModuleSlot;
use netserv_model::limits::{BATCH_PACKETS_MAX, PACKET_BYTES_MAX};
use netserv_model::manifest::ModuleLimits;
use netserv_model::request::PacketCounts;
use netserv_model::{Instant, Now, Refusal, UnixTime};
use netserv_wire::container::ring::{Answer, Ingress};
use serde::Serialize;

use crate::chain::{Batch, Chain, Outcome, Surroundings, inject_all};
use crate::engine::{Interruption, Runtime};
use crate::host::{Clock, Entropy, Host};
use crate::instance::{EPOCH_MS, Instance};
use crate::kv::KvStores;
use crate::log::Line;
use crate::pcap::Captured;

/// One test of a module.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The packets that go in. Their times drive the module's clocks and timers.
    pub input: Vec<Captured>,
    /// The packets that must come out, in order.
    pub output: Vec<Captured>,
    /// What the module can read.
    pub properties: BTreeMap<String, String>,
    /// Counters that must have these values after the module stopped.
    pub counters: BTreeMap<String, u64>,
    /// What the module may use.
    pub limits: ModuleLimits,
}

/// What a test found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether everything was as expected.
    pub passed: bool,
    /// Why the module failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Refusal>,
    /// The first packet that is not as expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Counters that are not as expected: what was expected and what the module counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wrong_counters: BTreeMap<String, (u64, Option<u64>)>,
    /// What became of the packets.
    pub packets: PacketCounts,
    /// All of the module's counters.
    pub counters: BTreeMap<String, u64>,
    /// What the module wrote to its log, each line behind its level.
    pub log: Vec<String>,
    /// The packets that came out.
    #[serde(skip)]
    pub output: Vec<Captured>,
}

/// The first packet that came out other than expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which packet of the output, from 1.
    pub packet: usize,
    /// The first byte that differs, if both packets are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte: Option<usize>,
    /// The expected packet in hexadecimal; nothing if there should be none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The packet that came out in hexadecimal; nothing if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

/// Runs a module on a test's packets.
pub fn run(wasm: &[u8], case: &Case) -> Report {
    let mut report = Report {
        passed: false,
        failure: None,
        difference: None,
        wrong_counters: BTreeMap::new(),
        packets: PacketCounts::default(),
        counters: BTreeMap::new(),
        log: Vec::new(),
        output: Vec::new(),
    };
    match Run::start(wasm, case) {
        Ok(mut run) => {
            run.packets(&case.input);
            run.finish(&mut report);
        }
        Err(refusal) => report.failure = Some(refusal),
    }
    report.difference = difference(&case.output, &report.output);
    for (name, expected) in &case.counters {
        let actual = report.counters.get(name).copied();
        if actual != Some(*expected) {
            report.wrong_counters.insert(name.clone(), (*expected, actual));
        }
    }
    report.passed = report.failure.is_none() && report.difference.is_none() && report.wrong_counters.is_empty();
    report
}

const SLOT: ModuleSlot = ModuleSlot(0);

struct Run {
    clock: Rc<Cell<Now>>,
    chain: Chain,
    bench: Bench,
    _epochs: EpochThread,
}

/// The packets of a batch, and all that comes out.
#[derive(Default)]
struct Bench {
    time: Duration,
    batch: Vec<Vec<u8>>,
    output: Vec<Captured>,
    failed: Option<(Refusal, BTreeMap<String, u64>, Vec<Line>)>,
}

impl Run {
    fn start(wasm: &[u8], case: &Case) -> Result<Run, Refusal> {
        let engine_failed =
            |error: wasmtime::Error| Refusal::new(netserv_model::RefusalKind::NodeFailed, error.to_string());
        let runtime = Runtime::new(Interruption::Epochs).map_err(engine_failed)?;
        let checked = runtime.compile(wasm)?;
        let epochs = EpochThread::start(runtime.engine().clone());
        let first = case.input.first().map_or(Duration::ZERO, |first| first.time);
        let clock = Rc::new(Cell::new(at(first)));
        let name = "example.org/tested".parse().expect("a module name");
        let kv = KvStores::default().open(&name, 1);
        let host =
            Host::new(case.properties.clone(), case.limits, kv, Clock::Manual(Rc::clone(&clock)), Entropy::Seeded(1));
        let mut chain = Chain::default();
        chain.insert(SLOT, Instance::start(&checked, host)?);
        let mut bench = Bench { time: first, ..Bench::default() };
        for (slot, instance) in chain.iter_mut() {
            inject_all(slot, instance, &mut bench);
        }
        Ok(Run { clock, chain, bench, _epochs: epochs })
    }

    fn packets(&mut self, input: &[Captured]) {
        let mut outcomes = Vec::new();
        for same_time in input.chunk_by(|one, next| one.time == next.time) {
            for batch in same_time.chunks(BATCH_PACKETS_MAX) {
                self.timers_until(batch[0].time);
                self.bench.batch = batch.iter().map(|one| one.packet.clone()).collect();
                self.chain.process(&mut self.bench, &mut outcomes);
                self.bench.answer(&outcomes);
            }
        }
    }

    /// Lets every timer come due at its own time.
    fn timers_until(&mut self, time: Duration) {
        let until = at(time);
        while let Some(due) = self.chain.poll_timeout().filter(|due| *due <= until.instant) {
            let ahead = until.instant.since(due);
            self.clock.set(at(time.saturating_sub(ahead)));
            self.bench.time = time.saturating_sub(ahead);
            self.chain.handle_timeout(due, &mut self.bench);
        }
        self.clock.set(until);
        self.bench.time = time;
    }

    fn finish(mut self, report: &mut Report) {
        if let Some(mut instance) = self.chain.remove(SLOT) {
            report.failure = instance.stop().err();
            inject_all(SLOT, &mut instance, &mut self.bench);
            report.packets = instance.counts;
            let mut host = instance.into_host();
            report.counters = host.counters.all();
            report.log = lines(&host.log.take());
        }
        if let Some((refusal, counters, log)) = self.bench.failed.take() {
            report.failure = Some(refusal);
            report.counters = counters;
            report.log = lines(&log);
        }
        report.output = self.bench.output;
    }
}

impl Bench {
    fn answer(&mut self, outcomes: &[Outcome]) {
        for (packet, outcome) in self.batch.drain(..).zip(outcomes) {
            match outcome.answer {
                Answer::Pass | Answer::Modified => self.output.push(Captured { time: self.time, packet }),
                Answer::Drop | Answer::Failed => {}
            }
        }
    }
}

impl Batch for Bench {
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

impl Surroundings for Bench {
    fn enter(&mut self, _: ModuleSlot) {}

    fn leave(&mut self) {}

    fn inject(&mut self, _: ModuleSlot, packet: &[u8]) -> bool {
        self.output.push(Captured { time: self.time, packet: packet.to_vec() });
        true
    }

    fn failed(&mut self, _: ModuleSlot, refusal: Refusal, mut rest: Host) {
        self.failed = Some((refusal, rest.counters.all(), rest.log.take()));
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

fn at(time: Duration) -> Now {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Now { instant: Instant::from_nanos(nanos), wall: UnixTime(millis) }
}

fn lines(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| format!("{}: {}", line.level.as_str(), line.text)).collect()
}

fn difference(expected: &[Captured], actual: &[Captured]) -> Option<Difference> {
    for index in 0..expected.len().max(actual.len()) {
        let (expected, actual) = (expected.get(index), actual.get(index));
        let (expected, actual) = (expected.map(|one| &*one.packet), actual.map(|one| &*one.packet));
        if expected != actual {
            let byte = expected.zip(actual).map(|(expected, actual)| {
                let same = expected.iter().zip(actual).take_while(|(one, other)| one == other);
                same.count()
            });
            return Some(Difference {
                packet: index + 1,
                byte,
                expected: expected.map(hexdump),
                actual: actual.map(hexdump),
            });
        }
    }
    None
}

/// Returns sixteen bytes a line, with their offset in front and their characters behind.
fn hexdump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in bytes.chunks(16).enumerate() {
        let _ = write!(text, "{:04x} ", line * 16);
        for byte in bytes {
            let _ = write!(text, " {byte:02x}");
        }
        let printable =
            bytes.iter().map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' });
        let _ = writeln!(text, "{}  {}", "   ".repeat(16 - bytes.len()), printable.collect::<String>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        let one = |bytes: &[u8]| Captured { time: Duration::ZERO, packet: bytes.to_vec() };
        assert_eq!(difference(&[one(b"abc")], &[one(b"abc")]), None);
        let found = difference(&[one(b"abc"), one(b"abcd")], &[one(b"abc"), one(b"abX\0")]).unwrap();
        assert_eq!((found.packet, found.byte), (2, Some(2)));
        assert_eq!(found.actual.unwrap(), format!("0000  61 62 58 00{}  abX.\n", "   ".repeat(12)));
        let missing = difference(&[one(b"abc")], &[]).unwrap();
        assert_eq!((missing.packet, missing.byte, missing.actual), (1, None, None));
        assert!(difference(&[], &[one(b"abc")]).unwrap().expected.is_none());
    }
}
