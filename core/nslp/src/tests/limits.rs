// SPDX-License-Identifier: Apache-2.0
//! Each bound of `limits.rs`, hit and exceeded by one.

use netserv_gist::{FailReason, Notification};
use netserv_model::limits::STACK_ENTRIES_MAX;

use super::*;
use crate::limits::*;

#[test]
fn pending_exchanges_have_a_bound() {
    let mut node = Node::new(|_| {});
    for n in 0..PENDING_MAX {
        let (id, timeout) = (LocalId(n.try_into().unwrap()), Duration::from_secs(60));
        let request = LocalRequest { id, message: numbered(n), path: path(), session: None, timeout };
        node.nslp.handle_local(node.now, request).unwrap();
        node.asked();
    }
    while node.nslp.poll_api_call().is_some() {}
    assert_eq!(node.nslp.state_counts().pending, PENDING_MAX);
    node.receive(&flow(), 20, numbered(PENDING_MAX).as_bytes());
    let answer = node.sent_response();
    assert_eq!(kind(answer.incomplete.as_ref()), Some(RefusalKind::QuotaExceeded));
    assert_eq!(names(&answer.entries), ["me"]);
    assert_eq!(node.local(1, 1, path()).unwrap_err().kind, RefusalKind::QuotaExceeded);
    assert!(node.nslp.poll_request().is_none());
    assert_eq!(node.nslp.counters().requests_over_limit, 2);
}

/// Goal: a user whose requests wait leaves places for others: the slowest of whoever has the most is answered early.
#[test]
fn the_slowest_request_of_who_has_the_most_gives_way() {
    let mut node = Node::new(|_| {});
    let waits = |node: &mut Node, id: usize, message: String| {
        let (id, timeout) = (LocalId(id.try_into().unwrap()), Duration::from_secs(60));
        let taken = node.nslp.handle_local(node.now, LocalRequest { id, message, path: None, session: None, timeout });
        node.now.instant = node.now.instant + Duration::from_millis(1);
        taken
    };
    for n in 0..PENDING_MAX {
        waits(&mut node, n, numbered_by("greedy", n)).unwrap();
        node.proven();
    }
    assert_eq!(
        kind(waits(&mut node, 998, numbered_by("greedy", 998)).err().as_ref()),
        Some(RefusalKind::QuotaExceeded)
    );
    for n in PENDING_MAX..PENDING_MAX + 3 {
        waits(&mut node, n, numbered_by("other", n)).unwrap();
        node.proven();
        let early = node.nslp.poll_result().expect("one gives way");
        assert_eq!(early.0, LocalId((n - PENDING_MAX).try_into().unwrap()), "the slowest first");
    }
    assert_eq!((node.nslp.state_counts().pending, node.nslp.counters().requests_displaced), (PENDING_MAX, 3));
}

/// Goal: who makes up users' names has one share of all unproven requests, however many names these are.
#[test]
fn requests_whose_users_are_not_proven_have_one_share() {
    let mut node = Node::new(|_| {});
    let ask = |node: &mut Node, n: usize, user: &str| {
        let (id, timeout) = (LocalId(n.try_into().unwrap()), Duration::from_secs(60));
        let request = LocalRequest { id, message: numbered_by(user, n), path: path(), session: None, timeout };
        node.nslp.handle_local(node.now, request).unwrap();
        node.asked()
    };
    for n in 0..PENDING_MAX {
        let asked = ask(&mut node, n, &if n < 2 { "honest".to_owned() } else { format!("madeup{n}") });
        if n < 2 {
            node.nslp.handle_proven(asked);
        } else if n % 2 == 0 {
            let refusal = Refusal::new(RefusalKind::UnknownUser, "no such user");
            node.report(asked, NodeReport { outcome: Outcome::Refused(refusal), ..report("me", "0.0.0.0") });
        }
    }
    for n in PENDING_MAX..PENDING_MAX + 4 {
        ask(&mut node, n, &format!("madeup{n}"));
        let (early, _) = node.nslp.poll_result().expect("one gives way");
        assert!(early.0 >= 2, "{early:?} is of an honest user");
    }
}

