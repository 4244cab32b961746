// SPDX-License-Identifier: Apache-2.0
//! Nodes that may be left behind ask, and those that know answer.

use netserv_gist::Notification;
use netserv_wire::nslp::Tear;

use super::follow::{NEW, OLD, UPSTREAM, held, installed, of_session, refreshed, remove, session, setup, tear};
use super::*;
use crate::limits::{
    QUESTION_DELAY, QUESTION_INTERVAL, QUESTIONS_BURST_INTERVAL, QUESTIONS_BURST_MAX, QUESTIONS_MAX, QUESTIONS_PAUSE,
    WITHDRAWN_MAX, WITHDRAWN_TIME,
};

const NOBODY: SiiHandle = SiiHandle::new(0, 0);

impl Node {
    /// A message past the path that says from whom it is.
    fn receive_claiming(&mut self, claimed: Option<SiiHandle>, mri: &Mri, tear: &Tear) {
        let mut event = received(mri, 9, tear.emit().as_bytes());
        if let Event::RecvMessage { sii, validated, claims, .. } = &mut event {
            (*sii, *validated, *claims) = (NOBODY, false, claimed);
        }
        self.nslp.handle_event(self.now, event);
    }

    /// Nobody refreshes the state toward this node any more.
    fn upstream_is_silent(&mut self) {
        let (mri, kind) = (flow().inverted(), Notification::RouteDeletion);
        let event = Event::NetworkNotification { nslp_id: NSLP_ID, session: SESSION, mri, kind };
        self.nslp.handle_event(self.now, event);
    }

    pub(super) fn after(&mut self, time: Duration) {
        self.at(self.ms() + u64::try_from(time.as_millis()).unwrap());
    }

    /// Returns the token of a question, and whom it went to.
    fn question(&mut self) -> (SiiHandle, Nonce) {
        let Some(ApiCall::SendMessage { sii, data, mri, attributes, .. }) = self.nslp.poll_api_call() else {
            panic!("no question")
        };
        assert_eq!((mri, attributes.reliable), (flow().inverted(), false));
        let Ok(Payload::Tear(asked)) = Payload::parse(&data) else { panic!("{data:?}") };
        let token = asked.token.expect("a question has a token");
        assert_eq!(*asked, Tear { token: Some(token), ..tear(1) });
        (sii.expect("it goes to who asked"), token)
    }
}

/// Goal: a TEAR that does not come from where the SETUP came from changes nothing by itself, whoever it says it is from; who
/// asked is asked, and the answer counts, wherever it comes from, since only who is at its address has the token.
#[test]
fn a_tear_from_elsewhere_has_the_one_asked_that_sent_the_setup() {
    let mut node = Node::with_lease();
    node.receive_claiming(Some(UPSTREAM), &flow(), &tear(1));
    node.quiet();
    node.after(QUESTION_DELAY);
    let (asked, token) = node.question();
    assert_eq!(asked, UPSTREAM);
    for wrong in [None, Some(Nonce([7; 16]))] {
        node.receive_claiming(Some(UPSTREAM), &flow(), &Tear { token: wrong, ..tear(1) });
        assert_eq!((node.leases(), node.nslp.poll_withdrawal()), (1, None));
    }
    node.receive_claiming(None, &flow(), &Tear { token: Some(token), ..tear(1) });
    assert_eq!((node.leases(), node.nslp.poll_withdrawal().is_some()), (0, true));
}

/// Goal: silence ends nothing: whoever asked may have been started anew, or have refused the SETUP itself. Forged TEARs do not
/// make a node ask without pause.
#[test]
fn questions_max_questions_without_an_answer_change_nothing() {
    let mut node = Node::with_lease();
    node.upstream_is_silent();
    node.after(QUESTION_DELAY);
    let first = node.question();
    for _ in 1..QUESTIONS_MAX {
        node.quiet();
        node.upstream_is_silent();
        node.after(QUESTION_INTERVAL);
        assert_eq!(node.question(), first);
    }
    node.upstream_is_silent();
    node.after(QUESTIONS_PAUSE - Duration::from_millis(1));
    node.quiet();
    node.receive_claiming(Some(UPSTREAM), &flow(), &tear(1));
    node.after(QUESTION_DELAY);
    node.quiet();
    node.receive_claiming(Some(UPSTREAM), &flow(), &tear(1));
    node.after(QUESTION_DELAY);
    node.question();
    assert_eq!((node.leases(), node.nslp.counters().questions_sent), (1, u64::from(QUESTIONS_MAX) + 1));
}

