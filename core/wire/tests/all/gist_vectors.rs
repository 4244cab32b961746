// SPDX-License-Identifier: Apache-2.0
//! Goal: what another implementation sends is understood, and written back to the same bytes.
//! Method: every packet of the captures in `vectors/gist` goes through the packet view and the message parser.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_wire::gist::{
    Cookie, Direction, Message, MessageStream, MessageType, Mri, Nli, PROTOCOL_FORWARDS_TCP, PROTOCOL_TLS, PathCoupled,
    ProtocolOption, StackConfiguration, StackProposal, UDP_PORT, strip_magic,
};
use netserv_wire::ip::checksum::{TransportChecksum, fill, verify_header, verify_transport};
use netserv_wire::ip::{IpView, protocol};

#[test]
fn datagrams_over_ipv4_are_understood() {
    let messages = check_capture(
        include_bytes!("../../../../vectors/gist/gist-dmode-v4.pcap"),
        include_str!("../../../../vectors/gist/gist-dmode-v4.txt"),
        &[MessageType::Query, MessageType::Response, MessageType::Confirm, MessageType::Data],
    );
    let flow = flow("10.77.1.1", "10.77.2.1");
    let [query, response, confirm, data] = &messages[..] else { panic!("four messages") };

    assert_eq!((query.hops, query.nslp_id), (32, 33));
    assert!(query.context_free && query.reply_wanted && query.source_is_signaller && !query.explicit);
    assert_eq!(query.mri, Some(flow.clone()));
    assert_eq!(query.session.unwrap().to_string(), "5574fd9e1bf172aa4721b90d29c86f8c");
    let querier = nli("ba5342d49ff7bc0dd8b2168f40540f18", 64, "10.77.1.1");
    assert_eq!(query.nli, Some(querier.clone()));
    assert_eq!(query.query_cookie, cookie("b43cc13d"));
    assert_eq!(query.stack_proposal, None);

    assert_eq!(response.mri, Some(flow.inverted()));
    assert_eq!(response.mri.as_ref().unwrap().direction(), Some(Direction::Upstream));
    assert_eq!(response.session, query.session);
    assert_eq!(response.nli, Some(nli("fb36417461dd6a92909dacd4825ce0db", 0, "10.77.1.254")));
    assert_eq!(response.query_cookie, query.query_cookie);
    assert_eq!(response.responder_cookie, cookie("79fb0f27000200008f81a35846fd9c7a487c303b76901223c4ad137f"));

    assert_eq!((&confirm.mri, &confirm.nli), (&Some(flow.clone()), &Some(querier)));
    assert_eq!(confirm.responder_cookie, response.responder_cookie);
    assert_eq!(data.mri, Some(flow));
    assert_eq!(data.nslp_data.as_deref(), Some(&b"Hello World!"[..]));
}

#[test]
fn an_association_over_ipv4_is_understood() {
    let messages = check_capture(
        include_bytes!("../../../../vectors/gist/gist-tcp-v4.pcap"),
        include_str!("../../../../vectors/gist/gist-tcp-v4.txt"),
        &[MessageType::Query, MessageType::Response, MessageType::Confirm, MessageType::Data],
    );
    let [query, response, confirm, data] = &messages[..] else { panic!("four messages") };

    let proposal =
        Some(StackProposal { profiles: vec![vec![PROTOCOL_FORWARDS_TCP], vec![PROTOCOL_TLS, PROTOCOL_FORWARDS_TCP]] });
    assert_eq!(query.stack_proposal, proposal);
    assert_eq!(query.stack_configuration, Some(tcp_configuration([None, None])));
    assert_eq!(response.stack_proposal, proposal);
    assert_eq!(response.stack_configuration, Some(tcp_configuration([Some(30000), Some(30001)])));
    assert_eq!(confirm.stack_proposal, proposal);
    let abbreviated = StackConfiguration { hold_time: Duration::from_secs(180), options: Vec::new() };
    assert_eq!(confirm.stack_configuration, Some(abbreviated));
    assert_eq!((&data.nli, data.nslp_data.as_deref()), (&None, Some(&b"Hello World!"[..])));
}

#[test]
fn datagrams_and_an_association_over_ipv6_are_understood() {
    let handshake = [MessageType::Query, MessageType::Response, MessageType::Confirm, MessageType::Data];
    let messages = check_capture(
        include_bytes!("../../../../vectors/gist/gist-dmode-v6.pcap"),
        include_str!("../../../../vectors/gist/gist-dmode-v6.txt"),
        &[handshake, handshake].concat(),
    );
    let flow = flow("fd77:1::1", "fd77:2::1");
    for message in &messages {
        let upstream = message.kind == MessageType::Response;
        assert_eq!(message.mri, Some(if upstream { flow.inverted() } else { flow.clone() }));
    }
    assert_eq!(messages[0].nli, Some(nli("6664954441cdf3518839bfee23cfe745", 64, "fd77:1::1")));
    assert_eq!(messages[5].stack_configuration, Some(tcp_configuration([Some(30000), Some(30001)])));
}

