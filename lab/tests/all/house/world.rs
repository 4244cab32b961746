// SPDX-License-Identifier: Apache-2.0
//! Worlds of many nodes against the reference model. `NETSERV_SEED` runs one again, `NETSERV_TRACE` shows it.

use std::collections::BTreeSet;
use std::time::Duration;

use netserv_lab::world::follow::{self, Change, Followed};
use netserv_lab::world::{
    Expected, Fault, Kind, LIFE_MAX, Leftovers, LinkQuality, MODULES, MachineQuality, Outcome, Settings, Topology,
    USERS, VertexId, World, expected_stack, seed_from_env, truth,
};
use netserv_model::RefusalKind;
use netserv_model::request::{Outcome as NodeOutcome, PathEnd};
use netserv_model::target::Scope;
use netserv_node::CallId;
use netserv_node::recording::{Replay, ReplayError};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::common::shortened;

const CLEAN: LinkQuality = LinkQuality { delay: ms(5), jitter: ms(4), loss_permille: 0 };
const LOSSY: LinkQuality = LinkQuality { delay: ms(5), jitter: ms(20), loss_permille: 200 };
/// By then every timer of GIST, the NSLP and the leases has run out.
const AGES: Duration = Duration::from_secs(900);
const LEASE: Duration = Duration::from_secs(120);

#[test]
fn a_chain_of_twenty_nodes_answers_in_order() {
    for ipv6 in [false, true] {
        let mut kinds = vec![Kind::NetServHost];
        for at in 0..20 {
            kinds.extend([Kind::Node, Kind::Router].iter().take(1 + usize::from(at % 3 == 0)));
        }
        kinds.push(Kind::Host);
        let (first, last) = (VertexId(0), VertexId(kinds.len() - 1));
        let topology = Topology::chain(&kinds, CLEAN, ipv6);
        let mut world = World::new(topology, seed_from_env(1), Settings::default());
        let setup = world.setup(ms(0), first, last, LEASE);
        world.run_for(Duration::from_secs(5));
        let busy = world.leftovers();
        assert!(busy.routes >= 20 && busy.associations >= 20 && busy.exchanges == 21, "{busy:?}");
        let each = [busy.modules, busy.workers, busy.loaded, busy.rules, busy.records];
        assert_eq!(each, [20; 5], "{busy:?}");
        let remove = world.remove(ms(0), first, last, setup);
        let probe = world.probe(ms(1), first, last);
        world.run_for(Duration::from_secs(20));
        let installed = exact(&world, setup, &expected_stack(world.topology(), first, last, false));
        assert_eq!(installed.nodes.len(), 20);
        assert!(installed.nodes.iter().all(|node| node.outcome.is_ok()), "{installed:?}");
        let removed = exact(&world, remove, &expected_stack(world.topology(), first, last, false));
        assert!(removed.nodes.iter().all(|node| node.outcome.is_ok()), "{removed:?}");
        assert_eq!(removed.session, installed.session);
        let (cold, warm) = (installed.took, removed.took);
        assert!(warm < cold * 2 / 3, "a session's second request needs no handshakes: {cold:?}, {warm:?}");
        let probed = exact(&world, probe, &expected_stack(world.topology(), first, last, true));
        assert_eq!(probed.nodes.len(), 21);
        nothing_is_left(&mut world);
    }
}

#[test]
fn random_trees_answer_as_the_reference_model_does() {
    let seed = seed_from_env(2);
    for run in 0..shortened(60) {
        let mut rng = StdRng::seed_from_u64(seed + run);
        let topology = Topology::random_tree(&mut rng, 30, 14, CLEAN, run % 3 == 0);
        let mut world = World::new(topology, seed + run, Settings::default());
        let asked = ask_around(&mut world, &mut rng, 25);
        world.run_for(Duration::from_secs(60));
        for Asked { id, origin, end, expected } in &asked {
            let outcome = world.outcome(*id).unwrap_or_else(|| panic!("{id:?} has no answer"));
            assert_eq!(&entries(outcome), expected, "{id:?}: {:?}", outcome.incomplete);
            assert!(outcome.nodes.iter().all(|node| node.outcome.is_ok()), "{outcome:?}");
            let word = outcome.incomplete.as_ref().map(|refusal| refusal.kind);
            let silent = world.topology().kind(*end) == Kind::SilentHost;
            let own_name = world.topology().name(*origin);
            let alone = expected.iter().all(|entry| entry.node == own_name);
            let nobody = (alone && world.topology().kind(*origin) == Kind::NetServHost).then_some(RefusalKind::NoNode);
            assert_eq!(word, if silent { Some(RefusalKind::Timeout) } else { nobody }, "{outcome:?}");
        }
        no_request_came_twice(&world);
        nothing_is_left(&mut world);
    }
}

