// SPDX-License-Identifier: Apache-2.0
//! News of modules on this node, and of its stop.

use netserv_model::control::ModuleMessage;
use netserv_model::effect::ModuleNews;
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_wire::nslp::emit_notify;

use super::follow::{NEW, OLD, UPSTREAM, answer, held, installed, of_session, remove, remove_all, session, setup};
use super::*;
use crate::limits::{
    ENDED_MAX, ENDED_TIME, FAREWELL_INTERVAL, FAREWELL_TIME_MAX, FAREWELLS_AT_ONCE_MAX, MODULE_MESSAGES_BURST_MAX,
    NEWS_BURST_MAX,
};

fn news(event: NotifyEvent) -> ModuleNews {
    ModuleNews {
        user: "jane".parse().unwrap(),
        module: "example.org/m".parse().unwrap(),
        session: SESSION,
        nonce: Some(Nonce([1; 16])),
        is_for_one: event == NotifyEvent::ModuleMessage,
        event,
        detail: "as the test says".to_owned(),
        message: None,
    }
}

/// Returns what a node further on says: that its lease ended.
fn news_from(node: &str) -> String {
    news_from_to(node, "jane", SESSION)
}

fn news_from_to(node: &str, user: &str, session: SessionId) -> String {
    let (user, ModuleNews { module, event, .. }) = (user.parse().unwrap(), news(NotifyEvent::LeaseEnded));
    let (nonce, node, detail) = (Nonce([1; 16]), node.parse().unwrap(), "taken back".to_owned());
    let (nodes, topic, body) = (Vec::new(), None, Vec::new());
    emit_notify(&Notify { session, nonce, user, module, node, event, nodes, detail, topic, body })
}

/// Returns what the module says itself, after the SETUP of this nonce.
fn message(nonce: u8) -> ModuleNews {
    let message = ModuleMessage { topic: "full".parse().unwrap(), body: b"\x00\xff".to_vec() };
    let (nonce, message) = (Some(Nonce([nonce; 16])), Some(message));
    ModuleNews { nonce, detail: String::new(), message, ..news(NotifyEvent::ModuleMessage) }
}

#[test]
fn what_a_module_says_goes_to_the_requester_of_its_last_setup_only() {
    let mut node = Node::with_lease();
    node.nslp.handle_module_news(node.now, message(1));
    let told = node.sent_news();
    assert_eq!((told.event, told.topic.as_ref().unwrap().as_str()), (NotifyEvent::ModuleMessage, "full"));
    assert_eq!((&told.body[..], told.detail.as_str()), (&b"\x00\xff"[..], ""));
    assert_eq!(node.nslp.poll_notify(), Some(told), "whoever watches this node sees it, too");
    node.nslp.handle_module_news(node.now, message(2));
    node.quiet();
    assert_eq!((node.nslp.poll_notify().unwrap().nonce, node.leases()), (Nonce([2; 16]), 1));
}

/// Goal: what modules say, however often, does not take the place of news of their leases.
#[test]
fn messages_of_modules_are_bounded_beside_news() {
    let mut node = Node::with_lease();
    for _ in 0..MODULE_MESSAGES_BURST_MAX {
        node.nslp.handle_module_news(node.now, message(1));
        assert_eq!(node.sent_news().event, NotifyEvent::ModuleMessage);
    }
    let before = node.nslp.counters().news_dropped;
    node.nslp.handle_module_news(node.now, message(1));
    node.quiet();
    assert_eq!(node.nslp.counters().news_dropped, before + 1);
    for _ in 0..NEWS_BURST_MAX {
        node.nslp.handle_module_news(node.now, news(NotifyEvent::ModuleFailed));
        assert_eq!(node.sent_news().event, NotifyEvent::ModuleFailed);
    }
}

