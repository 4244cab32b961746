// SPDX-License-Identifier: Apache-2.0
//! Handshakes that meet no trouble, in both modes (RFC 5971 §4.4).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{AdditionalInfo, Cookie, ErrorCode, Message, MessageType, Mri, Nli, PathCoupled, UDP_PORT};

use super::net::Net;
use super::script::*;
use super::{NSLP, RAO, RELIABLE, UNRELIABLE, config, flow, send, session};
use crate::messages::{STACK_CONFIGURATION, STACK_PROPOSAL};
use crate::{
    ApiCall, ApiError, Channel, Counter, Datagram, Disposition, Engine, Event, FailReason, InterfaceId, MessageHandle,
    ResponderPolicy, SendOptions, SendStatus, SiiHandle, StateCounts, TransferAttributes, Transmit,
};

#[test]
fn a_small_message_goes_in_datagrams() {
    let mut s = Script::new();
    s.call(1000, send(1, 5, downstream(), UNRELIABLE, b"hello world!"));
    let Transmit::QMode { local, destination, ttl, rao, payload, .. } = s.transmit(1000) else { panic!() };
    assert_eq!((local, destination, ttl, rao), (HERE, FAR, Some(64), Some(RAO)));
    let query = parse_datagram(&payload);
    assert_eq!((query.kind, query.hops, query.nslp_id), (MessageType::Query, 32, NSLP));
    assert!(query.context_free && query.source_is_signaller && query.reply_wanted && !query.explicit);
    assert_eq!((query.mri.clone(), query.session), (Some(downstream()), Some(session(5))));
    let own = query.nli.clone().unwrap();
    assert_eq!((own.address, own.ip_ttl, own.peer_identity), (HERE, 64, vec![0xaa; 16]));
    assert_eq!(query.query_cookie.as_ref().unwrap().0.len(), 16);
    assert_eq!((query.stack_proposal.clone(), query.nslp_data.clone()), (None, None));

    s.send(1001, &response_to(&query));
    let Transmit::Datagram { local, peer, payload, .. } = s.transmit(1001) else { panic!() };
    assert_eq!((local, peer), (HERE, SocketAddr::new(THERE, UDP_PORT)));
    let confirm = parse_datagram(&payload);
    assert_eq!((confirm.kind, confirm.mri), (MessageType::Confirm, query.mri));
    assert_eq!(confirm.responder_cookie, Some(Cookie(vec![9; 12])));
    assert!(!confirm.context_free && !confirm.reply_wanted && confirm.source_is_signaller);
    let data = s.recv_kind(1001, MessageType::Data);
    assert_eq!((data.mri, data.session, data.hops), (Some(downstream()), Some(session(5)), 32));
    assert_eq!(data.nslp_data.as_deref(), Some(&b"hello world!"[..]));
    assert_eq!(data.nli.unwrap().address, HERE);
    assert_eq!(s.statuses(), [(1, SendStatus::Sent)]);
    s.recv_nothing(1001);

    s.call(1002, send(2, 5, downstream(), UNRELIABLE, b"more"));
    s.recv_kind(1002, MessageType::Data);
    assert_eq!(s.statuses(), [(2, SendStatus::Sent)]);
    s.recv_nothing(1002);
}

#[test]
fn a_reliable_message_goes_over_a_connection() {
    let mut s = Script::new();
    s.call(1000, send(1, 5, downstream(), RELIABLE, b"hello world!"));
    let query = s.recv_kind(1000, MessageType::Query);
    assert_eq!(query.stack_proposal.as_ref().unwrap().profiles, [[1]]);
    assert_eq!(query.stack_configuration.as_ref().unwrap().options[0].port, None);
    s.send(1001, &response_to(&query));
    let Transmit::Connect { association, local, peer, tls: false } = s.transmit(1001) else { panic!() };
    assert_eq!((local, peer), (HERE, SocketAddr::new(THERE, 30_000)));
    s.recv_nothing(1400);
    let now = s.at(1400);
    s.engine.handle_connected(now, association, Channel::Plain);

    let confirm = s.recv_stream(1400, association).remove(0);
    assert_eq!((confirm.kind, confirm.responder_cookie), (MessageType::Confirm, Some(Cookie(vec![9; 12]))));
    assert_eq!(confirm.stack_proposal.unwrap().profiles, [[1]]);
    let short = confirm.stack_configuration.unwrap();
    assert_eq!((short.hold_time, short.options.len()), (Duration::from_secs(30), 0));
    let data = s.recv_stream(1400, association).remove(0);
    assert_eq!((data.kind, data.nli, data.nslp_data), (MessageType::Data, None, Some(b"hello world!".to_vec())));
    assert_eq!(s.statuses(), [(1, SendStatus::Sent)]);
    s.recv_nothing(1400);
}

