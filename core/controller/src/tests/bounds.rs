// SPDX-License-Identifier: Apache-2.0
//! Every bound is hit.

use netserv_model::RefusalKind;
use netserv_model::effect::InstalledRecord;
use netserv_model::limits::{CONTAINERS_MAX, NONCES_PER_USER_MAX, REQUESTS_PENDING_MAX};
use netserv_model::request::{Ask, Body, Outcome, Probe, Request};

use super::script::{Node, assert_refused, commands, policy, record, setup, user, user_policy};
use crate::limits::MODULES_PER_USER_MAX;

#[test]
fn modules_of_one_user_are_bounded_by_the_operator() {
    let mut node = Node::new();
    node.policy.users.get_mut(&user("jane")).unwrap().modules_max = 2;
    node.apply_policy();
    node.install(setup("a@1.0.0"));
    let pending = node.setup(setup("b@1.0.0"));
    node.commands();
    let over = node.setup(setup("c@1.0.0"));
    node.commands();
    assert_refused(&node.reports[&over], RefusalKind::QuotaExceeded, "2 modules of at most 2");
    node.install(setup("a@1.0.1"));
    node.fetch_failed(1, RefusalKind::FetchFailed);
    node.commands();
    assert!(!node.reports[&pending].outcome.is_ok());
    node.install(setup("c@1.0.0"));
}

/// A waiting request that its turn finds over the quota is refused then.
#[test]
fn the_quota_holds_when_a_waiting_request_has_its_turn() {
    let mut node = Node::new();
    node.policy.users.get_mut(&user("jane")).unwrap().modules_max = 1;
    node.apply_policy();
    node.setup(setup("a@1.0.0"));
    node.setup(setup("a@1.0.1"));
    commands!(node, "fetch 0 100");
    node.policy.users.get_mut(&user("jane")).unwrap().modules_max = 0;
    node.apply_policy();
    node.fetch_failed(0, RefusalKind::FetchFailed);
    commands!(node, "answer 0 fetch-failed", "answer 1 quota-exceeded");
    node.assert_empty();
}

#[test]
fn modules_of_one_user_are_bounded_by_the_places_less_one() {
    let mut node = Node::new();
    for n in 0..MODULES_PER_USER_MAX {
        node.install(setup(&format!("m{n}@1.0.0")));
    }
    let over = node.setup(setup("over@1.0.0"));
    node.commands();
    assert_refused(&node.reports[&over], RefusalKind::QuotaExceeded, "63 modules of at most 63");
    node.install(setup("m7@1.0.1"));
    assert_eq!(node.states().len(), MODULES_PER_USER_MAX);
}

#[test]
fn containers_are_bounded() {
    let mut policy = policy();
    policy.accept_unsigned = true;
    for n in 0..=CONTAINERS_MAX {
        policy.users.insert(user(&format!("u{n}")), user_policy("u", "10.2.0.0/16"));
    }
    let mut node = Node::with(policy);
    let send = |node: &mut Node, n: usize| {
        let unsigned = Request { signature: None, ..node.request(&format!("u{n}"), Body::from(setup("m@1.0.0"))) };
        let id = node.send(unsigned);
        node.carry_out(&super::script::manifest(&setup("m@1.0.0")));
        node.reports[&id].clone()
    };
    for n in 0..CONTAINERS_MAX {
        assert!(send(&mut node, n).outcome.is_ok(), "{n}");
    }
    assert_refused(&send(&mut node, CONTAINERS_MAX), RefusalKind::QuotaExceeded, "the node has 1024 containers");
    assert!(send(&mut node, 0).outcome.is_ok());
    // Modules that come back, after a restart or later, find no more room.
    let record = |n: usize| InstalledRecord { user: user(&format!("u{n}")), ..record(setup("m@1.0.0")) };
    let mut again = Node::with(node.policy.clone());
    again.controller.restore(again.now, (0..=CONTAINERS_MAX).map(record).collect::<Vec<_>>());
    assert_eq!(again.states().len(), CONTAINERS_MAX);
}

#[test]
fn requests_that_are_worked_on_are_bounded() {
    let mut node = Node::new();
    for _ in 0..REQUESTS_PENDING_MAX {
        node.setup(setup("m@1.0.0"));
    }
    commands!(node, "fetch 0 100");
    let over = node.setup(setup("m@1.0.0"));
    node.commands();
    assert_refused(&node.reports[&over], RefusalKind::QuotaExceeded, "works on 256 requests");
    assert_eq!(node.probe(&[Ask::Policy]).outcome, Outcome::Probed);
    node.fetch_failed(0, RefusalKind::FetchFailed);
    node.commands();
    node.fetched(1, super::script::manifest(&setup("m@1.0.0")));
    node.carry_out(&super::script::manifest(&setup("m@1.0.0")));
    assert_eq!(node.reports.len(), REQUESTS_PENDING_MAX + 2, "each is answered");
}

/// Goal: a user whose SETUPs wait for a server that does not answer holds up nobody: its slowest gives way to each request of others
/// until these have as many.
#[test]
fn the_slowest_request_of_who_has_the_most_gives_way() {
    let mut policy = policy();
    for n in 0..2 * REQUESTS_PENDING_MAX {
        policy.users.insert(user(&format!("u{n}")), user_policy("u", "10.2.0.0/16"));
    }
    policy.accept_unsigned = true;
    let mut node = Node::with(policy);
    let ask = |node: &mut Node, name: &str, module: &str| {
        let request = node.request(name, Body::from(setup(module)));
        let id = node.send(Request { signature: None, ..request });
        node.commands();
        id
    };
    let mut greedy = Vec::new();
    for n in 0..REQUESTS_PENDING_MAX {
        greedy.push(ask(&mut node, "u0", &format!("m{}@1.0.0", n % MODULES_PER_USER_MAX)));
        node.sleep_ms(1);
    }
    let over = ask(&mut node, "u0", "m0@1.0.0");
    assert_refused(&node.reports[&over], RefusalKind::QuotaExceeded, "works on 256 requests");
    // Its first are the slowest.
    let others: Vec<u64> = (1..REQUESTS_PENDING_MAX / 2).map(|n| ask(&mut node, &format!("u{n}"), "m@1.0.0")).collect();
    assert!(others.iter().all(|id| !node.reports.contains_key(id)), "each is worked on");
    let gave_way: Vec<bool> = greedy.iter().map(|id| node.reports.contains_key(id)).collect();
    let first = (0..greedy.len()).map(|number| number < others.len()).collect::<Vec<bool>>();
    assert_eq!(gave_way, first);
    // Who has more than others does not get more of them.
    let more = ask(&mut node, "u0", "m1@1.0.0");
    assert_refused(&node.reports[&more], RefusalKind::QuotaExceeded, "works on 256 requests");
}

#[test]
fn nonces_are_bounded() {
    let mut node = Node::new();
    let ask = |node: &mut Node| {
        let request = node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] }));
        node.ask(request)
    };
    for _ in 0..NONCES_PER_USER_MAX {
        assert_eq!(ask(&mut node).outcome, Outcome::Probed);
    }
    assert_refused(&ask(&mut node), RefusalKind::QuotaExceeded, "4096 requests within 300 s");
    node.sleep_ms(300_001);
    assert_eq!(ask(&mut node).outcome, Outcome::Probed);
}