#[test]
fn a_module_that_failed_is_reported_and_its_lease_stays() {
    let mut node = Node::with_lease();
    node.nslp.handle_module_news(node.now, news(NotifyEvent::ModuleFailed));
    let told = node.sent_news();
    assert_eq!((told.event, told.node.as_str()), (NotifyEvent::ModuleFailed, "me"));
    assert_eq!((told.nonce, told.detail.as_str()), (Nonce([1; 16]), "as the test says"));
    assert_eq!(node.nslp.poll_notify(), Some(told), "whoever watches this node sees it, too");
    assert_eq!((node.nslp.poll_notify(), node.leases()), (None, 1));
    node.quiet();
    let other = ModuleNews { module: "example.org/n".parse().unwrap(), ..news(NotifyEvent::LeaseEnded) };
    node.nslp.handle_module_news(node.now, other);
    node.quiet();
    assert_eq!((node.nslp.poll_notify().unwrap().module.as_str(), node.leases()), ("example.org/n", 1));
}

/// Goal: a session that ends while others hold the module takes its own lease along and no other.
#[test]
fn a_lease_that_ended_for_one_session_ends_that_one() {
    let mut node = Node::with_lease();
    let ended = |nonce| ModuleNews { is_for_one: true, nonce: Some(nonce), ..news(NotifyEvent::LeaseEnded) };
    node.nslp.handle_module_news(node.now, ended(Nonce([2; 16])));
    node.quiet();
    assert_eq!(node.leases(), 1);
    node.nslp.handle_module_news(node.now, ended(Nonce([1; 16])));
    assert_eq!((node.sent_news().event, node.leases()), (NotifyEvent::LeaseEnded, 0));
}

/// Goal: what the operator took away is not followed, told to the requester, and not said to be there; a SETUP that comes once
/// more reaches the controller, whose answer counts.
#[test]
fn a_lease_that_ended_before_its_time_is_reported_and_not_followed() {
    let mut node = Node::with_lease();
    node.nslp.handle_module_news(node.now, news(NotifyEvent::LeaseEnded));
    let told = node.sent_news();
    assert_eq!((told.event, told.detail.as_str()), (NotifyEvent::LeaseEnded, "as the test says"));
    assert_eq!(node.nslp.poll_notify(), Some(told));
    node.quiet();
    assert_eq!((node.leases(), node.nslp.poll_withdrawal()), (0, None), "nodes further on keep theirs");
    node.moved(NEW);
    node.at(10_000);
    node.quiet();
    assert_eq!(node.nslp.counters().paths_looked_at, 0);
    // GIST's state goes with the last of what is kept; the finished exchange has gone already.
    node.after(ENDED_TIME);
    assert_eq!((node.keeps_state(), node.nslp.state_counts().ended), (Duration::ZERO, 0));
    node.quiet();
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    let refusal = Refusal::new(RefusalKind::UnknownUser, "gone");
    node.goes_on(OLD, 1, held("me", Outcome::Refused(refusal)), vec![installed("old")]);
    assert_eq!(node.first_response().entries.len(), 2);
    assert_eq!(node.leases(), 0);
}

/// Goal: the requester hears of the end at each node, also if a nearer node lost its lease first, as where both ask for revocation
/// lists. Method: the news of the next node come after the node's own; forged news, and what comes too late, are dropped.
#[test]
fn news_of_an_end_further_on_pass_a_node_whose_lease_has_ended() {
    let text = news_from("old");
    let mut node = Node::with_lease();
    node.nslp.handle_module_news(node.now, news(NotifyEvent::LeaseEnded));
    assert_eq!((node.sent_news().node.as_str(), node.leases()), ("me", 0));
    node.after(ENDED_TIME / 2);
    for wrong in [text.replace("0101", "0202"), text.replace("jane", "john"), text.replace("/m", "/n")] {
        node.receive_from(OLD, &flow().inverted(), wrong.as_bytes());
    }
    for other in [NEW, UPSTREAM] {
        node.receive_from(other, &flow().inverted(), text.as_bytes());
    }
    node.quiet();
    assert_eq!(node.nslp.counters().news_dropped, 5);
    node.receive_from(OLD, &flow().inverted(), text.as_bytes());
    let told = node.sent_news();
    assert_eq!((told.node.as_str(), told.event, node.leases()), ("old", NotifyEvent::LeaseEnded, 0));
    node.quiet();
    for _ in 1..=NEWS_BURST_MAX {
        node.receive_from(OLD, &flow().inverted(), text.as_bytes());
    }
    assert_eq!(node.nslp.counters().news_dropped, 6, "as many as of a lease that runs");
    node.after(ENDED_TIME / 2);
    node.receive_from(OLD, &flow().inverted(), text.as_bytes());
    assert_eq!(node.nslp.counters().news_dropped, 7);
}