/// One of two addresses of the previous node says that the path leads elsewhere, the other one not.
#[test]
fn who_asked_by_two_addresses_is_asked_at_the_other_one() {
    let mut node = Node::with_lease();
    let other = SiiHandle::new(1, 2);
    let mut event = received(&flow(), 9, setup(1, "m").as_bytes());
    if let Event::RecvMessage { sii, peer, .. } = &mut event {
        (*sii, *peer) = (other, ip("10.0.0.10"));
    }
    node.nslp.handle_event(node.now, event);
    node.first_response();
    node.receive_past_the_path(other, &flow(), tear(1).emit().as_bytes());
    assert_eq!(node.leases(), 1);
    node.after(QUESTION_DELAY);
    let (asked, token) = node.question();
    assert_eq!(asked, UPSTREAM);
    node.quiet();
    node.receive_claiming(None, &flow(), &Tear { token: Some(token), ..tear(1) });
    assert_eq!(node.leases(), 0);
}

#[test]
fn only_a_peer_that_the_path_does_not_lead_to_is_told() {
    let mut node = Node::with_lease();
    let question = Tear { token: Some(Nonce([5; 16])), ..tear(1) };
    let ask = |node: &mut Node, who, question: &Tear| node.receive_claiming(who, &flow().inverted(), question);
    ask(&mut node, Some(OLD), &question);
    ask(&mut node, None, &question);
    ask(&mut node, Some(NEW), &tear(1));
    ask(&mut node, Some(NEW), &Tear { user: "john".parse().unwrap(), ..question.clone() });
    ask(&mut node, Some(NEW), &Tear { session: SessionId([9; 16]), ..question.clone() });
    node.quiet();
    // It may have an older request.
    let older = Tear { nonce: Nonce([9; 16]), ..question.clone() };
    for asked in [question, older] {
        ask(&mut node, Some(NEW), &asked);
        assert_eq!(node.sent_past(), (Some(NEW), asked));
    }
}

/// Goal: what was torn here, or removed, is torn further on, too, though that TEAR got lost; what merely ended is not.
#[test]
fn what_was_torn_is_remembered_for_withdrawn_time() {
    let question = Tear { token: Some(Nonce([5; 16])), ..tear(1) };
    let mut node = Node::with_lease();
    node.receive_past_the_path(UPSTREAM, &flow(), tear(1).emit().as_bytes());
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    node.keeps_state();
    node.receive_claiming(Some(OLD), &flow().inverted(), &question);
    assert_eq!(node.sent_past(), (Some(OLD), question.clone()));
    node.after(WITHDRAWN_TIME);
    node.receive_claiming(Some(OLD), &flow().inverted(), &question);
    node.quiet();
    let mut node = Node::with_lease();
    node.receive_from(UPSTREAM, &flow(), remove(7).as_bytes());
    node.goes_on(OLD, 7, held("me", Outcome::Removed), vec![]);
    node.first_response();
    node.receive_claiming(Some(OLD), &flow().inverted(), &question);
    assert_eq!(node.sent_past(), (Some(OLD), question.clone()));
    // A node that never had it says nothing.
    let mut node = Node::new(|_| {});
    node.receive_claiming(Some(OLD), &flow().inverted(), &question);
    node.quiet();
}

#[test]
fn withdrawn_max_torn_leases_are_remembered() {
    let mut node = Node::new(|_| {});
    for n in 0..=WITHDRAWN_MAX {
        tears(&mut node, "jane", n);
    }
    assert_eq!(node.leases(), 0);
    assert!(!answers(&mut node, "jane", 0));
    assert!(answers(&mut node, "jane", 1) && answers(&mut node, "jane", WITHDRAWN_MAX));
}

/// Goal: a user has no other's lease run on further on, however many of its own it tears.
#[test]
fn leases_of_one_user_take_no_places_of_others_among_those_that_were_torn() {
    let mut node = Node::new(|_| {});
    tears(&mut node, "john", 0);
    for n in 1..=WITHDRAWN_MAX + 9 {
        tears(&mut node, "jane", n);
    }
    assert!(answers(&mut node, "john", 0));
    assert!(!answers(&mut node, "jane", 10) && answers(&mut node, "jane", 11));
}

/// Takes a user's SETUP of a session, and tears that.
fn tears(node: &mut Node, user: &str, number: usize) {
    let tear = Tear { session: session(number), user: user.parse().unwrap(), ..tear(1) };
    let setup = setup(1, "m").replace("jane", user);
    node.nslp.handle_event(node.now, of_session(number, received(&flow(), 9, setup.as_bytes())));
    let (request, sent) = (node.asked(), node.sent());
    node.report(request, installed("me"));
    node.no_peer(sent.handle);
    node.nslp.handle_event(node.now, of_session(number, received(&flow(), 9, tear.emit().as_bytes())));
    while node.nslp.poll_api_call().is_some() {}
}

