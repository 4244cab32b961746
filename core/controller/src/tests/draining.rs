// SPDX-License-Identifier: Apache-2.0
//! Modules that go while connections that they had taken over go on.

use netserv_model::effect::EffectOutcome;
use netserv_model::limits::FREEZE_TIME_MAX;
use netserv_model::manifest::{Drain, Manifest};
use netserv_model::request::{Body, Export, ModuleState, Outcome, Remove, Setup};
use netserv_model::{Flavour, RefusalKind};

use super::script::{Node, commands, name, tell, user};
use super::servers::{asked, both, server_policy};
use crate::limits::{DRAIN_TIME_MAX, DRAINING_MAX, FINISHING_MEMORY_PART};

/// Goal: the container and the rules of connections stay as long as connections do, and no longer.
#[test]
fn connections_go_on_until_the_last_has_ended() {
    let mut node = running();
    node.remove("m");
    commands!(node, "unfilter 1", "let-go 0", "drain jane 0", "forget jane m", "answer 1 removed");
    let status = &node.controller.modules(node.now)[0];
    assert_eq!((status.state, status.lease_s), (ModuleState::Draining, DRAIN_TIME_MAX.as_secs()));
    assert_eq!((status.module.to_string().as_str(), status.flavour), ("example.org/m@1.0.0", Some(Flavour::Wasm)));
    let again = node.remove("m");
    commands!(node, check(again, RefusalKind::NotInstalled));
    node.drained(0);
    commands!(node, "unintercept 0", "unload jane 0", "stop jane");
    node.assert_empty();
    node.drained(0);
    commands!(node,);
}

/// Goal: a module that goes on with its connections is told so, keeps nothing else, and ends with the last of them.
#[test]
fn a_module_that_finishes_what_it_has_is_told() {
    let mut node = of(Drain::Finish);
    let told = node.request("jane", tell("m", "volume", 7));
    assert_eq!(node.take(told), Outcome::Told);
    node.remove("m");
    commands!(
        node,
        "unfilter 1",
        "let-go 0",
        "tell 2 jane 0 draining 8",
        "finish jane 0",
        "forget jane m",
        "answer 2 removed"
    );
    assert_eq!(node.controller.modules(node.now)[0].state, ModuleState::Draining);
    node.package(2, EffectOutcome::Done);
    node.drained(0);
    commands!(node, "unintercept 0", "unload jane 0", "stop jane");
    node.assert_empty();
}

/// Goal: modules that finish what they have take a quarter of the container's memory at most; one that comes again has their connections.
#[test]
fn memory_of_those_that_finish_is_bounded_and_the_next_version_has_their_connections() {
    let mut node = of(Drain::Finish);
    let memory = both(&asked("m@1.0.0")).limits.memory_bytes;
    node.policy.users.get_mut(&user("jane")).unwrap().container.memory_bytes = memory * FINISHING_MEMORY_PART;
    node.apply_policy();
    node.commands();
    node.remove("m");
    assert!(!node.commands().contains(&"unload jane 0".to_owned()), "one has room");
    node.setup(asked("m@1.0.0"));
    node.commands();
    // What it was told was the second one.
    node.fetched(2, draining(&asked("m@1.0.0"), Drain::Finish));
    node.loaded(1);
    let lines = node.commands();
    assert!(lines.contains(&"unload jane 0".to_owned()), "the next one has its connections: {lines:?}");
    node.policy.users.get_mut(&user("jane")).unwrap().container.memory_bytes = memory * FINISHING_MEMORY_PART - 1;
    node.apply_policy();
    node.remove("m");
    let lines = node.commands();
    assert!(lines.contains(&"unload jane 1".to_owned()), "{lines:?}");
}

/// Goal: a module that stands still to be moved keeps its connections, and takes others again only if it goes on.
#[test]
fn connections_stay_while_a_module_stands_still() {
    let mut node = of(Drain::Finish);
    node.commands();
    freeze(&mut node);
    let lines = node.commands();
    assert!(lines.contains(&"let-go 0".to_owned()) && !lines.contains(&"unintercept 0".to_owned()), "{lines:?}");
    node.sleep(FREEZE_TIME_MAX);
    let lines = node.commands();
    assert!(lines.iter().any(|line| line.starts_with("intercept 0 ")), "{lines:?}");
    freeze(&mut node);
    node.commands();
    node.remove("m");
    let lines = node.commands();
    assert!(lines.contains(&"finish jane 0".to_owned()) && !lines.contains(&"unintercept 0".to_owned()), "{lines:?}");
}

#[test]
fn a_lease_that_ends_lets_them_go_on_and_they_end_with_their_time() {
    let mut node = running();
    node.sleep(std::time::Duration::from_secs(3600));
    commands!(node, "unfilter 1", "let-go 0", "drain jane 0", "forget jane m", "expired jane m@1.0.0");
    node.sleep(DRAIN_TIME_MAX - std::time::Duration::from_secs(1));
    commands!(node,);
    node.sleep(std::time::Duration::from_secs(1));
    commands!(node, "unintercept 0", "unload jane 0", "stop jane");
    node.assert_empty();
}