/// Goal: the next node's news find the requester by the request that it has in force.
#[test]
fn news_of_a_lease_in_force_come_before_those_of_one_that_ended() {
    let mut node = Node::with_lease();
    node.nslp.handle_module_news(node.now, news(NotifyEvent::LeaseEnded));
    node.sent_news();
    node.receive_from(UPSTREAM, &flow(), setup(2, "m").as_bytes());
    node.goes_on(OLD, 2, installed("me"), vec![installed("old")]);
    node.first_response();
    assert_eq!((node.keeps_state().as_secs(), node.leases()), (605, 1));
    for text in [news_from("old"), news_from("old").replace("0101", "0202")] {
        node.receive_from(OLD, &flow().inverted(), text.as_bytes());
        assert_eq!((node.sent_news().node.as_str(), node.leases()), ("old", 1));
    }
    node.after(ENDED_TIME);
    node.quiet();
    assert_eq!((node.leases(), node.nslp.state_counts().ended), (1, 0), "the path is the other's");
}

/// Goal: a lease without a node further on leaves nothing behind, and of those with one no more than a bounded number.
#[test]
fn ended_max_leases_are_kept_for_news() {
    let mut node = Node::new(|_| {});
    node.installs(received(&flow(), 9, setup(1, "m").as_bytes()));
    node.nslp.handle_module_news(node.now, news(NotifyEvent::LeaseEnded));
    node.sent_news();
    assert_eq!((node.keeps_state(), node.nslp.state_counts().ended), (Duration::ZERO, 0));
    for n in 0..=ENDED_MAX {
        ends(&mut node, "jane", n);
    }
    assert_eq!((node.leases(), node.nslp.state_counts().ended), (0, ENDED_MAX));
    assert_eq!(node.nslp.counters().ended_over_limit, 1);
}

/// Goal: a user takes no other's place, however many of its leases end: news for the other still pass.
#[test]
fn leases_of_one_user_take_no_places_of_others_among_those_that_ended() {
    let mut node = Node::new(|_| {});
    ends(&mut node, "john", 0);
    for n in 1..=ENDED_MAX + 9 {
        ends(&mut node, "jane", n);
    }
    assert_eq!((node.nslp.state_counts().ended, node.nslp.counters().ended_over_limit), (ENDED_MAX, 10));
    let text = news_from_to("old", "john", session(0));
    node.nslp.handle_event(node.now, of_session(0, received(&flow().inverted(), 9, text.as_bytes())));
    assert_eq!((node.sent_news().node.as_str(), node.nslp.counters().news_dropped), ("old", 0));
}

/// Has a user's lease end that a session had here and further on.
fn ends(node: &mut Node, user: &str, number: usize) {
    let (session, setup) = (session(number), setup(1, "m").replace("jane", user));
    node.nslp.handle_event(node.now, of_session(number, received(&flow(), 9, setup.as_bytes())));
    let (request, sent) = (node.asked(), node.sent());
    node.status(sent.handle, SendStatus::Sent);
    node.report(request, installed("me"));
    let answer = Response { session, ..answer(1, vec![installed("old")]) }.emit();
    node.nslp.handle_event(node.now, of_session(number, received(&flow().inverted(), 9, answer.as_bytes())));
    let ended = ModuleNews { user: user.parse().unwrap(), session, ..news(NotifyEvent::LeaseEnded) };
    node.nslp.handle_module_news(node.now, ended);
    while node.nslp.poll_api_call().is_some() {}
    while node.nslp.poll_notify().is_some() {}
}

