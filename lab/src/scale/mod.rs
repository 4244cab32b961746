// SPDX-License-Identifier: Apache-2.0
//! How signaling grows: thousands of nodes and up to a million sessions in virtual time.
//!
//! Nodes are the real GIST and NSLP (`core/gist`, `core/nslp`); what is left out is the controller, which installs at once, the
//! machine, and loss. Links only take time. See docs/scale.md.

mod graph;
mod idle;
mod net;
mod refresh;
mod report;
mod station;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

pub use graph::Graph;
pub use idle::{IdleBytes, idle_bytes};
pub use net::{DELAY, Net, Session, Traffic, WINDOW};
pub use refresh::{Burst, Occasion, refreshes};
pub use report::{Churn, Report, Spread};

use crate::sys::allocated_bytes;

/// Arguments of `netserv-lab scale`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Nodes of the network.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(20..=16_000))]
    pub nodes: u32,
    /// Sessions that are there at a time.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=4_000_000))]
    pub sessions: u32,
    /// Sessions that are set up in a second, all over the network.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub setups_per_second: u32,
    /// Of what network and sessions are a function.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seconds of the network's time for which sessions are refreshed, end and begin.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(10..=3600))]
    pub seconds: u16,
    /// Links that routes avoid for a time, one after the other.
    #[arg(long, default_value_t = 10)]
    pub moves: u16,
    /// Nodes that restart, one after the other.
    #[arg(long, default_value_t = 5)]
    pub restarts: u16,
}