#[test]
fn a_long_message_goes_over_a_connection() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, &[b'x'; 500]));
    assert!(s.recv(0).stack_proposal.is_some());
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, &[b'x'; 400]));
    let query = s.recv(0);
    assert!(query.stack_proposal.is_none());
    s.send(1, &response_to(&query));
    s.recv_kind(1, MessageType::Confirm);
    assert!(s.recv_kind(1, MessageType::Data).emit().len() <= 512);
}

#[test]
fn a_route_in_d_mode_gets_a_connection_when_a_message_needs_one() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"small"));
    s.establish(0);
    s.recv_kind(0, MessageType::Data);
    s.call(10, send(2, 5, downstream(), RELIABLE, b"reliable"));
    s.call(10, send(3, 5, downstream(), UNRELIABLE, b"behind"));
    let (association, _) = s.connect(10);
    assert_eq!(s.recv_stream(10, association)[0].nslp_data.as_deref(), Some(&b"reliable"[..]));
    assert_eq!(s.recv_stream(10, association)[0].nslp_data.as_deref(), Some(&b"behind\0\0"[..]));
    assert_eq!(s.statuses(), [(1, SendStatus::Sent), (2, SendStatus::Sent), (3, SendStatus::Sent)]);
    s.recv_nothing(10);
}

#[test]
fn a_query_leaves_no_trace_before_its_confirm() {
    let mut s = Script::new();
    s.send(0, &query(5));
    let response = s.recv_kind(0, MessageType::Response);
    assert_eq!(s.engine.state_counts(), StateCounts::default());
    assert!(response.reply_wanted && !response.context_free);
    assert_eq!((response.mri.clone(), response.hops), (Some(flow(THERE, HERE).inverted()), 1));
    assert_eq!(response.query_cookie, Some(Cookie(vec![7; 8])));
    assert_eq!(response.responder_cookie.as_ref().unwrap().0.len(), 24);
    assert_eq!((response.stack_proposal.clone(), response.nli.as_ref().unwrap().ip_ttl), (None, 2));

    s.send(1, &confirm_to(&response));
    assert_eq!((s.engine.state_counts().responding, s.engine.state_counts().peers), (1, 1));
    s.send(2, &data(flow(THERE, HERE), 5, b"text"));
    let events = s.events();
    let [Event::RecvMessage { nslp_id, mri, peer, local, interface, ip_distance, attributes, validated, hops, .. }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*nslp_id, mri, *peer, *local), (NSLP, &flow(THERE, HERE), THERE, HERE));
    assert_eq!(
        (*interface, *ip_distance, *attributes, *validated, *hops),
        (InterfaceId(1), Some(2), UNRELIABLE, true, 4)
    );
}

