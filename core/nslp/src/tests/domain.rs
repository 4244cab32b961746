// SPDX-License-Identifier: Apache-2.0
//! At the domain's border: what comes in, what goes out, and what is said of that.

use std::collections::BTreeSet;

use netserv_gist::FailReason;
use netserv_model::domain::{DomainPolicy, Learns, Neighbour, Neighbours, Refused, Show, Side, Strangers, Users};
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::request::{Body, NodeLoad, Withheld};
use netserv_wire::nslp::emit_notify;

use super::*;

/// The peer of [`received`] is at 10.0.0.9, the one after this node at 10.5.0.1.
fn border(change: impl FnOnce(&mut DomainPolicy)) -> Node {
    let inside = Some(vec!["10.5.0.0/16".parse().unwrap()]);
    let neighbours = Neighbours(vec![Neighbour { side: Side::Inside, prefixes: inside, tls_name: None }]);
    let mut policy = DomainPolicy { neighbours, ..DomainPolicy::default() };
    change(&mut policy);
    let mut node = Node::new(|_| {});
    node.nslp.handle_domain(policy);
    node
}

fn nobody() -> Users {
    Users::Only(BTreeSet::new())
}

/// What comes of a node inside.
fn from_inside(node: &mut Node, mri: &Mri, data: &[u8]) {
    let mut event = received(mri, 9, data);
    let Event::RecvMessage { peer, sii, .. } = &mut event else { unreachable!() };
    (*peer, *sii) = (ip("10.5.0.1"), SiiHandle::new(2, 1));
    node.nslp.handle_event(node.now, event);
}

#[test]
fn what_is_not_taken_from_outside_is_refused_and_stops() {
    let mut node = border(|policy| policy.take.probe = nobody());
    node.receive(&flow(), 8, probe(1).as_bytes());
    assert!(node.nslp.poll_request().is_none());
    let answer = node.sent_response();
    assert_eq!(names(&answer.entries), ["me"]);
    let Outcome::Refused(refusal) = &answer.entries[0].outcome else { panic!() };
    assert_eq!(refusal.kind, RefusalKind::OutsideDomain);
    assert_eq!(kind(answer.incomplete.as_ref()), Some(RefusalKind::OutsideDomain));
    from_inside(&mut node, &flow(), probe(2).as_bytes());
    node.asked();
    assert_eq!((node.nslp.counters().requests_not_taken, node.nslp.state_counts().pending), (1, 1));
}

#[test]
fn what_is_not_taken_from_outside_can_go_on_all_the_same() {
    let mut node = border(|policy| (policy.take.probe, policy.refused) = (nobody(), Refused::Pass));
    node.receive(&flow(), 8, probe(1).as_bytes());
    assert!(node.nslp.poll_request().is_none(), "this node's controller is not asked");
    node.sent_request();
    from_inside(&mut node, &flow().inverted(), response(1, &["r2"]).emit().as_bytes());
    let answer = node.sent_response();
    assert_eq!((names(&answer.entries), answer.incomplete), (vec!["me", "r2"], None));
    let Outcome::Refused(refusal) = &answer.entries[0].outcome else { panic!() };
    assert_eq!(refusal.kind, RefusalKind::OutsideDomain);
    // What is known is told again.
    node.receive(&flow(), 8, probe(1).as_bytes());
    assert_eq!(names(&node.sent_response().entries), ["me", "r2"]);
    node.forgets(true);
}

#[test]
fn outsiders_see_how_many_nodes_there_are_and_insiders_which() {
    let mut node = border(|policy| policy.show = Show::Border);
    node.receive(&flow(), 8, signed_probe(1).as_bytes());
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    let further = Response { foreign: 1, ..response(1, &["r2", "r3", "beyond"]) };
    from_inside(&mut node, &flow().inverted(), further.emit().as_bytes());
    let answer = node.sent_response();
    assert_eq!(names(&answer.entries), ["me", "beyond"]);
    assert_eq!((answer.withheld, answer.foreign), (Withheld { nodes: 2, refused: 0, lease_s: 0 }, 0));
    assert_eq!((answer.incomplete, answer.end), (None, Some(PathEnd::Unreachable)));
    // Somebody inside asks for the same.
    from_inside(&mut node, &flow(), signed_probe(1).as_bytes());
    let answer = node.sent_response();
    assert_eq!((names(&answer.entries), answer.foreign), (vec!["me", "r2", "r3", "beyond"], 1));
    assert_eq!(answer.withheld, Withheld::default());
}