/// Goal: with what is shipped, a stack that is called whole is whole, however much gets lost; with patience, most are.
#[test]
fn loss_and_reordering_shorten_stacks_only_with_a_word_about_it() {
    let seed = seed_from_env(103);
    for (settings, at_least) in [(Settings::default(), 0), (patient(), 4)] {
        let (mut whole, mut cut, mut resent) = (0, 0, 0);
        for run in 0..shortened(80) {
            let mut rng = StdRng::seed_from_u64(seed + run);
            let topology = Topology::random_tree(&mut rng, 20, 12, LOSSY, run % 2 == 0);
            let mut world = World::new(topology, seed + run, settings);
            let asked = ask_around(&mut world, &mut rng, 12);
            world.run_for(Duration::from_secs(200));
            resent += world.sum(|view| view.nslp.counters().requests_resent);
            for asked in &asked {
                let is_whole = is_whole_or_says_so(&world, asked);
                if world.topology().kind(asked.end) == Kind::SilentHost {
                    assert!(!is_whole, "nobody can know that the path ends: {asked:?}");
                } else if is_whole {
                    whole += 1;
                } else {
                    cut += 1;
                }
            }
            nothing_is_left(&mut world);
        }
        println!("{whole} whole, {cut} incomplete, {resent} sent again");
        assert!(cut > 0 && whole >= cut * at_least, "{whole} whole, {cut} incomplete");
    }
}

#[test]
fn cuts_and_restarts_shorten_stacks_only_with_a_word_about_it() {
    let seed = seed_from_env(4);
    let (mut whole, mut cut) = (0, 0);
    let (mut resent, mut duplicate) = (0, 0);
    for run in 0..shortened(80) {
        let mut rng = StdRng::seed_from_u64(seed + run);
        let topology = Topology::random_tree(&mut rng, 20, 12, if run % 4 == 0 { LOSSY } else { CLEAN }, false);
        let mut world = World::new(topology, seed + run, patient());
        let asked = ask_around(&mut world, &mut rng, 12);
        let links: Vec<_> = world.topology().links().collect();
        let mut restarted = BTreeSet::new();
        for _ in 0..6 {
            let after = ms(rng.random_range(0..3000));
            let link = *links.choose(&mut rng).unwrap();
            world.fault(after, Fault::LinkDown(link));
            world.fault(after + ms(rng.random_range(10..9000)), Fault::LinkUp(link));
            world.fault(after, Fault::BreakConnections(any_node(&world, &mut rng)));
            restarted.insert(restart_any(&mut world, &mut rng, after + ms(200)));
        }
        world.run_for(Duration::from_secs(200));
        for asked in &asked {
            // An origin that was restarted has forgotten who asked.
            let forgotten = restarted.contains(&asked.origin) && world.outcome(asked.id).is_none();
            if !forgotten && is_whole_or_says_so(&world, asked) {
                whole += 1;
            } else {
                cut += 1;
            }
        }
        resent += world.sum(|view| view.nslp.counters().requests_resent);
        duplicate += world.sum(|view| view.nslp.counters().requests_duplicate);
        nothing_is_left(&mut world);
    }
    println!("{whole} whole, {cut} incomplete, {resent} resent, {duplicate} duplicate");
    assert!(resent > 0 && duplicate > 0, "{resent} resent, {duplicate} duplicate");
    assert!(whole > 0 && cut > 0, "{whole} whole, {cut} incomplete");
}

/// Goal: no stack is called whole that is not. Method: worlds of 200 stations and routers, nodes as they are shipped, with
/// loss, reordering, links that fail, routes that change, restarts and forged ICMP errors. `./dev truth` runs 10,000.
#[test]
fn no_stack_of_many_worlds_is_called_whole_that_is_not() {
    let (first, seeds) = (seed_from_env(1), shortened(100));
    let tally = truth::run_all(&truth::Options { seeds, first, size: 200, threads: None }).unwrap();
    assert!(tally.whole > tally.incomplete / 4 && tally.incomplete > seeds / 2, "{tally:?}");
}

