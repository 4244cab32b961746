// SPDX-License-Identifier: Apache-2.0
//! Messages with every object that their type may have, and damaged ones.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::{
    AdditionalInfo, Cookie, Direction, ErrorCode, ErrorObject, LooseEnd, Message, MessageType, Mri, NatTraversal, Nli,
    PROTOCOL_FORWARDS_TCP, PROTOCOL_TLS, PathCoupled, ProtocolOption, RawObject, StackConfiguration, StackProposal,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::DAMAGED;

/// Messages of every type with every object, over both versions of IP, and some with less.
pub fn samples() -> Vec<Message> {
    let mut messages = Vec::new();
    for six in [false, true] {
        messages.extend(MessageType::ALL.into_iter().map(|kind| full(kind, six)));
        for mri in flows(six) {
            messages.push(Message { mri: Some(mri), nat_traversal: None, ..full(MessageType::Data, six) });
        }
        let unknown = [(0x7FF, vec![]), (0x123, vec![1, 2, 3, 4, 5, 6, 7, 8])];
        let unknown = unknown.into_iter().map(|(kind, value)| RawObject { kind, value }).collect();
        messages.push(Message { unknown, explicit: true, ..full(MessageType::Data, six) });
        messages.push(Message {
            responder_cookie: None,
            stack_proposal: None,
            stack_configuration: None,
            nslp_data: None,
            ..full(MessageType::Confirm, six)
        });
        let comment = Some(String::from("straße"));
        let error = ErrorObject { mri: None, session: None, infos: Vec::new(), comment, ..error(six) };
        messages.push(Message { error: Some(error), nli: None, ..full(MessageType::Error, six) });
    }
    // Messages longer than a segment.
    messages.push(Message { nslp_data: Some(vec![0xAB; 16_000]), ..full(MessageType::Data, false) });
    messages
}

pub fn full(kind: MessageType, six: bool) -> Message {
    let flow = flows(six).remove(0);
    let message = Message { hops: 7, ..Message::new(kind, 33) };
    let about = Message {
        mri: Some(flow.clone()),
        session: Some(SessionId(*b"sixteen bytes...")),
        nli: Some(nli(six)),
        nslp_data: Some(b"NSLP data...".to_vec()),
        ..message.clone()
    };
    let nat_traversal = Some(NatTraversal {
        mri: flow.clone(),
        translated: vec![0x0000, 0x0002, 0x0004],
        nats: vec![b"first".to_vec(), Vec::new()],
    });
    let (cookie, other) = (Some(Cookie(b"query cookie".to_vec())), Some(Cookie(b"responder cookie".to_vec())));
    let option = |protocol, profile, port, forbidden| ProtocolOption { protocol, profile, port, forbidden };
    let hold_time = Duration::from_secs(30);
    let stack_proposal =
        Some(StackProposal { profiles: vec![vec![PROTOCOL_FORWARDS_TCP], vec![PROTOCOL_TLS, PROTOCOL_FORWARDS_TCP]] });
    let options = vec![
        option(PROTOCOL_FORWARDS_TCP, 1, Some(30000), false),
        option(PROTOCOL_TLS, 2, None, true),
        option(PROTOCOL_FORWARDS_TCP, 0, None, false),
    ];
    let stack_configuration = Some(StackConfiguration { hold_time, options });
    match kind {
        MessageType::Query => {
            Message { nat_traversal, query_cookie: cookie, stack_proposal, stack_configuration, ..about }
        }
        MessageType::Response => Message {
            reply_wanted: true,
            mri: Some(flow.inverted()),
            nat_traversal,
            query_cookie: cookie,
            responder_cookie: other,
            stack_proposal,
            stack_configuration,
            ..about
        },
        MessageType::Confirm => Message { responder_cookie: other, stack_proposal, stack_configuration, ..about },
        MessageType::Data => Message { nat_traversal, ..about },
        MessageType::Error => {
            Message { nslp_id: 0, nat_traversal, nli: Some(nli(six)), error: Some(error(six)), ..message }
        }
        MessageType::MaHello => Message { nslp_id: 0, reply_wanted: true, hello_id: Some(77), ..message },
    }
}

/// Flows of each routing method, with and without each field.
fn flows(six: bool) -> Vec<Mri> {
    let (source, destination): (IpAddr, IpAddr) = if six {
        ("fd77:1::1".parse().unwrap(), "fd77:2::9".parse().unwrap())
    } else {
        ("10.1.0.1".parse().unwrap(), "10.2.0.9".parse().unwrap())
    };
    let flow = PathCoupled::new(source, destination).unwrap();
    let loose_end = |direction| Mri::LooseEnd(LooseEnd::new(source, destination, direction).unwrap());
    vec![
        Mri::PathCoupled(flow.clone().with_prefixes(24, 30).with_ports(17, None, Some(5060)).with_dscp(46)),
        Mri::PathCoupled(flow.clone()),
        Mri::PathCoupled(flow.clone().with_protocol(6).with_direction(Direction::Upstream)),
        Mri::PathCoupled(flow.clone().with_ports(6, Some(80), None).with_flow_label(0x000A_BCDE)),
        Mri::PathCoupled(flow.with_spi(50, 0x0102_0304)),
        loose_end(Direction::Downstream),
        loose_end(Direction::Upstream),
    ]
}

fn nli(six: bool) -> Nli {
    let address = if six { "fd77:1::254" } else { "10.1.0.254" };
    let validity = Duration::from_secs(30);
    Nli { peer_identity: b"a node".to_vec(), ip_ttl: 64, validity, address: address.parse().unwrap() }
}

fn error(six: bool) -> ErrorObject {
    ErrorObject {
        session: Some(SessionId([7; 16])),
        mri: Some(flows(six).remove(1)),
        infos: vec![
            AdditionalInfo::MessageLength(9),
            AdditionalInfo::Mtu(1400),
            AdditionalInfo::ObjectType(5),
            AdditionalInfo::ObjectValue { object: vec![0, 5, 0, 1, 9, 9, 9, 9], offset: 4 },
            AdditionalInfo::Other { kind: 99, value: vec![1; 8] },
        ],
        comment: Some("no such cookie".to_owned()),
        ..ErrorObject::new(ErrorCode::InvalidCookie, [1, 1, 0, 26, 0, 33, 2, 0x80], true, true)
    }
}

/// Messages with a few bytes changed, cut or added; some keep the right length.
pub fn damaged(seed: u64) -> Vec<Vec<u8>> {
    let mut random = StdRng::seed_from_u64(seed);
    let messages: Vec<Vec<u8>> = samples().iter().map(Message::emit).filter(|bytes| bytes.len() < 1000).collect();
    let damaged = (0..DAMAGED).map(|number| {
        let mut bytes = messages[number % messages.len()].clone();
        if random.random_bool(0.3) {
            // Bytes of objects' headers are where most goes wrong.
            let at = 8 + 4 * random.random_range(0..(bytes.len() - 8) / 4);
            bytes[at + random.random_range(0..4)] ^= 1 << random.random_range(0..8);
        } else {
            damage(&mut bytes, &mut random);
        }
        bytes
    });
    damaged.collect()
}

pub fn damage(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..10) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes.extend((0..random.random_range(1..9)).map(|_| random.random::<u8>())),
            2 => drop(bytes.splice(at.., bytes[at / 2..].to_vec())),
            3..6 => bytes[at] ^= 1 << random.random_range(0..8),
            _ => bytes[at] = random.random(),
        }
    }
}
