// SPDX-License-Identifier: Apache-2.0
//! Paths that change while a lease runs.

use std::collections::BTreeSet;

use netserv_gist::{Notification, RouteStatus};
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::route::RouteChange;
use netserv_model::{Digest, Signature};
use netserv_wire::nslp::{Envelope, Tear, emit_notify};

use super::*;
use crate::Withdrawal;
use crate::limits::{
    CHECK_AGAIN_MIN, CHECKS_AT_ONCE_MAX, LEASE_BYTES, LEASES_MAX, LEASES_PER_FLOW_MAX, LOOK_AGAIN_MIN, LOOK_INTERVAL,
    LOOK_LOOPED_INTERVAL, NEWS_BURST_MAX, UPSTREAM_MAX,
};

pub(super) const UPSTREAM: SiiHandle = SiiHandle::new(1, 1);
pub(super) const OLD: SiiHandle = SiiHandle::new(2, 2);
pub(super) const NEW: SiiHandle = SiiHandle::new(3, 3);

pub(super) fn setup(nonce: u8, module: &str) -> String {
    setup_with(nonce, module, &[])
}

fn setup_with(nonce: u8, module: &str, headers: &[&str]) -> String {
    let module = format!("example.org/{module}@1.0.0").parse().unwrap();
    let builder = RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), Duration::from_secs(600));
    let builder = headers.iter().fold(builder, |builder, value| builder.header("note", value));
    let unsigned = builder.user(&"jane".parse().unwrap()).build(UnixTime(0), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(Signature([6; 64])).unwrap().as_str().to_owned()
}

pub(super) fn remove(nonce: u8) -> String {
    let builder = RequestBuilder::remove(&"example.org/m".parse().unwrap()).user(&"jane".parse().unwrap());
    builder.build(UnixTime(0), Nonce([nonce; 16])).unwrap().into_message().as_str().to_owned()
}

/// A REMOVE for all sessions.
pub(super) fn remove_all(nonce: u8) -> String {
    let builder = RequestBuilder::remove(&"example.org/m".parse().unwrap()).all().user(&"jane".parse().unwrap());
    builder.build(UnixTime(0), Nonce([nonce; 16])).unwrap().into_message().as_str().to_owned()
}

/// Returns one of many sessions.
pub(super) fn session(number: usize) -> SessionId {
    SessionId(u128::try_from(number).unwrap().to_be_bytes())
}

/// Has a message be of one of many sessions.
pub(super) fn of_session(number: usize, mut event: Event) -> Event {
    if let Event::RecvMessage { session: its, .. } = &mut event {
        *its = session(number);
    }
    event
}

pub(super) fn held(node: &str, outcome: Outcome) -> NodeReport {
    NodeReport { outcome, ..report(node, "10.5.0.1") }
}

pub(super) fn installed(node: &str) -> NodeReport {
    held(node, Outcome::Installed { lease_s: 600 })
}

pub(super) fn refreshed(node: &str, lease_s: u64) -> NodeReport {
    held(node, Outcome::Refreshed { lease_s })
}

pub(super) fn answer(nonce: u8, entries: Vec<NodeReport>) -> Response {
    Response { entries, ..response(nonce, &[]) }
}

pub(super) fn tear(nonce: u8) -> Tear {
    Tear {
        session: SESSION,
        nonce: Nonce([nonce; 16]),
        user: "jane".parse().unwrap(),
        module: "example.org/m".parse().unwrap(),
        token: None,
    }
}

impl Node {
    pub(super) fn receive_from(&mut self, peer: SiiHandle, mri: &Mri, data: &[u8]) {
        let mut event = received(mri, 9, data);
        if let Event::RecvMessage { sii, .. } = &mut event {
            *sii = peer;
        }
        self.nslp.handle_event(self.now, event);
    }

    /// A message of a peer that the routing state does not name.
    pub(super) fn receive_past_the_path(&mut self, peer: SiiHandle, mri: &Mri, data: &[u8]) {
        let mut event = received(mri, 9, data);
        if let Event::RecvMessage { sii, validated, .. } = &mut event {
            (*sii, *validated) = (peer, false);
        }
        self.nslp.handle_event(self.now, event);
    }

    pub(super) fn moved(&mut self, next: SiiHandle) {
        self.notify(Notification::StatusChange(RouteStatus::Good(next)));
    }

    /// GIST keeps the state for so long.
    pub(super) fn keeps_state(&mut self) -> Duration {
        match self.nslp.poll_api_call() {
            Some(ApiCall::SetStateLifetime { session: Some(SESSION), lifetime, mri, .. }) if mri == Some(flow()) => {
                lifetime
            }
            other => panic!("{other:?}"),
        }
    }