/// Goal: both ends know the distance (RFC 5971 A.3.3). Method: this node downstream of the peer, upstream of it, and queried
/// from downstream; what it is told, what it tells, and what the NSLP hears of it.
#[test]
fn the_distance_is_measured_downstream_and_repeated_upstream() {
    let distances = |s: &mut Script| {
        let heard = |event: &Event| match event {
            Event::RecvMessage { ip_distance, .. } => Some(*ip_distance),
            Event::MessageStatus { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
        };
        s.events().iter().filter_map(heard).collect::<Vec<_>>()
    };
    let told = |message: &Message| message.nli.as_ref().unwrap().ip_ttl;
    let with = |message: Message, ip_ttl: u8| Message { nli: Some(Nli { ip_ttl, ..nli(PEER, THERE) }), ..message };
    let (down, up) = (flow(THERE, HERE), flow(THERE, HERE).inverted());

    let mut s = Script::new();
    s.send(0, &Message { nslp_data: Some(b"text".to_vec()), ..query(5) });
    let response = s.recv(0);
    s.send(0, &confirm_to(&response));
    s.send(1, &data(down.clone(), 5, b"text"));
    s.send(1, &with(data(down.clone(), 5, b"text"), 65));
    s.send(1, &with(data(down.clone(), 5, b"text"), 61));
    assert_eq!(distances(&mut s), [Some(2), Some(2), Some(3), Some(3)]);
    s.call(2, send(1, 5, up.clone(), UNRELIABLE, b"x"));
    assert_eq!((told(&response), told(&s.recv_kind(2, MessageType::Data))), (2, 3));
    let id = s.be_connected(3, 6);
    s.send_stream(3, id, &stream_data(down, 6, b"over a connection"));
    assert_eq!(distances(&mut s), [Some(2)], "the cookie brings the Query's distance");

    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    s.send(0, &with(response_to(&query), 4));
    assert_eq!((told(&s.recv_kind(0, MessageType::Confirm)), told(&s.recv_kind(0, MessageType::Data))), (0, 0));
    s.send(1, &data(downstream().inverted(), 5, b"text"));
    s.send(1, &with(data(downstream().inverted(), 5, b"text"), 5));
    assert_eq!(distances(&mut s), [Some(4), Some(5)]);

    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    s.send(0, &with(response_to(&query), 0));
    s.send(1, &data(downstream().inverted(), 5, b"text"));
    assert_eq!(distances(&mut s), [Some(0)], "the Query named its TTL, so the Response counts no router");

    let mut s = Script::new();
    let query = with(Message { mri: Some(flow(FAR, THERE).inverted()), ..super::script::query(5) }, 1).emit_datagram();
    let now = s.at(0);
    s.engine.handle_datagram(now, Datagram { ttl: 255, ..datagram(&query) });
    let response = s.recv(0);
    s.send(0, &confirm_to(&response));
    s.send(1, &data(flow(FAR, THERE).inverted(), 5, b"text"));
    assert_eq!((told(&response), distances(&mut s)), (0, vec![Some(1)]));
}

#[test]
fn an_answer_goes_upstream_on_the_route_that_the_confirm_made() {
    let mut s = Script::new();
    let upstream = flow(THERE, HERE).inverted();
    assert_eq!(s.try_call(0, send(1, 5, upstream.clone(), UNRELIABLE, b"x")), Err(ApiError::NoRoute));
    s.be_queried(0, 5);
    s.call(1, send(2, 5, upstream.clone(), UNRELIABLE, b"answer"));
    let Transmit::Datagram { peer, payload, .. } = s.transmit(1) else { panic!() };
    assert_eq!(peer, SocketAddr::new(THERE, UDP_PORT));
    let data = parse_datagram(&payload);
    assert_eq!((data.kind, data.mri), (MessageType::Data, Some(upstream.clone())));

    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    s.call(1, send(3, 5, upstream, RELIABLE, b"answer"));
    assert_eq!(s.recv_stream(1, id)[0].nslp_data.as_deref(), Some(&b"answer\0\0"[..]));
    assert_eq!(s.statuses(), [(3, SendStatus::Sent)]);
}

#[test]
fn an_answer_that_needs_a_connection_waits_for_the_peer_to_open_one() {
    let mut s = Script::new();
    let upstream = flow(THERE, HERE).inverted();
    s.be_queried(0, 5);
    s.call(1, send(1, 5, upstream.clone(), RELIABLE, b"late"));
    s.recv_nothing(1000);
    let id = s.be_connected(2000, 5);
    assert_eq!(s.recv_stream(2000, id)[0].nslp_data.as_deref(), Some(&b"late"[..]));
    assert_eq!(s.statuses(), [(1, SendStatus::Sent)]);

    let mut s = Script::new();
    s.be_queried(0, 5);
    s.call(1, send(2, 5, upstream, RELIABLE, b"never"));
    s.recv_nothing(10_000);
    assert_eq!(s.statuses(), []);
    s.recv_nothing(10_001);
    assert_eq!(s.statuses(), [(2, SendStatus::Failed(FailReason::NoAssociation))]);
}

#[test]
fn flows_to_one_peer_share_a_connection() {
    let mut s = Script::new();
    s.call(0, send(1, 1, downstream(), RELIABLE, b"one!"));
    s.call(0, send(2, 2, downstream(), RELIABLE, b"two!"));
    let (first, second) = (s.recv(0), s.recv(0));
    s.send(1, &response_to(&first));
    let Transmit::Connect { association, .. } = s.transmit(1) else { panic!() };
    s.send(1, &response_to(&second));
    s.recv_nothing(1);
    let now = s.at(2);
    s.engine.handle_connected(now, association, Channel::Plain);
    let kinds: Vec<_> = (0..4).map(|_| s.recv_stream(2, association).remove(0)).collect();
    let stack_configurations = kinds.iter().filter(|message| message.stack_configuration.is_some()).count();
    assert_eq!(stack_configurations, 1, "only the first Confirm tells the hold time");
    assert_eq!(kinds.iter().filter(|message| message.kind == MessageType::Data).count(), 2);

    // The peer shows in its Response that it knows the connection too.
    s.call(3, send(3, 3, downstream(), RELIABLE, b"three"));
    let query = s.recv_kind(3, MessageType::Query);
    let response = Message { stack_proposal: None, stack_configuration: None, ..response_to(&query) };
    s.send_stream(4, association, &response);
    let confirm = s.recv_stream(4, association).remove(0);
    assert_eq!((confirm.kind, confirm.stack_proposal, confirm.stack_configuration), (MessageType::Confirm, None, None));
    assert_eq!(s.recv_stream(4, association)[0].kind, MessageType::Data);
    assert_eq!(s.engine.state_counts().associations, 1);
}

#[test]
fn a_responder_answers_over_the_connection_that_it_has() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    s.send(1, &with_stack(query(6), None));
    let response = s.recv_stream(1, id).remove(0);
    assert_eq!((response.kind, response.stack_proposal.clone()), (MessageType::Response, None));
    assert!(response.reply_wanted);
    s.send_stream(2, id, &confirm_to(&response));
    s.send_stream(3, id, &stream_data(flow(THERE, HERE), 6, b"text"));
    assert!(matches!(&s.events()[..], [Event::RecvMessage { validated: true, attributes: RELIABLE, .. }]));

    // Another identity or another address is another peer.
    let mut other = with_stack(query(7), None);
    other.nli = Some(nli(0xcc, THERE));
    s.send(4, &other);
    assert!(s.recv_kind(4, MessageType::Response).stack_proposal.is_some());
    // Stacks that this node has not got do not fit the connection.
    let mut other = with_stack(query(8), None);
    other.stack_proposal = Some(foreign_proposal());
    other.stack_configuration.as_mut().unwrap().options.clear();
    s.send(5, &other);
    assert!(s.recv_kind(5, MessageType::Response).stack_proposal.is_some());
}

