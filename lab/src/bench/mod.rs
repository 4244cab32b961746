// SPDX-License-Identifier: Apache-2.0
//! `./dev bench`: the figures of SPECIFICATION.md that need a running system.
//!
//! What is compared is measured in turn within one run; each number comes with its spread. See docs/performance.md.

mod commands;
pub mod container;
mod handshake;
pub mod machine;
mod packets;
pub mod pin;
mod programs;
mod recovery;
mod setup;
pub mod summary;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use self::machine::Machine;
use self::programs::Programs;
use self::summary::Figure;
use crate::netns::{clear_leftovers, is_root};

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Shorter runs, wider spread.
    #[arg(long)]
    pub quick: bool,
    /// Writes the figures to a file, as JSON.
    #[arg(short, long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Measures these only, for instance `packets,setup`.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub only: Vec<Part>,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Throughput and latency through one node.
    Packets,
    /// SETUP over two nodes.
    Setup,
    /// Start and memory of containers.
    Containers,
    /// From trap to recovered.
    Recovery,
    /// GIST handshakes in memory.
    Handshakes,
    /// What a call of a module costs.
    Calls,
    /// The demo as a whole.
    Demo,
}

/// How much is measured.
pub struct Plan {
    packet_rounds: usize,
    latency_rounds: usize,
    packet_seconds: f64,
    setups: usize,
    setups_uncached: usize,
    container_starts: usize,
    traps: usize,
    handshake_rounds: usize,
    call_rounds: usize,
    demos: usize,
}

impl Plan {
    fn new(quick: bool) -> Plan {
        match quick {
            true => Plan {
                packet_rounds: 5,
                latency_rounds: 3,
                packet_seconds: 1.0,
                setups: 20,
                setups_uncached: 4,
                container_starts: 50,
                traps: 5,
                handshake_rounds: 3,
                call_rounds: 1,
                demos: 2,
            },
            false => Plan {
                packet_rounds: 20,
                latency_rounds: 7,
                packet_seconds: 2.0,
                setups: 50,
                setups_uncached: 11,
                container_starts: 200,
                traps: 20,
                handshake_rounds: 9,
                call_rounds: 5,
                demos: 5,
            },
        }
    }
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    quick: bool,
    figures: Vec<Figure>,
    seconds: f64,
}

/// Measures and prints.
///
/// # Errors
/// Something could not be measured.
pub fn run(options: &Options) -> Result<()> {
    ensure!(is_root(), "not root: the bench makes network namespaces; run `sudo ./dev bench`");
    let started = Instant::now();
    clear_leftovers()?;
    let machine = Machine::look()?;
    println!("{}", machine.line());
    if machine.load_average > 0.5 {
        println!("NOTE: other processes are using this machine; ratios hold better than numbers");
    }
    if cfg!(debug_assertions) {
        println!("NOTE: this is a debug build; build with --release");
    }
    let plan = Plan::new(options.quick);
    let programs = Programs::build()?;
    let mut figures = Vec::new();
    for part in chosen(&options.only) {
        let measured = measure(part, &plan, &programs).with_context(|| format!("{part:?}"))?;
        measured.iter().for_each(|figure| print!("{}", figure.table()));
        figures.extend(measured);
    }
    let report = Report { machine, quick: options.quick, figures, seconds: started.elapsed().as_secs_f64() };
    println!("\nmeasured in {:.0} s", report.seconds);
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

const PARTS: [Part; 7] =
    [Part::Packets, Part::Setup, Part::Containers, Part::Recovery, Part::Handshakes, Part::Calls, Part::Demo];

fn chosen(only: &[Part]) -> Vec<Part> {
    PARTS.into_iter().filter(|part| only.is_empty() || only.contains(part)).collect()
}

fn measure(part: Part, plan: &Plan, programs: &Programs) -> Result<Vec<Figure>> {
    match part {
        Part::Packets => packets::measure(plan, programs),
        Part::Setup => setup::measure(plan),
        Part::Containers => container::measure(plan),
        Part::Recovery => recovery::measure(plan, programs),
        Part::Handshakes => handshake::measure(plan),
        Part::Calls => commands::calls(plan),
        Part::Demo => commands::demo(plan),
    }
}

/// Returns thousands.
fn kilo(value: f64) -> f64 {
    value / 1000.0
}