    /// Sends the SETUP on and takes the answer of the one who has it next.
    pub(super) fn goes_on(&mut self, from: SiiHandle, nonce: u8, own: NodeReport, entries: Vec<NodeReport>) {
        let (request, sent) = (self.asked(), self.sent_request());
        self.status(sent.handle, SendStatus::Sent);
        self.report(request, own);
        self.receive_from(from, &flow().inverted(), answer(nonce, entries).emit().as_bytes());
    }

    /// Another node's SETUP is installed here and on the next node.
    pub(super) fn with_lease() -> Node {
        let mut node = Node::new(|_| {});
        node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
        node.goes_on(OLD, 1, installed("me"), vec![installed("old")]);
        assert_eq!(names(&node.first_response().entries), ["me", "old"]);
        assert_eq!(node.keeps_state().as_secs(), 605);
        node.quiet();
        node
    }

    /// The response comes first, whatever else there is.
    pub(super) fn first_response(&mut self) -> Response {
        let sent = self.sent();
        let Ok(Payload::Response(response)) = Payload::parse(&sent.data) else { panic!("{sent:?}") };
        *response
    }

    pub(super) fn sent_past(&mut self) -> (Option<SiiHandle>, Tear) {
        match self.nslp.poll_api_call() {
            Some(ApiCall::SendMessage { sii, data, mri, attributes, .. }) if mri == flow() => {
                assert_eq!(attributes.reliable, sii.is_none());
                let Ok(Payload::Tear(tear)) = Payload::parse(&data) else { panic!("{data:?}") };
                (sii, *tear)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn sent_news(&mut self) -> Notify {
        let sent = self.sent();
        assert_eq!(sent.mri, flow().inverted());
        let Ok(Payload::Notify(notify)) = Payload::parse(&sent.data) else { panic!("{sent:?}") };
        *notify
    }

    /// Takes a SETUP that is installed here, with nobody after this node.
    pub(super) fn installs(&mut self, event: Event) {
        self.nslp.handle_event(self.now, event);
        let (request, sent) = (self.asked(), self.sent());
        self.report(request, installed("me"));
        self.no_peer(sent.handle);
        while self.nslp.poll_api_call().is_some() {}
    }

    pub(super) fn leases(&self) -> usize {
        self.nslp.state_counts().leases
    }

    /// Waits until the node looks at a path by itself, which it does in time.
    pub(super) fn looks(&mut self) {
        let (begun, looked) = (self.now.instant, self.nslp.counters().paths_looked_at);
        while self.nslp.counters().paths_looked_at == looked {
            self.quiet();
            self.at(self.ms() + 100);
        }
        let waited = self.now.instant.since(begun);
        assert!(waited >= LOOK_INTERVAL / 2 && waited <= LOOK_INTERVAL + Duration::from_millis(100), "{waited:?}");
    }

    pub(super) fn ms(&self) -> u64 {
        self.now.instant.as_nanos() / 1_000_000
    }
}

#[test]
fn a_new_next_node_gets_the_setup_and_the_old_one_is_told() {
    let mut node = Node::with_lease();
    node.at(60_000);
    node.quiet();
    node.moved(NEW);
    node.at(60_000);
    let request = node.asked();
    let sent = node.sent_request();
    assert_eq!(sent.request().1, setup(1, "m"), "as its user signed it");
    node.report(request, refreshed("me", 540));
    node.receive_from(NEW, &flow().inverted(), answer(1, vec![installed("new"), installed("last")]).emit().as_bytes());
    assert_eq!(node.keeps_state().as_secs(), 545);
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    let news = node.sent_news();
    assert_eq!((news.event, news.node.as_str()), (NotifyEvent::RouteMoved, "me"));
    assert_eq!(news.nodes.iter().map(netserv_model::NodeId::as_str).collect::<Vec<_>>(), ["new", "last"]);
    assert_eq!(news.detail, "new comes after me now");
    node.quiet();
    let counters = node.nslp.counters();
    assert_eq!((counters.paths_looked_at, counters.paths_moved, counters.tears_sent), (1, 1, 1));
}

/// A node that was restarted gets the SETUPs of all paths across it at once.
#[test]
fn a_next_node_that_works_on_too_many_requests_is_asked_again_soon() {
    let mut node = Node::with_lease();
    node.at(60_000);
    node.moved(NEW);
    node.at(60_000);
    let crowded = Refusal::new(RefusalKind::QuotaExceeded, "it works on 256 requests already");
    let refused = held("new", Outcome::Refused(crowded.clone()));
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, refreshed("me", 540));
    let partial = Response { incomplete: Some(crowded), end: None, ..answer(1, vec![refused]) };
    node.receive_from(NEW, &flow().inverted(), partial.emit().as_bytes());
    node.keeps_state();
    node.sent_news();
    node.at(60_000 + u64::try_from(LOOK_LOOPED_INTERVAL.as_millis()).unwrap());
    node.goes_on(NEW, 1, refreshed("me", 536), vec![installed("new")]);
    node.keeps_state();
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    node.at(200_000);
    assert_eq!(node.nslp.counters().paths_looked_at, 2);
}

/// Whoever is on the new path behind a gap would lose what it has.
#[test]
fn nobody_is_told_to_let_go_as_long_as_the_new_path_is_not_whole() {
    let mut node = Node::with_lease();
    node.moved(NEW);
    node.at(1000);
    let refusal = Refusal::new(RefusalKind::Timeout, "silence");
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, refreshed("me", 599));
    let partial = Response { incomplete: Some(refusal), end: None, ..answer(1, vec![installed("new")]) };
    node.receive_from(NEW, &flow().inverted(), partial.emit().as_bytes());
    node.keeps_state();
    assert_eq!(node.sent_news().event, NotifyEvent::RouteMoved);
    node.quiet();
    // The path comes back: nobody was told, and nobody is.
    node.moved(OLD);
    node.at(2000);
    node.goes_on(OLD, 1, refreshed("me", 598), vec![refreshed("old", 598)]);
    node.keeps_state();
    let (told, _) = node.sent_past();
    assert_eq!(told, Some(NEW));
    node.sent_news();
    node.quiet();
}

/// The gap may be gone a moment later, and no route of this node changes with it.
#[test]
fn who_is_off_the_path_is_told_soon_after_the_new_path_is_whole() {
    let mut node = Node::with_lease();
    node.moved(NEW);
    node.at(1000);
    let mut looks = Vec::new();
    for _ in 0..6 {
        let refusal = Refusal::new(RefusalKind::Timeout, "silence");
        let partial = Response { incomplete: Some(refusal), end: None, ..answer(1, vec![installed("new")]) };
        looks.push(node.ms());
        let request = node.asked();
        node.sent_request();
        node.report(request, refreshed("me", 599));
        node.receive_from(NEW, &flow().inverted(), partial.emit().as_bytes());
        let looked = node.nslp.counters().paths_looked_at;
        while node.nslp.counters().paths_looked_at == looked {
            while node.nslp.poll_api_call().is_some() {}
            node.at(node.ms() + 100);
        }
    }
    let waits: Vec<u64> = looks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((2000..4100).contains(&waits[0]), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait < 30_100) && waits[4] >= 15_000 / 2, "{waits:?}");
    node.goes_on(NEW, 1, refreshed("me", 500), vec![installed("new")]);
    node.keeps_state();
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    node.quiet();
}