#[test]
fn a_connection_carries_handshakes_of_the_peers_other_interfaces() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    let other = Message { nli: Some(nli(PEER, FAR)), ..with_stack(query(6), None) };
    s.send_from(1, SocketAddr::new(FAR, UDP_PORT), InterfaceId(2), &other);
    let response = s.recv_kind(1, MessageType::Response);
    assert!(response.stack_proposal.is_some(), "only the identity is the same");
    let confirm = Message { nli: Some(nli(PEER, FAR)), stack_configuration: None, ..first_confirm_to(&response) };
    s.send_stream(2, id, &confirm);
    assert_eq!(s.engine.state_counts().responding, 2);
    // But not those of another node.
    s.send(3, &with_stack(query(7), None));
    let response = s.recv_stream(3, id).remove(0);
    s.send_stream(3, id, &Message { nli: Some(nli(0xcc, THERE)), ..confirm_to(&response) });
    assert_eq!((s.engine.state_counts().responding, s.count(Counter::SourceMismatch)), (2, 1));
}

#[test]
fn a_responder_does_not_trust_a_connection_that_was_silent_for_long() {
    let mut s = Script::with(crate::Config { validity: Duration::from_secs(1000), ..config(0xaa) });
    let id = s.be_connected(0, 5);
    s.at(30_000);
    while s.engine.poll_transmit().is_some() {}
    s.send(30_000, &with_stack(query(6), None));
    assert!(s.recv_kind(30_000, MessageType::Response).stack_proposal.is_some());
    s.send_stream(30_001, id, &stream_data(flow(THERE, HERE), 5, b"text"));
    s.send(30_002, &with_stack(query(6), None));
    assert!(s.recv_stream(30_002, id)[0].stack_proposal.is_none());
}