/// Goal: where routes change while leases run and change back, every node on the new path has the module within 2 s of hearing
/// of it, and two refresh times after the move no node off it has. Method: worlds of 100 stations and routers, six paths each
/// that all move at once.
#[test]
fn what_is_installed_follows_its_path() {
    let followed = follow_all(40, Change { size: 100, loss_permille: 0, told: true });
    let moved = followed.repaired.len();
    println!("{moved} moved, {} left behind, all within {:?}", followed.left_behind, followed.repaired_within(1000));
    assert_eq!((followed.broken, followed.left_behind), (0, 0), "{followed:?}");
    assert!(
        moved as u64 > shortened(200) && followed.repaired_within(1000) <= Some(Duration::from_secs(2)),
        "{followed:?}"
    );
}

/// Goal: nobody tells a node of routes that change further away; it finds out by its next refresh, which comes within 23 s.
#[test]
fn what_nobody_is_told_of_is_found_by_the_next_refresh() {
    let followed = follow_all(20, Change { size: 100, loss_permille: 0, told: false });
    let moved = followed.repaired.len();
    println!("{moved} moved, {} left behind, all within {:?}", followed.left_behind, followed.repaired_within(1000));
    assert_eq!((followed.broken, followed.left_behind), (0, 0), "{followed:?}");
    assert!(
        moved as u64 > shortened(100) && followed.repaired_within(990) <= Some(Duration::from_secs(30)),
        "{followed:?}"
    );
}

fn follow_all(worlds: u64, change: Change) -> Followed {
    let first = seed_from_env(100);
    let mut sum = Followed::default();
    for seed in first..first + shortened(worlds) {
        sum.add(follow::run(seed, change).unwrap_or_else(|fault| panic!("seed {seed}: {fault}")));
    }
    sum
}

/// Goal: what comes with the answer of a round trip is what the reference model says of the way from the last node to the
/// requester, or says that it is not all of it, whatever gets lost. Method: worlds where the two ways differ.
#[test]
fn a_way_back_is_whole_or_says_that_it_is_not() {
    let seed = seed_from_env(11);
    for (quality, runs) in [(CLEAN, 20), (LOSSY, 20)] {
        let (mut whole, mut cut, mut differ) = (0, 0, 0);
        for run in 0..runs {
            let mut rng = StdRng::seed_from_u64(seed + run);
            let topology = Topology::random_mesh(&mut rng, 16, 10, 10, quality, run % 2 == 0);
            let mut world = World::new(topology, seed + run, Settings::default());
            let origins = world.topology().of_kind(&[Kind::NetServHost]);
            let ends: Vec<VertexId> = world.topology().vertices().collect();
            let mut asked = Vec::new();
            while asked.len() < 8 && !origins.is_empty() {
                let (origin, end) = (*origins.choose(&mut rng).unwrap(), *ends.choose(&mut rng).unwrap());
                if origin != end {
                    let id = world.round_trip(ms(rng.random_range(0..3000)), origin, end);
                    asked.push((id, origin));
                }
            }
            world.run_for(Duration::from_secs(100));
            for (id, origin) in asked {
                let outcome = world.outcome(id).unwrap_or_else(|| panic!("{id:?} has no answer"));
                let topology = world.topology();
                let last = outcome.nodes.last().expect("the requester's host says of itself").node.as_str();
                let last = topology.vertices().find(|vertex| topology.name(*vertex) == last).unwrap();
                let Some(stack) = &outcome.returned else {
                    assert!(quality == LOSSY || last == origin, "{id:?} did not come back: {outcome:?}");
                    continue;
                };
                // A connection may lead to a node by another of its addresses than this path does.
                let expected: Vec<String> =
                    expected_stack(topology, last, origin, true).into_iter().map(|entry| entry.node).collect();
                let expected = &expected[1..];
                let back: Vec<String> = stack.nodes.iter().map(|node| node.node.to_string()).collect();
                if stack.incomplete.is_none() {
                    assert_eq!((&back[..], stack.end), (expected, Some(PathEnd::Destination)), "{id:?}");
                    whole += 1;
                    let there: BTreeSet<&str> = outcome.nodes.iter().map(|node| node.node.as_str()).collect();
                    differ += usize::from(stack.nodes.iter().any(|node| !there.contains(node.node.as_str())));
                } else {
                    assert!(expected.starts_with(&back), "{id:?}: {back:?}, {expected:?}");
                    cut += 1;
                }
            }
            nothing_is_left(&mut world);
        }
        println!("{whole} whole, {cut} incomplete, {differ} by other nodes");
        assert!(whole > 20 && differ > 2, "{whole} whole, {cut} incomplete, {differ} by other nodes");
        assert!(quality == LOSSY || cut == 0, "{cut} incomplete where nothing is lost");
    }
}