/// Goal: a node that had no way to the end of the path tells nobody of a gap that its own routing closed.
#[test]
fn the_last_node_looks_as_soon_as_its_routes_change_if_nobody_answered_it() {
    let mut node = Node::new(|_| {});
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.report(request, installed("me"));
    node.status(sent.handle, SendStatus::NoPeer(NoPeerReason::Timeout));
    assert!(node.first_response().incomplete.is_some());
    node.keeps_state();
    node.at(5000);
    node.nslp.handle_routes(node.now, RouteChange::All);
    assert!(matches!(node.nslp.poll_api_call(), Some(ApiCall::InvalidateRoutingState { .. })));
    node.at(5000);
    node.goes_on(NEW, 1, refreshed("me", 590), vec![installed("new")]);
}

#[test]
fn a_path_is_looked_at_again_after_look_again_min_at_the_earliest() {
    let mut node = Node::with_lease();
    let wait = u64::try_from(LOOK_AGAIN_MIN.as_millis()).unwrap();
    for peer in [NEW, OLD, NEW, OLD] {
        node.moved(peer);
        node.at(node.ms() + 1);
    }
    node.at(wait - 1);
    node.quiet();
    node.at(wait);
    node.goes_on(OLD, 1, refreshed("me", 599), vec![refreshed("old", 599)]);
    node.keeps_state();
    node.quiet();
    assert_eq!(node.nslp.counters().paths_moved, 0);
}

/// Where there was no node after this one, or none any more, one may come.
#[test]
fn the_last_node_looks_for_another_every_look_interval() {
    let mut node = Node::new(|_| {});
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.report(request, installed("me"));
    node.no_peer(sent.handle);
    node.first_response();
    node.keeps_state();
    for _ in 0..3 {
        node.looks();
        let (request, sent) = (node.asked(), node.sent_request());
        node.report(request, refreshed("me", 500));
        node.no_peer(sent.handle);
        node.keeps_state();
        node.quiet();
    }
    node.looks();
    node.goes_on(NEW, 1, refreshed("me", 400), vec![installed("new")]);
    node.keeps_state();
    assert_eq!(node.sent_news().nodes.len(), 1);
}