#[test]
fn a_node_queries_back_over_a_connection_that_the_peer_opened() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    s.call(1, send(1, 9, downstream(), RELIABLE, b"back"));
    let query = s.recv_kind(1, MessageType::Query);
    s.send(2, &response_to(&query));
    let confirm = s.recv_stream(2, id).remove(0);
    assert!(confirm.stack_proposal.is_some() && confirm.stack_configuration.is_none());
    assert_eq!(s.recv_stream(2, id)[0].nslp_data.as_deref(), Some(&b"back"[..]));
}

#[test]
fn the_immediate_policy_keeps_state_without_a_confirm() {
    let mut s = Script::with(crate::Config { policy: ResponderPolicy::Immediate, ..config(0xaa) });
    s.send(0, &query(5));
    let response = s.recv_kind(0, MessageType::Response);
    assert!(!response.reply_wanted && response.responder_cookie.is_none());
    assert_eq!(s.engine.state_counts().responding, 1);
    s.send(1, &data(flow(THERE, HERE), 5, b"text"));
    assert!(matches!(&s.events()[..], [Event::RecvMessage { validated: true, .. }]));
    // A connection still needs one.
    s.send(2, &with_stack(query(6), None));
    assert!(s.recv_kind(2, MessageType::Response).reply_wanted);
    assert_eq!(s.engine.state_counts().responding, 1);
}

#[test]
fn a_querier_needs_no_confirm_where_none_is_wanted() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    s.send(1, &Message { reply_wanted: false, responder_cookie: None, ..response_to(&query) });
    s.recv_kind(1, MessageType::Data);
}

#[test]
fn only_a_true_response_makes_a_route() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    let good = response_to(&query);
    let cookie = Some(Cookie(vec![1; 16]));
    s.send(1, &Message { query_cookie: cookie, ..good.clone() });
    s.send(1, &Message { session: Some(session(6)), ..good.clone() });
    s.send(1, &Message { mri: query.mri.clone(), ..good.clone() });
    assert_eq!(s.count(Counter::ResponsesUnsolicited), 3);
    // From somewhere else than it says: a NAT, or a liar.
    s.send_from(1, SocketAddr::new(FAR, UDP_PORT), InterfaceId(1), &good);
    assert_eq!(s.count(Counter::SourceMismatch), 1);
    s.recv_nothing(1);
    s.send(1, &good);
    s.recv_kind(1, MessageType::Confirm);
}

#[test]
fn only_a_true_confirm_makes_a_route() {
    let mut s = Script::new();
    s.send(0, &query(5));
    let good = confirm_to(&s.recv(0));
    s.send(1, &Message { session: Some(session(6)), ..good.clone() });
    s.send(1, &Message { responder_cookie: None, ..good.clone() });
    s.send(1, &Message { nli: Some(nli(0xcc, THERE)), ..good.clone() });
    assert_eq!(s.count(Counter::CookiesRefused), 3);
    s.send_from(1, SocketAddr::new(FAR, UDP_PORT), InterfaceId(1), &good);
    assert_eq!(s.count(Counter::SourceMismatch), 1);
    assert_eq!(s.engine.state_counts(), StateCounts::default());
    s.recv_nothing(1);
}

/// A peer's connection after its first Confirm on it, which is changed.
fn after_first_confirm(change: fn(&mut Message)) -> (Script, crate::AssociationId) {
    let mut s = Script::new();
    s.send(0, &with_stack(query(5), None));
    let mut confirm = first_confirm_to(&s.recv(0));
    change(&mut confirm);
    let now = s.at(0);
    let id = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
    s.send_stream(0, id, &confirm);
    (s, id)
}

