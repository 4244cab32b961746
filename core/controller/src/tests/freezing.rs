// SPDX-License-Identifier: Apache-2.0
//! Modules that stand still for a while, so that another node can go on with their state.

use std::time::Duration;

use netserv_model::RefusalKind;
use netserv_model::effect::{EffectOutcome, InstalledRecord, Job, StoreJob};
use netserv_model::limits::{BUFFERING_TIME_MAX, FREEZE_TIME_MAX};
use netserv_model::request::{Body, Export, ModuleState, Outcome, Setup};

use super::script::*;
use super::servers::{asked, both, server_policy};
use crate::limits::{BUFFERED_MODULES_MAX, BUFFERED_MODULES_OF_USER_MAX, EXPORTS_OF_USER_MAX};

/// Goal: its filters are gone, and packets wait, before its state is asked for, and it is told of as standing still, until its time is up.
#[test]
fn a_module_sees_nothing_from_before_its_state_is_asked_for_until_its_time_is_up() {
    let mut node = Node::new();
    node.install(owned(2));
    node.commands();
    let asked = freeze(&mut node, 10);
    commands!(node, "buffer 1 jane 0 udp dst 10.2.0.0/24", "unfilter 0", "export 1 jane 0 m https://r.example/s");
    assert_eq!(state(&node), ModuleState::Frozen);
    node.package(1, exported());
    commands!(node, format!("answer {asked} exported"));
    let again = export(&node, Some(10));
    assert_refused(&node.ask(again), RefusalKind::NotRunning, "stands still");
    node.sleep(Duration::from_secs(9));
    assert_eq!(node.command(), None);
    node.sleep(Duration::from_secs(1));
    commands!(node, "filter 2 jane 0 udp dst 10.2.0.0/24", "unfilter 1");
    assert_eq!(state(&node), ModuleState::Running);
    node.remove("m");
    node.commands();
    node.assert_empty();
}

#[test]
fn a_module_whose_state_gets_nowhere_and_one_that_is_set_up_again_go_on() {
    let mut node = Node::new();
    node.install(owned(2));
    node.commands();
    let asked = freeze(&mut node, 10);
    node.commands();
    node.package(1, EffectOutcome::Refused(refusal(RefusalKind::FetchFailed)));
    commands!(node, format!("answer {asked} fetch-failed"), "filter 2 jane 0 udp dst 10.2.0.0/24", "unfilter 1");
    node.sleep_ms(1000);
    freeze(&mut node, 10);
    node.commands();
    node.package(2, exported());
    node.commands();
    node.sleep_ms(1000);
    let refreshed = node.setup(owned(2));
    commands!(
        node,
        "store jane m@1.0.0",
        "filter 4 jane 0 udp dst 10.2.0.0/24",
        "unfilter 3",
        format!("answer {refreshed} refreshed 600")
    );
    // Another version begins to run at once.
    freeze(&mut node, 10);
    node.commands();
    node.package(3, exported());
    node.commands();
    node.sleep_ms(1000);
    let next = Setup { epoch: 2, ..setup("m@2.0.0") };
    node.install(next);
    assert_eq!(state(&node), ModuleState::Running);
    node.sleep(FREEZE_TIME_MAX);
    assert!(node.commands().iter().all(|line| !line.starts_with("filter")), "nothing is left of the old one's time");
    node.remove("m");
    node.commands();
    node.assert_empty();
}

