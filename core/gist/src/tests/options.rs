// SPDX-License-Identifier: Apache-2.0
//! What an NSLP asks of a message beside its attributes, and what it hears of how it went.

use std::net::{IpAddr, SocketAddr};

use netserv_wire::gist::{Message, MessageType, Mri, UDP_PORT};

use super::script::*;
use super::{NSLP, RELIABLE, UNRELIABLE, flow, send, session};
use crate::{
    ApiCall, ApiError, Carriage, Counter, Event, FailReason, InterfaceId, MessageHandle, Mode, Notification,
    Provenance, RouteStatus, SendOptions, SendStatus, StateCounts, StateUse, TransferAttributes, Transmit,
};

fn with_options(call: ApiCall, wanted: SendOptions) -> ApiCall {
    match call {
        ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options: _ } => {
            let options = wanted;
            ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options }
        }
        other @ (ApiCall::AbortMessage { .. }
        | ApiCall::SetStateLifetime { .. }
        | ApiCall::InvalidateRoutingState { .. }
        | ApiCall::AnswerQuery { .. }
        | ApiCall::SetPeering { .. }) => panic!("{other:?}"),
    }
}

fn with_state(call: ApiCall, state: StateUse) -> ApiCall {
    with_options(call, SendOptions { state, ..SendOptions::default() })
}

fn carriages(s: &mut Script) -> Vec<(u64, Option<Carriage>)> {
    let carriage = |event| match event {
        Event::MessageStatus { handle, carriage, nslp_id: NSLP, .. } => Some((handle.0, carriage)),
        Event::MessageStatus { .. }
        | Event::RecvMessage { .. }
        | Event::NetworkNotification { .. }
        | Event::Malformed { .. } => None,
    };
    s.events().into_iter().filter_map(carriage).collect()
}

/// Returns the flow that ends here, toward its source.
fn upstream() -> Mri {
    flow(THERE, HERE).inverted()
}

#[test]
fn the_status_says_how_a_message_was_carried() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv_kind(0, MessageType::Data);
    let datagram = Carriage { attributes: UNRELIABLE, mode: Mode::Datagram };
    assert_eq!(carriages(&mut s), [(1, Some(datagram))]);

    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
    let (association, _) = s.connect(0);
    assert_eq!(s.recv_stream(0, association).len(), 1);
    // What need not be reliable is, where there is a connection.
    s.call(1, send(2, 5, downstream(), UNRELIABLE, b"y"));
    let connection = Carriage { attributes: RELIABLE, mode: Mode::Connection };
    assert_eq!(carriages(&mut s), [(1, Some(connection)), (2, Some(connection))]);

    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.at(60_000);
    assert_eq!(carriages(&mut s), [(1, None)], "what was not sent was not carried");
}

#[test]
fn a_message_that_waits_can_be_taken_back_once_and_one_that_was_sent_cannot() {
    let abort = |handle| ApiCall::AbortMessage {
        nslp_id: NSLP,
        session: session(5),
        mri: downstream(),
        handle: MessageHandle(handle),
    };
    let mut s = Script::new();
    assert_eq!(s.try_call(0, abort(1)), Err(ApiError::NotWaiting));
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"one"));
    s.call(0, send(2, 5, downstream(), UNRELIABLE, b"two"));
    s.call(0, abort(1));
    assert_eq!(s.statuses(), [(1, SendStatus::Failed(FailReason::Cancelled))]);
    assert_eq!(s.try_call(0, abort(1)), Err(ApiError::NotWaiting));
    s.establish(0);
    assert_eq!(s.recv_kind(0, MessageType::Data).nslp_data.as_deref(), Some(&b"two\0"[..]));
    s.recv_nothing(0);
    assert_eq!(s.try_call(1, abort(2)), Err(ApiError::NotWaiting));
    assert_eq!(s.statuses(), [(2, SendStatus::Sent)]);

    // Nobody waits any more for the answer to the Query.
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"one"));
    s.recv_kind(0, MessageType::Query);
    s.call(0, abort(1));
    assert_eq!((s.engine.state_counts(), s.engine.poll_timeout()), (StateCounts::default(), None));
    s.recv_nothing(60_000);
}

#[test]
fn of_messages_that_wait_the_greater_priority_goes_first() {
    let mut s = Script::new();
    for (handle, priority) in [(1, 0), (2, 7), (3, 0), (4, 7), (5, 9)] {
        let call = send(handle, 5, downstream(), UNRELIABLE, b"x");
        s.call(0, with_options(call, SendOptions { priority, ..SendOptions::default() }));
    }
    s.establish(0);
    let order: Vec<u64> = s.statuses().into_iter().map(|(handle, _)| handle).collect();
    assert_eq!(order, [5, 2, 4, 1, 3]);
}