#[test]
fn a_confirm_must_echo_our_stacks() {
    for change in [
        |confirm: &mut Message| confirm.stack_proposal = Some(foreign_proposal()),
        |confirm: &mut Message| (confirm.stack_proposal, confirm.stack_configuration) = (None, None),
        |confirm: &mut Message| confirm.stack_configuration = None,
    ] {
        let (mut s, id) = after_first_confirm(change);
        assert_eq!(s.engine.state_counts(), StateCounts::default());
        let closed = std::iter::from_fn(|| s.engine.poll_transmit()).last();
        assert_eq!(closed, Some(Transmit::Close { association: id }));
    }
}

#[test]
fn a_first_confirm_is_told_what_it_lacks() {
    type Change = fn(&mut Message);
    let no_proposal: Change = |confirm| (confirm.stack_proposal, confirm.stack_configuration) = (None, None);
    let no_hold_time: Change = |confirm| confirm.stack_configuration = None;
    for (change, missing) in [(no_proposal, STACK_PROPOSAL), (no_hold_time, STACK_CONFIGURATION)] {
        let (mut s, id) = after_first_confirm(change);
        let object = s.recv_stream(0, id).remove(0).error.unwrap();
        assert_eq!(object.error_code(), Some(ErrorCode::MissingObject));
        assert_eq!(object.infos, [AdditionalInfo::ObjectType(missing)]);
    }
}

#[test]
fn a_confirm_by_datagram_must_not_echo_other_stacks() {
    for (changed, rows) in [(true, 0), (false, 1)] {
        let mut s = Script::new();
        s.send(0, &with_stack(query(5), None));
        let mut confirm = first_confirm_to(&s.recv(0));
        if changed {
            confirm.stack_proposal = Some(foreign_proposal());
        }
        s.send(0, &confirm);
        assert_eq!(s.engine.state_counts().responding, rows);
        assert_eq!(s.count(Counter::StacksRefused), u64::from(changed));
        s.recv_nothing(0);
    }
}

#[test]
fn a_message_can_go_to_a_certain_peer() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv_kind(0, MessageType::Data);
    s.send(1, &data(downstream().inverted(), 5, b"y"));
    let events = s.events();
    let Some(Event::RecvMessage { sii, .. }) = events.last() else { panic!("{events:?}") };
    let to = |sii: SiiHandle, number: u64| ApiCall::SendMessage {
        handle: MessageHandle(number),
        nslp_id: NSLP,
        session: session(number),
        mri: downstream(),
        attributes: UNRELIABLE,
        sii: Some(sii),
        timeout: Duration::from_secs(1),
        data: b"bye!".to_vec(),
        hops: Some(3),
        options: SendOptions::default(),
    };
    s.call(2, to(*sii, 5));
    let data = s.recv_kind(2, MessageType::Data);
    assert!(!data.explicit, "the peer is the next one anyway");
    s.call(3, to(*sii, 6));
    let data = s.recv_kind(3, MessageType::Data);
    assert!(data.explicit);
    assert_eq!((data.hops, data.nslp_data.as_deref()), (3, Some(&b"bye!"[..])));
    assert_eq!(s.try_call(4, to(SiiHandle(99), 7)), Err(ApiError::UnknownPeer(SiiHandle(99))));

    // The receiver takes it without a route, and says that it did.
    let mut r = Script::new();
    r.send(0, &Message { explicit: true, ..super::script::data(flow(THERE, HERE), 5, b"bye!") });
    assert!(matches!(&r.events()[..], [Event::RecvMessage { validated: false, .. }]));
}

#[test]
fn payload_in_a_response_or_confirm_is_delivered_with_the_state() {
    let text = |events: Vec<Event>| match &events[..] {
        [.., Event::RecvMessage { data, validated, .. }] => Some((data.clone(), *validated)),
        _ => None,
    };
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    let response = Message { nslp_data: Some(b"response".to_vec()), ..response_to(&query) };
    s.send(0, &Message { query_cookie: Some(Cookie(vec![0; 16])), ..response.clone() });
    assert_eq!(text(s.events()), None, "a forged Response");
    s.send(0, &response);
    assert_eq!(text(s.events()), Some((b"response".to_vec(), true)));

    let mut s = Script::new();
    s.send(0, &super::script::query(5));
    let confirm = Message { nslp_data: Some(b"answered".to_vec()), ..confirm_to(&s.recv(0)) };
    s.send(0, &Message { responder_cookie: Some(Cookie(vec![0; 24])), ..confirm.clone() });
    assert_eq!(text(s.events()), None, "a forged Confirm");
    s.send(0, &confirm);
    assert_eq!(text(s.events()), Some((b"answered".to_vec(), true)));
}

