// SPDX-License-Identifier: Apache-2.0
//! Recorded bytes of another implementation, every error of RFC 5971, bypass, and bytes that mean nothing.

use std::net::{IpAddr, SocketAddr};

use netserv_model::Instant;
use netserv_wire::gist::{AdditionalInfo, Direction, ErrorCode, LooseEnd, Message, MessageType, Mri, UDP_PORT};
use proptest::prelude::*;

use super::script::*;
use super::{NSLP, UNRELIABLE, config, flow, send};
use crate::{
    AssociationId, Audience, Channel, Config, Counter, Datagram, Disposition, Engine, Event, InterfaceId, StateCounts,
    Transmit,
};

/// Goal: NSIS-ka's handshakes work with this engine as the responding node. Method: its recorded Query goes in; the
/// recorded Confirm and Data follow, with our cookie in place of the one that was recorded.
#[test]
fn a_recorded_handshake_in_d_mode_is_answered() {
    for recording in [
        include_str!("../../../../vectors/gist/gist-dmode-v4.txt"),
        include_str!("../../../../vectors/gist/gist-dmode-v6.txt"),
    ] {
        let recorded = Recording::read(recording);
        let mut peer = Recorded::new(&recorded);
        assert_eq!(peer.datagram(&recorded.messages[0]), Disposition::Consumed);
        let response = peer.response();
        assert!(response.reply_wanted && response.stack_proposal.is_none());
        same_handshake(&response, &recorded.message(1));
        peer.confirm(&recorded.message(2), &response);
        peer.datagram(&recorded.messages[3]);
        peer.received_hello_world();
    }
}

#[test]
fn a_recorded_handshake_over_tcp_is_answered() {
    let v6 = include_str!("../../../../vectors/gist/gist-dmode-v6.txt");
    let v6 = Recording { messages: Recording::read(v6).messages.split_off(4) };
    for recorded in [Recording::read(include_str!("../../../../vectors/gist/gist-tcp-v4.txt")), v6] {
        let mut peer = Recorded::new(&recorded);
        peer.datagram(&recorded.messages[0]);
        let response = peer.response();
        same_handshake(&response, &recorded.message(1));
        assert_eq!(response.stack_proposal.as_ref().unwrap().profiles, [[1]]);
        assert_eq!(response.stack_configuration.as_ref().unwrap().options[0].port, Some(30_000));

        let source = SocketAddr::new(peer.source.ip(), 38_708);
        let id = peer.engine.handle_accepted(NOW, peer.local, source, Channel::Plain);
        let mut confirm = recorded.message(2);
        confirm.responder_cookie = response.responder_cookie.clone();
        confirm.stack_proposal = response.stack_proposal.clone();
        let mut stream = confirm.emit();
        stream.extend_from_slice(&recorded.messages[3]);
        for byte in stream {
            peer.engine.handle_stream(NOW, id, &[byte]);
        }
        assert_eq!(peer.engine.poll_transmit(), None);
        peer.received_hello_world();
        assert_eq!(peer.engine.poll_timeout().unwrap().1, "route expiry");
    }
}

/// Goal: NSIS-ka takes our Queries. Method: ours has the same objects in the same order with the same flags as its own.
#[test]
fn our_query_looks_like_the_recorded_one() {
    let recorded = Recording::read(include_str!("../../../../vectors/gist/gist-dmode-v4.txt")).message(0);
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let ours = s.recv(0);
    let same = Message {
        mri: ours.mri.clone(),
        session: ours.session,
        nli: ours.nli.clone(),
        query_cookie: ours.query_cookie.clone(),
        ..recorded
    };
    assert_eq!(ours, same);
}

