// SPDX-License-Identifier: Apache-2.0
//! Several sessions that hold one module.

use netserv_model::effect::{InstalledRecord, Job, StoreJob};
use netserv_model::request::{Body, Outcome, Remove, Setup};
use netserv_model::{Nonce, RefusalKind, SessionId};

use super::script::{Node, assert_refused, commands, name, setup, user};
use crate::limits::{FILTERS_OF_SESSIONS_MAX, SESSIONS_PER_MODULE_MAX};

pub(super) const ONE: SessionId = SessionId([1; 16]);
pub(super) const OTHER: SessionId = SessionId([2; 16]);

impl Node {
    pub(super) fn of_session(&mut self, session: SessionId, body: Body) -> u64 {
        let mut request = self.request("jane", body);
        request.session = session;
        self.send(request)
    }

    pub(super) fn setup_of(&mut self, session: SessionId, setup: Setup) -> u64 {
        self.of_session(session, Body::from(setup))
    }

    pub(super) fn remove_of(&mut self, session: SessionId, all: bool) -> u64 {
        self.of_session(session, Body::Remove(Remove { module: name("m"), force: false, all, epoch: None }))
    }

    pub(super) fn filters(&self) -> Vec<String> {
        let modules = self.controller.modules(self.now);
        modules.iter().flat_map(|status| status.filters.iter().map(ToString::to_string)).collect()
    }

    pub(super) fn held_by(&self) -> Vec<(SessionId, u64)> {
        let modules = self.controller.modules(self.now);
        modules.iter().flat_map(|status| status.sessions.iter().map(|held| (held.session, held.lease_s))).collect()
    }
}

/// A SETUP whose flow goes to one of two receivers.
pub(super) fn toward(receiver: u8) -> Setup {
    Setup { filters: vec![format!("udp dst 10.2.0.{receiver}").parse().unwrap()], ..setup("m@1.0.0") }
}

/// A node with a module that a SETUP toward the first receiver installed.
pub(super) fn held() -> Node {
    let mut node = Node::new();
    node.setup_of(ONE, toward(1));
    node.carry_out(&super::script::manifest(&toward(1)));
    node.commands();
    node
}

/// Case 37: SETUPs of one module toward two users, through one node.
#[test]
fn two_ways_of_one_module_are_seen_together_and_end_apart() {
    let mut node = held();
    node.setup_of(OTHER, toward(2));
    commands!(node, "filter 1 jane 0 udp dst 10.2.0.2/32", "store jane m@1.0.0", "answer 1 installed 60");
    assert_eq!(node.filters(), ["udp dst 10.2.0.1/32", "udp dst 10.2.0.2/32"]);
    node.remove_of(OTHER, false);
    commands!(node, "unfilter 1", "store jane m@1.0.0", "answer 2 removed");
    assert_eq!(node.filters(), ["udp dst 10.2.0.1/32"]);
    node.remove_of(ONE, false);
    commands!(node, "unfilter 0", "unload jane 0", "forget jane m", "stop jane", "answer 3 removed");
    node.assert_empty();
}

#[test]
fn the_longest_lease_counts_and_each_session_keeps_its_own() {
    let mut node = held();
    node.setup_of(OTHER, Setup { ttl: std::time::Duration::from_secs(10), ..toward(1) });
    commands!(node, "store jane m@1.0.0", "answer 1 installed 10");
    assert_eq!(node.held_by(), [(ONE, 60), (OTHER, 10)]);
    assert_eq!(node.controller.modules(node.now)[0].lease_s, 60);
    node.sleep_ms(10_000);
    commands!(node, "store jane m@1.0.0");
    assert_eq!(node.held_by(), [(ONE, 50)]);
    // The one that lasts may be another one's later.
    node.setup_of(OTHER, toward(2));
    node.carry_out(&super::script::manifest(&toward(2)));
    node.commands();
    node.sleep_ms(50_000);
    assert_eq!((node.held_by(), node.filters()), (vec![(OTHER, 10)], vec!["udp dst 10.2.0.2/32".to_owned()]));
    node.sleep_ms(10_000);
    node.commands();
    node.assert_empty();
    assert_eq!(node.controller.counters().leases_expired, 3);
}