#[test]
fn datagrams_go_to_the_port_that_the_query_came_from() {
    let mut s = Script::new();
    let source = SocketAddr::new(THERE, 4567);
    let peer_of = |transmit| match transmit {
        Transmit::Datagram { peer, payload, .. } => (peer, parse_datagram(&payload)),
        other @ (Transmit::QMode { .. }
        | Transmit::Connect { .. }
        | Transmit::Stream { .. }
        | Transmit::Close { .. }) => panic!("{other:?}"),
    };
    s.send_from(0, source, InterfaceId(1), &query(5));
    let (peer, response) = peer_of(s.transmit(0));
    assert_eq!(peer, source);
    s.send_from(0, source, InterfaceId(1), &confirm_to(&response));
    s.call(1, send(1, 5, flow(THERE, HERE).inverted(), UNRELIABLE, b"answer"));
    let (peer, data) = peer_of(s.transmit(1));
    assert_eq!((peer, data.kind), (source, MessageType::Data));
}

#[test]
fn a_response_is_only_a_little_longer_than_its_query() {
    for query in [query(5), with_stack(query(5), None)] {
        let mut s = Script::new();
        s.send(0, &query);
        let response = s.recv(0).emit().len();
        assert!(response <= query.emit().len() + 32, "{response} bytes for {}", query.emit().len());
    }
}

#[test]
fn data_without_a_handshake_is_marked() {
    let mut s = Script::new();
    let mut message = data(flow(THERE, HERE), 5, b"text");
    message.context_free = true;
    s.send(0, &message);
    s.send(1, &Message { nslp_data: Some(b"in the Query".to_vec()), ..query(6) });
    let events = s.events();
    let [Event::RecvMessage { validated: false, sii, .. }, Event::RecvMessage { validated: false, .. }] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(*sii, SiiHandle(0));
    assert_eq!(s.engine.state_counts(), StateCounts::default());
}

#[test]
fn data_in_q_mode_names_its_sender_who_need_not_be_its_source() {
    let mut s = Script::new();
    let message = Message { context_free: true, ..data(flow(FAR, HERE), 5, b"text") };
    s.send(0, &Message { nli: None, ..message.clone() });
    let object = s.recv(0).error.unwrap();
    assert_eq!((object.error_code(), object.q_mode), (Some(ErrorCode::MissingObject), true));
    assert_eq!(s.events(), []);
    let from_flow = SocketAddr::new(FAR, UDP_PORT);
    for (own_source, delivered) in [(true, 0), (false, 1)] {
        let message = Message { source_is_signaller: own_source, ..message.clone() };
        s.send_from(1, from_flow, InterfaceId(1), &message);
        assert_eq!(s.events().len(), delivered);
    }
    s.recv_nothing(1);
}

