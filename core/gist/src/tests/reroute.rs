// SPDX-License-Identifier: Apache-2.0
//! Peers that change: found by refreshes, by errors, or because the NSLP says so (RFC 5971 §7.1).

use std::net::SocketAddr;
use std::time::Duration;

use netserv_model::domain::{Neighbour, Neighbours, Side};
use netserv_wire::gist::{ErrorCode, Message, MessageType, UDP_PORT};

use super::loss::error_about;
use super::net::Net;
use super::script::*;
use super::{NSLP, RELIABLE, UNRELIABLE, flow, send, session};
use crate::{
    ApiCall, Channel, Event, FailReason, IcmpKind, InterfaceId, MessageHandle, Notification, RouteStatus, SendOptions,
    SendStatus, SiiHandle, TransferAttributes,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_refresh_finds_a_new_peer() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv(0);
    s.send(1, &data(downstream().inverted(), 5, b"from the old peer"));
    let old = sii_of(&s.events());
    let at = s.next_ms();
    let query = s.recv_kind(at, MessageType::Query);
    let moved = "10.0.0.3".parse().unwrap();
    let response = Message { nli: Some(nli(0xcc, moved)), ..response_to(&query) };
    s.send_from(at, SocketAddr::new(moved, UDP_PORT), InterfaceId(1), &response);
    s.recv_kind(at, MessageType::Confirm);
    let new = good(&s.events());
    assert_ne!(old, new);
    s.call(at + 1, send(2, 5, downstream(), UNRELIABLE, b"y"));
    let crate::Transmit::Datagram { peer, .. } = s.transmit(at + 1) else { panic!() };
    assert_eq!(peer.ip(), moved);

    // The old peer can still be told to let go.
    let call = ApiCall::SendMessage {
        handle: MessageHandle(3),
        nslp_id: NSLP,
        session: session(5),
        mri: downstream(),
        attributes: UNRELIABLE,
        sii: Some(old),
        timeout: SECOND,
        data: b"bye!".to_vec(),
        hops: None,
        options: SendOptions::default(),
    };
    s.call(at + 2, call);
    let crate::Transmit::Datagram { peer, payload, .. } = s.transmit(at + 2) else { panic!() };
    assert_eq!(peer.ip(), THERE);
    assert!(parse_datagram(&payload).explicit);
}

#[test]
fn what_is_to_stay_inside_goes_to_no_peer_outside() {
    let inside = TransferAttributes { inside: true, ..UNRELIABLE };
    for (prefix, expected) in [
        ("10.0.0.2/32", SendStatus::Sent),
        ("10.7.0.0/16", SendStatus::Failed(FailReason::Outside)),
        ("2001:db8::/32", SendStatus::Failed(FailReason::Outside)),
    ] {
        let mut s = Script::new();
        let prefixes = Some(vec![prefix.parse().unwrap()]);
        s.engine.set_neighbours(Neighbours(vec![Neighbour { side: Side::Inside, prefixes, tls_name: None }]));
        s.call(0, send(1, 5, downstream(), inside, b"x"));
        s.establish(0);
        assert_eq!(s.statuses(), [(1, expected)], "{prefix}");
        // What may go out does, over the same route.
        s.call(1, send(2, 5, downstream(), UNRELIABLE, b"y"));
        assert_eq!(s.statuses(), [(2, SendStatus::Sent)], "{prefix}");
        assert_eq!(s.count(crate::Counter::DataKeptInside), u64::from(expected != SendStatus::Sent));
    }
}

#[test]
fn a_peer_that_was_restarted_is_a_new_peer() {
    let mut s = Script::new();
    s.be_queried(0, 5);
    assert_eq!(s.events(), []);
    s.be_queried(10_000, 5);
    assert_eq!(s.events(), [], "the same peer is no news");
    let restarted = Message { nli: Some(nli(0xcc, THERE)), ..query(5) };
    s.send(11_000, &restarted);
    let response = s.recv(11_000);
    s.send(11_000, &Message { nli: Some(nli(0xcc, THERE)), ..confirm_to(&response) });
    good(&s.events());
    assert_eq!(s.engine.state_counts().responding, 1);
    // The old one has no say any more.
    s.send(11_001, &data(flow(THERE, HERE), 5, b"old"));
    assert_eq!(s.events(), []);
}

