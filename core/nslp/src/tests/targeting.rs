// SPDX-License-Identifier: Apache-2.0
//! Requests that are for some nodes of a path.

use netserv_gist::{Notification, RouteStatus};
use netserv_model::control::ControlMessage;
use netserv_model::target::{Scope, Target};
use netserv_model::{Digest, Signature};
use netserv_wire::nslp::Tear;

use super::*;
use crate::Withdrawal;

const UPSTREAM: SiiHandle = SiiHandle::new(1, 1);
const NEXT: SiiHandle = SiiHandle::new(3, 3);
const OTHER: SiiHandle = SiiHandle::new(5, 5);
const LAST_ONLY: &str = "it is for the last node only";

fn targeted(scope: Scope, nodes: &[&str]) -> Target {
    Target { scope, nodes: nodes.iter().map(|name| name.parse().unwrap()).collect(), ..Target::default() }
}

fn probe_of(nonce: u8, target: &Target) -> String {
    let builder = RequestBuilder::probe(&[]).target(target);
    builder.build(UnixTime(0), Nonce([nonce; 16])).unwrap().into_message().as_str().to_owned()
}

fn setup_of(nonce: u8, scope: Scope) -> String {
    let module = "example.org/m@1.0.0".parse().unwrap();
    let builder = RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), Duration::from_secs(600));
    let builder = builder.user(&"jane".parse().unwrap()).target(&targeted(scope, &[]));
    let unsigned = builder.build(UnixTime(u64::from(nonce) * 1000), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(Signature([6; 64])).unwrap().as_str().to_owned()
}

fn outcome(node: &str, outcome: Outcome) -> NodeReport {
    NodeReport { outcome, ..report(node, "10.5.0.1") }
}

fn installed(node: &str) -> NodeReport {
    outcome(node, Outcome::Installed { lease_s: 600 })
}

fn passed(node: &str, reason: &str) -> NodeReport {
    outcome(node, Outcome::NotTargeted { reason: reason.to_owned() })
}

impl Node {
    fn receive_after(&mut self, peer: SiiHandle, nodes: u32, text: &str) {
        let data = format!("NETSERV/1 HOP\nnodes-passed: {nodes}\n\n{text}");
        self.receive_of(peer, &flow(), data.as_bytes());
    }

    fn receive_of(&mut self, peer: SiiHandle, mri: &Mri, data: &[u8]) {
        let mut event = received(mri, 9, data);
        if let Event::RecvMessage { sii, peer: address, .. } = &mut event {
            *sii = peer;
            *address = if peer == OTHER { ip("10.0.0.8") } else { ip("10.0.0.9") };
        }
        self.nslp.handle_event(self.now, event);
    }

    fn answered(&mut self, nonce: u8, entries: Vec<NodeReport>) {
        let answer = Response { entries, ..response(nonce, &[]) };
        self.receive_of(NEXT, &flow().inverted(), answer.emit().as_bytes());
    }

    /// The controller takes the next request; returns why it is not for this node.
    fn asked_why(&mut self) -> (RequestId, Option<String>) {
        let (id, request) = self.nslp.poll_request().expect("a request for the controller");
        (id, request.passed_by)
    }

    /// Returns the texts that the node sent; everything else is passed over.
    fn texts(&mut self) -> Vec<Payload> {
        let calls = std::iter::from_fn(|| self.nslp.poll_api_call());
        let text = |call| if let ApiCall::SendMessage { data, .. } = call { Some(data) } else { None };
        calls.filter_map(text).map(|data| Payload::parse(&data).unwrap()).collect()
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        let entries = |text| if let Payload::Response(response) = text { response.entries } else { Vec::new() };
        self.texts().into_iter().flat_map(entries).map(|entry| entry.outcome).collect()
    }
}

#[test]
fn a_request_for_the_last_node_is_decided_when_it_is_known_who_that_is() {
    for (scope, reason) in [(Scope::Last, LAST_ONLY), (Scope::Edge, "it is for the first and the last node only")] {
        let mut node = Node::new(|_| {});
        node.receive_after(UPSTREAM, 1, &probe_of(1, &targeted(scope, &[])));
        let sent = node.sent_request();
        assert!(node.nslp.poll_request().is_none(), "somebody may come after it");
        node.status(sent.handle, SendStatus::Sent);
        node.answered(1, vec![report("r3", "10.5.0.1")]);
        let (request, why) = node.asked_why();
        assert_eq!(why.as_deref(), Some(reason));
        node.report(request, passed("me", reason));
        let answer = node.sent_response();
        assert_eq!((names(&answer.entries), answer.incomplete), (vec!["me", "r3"], None));
        assert!(answer.entries[0].outcome.is_not_targeted());

        node.receive_after(UPSTREAM, 1, &probe_of(2, &targeted(scope, &[])));
        let sent = node.sent_request();
        node.no_peer(sent.handle);
        let (request, why) = node.asked_why();
        assert_eq!(why, None, "it is the last");
        node.report(request, report("me", "0.0.0.0"));
        assert_eq!(node.sent_response().entries[0].outcome, Outcome::Probed);
    }
}