/// Goal: what stands still when its next owner's SETUP passes by does so until its lease ends, also over a restart; its requester
/// can still have it go on.
#[test]
fn a_module_that_another_node_goes_on_with_stays_as_it_is() {
    let mut node = Node::new();
    node.install(owned(2));
    node.commands();
    for (number, epoch, said) in
        [(1, 2, ""), (2, 3, "; example.org/m of epoch 2 stands still here until it is removed")]
    {
        let passing = passing(&node, epoch);
        let Outcome::NotTargeted { reason } = node.ask(passing).outcome else { panic!("it is for another node") };
        assert_eq!(reason, "it is for other nodes by name", "a running one lets it pass");
        node.sleep_ms(1000);
        freeze(&mut node, 5);
        node.commands();
        node.package(number, exported());
        let passing = self::passing(&node, epoch);
        let Outcome::NotTargeted { reason } = node.ask(passing).outcome else { panic!("it is for another node") };
        assert_eq!(reason, format!("it is for other nodes by name{said}"));
        node.sleep(Duration::from_secs(6));
    }
    assert_eq!(state(&node), ModuleState::Frozen);
    let stored = node.jobs.iter().rev().find_map(|job| {
        let Job::Store(StoreJob::Put(record)) = job else { return None };
        Some((**record).clone())
    });
    let record = InstalledRecord { lease_until: node.now.wall + Duration::from_secs(500), ..stored.unwrap() };
    assert_eq!(record.moved_in, Some(3));
    let mut restarted = Node::new();
    restarted.controller.restore(restarted.now, vec![record]);
    restarted.fetched(0, manifest(&owned(2)));
    restarted.ready();
    restarted.loaded(0);
    let lines = restarted.commands();
    assert!(lines.iter().all(|line| !line.starts_with("filter")), "{lines:?}");
    assert_eq!(state(&restarted), ModuleState::Frozen);
    restarted.sleep_ms(1000);
    // Its nonce is not that of what is stored.
    restarted.requests += 1_000;
    restarted.setup(owned(2));
    let lines = restarted.commands();
    assert!(lines.iter().any(|line| line.starts_with("filter 0 jane 0")), "{lines:?}");
    assert_eq!(state(&restarted), ModuleState::Running);
}

/// Goal: connections that it takes over are left alone meanwhile; what goes while it is to stand still is not asked for its state.
#[test]
fn connections_pass_a_module_that_stands_still_and_a_removed_one_is_not_asked() {
    let mut node = Node::with(server_policy());
    node.setup(asked("m@1.0.0"));
    node.carry_out(&both(&asked("m@1.0.0")));
    node.commands();
    freeze(&mut node, 10);
    let lines = node.commands();
    assert!(lines.iter().any(|line| line.starts_with("unintercept")), "{lines:?}");
    node.package(1, exported());
    node.sleep(Duration::from_secs(10));
    let lines = node.commands();
    assert!(lines.iter().any(|line| line.starts_with("intercept")), "{lines:?}");
    let request = export(&node, Some(10));
    let id = node.send(request);
    node.remove("m");
    let lines = node.commands();
    assert!(node.reports.contains_key(&id) || lines.iter().any(|line| line.starts_with("export")), "{lines:?}");
}

#[test]
fn modules_that_wait_to_stand_still_count_among_those_whose_states_are_written() {
    let mut node = Node::new();
    for n in 0..=EXPORTS_OF_USER_MAX {
        node.install(Setup { module: format!("example.org/m{n}@1.0.0").parse().unwrap(), ..owned(1) });
        node.sleep_ms(1000);
    }
    let ask = |node: &Node, n: usize| {
        let (module, freeze) = (name(&format!("m{n}")), Some(FREEZE_TIME_MAX));
        node.request(
            "jane",
            Body::Export(Export { module, url: URL.to_owned(), freeze, buffer: "10.9.9.9".parse().ok() }),
        )
    };
    for n in 0..EXPORTS_OF_USER_MAX {
        let request = ask(&node, n);
        node.send(request);
    }
    let request = ask(&node, EXPORTS_OF_USER_MAX);
    assert_refused(&node.ask(request), RefusalKind::QuotaExceeded, "writes 2 states of the user's already");
}

/// Goal: packets wait no longer once the next owner has begun: they would wait for nobody.
#[test]
fn packets_wait_a_little_while_after_the_next_owner_s_setup_passed_by() {
    let mut node = standing_still(10);
    let passing = passing(&node, 3);
    node.ask(passing);
    node.commands();
    node.sleep(BUFFERING_TIME_MAX - Duration::from_millis(1));
    assert_eq!(node.command(), None);
    node.sleep_ms(1);
    commands!(node, "unfilter 1");
    assert_eq!(state(&node), ModuleState::Frozen);
    node.remove("m");
    node.commands();
    node.assert_empty();
}