/// Runs a network and prints what was measured, as a table and as one line of JSON.
///
/// # Errors
/// A request was not answered by its whole path.
pub fn print(options: &Options) -> Result<()> {
    let report = run(options)?;
    print!("{}", report.table());
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Runs a network: sets sessions up, lets them be, moves routes and restarts nodes.
///
/// # Errors
/// A request was not answered by its whole path.
pub fn run(options: &Options) -> Result<Report> {
    let begun = Instant::now();
    let mut rng = StdRng::seed_from_u64(options.seed);
    let graph = Graph::grow(options.nodes, options.seed);
    let edge = graph.edge();
    let destinations: Vec<u32> = edge.sample(&mut rng, DESTINATIONS_MAX).copied().collect();
    let mut run = Run { net: Net::new(graph, |_| {}), rng, edge, destinations, sessions: Vec::new() };
    let empty = allocated_bytes();
    let setup = run.set_up(options);
    let (rows, leases) = (run.net.rows(), run.net.leases());
    let memory = allocated_bytes().saturating_sub(empty);
    progress(begun, "sessions are set up", &(&setup, rows, memory));
    let steady = run.be(options);
    progress(begun, "sessions were refreshed", &steady);
    let moves = run.move_routes(options);
    progress(begun, "routes moved", &moves);
    let restarts = run.restart(options);
    progress(begun, "nodes restarted", &restarts);
    let report = Report {
        nodes: options.nodes,
        sessions: options.sessions,
        seed: options.seed,
        links_of_a_node_max: run.degree_max(),
        path_nodes: ratio(leases, options.sessions as usize),
        rows,
        leases_of_a_node_max: run.net.leases_max(),
        associations: run.net.associations(),
        bytes_per_session_and_node: ratio(memory, leases),
        bytes_all: memory,
        setup,
        steady,
        moves,
        restarts,
        seconds: begun.elapsed().as_secs_f64(),
    };
    ensure!(
        report.setup.incomplete == 0,
        "{} of {} requests were not answered by the whole path",
        report.setup.incomplete,
        options.sessions
    );
    Ok(report)
}

/// Vertices at which paths end: as many as the servers of a large service.
const DESTINATIONS_MAX: usize = 2000;
/// How long leases run that do not end meanwhile.
const LEASE: Duration = Duration::from_secs(24 * 3600);
/// In how many steps a second sessions begin.
const STEPS: u32 = 100;
/// How long exchanges are kept, and a little more.
const FORGOTTEN: Duration = Duration::from_secs(12);
/// Nobody waits longer for a path to be repaired.
const REPAIR_MAX: Duration = Duration::from_secs(120);
/// Of a hundred sessions, so many end and so many begin while sessions are refreshed.
const CHURN_PERCENT: u32 = 5;

struct Run {
    net: Net,
    rng: StdRng,
    edge: Vec<u32>,
    destinations: Vec<u32>,
    sessions: Vec<Session>,
}

impl Run {
    fn begin(&mut self, lease: Duration) {
        let destination = *self.destinations.choose(&mut self.rng).expect("there are some");
        let mut origin = *self.edge.choose(&mut self.rng).expect("there are some");
        while origin == destination {
            origin = *self.edge.choose(&mut self.rng).expect("there are more than one");
        }
        let session = self.net.begin(origin, destination, lease);
        self.sessions.push(session);
    }

    fn set_up(&mut self, options: &Options) -> report::Phase {
        let wall = Instant::now();
        let time = Duration::from_secs(1) * options.sessions / options.setups_per_second;
        let steady = Duration::from_secs(options.seconds.into());
        self.net.count_from_here();
        let mut left = options.sessions;
        while left > 0 {
            for _ in 0..left.min(options.setups_per_second / STEPS) {
                let ends_soon = left * 100 / options.sessions < CHURN_PERCENT;
                let until_steady = time.saturating_sub(self.net.now().since(netserv_model::Instant::from_millis(1000)));
                let soon = until_steady + FORGOTTEN + self.rng.random_range(Duration::from_secs(1)..steady);
                self.begin(if ends_soon { soon } else { LEASE });
                left -= 1;
            }
            self.net.run_for(Duration::from_secs(1) / STEPS);
        }
        self.net.run_for(FORGOTTEN);
        report::Phase::of(self.net.traffic(), self.net.rows(), time + FORGOTTEN, wall.elapsed())
    }

    /// Lets a time pass in which some sessions end and as many begin.
    fn be(&mut self, options: &Options) -> report::Phase {
        let wall = Instant::now();
        let time = Duration::from_secs(options.seconds.into());
        let steps = u32::from(options.seconds) * STEPS;
        let begin = options.sessions * CHURN_PERCENT / 100;
        self.net.count_from_here();
        let mut begun = 0_u32;
        for step in 1..=steps {
            while u64::from(begun) * u64::from(steps) < u64::from(begin) * u64::from(step) {
                self.begin(LEASE);
                begun += 1;
            }
            self.net.run_for(Duration::from_secs(1) / STEPS);
        }
        report::Phase::of(self.net.traffic(), self.net.rows(), time, wall.elapsed())
    }

    fn move_routes(&mut self, options: &Options) -> Churn {
        let mut churn = Churn::default();
        for _ in 0..options.moves {
            let Some(link) = self.any_link() else { continue };
            self.net.count_from_here();
            churn.paths += self.net.move_routes(link, true, &self.sessions);
            self.net.run_until_repaired(REPAIR_MAX);
            churn.add(&mut self.net);
            self.net.run_for(BETWEEN);
            self.net.move_routes(link, false, &self.sessions);
            self.net.run_until_repaired(REPAIR_MAX);
            self.net.take_repaired();
            self.net.run_for(BETWEEN);
        }
        churn
    }

    fn restart(&mut self, options: &Options) -> Churn {
        let mut churn = Churn::default();
        for _ in 0..options.restarts {
            let Some((vertex, _)) = self.any_link() else { continue };
            self.net.count_from_here();
            // What its own clients asked for is theirs to renew.
            self.sessions.retain(|session| session.origin != vertex);
            churn.paths += self.net.restart(vertex, &self.sessions);
            self.net.run_until_repaired(REPAIR_MAX);
            churn.add(&mut self.net);
            self.net.run_for(BETWEEN);
        }
        churn
    }

    /// Returns a link in the middle of some path.
    fn any_link(&mut self) -> Option<(u32, u32)> {
        for _ in 0..100 {
            let session = *self.sessions.choose(&mut self.rng)?;
            let path = self.net.graph.path(session.origin, session.destination);
            if path.len() >= 4 {
                let at = self.rng.random_range(1..path.len() - 2);
                return Some((path[at], path[at + 1]));
            }
        }
        None
    }

    fn degree_max(&self) -> usize {
        (0..self.net.graph.size()).map(|vertex| self.net.graph.degree(vertex)).max().unwrap_or(0)
    }
}

/// How long a network is left alone after something changed.
const BETWEEN: Duration = Duration::from_secs(2);

/// Says that a part of the run is done, with its figures: a run of hours that is broken off has measured something.
fn progress(begun: Instant, what: &str, figures: &impl serde::Serialize) {
    let figures = serde_json::to_string(figures).expect("figures are numbers");
    eprintln!("  {what} ({:.0} s): {figures}", begun.elapsed().as_secs_f64());
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(some: usize, all: usize) -> f64 {
    some as f64 / all.max(1) as f64
}