#[test]
fn a_next_node_that_is_gone_is_reported_and_looked_for() {
    let mut node = Node::with_lease();
    node.at(60_000);
    node.notify(Notification::RouteDeletion);
    node.at(60_000);
    let (request, sent) = (node.asked(), node.sent_request());
    node.report(request, refreshed("me", 540));
    node.status(sent.handle, SendStatus::NoPeer(NoPeerReason::Timeout));
    node.keeps_state();
    let news = node.sent_news();
    assert_eq!((news.event, news.nodes.len()), (NotifyEvent::RouteLost, 0));
    assert!(news.detail.starts_with("no node after me is known any more: nobody after me answered"), "{}", news.detail);
    node.quiet();
    // It comes back, and has what it had.
    node.looks();
    node.goes_on(OLD, 1, refreshed("me", 510), vec![refreshed("old", 510)]);
    node.keeps_state();
    assert_eq!(node.sent_news().event, NotifyEvent::RouteMoved);
    node.quiet();
}

/// GIST names another node before the answer of the first one is there.
#[test]
fn a_path_that_moves_while_the_setup_is_under_way_is_looked_at_afterwards() {
    let mut node = Node::new(|_| {});
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.status(sent.handle, SendStatus::Sent);
    node.moved(NEW);
    // It goes to the new one at once; the old one is the first to answer.
    let again = node.sent_request();
    node.status(again.handle, SendStatus::Sent);
    node.report(request, installed("me"));
    node.receive_from(OLD, &flow().inverted(), answer(1, vec![installed("old")]).emit().as_bytes());
    node.first_response();
    node.keeps_state();
    node.at(u64::try_from(LOOK_AGAIN_MIN.as_millis()).unwrap());
    node.goes_on(NEW, 1, refreshed("me", 599), vec![installed("new")]);
    node.keeps_state();
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    assert_eq!(node.sent_news().event, NotifyEvent::RouteMoved);
}

#[test]
fn a_tear_of_the_peer_that_asked_ends_the_lease_here_and_further_on() {
    let mut node = Node::with_lease();
    let bad = [
        (NEW, tear(1)),
        (UPSTREAM, tear(2)),
        (UPSTREAM, Tear { user: "john".parse().unwrap(), ..tear(1) }),
        (UPSTREAM, Tear { module: "example.org/n".parse().unwrap(), ..tear(1) }),
        (UPSTREAM, Tear { session: SessionId([9; 16]), ..tear(1) }),
        (SiiHandle::new(0, 1), tear(1)),
    ];
    for (peer, tear) in bad {
        node.receive_past_the_path(peer, &flow(), tear.emit().as_bytes());
        node.receive_from(peer, &flow(), tear.emit().as_bytes());
        node.quiet();
        assert_eq!(node.nslp.poll_withdrawal(), None);
    }
    assert_eq!((node.nslp.counters().messages_unexpected, node.leases()), (12, 1));
    node.receive_past_the_path(UPSTREAM, &flow(), tear(1).emit().as_bytes());
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    let Tear { user, module, nonce, .. } = tear(1);
    assert_eq!(node.nslp.poll_withdrawal(), Some(Withdrawal { user, module, nonce }));
    assert_eq!((node.nslp.counters().tears_received, node.leases()), (1, 0));
    // The path comes back at once: the SETUP is a new one here.
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    node.keeps_state();
    node.goes_on(OLD, 1, installed("me"), vec![installed("old")]);
    assert_eq!(names(&node.first_response().entries), ["me", "old"]);
    assert_eq!(node.leases(), 1);
}

/// The new path came back to this node before the old one's TEAR.
#[test]
fn a_tear_of_a_peer_that_was_followed_by_another_changes_nothing() {
    let mut node = Node::with_lease();
    node.receive_from(NEW, &flow(), setup(1, "m").as_bytes());
    assert_eq!(names(&node.first_response().entries), ["me", "old"]);
    node.receive_past_the_path(UPSTREAM, &flow(), tear(1).emit().as_bytes());
    assert_eq!((node.nslp.poll_withdrawal(), node.leases()), (None, 1));
    node.receive_past_the_path(NEW, &flow(), tear(1).emit().as_bytes());
    assert_eq!(node.leases(), 0);
}