/// Goal: a module that is removed while packets wait for it, as at the end of a relocation, lets them go; and where there is no room for
/// the rules by which they wait, it stands still without.
#[test]
fn packets_go_with_the_module_and_wait_where_there_is_room_for_it() {
    let mut node = standing_still(10);
    node.remove("m");
    let lines = node.commands();
    assert!(lines.contains(&"unfilter 1".to_owned()), "{lines:?}");
    node.assert_empty();
    let mut node = Node::new();
    node.install(owned(2));
    node.commands();
    node.refuse_rule(1);
    freeze(&mut node, 10);
    commands!(
        node,
        "buffer 1 jane 0 udp dst 10.2.0.0/24",
        "unfilter 0",
        "unfilter 0",
        "export 1 jane 0 m https://r.example/s"
    );
    node.package(1, exported());
    node.sleep(Duration::from_secs(10));
    let lines = node.commands();
    assert_eq!(lines[1..], ["filter 2 jane 0 udp dst 10.2.0.0/24"]);
    node.remove("m");
    node.commands();
    node.assert_empty();
}

/// Goal: rules by which packets wait go, also if the change by which they were to is refused after the module stands still once more; and
/// if it goes on while its worker is down.
#[test]
fn rules_by_which_packets_wait_go_whatever_is_refused() {
    let mut node = standing_still(1);
    node.refuse_rule(2);
    node.sleep(Duration::from_secs(1));
    let lines = node.commands();
    assert_eq!(lines[1..3], ["filter 2 jane 0 udp dst 10.2.0.0/24", "unfilter 1"]);
    assert_eq!(lines.iter().filter(|line| *line == "unfilter 1").count(), 2, "refused, so once more: {lines:?}");
    assert!(node.controller.modules.buffers.is_empty());
    let mut node = standing_still(10);
    node.died(None);
    node.commands();
    node.sleep(Duration::from_secs(10));
    assert!(node.controller.modules.buffers.is_empty());
}

#[test]
fn packets_wait_for_buffered_modules_max_modules() {
    for (users, of_each, waits) in [
        (1, BUFFERED_MODULES_OF_USER_MAX + 1, BUFFERED_MODULES_OF_USER_MAX),
        (BUFFERED_MODULES_MAX / 8 + 1, 8, BUFFERED_MODULES_MAX),
    ] {
        let mut node = Node::new();
        let names: Vec<String> = (0..users).map(|number| format!("u{number}")).collect();
        node.policy.users = names.iter().map(|name| (user(name), user_policy(name, "10.2.0.0/16"))).collect();
        node.apply_policy();
        for (name, number) in names.iter().flat_map(|name| (0..of_each).map(move |number| (name, number))) {
            let module = format!("example.org/m{number}@1.0.0").parse().unwrap();
            let asked = Setup { module, prepare: true, buffer: "10.9.9.9".parse().ok(), ..owned(1) };
            let mut request = node.request(name, Body::from(asked.clone()));
            request.dry_run = true;
            let id = node.send(request);
            node.carry_out(&manifest(&asked));
            assert!(node.reports[&id].outcome.is_ok(), "{:?}", node.reports[&id]);
        }
        assert_eq!(node.controller.modules.buffers.len(), waits);
    }
}

const URL: &str = "https://r.example/s";

fn owned(epoch: u64) -> Setup {
    Setup { epoch, ttl: Duration::from_secs(600), ..setup("m@1.0.0") }
}

fn export(node: &Node, freeze: Option<u64>) -> netserv_model::request::Request {
    let freeze = freeze.map(Duration::from_secs);
    node.request(
        "jane",
        Body::Export(Export { module: name("m"), url: URL.to_owned(), freeze, buffer: "10.9.9.9".parse().ok() }),
    )
}

fn freeze(node: &mut Node, seconds: u64) -> u64 {
    let request = export(node, Some(seconds));
    node.send(request)
}

/// Returns a node with a module that stands still for so long, and whose state is written.
fn standing_still(seconds: u64) -> Node {
    let mut node = Node::new();
    node.install(owned(2));
    node.commands();
    freeze(&mut node, seconds);
    node.commands();
    node.package(1, exported());
    node
}

fn passing(node: &Node, epoch: u64) -> netserv_model::request::Request {
    let mut request = node.request("jane", Body::from(owned(epoch)));
    request.nodes = vec!["r2".parse().unwrap()];
    request.passed_by = Some("it is for other nodes by name".to_owned());
    request
}

fn exported() -> EffectOutcome {
    EffectOutcome::Exported { digest: digest(7), bytes: 9 }
}

fn state(node: &Node) -> ModuleState {
    node.controller.modules(node.now)[0].state
}