#[test]
fn a_remove_of_a_session_that_holds_nothing_takes_nothing_and_one_for_all_takes_all() {
    let mut node = held();
    let id = node.remove_of(OTHER, false);
    node.commands();
    assert_refused(
        &node.reports[&id],
        RefusalKind::NotInstalled,
        "does not hold example.org/m of user `jane`; 1 others do",
    );
    assert_eq!(node.filters().len(), 1);
    let id = node.remove_of(OTHER, true);
    node.commands();
    assert_eq!(node.reports[&id].outcome, Outcome::Removed);
    node.assert_empty();
}

/// Goal: what a client installs on one node of a path and then on another stays on both, and its REMOVE takes it from wherever it goes.
#[test]
fn sessions_of_one_client_for_other_nodes_are_removed_together() {
    let of_node = |n: u8| {
        let mut bytes = [1; 16];
        bytes[8..].fill(n);
        SessionId(bytes)
    };
    let mut node = held();
    node.setup_of(of_node(7), toward(2));
    node.commands();
    assert_eq!(node.held_by().len(), 2);
    node.remove_of(of_node(9), false);
    node.commands();
    node.assert_empty();
}

/// Goal: a node answers a request of a round trip alike in both directions, and counts it as one session.
///
/// The last node of a round trip sends requests back by the twin of their session.
#[test]
fn both_ways_of_a_round_trip_are_one_session() {
    let mut node = held();
    node.setup_of(ONE.twin(), toward(1));
    commands!(node, "store jane m@1.0.0", "answer 1 refreshed 60");
    let mut remove =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }));
    remove.session = ONE;
    node.send(remove.clone());
    remove.session = ONE.twin();
    let again = node.ask(remove);
    assert_eq!(again.outcome, Outcome::Removed, "one request, one answer");
    node.commands();
    node.assert_empty();
}

#[test]
fn a_remove_that_took_nothing_says_so_each_time() {
    let mut node = Node::new();
    let remove =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }));
    for _ in 0..2 {
        assert_refused(&node.ask(remove.clone()), RefusalKind::NotInstalled, "no module example.org/m");
    }
}

/// Goal: what a session asks for later takes the place of what it asked for before, and the module runs on.
#[test]
fn a_session_changes_its_filters_without_a_reload() {
    let mut node = held();
    node.setup_of(OTHER, toward(1));
    node.commands();
    node.setup_of(ONE, toward(3));
    commands!(node, "filter 1 jane 0 udp dst 10.2.0.3/32", "store jane m@1.0.0", "answer 2 replaced 60");
    node.setup_of(OTHER, toward(3));
    commands!(node, "unfilter 0", "store jane m@1.0.0", "answer 3 replaced 60");
    assert_eq!(node.filters(), ["udp dst 10.2.0.3/32"]);
}

/// Goal: who asks for other filters of a module that is down is not told that they are in force, though another session has them already.
#[test]
fn other_filters_of_a_module_that_is_down_have_it_loaded() {
    let mut node = held();
    node.setup_of(OTHER, toward(2));
    node.commands();
    node.trapped(0);
    node.commands();
    let id = node.setup_of(ONE, toward(2));
    node.commands();
    assert!(!node.reports.contains_key(&id), "{:?}", node.reports.get(&id));
    node.loaded(1);
    node.commands();
    assert_eq!(node.reports[&id].outcome, Outcome::Replaced { lease_s: 60 });
    assert_eq!(
        (node.filters(), node.states()),
        (vec!["udp dst 10.2.0.2/32".to_owned()], vec!["m@1.0.0 Running".to_owned()])
    );
}

