// SPDX-License-Identifier: Apache-2.0
//! Requests that the last node sends back to their requester.

use netserv_gist::{Notification, RouteStatus};
use netserv_model::request::ReturnStack;
use netserv_model::{Digest, Signature};
use netserv_wire::nslp::Tear;

use super::*;
use crate::limits::{RETURNS_BURST_MAX, RETURNS_INTERVAL, RETURNS_OF_ALL_MAX};

const HOST: &str = "10.0.0.9";

fn round_trip(nonce: u8) -> String {
    let builder = RequestBuilder::probe(&[]).and_return();
    builder.build(UnixTime(0), Nonce([nonce; 16])).unwrap().into_message().as_str().to_owned()
}

fn setup(nonce: u8) -> String {
    let module = "example.org/m@1.0.0".parse().unwrap();
    let builder = RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), Duration::from_secs(600)).and_return();
    let unsigned = builder.user(&"jane".parse().unwrap()).build(UnixTime(0), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(Signature([6; 64])).unwrap().as_str().to_owned()
}

/// The flow of the requester, who is the previous node.
fn out() -> Mri {
    Mri::PathCoupled(PathCoupled::new(ip(HOST), ip("10.9.0.1")).unwrap())
}

/// The flow on which this node sends it back.
fn back() -> Mri {
    Mri::PathCoupled(PathCoupled::new(ip("10.0.0.1"), ip(HOST)).unwrap())
}

fn back_session() -> SessionId {
    SessionId(SESSION.0.map(|byte| !byte))
}

impl Node {
    fn asked_of(&mut self, mri: &Mri, headers: &str, text: &str) {
        let data = format!("NETSERV/1 HOP\nbudget-ms: 8000\n{headers}\n{text}");
        self.receive(mri, 8, data.as_bytes());
    }

    fn receive_on(&mut self, session: SessionId, mri: &Mri, data: &[u8]) {
        let mut event = received(mri, 9, data);
        if let Event::RecvMessage { session: of, .. } = &mut event {
            *of = session;
        }
        self.nslp.handle_event(self.now, event);
    }

    /// Returns every message that the node sent, with its flow.
    fn sent_all(&mut self) -> Vec<(MessageHandle, SessionId, Mri, Payload)> {
        let calls = std::iter::from_fn(|| self.nslp.poll_api_call());
        let message = |call| match call {
            ApiCall::SendMessage { handle, session, mri, data, .. } => Some((handle, session, mri, data)),
            other @ (ApiCall::AbortMessage { .. } | ApiCall::AnswerQuery { .. } | ApiCall::SetPeering { .. }) => {
                panic!("{other:?}")
            }
            ApiCall::SetStateLifetime { .. } | ApiCall::InvalidateRoutingState { .. } => None,
        };
        let parsed = calls.filter_map(message);
        parsed.map(|(handle, session, mri, data)| (handle, session, mri, Payload::parse(&data).unwrap())).collect()
    }

    /// The node must have answered, and done nothing else.
    fn only_answer(&mut self) -> Response {
        let sent = self.sent_all();
        let [(_, SESSION, mri, Payload::Response(response))] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(*mri, out().inverted());
        (**response).clone()
    }

    /// The last node gets a request and sends it back; returns what the controller is asked and the message.
    fn turns(&mut self, text: &str) -> (RequestId, MessageHandle) {
        self.asked_of(&out(), "may-return: true\n", text);
        let request = self.asked();
        let sent = self.sent_all();
        let [(handle, ..)] = sent[..] else { panic!("{sent:?}") };
        self.no_peer(handle);
        let sent = self.sent_all();
        let [(handle, session, mri, Payload::Request(envelope, message))] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((*session, mri, message.as_str()), (back_session(), &back(), text), "as its user signed it");
        assert_eq!((envelope.budget, envelope.may_return), (Some(Duration::from_secs(7)), false));
        (request, *handle)
    }
}