#[test]
fn messages_in_the_wrong_mode_are_refused() {
    for (message, code) in [
        (hello(), ErrorCode::IncorrectEncapsulation),
        (Message { hops: 0, ..query(5) }, ErrorCode::HopLimitExceeded),
        (Message { nslp_id: NSLP + 1, ..query(5) }, ErrorCode::EndpointFound),
        (Message { nslp_id: NSLP + 1, ..data(flow(THERE, HERE), 5, b"x") }, ErrorCode::UnknownNslpId),
        (Message { nli: None, ..data(flow(THERE, HERE), 5, b"x") }, ErrorCode::MissingObject),
        (data(flow(THERE, HERE), 5, b"x"), ErrorCode::NoRoutingState),
        (Message { mri: Some(flow(THERE, HERE).inverted()), ..query(5) }, ErrorCode::InvalidIpTtl),
        (Message { mri: Some(v6_flow()), ..query(5) }, ErrorCode::IpVersionMismatch),
        (Message { nli: Some(nli(PEER, FAR)), ..query(5) }, ErrorCode::UntranslatedObject),
    ] {
        let mut s = Script::new();
        s.send(0, &message);
        let Transmit::Datagram { payload, .. } = s.transmit(0) else { panic!() };
        let error = parse_datagram(&payload);
        assert_eq!((error.kind, error.nslp_id), (MessageType::Error, 0));
        assert!(error.source_is_signaller && error.nli.is_some());
        let object = error.error.unwrap();
        assert_eq!(object.error_code(), Some(code));
        assert_eq!((object.session, object.mri), (message.session, message.mri.clone()));
        assert_eq!(object.header, message.emit()[..8], "the header is copied as it came");
        assert_eq!((object.datagram, object.q_mode), (true, message.context_free));
        s.recv_nothing(0);
        assert_eq!((s.events(), s.engine.state_counts()), (vec![], StateCounts::default()));
    }
}

/// Goal: a node behind a NAT hears of it, from where its Query went. Method: a Query that names an address which is not its
/// source, for this node and for one behind it.
#[test]
fn an_error_about_a_nat_goes_back_the_way_that_the_query_came() {
    let outside: SocketAddr = "198.51.100.7:4567".parse().unwrap();
    let payload = query(5).emit_datagram();
    for (destination, destination_is_local, audience) in
        [(HERE, true, Audience::Offender), (FAR, false, Audience::BehindNat)]
    {
        let mut s = Script::new();
        let rx = Datagram { source: outside, destination, destination_is_local, ..datagram(&payload) };
        assert_eq!(s.engine.handle_datagram(NOW, rx), Disposition::Consumed);
        let Transmit::Datagram { audience: whose, local, peer, payload, .. } = s.transmit(1000) else { panic!() };
        assert_eq!((whose, local, peer), (audience, destination, outside));
        let error = parse_datagram(&payload);
        assert_eq!(error.source_is_signaller, destination_is_local);
        assert_eq!(error.nli.unwrap().address, HERE);
        assert_eq!(error.error.unwrap().error_code(), Some(ErrorCode::UntranslatedObject));
        s.recv_nothing(1000);
    }
}

/// Goal: NATs on the way back know the Error again. Method: a message that is read and refused, and one that cannot be read.
#[test]
fn an_error_brings_back_what_nats_wrote() {
    let mut refused = with_nat_traversal(query(5));
    refused.nat_traversal.as_mut().unwrap().translated.clear();
    let mut unreadable = with_nat_traversal(query(5)).emit_datagram();
    unreadable[7] += 1;
    unreadable.extend_from_slice(&[0x07, 0xff, 0, 0]);
    for (payload, code) in
        [(refused.emit_datagram(), ErrorCode::UntranslatedObject), (unreadable, ErrorCode::UnrecognizedObject)]
    {
        let mut s = Script::new();
        s.engine.handle_datagram(NOW, datagram(&payload));
        let error = s.recv_kind(1000, MessageType::Error);
        assert_eq!(error.error.unwrap().error_code(), Some(code));
        let came = parse_datagram(&with_nat_traversal(query(5)).emit_datagram()).nat_traversal.unwrap();
        assert_eq!(error.nat_traversal.map(|nats| (nats.mri, nats.nats)), Some((came.mri, came.nats)));
    }
}