#[test]
fn filters_that_cannot_be_had_leave_all_as_it_was() {
    let mut node = held();
    node.refuse_rule(1);
    let id = node.setup_of(OTHER, toward(2));
    node.commands();
    assert!(matches!(node.reports[&id].outcome, Outcome::Refused(_)), "{:?}", node.reports[&id]);
    assert_eq!((node.filters(), node.held_by()), (vec!["udp dst 10.2.0.1/32".to_owned()], vec![(ONE, 60)]));
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

/// Goal: the newest wins, its filters with those of the others, and the others are told.
#[test]
fn another_version_takes_the_place_for_all_and_the_others_are_told() {
    let mut node = held();
    let newer = Setup { filters: toward(2).filters, ..setup("m@2.0.0") };
    node.setup_of(OTHER, newer.clone());
    node.carry_out(&super::script::manifest(&newer));
    assert_eq!(node.filters(), ["udp dst 10.2.0.1/32", "udp dst 10.2.0.2/32"]);
    assert_eq!(
        node.told,
        ["jane m module-replaced: example.org/m@2.0.0 of another session is in its place, with its own properties"]
    );
    node.remove_of(OTHER, false);
    node.commands();
    assert_eq!(
        (node.filters(), node.states()),
        (vec!["udp dst 10.2.0.1/32".to_owned()], vec!["m@2.0.0 Running".to_owned()])
    );
}

/// Goal: a request of one session says nothing of what another one's late SETUP may do.
#[test]
fn sessions_do_not_make_each_others_requests_old() {
    let mut node = held();
    let mut older = node.request("jane", Body::from(toward(2)));
    (older.session, older.nonce) = (OTHER, Nonce([7; 16]));
    node.sleep_ms(1000);
    node.remove_of(ONE, false);
    node.commands();
    node.send(older);
    node.carry_out(&super::script::manifest(&toward(2)));
    assert_eq!(node.filters(), ["udp dst 10.2.0.2/32"]);
}

#[test]
fn a_path_that_leads_elsewhere_takes_its_session_along() {
    let mut node = held();
    let mut request = node.request("jane", Body::from(Setup { filters: toward(2).filters, ..setup("m@1.0.0") }));
    request.session = OTHER;
    let nonce = request.nonce;
    node.send(request);
    node.commands();
    let now = node.now;
    assert!(node.controller.withdraw(now, &user("jane"), &name("m"), nonce));
    commands!(node, "unfilter 1", "store jane m@1.0.0");
    assert_eq!(node.held_by(), [(ONE, 60)]);
}

#[test]
fn sessions_come_back_after_a_restart_with_what_is_left_of_each() {
    let mut node = held();
    node.setup_of(OTHER, Setup { ttl: std::time::Duration::from_secs(10), ..toward(2) });
    node.commands();
    let stored = last_stored(&node);
    let mut after = Node::new();
    after.now = node.now + std::time::Duration::from_secs(5);
    after.controller.restore(after.now, vec![stored]);
    after.carry_out(&super::script::manifest(&toward(1)));
    assert_eq!(after.held_by(), [(ONE, 55), (OTHER, 5)]);
    assert_eq!(after.filters(), ["udp dst 10.2.0.1/32", "udp dst 10.2.0.2/32"]);
    after.sleep_ms(5000);
    assert_eq!(after.filters(), ["udp dst 10.2.0.1/32"]);

    // One that ended meanwhile is forgotten.
    let mut later = Node::new();
    later.now = node.now + std::time::Duration::from_secs(20);
    let stored = last_stored(&node);
    later.controller.restore(later.now, vec![stored]);
    later.commands();
    assert_eq!(last_stored(&later).sessions.len(), 1);
}

/// Goal: a module whose last SETUP's lease ended while its node was down stays for those that hold it still, with their filters alone.
#[test]
fn a_module_outlives_the_session_of_its_last_setup_across_a_restart() {
    let of = |n: u8, ttl_s: u64| Setup {
        filters: (0..10).map(|last| format!("udp dst 10.2.{n}.{last}").parse().unwrap()).collect(),
        ttl: std::time::Duration::from_secs(ttl_s),
        ..setup("m@1.0.0")
    };
    let mut node = Node::new();
    for (n, ttl_s) in [(1, 3000), (2, 3000), (3, 10)] {
        node.setup_of(SessionId([n; 16]), of(n, ttl_s));
        node.carry_out(&super::script::manifest(&of(n, ttl_s)));
    }
    assert_eq!((node.filters().len(), node.held_by().len()), (30, 3));
    let mut after = Node::new();
    after.now = node.now + std::time::Duration::from_secs(60);
    after.controller.restore(after.now, vec![last_stored(&node)]);
    after.carry_out(&super::script::manifest(&of(1, 3000)));
    assert_eq!((after.states(), after.filters().len()), (vec!["m@1.0.0 Running".to_owned()], 20));
    assert_eq!(after.held_by(), [(SessionId([1; 16]), 2940), (SessionId([2; 16]), 2940)]);
}

/// Returns the record that was stored last.
pub(super) fn last_stored(node: &Node) -> InstalledRecord {
    let put = |job: &Job| {
        let Job::Store(StoreJob::Put(record)) = job else { return None };
        Some((**record).clone())
    };
    node.jobs.iter().rev().find_map(put).unwrap()
}

#[test]
fn sessions_per_module_max_sessions_hold_a_module() {
    let mut node = held();
    let session = |n: usize| SessionId((u128::try_from(n + 1000).unwrap() << 64).to_be_bytes());
    for n in 1..SESSIONS_PER_MODULE_MAX {
        let id = node.setup_of(session(n), toward(1));
        node.commands();
        assert_eq!(node.reports[&id].outcome, Outcome::Installed { lease_s: 60 });
    }
    let id = node.setup_of(session(0), toward(1));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::QuotaExceeded, "sessions hold the module");
    let id = node.setup_of(session(1), toward(1));
    node.commands();
    assert_eq!(node.reports[&id].outcome, Outcome::Refreshed { lease_s: 60 });
}