#[test]
fn calls_that_cannot_work_are_refused() {
    let mut s = Script::new();
    let v6 = flow("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let secure = TransferAttributes { reliable: true, secure: true, inside: false };
    let hopless = ApiCall::SendMessage {
        handle: MessageHandle(1),
        nslp_id: NSLP,
        session: session(5),
        mri: downstream(),
        attributes: UNRELIABLE,
        sii: None,
        timeout: Duration::from_secs(1),
        data: b"x".to_vec(),
        hops: Some(0),
        options: SendOptions::default(),
    };
    for (call, expected) in [
        (send(1, 5, downstream(), secure, b"x"), ApiError::SecureUnsupported),
        (send(1, 5, v6, UNRELIABLE, b"x"), ApiError::VersionMismatch),
        (send(1, 5, flow(THERE, HERE), UNRELIABLE, b"x"), ApiError::OwnDestination),
        (hopless, ApiError::NoHops),
    ] {
        assert_eq!(s.try_call(0, call), Err(expected));
    }
    s.engine = Engine::new(crate::Config::new(vec![1]), [1; 32]);
    assert_eq!(s.try_call(0, send(1, 5, downstream(), UNRELIABLE, b"x")), Err(ApiError::UnknownNslp(NSLP)));
    s.recv_nothing(0);
    assert_eq!(s.events(), []);
    assert_eq!(s.engine.state_counts(), StateCounts::default());
}

#[test]
fn a_query_has_the_dscp_and_flow_label_of_its_flow() {
    let (from, to): (IpAddr, IpAddr) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let flow = || PathCoupled::new(from, to).unwrap();
    for (flow, expected) in
        [(flow(), (None, None)), (flow().with_dscp(46).with_flow_label(0xa_bcde), (Some(46), Some(0xa_bcde)))]
    {
        let mut s = Script::new();
        let now = s.at(0);
        s.engine.handle_api(now, send(1, 5, Mri::PathCoupled(flow), UNRELIABLE, b"x"), from).unwrap();
        let Transmit::QMode { dscp, flow_label, .. } = s.transmit(0) else { panic!() };
        assert_eq!((dscp, flow_label), expected);
    }
}

#[test]
fn a_node_that_nobody_could_answer_is_not_in_the_way() {
    let mut s = Script::new();
    let query = query(5).emit_datagram();
    let nowhere = Datagram { destination: FAR, destination_is_local: false, local: [0; 4].into(), ..datagram(&query) };
    let now = s.at(0);
    let passed = s.engine.handle_datagram(now, nowhere);
    assert_eq!((passed, s.count(Counter::NoAddress)), (Disposition::Forward { payload: None }, 1));
    for (local, v6) in [("0.0.0.0", false), ("169.254.0.1", false), ("::", true), ("fe80::1", true)] {
        let far = if v6 { "2001:db8::2".parse().unwrap() } else { FAR };
        let here = if v6 { "2001:db8::1".parse().unwrap() } else { HERE };
        let call = send(1, 5, flow(here, far), UNRELIABLE, b"x");
        let refused = s.engine.handle_api(Instant::from_millis(1), call, local.parse().unwrap());
        assert_eq!(refused, Err(ApiError::NoAddress), "{local}");
    }
    s.recv_nothing(1);
}

/// Goal: nobody guesses cookies from fewer bits than the seed has.
#[test]
fn cookies_depend_on_every_byte_of_the_seed() {
    let cookies = |seed: [u8; 32]| {
        let mut s = Script { engine: Engine::new(config(0xaa), seed) };
        s.send(0, &query(5));
        let answered = s.recv(0).responder_cookie.unwrap();
        s.call(0, send(1, 6, downstream(), UNRELIABLE, b"x"));
        [answered, s.recv(0).query_cookie.unwrap()]
    };
    let mut seen: Vec<Cookie> = cookies([0; 32]).into();
    assert_eq!(cookies([0; 32])[..], seen[..], "a run is a function of the seed");
    for byte in 0..32 {
        let new = cookies(std::array::from_fn(|at| if at == byte { 0x80 } else { 0 }));
        assert!(new.iter().all(|cookie| !seen.contains(cookie)), "byte {byte}");
        seen.extend(new);
    }
}

/// Goal: no needless delay. A chain of three nodes with 1 ms links passes a large message on and the answer back in
/// no more time than the round trips take: per hop Query, Response, connection, Confirm with Data.
#[test]
fn a_long_message_and_its_answer_cross_two_hops_at_once() {
    let mut net = Net::new(3, 1);
    let down = net.flow();
    net.call(0, send(1, 5, down.clone(), RELIABLE, &[b's'; 2000])).unwrap();
    net.run(Duration::from_millis(4));
    assert_eq!(net.received(1).len(), 1);
    net.call(1, send(2, 5, down.clone(), RELIABLE, &[b's'; 2000])).unwrap();
    net.run(Duration::from_millis(4));
    assert_eq!(net.received(2).len(), 1);
    let up = down.inverted();
    net.call(2, send(3, 5, up.clone(), RELIABLE, b"done")).unwrap();
    net.run(Duration::from_millis(1));
    assert_eq!(net.received(1).last().unwrap(), &("done".to_owned(), true));
    net.call(1, send(4, 5, up, RELIABLE, b"done")).unwrap();
    net.run(Duration::from_millis(1));
    assert_eq!(net.received(0), [("done".to_owned(), true)]);
}