#[test]
fn the_last_node_sends_a_request_back_and_answers_with_both_stacks() {
    let mut node = Node::new(|_| {});
    let (request, handle) = node.turns(&round_trip(1));
    node.status(handle, SendStatus::Sent);
    node.report(request, report("me", "0.0.0.0"));
    node.quiet();
    let answer = Response { session: back_session(), end: Some(PathEnd::Destination), ..response(1, &["b1", "b2"]) };
    node.receive_on(back_session(), &back().inverted(), answer.emit().as_bytes());
    let answer = node.only_answer();
    assert_eq!((names(&answer.entries), answer.end), (vec!["me"], Some(PathEnd::Unreachable)));
    let returned = answer.returned.unwrap();
    assert_eq!((names(&returned.nodes), returned.end), (vec!["b1", "b2"], Some(PathEnd::Destination)));
    assert!(node.nslp.poll_request().is_none(), "the node itself has answered");
    // The same request again: the same answer, and nothing goes back.
    node.asked_of(&out(), "may-return: true\n", &round_trip(1));
    assert!(node.only_answer().returned.is_some());
    assert_eq!(node.nslp.counters().returns_sent, 1);
}

/// Goal: what is for the way back alone passes the nodes of the way there, and the last of them takes it on the way back.
#[test]
fn a_request_for_the_way_back_is_for_the_last_node_and_those_behind_it() {
    let builder = RequestBuilder::probe(&[]).return_only();
    let text = builder.build(UnixTime(0), Nonce([1; 16])).unwrap().into_message().as_str().to_owned();
    let mut node = Node::new(|_| {});
    node.asked_of(&out(), "may-return: true\n", &text);
    let (request, asked) = node.nslp.poll_request().unwrap();
    let reason = asked.passed_by.expect("it is on the way there");
    let [(handle, ..)] = node.sent_all()[..] else { panic!() };
    node.no_peer(handle);
    let (on_way_back, asked) = node.nslp.poll_request().unwrap();
    assert_eq!((asked.session, asked.passed_by), (back_session(), None));
    let sent = node.sent_all();
    let [(handle, _, _, Payload::Request(envelope, _))] = &sent[..] else { panic!("{sent:?}") };
    assert!(envelope.is_back);
    node.report(request, NodeReport { outcome: Outcome::NotTargeted { reason }, ..report("me", "0.0.0.0") });
    node.report(on_way_back, report("me", "0.0.0.0"));
    node.status(*handle, SendStatus::Sent);
    let answer = Response { session: back_session(), end: Some(PathEnd::Destination), ..response(1, &["b1"]) };
    node.receive_on(back_session(), &back().inverted(), answer.emit().as_bytes());
    let answer = node.only_answer();
    assert!(answer.entries[0].outcome.is_not_targeted());
    assert_eq!(names(&answer.returned.unwrap().nodes), ["me", "b1"]);
    // A node on the way back is told that it is.
    for (header, is_meant) in [("way: back\n", true), ("", false)] {
        let mut node = Node::new(|_| {});
        node.asked_of(&out(), header, &text);
        let (_, asked) = node.nslp.poll_request().unwrap();
        assert_eq!(asked.passed_by.is_none(), is_meant);
        let sent = node.sent_all();
        let [(_, _, _, Payload::Request(envelope, _))] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(envelope.is_back, is_meant);
    }
}

#[test]
fn nodes_in_front_of_the_last_one_pass_both_stacks_on() {
    let mut node = Node::new(|_| {});
    node.asked_of(&out(), "may-return: true\n", &round_trip(1));
    let request = node.asked();
    let sent = node.sent_all();
    let [(_, _, _, Payload::Request(envelope, _))] = &sent[..] else { panic!("{sent:?}") };
    assert!(envelope.may_return);
    node.report(request, report("me", "0.0.0.0"));
    let stack =
        ReturnStack { nodes: vec![report("b1", "10.5.0.9")], incomplete: None, end: Some(PathEnd::Destination) };
    let answer = Response { returned: Some(stack.clone()), ..response(1, &["r2"]) };
    node.receive(&out().inverted(), 9, answer.emit().as_bytes());
    let answer = node.only_answer();
    assert_eq!((names(&answer.entries), answer.returned), (vec!["me", "r2"], Some(stack)));
}