/// Goal: a flood of requests by made-up names keeps no proven user out, and takes no place away from one. Method: peers fill what such requests
/// may have, and the controller says nothing of them; then come requests of a proven user, and more of the flood.
#[test]
fn a_flood_of_unproven_requests_leaves_unproven_max_places_to_proven_users() {
    let mut node = Node::new(|_| {});
    let flood = |node: &mut Node, n: usize| {
        node.receive(&flow(), 20, numbered_by(&format!("madeup{n}"), n).as_bytes());
        node.asked();
        node.now.instant = node.now.instant + Duration::from_millis(1);
    };
    (0..PENDING_MAX).for_each(|n| flood(&mut node, n));
    let displaced = |node: &Node| node.nslp.counters().requests_displaced;
    let free = u64::try_from(PENDING_MAX - UNPROVEN_MAX).unwrap();
    assert_eq!((node.nslp.state_counts().pending, displaced(&node)), (UNPROVEN_MAX, free));
    node.receive(&flow(), 20, numbered(0x7000).as_bytes());
    assert!(node.nslp.poll_request().is_none(), "nobody can be proven to have sent that");
    for n in 0..free {
        let message = numbered_by("honest", 0x8000 + usize::try_from(n).unwrap());
        let request = LocalRequest { id: LocalId(n), message, path: path(), session: None, timeout: Duration::ZERO };
        node.nslp.handle_local(node.now, request).unwrap();
        node.proven();
    }
    assert_eq!((node.nslp.state_counts().pending, displaced(&node)), (PENDING_MAX, free), "none had to give way");
    (PENDING_MAX..2 * PENDING_MAX).for_each(|n| flood(&mut node, n));
    assert!(node.nslp.poll_result().is_none(), "and none has to for the flood");
    node.receive(&flow(), 20, numbered_by("another", 0x9000).as_bytes());
    node.proven();
}

/// Goal: copies of a user's request take no places as the user's. Method: a peer brings one by ever more sessions, each of which the
/// controller finds to be signed by the user; then the user's own comes.
#[test]
fn copies_of_a_request_do_not_count_as_their_users() {
    let mut node = Node::new(|_| {});
    let bring = |node: &mut Node, n: u8, text: &str| {
        let mut event = received(&flow(), 20, text.as_bytes());
        if let Event::RecvMessage { session, .. } = &mut event {
            session.0[..2].copy_from_slice(&[1 + n / 100, n % 100]);
        }
        node.nslp.handle_event(node.now, event);
        node.now.instant = node.now.instant + Duration::from_millis(1);
    };
    for n in 0..u8::try_from(UNPROVEN_MAX).unwrap() + 9 {
        bring(&mut node, n, &numbered_by("jane", 1));
        node.proven();
    }
    assert_eq!((node.nslp.state_counts().pending, node.nslp.counters().requests_displaced), (UNPROVEN_MAX + 1, 8));
    bring(&mut node, 255, &numbered_by("jane", 2));
    node.proven();
    assert_eq!(node.nslp.state_counts().pending, UNPROVEN_MAX + 1, "a copy gave way");
}

#[test]
fn finished_exchanges_and_sessions_have_a_bound() {
    let mut node = Node::new(|_| {});
    for n in 0..SESSIONS_MAX + 1 {
        let id = LocalId(n.try_into().unwrap());
        let message = numbered(n);
        let request = LocalRequest { id, message, path: None, session: None, timeout: Duration::from_secs(60) };
        node.nslp.handle_local(node.now, request).unwrap();
        let asked = node.asked();
        if n <= FINISHED_MAX {
            node.report(asked, report("me", "0.0.0.0"));
        }
        if n == FINISHED_MAX + PENDING_MAX {
            break;
        }
    }
    let counts = node.nslp.state_counts();
    assert_eq!((counts.pending, counts.finished, counts.sessions), (PENDING_MAX, FINISHED_MAX, SESSIONS_MAX));
}

#[test]
fn waiting_callers_have_a_bound() {
    let mut node = Node::new(|_| {});
    for id in 0..WAITERS_MAX {
        node.local(id.try_into().unwrap(), 1, path()).unwrap();
    }
    assert_eq!(node.local(99, 1, path()).unwrap_err().kind, RefusalKind::QuotaExceeded);
}

