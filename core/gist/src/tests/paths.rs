// SPDX-License-Identifier: Apache-2.0
//! What paths let through: flows that come from the wrong side, and messages that are too long.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{AdditionalInfo, ErrorCode, Message, MessageType, Mri, PathCoupled};

use super::script::*;
use super::{NSLP, SECURE, UNRELIABLE, config, flow, send};
use crate::cx::PathMtus;
use crate::limits::{PATH_MTU_TIME, PATH_MTU_V4_MIN, PATH_MTUS_MAX};
use crate::{
    Channel, Config, Counter, Datagram, Disposition, Event, FlowScope, IcmpError, IcmpKind, InterfaceId, NoPeerReason,
    Prefix, ResponderPolicy, SendStatus, StateCounts, TlsPolicy, Transmit,
};

/// Goal: flows come in only where they come from (RFC 5971 §5.8.1.2), over both IP versions. Method: prefixes for interface 1
/// and none for the others.
#[test]
fn a_query_about_a_flow_from_elsewhere_is_refused() {
    let prefix = |text: &str, bits| Prefix { address: text.parse().unwrap(), bits };
    let rule = vec![prefix("10.0.0.0", 24), prefix("2001:db8::", 64)];
    let check = |source: &str, bits: u8, interface: u32, refused: bool| {
        let source: IpAddr = source.parse().unwrap();
        let v4 = source.is_ipv4();
        let pick = |four: &str, six: &str| -> IpAddr { if v4 { four } else { six }.parse().unwrap() };
        let (here, there, far) =
            (pick("10.0.0.1", "2001:db8::1"), pick("10.0.0.2", "2001:db8::2"), pick("10.0.9.9", "2001:db8:9::9"));
        let mut s = Script::new();
        s.engine.set_ingress([(InterfaceId(1), rule.clone())]);
        let flow = PathCoupled::new(source, far).unwrap().with_prefixes(bits, 128);
        let mri = Mri::PathCoupled(flow);
        let query = Message { mri: Some(mri), nli: Some(nli(PEER, there)), ..query(5) };
        let payload = query.emit_datagram();
        let rx = Datagram {
            interface: InterfaceId(interface),
            local: here,
            source: (there, 270).into(),
            destination: far,
            destination_is_local: false,
            ..datagram(&payload)
        };
        assert_eq!(s.engine.handle_datagram(Instant::from_millis(0), rx), Disposition::Consumed);
        let answer = s.recv(0);
        let Some(error) = answer.error else {
            assert!(answer.kind == MessageType::Response && !refused, "{source}/{bits}");
            return;
        };
        assert!(refused, "{source}/{bits}");
        assert_eq!((error.error_code(), error.mri), (Some(ErrorCode::IngressFilterFailure), query.mri));
        assert!(matches!(error.infos[..], [AdditionalInfo::ObjectValue { offset: 8, .. }]));
        assert_eq!((s.count(Counter::QueriesForeign), s.engine.state_counts()), (1, StateCounts::default()));
    };
    check("10.0.0.77", 32, 1, false);
    check("10.0.0.0", 24, 1, false);
    check("10.0.0.0", 23, 1, true);
    check("10.0.1.77", 32, 1, true);
    check("10.0.1.77", 32, 2, false);
    check("2001:db8::7", 128, 1, false);
    check("2001:db8:1::7", 128, 1, true);
    check("2001:db8::", 48, 1, true);
    check("2001:db8:1::7", 128, 2, false);
}