#[test]
fn what_went_while_the_answer_was_under_way_is_not_said_to_be_there() {
    let mut node = Node::new(|_| {});
    node.receive_from(UPSTREAM, &flow(), setup(1, "m").as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.status(sent.handle, SendStatus::Sent);
    node.report(request, installed("me"));
    node.nslp.handle_module_news(node.now, news(NotifyEvent::LeaseEnded));
    node.receive_from(OLD, &flow().inverted(), answer(1, vec![installed("old")]).emit().as_bytes());
    let stack = node.first_response();
    let [Outcome::Refused(refusal), Outcome::Installed { .. }] = [&stack.entries[0].outcome, &stack.entries[1].outcome]
    else {
        panic!("{stack:?}")
    };
    assert_eq!((refusal.kind, node.leases()), (RefusalKind::NotInstalled, 0));
}

/// Goal: a REMOVE for all sessions that did not come along a SETUP's path is news to whoever sent that; along it, the answer says it.
#[test]
fn who_installed_it_along_another_path_is_told_of_a_remove() {
    let mut node = Node::with_lease();
    let (id, session, timeout) = (LocalId(1), Some(SessionId([8; 16])), Duration::from_secs(5));
    let local = LocalRequest { id, message: remove_all(7), path: None, session, timeout };
    node.nslp.handle_local(node.now, local).unwrap();
    let request = node.asked();
    node.report(request, held("me", Outcome::Removed));
    let told = node.sent_news();
    assert_eq!((told.event, told.detail.as_str()), (NotifyEvent::LeaseEnded, "its user removed it"));
    assert_eq!((node.leases(), node.nslp.state_counts().ended), (0, 1));
    node.after(ENDED_TIME);
    assert_eq!(node.keeps_state(), Duration::ZERO);
    let mut node = Node::with_lease();
    node.receive_from(UPSTREAM, &flow(), remove(7).as_bytes());
    node.goes_on(OLD, 7, held("me", Outcome::Removed), vec![held("old", Outcome::Removed)]);
    node.first_response();
    node.quiet();
    assert_eq!(node.leases(), 0);
}

#[test]
fn a_node_that_stops_says_so_to_whoever_sent_setups() {
    let mut node = Node::with_lease();
    assert!(!node.nslp.has_said_farewell(node.now.instant));
    node.nslp.handle_stop(node.now);
    node.nslp.handle_stop(node.now);
    let sent = node.sent();
    assert_eq!(sent.mri, flow().inverted());
    let Ok(Payload::Notify(told)) = Payload::parse(&sent.data) else { panic!("{sent:?}") };
    assert_eq!((told.event, told.node.as_str()), (NotifyEvent::NodeDraining, "me"));
    node.quiet();
    assert!(!node.nslp.has_said_farewell(node.now.instant), "it is still on its way");
    node.status(sent.handle, SendStatus::Sent);
    assert!(node.nslp.has_said_farewell(node.now.instant));
    assert_eq!(node.leases(), 1, "the node comes back with what it has");
}

/// Goal: a peer that takes nothing does not hold the node up.
#[test]
fn a_stop_waits_farewell_time_max_for_its_news() {
    let mut node = Node::with_lease();
    node.nslp.handle_stop(node.now);
    let end = node.now.instant + FAREWELL_TIME_MAX;
    assert!(!node.nslp.has_said_farewell(netserv_model::Instant::from_millis(node.ms() + 1)));
    assert!(node.nslp.has_said_farewell(end));
}

#[test]
fn farewells_at_once_max_leases_are_told_of_at_a_time() {
    let mut node = Node::new(|_| {});
    let leases = FAREWELLS_AT_ONCE_MAX + 1;
    for n in 0..leases {
        let n = u8::try_from(n).unwrap();
        node.receive_from(UPSTREAM, &flow(), setup(n, &format!("m{n}")).as_bytes());
        let (request, sent) = (node.asked(), node.sent_request());
        node.report(request, installed("me"));
        node.no_peer(sent.handle);
        while node.nslp.poll_api_call().is_some() {}
    }
    assert_eq!(node.leases(), leases);
    let count = |node: &mut Node| std::iter::from_fn(|| node.nslp.poll_api_call()).count();
    node.nslp.handle_stop(node.now);
    assert_eq!(count(&mut node), FAREWELLS_AT_ONCE_MAX);
    let next = node.ms() + u64::try_from(FAREWELL_INTERVAL.as_millis()).unwrap();
    node.at(next - 1);
    assert_eq!(count(&mut node), 0);
    node.at(next);
    assert_eq!(count(&mut node), 1);
}