#[test]
fn texts_in_parts_have_a_bound_in_number_and_time() {
    let mut node = Node::new(|_| {});
    let start = |n: usize| netserv_wire::nslp::parts(&"a".repeat(20_000), nonce(n)).swap_remove(0);
    for n in 0..=ASSEMBLIES_MAX {
        node.receive(&flow(), 8, &start(n));
    }
    assert_eq!(node.nslp.state_counts().assemblies, ASSEMBLIES_MAX);
    let end = u64::try_from(ASSEMBLY_TIME.as_millis()).unwrap();
    node.at(end - 1);
    assert_eq!(node.nslp.state_counts().assemblies, ASSEMBLIES_MAX);
    node.at(end);
    assert_eq!(node.nslp.state_counts().assemblies, 0);
}

/// Goal: peers of one site that begin texts and never end them keep no other peer's from coming whole. Method: one that began before them
/// sends the rest.
#[test]
fn texts_in_parts_of_one_site_leave_room_for_others() {
    let mut node = Node::new(|_| {});
    let mut parts = netserv_wire::nslp::parts(&"a".repeat(20_000), nonce(0));
    let last = parts.split_off(1);
    node.receive(&flow(), 8, &parts[0]);
    for n in 1..2 * ASSEMBLIES_MAX {
        let begun = netserv_wire::nslp::parts(&"a".repeat(20_000), nonce(n)).swap_remove(0);
        let mut event = received(&flow(), 8, &begun);
        let Event::RecvMessage { peer, .. } = &mut event else { unreachable!() };
        *peer = IpAddr::from([198, 51, 100, u8::try_from(n).unwrap()]);
        node.nslp.handle_event(node.now, event);
    }
    assert_eq!(node.nslp.state_counts().assemblies, ASSEMBLIES_MAX);
    last.iter().for_each(|part| node.receive(&flow(), 8, part));
    assert_eq!((node.nslp.state_counts().assemblies, node.nslp.counters().assemblies_lost), (ASSEMBLIES_MAX - 1, 0));
}

#[test]
fn resends_have_a_bound() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let request = node.asked();
    node.report(request, report("me", "0.0.0.0"));
    for _ in 0..RESENDS_MAX {
        let sent = node.sent_request();
        node.status(sent.handle, SendStatus::Sent);
        node.notify(Notification::CommunicationFailure);
    }
    let last = node.sent_request();
    node.status(last.handle, SendStatus::Failed(FailReason::Association));
    assert_eq!(kind(node.result(7).incomplete.as_ref()), Some(RefusalKind::Timeout));
}

#[test]
fn a_hop_costs_its_time_and_answers_wait_only_so_long() {
    for data in [format!("NETSERV/1 HOP\nbudget-ms: {}\n\n{}", u32::MAX, probe(1)), probe(1)] {
        let mut node = Node::new(|config| config.answer_time_max = HOP_TIME * 3);
        node.receive(&flow(), 255, data.as_bytes());
        node.asked();
        assert_eq!(node.sent_request().request(), (Some(1_000), probe(1)));
        node.at(1_500);
        assert_eq!(node.sent().timeout, ANSWER_SEND_TIME);
    }
}

#[test]
fn a_request_goes_on_while_the_next_node_has_time_enough() {
    let least = u64::try_from(BUDGET_MIN.as_millis()).unwrap();
    let mut node = Node::new(|_| {});
    node.receive_within(2 * least, &probe(1));
    assert_eq!(node.sent_request().request().0, Some(least.into()));
    for (nonce, ms) in [(2, 2 * least - 2), (3, 1), (4, 0)] {
        node.receive_within(ms, &probe(nonce));
        node.quiet();
    }
}

#[test]
fn the_stack_has_a_bound() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    node.receive_response(&response(1, &["far"; STACK_ENTRIES_MAX]));
    let result = node.result(7);
    assert_eq!(result.nodes.len(), STACK_ENTRIES_MAX);
    assert_eq!(result.nodes[0].node.as_str(), "me");
    assert_eq!(kind(result.incomplete.as_ref()), Some(RefusalKind::QuotaExceeded));
}

fn nonce(n: usize) -> Nonce {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    Nonce(bytes)
}

fn numbered_by(user: &str, n: usize) -> String {
    let request = RequestBuilder::probe(&[]).user(&user.parse().unwrap());
    request.build(UnixTime(0), nonce(n)).unwrap().into_message().as_str().to_owned()
}

fn numbered(n: usize) -> String {
    RequestBuilder::probe(&[]).build(UnixTime(0), nonce(n)).unwrap().into_message().as_str().to_owned()
}
