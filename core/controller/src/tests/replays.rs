// SPDX-License-Identifier: Apache-2.0
//! Copies of signed requests that come by sessions of strangers, which nothing that is signed names; and which wish is the newest.

use std::time::Duration;

use netserv_model::request::{Body, Outcome, Probe, Request, Setup};
use netserv_model::{Nonce, RefusalKind, SessionId, UnixTime};

use super::script::{Node, assert_refused, key, manifest, name, setup, sign, user};
use super::sessions::{ONE, OTHER, last_stored, toward};
use crate::limits::SETUPS_REMEMBERED_PER_USER_MAX;

const STRANGER: SessionId = SessionId([0x55; 16]);

fn long(module: &str) -> Setup {
    Setup { ttl: Duration::from_secs(3000), ..setup(module) }
}

impl Node {
    /// Sends a request and carries all out that it leads to; returns its outcome.
    fn asked(&mut self, request: Request) -> Outcome {
        let package =
            if let Body::Setup(setup) = &request.body { manifest(setup) } else { manifest(&setup("m@1.0.0")) };
        let id = self.send(request);
        self.carry_out(&package);
        self.reports[&id].outcome.clone()
    }

    fn wish_of(&self, session: SessionId, setup: Setup) -> Request {
        Request { session, ..self.request("jane", Body::from(setup)) }
    }

    fn assert_replayed(&mut self, request: Request, why: &str) {
        let before = (self.states(), self.held_by());
        assert_refused(&self.ask(request), RefusalKind::Replayed, why);
        assert_eq!((self.states(), self.held_by()), before);
    }

    fn be_late(&mut self) {
        self.sleep(self.policy.clock_skew_max + Duration::from_secs(10));
    }
}

fn by(session: SessionId, request: &Request) -> Request {
    Request { session, ..request.clone() }
}

/// A node where a request of the first session installed a module some time ago.
fn with_old(late: bool) -> (Node, Request) {
    let mut node = Node::new();
    let old = node.wish_of(ONE, long("m@1.0.0"));
    assert!(node.asked(old.clone()).is_ok());
    node.sleep_ms(1000);
    if late {
        node.be_late();
    }
    (node, old)
}

/// Goal: nobody without the key brings back what its user removed, as long as its lease could run.
#[test]
fn what_was_removed_does_not_come_back_by_another_session() {
    for late in [false, true] {
        let (mut node, old) = with_old(late);
        node.remove_of(ONE, false);
        node.commands();
        node.assert_replayed(by(STRANGER, &old), "");
        node.assert_replayed(old, "");
        node.assert_empty();
    }
}

/// Goal: nor a version that another one has replaced, nor one that a request of its own session refreshed.
#[test]
fn what_was_replaced_does_not_come_back_by_another_session() {
    for (late, newer) in [(false, "m@2.0.0"), (true, "m@2.0.0"), (true, "m@1.0.0")] {
        let (mut node, old) = with_old(late);
        let request = node.wish_of(ONE, long(newer));
        assert!(node.asked(request).is_ok());
        node.assert_replayed(by(STRANGER, &old), "");
        node.assert_replayed(old, "");
        assert_eq!(node.states(), [format!("{newer} Running")]);
    }
}