#[test]
fn a_query_from_another_side_is_a_route_change() {
    let mut s = Script::new();
    s.be_queried(0, 5);
    s.send_from(10_000, SocketAddr::new(THERE, UDP_PORT), InterfaceId(2), &query(5));
    let response = s.recv(10_000);
    assert_eq!(s.events(), []);
    s.send(10_001, &confirm_to(&response));
    good(&s.events());
}

#[test]
fn the_nslp_can_distrust_a_route() {
    let invalidate = |bad| ApiCall::InvalidateRoutingState {
        nslp_id: Some(NSLP),
        session: None,
        mri: downstream(),
        bad,
        data: None,
    };
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv(0);
    s.call(1, invalidate(false));
    let query = s.recv_kind(1, MessageType::Query);
    s.call(2, send(2, 5, downstream(), UNRELIABLE, b"goes on"));
    s.recv_kind(2, MessageType::Data);
    s.send(3, &response_to(&query));
    s.recv_kind(3, MessageType::Confirm);

    s.call(4, invalidate(true));
    let query = s.recv_kind(4, MessageType::Query);
    s.call(5, send(3, 5, downstream(), UNRELIABLE, b"waits"));
    s.recv_nothing(5);
    s.send(6, &response_to(&query));
    s.recv_kind(6, MessageType::Confirm);
    s.recv_kind(6, MessageType::Data);

    s.call(
        7,
        ApiCall::InvalidateRoutingState {
            nslp_id: Some(NSLP),
            session: None,
            mri: flow(THERE, HERE),
            bad: true,
            data: None,
        },
    );
    s.recv_nothing(7);

    // A peer that is distrusted does not count as known: this node may be the last one.
    s.statuses();
    s.call(8, invalidate(true));
    s.call(8, send(4, 5, downstream(), UNRELIABLE, b"nobody"));
    let query = s.recv_kind(8, MessageType::Query);
    s.icmp(9, IcmpKind::Port, FAR, &query);
    assert_eq!(s.statuses(), [(4, SendStatus::NoPeer(crate::NoPeerReason::Unreachable))]);
}

#[test]
fn a_route_can_be_distrusted_for_all_nslps() {
    let mut both = super::config(0xaa);
    both.hosted.insert(NSLP + 1, super::RAO);
    for (nslp_id, queries) in [(Some(NSLP), 1), (Some(NSLP + 1), 1), (None, 2)] {
        let mut s = Script::with(both.clone());
        for nslp in [NSLP, NSLP + 1] {
            let mut call = send(1, 5, downstream(), UNRELIABLE, b"x");
            let ApiCall::SendMessage { nslp_id, .. } = &mut call else { panic!() };
            *nslp_id = nslp;
            s.call(0, call);
            s.establish(0);
            s.recv_kind(0, MessageType::Data);
        }
        s.call(
            1,
            ApiCall::InvalidateRoutingState { nslp_id, session: None, mri: downstream(), bad: false, data: None },
        );
        let asked: Vec<u16> = (0..queries).map(|_| s.recv_kind(1, MessageType::Query).nslp_id).collect();
        assert!(nslp_id.is_none_or(|one| asked == [one]), "{asked:?}");
        s.recv_nothing(1);
    }
}

/// Goal: an NSLP knows when the peer is in doubt, by another NSLP's word too, and when it no longer is.
#[test]
fn the_nslp_hears_of_doubts_about_a_route_and_of_their_end() {
    let told = |s: &mut Script| {
        let kind = |event| match event {
            Event::NetworkNotification { kind, .. } => Some(kind),
            Event::RecvMessage { .. } | Event::MessageStatus { .. } | Event::Malformed { .. } => None,
        };
        s.events().into_iter().filter_map(kind).collect::<Vec<Notification>>()
    };
    let invalidate =
        |bad| ApiCall::InvalidateRoutingState { nslp_id: None, session: None, mri: downstream(), bad, data: None };
    let status = Notification::StatusChange;
    let mut s = Script::new();
    s.call(0, invalidate(true));
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.call(0, invalidate(true));
    s.recv(0);
    s.establish(0);
    s.recv(0);
    assert_eq!(told(&mut s), [], "there was no peer to doubt");
    for (bad, doubt) in [(false, RouteStatus::Tentative), (true, RouteStatus::Bad)] {
        s.call(1, invalidate(bad));
        assert_eq!(told(&mut s), [status(doubt)]);
        s.establish(1);
        assert!(matches!(told(&mut s)[..], [Notification::StatusChange(RouteStatus::Good(_))]));
    }
    s.call(2, invalidate(true));
    s.at(10_000);
    assert_eq!(told(&mut s), [status(RouteStatus::Bad), Notification::RouteDeletion]);

    let mut s = Script::new();
    s.be_queried(0, 5);
    let upstream = ApiCall::InvalidateRoutingState {
        nslp_id: None,
        session: None,
        mri: flow(THERE, HERE).inverted(),
        bad: true,
        data: None,
    };
    s.call(1, upstream);
    assert_eq!((told(&mut s), s.engine.state_counts().responding), (vec![status(RouteStatus::Bad)], 0));
}

