// SPDX-License-Identifier: Apache-2.0
//! One trial: packets at a rate through the router, and what became of each.

use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

use super::account::{Account, Drops};
pub use super::account::{Latency, Outcome, SeenBy};
use super::links::{BACK, Links};
use super::net::Net;
use super::others::Others;
use super::pin::{NODE_CORE, OUTSIDE_CORE};
use super::programs::Programs;

/// How often a trial is run again because of other programs.
const DISTURBED_MAX: usize = 5;

/// From so many flows on there are several source addresses.
const FLOWS_OF_ONE_MAX: u32 = 20_000;

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
    /// How many source ports take turns, and source addresses beyond [`FLOWS_OF_ONE_MAX`].
    pub flows: u32,
    /// Whether sizes are mixed, up to `bytes`, which is 1500 then.
    pub mix: bool,
    /// Whether packets are IPv6.
    pub v6: bool,
    /// Whether packets come from a socket, as from a program, and not as frames.
    pub socket: bool,
    /// A file with the payload of packets that are answered; the answers come back from `port`.
    pub answered: Option<&'a Path>,
    /// Who has to see each packet.
    pub seen_by: SeenBy,
}

impl Traffic<'_> {
    /// Returns numbered packets of a size to a port.
    pub fn new(bytes: u16, port: u16) -> Traffic<'static> {
        Traffic {
            bytes,
            port,
            ports: 1,
            burst: 1,
            flows: 1,
            mix: false,
            v6: false,
            socket: false,
            answered: None,
            seen_by: SeenBy::Nobody,
        }
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
    /// Whether there is to be an account of what was lost, which takes a moment more.
    pub accounted: bool,
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
        let outcome = run_counted(net, programs, traffic, load)?;
        if outcome.offered > 0 && Others::now(&net.pids())?.were_quiet_since(&before) {
            return Ok(outcome);
        }
        DISTURBED.fetch_add(1, Ordering::Relaxed);
    }
    ACCEPTED.fetch_add(1, Ordering::Relaxed);
    let outcome = run_counted(net, programs, traffic, load)?;
    ensure!(outcome.offered > 0, "the generator sent nothing at the full rate");
    Ok(outcome)
}

/// Runs one trial, and finds out who saw its packets.
fn run_counted(net: &Net, programs: &Programs, traffic: &Traffic, load: &Pace) -> Result<Outcome> {
    let before = net.counts(traffic.seen_by, load.accounted)?;
    let mut outcome = run_once(net, programs, traffic, load)?;
    let after = net.settled(traffic.seen_by, load.accounted, &before, outcome.sent)?;
    outcome.seen = match traffic.seen_by {
        SeenBy::Nobody => None,
        SeenBy::Modules(modules) => Some((after.seen - before.seen) / modules.max(1)),
        SeenBy::Driver => Some(after.seen - before.seen),
        SeenBy::Queue => {
            let Drops { queued, queue_full, queue_bypassed, .. } = outcome.drops;
            Some(queued.saturating_sub(queue_full + queue_bypassed))
        }
    };
    if load.accounted {
        outcome.account = Some(Account::of(&outcome, &after.since(&before), traffic.answered.is_some()));
    }
    Ok(outcome)
}

fn run_once(net: &Net, programs: &Programs, traffic: &Traffic, load: &Pace) -> Result<Outcome> {
    let lab = &net.lab;
    let place = |machine, interface| format!("/run/netns/{}:{interface}", lab.namespace(machine));
    let mut command = std::process::Command::new(&programs.trial);
    let (machine, interfaces) = match traffic.answered {
        Some(_) => ("sender", vec!["to-n1".to_owned()]),
        None => net.links.sinks(),
    };
    let (source, destination): (IpAddr, IpAddr) = match traffic.answered {
        Some(_) => (net.nobody("sender").into(), net.nobody("sink").into()),
        None if traffic.v6 => (lab.v6("sender").into(), net.v6_nobody("sink").into()),
        // What goes back goes to the source, and the addresses behind the sender's own are the router's and the network's.
        None if traffic.flows > FLOWS_OF_ONE_MAX || net.links == Links::BothWays => {
            (net.nobody("sender").into(), net.nobody("sink").into())
        }
        None => (lab.v4("sender").into(), net.nobody("sink").into()),
    };
    command
        .arg(format!("sender={}", place("sender", "to-n1")))
        .arg(format!("router={}", place("n1", "to-sender")))
        .arg(format!("sink={}", place(machine, &interfaces.join(","))))
        .arg(format!("source={source}"))
        .arg(format!("destination={destination}"))
        .arg(format!("objects={}", programs.dir.display()))
        .arg(format!("core={OUTSIDE_CORE}"))
        .arg(format!("port={}", traffic.port))
        .arg(format!("ports={}", traffic.ports))
        .arg(format!("burst={}", traffic.burst))
        .arg(format!("flows={}", traffic.flows))
        .arg(format!("mix={}", u8::from(traffic.mix)))
        .arg(format!("socket={}", u8::from(traffic.socket)))
        .arg(format!("bytes={}", traffic.bytes))
        .arg(format!("rate={:.0}", load.rate.unwrap_or(0.0)))
        .arg(format!("seconds={}", load.seconds));
    match net.links {
        Links::Row => {}
        Links::BothWays => drop(command.arg(format!("back={BACK}:to-sink"))),
        Links::Outputs(outputs) => drop(command.arg(format!("outputs={outputs}"))),
    }
    if net.has_arrival() {
        command.arg(format!("arrival={NODE_CORE}"));
    }
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