/// Goal: what is in force is known by its own session, whichever way it comes, also after a restart; a stranger's joins nothing, which
/// could have it taken away later.
#[test]
fn what_is_in_force_does_not_come_by_another_session() {
    let (mut node, old) = with_old(true);
    let mut after = Node::new();
    after.now = node.now;
    after.controller.restore(after.now, vec![last_stored(&node)]);
    after.carry_out(&manifest(&setup("m@1.0.0")));
    for mut node in [node, after] {
        node.assert_replayed(by(STRANGER, &old), "by another session");
        for own in [ONE, ONE.twin()] {
            assert!(matches!(node.asked(by(own, &old)), Outcome::Refreshed { .. }));
        }
    }
    // While it is under way, too.
    node = Node::new();
    let old = node.wish_of(ONE, long("m@1.0.0"));
    node.send(old.clone());
    let id = node.send(by(STRANGER, &old));
    node.carry_out(&manifest(&setup("m@1.0.0")));
    assert_refused(&node.reports[&id], RefusalKind::Replayed, "by another session");
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

/// Goal: a path that comes back brings its own session along and no other.
#[test]
fn what_a_path_left_comes_back_by_its_own_session() {
    for late in [false, true] {
        let (mut node, old) = with_old(late);
        let now = node.now;
        assert!(node.controller.withdraw(now, &user("jane"), &name("m"), old.nonce));
        node.commands();
        node.assert_replayed(by(STRANGER, &old), "by another session");
        assert!(matches!(node.asked(old), Outcome::Installed { .. }));
    }
}

#[test]
fn a_user_that_goes_and_comes_back_has_its_requests_remembered() {
    for late in [false, true] {
        let (mut node, old) = with_old(late);
        let jane = node.policy.users.remove(&user("jane")).unwrap();
        node.apply_policy();
        node.commands();
        node.policy.users.insert(user("jane"), jane);
        node.apply_policy();
        node.commands();
        for session in [ONE, STRANGER] {
            node.assert_replayed(by(session, &old), "");
        }
    }
}

/// Goal: the newest version wins on each node, whatever order requests come in; what is for the same one joins.
#[test]
fn an_older_request_of_another_session_replaces_nothing() {
    for late in [false, true] {
        let mut node = Node::new();
        let older = |module: &str, n: u8| {
            let request = Request { nonce: Nonce([n; 16]), ..Node::new().wish_of(OTHER, long(module)) };
            sign(request, &key("jane"))
        };
        node.sleep_ms(1000);
        let newer = node.wish_of(ONE, Setup { filters: toward(1).filters, ..long("m@2.0.0") });
        assert!(node.asked(newer).is_ok());
        if late {
            node.be_late();
        }
        node.assert_replayed(older("m@1.0.0", 0x77), "example.org/m@2.0.0 is in force by a request of");
        let joins = node.asked(by(SessionId([3; 16]), &older("m@2.0.0", 0x78)));
        assert!(matches!(joins, Outcome::Installed { .. }), "{joins}");
        assert_eq!((node.states(), node.held_by().len()), (vec!["m@2.0.0 Running".to_owned()], 2));
    }
}

/// Goal: two requesters that want other properties do not replace each other's module with each refresh; who is overruled is told.
#[test]
fn a_refresh_that_wishes_nothing_new_replaces_nothing() {
    let with = |value: &str, receiver: u8| {
        let mut setup = Setup { filters: toward(receiver).filters, ..long("m@1.0.0") };
        setup.properties.insert("sample".to_owned(), value.to_owned());
        setup
    };
    let mut node = Node::new();
    let ask = |node: &mut Node, session, setup: Setup| {
        node.sleep_ms(60_000);
        let request = node.wish_of(session, setup);
        node.asked(request)
    };
    assert!(matches!(ask(&mut node, ONE, with("1", 1)), Outcome::Installed { .. }));
    assert!(matches!(ask(&mut node, OTHER, with("2", 2)), Outcome::Replaced { .. }));
    node.told.clear();
    let loads = node.jobs.len();
    for _ in 0..4 {
        assert_eq!(ask(&mut node, ONE, with("1", 1)), Outcome::Refreshed { lease_s: 3000 });
        assert_eq!(ask(&mut node, OTHER, with("2", 2)), Outcome::Refreshed { lease_s: 3000 });
    }
    let store = |job: &netserv_model::effect::Job| matches!(job, netserv_model::effect::Job::Store(_));
    assert!(node.jobs[loads..].iter().all(|job| store(job) || *job == netserv_model::effect::Job::ReadMeters));
    let told =
        "jane m module-replaced: example.org/m@1.0.0 of another session stays in its place, with its own properties";
    assert_eq!(node.told, [told; 4]);
    assert_eq!(last_stored(&node).properties["sample"], "2");
    // Its filters are its own all the same, also after a restart.
    assert_eq!(ask(&mut node, ONE, with("1", 3)), Outcome::Replaced { lease_s: 3000 });
    let mut after = Node::new();
    after.now = node.now + Duration::from_secs(1);
    after.controller.restore(after.now, vec![last_stored(&node)]);
    after.carry_out(&manifest(&with("2", 2)));
    for mut node in [node, after] {
        assert_eq!(ask(&mut node, ONE, with("1", 3)), Outcome::Refreshed { lease_s: 3000 });
        assert_eq!(node.filters(), ["udp dst 10.2.0.2/32", "udp dst 10.2.0.3/32"]);
        assert_eq!(last_stored(&node).properties["sample"], "2");
        // What it wishes anew is newer; and what nobody wants any more gives way.
        assert!(matches!(ask(&mut node, ONE, with("3", 1)), Outcome::Replaced { .. }));
        assert_eq!(ask(&mut node, OTHER, with("2", 2)), Outcome::Refreshed { lease_s: 3000 });
        node.sleep_ms(1000);
        node.remove_of(ONE, false);
        node.commands();
        assert_eq!(last_stored(&node).properties["sample"], "3");
        assert!(matches!(ask(&mut node, OTHER, with("2", 2)), Outcome::Replaced { .. }));
        assert_eq!(last_stored(&node).properties["sample"], "2");
    }
}

#[test]
fn setups_remembered_per_user_max_setups_are_known_by_their_session() {
    let (mut node, old) = with_old(true);
    let (jane, made, wall) = (user("jane"), old.created, node.now.wall);
    for n in 1..=SETUPS_REMEMBERED_PER_USER_MAX {
        let nonce = Nonce(u128::try_from(n).unwrap().to_be_bytes());
        let later = made + Duration::from_secs(1);
        node.controller.users.seen_mut().note(&jane, (nonce, OTHER), (later, later + Duration::from_secs(3000)), wall);
    }
    node.remove_of(ONE, false);
    node.commands();
    // It is forgotten, and nothing that is as old is taken any more.
    node.assert_replayed(by(STRANGER, &old), "are forgotten");
    let unseen = sign(Request { nonce: Nonce([0x79; 16]), ..old }, &key("jane"));
    node.assert_replayed(by(STRANGER, &unseen), "are forgotten");
}

/// Goal: where the operator wants requests to say where they are carried out, those that do not are refused before their signature is
/// looked at; what tells only what everybody may know is answered.
#[test]
fn a_request_that_could_be_copied_elsewhere_is_refused_where_the_operator_says_so() {
    for (require_target, is_bound, taken) in
        [(false, false, true), (false, true, true), (true, true, true), (true, false, false)]
    {
        let mut node = Node::new();
        node.policy.require_target = require_target;
        node.apply_policy();
        let mut request = node.wish_of(ONE, long("m@1.0.0"));
        request.is_bound = is_bound;
        if taken {
            assert!(node.asked(request).is_ok());
            continue;
        }
        request.signature = None;
        assert_refused(&node.ask(request), RefusalKind::NotForThisNode, "it names no path, domain or node");
        node.assert_empty();
        let probe = node.request("jane", Body::Probe(Probe::default()));
        assert_eq!(node.ask(probe).outcome, Outcome::Probed);
    }
}

/// Goal: who has copies of a user's requests takes no places in signaling as that user. Method: the request of long ago, and the one by
/// another session, are found to be nobody's; the user's own is found to be its.
#[test]
fn copies_are_not_found_to_be_of_their_user() {
    let mut node = Node::new();
    let old = Request { created: UnixTime(0), ..node.request("jane", Body::from(setup("m@1.0.0"))) };
    assert_refused(&node.ask(sign(old, &key("jane"))), RefusalKind::StaleRequest, "");
    let own = node.request("jane", Body::from(setup("m@1.0.0")));
    let id = node.send(own.clone());
    node.carry_out(&manifest(&setup("m@1.0.0")));
    let copy = Request { session: SessionId([3; 16]), ..own };
    assert_refused(&node.ask(copy), RefusalKind::Replayed, "");
    assert_eq!(node.found, [id]);
}