#[test]
fn a_node_that_joins_the_path_is_found_by_the_next_refresh() {
    let mut net = Net::new(3, 1);
    net.nodes[1].gist = false;
    let mri = net.flow();
    net.call(0, send(1, 1, mri.clone(), RELIABLE, b"one")).unwrap();
    net.run(SECOND);
    assert_eq!((net.received(1).len(), net.received(2).len()), (0, 1));
    net.nodes[1].gist = true;
    net.run(25 * SECOND);
    assert!(matches!(net.notifications(0)[..], [Notification::StatusChange(RouteStatus::Good(_))]));
    net.call(0, send(2, 1, mri, RELIABLE, b"two")).unwrap();
    net.run(SECOND);
    assert_eq!((net.received(1).len(), net.received(2).len()), (1, 1));
}

#[test]
fn a_node_that_leaves_the_path_is_found_missing() {
    let mut net = Net::new(3, 1);
    let mri = net.flow();
    net.call(0, send(1, 1, mri.clone(), RELIABLE, b"one")).unwrap();
    net.run(SECOND);
    assert_eq!(net.received(1).len(), 1);
    net.nodes[1].gist = false;
    net.cut_connections();
    net.call(0, send(2, 1, mri, RELIABLE, b"two")).unwrap();
    net.run(SECOND);
    assert_eq!(net.received(2).len(), 1);
    assert!(net.notifications(0).contains(&Notification::CommunicationFailure));
    assert!(matches!(net.notifications(0)[..], [_, Notification::StatusChange(RouteStatus::Good(_))]));
}

#[test]
fn a_responder_that_forgot_the_route_gets_a_new_handshake() {
    let mut net = Net::new(2, 1);
    let mri = net.flow();
    for (round, attributes) in [RELIABLE, UNRELIABLE].into_iter().enumerate() {
        let number = round as u64;
        net.call(0, send(1, number, mri.clone(), attributes, b"one")).unwrap();
        net.run(SECOND);
        net.lifetime_zero(1, number, mri.inverted());
        net.call(0, send(2, number, mri.clone(), attributes, b"lost")).unwrap();
        net.run(SECOND);
        net.call(0, send(3, number, mri.clone(), attributes, b"three")).unwrap();
        net.run(SECOND);
        let texts: Vec<String> = net.received(1).drain(2 * round..).map(|(text, _)| text).collect();
        assert_eq!(texts, ["one", "three"]);
    }
}

#[test]
fn a_message_on_a_foreign_connection_is_refused() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    s.send_stream(1, id, &stream_data(flow(THERE, HERE), 6, b"unknown"));
    let error = s.recv_stream(1, id).remove(0);
    assert_eq!(error.error.unwrap().error_code(), Some(ErrorCode::NoRoutingState));
    assert_eq!(error.nli, None);
    s.be_queried_also(2, 6);
    s.send_stream(3, id, &stream_data(flow(THERE, HERE), 6, b"foreign"));
    let error = s.recv_stream(3, id).remove(0).error.unwrap();
    assert_eq!(error.error_code(), Some(ErrorCode::IncorrectlyDelivered));
    assert_eq!((error.session, error.datagram), (Some(session(6)), false));
    assert_eq!(s.events(), []);
}