#[test]
fn what_cannot_be_used_comes_back() {
    let mut other_method = query(5).emit();
    other_method[12] = 120;
    let v6_nli = nli(PEER, "2001:db8::1".parse().unwrap());
    for (message, code, from, to, offset) in [
        (Message { mri: Some(v6_flow()), ..query(5) }, ErrorCode::IpVersionMismatch, 0, 44, 6),
        (Message::parse(&other_method).unwrap(), ErrorCode::ValueNotSupported, 0, 20, 4),
        (Message { nli: Some(v6_nli), ..query(5) }, ErrorCode::ValueNotSupported, 40, 84, 6),
    ] {
        let mut s = Script::new();
        s.send(0, &message);
        let error = s.recv(0).error.unwrap();
        let object = message.emit()[8 + from..8 + to].to_vec();
        assert_eq!(
            (error.error_code(), error.infos),
            (Some(code), vec![AdditionalInfo::ObjectValue { object, offset }])
        );
    }
}

#[test]
fn messages_that_a_connection_does_not_carry_are_refused() {
    let q_mode = Message { context_free: true, ..stream_data(flow(THERE, HERE), 5, b"x") };
    for (message, code) in [
        (query(5), ErrorCode::IncorrectEncapsulation),
        (q_mode, ErrorCode::IncorrectEncapsulation),
        (data(flow(THERE, HERE), 5, b"x"), ErrorCode::InvalidObjectType),
        (stream_data(flow(THERE, HERE), 6, b"x"), ErrorCode::NoRoutingState),
        (Message { nslp_id: NSLP + 1, ..stream_data(flow(THERE, HERE), 5, b"x") }, ErrorCode::UnknownNslpId),
    ] {
        let mut s = Script::new();
        let id = s.be_connected(0, 5);
        s.send_stream(1, id, &message);
        let error = s.recv_stream(1, id).remove(0);
        assert_eq!((error.kind, error.nli), (MessageType::Error, None));
        assert_eq!(error.error.unwrap().error_code(), Some(code));
        assert_eq!(s.events(), []);
    }
}

/// Goal: the sender knows its message again. Method: one over a connection, with an object that is skipped.
#[test]
fn an_error_over_a_connection_quotes_the_header_that_came() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    let mut bytes = stream_data(flow(THERE, HERE), 6, b"x").emit();
    bytes[3] += 2;
    bytes.extend_from_slice(&[0x40 | 0x07, 0xff, 0, 1, 1, 2, 3, 4]);
    s.engine.handle_stream(NOW, id, &bytes);
    let object = s.recv_stream(1000, id).remove(0).error.unwrap();
    assert_eq!((object.error_code(), &object.header[..]), (Some(ErrorCode::NoRoutingState), &bytes[..8]));
}

#[test]
fn malformed_messages_are_told_and_counted() {
    let good = query(5).emit_datagram();
    for (at, value, code) in [
        (4, 2, ErrorCode::UnknownVersion),
        (7, good[7] + 1, ErrorCode::IncorrectMessageLength),
        (13, 99, ErrorCode::UnrecognizedObject),
    ] {
        let mut payload = good.clone();
        payload[at] = value;
        let mut s = Script::new();
        assert_eq!(s.engine.handle_datagram(NOW, datagram(&payload)), Disposition::Consumed);
        assert_eq!(s.recv_kind(1000, MessageType::Error).error.unwrap().error_code(), Some(code));
        assert_eq!(s.count(Counter::Malformed), 1);
        let events = s.events();
        let [Event::Malformed { from: Some(from), error }] = &events[..] else { panic!("{events:?}") };
        assert_eq!((*from, error.code), (SocketAddr::new(THERE, UDP_PORT), code));
    }
}

#[test]
fn errors_are_kept_to_oneself_where_they_could_do_harm() {
    // About a Response, an Error, or to nobody that is known.
    let mut s = Script::new();
    let mut response = response_to(&query(5));
    response.nslp_id = NSLP + 1;
    s.send(0, &response);
    s.send(0, &Message { hops: 0, ..super::loss::error_about(&query(5), ErrorCode::HopLimitExceeded) });
    let anonymous = Message { source_is_signaller: false, nli: None, ..data(flow(THERE, HERE), 5, b"x") };
    s.send(0, &anonymous);
    s.recv_nothing(0);

    let mut s = Script::with(Config { send_errors: false, ..config(0xaa) });
    s.send(0, &hello());
    s.recv_nothing(0);
}