#[test]
fn a_host_at_the_end_is_no_last_node() {
    let mut node = Node::new(|_| {});
    node.receive_after(UPSTREAM, 1, &probe_of(1, &targeted(Scope::Last, &[])));
    let sent = node.sent_request();
    node.status(sent.handle, SendStatus::Sent);
    node.answered(1, vec![]);
    assert_eq!(node.asked_why().1, None);
}

#[test]
fn who_is_silent_before_anything_is_known_of_it_is_taken_for_none() {
    let mut node = Node::new(|_| {});
    node.receive_within(4_000, &probe_of(1, &targeted(Scope::Last, &[])));
    let sent = node.sent_request();
    node.status(sent.handle, SendStatus::NoPeer(NoPeerReason::Timeout));
    let (request, why) = node.asked_why();
    assert_eq!(why, None);
    node.report(request, report("me", "0.0.0.0"));
    assert!(node.sent_response().incomplete.is_some(), "but the stack says so");
}

#[test]
fn a_next_node_that_does_not_answer_is_there_all_the_same() {
    let mut node = Node::new(|_| {});
    node.receive_within(4_000, &probe_of(1, &targeted(Scope::Last, &[])));
    let sent = node.sent_request();
    node.status(sent.handle, SendStatus::Sent);
    node.at(4_000);
    assert!(node.nslp.poll_request().is_none());
    let answer = node.sent_response();
    assert!(answer.entries[0].outcome.is_not_targeted() && answer.incomplete.is_some(), "{answer:?}");
}

#[test]
fn first_is_who_has_no_node_before_it() {
    for (scope, nodes, passed_before, meant) in [
        (Scope::First, &[][..], 0, true),
        (Scope::First, &[], 1, false),
        (Scope::Edge, &[], 0, true),
        (Scope::All, &["me"], 1, true),
        (Scope::All, &["you"], 0, false),
        (Scope::First, &["you", "me"], 0, true),
        (Scope::First, &["you"], 0, false),
    ] {
        let mut node = Node::new(|_| {});
        node.receive_after(UPSTREAM, passed_before, &probe_of(1, &targeted(scope, nodes)));
        assert_eq!(node.asked_why().1.is_none(), meant, "{scope} {nodes:?} after {passed_before}");
        let Ok(Payload::Request(envelope, _)) = Payload::parse(&node.sent_request().data) else { panic!() };
        assert_eq!(envelope.passed, Some(passed_before + 1));
    }
    let mut host = Node::new(|config| config.host_only = true);
    host.nslp
        .handle_local(
            host.now,
            LocalRequest {
                id: LocalId(1),
                message: probe_of(1, &targeted(Scope::First, &[])),
                path: path(),
                session: Some(SESSION),
                timeout: Duration::ZERO,
            },
        )
        .unwrap();
    let Ok(Payload::Request(envelope, _)) = Payload::parse(&host.sent_request().data) else { panic!() };
    assert_eq!((envelope.passed, host.nslp.poll_request()), (Some(0), None), "a host is no node");
}

#[test]
fn whom_it_is_not_for_need_not_know_its_user_and_keeps_nothing_then() {
    for (known, leases) in [(true, 1), (false, 0)] {
        let mut node = Node::new(|_| {});
        node.receive_after(UPSTREAM, 0, &setup_of(1, Scope::Last));
        let sent = node.sent_request();
        node.status(sent.handle, SendStatus::Sent);
        node.answered(1, vec![installed("r3")]);
        let (request, _) = node.asked_why();
        let refusal = Refusal::new(RefusalKind::UnknownUser, "no user `jane` here");
        node.report(request, if known { passed("me", LAST_ONLY) } else { outcome("me", Outcome::Refused(refusal)) });
        let outcomes = node.outcomes();
        assert_eq!(outcomes[0], Outcome::NotTargeted { reason: LAST_ONLY.to_owned() });
        assert_eq!(node.nslp.state_counts().leases, leases);
    }
}