#[test]
fn a_module_for_some_places_is_there_and_nowhere_else() {
    let (name, _) = MODULES[0].split_once('@').unwrap();
    let (user, module) = (USERS[0].parse().unwrap(), name.parse().unwrap());
    for (scope, places, ipv6) in [
        (Scope::First, &[1][..], false),
        (Scope::Last, &[6], false),
        (Scope::Last, &[6], true),
        (Scope::Edge, &[1, 6], true),
        (Scope::All, &[1, 3, 4, 6], false),
    ] {
        let kinds = [Kind::NetServHost, Kind::Node, Kind::Router, Kind::Node, Kind::Node, Kind::Router, Kind::Node];
        let kinds: Vec<Kind> = kinds.into_iter().chain([Kind::Host]).collect();
        let mut world = World::new(Topology::chain(&kinds, CLEAN, ipv6), seed_from_env(12), Settings::default());
        let setup = world.setup_at(ms(0), VertexId(0), VertexId(7), LEASE, scope);
        world.run_for(Duration::from_secs(5));
        let outcome = world.outcome(setup).expect("it is answered");
        assert_eq!((entries(outcome).len(), outcome.incomplete.as_ref()), (4, None));
        let with: Vec<usize> = (0..8).filter(|at| world.has_module(VertexId(*at), &user, &module)).collect();
        assert_eq!(with, places, "{scope}: {outcome:?}");
        nothing_is_left(&mut world);
    }
}

/// Goal: whatever machines do, each request is answered once, what is said of a module is so when it is said, and nothing
/// of a refused or ended module is left. The world checks the latter two after every input.
#[test]
fn bad_machines_and_restarts_leave_every_request_answered_and_nothing_behind() {
    let seed = seed_from_env(8);
    let (mut done, mut refused, mut failed, mut died, mut stored) = (0, 0, 0, 0, 0);
    for run in 0..shortened(60) {
        let mut rng = StdRng::seed_from_u64(seed + run);
        let topology = Topology::random_tree(&mut rng, 8, 6, CLEAN, run % 2 == 0);
        let settings = Settings { machine: MachineQuality::BAD, ..Settings::default() };
        let mut world = World::new(topology, seed + run, settings);
        let asked = ask_around(&mut world, &mut rng, 20);
        let restarts = if run % 3 == 0 { 4 } else { 0 };
        let restarted: BTreeSet<VertexId> = (0..restarts)
            .map(|_| {
                let after = ms(rng.random_range(0..30_000));
                restart_any(&mut world, &mut rng, after)
            })
            .collect();
        world.run_for(LIFE_MAX);
        stored += world.sum(|view| view.controller.counters().store_failures);
        world.run_for(Duration::from_secs(100));
        for asked in &asked {
            let forgotten = restarted.contains(&asked.origin) && world.outcome(asked.id).is_none();
            if forgotten {
                continue;
            }
            is_whole_or_says_so(&world, asked);
            let outcome = world.outcome(asked.id).expect("looked at just before");
            refused += outcome.nodes.iter().filter(|node| !node.outcome.is_ok()).count();
            done += outcome.nodes.iter().filter(|node| is_installed(&node.outcome)).count();
        }
        failed += world.sum(|view| view.controller.counters().module_failures);
        died += world.sum(|view| view.controller.counters().container_deaths);
        nothing_is_left(&mut world);
    }
    println!("{done} installed, {refused} refused, {failed} failed, {died} died, {stored} not stored");
    let all = [done, refused].map(|count| u64::try_from(count).unwrap());
    assert!(all.into_iter().chain([failed, died, stored]).all(|count| count > 10), "a fault was not tested");
}