#[test]
fn force_ends_them_at_once_and_later() {
    let mut node = running();
    let request = force(&mut node);
    commands!(node, "unfilter 1", "unintercept 0", "unload jane 0", "forget jane m", "stop jane", answer(request));
    node.assert_empty();

    let mut node = running();
    node.remove("m");
    node.commands();
    let request = force(&mut node);
    commands!(node, "unintercept 0", "unload jane 0", "stop jane", answer(request));
    node.assert_empty();
    let request = force(&mut node);
    commands!(node, check(request, RefusalKind::NotInstalled));
}

/// A module of the same name comes into another place, and the worker stays with either.
#[test]
fn the_module_can_come_again_meanwhile() {
    let mut node = running();
    node.remove("m");
    node.commands();
    install(&mut node, 1);
    let states: Vec<ModuleState> = node.controller.modules(node.now).iter().map(|status| status.state).collect();
    assert_eq!(states, [ModuleState::Running, ModuleState::Draining]);
    node.drained(0);
    commands!(node, "unintercept 0", "unload jane 0");
    // What is installed is removed beside what drains, by the same request.
    node.remove("m");
    commands!(node, "unfilter 3", "let-go 2", "drain jane 1", "forget jane m", "answer 3 removed");
    node.drained(1);
    commands!(node, "unintercept 2", "unload jane 1", "stop jane");
    node.assert_empty();
}

#[test]
fn they_go_with_their_worker_and_with_what_their_user_may_do() {
    let mut node = running();
    node.remove("m");
    node.commands();
    node.died(None);
    commands!(node, "unintercept 0");
    node.assert_empty();

    let mut node = running();
    node.remove("m");
    node.commands();
    node.policy.users.get_mut(&user("jane")).unwrap().ports = vec!["53".parse().unwrap()];
    node.apply_policy();
    commands!(node, "unintercept 0", "unload jane 0", "stop jane");
    node.assert_empty();
}

#[test]
fn draining_max_modules_drain_and_the_first_gives_way() {
    let mut node = running();
    for round in 1..=DRAINING_MAX {
        node.remove("m");
        assert!(node.commands().iter().all(|command| !command.starts_with("unload")), "{round}");
        install(&mut node, round);
    }
    node.sleep_ms(1);
    node.remove("m");
    let commands = node.commands();
    assert!(
        commands.contains(&"unload jane 0".to_owned()) && commands.contains(&"drain jane 8".to_owned()),
        "{commands:?}"
    );
    let left = node.controller.modules(node.now);
    assert!(left.len() == DRAINING_MAX && left.iter().all(|status| status.state == ModuleState::Draining));
}

#[test]
fn what_is_revoked_or_replaced_does_not_drain() {
    let mut node = running();
    node.policy.users.get_mut(&user("jane")).unwrap().ports = vec!["53".parse().unwrap()];
    node.apply_policy();
    let revoked = "revoked jane m@1.0.0 port-not-allowed";
    commands!(node, "unfilter 1", "unintercept 0", "unload jane 0", "forget jane m", revoked, "stop jane");

    let mut node = running();
    node.setup(asked("m@1.1.0"));
    node.commands();
    node.fetched(1, draining(&asked("m@1.1.0"), Drain::Splice));
    node.loaded(1);
    assert!(node.commands().iter().all(|command| !command.starts_with("drain")));
}

fn freeze(node: &mut Node) {
    let url = "https://r.example/s".to_owned();
    let export = Export { module: name("m"), url, freeze: Some(FREEZE_TIME_MAX), buffer: None };
    let request = node.request("jane", Body::Export(export));
    node.send(request);
}

fn force(node: &mut Node) -> u64 {
    let request =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: true, all: false, epoch: None }));
    node.send(request)
}

fn answer(request: u64) -> String {
    format!("answer {request} removed")
}

fn check(request: u64, kind: RefusalKind) -> String {
    format!("answer {request} {kind}")
}

/// Returns a node on which `m` takes connections over, which go on when it goes.
fn running() -> Node {
    of(Drain::Splice)
}

fn of(drain: Drain) -> Node {
    let mut node = Node::with(server_policy());
    install_as(&mut node, 0, drain);
    node
}

fn install(node: &mut Node, fetches: usize) {
    install_as(node, fetches, Drain::Splice);
}

fn install_as(node: &mut Node, fetches: usize, drain: Drain) {
    node.setup(asked("m@1.0.0"));
    node.commands();
    node.fetched(fetches.try_into().unwrap(), draining(&asked("m@1.0.0"), drain));
    if fetches == 0 {
        node.ready();
    }
    node.loaded(fetches.try_into().unwrap());
    node.commands();
}

fn draining(setup: &Setup, drain: Drain) -> Manifest {
    let mut manifest = both(setup);
    manifest.server.as_mut().unwrap().drain = drain;
    manifest
}
