// SPDX-License-Identifier: Apache-2.0
//! ICMP errors: what proves that the path ends, what only hinders, and what anybody could have sent.

use netserv_wire::gist::{Cookie, Message, MessageType};

use super::script::*;
use super::{NSLP, RELIABLE, UNRELIABLE, flow, send, session};
use crate::{Counter, Event, IcmpError, IcmpKind, NoPeerReason, Notification, SendStatus, StateCounts};

const UNREACHABLE: SendStatus = SendStatus::NoPeer(NoPeerReason::Unreachable);
const TIMEOUT: SendStatus = SendStatus::NoPeer(NoPeerReason::Timeout);

/// Returns a node whose message waits for the answer to this Query.
fn asking() -> (Script, Message) {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv_kind(0, MessageType::Query);
    (s, query)
}

#[test]
fn the_endpoint_shows_the_last_node_at_once() {
    let (mut s, query) = asking();
    s.icmp(3, IcmpKind::Port, FAR, &query);
    assert_eq!(s.statuses(), [(1, UNREACHABLE)]);
    assert_eq!(s.engine.state_counts(), StateCounts::default());
    assert_eq!(s.count(Counter::IcmpUnmatched), 0);
}

#[test]
fn the_endpoint_may_refuse_in_other_words() {
    for kind in [IcmpKind::Protocol, IcmpKind::Prohibited] {
        let (mut s, query) = asking();
        s.icmp(3, kind, FAR, &query);
        assert_eq!(s.statuses(), [(1, UNREACHABLE)], "{kind:?}");
    }
}

/// Hosts send few ICMP errors a second: one shows the end to all who were asking along the same path when its Query was sent.
#[test]
fn one_error_serves_all_who_ask_alike() {
    let (mut s, first) = asking();
    for number in 2..=3 {
        s.call(20, send(number, 100 + number, downstream(), UNRELIABLE, b"x"));
    }
    let elsewhere = flow(HERE, [10, 0, 9, 10].into());
    s.call(20, send(4, 104, elsewhere, UNRELIABLE, b"x"));
    // What is asked for later may find another path.
    s.icmp(30, IcmpKind::Port, FAR, &first);
    assert_eq!(s.statuses(), [(1, UNREACHABLE)]);
    s.call(40, send(5, 105, downstream(), UNRELIABLE, b"x"));
    for _ in 0..4 {
        s.recv_kind(40, MessageType::Query);
    }
    let again = s.recv_kind(520, MessageType::Query);
    assert_eq!(again.session, Some(session(102)));
    s.icmp(530, IcmpKind::Port, FAR, &again);
    let mut statuses = s.statuses();
    statuses.sort_unstable();
    assert_eq!(statuses, [(2, UNREACHABLE), (3, UNREACHABLE), (5, UNREACHABLE)]);
    assert_eq!(s.engine.state_counts().querying, 1);
}

#[test]
fn any_copy_will_do_whatever_a_node_on_the_way_did_to_its_hops() {
    let (mut s, query) = asking();
    let again = s.recv_kind(500, MessageType::Query);
    assert_ne!(query.query_cookie, again.query_cookie);
    s.icmp(600, IcmpKind::Port, FAR, &Message { hops: query.hops - 1, ..query });
    assert_eq!(s.statuses(), [(1, UNREACHABLE)]);
}

#[test]
fn what_does_not_bring_back_the_query_proves_nothing() {
    let (mut s, query) = asking();
    let cookie = Some(Cookie(vec![1; 8]));
    let lies = [
        ("cookie", Message { query_cookie: cookie, ..query.clone() }),
        ("no cookie", Message { query_cookie: None, ..query.clone() }),
        ("session", Message { session: Some(session(6)), ..query.clone() }),
        ("NSLP", Message { nslp_id: NSLP + 1, ..query.clone() }),
        ("flow", Message { mri: query.mri.as_ref().map(|mri| mri.inverted()), ..query.clone() }),
        ("kind", Message { kind: MessageType::Confirm, ..query.clone() }),
    ];
    for (number, (what, lie)) in (1..).zip(&lies) {
        s.icmp(1, IcmpKind::Port, FAR, lie);
        assert_eq!((s.statuses(), s.count(Counter::IcmpUnmatched)), (vec![], number), "{what}");
    }
    // RFC 792: routers need only bring back the first eight bytes, which are the UDP header.
    let whole = query.emit_datagram();
    for length in 0..whole.len() {
        let error = IcmpError { kind: IcmpKind::Port, reporter: Some(FAR), quoted: whole[..length].to_vec() };
        let now = s.at(2);
        s.engine.handle_icmp_error(now, &error);
        assert_eq!(s.statuses(), [], "{length} bytes");
    }
    s.icmp(3, IcmpKind::Port, FAR, &query);
    assert_eq!(s.statuses(), [(1, UNREACHABLE)]);
}

