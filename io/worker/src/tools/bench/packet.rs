// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker bench`: how long a packet module takes for a packet.
//!
//! What is measured is what a node does for a container with more than one module: copy packets in, call the module,
//! read its verdicts, copy out what it modified. Rounds alternate between batches and single packets, so that whatever
//! else the machine does meets both.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use netserv_model::limits::{BATCH_PACKETS_MAX, PACKET_BYTES_MAX};
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Refusal, RefusalKind, Verdict};
use netserv_wire::container::ring::Ingress;
use netserv_worker_base::shared::kv::KvStores;
use netserv_worker_packet::engine::{Interruption, Runtime};
use netserv_worker_packet::host::{Clock, Entropy, Host};
use netserv_worker_packet::instance::{Instance, Left};
use serde::Serialize;

/// A packet for modules without recorded ones: UDP over IPv4, 36 bytes.
pub const SAMPLE: &[u8] = &[
    0x45, 0, 0, 36, 0, 1, 0, 0, 64, 17, 0x55, 0x64, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0x13, 0xc4, 0, 16, 0, 0, 1,
    2, 3, 4, 5, 6, 7, 8,
];
/// Rounds of each kind.
const ROUNDS: usize = 7;

/// What is measured with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The packets, shown over and over again.
    pub packets: Vec<Vec<u8>>,
    /// What the module can read.
    pub properties: BTreeMap<String, String>,
    /// What it may use.
    pub limits: ModuleLimits,
    /// How long all rounds take together, roughly.
    pub time: Duration,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Nanoseconds per packet in batches of 64: the median round, the fastest and the slowest.
    pub ns_in_batches: Spread,
    /// Nanoseconds per packet when each comes alone.
    pub ns_alone: Spread,
    /// Packets that were shown.
    pub packets: u64,
    /// Of these, how many the module dropped.
    pub dropped: u64,
    /// Of these, how many the module modified.
    pub modified: u64,
    /// Bytes of the module's memory at the end. Pages that it never touched take no room.
    pub memory_bytes: usize,
    /// Bytes of its memory that are not zero pages.
    pub touched_bytes: usize,
    /// Microseconds that instantiation and start took.
    pub start_us: u64,
    /// Milliseconds that compiling took, which a node does once when it downloads the module.
    pub compile_ms: u64,
    /// Bytes of the WebAssembly file.
    pub wasm_bytes: usize,
}

/// The middle, the least and the greatest of some rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Sorts rounds; all zero if there are none.
    pub fn of(mut rounds: Vec<f64>) -> Spread {
        rounds.sort_by(f64::total_cmp);
        let at = |index: usize| rounds.get(index).copied().unwrap_or_default();
        Spread { median: at(rounds.len() / 2), least: at(0), greatest: at(rounds.len().saturating_sub(1)) }
    }
}

/// Measures a module.
///
/// # Errors
/// It cannot be compiled or started, or it fails at the packets.
pub fn run(wasm: &[u8], setting: &Setting) -> Result<Report, Refusal> {
    let failed = |error: wasmtime::Error| Refusal::new(RefusalKind::NodeFailed, error.to_string());
    let runtime = Runtime::new(Interruption::None).map_err(failed)?;
    let began = Instant::now();
    let checked = runtime.compile(wasm)?;
    let compile_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let name = "example.org/measured".parse().expect("a module name");
    let kv = KvStores::default().open(&name, 1);
    let host = Host::new(setting.properties.clone(), setting.limits, kv, Clock::System, Entropy::Seeded(1));
    let began = Instant::now();
    let instance = Instance::start(&checked, host)?;
    let start_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let mut work = Work { instance, left: Vec::new(), dropped: 0, modified: 0, packets: 0 };
    let each = setting.time / u32::try_from(2 * ROUNDS + 2).unwrap_or(u32::MAX);
    let (mut batches, mut alone) = (Vec::new(), Vec::new());
    // The first round warms caches up and does not count.
    work.round(&setting.packets, BATCH_PACKETS_MAX, each)?;
    work.round(&setting.packets, 1, each)?;
    for _ in 0..ROUNDS {
        batches.push(work.round(&setting.packets, BATCH_PACKETS_MAX, each)?);
        alone.push(work.round(&setting.packets, 1, each)?);
    }
    let memory = work.instance.memory_bytes();
    let touched = memory.chunks(4096).filter(|page| page.iter().any(|byte| *byte != 0)).count() * 4096;
    Ok(Report {
        ns_in_batches: Spread::of(batches),
        ns_alone: Spread::of(alone),
        packets: work.packets,
        dropped: work.dropped,
        modified: work.modified,
        memory_bytes: memory.len(),
        touched_bytes: touched,
        start_us,
        compile_ms,
        wasm_bytes: wasm.len(),
    })
}

struct Work {
    instance: Instance,
    left: Vec<Left>,
    packets: u64,
    dropped: u64,
    modified: u64,
}

impl Work {
    /// Shows packets in batches of a size for a while, and returns the nanoseconds per packet.
    fn round(&mut self, packets: &[Vec<u8>], batch: usize, time: Duration) -> Result<f64, Refusal> {
        let mut queue = packets.iter().cycle();
        let mut out = [0; PACKET_BYTES_MAX];
        let (began, mut shown) = (Instant::now(), 0_u32);
        loop {
            // The clock is read once for some hundred packets.
            for _ in 0..512_usize.div_ceil(batch) {
                for index in 0..batch {
                    let Some(packet) = queue.next() else { return Ok(0.0) };
                    let ingress = Ingress { interface: 1, timestamp_ns: 0 };
                    self.instance.place(index, packet.len(), ingress).copy_from_slice(packet);
                }
                self.instance.process(batch, &mut self.left)?;
                self.take(&mut out);
                shown = shown.saturating_add(u32::try_from(batch).unwrap_or(u32::MAX));
            }
            let took = began.elapsed();
            if took >= time {
                self.packets += u64::from(shown);
                return Ok(took.as_secs_f64() * 1e9 / f64::from(shown));
            }
        }
    }

    fn take(&mut self, out: &mut [u8]) {
        for (index, left) in self.left.iter().enumerate() {
            match left.verdict {
                Verdict::Pass => {}
                Verdict::Drop => self.dropped += 1,
                Verdict::Modified => {
                    self.modified += 1;
                    out[..left.length].copy_from_slice(self.instance.packet(index, left.length));
                }
            }
        }
        let host = self.instance.host_mut();
        host.injected.drain(|packet| {
            std::hint::black_box(packet);
        });
        drop(host.log.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_of_its_rounds() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { median: 2.0, least: 1.0, greatest: 3.0 });
        assert_eq!(Spread::of(Vec::new()).median.to_bits(), 0.0_f64.to_bits());
    }
}