#[test]
fn filters_of_sessions_max_filters_are_asked_for_together() {
    let mut node = held();
    let session = |n: u8| SessionId((u128::from(n) << 64).to_be_bytes());
    for n in 2..=u8::try_from(FILTERS_OF_SESSIONS_MAX).unwrap() {
        let id = node.setup_of(session(n), toward(n));
        node.commands();
        assert_eq!(node.reports[&id].outcome, Outcome::Installed { lease_s: 60 }, "{n}");
    }
    let id = node.setup_of(session(200), toward(200));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::QuotaExceeded, "at most");
    assert_eq!(node.filters().len(), FILTERS_OF_SESSIONS_MAX);
}

/// Goal: what an earlier version of the node stored has a session that nobody can name; whoever asks next of its user has it.
#[test]
fn what_an_earlier_version_stored_is_of_whoever_asks() {
    let restored = || {
        let mut node = Node::new();
        node.controller.restore(node.now, vec![super::script::record(toward(1))]);
        node.carry_out(&super::script::manifest(&toward(1)));
        node
    };
    // One who removes it, before and after a restart.
    let mut node = restored();
    node.setup_of(OTHER, toward(2));
    node.commands();
    assert_eq!(node.held_by().len(), 2, "it may be of another requester");
    let mut after = Node::new();
    (after.now, after.requests) = (node.now, 100);
    after.controller.restore(after.now, vec![last_stored(&node)]);
    after.carry_out(&super::script::manifest(&toward(1)));
    for mut node in [node, after] {
        node.remove_of(OTHER, false);
        node.commands();
        assert_eq!(node.filters(), ["udp dst 10.2.0.1/32"], "{:?}", node.held_by());
        let id = node.remove_of(ONE, false);
        node.commands();
        assert_eq!(node.reports[&id].outcome, Outcome::Removed);
        node.assert_empty();
    }
    // One who goes on with it.
    let mut node = restored();
    node.setup_of(ONE, toward(1));
    node.commands();
    assert_eq!(node.held_by(), [(ONE, 60)]);
    let id = node.remove_of(OTHER, false);
    node.commands();
    let how = format!("`--session {ONE}` removes one of them");
    assert_refused(&node.reports[&id], RefusalKind::NotInstalled, &how);
}