/// Goal: a Query shows that this node is on its flow's path, since it was on its way to the flow's destination. Method: handshakes whose
/// Queries were sent there and elsewhere, with state after the Confirm and at once, and refreshed the other way.
#[test]
fn a_query_that_was_not_sent_along_its_flow_shows_nothing() {
    let wide = Mri::PathCoupled(PathCoupled::new(THERE, FAR).unwrap().with_prefixes(32, 24));
    let beside: IpAddr = "10.0.9.77".parse().unwrap();
    for (mri, destination, along) in [
        (flow(THERE, FAR), FAR, true),
        (flow(THERE, HERE), HERE, true),
        (wide.clone(), beside, true),
        (flow(THERE, FAR), HERE, false),
        (flow(THERE, FAR), beside, false),
        (wide, HERE, false),
    ] {
        for policy in [ResponderPolicy::Delayed, ResponderPolicy::Immediate] {
            let mut s = Script::with(Config { policy, ..config(0xaa) });
            let mut shows = |destination: IpAddr| {
                let query = Message { mri: Some(mri.clone()), ..query(5) }.emit_datagram();
                let rx = Datagram { destination, destination_is_local: destination == HERE, ..datagram(&query) };
                s.engine.handle_datagram(Instant::from_millis(0), rx);
                let response = s.recv_kind(0, MessageType::Response);
                if response.reply_wanted {
                    s.send(0, &confirm_to(&response));
                }
                s.send(0, &data(mri.clone(), 5, b"x"));
                let mut shown = s.events().into_iter().filter_map(|event| match event {
                    Event::RecvMessage { provenance, .. } => Some(provenance.along_flow),
                    Event::MessageStatus { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
                });
                shown.next_back().expect("a message")
            };
            assert_eq!(shows(destination), along, "{mri:?} {destination}");
            assert!(!shows(Ipv4Addr::new(10, 7, 7, 7).into()), "the last Query counts");
            assert_eq!(shows(destination), along);
        }
    }
}

#[test]
fn a_prefix_covers_what_has_its_first_bits() {
    let covers = |prefix: (&str, u8), address: (&str, u8)| {
        Prefix { address: prefix.0.parse().unwrap(), bits: prefix.1 }.covers(address.0.parse().unwrap(), address.1)
    };
    assert!(covers(("0.0.0.0", 0), ("198.51.100.1", 0)) && covers(("::", 0), ("2001:db8::1", 128)));
    assert!(!covers(("0.0.0.0", 0), ("2001:db8::1", 128)) && !covers(("::", 0), ("10.0.0.1", 32)));
    assert!(covers(("10.0.0.1", 32), ("10.0.0.1", 32)) && !covers(("10.0.0.1", 32), ("10.0.0.0", 31)));
    assert!(!covers(("10.0.0.1", 32), ("10.0.0.0", 32)) && covers(("10.0.0.1", 255), ("10.0.0.1", 255)));
}

/// Goal: where a path takes only short packets, longer messages go over a connection. Method: an ICMP error that brings back
/// Data of this node; a short message and a long one follow.
#[test]
fn messages_that_are_too_long_for_their_path_go_over_a_connection() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, &[7; 300]));
    s.establish(0);
    let data = s.recv_kind(0, MessageType::Data);
    let too_big = |mtu| IcmpKind::TooBig { mtu };
    let mut forged = data.clone();
    forged.session = Some(super::session(6));
    s.icmp(1, too_big(300), FAR, &forged);
    s.recv_nothing(1);
    assert_eq!((s.count(Counter::IcmpUnmatched), s.count(Counter::IcmpHindered)), (1, 0));

    s.icmp(1, too_big(300), FAR, &data);
    let query = s.recv_kind(1, MessageType::Query);
    assert!(query.stack_proposal.is_some(), "it asks for a connection");
    s.send(1, &Message { stack_proposal: None, stack_configuration: None, ..response_to(&query) });
    s.recv_kind(1, MessageType::Confirm);
    s.statuses();

    // Of 300 bytes, 64 are for headers; some 100 are for what GIST says.
    s.call(2, send(2, 5, downstream(), UNRELIABLE, &[7; 100]));
    s.recv_kind(2, MessageType::Data);
    s.call(2, send(3, 5, downstream(), UNRELIABLE, &[7; 200]));
    assert!(s.recv_kind(2, MessageType::Query).stack_proposal.is_some());
}

#[test]
fn a_query_that_is_too_long_for_its_path_says_so_at_the_end() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv_kind(0, MessageType::Query);
    let kind = IcmpKind::TooBig { mtu: 100 };
    s.icmp(1, kind, THERE, &query);
    s.at(20_000);
    let status = SendStatus::NoPeer(NoPeerReason::Hindered { kind, reporter: THERE });
    assert_eq!(s.statuses(), [(1, status)]);
    let cut = IcmpError { kind, reporter: None, quoted: query.emit_datagram()[..20].to_vec() };
    s.engine.handle_icmp_error(Instant::from_millis(20_000), &cut);
    assert_eq!(s.count(Counter::IcmpUnmatched), 1);
}