/// Where the path grows, the module moves to the new last node, and back when that is gone.
#[test]
fn the_former_last_node_lets_its_module_go_once_another_has_it() {
    let mut node = Node::new(|_| {});
    node.receive_after(UPSTREAM, 1, &setup_of(1, Scope::Last));
    let sent = node.sent_request();
    node.no_peer(sent.handle);
    let (request, _) = node.asked_why();
    node.report(request, installed("me"));
    assert_eq!(node.outcomes(), [Outcome::Installed { lease_s: 600 }]);
    node.at(5_000);
    node.notify(Notification::StatusChange(RouteStatus::Good(NEXT)));
    node.at(5_000);
    let sent = node.sent_request();
    node.status(sent.handle, SendStatus::Sent);
    // The next one refuses: this one keeps it.
    let refusal = Refusal::new(RefusalKind::QuotaExceeded, "no room");
    node.answered(1, vec![outcome("r3", Outcome::Refused(refusal))]);
    let (request, why) = node.asked_why();
    assert_eq!(why, None, "nobody else has it");
    node.report(request, outcome("me", Outcome::Refreshed { lease_s: 595 }));
    assert_eq!(node.nslp.poll_withdrawal(), None);
    node.texts();
    // It takes it later.
    node.at(30_000);
    node.notify(Notification::StatusChange(RouteStatus::Good(OTHER)));
    node.at(30_000);
    assert!(node.nslp.poll_request().is_none());
    let sent = node.sent_request();
    node.status(sent.handle, SendStatus::Sent);
    node.answered(1, vec![installed("r3")]);
    let (request, why) = node.asked_why();
    assert_eq!(why.as_deref(), Some(LAST_ONLY));
    assert_eq!(node.nslp.poll_withdrawal(), None, "not before the controller knows the user");
    node.report(request, passed("me", LAST_ONLY));
    let (user, module) = ("jane".parse().unwrap(), "example.org/m".parse().unwrap());
    let withdrawal = Withdrawal { user, module, nonce: Nonce([1; 16]) };
    assert_eq!(node.nslp.poll_withdrawal(), Some(withdrawal));
    assert_eq!(node.nslp.state_counts().leases, 1, "the path is followed all the same");
    node.texts();
    // The other is gone.
    node.at(60_000);
    node.notify(Notification::LastNode);
    node.at(62_000);
    let sent = node.sent_request();
    node.no_peer(sent.handle);
    let (request, why) = node.asked_why();
    assert_eq!(why, None, "it is the last again");
    node.report(request, installed("me"));
    assert_eq!(node.nslp.poll_withdrawal(), None);
    assert_eq!(node.nslp.state_counts().leases, 1);
}

#[test]
fn the_former_first_node_lets_its_module_go_when_the_requesters_host_leaves_it() {
    let mut node = Node::new(|_| {});
    node.receive_after(UPSTREAM, 0, &setup_of(1, Scope::First));
    let sent = node.sent_request();
    node.no_peer(sent.handle);
    let (request, why) = node.asked_why();
    assert_eq!(why, None);
    node.report(request, installed("me"));
    node.texts();
    // Another node is in front of it from now on, and says so; anybody might.
    node.at(15_000);
    node.receive_after(OTHER, 1, &setup_of(1, Scope::First));
    let (request, why) = node.asked_why();
    assert_eq!(why, None, "until the host itself says otherwise");
    let sent = node.sent_request();
    node.no_peer(sent.handle);
    node.report(request, outcome("me", Outcome::Refreshed { lease_s: 585 }));
    node.texts();
    assert_eq!(node.nslp.poll_withdrawal(), None);
    assert_eq!(node.nslp.state_counts().leases, 1);
    // The host itself leaves.
    let tear = Tear {
        session: SESSION,
        nonce: Nonce([1; 16]),
        user: "jane".parse().unwrap(),
        module: "example.org/m".parse().unwrap(),
        token: None,
    };
    node.receive_of(UPSTREAM, &flow(), tear.emit().as_bytes());
    node.at(16_000);
    let (request, why) = node.asked_why();
    assert_eq!(why.as_deref(), Some("it is for the first node only"));
    for text in node.texts() {
        // Whoever is left is asked whether its path still leads here; nobody is told to let go.
        let is_question = matches!(&text, Payload::Tear(tear) if tear.token.is_some());
        assert!(is_question || matches!(text, Payload::Request(..)), "{text:?}");
    }
    node.report(request, passed("me", "it is for the first node only"));
    node.answered(1, vec![passed("r3", "it is for the first node only")]);
    assert_eq!(node.nslp.poll_withdrawal().map(|withdrawal| withdrawal.nonce), Some(Nonce([1; 16])));
}

/// Goal: a TELL for one node ends there and is answered as soon as that node did it, also if the last node was to send it back; one
/// for another node, or for several, goes on.
#[test]
fn a_tell_for_one_node_ends_there() {
    let tell = |nonce: u8, scope: Scope, nodes: &[&str]| {
        let message = ControlMessage { topic: "overload".parse().unwrap(), seq: 1, body: b"off".to_vec() };
        let builder = RequestBuilder::tell(&"example.org/m".parse().unwrap(), &message).and_return();
        let builder = builder.user(&"jane".parse().unwrap()).target(&targeted(scope, nodes));
        let unsigned = builder.build(UnixTime(u64::from(nonce) * 1000), Nonce([nonce; 16])).unwrap();
        unsigned.with_signature(Signature([6; 64])).unwrap().as_str().to_owned()
    };
    let mut node = Node::new(|_| {});
    node.receive_within(4000, &tell(1, Scope::All, &["me"]));
    let asked = node.asked();
    node.report(asked, outcome("me", Outcome::Told));
    let response = node.sent_response();
    assert_eq!((response.entries.len(), response.end, response.incomplete), (1, Some(PathEnd::Named), None));
    for (nonce, scope, nodes) in [
        (2, Scope::All, &["other"][..]),
        (3, Scope::All, &["me", "other"]),
        (4, Scope::All, &[]),
        (5, Scope::Last, &["me"]),
    ] {
        node.receive_within(4000, &tell(nonce, scope, nodes));
        if scope == Scope::All {
            node.asked();
        }
        node.sent_request();
    }
}