#[test]
fn a_message_for_another_nslp_goes_on_with_one_hop_less() {
    let mut s = Script::new();
    let message = Message { nslp_id: NSLP + 1, ..query(5) };
    let mut payload = message.emit_datagram();
    // An object that must be forwarded, which this node does not know either.
    payload[7] += 1;
    payload.extend_from_slice(&[0x80 | 0x07, 0xff, 0, 0]);
    let Disposition::Forward { payload: Some(forwarded) } = s.intercept(0, &payload) else { panic!() };
    payload[5] -= 1;
    assert_eq!(forwarded, payload);
    s.recv_nothing(0);

    for hops in [0, 1] {
        let message = Message { hops, ..message.clone() };
        assert_eq!(s.intercept(0, &message.emit_datagram()), Disposition::Consumed);
        assert_eq!(s.recv(0).error.unwrap().error_code(), Some(ErrorCode::HopLimitExceeded));
    }
}

#[test]
fn what_is_not_in_q_mode_goes_on_untouched() {
    let mut s = Script::new();
    let untouched = Disposition::Forward { payload: None };
    let response = response_to(&query(5)).emit_datagram();
    let mut garbled = query(5).emit_datagram();
    garbled[4] = 9;
    for payload in [&b"no magic at all"[..], b"", &response, &garbled, &garbled[..6]] {
        assert_eq!(s.intercept(0, payload), untouched);
    }
    let query = query(5).emit_datagram();
    let rx =
        Datagram { destination: FAR, destination_is_local: false, q_mode_interceptable: false, ..datagram(&query) };
    assert_eq!(s.engine.handle_datagram(NOW, rx), untouched, "another port than GIST's");
    assert_eq!(s.intercept(0, &query), Disposition::Consumed);
    s.recv_kind(0, MessageType::Response);
}

#[test]
fn a_query_that_comes_back_is_dropped() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    assert_eq!(s.intercept(0, &query.emit_datagram()), Disposition::Consumed);
    s.recv_nothing(0);
    assert_eq!(s.count(Counter::QueriesLooped), 1);
}

#[test]
fn a_loose_end_is_asked_for_towards_the_edge_only() {
    for (direction, kind) in [(Direction::Downstream, MessageType::Response), (Direction::Upstream, MessageType::Error)]
    {
        let mri = Some(Mri::LooseEnd(LooseEnd::new(THERE, FAR, direction).unwrap()));
        let payload = Message { mri: mri.clone(), ..query(5) }.emit_datagram();
        let mut s = Script::new();
        s.engine.handle_datagram(NOW, Datagram { ttl: 255, ..datagram(&payload) });
        let answer = s.recv_kind(1000, kind);
        if let Some(error) = answer.error {
            assert_eq!((error.error_code(), error.mri), (Some(ErrorCode::ValueNotSupported), mri));
        }
    }
}

#[test]
fn an_upstream_query_from_next_door_is_answered() {
    let mut s = Script::new();
    let upstream = Message { mri: Some(flow(FAR, THERE).inverted()), ..query(5) };
    let payload = upstream.emit_datagram();
    let rx = Datagram { destination: FAR, destination_is_local: false, ttl: 255, ..datagram(&payload) };
    assert_eq!(s.engine.handle_datagram(NOW, rx), Disposition::Consumed);
    let response = s.recv_kind(1000, MessageType::Response);
    assert_eq!(response.mri, Some(flow(FAR, THERE)));
    s.send(1000, &confirm_to(&response));
    assert_eq!(s.engine.state_counts().responding, 1);
}