/// Goal: what a node cannot send on since it is too long for the path, it tells (RFC 5971 §4.3.4), and who hears so heeds it.
#[test]
fn a_message_for_another_nslp_that_is_too_long_is_refused_with_the_mtu() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let own = s.recv_kind(0, MessageType::Query);
    s.icmp(1, IcmpKind::TooBig { mtu: 200 }, THERE, &own);
    let message = Message { nslp_id: NSLP + 1, ..query(5) };
    let passing = Message { nslp_data: Some(vec![0; 100]), ..message.clone() };
    assert_eq!(s.intercept(2, &passing.emit_datagram()), Disposition::Consumed);
    let error = s.recv_kind(2, MessageType::Error).error.unwrap();
    assert_eq!((error.error_code(), error.infos), (Some(ErrorCode::MessageTooLarge), vec![AdditionalInfo::Mtu(200)]));
    assert!(matches!(s.intercept(2, &message.emit_datagram()), Disposition::Forward { .. }));
    let later = 3 + u64::try_from(PATH_MTU_TIME.as_millis()).unwrap();
    assert!(matches!(s.intercept(later, &passing.emit_datagram()), Disposition::Forward { .. }), "it is forgotten");

    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    let data = s.recv_kind(0, MessageType::Data);
    let mut told = super::loss::error_about(&data, ErrorCode::MessageTooLarge);
    told.error.as_mut().unwrap().infos.push(AdditionalInfo::Mtu(200));
    s.send(1, &told);
    assert!(s.recv_kind(1, MessageType::Query).stack_proposal.is_some());
    let passing = passing.emit_datagram();
    assert!(matches!(s.intercept(2, &passing), Disposition::Forward { .. }), "a peer's word keeps nobody else out");
}

#[test]
fn path_mtus_max_paths_are_remembered_each_for_its_time() {
    let mut known = PathMtus::default();
    let address = |number: usize| IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number).unwrap()));
    let at = |second: usize| Instant::from_millis(1000 * u64::try_from(second).unwrap());
    for number in 0..PATH_MTUS_MAX + 7 {
        known.learn(at(0) + Duration::from_millis(u64::try_from(number).unwrap()), address(number), 500);
    }
    assert_eq!(known.len(), PATH_MTUS_MAX);
    assert_eq!((known.toward(at(2), address(6)), known.toward(at(2), address(7))), (None, Some(500)));
    known.learn(at(2), address(7), 1);
    assert_eq!((known.len(), known.toward(at(3), address(7))), (PATH_MTUS_MAX, Some(PATH_MTU_V4_MIN)));
    assert_eq!(known.toward(at(2) + PATH_MTU_TIME, address(7)), None);
}

/// Goal: forged Errors do not end state between nodes that speak TLS (RFC 5971 §4.4.6). Method: the Error comes by datagram, then
/// over the connection.
#[test]
fn lost_state_is_believed_over_tls_only_where_tls_is_spoken() {
    let mut s = Script::with(Config { tls: TlsPolicy::Offered, ..config(0xaa) });
    s.call(0, send(1, 5, downstream(), SECURE, b"x"));
    let query = s.recv_kind(0, MessageType::Query);
    let response = with_stacks(response_to(&query), TlsPolicy::Offered, Some(30_000));
    s.send(0, &response);
    let Transmit::Connect { association, .. } = s.transmit(0) else { panic!() };
    let peer = Some("n2.example.net".to_owned());
    s.engine.handle_connected(Instant::from_millis(0), association, Channel::Tls { peer, flows: FlowScope::default() });
    assert_eq!(s.recv_stream(0, association)[0].kind, MessageType::Confirm);
    let data = s.recv_stream(0, association).remove(0);
    for code in [ErrorCode::NoRoutingState, ErrorCode::IncorrectlyDelivered] {
        let error = super::loss::error_about(&data, code);
        s.send(1, &error);
        s.recv_nothing(1);
    }
    assert_eq!(s.count(Counter::ErrorsDoubted), 2);
    let error = Message { nli: None, ..super::loss::error_about(&data, ErrorCode::NoRoutingState) };
    s.send_stream(2, association, &error);
    s.recv_kind(2, MessageType::Query);
    assert_eq!((s.count(Counter::ErrorsDoubted), flow(HERE, FAR)), (2, downstream()));
}