#[test]
fn what_hinders_a_query_is_told_when_nobody_answers() {
    for (kind, reporter) in [
        (IcmpKind::Port, THERE),
        (IcmpKind::Host, THERE),
        (IcmpKind::Network, THERE),
        (IcmpKind::Prohibited, THERE),
        (IcmpKind::Host, FAR),
        (IcmpKind::TimeExceeded, THERE),
    ] {
        let (mut s, query) = asking();
        s.icmp(3, kind, reporter, &query);
        assert_eq!((s.statuses(), s.count(Counter::IcmpHindered)), (vec![], 1), "{kind:?}");
        s.at(2500);
        let reason = NoPeerReason::Hindered { kind, reporter };
        assert_eq!(s.statuses(), [(1, SendStatus::NoPeer(reason))], "{kind:?}");
    }
}

#[test]
fn an_error_of_nobody_is_no_proof() {
    let (mut s, query) = asking();
    let now = s.at(3);
    let error = IcmpError { kind: IcmpKind::Port, reporter: None, quoted: query.emit_datagram() };
    s.engine.handle_icmp_error(now, &error);
    s.at(2500);
    assert_eq!(s.statuses(), [(1, TIMEOUT)]);
}

#[test]
fn what_hindered_one_copy_does_not_keep_another_from_its_peer() {
    let (mut s, query) = asking();
    s.icmp(3, IcmpKind::Host, THERE, &query);
    let again = s.recv_kind(500, MessageType::Query);
    s.send(501, &response_to(&again));
    s.recv_kind(501, MessageType::Confirm);
    assert_eq!(s.statuses(), [(1, SendStatus::Sent)]);
}

#[test]
fn a_route_whose_peer_answered_before_waits_for_another_copy() {
    let (mut s, query) = asking();
    s.send(0, &response_to(&query));
    s.recv_kind(0, MessageType::Confirm);
    s.recv_kind(0, MessageType::Data);
    s.icmp(1, IcmpKind::Port, FAR, &query);
    assert_eq!(s.count(Counter::IcmpUnmatched), 1, "no Query waits");
    s.at(22_600);
    let refresh = s.recv_kind(22_600, MessageType::Query);
    s.icmp(22_600, IcmpKind::Port, FAR, &refresh);
    s.icmp(22_600, IcmpKind::Network, THERE, &refresh);
    assert_eq!(s.engine.state_counts().querying, 1);
    s.events();
    assert_eq!(s.engine.state_counts().querying, 1);
    while let Some((due, _)) = s.engine.poll_timeout().filter(|_| s.engine.state_counts().querying > 0) {
        s.engine.handle_timeout(due);
        while let Some(transmit) = s.engine.poll_transmit() {
            // The endpoint refuses each further copy, too.
            let crate::Transmit::QMode { payload, .. } = transmit else { panic!("{transmit:?}") };
            s.engine.handle_icmp_error(due, &IcmpError { kind: IcmpKind::Port, reporter: Some(FAR), quoted: payload });
        }
    }
    let kinds = s.events().into_iter().filter_map(|event| match event {
        Event::NetworkNotification { kind, .. } => Some(kind),
        Event::RecvMessage { .. } | Event::MessageStatus { .. } | Event::Malformed { .. } => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), [Notification::LastNode], "the endpoint has proven it");
}

/// A connection that broke has its peer queried anew: that the Query passes it, as while it starts anew, proves nothing yet.
#[test]
fn a_peer_whose_connection_broke_is_not_taken_for_gone_at_once() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
    let (association, _) = s.connect(0);
    s.recv_stream(0, association);
    let now = s.at(5);
    s.engine.handle_closed(now, association, Some("reset".to_owned()));
    s.call(6, send(2, 5, downstream(), RELIABLE, b"waits"));
    let query = s.recv_kind(6, MessageType::Query);
    s.events();
    s.icmp(7, IcmpKind::Port, FAR, &query);
    assert_eq!((s.statuses(), s.engine.state_counts().querying), (vec![], 1));
    let again = s.recv_kind(506, MessageType::Query);
    s.send(507, &response_to(&again));
    assert!(matches!(s.transmit(507), crate::Transmit::Connect { .. }));
}