#[test]
fn a_peer_has_no_say_on_another_peers_route() {
    let mut s = Script::new();
    s.be_connected(0, 5);
    s.send(1, &Message { nli: Some(nli(0xcc, THERE)), ..with_stack(query(6), None) });
    let response = s.recv(1);
    let now = s.at(1);
    let other = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_001), Channel::Plain);
    s.send_stream(1, other, &Message { nli: Some(nli(0xcc, THERE)), ..first_confirm_to(&response) });
    assert_eq!(s.engine.state_counts().responding, 2);
    s.send_stream(2, other, &stream_data(flow(THERE, HERE), 5, b"forged"));
    let error = s.recv_stream(2, other).remove(0).error.unwrap();
    assert_eq!((error.error_code(), s.events()), (Some(ErrorCode::IncorrectlyDelivered), vec![]));
    s.send_stream(3, other, &stream_data(flow(THERE, HERE), 6, b"own"));
    assert_eq!(s.events().len(), 1);
}

#[test]
fn a_peer_whose_connections_always_break_is_given_up() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
    for at_ms in [0, 10, 1010] {
        let query = s.recv_kind(at_ms, MessageType::Query);
        s.send(at_ms, &response_to(&query));
        let crate::Transmit::Connect { association, .. } = s.transmit(at_ms) else { panic!() };
        let now = s.at(at_ms + 10);
        s.engine.handle_closed(now, association, Some("refused".to_owned()));
    }
    assert_eq!(s.statuses(), [(1, SendStatus::Failed(FailReason::Association))]);
    assert_eq!(s.engine.state_counts().querying, 0);
    s.recv_nothing(60_000);
}

#[test]
fn connections_that_break_now_and_then_are_forgiven() {
    let mut net = Net::with(2, 1, |config| config.inactivity = 1000 * SECOND);
    let mri = net.flow();
    net.call(0, send(1, 1, mri.clone(), RELIABLE, b"one")).unwrap();
    for _ in 0..10 {
        net.run(30 * SECOND);
        net.cut_connections();
    }
    net.run(SECOND);
    assert!(!net.notifications(0).contains(&Notification::RouteDeletion));
    assert_eq!(net.nodes[0].engine.state_counts().querying, 1);
    assert_eq!(net.open_connections(), 1);
}

#[test]
fn a_query_says_what_the_last_message_says() {
    let mut s = Script::new();
    let call = |number, hops| ApiCall::SendMessage {
        handle: MessageHandle(number),
        nslp_id: NSLP,
        session: session(5),
        mri: downstream(),
        attributes: UNRELIABLE,
        sii: None,
        timeout: SECOND,
        data: b"x".to_vec(),
        hops: Some(hops),
        options: SendOptions::default(),
    };
    s.call(0, call(1, 7));
    let query = s.recv_kind(0, MessageType::Query);
    assert_eq!(query.hops, 7);
    s.send(0, &response_to(&query));
    s.recv_kind(0, MessageType::Confirm);
    assert_eq!(s.recv_kind(0, MessageType::Data).hops, 7);
    // The node moved to another address of its own before the next message.
    let moved = "10.0.0.77".parse().unwrap();
    let now = s.at(1);
    s.engine.handle_api(now, call(2, 9), moved).unwrap();
    let crate::Transmit::Datagram { local, payload, .. } = s.transmit(1) else { panic!() };
    let data = parse_datagram(&payload);
    assert_eq!((local, data.hops, data.nli.unwrap().address), (moved, 9, moved));
    let query = s.recv_kind(22_600, MessageType::Query);
    assert_eq!((query.hops, query.nli.unwrap().address), (9, moved));
}

#[test]
fn an_error_about_the_wrong_connection_starts_a_handshake() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
    let (association, _) = s.connect(0);
    let data = s.recv_stream(0, association).remove(0);
    let error = Message { nli: None, ..error_about(&data, ErrorCode::IncorrectlyDelivered) };
    s.send_stream(1, association, &error);
    assert!(s.recv_kind(1, MessageType::Query).stack_proposal.is_some());
}

impl Script {
    fn be_queried_also(&mut self, at_ms: u64, number: u64) {
        self.send(at_ms, &query(number));
        let response = self.recv_kind(at_ms, MessageType::Response);
        self.send(at_ms, &confirm_to(&response));
    }
}

fn sii_of(events: &[Event]) -> SiiHandle {
    match events.last() {
        Some(Event::RecvMessage { sii, .. }) => *sii,
        other => panic!("{other:?}"),
    }
}

fn good(events: &[Event]) -> SiiHandle {
    match events {
        [Event::NetworkNotification { kind: Notification::StatusChange(RouteStatus::Good(sii)), .. }] => *sii,
        other => panic!("{other:?}"),
    }
}