/// Goal: checksums that the sender left to its network card, as the captures have them, are completed; those that are
/// there are computed alike.
#[test]
fn checksums_of_captured_packets_are_completed() {
    let captures: [&[u8]; 3] = [
        include_bytes!("../../../../vectors/gist/gist-dmode-v4.pcap"),
        include_bytes!("../../../../vectors/gist/gist-dmode-v6.pcap"),
        include_bytes!("../../../../vectors/gist/gist-tcp-v4.pcap"),
    ];
    let packets: Vec<&[u8]> = captures.into_iter().flat_map(packets).collect();
    let complete = |packet: &[u8]| verify_transport(&IpView::parse(packet).unwrap()) == TransportChecksum::Good;
    assert_eq!((packets.len(), packets.iter().filter(|packet| complete(packet)).count()), (26, 2));
    for packet in packets {
        let mut filled = packet.to_vec();
        fill(&mut filled).unwrap();
        assert!(complete(&filled));
        assert_eq!(complete(packet), filled == packet);
    }
}

/// Parses every GIST message of a capture, and compares its bytes with the listing beside the capture and with what the
/// message is written as.
fn check_capture(capture: &[u8], listing: &str, kinds: &[MessageType]) -> Vec<Message> {
    let messages = gist_messages(capture);
    let listed: Vec<Vec<u8>> = listing
        .lines()
        .filter_map(|line| line.trim().strip_prefix("hex="))
        .map(|digits| hex::decode(digits).unwrap())
        .map(|bytes| strip_magic(&bytes).unwrap_or(&bytes).to_vec())
        .collect();
    let emitted: Vec<Vec<u8>> = messages.iter().map(Message::emit).collect();
    assert_eq!(emitted, listed);
    assert_eq!(messages.iter().map(|message| message.kind).collect::<Vec<_>>(), kinds);
    messages
}

fn gist_messages(capture: &[u8]) -> Vec<Message> {
    let mut streams: BTreeMap<IpAddr, MessageStream> = BTreeMap::new();
    let mut messages = Vec::new();
    for packet in packets(capture) {
        let view = IpView::parse(packet).unwrap();
        assert!(verify_header(&view));
        if let Some(datagram) = view.udp() {
            assert_eq!(datagram.destination_port, UDP_PORT);
            messages.push(Message::parse(strip_magic(datagram.payload).unwrap()).unwrap());
            let is_query = messages.last().unwrap().kind == MessageType::Query;
            assert_eq!(view.router_alert(), is_query.then_some(33));
        } else {
            assert_eq!(view.protocol(), protocol::TCP);
            let segment = &view.payload()[usize::from(view.payload()[12] >> 4) * 4..];
            let stream = streams.entry(view.source()).or_default();
            messages.extend(stream.handle_bytes(segment).into_iter().map(|out| out.unwrap().message));
        }
    }
    messages
}

/// Returns the IP packets of a little-endian pcap file of Ethernet frames.
fn packets(capture: &[u8]) -> Vec<&[u8]> {
    let (header, mut rest) = capture.split_at(24);
    assert_eq!((&header[..4], header[20]), (&[0xd4, 0xc3, 0xb2, 0xa1][..], 1));
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let captured = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (ethernet, packet) = rest[16..16 + captured].split_at(14);
        if matches!(ethernet[12..], [0x08, 0x00] | [0x86, 0xDD]) {
            packets.push(packet);
        }
        rest = &rest[16 + captured..];
    }
    packets
}

fn flow(source: &str, destination: &str) -> Mri {
    Mri::PathCoupled(PathCoupled::new(source.parse().unwrap(), destination.parse().unwrap()).unwrap())
}

fn nli(peer_identity: &str, ip_ttl: u8, address: &str) -> Nli {
    Nli {
        peer_identity: hex::decode(peer_identity).unwrap(),
        ip_ttl,
        validity: Duration::from_secs(30),
        address: address.parse().unwrap(),
    }
}

fn cookie(digits: &str) -> Option<Cookie> {
    Some(Cookie(hex::decode(digits).unwrap()))
}

/// NSIS-ka's configuration: TCP by itself is profile 1, TCP under TLS profile 2.
fn tcp_configuration(ports: [Option<u16>; 2]) -> StackConfiguration {
    let options = ports.into_iter().zip(1..).map(|(port, profile)| ProtocolOption {
        protocol: PROTOCOL_FORWARDS_TCP,
        profile,
        port,
        forbidden: false,
    });
    StackConfiguration { hold_time: Duration::from_secs(180), options: options.collect() }
}