#[test]
fn an_upstream_query_does_not_change_what_a_downstream_one_found() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv_kind(0, MessageType::Data);
    let other: IpAddr = "10.0.0.3".parse().unwrap();
    let named = Some(nli(0xcc, other));
    let upstream = Message { mri: Some(downstream().inverted()), nli: named.clone(), ..query(5) };
    let payload = upstream.emit_datagram();
    let now = s.at(1);
    s.engine
        .handle_datagram(now, Datagram { ttl: 255, source: SocketAddr::new(other, UDP_PORT), ..datagram(&payload) });
    let confirm = Message { nli: named, ..confirm_to(&s.recv_kind(1, MessageType::Response)) };
    s.send_from(1, SocketAddr::new(other, UDP_PORT), InterfaceId(1), &confirm);
    assert_eq!((s.count(Counter::ConfirmsAccepted), s.count(Counter::RoutesRefused)), (0, 1));
    s.call(2, send(2, 5, downstream(), UNRELIABLE, b"y"));
    let Transmit::Datagram { peer, .. } = s.transmit(2) else { panic!() };
    assert_eq!(peer.ip(), THERE);
}

#[test]
fn what_has_no_magic_number_is_dropped_in_silence() {
    for bytes in [&b"no magic at all"[..], b"", b"\x4e\x04\xbd", &query(5).emit()] {
        let mut s = Script::new();
        assert_eq!(s.engine.handle_datagram(NOW, datagram(bytes)), Disposition::Consumed);
        s.recv_nothing(1000);
        assert_eq!((s.events(), s.count(Counter::BadMagic)), (vec![], 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: bytes of no meaning never panic and never make state.
    #[test]
    fn arbitrary_datagrams_make_no_state(
        payloads in prop::collection::vec((garbled_message(), any::<bool>(), any::<u8>()), 1..20),
    ) {
        let mut s = Script::new();
        for (payload, local, ttl) in &payloads {
            let destination = if *local { HERE } else { FAR };
            let rx = Datagram { destination, destination_is_local: *local, ttl: *ttl, ..datagram(payload) };
            let disposition = s.engine.handle_datagram(NOW, rx);
            prop_assert!(!local || disposition == Disposition::Consumed);
        }
        prop_assert_eq!(s.engine.state_counts(), StateCounts::default());
        prop_assert_eq!(s.engine.poll_timeout(), None);
        let sent = std::iter::from_fn(|| s.engine.poll_transmit()).count();
        prop_assert!(sent <= payloads.len(), "one message in, at most one out");
    }

    #[test]
    fn arbitrary_streams_make_no_state(chunks in prop::collection::vec(garbled_message(), 1..20)) {
        let mut s = Script::new();
        let id = s.engine.handle_accepted(NOW, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
        for chunk in &chunks {
            s.engine.handle_stream(NOW, id, chunk.get(4..).unwrap_or_default());
        }
        let counts = s.engine.state_counts();
        prop_assert!(counts.associations <= 1);
        prop_assert_eq!(StateCounts { associations: 0, ..counts }, StateCounts::default());
    }

    /// Goal: a row that exists is not disturbed either, unless the bytes happen to be left whole.
    #[test]
    fn arbitrary_bytes_leave_routes_alone(chunks in prop::collection::vec(garbled_message(), 1..20)) {
        let mut s = Script::new();
        let id = s.be_connected(0, 5);
        s.call(0, send(1, 6, downstream(), UNRELIABLE, b"x"));
        for chunk in &chunks {
            s.engine.handle_datagram(NOW, datagram(chunk));
            s.engine.handle_stream(NOW, id, chunk);
            s.engine.handle_connected(NOW, AssociationId(id.0 + 7), Channel::Plain);
        }
        prop_assert_eq!((s.engine.state_counts().querying, s.engine.state_counts().responding), (1, 1));
    }
}

/// Returns messages of every type with some bytes changed, cut or added, and sometimes bytes alone.
fn garbled_message() -> impl Strategy<Value = Vec<u8>> {
    let messages = [
        query(5),
        with_stack(query(5), None),
        response_to(&query(5)),
        confirm_to(&response_to(&query(5))),
        first_confirm_to(&with_stack(response_to(&query(5)), Some(1))),
        data(flow(THERE, HERE), 5, b"some text"),
        super::loss::error_about(&query(7), ErrorCode::NoRoutingState),
        hello(),
    ];
    let payloads: Vec<Vec<u8>> = messages.iter().map(Message::emit_datagram).collect();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let garbled = (prop::sample::select(payloads), changes, any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut payload, changes, at, how)| {
            for (index, byte) in changes {
                let index = index.index(payload.len());
                payload[index] = byte;
            }
            match how {
                0..64 => payload.truncate(at.index(payload.len())),
                64..96 => payload.extend_from_slice(&[how; 4]),
                96.. => {}
            }
            payload
        },
    );
    prop_oneof![8 => garbled, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

/// What a capture shows, one message after the other, without magic number.
struct Recording {
    messages: Vec<Vec<u8>>,
}

impl Recording {
    fn read(text: &str) -> Recording {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("hex="));
        let whole = lines.map(|line| hex::decode(line).unwrap());
        Recording {
            messages: whole.map(|bytes| bytes.strip_prefix(&MAGIC).map_or(bytes.clone(), <[u8]>::to_vec)).collect(),
        }
    }

    fn message(&self, index: usize) -> Message {
        Message::parse(&self.messages[index]).unwrap()
    }
}

/// An engine in the place of the recorded responding node.
struct Recorded {
    engine: Engine,
    local: IpAddr,
    source: SocketAddr,
    destination: IpAddr,
}

impl Recorded {
    fn new(recording: &Recording) -> Recorded {
        let source = SocketAddr::new(recording.message(0).nli.unwrap().address, UDP_PORT);
        let local = recording.message(1).nli.unwrap().address;
        let (_, destination) = recording.message(0).mri.unwrap().addresses().unwrap();
        Recorded { engine: Engine::new(config(0xaa), [1; 32]), local, source, destination }
    }

    fn datagram(&mut self, message: &[u8]) -> Disposition {
        let in_q_mode = message[6] & 0x80 != 0;
        let payload = [&MAGIC[..], message].concat();
        let rx = Datagram {
            interface: InterfaceId(3),
            local: self.local,
            source: self.source,
            destination: if in_q_mode { self.destination } else { self.local },
            destination_is_local: !in_q_mode,
            ttl: 64,
            q_mode_interceptable: true,
            payload: &payload,
        };
        self.engine.handle_datagram(NOW, rx)
    }

    fn response(&mut self) -> Message {
        assert_eq!(self.engine.state_counts(), StateCounts::default());
        let Some(Transmit::Datagram { local, peer, payload, .. }) = self.engine.poll_transmit() else { panic!() };
        assert_eq!((local, peer), (self.local, self.source));
        parse_datagram(&payload)
    }

    fn confirm(&mut self, recorded: &Message, response: &Message) {
        let confirm = Message { responder_cookie: response.responder_cookie.clone(), ..recorded.clone() };
        self.datagram(&confirm.emit());
        assert_eq!(self.engine.state_counts().responding, 1);
    }

    fn received_hello_world(&mut self) {
        let Some(Event::RecvMessage { data, validated: true, peer, .. }) = self.engine.poll_event() else { panic!() };
        assert_eq!((data.as_slice(), peer), (&b"Hello World!"[..], self.source.ip()));
    }
}

/// Checks what both implementations have to say in the same way.
fn same_handshake(ours: &Message, recorded: &Message) {
    assert_eq!((ours.kind, ours.nslp_id, ours.hops), (recorded.kind, recorded.nslp_id, recorded.hops));
    assert_eq!((&ours.mri, ours.session), (&recorded.mri, recorded.session));
    assert_eq!(ours.query_cookie, recorded.query_cookie);
    assert_eq!((ours.reply_wanted, ours.context_free), (recorded.reply_wanted, recorded.context_free));
    assert_eq!(ours.source_is_signaller, recorded.source_is_signaller);
    let (own, other) = (ours.nli.as_ref().unwrap(), recorded.nli.as_ref().unwrap());
    assert_eq!((own.address, own.ip_ttl, own.validity), (other.address, other.ip_ttl, other.validity));
}

fn hello() -> Message {
    let mut hello = Message::new(MessageType::MaHello, 0);
    hello.hello_id = Some(0);
    hello
}

fn v6_flow() -> Mri {
    flow("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap())
}

const NOW: Instant = Instant::from_millis(1000);
const MAGIC: [u8; 4] = [0x4e, 0x04, 0xbd, 0xa5];