#[test]
fn what_a_node_outside_says_of_its_own_domain_is_of_outside_here() {
    let mut node = border(|policy| policy.show = Show::Count);
    from_inside(&mut node, &flow(), probe(1).as_bytes());
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    let withheld = Withheld { nodes: 4, refused: 1, lease_s: 7 };
    node.receive_response(&Response { withheld, ..response(1, &["far", "farther"]) });
    let answer = node.sent_response();
    assert_eq!((names(&answer.entries), answer.foreign), (vec!["me", "far", "farther"], 2));
    assert_eq!(answer.withheld, withheld, "what others withheld stays so");
}

#[test]
fn strangers_outside_learn_less_than_users_and_those_inside() {
    let strangers = Strangers { nodes: Learns::Nothing, load: Learns::Presence, ..Strangers::default() };
    let mut node = border(|policy| policy.strangers = strangers);
    let loaded = || NodeReport { load: Some(NodeLoad::default()), ..report("me", "0.0.0.0") };
    let asking = |nonce: u8, ask: Ask| {
        let message = RequestBuilder::probe(&[ask]).build(UnixTime(0), Nonce([nonce; 16])).unwrap();
        message.into_message().as_str().to_owned()
    };
    for (nonce, ask, expected) in [(1, Ask::Nodes, None), (2, Ask::Load, Some(None))] {
        node.receive(&flow(), 8, asking(nonce, ask).as_bytes());
        let (request, sent) = (node.asked(), node.sent_request());
        node.no_peer(sent.handle);
        node.report(request, loaded());
        let answer = node.sent_response();
        assert_eq!(answer.entries.first().map(|entry| entry.load), expected);
        assert_eq!(answer.withheld.nodes, u32::from(expected.is_none()));
    }
    // Who has no signature but asks from inside, and who has one that fits.
    for inside in [true, false] {
        match inside {
            true => from_inside(&mut node, &flow(), asking(3, Ask::Load).as_bytes()),
            false => node.receive(&flow(), 8, signed_probe(4).as_bytes()),
        }
        let (request, sent) = (node.asked(), node.sent_request());
        node.no_peer(sent.handle);
        node.report(request, loaded());
        let answer = node.sent_response();
        assert_eq!((answer.entries[0].load, answer.withheld.nodes), (Some(NodeLoad::default()), 0), "{inside}");
    }
    // One whose signature does not fit.
    node.receive(&flow(), 8, signed_probe(5).as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.no_peer(sent.handle);
    let refusal = Refusal::new(RefusalKind::BadSignature, "it does not fit");
    node.report(request, NodeReport { outcome: Outcome::Refused(refusal), ..report("me", "0.0.0.0") });
    let answer = node.sent_response();
    assert_eq!((answer.entries[0].load, answer.entries[0].outcome.is_ok()), (None, false));
}

/// Goal: who is told nothing by PROBE learns nothing by other requests, malformed and looped ones included; users do.
#[test]
fn strangers_learn_no_more_by_other_requests_than_by_probe() {
    let strangers = Strangers { nodes: Learns::Nothing, ..Strangers::default() };
    let request = |builder: RequestBuilder, nonce: u8| {
        let unsigned = builder.user(&"jane".parse().unwrap()).build(UnixTime(0), Nonce([nonce; 16])).unwrap();
        unsigned.with_signature(netserv_model::Signature([0; 64])).unwrap().as_str().to_owned()
    };
    let setup = || {
        let digest = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
        RequestBuilder::setup(&"example.org/m@1.0.0".parse().unwrap(), "https://x", digest, Duration::from_secs(60))
    };
    let remove = || RequestBuilder::remove(&"example.org/m".parse().unwrap());
    let refused = |kind| Outcome::Refused(Refusal::new(kind, "jane"));
    for (nonce, builder, outcome, is_known) in [
        (1, setup(), refused(RefusalKind::UnknownUser), false),
        (2, setup(), refused(RefusalKind::BadSignature), false),
        (3, setup(), refused(RefusalKind::QuotaExceeded), true),
        (4, setup(), Outcome::Installed { lease_s: 60 }, true),
        (5, remove(), refused(RefusalKind::BadSignature), false),
        (6, remove(), Outcome::Removed, true),
    ] {
        let mut node = border(|policy| policy.strangers = strangers);
        node.receive(&flow(), 8, request(builder, nonce).as_bytes());
        let (asked, sent) = (node.asked(), node.sent_request());
        node.status(sent.handle, SendStatus::NoPeer(NoPeerReason::Timeout));
        node.report(asked, NodeReport { outcome, ..report("me", "0.0.0.0") });
        let Ok(Payload::Response(answer)) = Payload::parse(&node.sent().data) else { panic!("no answer") };
        assert_eq!((answer.entries.len(), answer.withheld.nodes), (usize::from(is_known), u32::from(!is_known)));
        let why = answer.incomplete.unwrap().detail;
        assert_eq!(why.contains("me "), is_known, "{why}");
    }
    // What this node refuses by itself.
    for text in [probe(1).replace("NETSERV/1", "NETSERV/1\nnothing"), probe(1)] {
        let mut node = border(|policy| (policy.strangers, policy.take.probe) = (strangers, nobody()));
        node.receive(&flow(), 8, text.as_bytes());
        let answer = node.sent_response();
        assert_eq!((names(&answer.entries), answer.withheld.nodes), (vec![], 1));
        let why = answer.incomplete.unwrap().detail;
        assert!(!why.contains("me "), "{why}");
    }
}

#[test]
fn what_is_not_let_out_stays_inside_and_the_stack_says_so() {
    let mut node = border(|policy| policy.let_out.probe = nobody());
    node.local(7, 1, path()).unwrap();
    let request = node.asked();
    let call = node.nslp.poll_api_call();
    let Some(ApiCall::SendMessage { handle, attributes, .. }) = call else { panic!("{call:?}") };
    assert!(attributes.inside && attributes.reliable);
    node.status(handle, SendStatus::Failed(FailReason::Outside));
    node.report(request, report("me", "0.0.0.0"));
    let result = node.result(7);
    assert_eq!(kind(result.incomplete.as_ref()), Some(RefusalKind::OutsideDomain));
    assert_eq!((result.end, node.nslp.counters().requests_kept_inside), (None, 1));
}

#[test]
fn news_that_go_out_name_no_nodes_where_the_stack_does_not() {
    for (show, expected) in [(Show::All, "n9"), (Show::Border, "withheld")] {
        let mut node = border(|policy| policy.show = show);
        let digest = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
        let builder = RequestBuilder::setup(&"example.org/m@1.0.0".parse().unwrap(), "https://x", digest, {
            Duration::from_secs(60)
        });
        let nonce = Nonce([1; 16]);
        let setup = builder.user(&"jane".parse().unwrap()).build(UnixTime(0), nonce).unwrap().into_message();
        assert!(matches!(setup.body(), Body::Setup(_)));
        node.receive(&flow(), 8, setup.as_str().as_bytes());
        let (request, _) = (node.asked(), node.sent_request());
        let outcome = Outcome::Installed { lease_s: 60 };
        node.report(request, NodeReport { outcome, ..report("me", "0.0.0.0") });
        from_inside(&mut node, &flow().inverted(), response(1, &["r2"]).emit().as_bytes());
        while node.nslp.poll_api_call().is_some() {}
        let news = Notify {
            session: SESSION,
            nonce,
            user: "jane".parse().unwrap(),
            module: "example.org/m".parse().unwrap(),
            node: "n9".parse().unwrap(),
            event: NotifyEvent::RouteMoved,
            nodes: vec!["n10".parse().unwrap()],
            detail: "n10 comes after n9".to_owned(),
            topic: None,
            body: Vec::new(),
        };
        from_inside(&mut node, &flow().inverted(), emit_notify(&news).as_bytes());
        let sent = node.sent();
        let Ok(Payload::Notify(notify)) = Payload::parse(&sent.data) else { panic!("{sent:?}") };
        assert_eq!(notify.node.as_str(), expected);
        assert_eq!((notify.event, notify.nodes.is_empty()), (NotifyEvent::RouteMoved, show != Show::All));
        assert_eq!(notify.detail.contains("n10"), show == Show::All);
    }
}

/// Its signature is the controller's to judge.
fn signed_probe(nonce: u8) -> String {
    let builder = RequestBuilder::probe(&[Ask::Load]).user(&"jane".parse().unwrap());
    let unsigned = builder.build(UnixTime(0), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(netserv_model::Signature([0; 64])).unwrap().as_str().to_owned()
}