#[test]
fn a_stack_that_did_not_come_back_in_time_is_not_whole() {
    let mut node = Node::new(|_| {});
    let (request, handle) = node.turns(&round_trip(1));
    node.report(request, report("me", "0.0.0.0"));
    node.status(handle, SendStatus::Sent);
    node.at(6_999);
    node.quiet();
    node.at(7_500);
    let returned = node.only_answer().returned.unwrap();
    assert_eq!((kind(returned.incomplete.as_ref()), returned.end), (Some(RefusalKind::Timeout), None));
}

#[test]
fn a_way_back_whose_first_node_is_silent_is_not_whole() {
    let mut node = Node::new(|_| {});
    let (request, handle) = node.turns(&round_trip(1));
    node.report(request, report("me", "0.0.0.0"));
    node.status(handle, SendStatus::NoPeer(NoPeerReason::Timeout));
    let returned = node.only_answer().returned.unwrap();
    assert_eq!((kind(returned.incomplete.as_ref()), returned.end), (Some(RefusalKind::Timeout), None));
}

/// Nothing is sent to who did not ask: the source must be the requester, as the first node sees.
#[test]
fn requests_are_not_sent_to_strangers() {
    let stranger = Mri::PathCoupled(PathCoupled::new(ip("10.7.7.7"), ip("10.9.0.1")).unwrap());
    for (mri, headers, text, sends) in [
        (out(), "may-return: true\n", round_trip(1), true),
        (stranger.clone(), "may-return: true\n", round_trip(1), false),
        (out(), "", round_trip(1), false),
        (out(), "may-return: true\n", probe(1), false),
        // A node before this one has looked.
        (stranger, "may-return: true\nnodes-passed: 1\n", round_trip(1), true),
    ] {
        let mut node = Node::new(|_| {});
        node.asked_of(&mri, headers, &text);
        let request = node.asked();
        let handle = node.sent_all()[0].0;
        node.no_peer(handle);
        assert_eq!(node.nslp.counters().returns_sent, u64::from(sends), "{mri:?} {headers}");
        node.report(request, report("me", "0.0.0.0"));
    }
}

/// Goal: who is outside of the domain brings nobody a request that did not ask, whatever it says that others saw.
#[test]
fn outsiders_are_believed_about_themselves_alone() {
    use netserv_model::domain::{DomainPolicy, Neighbour, Neighbours, Side};
    let stranger = Mri::PathCoupled(PathCoupled::new(ip("10.7.7.7"), ip("10.9.0.1")).unwrap());
    for (inside, mri, passed, sends) in [
        (vec!["10.5.0.0/16"], stranger.clone(), 1, false),
        (vec!["10.5.0.0/16"], stranger.clone(), 0, false),
        (vec!["10.5.0.0/16"], out(), 1, true),
        (vec!["10.5.0.0/16"], out(), 0, true),
        (vec!["10.0.0.0/16"], stranger.clone(), 1, true),
        (vec!["10.0.0.0/16"], stranger, 0, false),
    ] {
        let mut node = Node::new(|_| {});
        let prefixes = Some(inside.iter().map(|prefix| prefix.parse().unwrap()).collect());
        let neighbours = Neighbours(vec![Neighbour { side: Side::Inside, prefixes, tls_name: None }]);
        node.nslp.handle_domain(DomainPolicy { neighbours, ..DomainPolicy::default() });
        node.asked_of(&mri, &format!("may-return: true\nnodes-passed: {passed}\n"), &setup(1));
        let request = node.asked();
        let handle = node.sent_all()[0].0;
        node.no_peer(handle);
        node.report(request, NodeReport { outcome: Outcome::Installed { lease_s: 600 }, ..report("me", "0.0.0.0") });
        let counters = node.nslp.counters();
        assert_eq!(
            (counters.returns_sent, counters.returns_not_taken),
            (u64::from(sends), u64::from(!sends)),
            "{mri:?}"
        );
    }
}