/// The new path comes by here, and the old one leaves before the answer is there.
#[test]
fn a_tear_while_another_peer_asks_changes_nothing() {
    let mut node = Node::with_lease();
    node.at(20_000);
    node.receive_from(NEW, &flow(), setup(1, "m").as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.receive_past_the_path(UPSTREAM, &flow(), tear(1).emit().as_bytes());
    node.quiet();
    assert_eq!((node.leases(), node.nslp.poll_withdrawal()), (1, None));
    node.report(request, refreshed("me", 580));
    node.status(sent.handle, SendStatus::Sent);
    node.receive_from(OLD, &flow().inverted(), answer(1, vec![refreshed("old", 580)]).emit().as_bytes());
    node.first_response();
    node.receive_past_the_path(NEW, &flow(), tear(1).emit().as_bytes());
    assert_eq!(node.leases(), 0);
}

#[test]
fn each_path_lets_go_of_its_own_session() {
    let mut node = Node::with_lease();
    let other = Mri::PathCoupled(PathCoupled::new(ip("10.0.0.1"), ip("10.9.0.2")).unwrap());
    node.receive_from(UPSTREAM, &other, setup(2, "m").as_bytes());
    let request = node.asked();
    node.sent();
    node.report(request, refreshed("me", 600));
    node.receive_from(OLD, &other.inverted(), answer(2, vec![refreshed("old", 600)]).emit().as_bytes());
    assert_eq!(node.leases(), 2);
    node.receive_from(UPSTREAM, &flow(), tear(1).emit().as_bytes());
    let withdrawn = |node: &mut Node| node.nslp.poll_withdrawal().map(|withdrawal| withdrawal.nonce);
    assert_eq!((withdrawn(&mut node), node.leases()), (Some(Nonce([1; 16])), 1));
    node.receive_from(UPSTREAM, &other, tear(2).emit().as_bytes());
    assert_eq!(withdrawn(&mut node), Some(Nonce([2; 16])));
}

#[test]
fn a_remove_ends_the_lease_of_its_session_or_all() {
    for (message, session, left) in
        [(remove(2), SESSION, 0), (remove(2), SessionId([0x22; 16]), 1), (remove_all(2), SessionId([0x22; 16]), 0)]
    {
        let mut node = Node::with_lease();
        node.at(60_000);
        let mut event = received(&flow(), 9, message.as_bytes());
        if let Event::RecvMessage { session: its, .. } = &mut event {
            *its = session;
        }
        node.nslp.handle_event(node.now, event);
        let (request, sent) = (node.asked(), node.sent());
        node.report(request, held("me", Outcome::Removed));
        node.no_peer(sent.handle);
        assert_eq!(node.leases(), left, "{session}: {message}");
    }
}

#[test]
fn a_lease_that_ends_gives_the_state_up() {
    let mut node = Node::with_lease();
    node.at(599_999);
    assert_eq!(node.leases(), 1);
    node.quiet();
    node.at(600_000);
    assert_eq!(node.leases(), 0);
    assert_eq!(node.keeps_state(), Duration::ZERO);
    node.forgets(false);
}

#[test]
fn a_newer_setup_takes_the_place_of_the_one_before() {
    let mut node = Node::with_lease();
    node.at(300_000);
    node.receive_from(UPSTREAM, &flow(), setup(2, "m").as_bytes());
    node.goes_on(NEW, 2, refreshed("me", 600), vec![installed("new")]);
    node.first_response();
    node.keeps_state();
    // The old branch has it from the request before, and may have got this one.
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    assert_eq!(node.sent_past(), (Some(OLD), tear(2)));
    assert_eq!(node.leases(), 1);
    node.quiet();
    node.at(899_999);
    assert_eq!(node.leases(), 1);
}

#[test]
fn news_go_to_whoever_sent_the_setup() {
    let notify = Notify {
        session: SESSION,
        nonce: Nonce([1; 16]),
        user: "jane".parse().unwrap(),
        module: "example.org/m".parse().unwrap(),
        node: "old".parse().unwrap(),
        event: NotifyEvent::RouteLost,
        nodes: Vec::new(),
        detail: "gone".to_owned(),
        topic: None,
        body: Vec::new(),
    };
    let text = emit_notify(&notify);
    let mut node = Node::with_lease();
    for wrong in [text.replace("0101", "0202"), text.replace("jane", "john"), text.replace("/m", "/n")] {
        node.receive_from(OLD, &flow().inverted(), wrong.as_bytes());
        node.quiet();
    }
    // Peers that are not next: of another branch, and the one that the SETUP came from.
    for other in [NEW, UPSTREAM] {
        node.receive_from(other, &flow().inverted(), text.as_bytes());
        node.quiet();
    }
    assert_eq!(node.nslp.counters().news_dropped, 5);
    for _ in 0..NEWS_BURST_MAX {
        node.receive_from(OLD, &flow().inverted(), text.as_bytes());
        assert_eq!(node.sent_news(), notify);
    }
    node.receive_from(OLD, &flow().inverted(), text.as_bytes());
    node.quiet();
    assert_eq!(node.nslp.counters().news_dropped, 6);
    // Where the SETUP began they come out.
    let mut node = Node::new(|_| {});
    let request = LocalRequest { message: setup(1, "m"), ..local_request() };
    node.nslp.handle_local(node.now, request).unwrap();
    node.goes_on(OLD, 1, installed("me"), vec![installed("old")]);
    node.result(7);
    node.receive_from(OLD, &flow().inverted(), text.as_bytes());
    assert_eq!(node.nslp.poll_notify(), Some(notify.clone()));
    // Where another node asked for the same, it hears of it, too.
    while node.nslp.poll_api_call().is_some() {}
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    node.first_response();
    node.quiet();
    node.receive_from(OLD, &flow().inverted(), text.as_bytes());
    assert_eq!((node.nslp.poll_notify(), node.sent_news()), (Some(notify.clone()), notify));
}

/// It has the right session and nonce, and is about something else.
#[test]
fn a_tear_of_another_module_takes_nobody_off_a_request_under_way() {
    for (text, is_torn) in [(tear(1).emit(), true), (tear(1).emit().replace("/m", "/n"), false)] {
        let mut node = Node::new(|_| {});
        node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
        node.receive_from(UPSTREAM, &flow(), text.as_bytes());
        node.goes_on(OLD, 1, installed("me"), vec![installed("old")]);
        while node.nslp.poll_api_call().is_some() {}
        assert_eq!(node.leases(), usize::from(!is_torn), "{text}");
    }
}

fn local_request() -> LocalRequest {
    let timeout = Duration::from_secs(5);
    LocalRequest { id: LocalId(7), message: String::new(), path: path(), session: Some(SESSION), timeout }
}

/// The nodes before this one look at the path while this one does.
#[test]
fn who_asks_while_the_node_looks_is_answered_too() {
    let mut node = Node::with_lease();
    node.at(20_000);
    node.moved(NEW);
    node.at(20_000);
    let (request, sent) = (node.asked(), node.sent_request());
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    node.quiet();
    node.report(request, refreshed("me", 580));
    node.status(sent.handle, SendStatus::Sent);
    node.receive_from(NEW, &flow().inverted(), answer(1, vec![installed("new")]).emit().as_bytes());
    assert_eq!(names(&node.first_response().entries), ["me", "new"]);
    node.keeps_state();
    assert_eq!(node.sent_past(), (Some(OLD), tear(1)));
    node.quiet();
}

#[test]
fn who_asks_while_the_node_looks_is_answered_in_its_own_time() {
    let mut node = Node::with_lease();
    node.at(20_000);
    node.moved(NEW);
    node.at(20_000);
    let (request, sent) = (node.asked(), node.sent_request());
    node.status(sent.handle, SendStatus::Sent);
    node.report(request, refreshed("me", 580));
    node.receive_within(3_000, &setup(1, "m"));
    node.at(22_999);
    node.quiet();
    node.at(23_000);
    let answer = node.first_response();
    assert_eq!((names(&answer.entries), kind(answer.incomplete.as_ref())), (vec!["me"], Some(RefusalKind::Timeout)));
}

#[test]
fn checks_at_once_max_flows_are_checked_at_once_when_routes_change() {
    let mut node = Node::new(|_| {});
    node.nslp.handle_routes(node.now, RouteChange::All);
    node.quiet();
    let count = 2 * CHECKS_AT_ONCE_MAX + 1;
    let mut flows = BTreeSet::new();
    for n in 0..count {
        let mri = Mri::PathCoupled(PathCoupled::new(ip("10.0.0.1"), ip(&format!("10.8.0.{n}"))).unwrap());
        node.receive_from(UPSTREAM, &mri, setup(u8::try_from(n).unwrap(), "m").as_bytes());
        let (request, sent) = (node.asked(), node.sent());
        node.report(request, installed("me"));
        node.no_peer(sent.handle);
        while node.nslp.poll_api_call().is_some() {}
        flows.insert(mri);
    }
    node.nslp.handle_routes(node.now, RouteChange::All);
    let mut checked = |node: &mut Node| {
        let mut count = 0;
        while let Some(call) = node.nslp.poll_api_call() {
            let ApiCall::InvalidateRoutingState { nslp_id: Some(NSLP_ID), session: None, mri, bad: false, data: None } =
                call
            else {
                panic!("{call:?}")
            };
            flows.remove(&mri);
            count += 1;
        }
        (count, flows.len())
    };
    assert_eq!(checked(&mut node), (CHECKS_AT_ONCE_MAX, CHECKS_AT_ONCE_MAX + 1));
    node.at(9);
    assert_eq!(checked(&mut node).0, 0);
    node.at(20);
    assert_eq!(checked(&mut node), (CHECKS_AT_ONCE_MAX + 1, 0));
    // Routes that change while the check runs are checked from the beginning, but not all the time.
    let again = u64::try_from(CHECK_AGAIN_MIN.as_millis()).unwrap();
    node.at(5000);
    node.nslp.handle_routes(node.now, RouteChange::All);
    node.nslp.handle_routes(node.now, RouteChange::All);
    node.at(5000 + again - 1);
    assert_eq!(checked(&mut node).0, count);
    node.at(5000 + 2 * again);
    assert_eq!(checked(&mut node).0, count);
    node.at(5000 + 4 * again);
    assert_eq!(checked(&mut node).0, 0);
}

/// What others say that they have is nothing that this node follows unless its own controller took it.
#[test]
fn what_this_node_refuses_is_not_followed() {
    let mut node = Node::new(|_| {});
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    let refusal = Refusal::new(RefusalKind::UnknownUser, "no user `jane` here");
    node.goes_on(
        OLD,
        1,
        held("me", Outcome::Refused(refusal)),
        vec![held("old", Outcome::Installed { lease_s: 1 << 40 })],
    );
    node.first_response();
    node.quiet();
    assert_eq!(node.leases(), 0);
    // A host has no say, and keeps only what its own clients installed, for as long as they asked.
    let mut host = Node::new(|config| config.host_only = true);
    let far = || vec![held("old", Outcome::Installed { lease_s: 1 << 40 })];
    host.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    host.goes_on(OLD, 1, not_a_node(), far());
    host.first_response();
    assert_eq!(host.leases(), 0);
    let request = LocalRequest { message: setup(2, "m"), ..local_request() };
    host.nslp.handle_local(host.now, request).unwrap();
    host.goes_on(OLD, 2, not_a_node(), far());
    assert_eq!((host.leases(), host.keeps_state().as_secs()), (1, 605));
}

#[test]
fn the_answer_to_an_older_request_changes_nothing() {
    let mut node = Node::with_lease();
    node.at(20_000);
    node.moved(NEW);
    node.at(20_000);
    let (looking, sent) = (node.asked(), node.sent_request());
    node.status(sent.handle, SendStatus::Sent);
    node.receive_from(UPSTREAM, &flow(), setup(2, "m").as_bytes());
    node.goes_on(NEW, 2, refreshed("me", 600), vec![installed("new")]);
    node.first_response();
    while node.nslp.poll_api_call().is_some() {}
    node.report(looking, refreshed("me", 580));
    node.receive_from(NEW, &flow().inverted(), answer(1, vec![installed("new")]).emit().as_bytes());
    node.quiet();
    // The newer one is in force, and its requester can leave.
    node.receive_from(UPSTREAM, &flow(), tear(2).emit().as_bytes());
    assert_eq!(node.leases(), 0);
}

/// Who has the same identity at another address has not proven that it is the one that asked.
#[test]
fn only_the_peer_that_asked_can_leave() {
    let mut node = Node::with_lease();
    node.receive_past_the_path(SiiHandle::new(1, 2), &flow(), tear(1).emit().as_bytes());
    assert_eq!(node.leases(), 1);
}

#[test]
fn of_more_than_upstream_max_peers_nobody_is_the_last() {
    let mut node = Node::with_lease();
    for n in 0..=u8::try_from(UPSTREAM_MAX).unwrap() {
        let mut event = received(&flow(), 9, setup(1, "m").as_bytes());
        if let Event::RecvMessage { sii, peer, .. } = &mut event {
            (*sii, *peer) = (SiiHandle::new(10 + u32::from(n), 1), IpAddr::from([10, 7, 0, n]));
        }
        node.nslp.handle_event(node.now, event);
    }
    while node.nslp.poll_api_call().is_some() {}
    for n in 0..=u32::try_from(UPSTREAM_MAX).unwrap() {
        node.receive_past_the_path(SiiHandle::new(10 + n, 1), &flow(), tear(1).emit().as_bytes());
    }
    node.receive_past_the_path(UPSTREAM, &flow(), tear(1).emit().as_bytes());
    assert_eq!((node.leases(), node.nslp.poll_withdrawal()), (1, None));
}

#[test]
fn the_state_lives_as_long_as_the_longest_lease() {
    let mut node = Node::with_lease();
    node.receive_from(UPSTREAM, &flow(), setup(2, "short").as_bytes());
    node.goes_on(OLD, 2, held("me", Outcome::Installed { lease_s: 5 }), vec![installed("old")]);
    node.first_response();
    assert_eq!(node.keeps_state().as_secs(), 605);
}

/// The first one to answer was not the only one that got the SETUP.
#[test]
fn who_answers_when_the_path_leads_elsewhere_is_told() {
    let mut node = Node::with_lease();
    node.receive_from(NEW, &flow().inverted(), answer(1, vec![installed("new")]).emit().as_bytes());
    assert_eq!(node.sent_past(), (Some(NEW), tear(1)));
    node.receive_from(OLD, &flow().inverted(), answer(1, vec![installed("old")]).emit().as_bytes());
    node.quiet();
}

#[test]
fn leases_per_flow_max_leases_are_followed_along_one_flow() {
    let mut node = Node::new(|_| {});
    for n in 0..=LEASES_PER_FLOW_MAX {
        let nonce = u8::try_from(n % 200).unwrap();
        node.at(node.ms() + 10);
        let mut event = received(&flow(), 9, setup(nonce, &format!("m{n}")).as_bytes());
        if let Event::RecvMessage { session, .. } = &mut event {
            *session = SessionId([u8::try_from(n / 200).unwrap(); 16]);
        }
        node.installs(event);
    }
    assert_eq!((node.leases(), node.nslp.counters().leases_over_limit), (LEASES_PER_FLOW_MAX, 1));
}

#[test]
fn leases_are_followed_up_to_the_configured_number_and_room_for_their_texts() {
    let long = "x".repeat(LEASE_BYTES / 2);
    // Three short ones go in, or one that is as long as all of them may be.
    for (modules, lengths, kept) in [(4, 1, 3), (2, 5, 1)] {
        let mut node = Node::new(|config| config.leases_max = 3);
        for n in 0..modules {
            let headers: Vec<&str> = (1..lengths).map(|_| long.as_str()).collect();
            let mut event = received(&flow(), 9, setup_with(n, &format!("m{n}"), &headers).as_bytes());
            if let Event::RecvMessage { session, mri, .. } = &mut event {
                *session = SessionId([n; 16]);
                *mri = Mri::PathCoupled(PathCoupled::new([10, 1, 0, n].into(), [10, 2, 0, 1].into()).unwrap());
            }
            node.at(node.ms() + 10);
            node.installs(event);
        }
        assert_eq!((node.leases(), node.nslp.counters().leases_over_limit), (kept, 1), "{modules} modules");
        // What ends makes room.
        node.at(601_000);
        assert_eq!(node.leases(), 0);
    }
    assert_eq!(Config::new("me".parse().unwrap(), 32704).leases_max, LEASES_MAX);
}

/// Goal: who installs again where nodes came back finds them, also by the session that it had before; further nodes are told so, and a
/// client that goes on with its session is not.
#[test]
fn a_request_of_an_own_client_looks_for_its_path_afresh() {
    for (given, is_afresh) in [(None, true), (Some(SESSION), false)] {
        let mut node = Node::new(|_| {});
        let mut begin = |n: u8| {
            let (id, timeout) = (LocalId(u64::from(n)), Duration::from_secs(5));
            let request = LocalRequest { id, message: setup(n, "m"), path: path(), session: given, timeout };
            node.nslp.handle_local(node.now, request).unwrap();
            let calls: Vec<ApiCall> = std::iter::from_fn(|| node.nslp.poll_api_call()).collect();
            let sent = |call: &ApiCall| {
                let ApiCall::SendMessage { session, data, .. } = call else { return None };
                assert_eq!(Envelope::take(data).unwrap().0.is_afresh, is_afresh);
                Some(*session)
            };
            let session = calls.iter().find_map(sent);
            let doubted = calls.iter().find_map(|call| {
                let ApiCall::InvalidateRoutingState { session, bad: true, .. } = call else { return None };
                *session
            });
            (session.unwrap(), doubted)
        };
        let (first, second) = (begin(1), begin(2));
        assert_eq!((first.1, first.0), (None, second.0), "the same session of the same path");
        assert_eq!(second.1, is_afresh.then_some(second.0));
    }
}

/// Goal: a client whose machine has another address now removes what it installed, which is followed no more; what goes elsewhere stays.
#[test]
fn a_remove_from_another_address_ends_the_leases_toward_its_destination() {
    for (source, destination, left) in [("10.0.0.7", "10.9.0.1", 0), ("10.0.0.1", "10.9.0.2", 1)] {
        let mut node = Node::with_lease();
        let mri = Mri::PathCoupled(PathCoupled::new(ip(source), ip(destination)).unwrap());
        node.receive_from(UPSTREAM, &mri, remove(2).as_bytes());
        let (request, sent) = (node.asked(), node.sent());
        node.status(sent.handle, SendStatus::Sent);
        node.report(request, held("me", Outcome::Removed));
        node.receive_from(OLD, &mri.inverted(), answer(2, vec![held("old", Outcome::Removed)]).emit().as_bytes());
        assert_eq!(node.leases(), left, "{source} to {destination}");
    }
}
