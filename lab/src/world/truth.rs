// SPDX-License-Identifier: Apache-2.0
//! Worlds in which everything goes wrong, and no stack may be called whole that is not.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use netserv_node::CallId;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::catalogue::{MODULES, USERS};
use super::reference::fault_in_stack;
use super::sim::{Fault, Leftovers, Settings, World};
use super::topology::{Kind, LinkQuality, Topology, VertexId};

/// Arguments of `netserv-lab world`.
#[derive(clap::Args)]
pub struct Options {
    /// How many worlds, each of another seed.
    #[arg(long, default_value_t = 200)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub first: u64,
    /// Stations and routers of each world.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(8..=2000))]
    pub size: u16,
    /// Worlds at a time; by default one for each processor.
    #[arg(long)]
    pub threads: Option<usize>,
}

/// What came of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stacks that are whole, and say so.
    pub whole: u64,
    /// Stacks that say why they are not.
    pub incomplete: u64,
    /// Requests of stations that were restarted, and forgot who asked.
    pub forgotten: u64,
}

/// Runs worlds, with a line every few seconds, and prints the sum.
///
/// # Errors
/// A stack of one was wrong, or something was left over; the error names the seed.
pub fn run_all(options: &Options) -> Result<Tally> {
    let (next, begun) = (AtomicU64::new(0), Instant::now());
    let (sum, wrong) = (Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    let is_over = AtomicBool::new(false);
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= options.seeds {
                            return;
                        }
                        let seed = options.first + number;
                        match run_guarded(seed, options.size.into()) {
                            Ok(tally) => lock(&sum).add(tally),
                            Err(fault) => lock(&wrong).push(format!("seed {seed}: {fault}")),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut told = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                if told.elapsed() > PROGRESS {
                    told = Instant::now();
                    let done = next.load(Ordering::Relaxed).min(options.seeds);
                    eprintln!("{done} of {} worlds begun, {} wrong", options.seeds, lock(&wrong).len());
                }
            }
        });
        for worker in workers {
            worker.join().expect("what a world panics with is caught");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (sum, wrong) = (*lock(&sum), lock(&wrong).clone());
    println!(
        "{} worlds of {} stations and routers, seeds {} to {}: {} wrong; {} stacks whole, {} incomplete, {} forgotten; {} s",
        options.seeds,
        options.size,
        options.first,
        options.first + options.seeds.saturating_sub(1),
        wrong.len(),
        sum.whole,
        sum.incomplete,
        sum.forgotten,
        begun.elapsed().as_secs()
    );
    if let Some(first) = wrong.first() {
        bail!("{first}");
    }
    Ok(sum)
}

const PROGRESS: Duration = Duration::from_secs(10);

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.whole += other.whole;
        self.incomplete += other.incomplete;
        self.forgotten += other.forgotten;
    }
}

/// What a world panics with is wrong, too.
fn run_guarded(seed: u64, size: usize) -> Result<Tally, String> {
    std::panic::catch_unwind(AssertUnwindSafe(|| run(seed, size))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
    })
}

/// Runs the world of a seed: nodes as they are shipped, up to a fifth of all packets lost, packets that overtake each other,
/// links that fail, routes that change, nodes that start anew, connections that break, and lies about the end of paths.
///
/// # Errors
/// Says which stack is wrong, or what was left over.
pub fn run(seed: u64, size: usize) -> Result<Tally, String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let loss_permille = [0, 20, 100, 200][rng.random_range(0..4)];
    let quality = LinkQuality { delay: ms(2), jitter: ms(rng.random_range(0..20)), loss_permille };
    let inner = size * 3 / 4;
    let topology = Topology::random_mesh(&mut rng, inner, size - inner, size / 4, quality, seed.is_multiple_of(2));
    let mut world = World::new(topology, seed, Settings::default());
    let asked: Vec<_> = (0..REQUESTS).map(|_| ask(&mut world, &mut rng)).collect();
    let restarted = go_wrong(&mut world, &mut rng);
    world.run_for(ANSWERED);
    let mut tally = Tally::default();
    for (id, origin, destination) in asked {
        let Some(outcome) = world.outcome(id) else {
            if restarted.contains(&origin) {
                tally.forgotten += 1;
                continue;
            }
            return Err(format!("{id:?} of {origin:?} has no answer"));
        };
        if let Some(fault) = fault_in_stack(world.topology(), origin, destination, outcome) {
            return Err(format!("{id:?} from {origin:?} to {destination:?}: {fault}: {outcome:?}"));
        }
        let count = if outcome.end.is_some() { &mut tally.whole } else { &mut tally.incomplete };
        *count += 1;
    }
    world.run_for(FORGOTTEN);
    let left = world.leftovers();
    if left == Leftovers::default() { Ok(tally) } else { Err(format!("left over: {left:?}")) }
}

const REQUESTS: usize = 16;
/// About the end of each request's path, while it is under way.
const LIES: usize = 20;
const LEASE: Duration = Duration::from_secs(120);
/// By then every request is answered.
const ANSWERED: Duration = Duration::from_secs(200);
/// By then every timer and every lease has run out.
const FORGOTTEN: Duration = Duration::from_secs(900);

fn ask(world: &mut World, rng: &mut StdRng) -> (CallId, VertexId, VertexId) {
    let origins = world.topology().of_kind(&[Kind::Node, Kind::NetServHost]);
    let origin = *origins.choose(rng).expect("a mesh has stations");
    let ends: Vec<VertexId> = world.topology().vertices().filter(|end| *end != origin).collect();
    let destination = *ends.choose(rng).expect("and ends");
    let after = ms(rng.random_range(0..4000));
    let id = if rng.random_ratio(1, 2) {
        world.probe(after, origin, destination)
    } else {
        let what = (rng.random_range(0..USERS.len()), rng.random_range(0..MODULES.len()));
        world.setup_of(after, origin, destination, LEASE, what)
    };
    let named = world.topology().addresses(destination);
    let mut stations: Vec<VertexId> = world.topology().path(origin, destination).iter().map(|step| step.1).collect();
    stations.push(origin);
    stations.retain(|station| world.topology().kind(*station).signals());
    for _ in 0..LIES {
        let (station, address) =
            (stations.choose(rng).expect("the origin is one"), named.choose(rng).expect("it has one"));
        world.fault(after + ms(rng.random_range(0..3000)), Fault::Lie(*station, *address));
    }
    (id, origin, destination)
}

/// Plans what goes wrong while requests are under way, and returns who is restarted.
fn go_wrong(world: &mut World, rng: &mut StdRng) -> BTreeSet<VertexId> {
    let links: Vec<_> = world.topology().links().collect();
    let nodes = world.topology().of_kind(&[Kind::Node]);
    for _ in 0..6 {
        let (after, link) = (ms(rng.random_range(0..5000)), *links.choose(rng).expect("there are links"));
        world.fault(after, Fault::RouteAround(link));
        world.fault(after + ms(rng.random_range(1..6000)), Fault::RouteOver(link));
        let (after, link) = (ms(rng.random_range(0..5000)), *links.choose(rng).expect("there are links"));
        world.fault(after, Fault::LinkDown(link));
        world.fault(after + ms(rng.random_range(10..9000)), Fault::LinkUp(link));
        let node = *nodes.choose(rng).expect("there are nodes");
        world.fault(ms(rng.random_range(0..5000)), Fault::BreakConnections(node));
    }
    let restarted: BTreeSet<VertexId> = nodes.sample(rng, 4).copied().collect();
    for node in &restarted {
        world.fault(ms(rng.random_range(0..6000)), Fault::Restart(*node));
    }
    restarted
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