/// Returns whether the node further on is told that a session's lease was torn.
fn answers(node: &mut Node, user: &str, number: usize) -> bool {
    let (session, user) = (session(number), user.parse().unwrap());
    let question = Tear { session, user, token: Some(Nonce([5; 16])), ..tear(1) };
    let mut event = of_session(number, received(&flow().inverted(), 9, question.emit().as_bytes()));
    if let Event::RecvMessage { validated, claims, .. } = &mut event {
        (*validated, *claims) = (false, Some(OLD));
    }
    node.nslp.handle_event(node.now, event);
    node.nslp.poll_api_call().is_some()
}

/// Goal: each path that does not lead here any more lets go of what its own SETUP holds, in whatever order.
#[test]
fn each_path_lets_go_of_its_own_in_whatever_order() {
    const FLOWS: usize = 16;
    for last in [0, FLOWS - 1] {
        let mut node = Node::new(|_| {});
        let flows: Vec<Mri> = (0..FLOWS)
            .map(|n| {
                let to = IpAddr::from([10, 9, 1, u8::try_from(n).unwrap()]);
                Mri::PathCoupled(PathCoupled::new(ip("10.0.0.1"), to).unwrap())
            })
            .collect();
        for (n, flow) in flows.iter().enumerate() {
            let nonce = u8::try_from(n).unwrap();
            node.receive_from(UPSTREAM, flow, setup(nonce, "m").as_bytes());
            let (request, sent) = (node.asked(), node.sent());
            node.report(request, refreshed("me", 600));
            node.no_peer(sent.handle);
            while node.nslp.poll_api_call().is_some() {}
        }
        let order = (0..FLOWS).filter(|n| *n != last).chain([last]);
        for n in order {
            let nonce = u8::try_from(n).unwrap();
            node.receive_from(UPSTREAM, &flows[n], tear(nonce).emit().as_bytes());
            let withdrawn: Vec<Nonce> =
                std::iter::from_fn(|| node.nslp.poll_withdrawal()).map(|own| own.nonce).collect();
            assert_eq!(withdrawn, [Nonce([nonce; 16])]);
        }
        assert_eq!(node.leases(), 0);
    }
}

/// A client of this node has no node before it.
#[test]
fn a_lease_of_an_own_client_is_nobodys_question() {
    let mut node = Node::new(|_| {});
    let (id, session, timeout) = (LocalId(7), Some(SESSION), Duration::from_secs(5));
    let request = LocalRequest { id, message: setup(1, "m"), path: path(), session, timeout };
    node.nslp.handle_local(node.now, request).unwrap();
    node.goes_on(OLD, 1, installed("me"), vec![installed("old")]);
    node.result(7);
    node.keeps_state();
    node.upstream_is_silent();
    node.receive_claiming(Some(UPSTREAM), &flow(), &tear(1));
    node.after(QUESTION_DELAY + QUESTION_INTERVAL);
    node.quiet();
}

/// Goal: however many leases are in doubt at once, previous nodes are not flooded, and all are asked in the end.
#[test]
fn questions_burst_max_questions_go_out_within_a_time_and_the_others_later() {
    let mut node = Node::new(|_| {});
    let flows: Vec<Mri> = (0..=QUESTIONS_BURST_MAX)
        .map(|n| {
            Mri::PathCoupled(PathCoupled::new(ip("10.0.0.1"), [10, 9, 1, u8::try_from(n).unwrap()].into()).unwrap())
        })
        .collect();
    for (n, flow) in flows.iter().enumerate() {
        node.receive_from(UPSTREAM, flow, setup(u8::try_from(n).unwrap(), "m").as_bytes());
        let (request, sent) = (node.asked(), node.sent());
        node.report(request, refreshed("me", 600));
        node.no_peer(sent.handle);
        while node.nslp.poll_api_call().is_some() {}
        node.after(Duration::from_millis(1));
    }
    assert_eq!(node.leases(), QUESTIONS_BURST_MAX + 1);
    for flow in &flows {
        let (mri, kind) = (flow.inverted(), Notification::RouteDeletion);
        let event = Event::NetworkNotification { nslp_id: NSLP_ID, session: SESSION, mri, kind };
        node.nslp.handle_event(node.now, event);
    }
    let questions = |node: &mut Node| {
        let calls = std::iter::from_fn(|| node.nslp.poll_api_call());
        let tears = calls.filter(|call| match call {
            ApiCall::SendMessage { data, .. } => matches!(Payload::parse(data), Ok(Payload::Tear(_))),
            ApiCall::AbortMessage { .. }
            | ApiCall::SetStateLifetime { .. }
            | ApiCall::InvalidateRoutingState { .. }
            | ApiCall::AnswerQuery { .. }
            | ApiCall::SetPeering { .. } => false,
        });
        tears.count()
    };
    node.after(QUESTION_DELAY);
    assert_eq!((questions(&mut node), node.nslp.counters().questions_over_limit), (QUESTIONS_BURST_MAX, 1));
    node.after(QUESTIONS_BURST_INTERVAL);
    assert_eq!((questions(&mut node), node.nslp.counters().questions_over_limit), (1, 1));
}