#[test]
fn a_request_on_its_way_back_is_not_sent_back_again() {
    let mut node = Node::new(|_| {});
    let (request, handle) = node.turns(&round_trip(1));
    node.report(request, report("me", "0.0.0.0"));
    node.status(handle, SendStatus::Sent);
    // Somebody claims that it may, in the session of the way back.
    let text = format!("NETSERV/1 HOP\nmay-return: true\nnodes-passed: 1\n\n{}", round_trip(1));
    node.receive_on(back_session(), &out(), text.as_bytes());
    let sent = node.sent_all();
    let [(_, _, _, Payload::Response(answer))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(kind(answer.incomplete.as_ref()), Some(RefusalKind::Replayed));
    assert_eq!(node.nslp.counters().returns_sent, 1);
}

#[test]
fn only_returns_burst_max_requests_are_sent_back_to_one_source_and_returns_of_all_max_to_all() {
    let mut node = Node::new(|_| {});
    let ask = |node: &mut Node, number: usize| {
        let text = round_trip(u8::try_from(number).unwrap());
        node.asked_of(&out(), "may-return: true\n", &text);
        let request = node.asked();
        let handle = node.sent_all()[0].0;
        node.no_peer(handle);
        node.report(request, report("me", "0.0.0.0"));
        node.sent_all()
    };
    for number in 1..=RETURNS_BURST_MAX {
        let sent = ask(&mut node, number);
        assert!(matches!(&sent[..], [(_, _, _, Payload::Request(..))]), "{sent:?}");
    }
    let sent = ask(&mut node, RETURNS_BURST_MAX + 1);
    let [(_, _, _, Payload::Response(answer))] = &sent[..] else { panic!("{sent:?}") };
    let returned = answer.returned.as_ref().unwrap();
    assert_eq!(kind(returned.incomplete.as_ref()), Some(RefusalKind::QuotaExceeded));
    assert_eq!(node.nslp.counters().returns_over_limit, 1);
    node.at(u64::try_from(RETURNS_INTERVAL.as_millis()).unwrap());
    ask(&mut node, RETURNS_BURST_MAX + 2);
    assert_eq!(node.nslp.counters().returns_sent, u64::try_from(RETURNS_BURST_MAX).unwrap() + 1);
    // Others have theirs, up to what there is for all.
    node.at(2 * u64::try_from(RETURNS_INTERVAL.as_millis()).unwrap());
    let before = node.nslp.counters().returns_sent;
    for number in 0..=RETURNS_OF_ALL_MAX {
        let source = ip(&format!("10.7.0.{}", number + 1));
        let mri = Mri::PathCoupled(PathCoupled::new(source, ip("10.9.0.1")).unwrap());
        let text = round_trip(u8::try_from(number).unwrap());
        let data = format!("NETSERV/1 HOP\nbudget-ms: 8000\nmay-return: true\n\n{text}");
        let mut event = received(&mri, 8, data.as_bytes());
        if let Event::RecvMessage { session, peer, .. } = &mut event {
            (*session, *peer) = (SessionId([0x22; 16]), source);
        }
        node.nslp.handle_event(node.now, event);
        let request = node.asked();
        let handle = node.sent_all()[0].0;
        node.no_peer(handle);
        node.report(request, report("me", "0.0.0.0"));
        let answers = node.sent_all().into_iter().map(|(handle, ..)| handle).collect::<Vec<_>>();
        answers.into_iter().for_each(|handle| node.no_peer(handle));
        node.sent_all();
    }
    assert_eq!(node.nslp.counters().returns_sent - before, u64::try_from(RETURNS_OF_ALL_MAX).unwrap());
}

/// A node on both ways is asked once, and says the same twice.
#[test]
fn a_node_on_both_ways_says_on_the_second_what_it_did_on_the_first() {
    let mut node = Node::new(|_| {});
    node.asked_of(&out(), "may-return: true\n", &setup(1));
    let request = node.asked();
    node.sent_all();
    node.report(request, NodeReport { outcome: Outcome::Installed { lease_s: 600 }, ..report("me", "0.0.0.0") });
    let here = Mri::PathCoupled(PathCoupled::new(ip("10.3.0.1"), ip(HOST)).unwrap());
    let text = format!("NETSERV/1 HOP\nnodes-passed: 1\n\n{}", setup(1));
    node.receive_on(back_session(), &here, text.as_bytes());
    assert!(node.nslp.poll_request().is_none());
    let handle = node.sent_all()[0].0;
    node.no_peer(handle);
    let sent = node.sent_all();
    let [(_, _, _, Payload::Response(answer))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(answer.entries[0].outcome, Outcome::Installed { lease_s: 600 });
    assert_eq!((answer.returned.clone(), node.nslp.state_counts().leases), (None, 1));
}

#[test]
fn the_last_node_follows_the_way_back_of_a_setup() {
    let mut node = Node::new(|_| {});
    let (request, handle) = node.turns(&setup(1));
    node.status(handle, SendStatus::Sent);
    node.report(request, NodeReport { outcome: Outcome::Installed { lease_s: 600 }, ..report("me", "0.0.0.0") });
    let mut answer = Response { session: back_session(), ..response(1, &["b1"]) };
    answer.entries[0].outcome = Outcome::Installed { lease_s: 600 };
    node.receive_on(back_session(), &back().inverted(), answer.emit().as_bytes());
    assert!(node.only_answer().returned.is_some());
    assert_eq!(node.nslp.state_counts().leases, 2);
}

impl Node {
    /// A last node that has a SETUP, and a node on its way back that has it, too.
    fn with_way_back() -> Node {
        let mut node = Node::new(|_| {});
        let (request, handle) = node.turns(&setup(1));
        node.status(handle, SendStatus::Sent);
        node.report(request, NodeReport { outcome: Outcome::Installed { lease_s: 600 }, ..report("me", "0.0.0.0") });
        let mut answer = Response { session: back_session(), ..response(1, &["b1"]) };
        answer.entries[0].outcome = Outcome::Installed { lease_s: 600 };
        node.receive_on(back_session(), &back().inverted(), answer.emit().as_bytes());
        node.only_answer();
        assert_eq!(node.nslp.state_counts().leases, 2);
        node
    }

    fn torn_back(sent: &[(MessageHandle, SessionId, Mri, Payload)]) -> usize {
        let is_tear = |(_, session, mri, data): &&(MessageHandle, SessionId, Mri, Payload)| {
            matches!(data, Payload::Tear(tear) if tear.session == *session)
                && (*session, mri) == (back_session(), &back())
        };
        sent.iter().filter(is_tear).count()
    }
}

#[test]
fn a_node_off_the_path_ends_the_way_back_that_it_began() {
    let mut node = Node::with_way_back();
    let tear = Tear {
        session: SESSION,
        nonce: Nonce([1; 16]),
        user: "jane".parse().unwrap(),
        module: "example.org/m".parse().unwrap(),
        token: None,
    };
    node.receive(&out(), 9, tear.emit().as_bytes());
    assert_eq!(Node::torn_back(&node.sent_all()), 1);
    assert_eq!(node.nslp.state_counts().leases, 0);
}

#[test]
fn a_node_that_is_not_the_last_any_more_ends_its_way_back_and_lets_the_next_one_begin_another() {
    let mut node = Node::with_way_back();
    node.at(2_000);
    let next = SiiHandle::new(3, 3);
    let kind = Notification::StatusChange(RouteStatus::Good(next));
    let event = Event::NetworkNotification { nslp_id: NSLP_ID, session: SESSION, mri: out(), kind };
    node.nslp.handle_event(node.now, event);
    node.at(4_000);
    let request = node.asked();
    let sent = node.sent_all();
    let [(_, SESSION, _, Payload::Request(envelope, _))] = &sent[..] else { panic!("{sent:?}") };
    assert!(envelope.may_return);
    node.report(request, NodeReport { outcome: Outcome::Refreshed { lease_s: 590 }, ..report("me", "0.0.0.0") });
    let mut answer = response(1, &["last"]);
    answer.entries[0].outcome = Outcome::Installed { lease_s: 590 };
    let mut event = received(&out().inverted(), 9, answer.emit().as_bytes());
    if let Event::RecvMessage { sii, .. } = &mut event {
        *sii = next;
    }
    node.nslp.handle_event(node.now, event);
    assert_eq!(Node::torn_back(&node.sent_all()), 1);
    assert_eq!(node.nslp.state_counts().leases, 1);
}

#[test]
fn a_node_on_both_ways_refuses_on_the_second_as_on_the_first() {
    for (kind, is_told_again) in
        [(RefusalKind::FetchFailed, true), (RefusalKind::Timeout, false), (RefusalKind::InProgress, false)]
    {
        let mut node = Node::new(|_| {});
        node.asked_of(&out(), "may-return: true\n", &setup(1));
        let request = node.asked();
        node.sent_all();
        let outcome = Outcome::Refused(Refusal::new(kind, "as the test says"));
        node.report(request, NodeReport { outcome: outcome.clone(), ..report("me", "0.0.0.0") });
        let here = Mri::PathCoupled(PathCoupled::new(ip("10.3.0.1"), ip(HOST)).unwrap());
        let text = format!("NETSERV/1 HOP\nnodes-passed: 1\n\n{}", setup(1));
        node.receive_on(back_session(), &here, text.as_bytes());
        assert_eq!(node.nslp.poll_request().is_none(), is_told_again, "{outcome}");
    }
}

/// Or who refuses what comes from outside would take it from a node of its own.
#[test]
fn what_came_from_outside_is_from_outside_on_its_way_back() {
    let mut node = Node::new(|_| {});
    node.asked_of(&out(), "may-return: true\norigin: outside\n", &setup(1));
    let request = node.asked();
    let handle = node.sent_all()[0].0;
    node.no_peer(handle);
    assert_eq!(node.sent_all(), [], "who asks is not known yet");
    node.report(request, NodeReport { outcome: Outcome::Installed { lease_s: 600 }, ..report("me", "0.0.0.0") });
    let sent = node.sent_all();
    let [(_, session, _, Payload::Request(envelope, _))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((*session, envelope.is_outside), (back_session(), true));
}

#[test]
fn nothing_is_sent_back_for_strangers_outside() {
    let unknown = Outcome::Refused(Refusal::new(RefusalKind::UnknownUser, "no user `jane` here"));
    for (text, outcome) in [(round_trip(1), Outcome::Probed), (setup(1), unknown)] {
        for controller_is_first in [false, true] {
            let mut node = Node::new(|_| {});
            node.asked_of(&out(), "may-return: true\norigin: outside\n", &text);
            let request = node.asked();
            let handle = node.sent_all()[0].0;
            let own = NodeReport { outcome: outcome.clone(), ..report("me", "0.0.0.0") };
            if controller_is_first {
                node.report(request, own);
                node.no_peer(handle);
            } else {
                node.no_peer(handle);
                node.report(request, own);
            }
            let returned = node.only_answer().returned.unwrap();
            assert_eq!(kind(returned.incomplete.as_ref()), Some(RefusalKind::OutsideDomain));
            assert_eq!(node.nslp.counters().returns_sent, 0);
        }
    }
}