/// Goal: what a node of the world was given gives the same outputs again, and a change of one byte is found where it is.
#[test]
fn recordings_of_nodes_give_the_same_outputs_again() {
    let seed = seed_from_env(9);
    let mut rng = StdRng::seed_from_u64(seed);
    let topology = Topology::random_tree(&mut rng, 6, 4, LOSSY, false);
    let settings = Settings { records: true, machine: MachineQuality::BAD, ..patient() };
    let mut world = World::new(topology, seed, settings);
    ask_around(&mut world, &mut rng, 20);
    restart_any(&mut world, &mut rng, ms(9000));
    world.run_for(Duration::from_secs(300));
    let mut replayed = 0;
    for vertex in world.topology().of_kind(&[Kind::Node, Kind::NetServHost]) {
        let recording = world.recording(vertex).unwrap();
        let replay = replay(recording).unwrap_or_else(|error| panic!("{vertex:?}: {error}"));
        assert_eq!(replay.inputs + 1, u64::try_from(recording.lines().count()).unwrap());
        replayed += replay.outputs;
        change_a_byte(recording);
    }
    assert!(replayed > 200, "{replayed} outputs");
}

/// Damages the payload of a datagram in the middle of a recording.
fn change_a_byte(recording: &str) {
    let lines: Vec<&str> = recording.lines().collect();
    let is_signal = |line: &&str| line.contains("\"Intercepted\"") || line.contains("\"Datagram\"");
    let Some(at) = lines.iter().position(is_signal) else { return };
    let (head, tail) = lines[at].split_once("\"payload\":\"4e04bda5").expect("each begins with the magic number");
    let damaged = format!("{head}\"payload\":\"4e04bda6{tail}");
    let mut changed = lines.clone();
    changed[at] = &damaged;
    let number = u64::try_from(at).expect("a line number fits") + 1;
    match replay(&changed.join("\n")) {
        Err(ReplayError::Differs { line, .. }) => assert_eq!(line, number),
        other => panic!("line {number} is changed: {other:?}"),
    }
}

fn replay(recording: &str) -> Result<netserv_node::recording::Replayed, ReplayError> {
    let mut lines = recording.lines();
    let mut replay = Replay::begin(lines.next().expect("a recording has a header"))?;
    lines.try_for_each(|line| replay.line(line).map(drop))?;
    Ok(replay.replayed())
}

#[test]
fn a_path_without_nodes_says_that_there_is_none() {
    let silent = RefusalKind::Timeout;
    for (last, word) in
        [(Kind::Host, RefusalKind::NoNode), (Kind::SilentHost, silent), (Kind::NetServHost, RefusalKind::NoNode)]
    {
        let kinds = [Kind::NetServHost, Kind::Router, Kind::Router, last];
        let mut world = World::new(Topology::chain(&kinds, CLEAN, false), seed_from_env(5), Settings::default());
        let setup = world.setup(ms(0), VertexId(0), VertexId(3), LEASE);
        world.run_for(Duration::from_secs(30));
        let outcome = world.outcome(setup).expect("it is answered");
        assert_eq!((entries(outcome), outcome.incomplete.as_ref().unwrap().kind), (Vec::new(), word));
        nothing_is_left(&mut world);
    }
}

