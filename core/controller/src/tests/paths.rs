// SPDX-License-Identifier: Apache-2.0
//! SETUPs that nodes send again when a path changes, and what becomes of a path that leads elsewhere.

use std::time::Duration;

use netserv_model::request::{Body, Outcome, Remove, Request, Setup};
use netserv_model::{Nonce, RefusalKind, UnixTime};

use super::script::{Node, assert_refused, commands, manifest, name, setup, sign, user};
use crate::limits::SESSIONS_REMEMBERED_PER_USER_MAX;

const TTL: Duration = Duration::from_secs(3000);

fn lasting(module: &str) -> Setup {
    Setup { ttl: TTL, ..setup(module) }
}

/// A SETUP as it was made some time ago.
fn made_ago(node: &Node, ago: Duration, setup: Setup) -> Request {
    let mut request = node.request("jane", Body::from(setup));
    request.created = UnixTime(request.created.0 - u64::try_from(ago.as_millis()).unwrap());
    request
}

/// As long as its lease would run, a node that has not seen a SETUP takes it: for what is left of the lease.
#[test]
fn a_setup_from_another_path_is_taken_for_the_rest_of_its_lease() {
    let skew = Node::new().policy.clock_skew_max;
    let ttl_of = |ago: Duration| {
        let mut node = Node::new();
        let request = made_ago(&node, ago, lasting("m@1.0.0"));
        let id = node.send(request);
        node.carry_out(&manifest(&setup("m@1.0.0")));
        let outcome = &node.reports[&id].outcome;
        if let Outcome::Installed { lease_s } = outcome { Ok(*lease_s) } else { Err(outcome.to_string()) }
    };
    assert_eq!(ttl_of(skew), Ok(3000));
    assert_eq!(ttl_of(skew + Duration::from_secs(1)), Ok(2999));
    assert_eq!(ttl_of(skew + TTL - Duration::from_secs(1)), Ok(1));
    assert!(ttl_of(skew + TTL).unwrap_err().contains("made at"));
}

#[test]
fn what_is_not_a_setup_or_longer_than_granted_is_not_taken_late() {
    let mut node = Node::new();
    let ago = node.policy.clock_skew_max + Duration::from_secs(1);
    let long = Setup { ttl: node.policy.ttl_max + Duration::from_secs(1), ..setup("m@1.0.0") };
    let dry = Request { dry_run: true, ..made_ago(&node, ago, lasting("m@1.0.0")) };
    let mut remove =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }));
    remove.created = dry.created;
    for request in [made_ago(&node, ago, long), dry, remove] {
        assert_refused(&node.ask(request), RefusalKind::StaleRequest, "made at");
    }
}

/// A node may hear of a REMOVE before an older SETUP that another node sends again; SETUPs may overtake each other.
#[test]
fn a_setup_from_before_a_remove_comes_too_late() {
    let older = |node: &Node, n: u8| {
        let older = made_ago(node, Duration::from_secs(2), lasting("m@1.0.0"));
        sign(Request { nonce: Nonce([n; 16]), ..older }, &super::script::key("jane"))
    };
    let mut node = Node::new();
    let first = older(&node, 7);
    node.install(lasting("m@1.0.0"));
    assert_eq!(node.ask(first).outcome, Outcome::Refreshed { lease_s: 3000 });
    let second = older(&node, 8);
    node.remove("m");
    assert_refused(&node.ask(second), RefusalKind::Replayed, "the newest one");
}

/// Whoever has a SETUP in force answers it with what is left, and nothing else changes.
#[test]
fn a_setup_that_is_in_force_can_come_again() {
    let mut node = Node::new();
    let request = node.request("jane", Body::from(lasting("m@1.0.0")));
    node.send(request.clone());
    commands!(node, "fetch 0 100");
    node.send(request.clone());
    node.fetched(0, manifest(&setup("m@1.0.0")));
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(
        node,
        "filter 0 jane 0 udp dst 10.2.0.0/24",
        "store jane m@1.0.0",
        "answer 0 installed 3000",
        "answer 1 refreshed 3000"
    );
    node.sleep_ms(2_000_000);
    assert_eq!(node.ask(request.clone()).outcome, Outcome::Refreshed { lease_s: 1000 });
    // Another one came after it.
    node.setup(lasting("m@1.0.0"));
    commands!(node, "store jane m@1.0.0", "answer 3 refreshed 3000");
    assert_refused(&node.ask(request.clone()), RefusalKind::Replayed, "the newest one");
    node.remove("m");
    node.commands();
    assert_refused(&node.ask(request), RefusalKind::Replayed, "the newest one");
}

