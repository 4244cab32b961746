// SPDX-License-Identifier: Apache-2.0
//! Worlds whose routes change while leases run: modules are to be where the paths lead, and nowhere else.

use std::collections::BTreeSet;
use std::time::Duration;

use netserv_model::{ModuleName, UserId};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::catalogue::{self, USERS};
use super::sim::{Fault, Settings, World};
use super::topology::{Kind, LinkId, LinkQuality, Topology, VertexId};

/// What became of paths that moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// How long it took each until every node on its new path had its module.
    pub repaired: Vec<Duration>,
    /// Modules that stayed on a node which no path leads to any more.
    pub left_behind: usize,
    /// Paths whose module was not on every node in time.
    pub broken: usize,
    /// News that requesters got.
    pub news: u64,
}

impl Followed {
    /// Adds what another world brought.
    pub fn add(&mut self, other: Followed) {
        self.repaired.extend(other.repaired);
        self.left_behind += other.left_behind;
        self.broken += other.broken;
        self.news += other.news;
    }

    /// Returns the repair time that such a share of the paths, in thousandths, did not exceed.
    pub fn repaired_within(&self, permille: usize) -> Option<Duration> {
        let mut sorted = self.repaired.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * permille).div_ceil(1000).saturating_sub(1);
        sorted.get(at).copied()
    }
}

/// How a world is to be.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Stations and routers.
    pub size: usize,
    /// Packets lost of a thousand.
    pub loss_permille: u32,
    /// Whether nodes hear that their routes changed; if not, only refreshes find out.
    pub told: bool,
}

/// Installs modules along paths in the world of a seed, has the routes of all of them change at once, and returns what came of
/// it.
///
/// # Errors
/// A SETUP was not answered, or something was left over at the end.
pub fn run(seed: u64, change: Change) -> Result<Followed, String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let quality = LinkQuality { delay: ms(2), jitter: ms(5), loss_permille: change.loss_permille };
    let inner = change.size * 3 / 4;
    let topology =
        Topology::random_mesh(&mut rng, inner, change.size - inner, change.size / 2, quality, seed.is_multiple_of(2));
    let mut world = World::new(topology, seed, Settings { routes_are_told: change.told, ..Settings::default() });
    let mut asked = Vec::new();
    for (user, name) in USERS.iter().enumerate() {
        for module in [0, 2] {
            let (origin, destination) = two_ends(&world, &mut rng);
            let id = world.setup_of(ms(rng.random_range(0..2000)), origin, destination, LEASE, (user, module));
            let key = (catalogue::user_id(name), catalogue::module(module).name);
            asked.push(Installed { id, origin, destination, key });
        }
    }
    world.run_for(INSTALLED);
    for installed in &asked {
        world.outcome(installed.id).ok_or_else(|| format!("{:?} has no answer", installed.id))?;
    }
    // What loss cut short has no path that could be followed to its end.
    asked.retain(|installed| {
        let whole = world.outcome(installed.id).is_some_and(|outcome| outcome.end.is_some());
        whole && held_by(&world, &installed.key) == on_path(&world, installed)
    });
    let avoided: BTreeSet<LinkId> =
        asked.iter().filter_map(|installed| any_link(&world, installed, &mut rng)).collect();
    let mut followed = Followed::default();
    // Routes change, and change back.
    for fault in [Fault::RouteAround as fn(LinkId) -> Fault, Fault::RouteOver] {
        let before: Vec<BTreeSet<VertexId>> = asked.iter().map(|installed| on_path(&world, installed)).collect();
        avoided.iter().for_each(|link| world.fault(Duration::ZERO, fault(*link)));
        world.run_for(Duration::ZERO);
        let moved = asked.iter().zip(&before).filter(|(installed, before)| {
            let leads = world.topology().next_link(installed.origin, installed.destination).is_some();
            leads && on_path(&world, installed) != **before
        });
        let moved: Vec<&Installed> = moved.map(|(installed, _)| installed).collect();
        settle(&mut world, &moved, &mut followed);
    }
    followed.news = world.sum(|view| view.nslp.counters().news_sent);
    world.run_for(LEASE + FORGOTTEN);
    let left = world.leftovers();
    if left == super::Leftovers::default() { Ok(followed) } else { Err(format!("left over: {left:?}")) }
}

/// Waits until the modules of paths that moved should be where those lead, and nowhere else.
fn settle(world: &mut World, moved: &[&Installed], followed: &mut Followed) {
    let mut waiting = moved.to_vec();
    let mut waited = Duration::ZERO;
    while waited < SETTLED {
        waiting.retain(|installed| {
            let there = on_path(world, installed).is_subset(&held_by(world, &installed.key));
            followed.repaired.extend(there.then_some(waited));
            !there
        });
        world.run_for(STEP);
        waited += STEP;
    }
    followed.broken += waiting.len();
    for installed in moved {
        followed.left_behind += held_by(world, &installed.key).difference(&on_path(world, installed)).count();
    }
}

struct Installed {
    id: netserv_node::CallId,
    origin: VertexId,
    destination: VertexId,
    key: (UserId, ModuleName),
}

/// A client and an end that says that it is one.
fn two_ends(world: &World, rng: &mut StdRng) -> (VertexId, VertexId) {
    let origins = world.topology().of_kind(&[Kind::NetServHost, Kind::Node]);
    let ends = world.topology().of_kind(&[Kind::Host, Kind::NetServHost, Kind::Node]);
    loop {
        let (origin, end) = (origins.choose(rng).expect("a mesh has stations"), ends.choose(rng).expect("and ends"));
        if origin != end && !world.topology().path(*origin, *end).is_empty() {
            return (*origin, *end);
        }
    }
}

/// Returns the nodes on the path, as it is now.
fn on_path(world: &World, installed: &Installed) -> BTreeSet<VertexId> {
    let topology = world.topology();
    let path = topology.path(installed.origin, installed.destination).into_iter().map(|(_, vertex)| vertex);
    [installed.origin].into_iter().chain(path).filter(|vertex| topology.kind(*vertex) == Kind::Node).collect()
}

/// Returns the nodes that have a module.
fn held_by(world: &World, (user, module): &(UserId, ModuleName)) -> BTreeSet<VertexId> {
    let nodes = world.topology().of_kind(&[Kind::Node]).into_iter();
    nodes.filter(|node| world.has_module(*node, user, module)).collect()
}

fn any_link(world: &World, installed: &Installed, rng: &mut StdRng) -> Option<LinkId> {
    let path = world.topology().path(installed.origin, installed.destination);
    // The first and the last link may be the only ones of an end.
    let inner = path.get(1..path.len().saturating_sub(1)).unwrap_or_default();
    inner.choose(rng).map(|(link, _)| *link)
}

const LEASE: Duration = Duration::from_secs(1800);
/// By then every SETUP is answered.
const INSTALLED: Duration = Duration::from_secs(60);
/// How long a path has to be repaired and its old branch to be given up: two refresh times.
const SETTLED: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(50);
/// By then every timer has run out.
const FORGOTTEN: Duration = Duration::from_secs(900);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