#[test]
fn an_end_that_speaks_up_is_found_at_once_and_a_silent_one_in_time() {
    for (last, at_most, word) in [(Kind::Host, ms(400), None), (Kind::SilentHost, ms(4000), Some(RefusalKind::Timeout))]
    {
        let kinds = [Kind::Node, Kind::Node, Kind::Router, last];
        let mut world = World::new(Topology::chain(&kinds, CLEAN, false), seed_from_env(6), Settings::default());
        let probe = world.probe(ms(0), VertexId(0), VertexId(3));
        world.run_for(Duration::from_secs(30));
        let expected = expected_stack(world.topology(), VertexId(0), VertexId(3), true);
        let outcome = world.outcome(probe).expect("it is answered");
        let kind = outcome.incomplete.as_ref().map(|refusal| refusal.kind);
        assert_eq!((entries(outcome), kind), (expected, word));
        assert!(outcome.took <= at_most, "{last:?}: {:?}", outcome.took);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let seed = seed_from_env(7);
    let run = |seed: u64| {
        let mut rng = StdRng::seed_from_u64(seed);
        let topology = Topology::random_tree(&mut rng, 20, 10, LOSSY, false);
        let mut world = World::new(topology, seed, Settings { machine: MachineQuality::BAD, ..patient() });
        ask_around(&mut world, &mut rng, 30);
        let restarted = world.topology().of_kind(&[Kind::Node])[1];
        world.fault(ms(700), Fault::Restart(restarted));
        world.run_for(Duration::from_secs(120));
        (world.trace_hash(), world.events())
    };
    let first = run(seed);
    assert!(first.1 > 500, "{} events", first.1);
    assert_eq!(first, run(seed));
    assert_ne!(first, run(seed + 1));
}

/// A request, and what it must bring back.
#[derive(Debug)]
struct Asked {
    id: CallId,
    origin: VertexId,
    end: VertexId,
    expected: Vec<Expected>,
}

/// Asks between random stations and ends.
fn ask_around(world: &mut World, rng: &mut StdRng, requests: usize) -> Vec<Asked> {
    let origins = world.topology().of_kind(&[Kind::Node, Kind::NetServHost]);
    let ends: Vec<VertexId> = world.topology().vertices().collect();
    let mut asked = Vec::new();
    while asked.len() < requests {
        let (origin, end) = (origins.choose(rng).expect("a tree has stations"), ends.choose(rng).expect("and ends"));
        let (origin, end) = (*origin, *end);
        if origin == end {
            continue;
        }
        let after = ms(rng.random_range(0..3000));
        let probes = rng.random_ratio(1, 3);
        let what = (rng.random_range(0..USERS.len()), rng.random_range(0..MODULES.len()));
        let id = if probes { world.probe(after, origin, end) } else { world.setup_of(after, origin, end, LEASE, what) };
        asked.push(Asked { id, origin, end, expected: expected_stack(world.topology(), origin, end, probes) });
    }
    asked
}

fn any_node(world: &World, rng: &mut StdRng) -> VertexId {
    *world.topology().of_kind(&[Kind::Node]).choose(rng).expect("a tree has nodes")
}

fn restart_any(world: &mut World, rng: &mut StdRng, after: Duration) -> VertexId {
    let node = any_node(world, rng);
    world.fault(after, Fault::Restart(node));
    node
}

/// What is shipped, with the time for many more Queries.
fn patient() -> Settings {
    Settings {
        config: |config| {
            config.gist.query_budget = Duration::from_secs(30);
            config.nslp.timeout_default = Duration::from_secs(120);
        },
        ..Settings::default()
    }
}

/// The stack is that of the reference model, and whole.
fn exact<'a>(world: &'a World, id: CallId, expected: &[Expected]) -> &'a Outcome {
    let outcome = world.outcome(id).unwrap_or_else(|| panic!("{id:?} has no answer"));
    assert_eq!((&entries(outcome)[..], &outcome.incomplete), (expected, &None), "{id:?}");
    outcome
}

/// Returns whether the stack is called whole, and so is that of the reference model; else it must be its beginning.
fn is_whole_or_says_so(world: &World, Asked { id, expected, .. }: &Asked) -> bool {
    let outcome = world.outcome(*id).unwrap_or_else(|| panic!("{id:?} has no answer"));
    let entries = entries(outcome);
    let kind = outcome.incomplete.as_ref().map(|refusal| refusal.kind);
    if matches!(kind, None | Some(RefusalKind::NoNode)) {
        assert_eq!(&entries, expected, "{id:?}: {:?}", outcome.incomplete);
        return true;
    }
    assert!(expected.starts_with(&entries), "{id:?}: {entries:?} is no beginning of {expected:?}");
    false
}

fn is_installed(outcome: &NodeOutcome) -> bool {
    matches!(outcome, NodeOutcome::Installed { .. } | NodeOutcome::Replaced { .. } | NodeOutcome::Refreshed { .. })
}

fn entries(outcome: &Outcome) -> Vec<Expected> {
    let entry = |node: &netserv_model::request::NodeReport| Expected {
        node: node.node.as_str().to_owned(),
        address: node.address,
    };
    outcome.nodes.iter().map(entry).collect()
}

/// A controller sees a request again only if a node looked where its path leads.
fn no_request_came_twice(world: &World) {
    let looked = world.sum(|view| view.nslp.counters().paths_looked_at);
    for vertex in world.topology().vertices() {
        let repeated = u64::try_from(world.repeated_requests(vertex)).expect("it is a small number");
        assert!(repeated <= looked, "{vertex:?}: {repeated} times, {looked} looks");
    }
}

fn nothing_is_left(world: &mut World) {
    world.run_for(AGES);
    assert_eq!(world.leftovers(), Leftovers::default());
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