#[test]
fn datagrams_have_the_ttl_that_the_nslp_names() {
    let mut s = Script::new();
    let options = SendOptions { ip_ttl: Some(9), ..SendOptions::default() };
    s.call(0, with_options(send(1, 5, downstream(), UNRELIABLE, b"x"), options));
    let Transmit::QMode { ttl: Some(9), payload, .. } = s.transmit(0) else { panic!("a Query has another TTL") };
    let query = parse_datagram(&payload);
    assert_eq!(query.nli.as_ref().unwrap().ip_ttl, 9);
    s.send(0, &response_to(&query));
    s.recv_kind(0, MessageType::Confirm);
    let Transmit::Datagram { ttl, .. } = s.transmit(0) else { panic!("no datagram") };
    assert_eq!(ttl, Some(9));
    let none = SendOptions { ip_ttl: Some(0), ..SendOptions::default() };
    let refused = s.try_call(1, with_options(send(2, 5, downstream(), UNRELIABLE, b"x"), none));
    assert_eq!(refused, Err(ApiError::NoHops));
}

#[test]
fn what_an_nslp_says_of_a_doubted_route_reaches_the_peer_in_the_next_handshake() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv_kind(0, MessageType::Data);
    let data = Some(b"why?".to_vec());
    s.call(
        1,
        ApiCall::InvalidateRoutingState { nslp_id: Some(NSLP), session: None, mri: downstream(), bad: false, data },
    );
    let query = s.recv_kind(1, MessageType::Query);
    assert_eq!(query.nslp_data.as_deref(), Some(&b"why?"[..]));
    s.send(1, &response_to(&query));
    s.recv_kind(1, MessageType::Confirm);

    // The node that it finds hands it up, marked.
    let mut peer = Script::new();
    peer.send(0, &Message { nslp_data: query.nslp_data, ..super::script::query(5) });
    let events = peer.events();
    let [Event::RecvMessage { data, validated: false, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(data, b"why?");

    // It is said once.
    s.call(
        2,
        ApiCall::InvalidateRoutingState {
            nslp_id: Some(NSLP),
            session: None,
            mri: downstream(),
            bad: false,
            data: None,
        },
    );
    assert_eq!(s.recv_kind(2, MessageType::Query).nslp_data, None);
}

#[test]
fn an_upstream_query_is_sent_with_ttl_255_and_makes_state() {
    let mut s = Script::new();
    assert_eq!(s.try_call(0, send(1, 5, upstream(), UNRELIABLE, b"x")), Err(ApiError::NoRoute));
    s.call(0, with_state(send(1, 5, upstream(), UNRELIABLE, b"x"), StateUse::Queried));
    let Transmit::QMode { ttl: Some(255), destination: THERE, payload, .. } = s.transmit(0) else {
        panic!("no Query to the flow's source")
    };
    let query = parse_datagram(&payload);
    assert_eq!((query.kind, query.mri.as_ref()), (MessageType::Query, Some(&upstream())));
    s.send(0, &response_to(&query));
    s.recv_kind(0, MessageType::Confirm);
    s.recv_kind(0, MessageType::Data);
    assert_eq!(s.engine.state_counts().querying, 1);
    // From here on nothing has to be asked.
    s.call(1, send(2, 5, upstream(), UNRELIABLE, b"y"));
    s.recv_kind(1, MessageType::Data);
    assert_eq!(s.statuses(), [(1, SendStatus::Sent), (2, SendStatus::Sent)]);
}

#[test]
fn a_downstream_query_takes_over_what_an_upstream_one_found() {
    let mut s = Script::new();
    s.call(0, with_state(send(1, 5, upstream(), UNRELIABLE, b"x"), StateUse::Queried));
    s.establish(0);
    s.recv_kind(0, MessageType::Data);
    s.events();
    let other: IpAddr = "10.0.0.3".parse().unwrap();
    let from = SocketAddr::new(other, UDP_PORT);
    let query = Message { nli: Some(netserv_wire::gist::Nli { ip_ttl: 64, ..nli(0xcc, other) }), ..query(5) };
    s.send_from(1, from, InterfaceId(1), &query);
    let response = s.recv_kind(1, MessageType::Response);
    s.send_from(1, from, InterfaceId(1), &Message { nli: Some(nli(0xcc, other)), ..confirm_to(&response) });
    assert_eq!((s.count(Counter::ConfirmsAccepted), s.count(Counter::RoutesRefused)), (1, 0));
    assert_eq!((s.engine.state_counts().querying, s.engine.state_counts().responding), (0, 1));
    let events = s.events();
    let told = |event: &Event| {
        let good = |kind: &Notification| matches!(kind, Notification::StatusChange(RouteStatus::Good(_)));
        matches!(event, Event::NetworkNotification { kind, .. } if good(kind))
    };
    assert!(events.iter().any(told), "{events:?}");
    s.call(2, send(2, 5, upstream(), UNRELIABLE, b"y"));
    let Transmit::Datagram { peer, .. } = s.transmit(2) else { panic!("no datagram") };
    assert_eq!(peer.ip(), other);
    // The row lives as long as the peer keeps asking, and no longer.
    s.at(600_000);
    assert_eq!((s.engine.state_counts().querying, s.engine.state_counts().responding), (0, 0));
    assert_eq!(s.engine.poll_timeout(), None);
}

#[test]
fn data_goes_in_q_mode_without_state_and_arrives_marked() {
    for mri in [downstream(), upstream()] {
        let mut s = Script::new();
        s.call(0, with_state(send(1, 5, mri.clone(), UNRELIABLE, b"text"), StateUse::NotNeeded));
        let Transmit::QMode { ttl: Some(ttl), payload, .. } = s.transmit(0) else { panic!("not in Q-mode") };
        let sent = parse_datagram(&payload);
        assert_eq!((sent.kind, sent.context_free, sent.mri), (MessageType::Data, true, Some(mri)));
        assert_eq!(s.engine.state_counts(), StateCounts::default());
        let carriage = Carriage { attributes: TransferAttributes::default(), mode: Mode::QMode };
        assert_eq!(carriages(&mut s), [(1, Some(carriage))]);

        // Upstream it has to come from next door.
        for (lost, delivered) in [(0, 1), (3, usize::from(ttl != 255))] {
            let mut there = Script::new();
            let source = SocketAddr::new(HERE, UDP_PORT);
            let rx =
                crate::Datagram { source, local: THERE, destination: THERE, ttl: ttl - lost, ..datagram(&payload) };
            there.engine.handle_datagram(netserv_model::Instant::from_millis(0), rx);
            let marked = |event: &Event| matches!(event, Event::RecvMessage { data, validated: false, query: None, .. } if data == b"text");
            let events = there.events();
            assert_eq!((events.iter().filter(|event| marked(event)).count(), events.len()), (delivered, delivered));
            assert_eq!(there.engine.state_counts(), StateCounts::default());
        }
    }
    // What has to be reliable needs state after all.
    let mut s = Script::new();
    s.call(0, with_state(send(1, 5, downstream(), RELIABLE, b"text"), StateUse::NotNeeded));
    s.recv_kind(0, MessageType::Query);
}

#[test]
fn a_message_says_what_is_known_of_its_way() {
    let mut s = Script::new();
    let alone = Message { context_free: true, ..data(flow(THERE, HERE), 5, b"text") };
    let provenance = |s: &mut Script| {
        let of = |event| match event {
            Event::RecvMessage { provenance, .. } => Some(provenance),
            Event::MessageStatus { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
        };
        s.events().into_iter().find_map(of).expect("a message is handed up")
    };
    let unknown = Provenance { ip_ttl: Some(62), from_flow_end: true, ..Provenance::default() };
    let known = Provenance { way_back: true, along_flow: true, ..unknown };
    s.send(0, &alone);
    assert_eq!(provenance(&mut s), unknown);
    s.send(0, &Message { mri: Some(flow(FAR, HERE)), ..alone.clone() });
    assert_eq!(provenance(&mut s), Provenance { from_flow_end: false, ..unknown });
    s.be_queried(1, 5);
    s.send(1, &data(flow(THERE, HERE), 5, b"text"));
    assert_eq!(provenance(&mut s), known);
    s.send(1, &Message { explicit: true, ..data(flow(THERE, HERE), 5, b"text") });
    assert_eq!(provenance(&mut s), Provenance { explicit: true, way_back: true, ..unknown });

    let mut s = Script::new();
    let association = s.be_connected(0, 5);
    s.send_stream(0, association, &stream_data(flow(THERE, HERE), 5, b"text"));
    assert_eq!(provenance(&mut s), Provenance { ip_ttl: None, ..known });
}
