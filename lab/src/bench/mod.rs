// SPDX-License-Identifier: Apache-2.0
//! `./dev bench`: the figures of docs/figures.md that need a running system.
//!
//! What is compared is measured in turn within one run; each number comes with its spread. See docs/performance.md.

mod account;
mod commands;
mod conditions;
pub mod container;
mod crowd;
mod curve;
mod delay;
pub mod goals;
mod handshake;
mod java;
mod ladder;
mod ladder_table;
mod lanes;
mod links;
mod loops;
pub mod machine;
mod many;
mod moved;
mod net;
pub mod null_driver;
mod others;
mod papers;
mod pauses;
pub mod pin;
pub mod plot;
mod programs;
mod recovery;
mod search;
mod servers;
mod setup;
mod signaling;
pub mod sizes;
mod strangers;
pub mod summary;
mod tls;
mod trial;
pub mod verdicts;
mod ways;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use self::goals::Goal;
use self::machine::Machine;
use self::plot::Plot;
use self::programs::Programs;
use self::search::Search;
use self::summary::Figure;
use self::verdicts::Verdict;
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
    /// Writes plots into a directory, as SVG.
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Sizes of packets that the ladder is measured with, in bytes.
    #[arg(long, value_delimiter = ',', default_values_t = ladder::SIZES)]
    pub sizes: Vec<u16>,
    /// Rounds of ladder, curve, conditions and many containers; without it 5 or 3, and 2 or 1 in a quick run.
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Numbers of containers that are measured; without it 1, 10, 100, and in a long run 50 and 500 too.
    #[arg(long, value_delimiter = ',')]
    pub containers: Vec<u16>,
    /// Ways through a router that ladder and curve are measured with; without it all.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub ways: Vec<ways::Way>,
    /// Conditions that are measured: those whose names have one of these words, such as `both,outputs`; without it all.
    #[arg(long, value_delimiter = ',')]
    pub conditions: Vec<String>,
    /// Measures these only, for instance `ladder,setup`.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub only: Vec<Part>,
    /// Fails if a goal of what was measured is not reached, or was not measured.
    #[arg(long)]
    pub check: bool,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The highest rates through one node, and latency at half load.
    Ladder,
    /// What is delivered of what is offered, up to far beyond what a way takes.
    Curve,
    /// What changes rates: sockets, flows, sizes, IPv6, directions, outputs, a program beside the node.
    Conditions,
    /// Many containers.
    Many,
    /// Many filters.
    Filters,
    /// One lane and two, over packets from memory.
    Lanes,
    /// A loop for each byte.
    Loops,
    /// SETUP over two nodes.
    Setup,
    /// A hundred users who install within two seconds.
    Crowd,
    /// Users whom no configuration names: decisions, and a thousand of them at one node.
    Strangers,
    /// Containers with a JVM: SETUP over two nodes, and memory.
    Java,
    /// Server modules: requests a second, intercepted connections.
    Servers,
    /// Start and memory of containers.
    Containers,
    /// From trap to recovered.
    Recovery,
    /// GIST handshakes in memory.
    Handshakes,
    /// Signaling; `handshakes` is measured with it.
    Signaling,
    /// What a call of a module costs.
    Calls,
    /// The demo as a whole.
    Demo,
    /// Programs and packages.
    Sizes,
}

/// How much is measured.
pub struct Plan {
    sizes: Vec<u16>,
    ways: Vec<ways::Way>,
    conditions: Vec<String>,
    search: Search,
    ladder_rounds: usize,
    curve_rounds: usize,
    curve_seconds: f64,
    condition_rounds: usize,
    delay_rounds: usize,
    delay_seconds: f64,
    containers: Vec<u16>,
    many_rounds: usize,
    lane_rounds: usize,
    lane_seconds: f64,
    loop_sizes: Vec<u16>,
    setups: usize,
    setups_uncached: usize,
    crowds: usize,
    stranger_rounds: usize,
    container_starts: usize,
    traps: usize,
    handshake_rounds: usize,
    setups_long: usize,
    setups_long_uncached: usize,
    tells: usize,
    tls_rounds: usize,
    tls_time: Duration,
    moves: usize,
    idle_rounds: u32,
    refresh_rounds: u32,
    call_rounds: usize,
    demos: usize,
    server_rounds: usize,
    server_seconds: u32,
}