/// A request that the last node sends back is at that node twice at the same time.
#[test]
fn a_setup_that_came_twice_is_refused_twice_for_the_same_reason() {
    let mut node = Node::new();
    let request = node.request("jane", Body::from(lasting("m@1.0.0")));
    let ids = [(); 3].map(|()| node.send(request.clone()));
    commands!(node, "fetch 0 100");
    node.fetch_failed(0, RefusalKind::FetchFailed);
    node.commands();
    for id in ids {
        assert_refused(&node.reports[&id], RefusalKind::FetchFailed, "");
    }
    node.assert_empty();
    // Behind another one, which others wait for, too.
    let first = node.request("jane", Body::from(lasting("m@1.0.0")));
    let first = [(); 2].map(|()| node.send(first.clone()));
    let second = node.request("jane", Body::from(lasting("m@2.0.0")));
    let second = [(); 2].map(|()| node.send(second.clone()));
    let remove =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }));
    let removal = node.send(remove);
    commands!(node, "fetch 1 100");
    node.fetch_failed(1, RefusalKind::FetchFailed);
    commands!(node, "answer 3 fetch-failed", "answer 4 fetch-failed", "fetch 2 200");
    first.iter().for_each(|id| assert_refused(&node.reports[id], RefusalKind::FetchFailed, ""));
    assert!(second.iter().all(|id| !node.reports.contains_key(id)), "they wait for what is fetched now");
    node.fetch_failed(2, RefusalKind::FetchFailed);
    node.commands();
    second.iter().for_each(|id| assert_refused(&node.reports[id], RefusalKind::FetchFailed, ""));
    assert_refused(&node.reports[&removal], RefusalKind::NotInstalled, "");
    node.assert_empty();
}

/// A node that restarted has its modules and not its nonces.
#[test]
fn a_setup_that_is_in_force_can_come_again_after_a_restart() {
    let mut node = Node::new();
    let request = node.request("jane", Body::from(lasting("m@1.0.0")));
    let mut record = super::script::record(lasting("m@1.0.0"));
    record.nonce = Some(request.nonce);
    record.lease_until = node.now.wall + TTL;
    node.sleep_ms(5000);
    node.controller.restore(node.now, vec![record]);
    commands!(node, "fetch 0 100");
    assert_eq!(node.ask(request.clone()).outcome, Outcome::Refreshed { lease_s: 2995 });
    let other = Request { nonce: Nonce([7; 16]), ..request };
    let other = sign(other, &super::script::key("jane"));
    assert_refused(&node.ask(other), RefusalKind::StaleRequest, "before the node started");
}

#[test]
fn sessions_remembered_per_user_max_sessions_have_their_newest_request_remembered() {
    let mut node = Node::new();
    let late = made_ago(&node, node.policy.clock_skew_max + Duration::from_secs(1), lasting("late@1.0.0"));
    let older = made_ago(&node, node.policy.clock_skew_max + Duration::from_secs(2), lasting("older@1.0.0"));
    let remove = |node: &mut Node, n: usize| {
        let request = node.request(
            "jane",
            Body::Remove(Remove { module: name(&format!("m{n}")), force: false, all: false, epoch: None }),
        );
        node.controller.users.newest_mut().note(
            &user("jane"),
            (&name(&format!("m{n}")), Some(request.session)),
            (request.nonce, late.created),
            true,
            request.created + node.policy.ttl_max,
            node.now.wall,
        );
    };
    (0..SESSIONS_REMEMBERED_PER_USER_MAX).for_each(|n| remove(&mut node, n));
    node.send(late.clone());
    commands!(node, "fetch 0 100");
    node.remove("late");
    node.commands();
    // One is forgotten, and nothing that is as old is taken any more.
    assert_refused(&node.ask(older), RefusalKind::Replayed, "the newest one");
}

#[test]
fn a_path_that_leads_elsewhere_takes_its_own_module_along() {
    let mut node = Node::new();
    let request = node.request("jane", Body::from(lasting("m@1.0.0")));
    let (nonce, jane) = (request.nonce, user("jane"));
    node.send(request);
    node.carry_out(&manifest(&setup("m@1.0.0")));
    let now = node.now;
    assert!(!node.controller.withdraw(now, &jane, &name("m"), Nonce([7; 16])));
    assert!(!node.controller.withdraw(now, &jane, &name("n"), nonce));
    commands!(node,);
    assert!(node.controller.withdraw(now, &jane, &name("m"), nonce));
    commands!(node, "unfilter 0", "unload jane 0", "forget jane m", "stop jane");
    assert_eq!(node.controller.counters().leases_withdrawn, 1);
    node.assert_empty();
}

/// Routes that changed change back.
#[test]
fn a_path_that_comes_back_brings_its_module_along() {
    for late in [false, true] {
        let mut node = Node::new();
        let request = node.request("jane", Body::from(lasting("m@1.0.0")));
        for _ in 0..3 {
            let id = node.send(request.clone());
            node.carry_out(&manifest(&setup("m@1.0.0")));
            assert!(matches!(node.reports[&id].outcome, Outcome::Installed { .. }), "{:?}", node.reports[&id].outcome);
            assert!(node.controller.withdraw(node.now, &user("jane"), &name("m"), request.nonce));
            node.commands();
            if late {
                node.sleep(node.policy.clock_skew_max + Duration::from_secs(1));
            }
        }
        // What its user removed stays away.
        node.sleep_ms(1);
        node.remove("m");
        let id = node.send(request.clone());
        node.carry_out(&manifest(&setup("m@1.0.0")));
        assert_refused(&node.reports[&id], RefusalKind::Replayed, "the newest one");
    }
}

#[test]
fn a_path_that_leads_elsewhere_ends_a_setup_under_way() {
    let mut node = Node::new();
    let request = node.request("jane", Body::from(lasting("m@1.0.0")));
    let nonce = request.nonce;
    let id = node.send(request);
    commands!(node, "fetch 0 100");
    assert!(node.controller.withdraw(node.now, &user("jane"), &name("m"), nonce));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::NotInstalled, "does not lead here");
    node.assert_empty();
}
