// SPDX-License-Identifier: Apache-2.0
//! One trial: packets at a rate through the router, and what became of each.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::net::Net;
use super::others::Others;
use super::pin::OUTSIDE_CORE;
use super::programs::Programs;

/// How often a trial is run again because of other programs.
const DISTURBED_MAX: usize = 5;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    /// Bytes of the IPv4 packets; not used with a payload.
    pub bytes: u16,
    /// The UDP destination port.
    pub port: u16,
    /// How many ports from there on take turns.
    pub ports: u16,
    /// How many packets in a row go to one port.
    pub burst: u16,
    /// A file with the payload of packets that are answered; the answers come back from `port`.
    pub answered: Option<&'a Path>,
}

impl Traffic<'_> {
    /// Returns numbered packets of a size to a port.
    pub fn new(bytes: u16, port: u16) -> Traffic<'static> {
        Traffic { bytes, port, ports: 1, burst: 1, answered: None }
    }
}

/// How it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Packets per second; `None` is as fast as the generator goes.
    pub rate: Option<f64>,
    /// For how long.
    pub seconds: f64,
    /// Whether latencies are taken. The generator then gives single packets, and not 64 at a time.
    pub timed: bool,
}

/// What became of the packets.
#[derive(Clone, Debug, Deserialize)]
pub struct Outcome {
    /// Packets that were sent.
    pub sent: u64,
    /// Different ones of them that arrived.
    pub received: u64,
    /// Packets that arrived more than once.
    pub duplicates: u64,
    /// Packets that arrived after a later one.
    pub reordered: u64,
    /// Packets per second that were sent.
    pub rate: f64,
    /// Processor time of the whole machine per packet.
    pub cpu_ns: f64,
    /// Latencies, where they were taken.
    pub latency_us: Latency,
}

/// Percentiles of latency in µs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Latency {
    /// Half of the packets were faster.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
}

impl Outcome {
    /// Returns the share of packets that did not arrive.
    pub fn loss(&self) -> f64 {
        share(self.sent.saturating_sub(self.received), self.sent)
    }

    /// Returns how many packets per second arrived.
    pub fn delivered(&self) -> f64 {
        self.rate * (1.0 - self.loss())
    }
}

/// Trials that were run again because of other programs.
static DISTURBED: AtomicUsize = AtomicUsize::new(0);
/// Trials that count although other programs did not stop.
static ACCEPTED: AtomicUsize = AtomicUsize::new(0);

/// Returns how many trials were run again because other programs took processor time, and how many count nevertheless.
pub fn disturbed() -> (usize, usize) {
    (DISTURBED.load(Ordering::Relaxed), ACCEPTED.load(Ordering::Relaxed))
}

/// Runs one trial, and again while other programs take processor time from it.
///
/// # Errors
/// The generator does not run here (Linux 5.18 is needed), or sent nothing.
pub fn run(net: &Net, programs: &Programs, traffic: &Traffic, load: &Pace) -> Result<Outcome> {
    for _ in 0..DISTURBED_MAX {
        let before = Others::now(&net.pids())?;
        let outcome = run_once(net, programs, traffic, load)?;
        if outcome.sent > 0 && Others::now(&net.pids())?.were_quiet_since(&before) {
            return Ok(outcome);
        }
        DISTURBED.fetch_add(1, Ordering::Relaxed);
    }
    ACCEPTED.fetch_add(1, Ordering::Relaxed);
    let outcome = run_once(net, programs, traffic, load)?;
    ensure!(outcome.sent > 0, "the generator sent nothing");
    Ok(outcome)
}

fn run_once(net: &Net, programs: &Programs, traffic: &Traffic, load: &Pace) -> Result<Outcome> {
    let lab = &net.lab;
    let place = |machine, interface| format!("/run/netns/{}:{interface}", lab.namespace(machine));
    let mut command = std::process::Command::new(&programs.trial);
    let sink = if traffic.answered.is_some() { place("sender", "to-n1") } else { place("sink", "to-n1") };
    let source = if traffic.answered.is_some() { net.nobody("sender") } else { lab.v4("sender") };
    command
        .arg(format!("sender={}", place("sender", "to-n1")))
        .arg(format!("router={}", place("n1", "to-sender")))
        .arg(format!("sink={sink}"))
        .arg(format!("source={source}"))
        .arg(format!("destination={}", net.nobody("sink")))
        .arg(format!("objects={}", programs.dir.display()))
        .arg(format!("core={OUTSIDE_CORE}"))
        .arg(format!("port={}", traffic.port))
        .arg(format!("ports={}", traffic.ports))
        .arg(format!("burst={}", traffic.burst))
        .arg(format!("bytes={}", traffic.bytes))
        .arg(format!("rate={:.0}", load.rate.unwrap_or(0.0)))
        .arg(format!("seconds={}", load.seconds));
    if load.timed {
        command.args(["timed=1", "batch=1"]);
    }
    if let Some(payload) = traffic.answered {
        command.arg(format!("payload={}", payload.display()));
    }
    let output = command.stdin(Stdio::null()).output().context("cannot run trial")?;
    ensure!(output.status.success(), "trial: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("the trial's result")
}

#[allow(clippy::cast_precision_loss, reason = "a share of packets")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