impl Plan {
    fn new(options: &Options) -> Plan {
        let (sizes, ways, conditions) = (options.sizes.clone(), options.ways.clone(), options.conditions.clone());
        let containers = |usual: &[u16]| match options.containers.is_empty() {
            true => usual.to_vec(),
            false => options.containers.clone(),
        };
        match options.quick {
            true => Plan {
                sizes,
                ways,
                conditions,
                search: Search {
                    seconds: 0.1,
                    confirm_seconds: 0.3,
                    confirm_trials: 5,
                    resolution: 0.025,
                    loads_max: 10,
                },
                ladder_rounds: options.rounds.unwrap_or(2).max(1),
                curve_rounds: options.rounds.unwrap_or(2).max(1),
                curve_seconds: 0.5,
                condition_rounds: options.rounds.unwrap_or(1).max(1),
                delay_rounds: 3,
                delay_seconds: 0.5,
                containers: containers(&[1, 10, 100]),
                many_rounds: options.rounds.unwrap_or(1).max(1),
                lane_rounds: 5,
                lane_seconds: 0.5,
                loop_sizes: vec![256],
                setups: 20,
                setups_uncached: 4,
                crowds: 3,
                stranger_rounds: 3,
                container_starts: 50,
                traps: 5,
                handshake_rounds: 3,
                setups_long: 10,
                setups_long_uncached: 4,
                tells: 20,
                tls_rounds: 3,
                tls_time: Duration::from_secs(2),
                moves: 4,
                idle_rounds: 3,
                refresh_rounds: 2,
                call_rounds: 1,
                demos: 2,
                server_rounds: 3,
                server_seconds: 3,
            },
            false => Plan {
                sizes,
                ways,
                conditions,
                search: Search {
                    seconds: 0.1,
                    confirm_seconds: 1.0,
                    confirm_trials: 11,
                    resolution: 0.02,
                    loads_max: 12,
                },
                ladder_rounds: options.rounds.unwrap_or(5).max(1),
                curve_rounds: options.rounds.unwrap_or(5).max(1),
                curve_seconds: 2.0,
                condition_rounds: options.rounds.unwrap_or(3).max(1),
                delay_rounds: 7,
                delay_seconds: 2.0,
                containers: containers(&[1, 10, 50, 100, 500]),
                many_rounds: options.rounds.unwrap_or(5).max(1),
                lane_rounds: 15,
                lane_seconds: 1.0,
                loop_sizes: vec![64, 128, 256, 512, 1024],
                setups: 50,
                setups_uncached: 11,
                crowds: 7,
                stranger_rounds: 7,
                container_starts: 200,
                traps: 20,
                handshake_rounds: 9,
                setups_long: 15,
                setups_long_uncached: 6,
                tells: 50,
                tls_rounds: 5,
                tls_time: Duration::from_secs(2),
                moves: 4,
                idle_rounds: 3,
                refresh_rounds: 3,
                call_rounds: 5,
                demos: 5,
                server_rounds: 7,
                server_seconds: 10,
            },
        }
    }
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    quick: bool,
    trials_disturbed: usize,
    trials_accepted: usize,
    figures: Vec<Figure>,
    goals_met: Vec<Goal>,
    goals_missed: Vec<Goal>,
    seconds: f64,
}

