// SPDX-License-Identifier: Apache-2.0
//! Worlds of many nodes against the reference model. `NETSERV_SEED` runs one again, `NETSERV_TRACE` shows it.

use std::collections::BTreeSet;
use std::time::Duration;

use netserv_lab::world::{
    Expected, Fault, Kind, Leftovers, LinkQuality, Outcome, Settings, Topology, VertexId, World, expected_stack,
    seed_from_env,
};
use netserv_model::RefusalKind;
use netserv_model::request::Outcome as NodeOutcome;
use netserv_nslp::LocalId;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const CLEAN: LinkQuality = LinkQuality { delay: ms(5), jitter: ms(4), loss_permille: 0 };
const LOSSY: LinkQuality = LinkQuality { delay: ms(5), jitter: ms(20), loss_permille: 200 };
/// By then every timer of GIST, the NSLP and the leases has run out.
const AGES: Duration = Duration::from_secs(900);
const LEASE: Duration = Duration::from_secs(120);
/// By then most requests are answered, and no lease has run out.
const LEASES_RUN: Duration = Duration::from_secs(60);

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
        assert!(busy.routes >= 20 && busy.associations >= 20 && busy.exchanges == 21 && busy.leases == 20, "{busy:?}");
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
    for run in 0..12 {
        let mut rng = StdRng::seed_from_u64(seed + run);
        let topology = Topology::random_tree(&mut rng, 30, 14, CLEAN, run % 3 == 0);
        let mut world = World::new(topology, seed + run, Settings::default());
        let asked = ask_around(&mut world, &mut rng, 25);
        world.run_for(Duration::from_secs(60));
        for asked in &asked {
            let outcome = exact(&world, asked.id, &asked.expected);
            let empty_handed = outcome.incomplete.as_ref().map(|refusal| refusal.kind);
            let alone = outcome.nodes.is_empty();
            assert!(!alone || empty_handed == Some(RefusalKind::NoNode), "{outcome:?}");
        }
        no_request_came_twice(&world);
        nothing_is_left(&mut world);
    }
}

#[test]
fn loss_and_reordering_shorten_stacks_only_with_a_word_about_it() {
    let seed = seed_from_env(3);
    let (mut complete, mut incomplete, mut lost) = (0, 0, 0);
    for run in 0..10 {
        let mut rng = StdRng::seed_from_u64(seed + run);
        let topology = Topology::random_tree(&mut rng, 20, 12, LOSSY, run % 2 == 0);
        let mut world = World::new(topology, seed + run, lossy_settings());
        let asked = ask_around(&mut world, &mut rng, 12);
        world.run_for(LEASES_RUN);
        stacks_name_only_nodes_that_did_it(&world, &asked);
        world.run_for(Duration::from_secs(200) - LEASES_RUN);
        lost += world.counted("requests_resent");
        for asked in &asked {
            let is_exact = is_exact_or_says_so(&world, asked);
            if world.topology().kind(asked.end) == Kind::SilentHost {
                assert!(!is_exact, "nobody can know that the path ends: {asked:?}");
            } else if is_exact {
                complete += 1;
            } else {
                incomplete += 1;
            }
        }
        nothing_is_left(&mut world);
    }
    println!("{complete} complete, {incomplete} incomplete, {lost} sent again");
    assert!(lost > 0, "nothing got lost, so nothing was tested");
    assert!(complete >= 4 * incomplete, "{complete} complete, {incomplete} incomplete");
}

#[test]
fn cuts_and_restarts_shorten_stacks_only_with_a_word_about_it() {
    let seed = seed_from_env(4);
    let (mut complete, mut incomplete) = (0, 0);
    let (mut resent, mut duplicate) = (0, 0);
    for run in 0..12 {
        let mut rng = StdRng::seed_from_u64(seed + run);
        let topology = Topology::random_tree(&mut rng, 20, 12, if run % 4 == 0 { LOSSY } else { CLEAN }, false);
        let mut world = World::new(topology, seed + run, lossy_settings());
        let asked = ask_around(&mut world, &mut rng, 12);
        let links: Vec<_> = world.topology().links().collect();
        let nodes = world.topology().of_kind(&[Kind::Node]);
        let mut restarted = BTreeSet::new();
        for _ in 0..6 {
            let after = ms(rng.random_range(0..3000));
            let link = *links.choose(&mut rng).unwrap();
            world.fault(after, Fault::LinkDown(link));
            world.fault(after + ms(rng.random_range(10..9000)), Fault::LinkUp(link));
            world.fault(after, Fault::BreakConnections(*nodes.choose(&mut rng).unwrap()));
            let node = *nodes.choose(&mut rng).unwrap();
            restarted.insert(node);
            world.fault(after + ms(200), Fault::Restart(node));
        }
        world.run_for(Duration::from_secs(200));
        for asked in &asked {
            // An origin that was restarted has forgotten who asked.
            if world.outcome(asked.id).is_none() && restarted.contains(&asked.origin) {
                incomplete += 1;
            } else if is_exact_or_says_so(&world, asked) {
                complete += 1;
            } else {
                incomplete += 1;
            }
        }
        resent += world.counted("requests_resent");
        duplicate += world.counted("requests_duplicate");
        nothing_is_left(&mut world);
    }
    println!("{complete} complete, {incomplete} incomplete, {resent} resent, {duplicate} duplicate");
    assert!(resent > 0 && duplicate > 0, "{resent} resent, {duplicate} duplicate");
    assert!(complete > 0 && incomplete > 0, "{complete} complete, {incomplete} incomplete");
}

