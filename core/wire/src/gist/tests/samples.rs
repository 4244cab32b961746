// SPDX-License-Identifier: Apache-2.0
//! Messages with every object that their type may have.

use std::time::Duration;

use netserv_model::SessionId;

use crate::gist::*;

pub(super) fn full(kind: MessageType) -> Message {
    let flow = flow();
    let message = Message::new(kind, 0x7FC0);
    match kind {
        MessageType::Query => Message {
            nat_traversal: Some(nat_traversal()),
            query_cookie: Some(Cookie(b"query cookie".to_vec())),
            stack_proposal: Some(proposal()),
            stack_configuration: Some(configuration()),
            ..about(message, flow)
        },
        MessageType::Response => Message {
            reply_wanted: true,
            nat_traversal: Some(nat_traversal()),
            query_cookie: Some(Cookie(b"query cookie".to_vec())),
            responder_cookie: Some(Cookie(b"responder cookie".to_vec())),
            stack_proposal: Some(proposal()),
            stack_configuration: Some(configuration()),
            ..about(message, flow.inverted())
        },
        MessageType::Confirm => Message {
            responder_cookie: Some(Cookie(b"responder cookie".to_vec())),
            stack_proposal: Some(proposal()),
            stack_configuration: Some(StackConfiguration { options: Vec::new(), ..configuration() }),
            ..about(message, flow)
        },
        MessageType::Data => Message { nat_traversal: Some(nat_traversal()), ..about(message, flow) },
        MessageType::Error => Message {
            nslp_id: 0,
            nat_traversal: Some(nat_traversal()),
            nli: Some(nli()),
            error: Some(error()),
            ..message
        },
        MessageType::MaHello => Message { nslp_id: 0, reply_wanted: true, hello_id: Some(77), ..message },
    }
}

pub(super) fn flow() -> Mri {
    let flow = PathCoupled::new("10.1.0.1".parse().unwrap(), "10.2.0.9".parse().unwrap()).unwrap();
    Mri::PathCoupled(flow.with_prefixes(24, 32).with_ports(17, None, Some(5060)).with_dscp(46))
}

pub(super) fn error() -> ErrorObject {
    ErrorObject {
        session: Some(SessionId([7; 16])),
        mri: Some(flow()),
        infos: vec![
            AdditionalInfo::MessageLength(9),
            AdditionalInfo::Mtu(1400),
            AdditionalInfo::ObjectType(5),
            AdditionalInfo::ObjectValue { object: vec![0, 5, 0, 1, 9, 9, 9, 9], offset: 4 },
            AdditionalInfo::Other { kind: 99, value: vec![1; 8] },
        ],
        comment: Some("no such cookie".to_owned()),
        ..ErrorObject::new(ErrorCode::InvalidCookie, [1, 1, 0, 26, 0, 33, 2, 0x80], true, false)
    }
}

fn about(message: Message, flow: Mri) -> Message {
    Message {
        mri: Some(flow),
        session: Some(SessionId(*b"sixteen bytes...")),
        nli: Some(nli()),
        nslp_data: Some(b"NSLP data...".to_vec()),
        ..message
    }
}

fn nli() -> Nli {
    Nli {
        peer_identity: b"a node".to_vec(),
        ip_ttl: 64,
        validity: Duration::from_secs(30),
        address: "10.1.0.254".parse().unwrap(),
    }
}

fn nat_traversal() -> NatTraversal {
    NatTraversal { mri: flow(), translated: vec![0x0000, 0x0002, 0x0004], nats: vec![b"first".to_vec(), Vec::new()] }
}

fn proposal() -> StackProposal {
    StackProposal { profiles: vec![vec![PROTOCOL_FORWARDS_TCP], vec![PROTOCOL_TLS, PROTOCOL_FORWARDS_TCP]] }
}

fn configuration() -> StackConfiguration {
    let option =
        |profile, port, forbidden| ProtocolOption { protocol: PROTOCOL_FORWARDS_TCP, profile, port, forbidden };
    StackConfiguration {
        hold_time: Duration::from_secs(30),
        options: vec![option(1, Some(30000), false), option(2, None, true), option(0, Some(30002), false)],
    }
}