/// Measures and prints.
///
/// # Errors
/// Something could not be measured; with `check`, a goal is not reached.
pub fn run(options: &Options) -> Result<()> {
    ensure!(is_root(), "not root: the bench makes network namespaces; run `sudo ./dev bench`");
    let started = Instant::now();
    clear_leftovers()?;
    pin::favour_session();
    let machine = Machine::look()?;
    println!("{}", machine.line());
    if machine.load_average > 0.5 {
        println!("NOTE: other processes are using this machine; ratios hold better than numbers");
    }
    if cfg!(debug_assertions) {
        println!("NOTE: this is a debug build; build with --release");
    }
    let plan = Plan::new(options);
    let (parts, programs) = (chosen(&options.only), Programs::build()?);
    let (mut figures, mut plots) = (Vec::new(), Vec::new());
    for part in parts.iter().copied() {
        let began = Instant::now();
        let measured = measure(part, &plan, &programs).with_context(|| format!("{part:?}"))?;
        measured.figures.iter().for_each(|figure| print!("{}", figure.table()));
        println!("   ({part:?}: {:.0} s)", began.elapsed().as_secs_f64());
        figures.extend(measured.figures);
        plots.extend(measured.plots);
    }
    let (trials_disturbed, trials_accepted) = trial::disturbed();
    let verdicts = verdicts::verdicts(&parts, &figures);
    let (met, missed): (Vec<&Verdict>, Vec<&Verdict>) = verdicts.iter().partition(|verdict| verdict.is_met());
    let report = Report {
        machine,
        trials_disturbed,
        trials_accepted,
        quick: options.quick,
        figures,
        goals_met: met.iter().map(|verdict| verdict.goal).collect(),
        goals_missed: missed.iter().map(|verdict| verdict.goal).collect(),
        seconds: started.elapsed().as_secs_f64(),
    };
    println!("\nmeasured in {:.0} s", report.seconds);
    if report.trials_disturbed > 0 {
        println!(
            "{} trials were run again because other programs took processor time; {} count although they did",
            report.trials_disturbed, report.trials_accepted
        );
    }
    if let Some(directory) = &options.plots {
        std::fs::create_dir_all(directory)?;
        plots.iter().try_for_each(|plot: &Plot| plot.write(directory))?;
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("\n── Goals of docs/figures.md");
    verdicts.iter().for_each(|verdict| println!("   {verdict}"));
    println!("   {} met, {} not", met.len(), missed.len());
    ensure!(!options.check || missed.is_empty(), "{} of {} goals are not reached", missed.len(), verdicts.len());
    Ok(())
}

const PARTS: [Part; 19] = [
    Part::Ladder,
    Part::Curve,
    Part::Conditions,
    Part::Many,
    Part::Filters,
    Part::Lanes,
    Part::Loops,
    Part::Setup,
    Part::Crowd,
    Part::Strangers,
    Part::Java,
    Part::Servers,
    Part::Containers,
    Part::Recovery,
    Part::Handshakes,
    Part::Signaling,
    Part::Calls,
    Part::Demo,
    Part::Sizes,
];

fn chosen(only: &[Part]) -> Vec<Part> {
    let with_signaling = |part: Part| part == Part::Handshakes && only.contains(&Part::Signaling);
    PARTS.into_iter().filter(|part| only.is_empty() || only.contains(part) || with_signaling(*part)).collect()
}

/// What a part has measured.
#[derive(Default)]
struct Measured {
    figures: Vec<Figure>,
    plots: Vec<Plot>,
}

impl From<Vec<Figure>> for Measured {
    fn from(figures: Vec<Figure>) -> Measured {
        Measured { figures, plots: Vec::new() }
    }
}

fn measure(part: Part, plan: &Plan, programs: &Programs) -> Result<Measured> {
    match part {
        Part::Ladder => packets(plan, programs),
        Part::Curve => curve::measure(plan, programs),
        Part::Conditions => conditions::measure(plan, programs),
        Part::Many => many::containers(plan, programs),
        Part::Filters => many::filters(plan, programs),
        Part::Lanes => lanes::measure(plan).map(Measured::from),
        Part::Loops => loops::measure(plan, programs),
        Part::Setup => setup::measure(plan).map(Measured::from),
        Part::Crowd => crowd::measure(plan).map(Measured::from),
        Part::Strangers => strangers::measure(plan).map(Measured::from),
        Part::Java => java::measure(plan).map(Measured::from),
        Part::Servers => servers::measure(plan).map(Measured::from),
        Part::Containers => container::measure(plan).map(Measured::from),
        Part::Recovery => recovery::measure(plan, programs).map(Measured::from),
        Part::Handshakes => handshake::measure(plan).map(Measured::from),
        Part::Signaling => signaling::measure(plan).map(Measured::from),
        Part::Calls => commands::calls(plan).map(Measured::from),
        Part::Demo => commands::demo(plan).map(Measured::from),
        Part::Sizes => sizes::measure().map(Measured::from),
    }
}

fn packets(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let wanted = if plan.ways.is_empty() { ways::Way::ALL.to_vec() } else { plan.ways.clone() };
    let nets = ways::Nets::up(programs, &wanted)?;
    let (ladder, mut measured) = ladder::measure(plan, programs, &nets)?;
    if plan.sizes.contains(&delay::BYTES) && delay::WAYS.iter().all(|way| wanted.contains(way)) {
        let delays = delay::measure(plan, programs, &nets, &ladder)?;
        measured.figures.extend(delays.figures);
        measured.plots.extend(delays.plots);
    }
    Ok(measured)
}

/// Returns the arguments of `netserv-lab` that run a driver alone.
fn null_driver_args(driver: &str, filter: &str, more: &[&str]) -> Vec<String> {
    ["null-driver", driver, filter].iter().chain(more).map(ToString::to_string).collect()
}

/// Says on standard error what was just measured, for whoever waits.
fn progress(what: &str) {
    eprintln!("  {what}");
}

/// Returns thousands.
fn kilo(value: f64) -> f64 {
    value / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signaling_is_measured_with_its_handshakes_and_nothing_twice() {
        assert_eq!(chosen(&[Part::Signaling]), [Part::Handshakes, Part::Signaling]);
        assert_eq!(chosen(&[Part::Signaling, Part::Handshakes]), [Part::Handshakes, Part::Signaling]);
        assert_eq!(chosen(&[Part::Handshakes]), [Part::Handshakes]);
        assert_eq!(chosen(&[]), PARTS);
    }
}