#[test]
fn a_path_without_nodes_says_that_there_is_none() {
    for last in [Kind::Host, Kind::SilentHost, Kind::NetServHost] {
        let kinds = [Kind::NetServHost, Kind::Router, Kind::Router, last];
        let mut world = World::new(Topology::chain(&kinds, CLEAN, false), seed_from_env(5), Settings::default());
        let setup = world.setup(ms(0), VertexId(0), VertexId(3), LEASE);
        world.run_for(Duration::from_secs(30));
        let outcome = exact(&world, setup, &[]);
        assert_eq!(outcome.incomplete.as_ref().unwrap().kind, RefusalKind::NoNode);
        nothing_is_left(&mut world);
    }
}

#[test]
fn an_end_that_speaks_up_is_found_at_once_and_a_silent_one_in_time() {
    for (last, at_most) in [(Kind::Host, ms(400)), (Kind::SilentHost, ms(4000))] {
        let kinds = [Kind::Node, Kind::Node, Kind::Router, last];
        let mut world = World::new(Topology::chain(&kinds, CLEAN, false), seed_from_env(6), Settings::default());
        let probe = world.probe(ms(0), VertexId(0), VertexId(3));
        world.run_for(Duration::from_secs(30));
        let expected = expected_stack(world.topology(), VertexId(0), VertexId(3), true);
        let outcome = exact(&world, probe, &expected);
        assert_eq!(outcome.incomplete, None);
        assert!(outcome.took <= at_most, "{last:?}: {:?}", outcome.took);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let seed = seed_from_env(7);
    let run = |seed: u64| {
        let mut rng = StdRng::seed_from_u64(seed);
        let topology = Topology::random_tree(&mut rng, 20, 10, LOSSY, false);
        let mut world = World::new(topology, seed, lossy_settings());
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
    id: LocalId,
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
        let probes = rng.random();
        let id = if probes { world.probe(after, origin, end) } else { world.setup(after, origin, end, LEASE) };
        asked.push(Asked { id, origin, end, expected: expected_stack(world.topology(), origin, end, probes) });
    }
    asked
}

fn lossy_settings() -> Settings {
    Settings {
        gist: |config| config.query_budget = Duration::from_secs(30),
        nslp: |config| {
            config.silence_is_the_end = false;
            config.timeout_default = Duration::from_secs(120);
        },
        ..Settings::default()
    }
}

/// The stack is that of the reference model, and ends early only where there is no node at all.
fn exact<'a>(world: &'a World, id: LocalId, expected: &[Expected]) -> &'a Outcome {
    let outcome = world.outcome(id).unwrap_or_else(|| panic!("{id:?} has no answer"));
    assert_eq!(entries(outcome), expected, "{id:?}: {:?}", outcome.incomplete);
    let kind = outcome.incomplete.as_ref().map(|refusal| refusal.kind);
    assert!(matches!(kind, None | Some(RefusalKind::NoNode)), "{id:?}: {kind:?}");
    outcome
}

/// Returns whether the stack is that of the reference model; else it must be its beginning, marked as incomplete.
fn is_exact_or_says_so(world: &World, Asked { id, expected, .. }: &Asked) -> bool {
    let id = *id;
    let outcome = world.outcome(id).unwrap_or_else(|| panic!("{id:?} has no answer"));
    assert!(outcome.nodes.iter().all(|node| node.outcome.is_ok()), "nobody refuses here: {outcome:?}");
    let entries = entries(outcome);
    let kind = outcome.incomplete.as_ref().map(|refusal| refusal.kind);
    if matches!(kind, None | Some(RefusalKind::NoNode)) {
        assert_eq!(&entries, expected, "{id:?}: {:?}", outcome.incomplete);
        return true;
    }
    assert!(expected.starts_with(&entries), "{id:?}: {entries:?} is no beginning of {expected:?}");
    println!("{id:?}: {} of {} entries: {:?}", entries.len(), expected.len(), outcome.incomplete);
    false
}

fn entries(outcome: &Outcome) -> Vec<Expected> {
    let entry = |node: &netserv_model::request::NodeReport| Expected {
        node: node.node.as_str().to_owned(),
        address: node.address,
    };
    outcome.nodes.iter().map(entry).collect()
}

/// Each node that a stack says has the module has its lease. Others may have one, too: their answers got lost.
fn stacks_name_only_nodes_that_did_it(world: &World, asked: &[Asked]) {
    let outcomes = asked.iter().filter_map(|asked| world.outcome(asked.id));
    let did_it = outcomes
        .flat_map(|outcome| &outcome.nodes)
        .filter(|node| matches!(node.outcome, NodeOutcome::Installed { .. } | NodeOutcome::Refreshed { .. }));
    let named: BTreeSet<&str> = did_it.map(|node| node.node.as_str()).collect();
    assert!(!named.is_empty(), "no SETUP came through");
    let leases = world.leftovers().leases;
    assert!(leases >= named.len(), "{leases} leases, and stacks name {named:?}");
}

fn no_request_came_twice(world: &World) {
    for vertex in world.topology().vertices() {
        assert_eq!(world.repeated_requests(vertex), 0, "{vertex:?}");
    }
}

fn nothing_is_left(world: &mut World) {
    world.run_for(AGES);
    assert_eq!(world.leftovers(), Leftovers::default());
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
