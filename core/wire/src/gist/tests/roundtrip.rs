// SPDX-License-Identifier: Apache-2.0
//! Any message that can be built comes back as it was, and no bytes do harm.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::SessionId;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::gist::*;

proptest! {
    #[test]
    fn parse_of_emit_is_the_message(message in message()) {
        prop_assert_eq!(Message::parse(&message.emit()), Ok(message));
    }

    #[test]
    fn any_bytes_are_refused_or_understood(bytes in vec(any::<u8>(), 0..200)) {
        check_any(&bytes)?;
    }

    #[test]
    fn damaged_messages_are_refused_or_understood(
        message in message(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = message.emit();
        for (index, value) in damage {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        check_any(&bytes)?;
    }

    #[test]
    fn streams_give_the_same_messages_however_they_are_cut(
        messages in vec(message(), 1..4),
        cuts in vec(1..60_usize, 1..40),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(Message::emit).collect();
        let (mut stream, mut rest, mut out) = (MessageStream::new(), &bytes[..], Vec::new());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            out.extend(stream.handle_bytes(now).into_iter().map(|message| message.expect("a valid message").message));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(out, messages);
    }
}

/// What is understood is written to no more bytes than it came in, and means the same again; of what is refused, the
/// sender can be told.
fn check_any(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Message::parse(bytes) {
        Ok(message) => {
            let emitted = message.emit();
            prop_assert!(emitted.len() <= bytes.len());
            prop_assert_eq!(Message::parse(&emitted), Ok(message));
        }
        Err(error) => {
            let mut answer = Message::new(MessageType::Error, 0);
            answer.error = error.error_object(true, false);
            if answer.error.is_some() {
                prop_assert_eq!(Message::parse(&answer.emit()), Ok(answer));
            }
        }
    }
    Ok(())
}

fn message() -> impl Strategy<Value = Message> {
    let kind = prop::sample::select(MessageType::ALL.to_vec());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let unknown = prop::collection::btree_map(11..0x1000_u16, words(3), 0..3);
    (kind, any::<(u8, u16)>(), flags, objects(), stack(), unknown).prop_map(
        |(kind, (hops, nslp_id), (signaller, reply, context_free, explicit), objects, stack, unknown)| {
            let is = |wanted: MessageType| kind == wanted;
            let all = Message {
                hops,
                source_is_signaller: signaller,
                unknown: unknown.into_iter().map(|(kind, value)| RawObject { kind, value }).collect(),
                stack_proposal: stack.as_ref().map(|(proposal, _)| proposal.clone()),
                stack_configuration: stack.map(|(_, configuration)| configuration),
                ..objects
            };
            let cookie = all.responder_cookie.is_some();
            let all = Message {
                nslp_id,
                kind,
                reply_wanted: match kind {
                    MessageType::Query => true,
                    MessageType::Response => reply || cookie,
                    MessageType::MaHello => reply,
                    MessageType::Confirm | MessageType::Data | MessageType::Error => false,
                },
                context_free: is(MessageType::Query) || (is(MessageType::Data) && context_free),
                explicit: is(MessageType::Data) && explicit,
                ..all
            };
            only_allowed(all)
        },
    )
}

/// Takes out what the message may not have.
fn only_allowed(all: Message) -> Message {
    let bare = Message {
        nat_traversal: None,
        mri: None,
        session: None,
        nli: all.nli.clone(),
        query_cookie: None,
        responder_cookie: None,
        stack_proposal: None,
        stack_configuration: None,
        hello_id: None,
        error: None,
        nslp_data: None,
        ..all.clone()
    };
    let flow = Message { mri: all.mri, session: all.session, nslp_data: all.nslp_data, ..bare.clone() };
    let has_cookie = all.responder_cookie.is_some();
    match all.kind {
        MessageType::Query => Message {
            nat_traversal: all.nat_traversal,
            query_cookie: all.query_cookie,
            stack_proposal: all.stack_proposal,
            stack_configuration: all.stack_configuration,
            ..flow
        },
        MessageType::Response => Message {
            nat_traversal: all.nat_traversal,
            query_cookie: all.query_cookie,
            responder_cookie: all.responder_cookie,
            stack_proposal: all.stack_proposal.filter(|_| has_cookie),
            stack_configuration: all.stack_configuration.filter(|_| has_cookie),
            ..flow
        },
        MessageType::Confirm => Message {
            responder_cookie: all.responder_cookie,
            stack_proposal: all.stack_proposal.filter(|_| has_cookie),
            stack_configuration: all.stack_configuration.filter(|_| has_cookie),
            ..flow
        },
        MessageType::Data => Message { nat_traversal: all.nat_traversal, ..flow },
        MessageType::Error => Message { nat_traversal: all.nat_traversal, error: all.error, ..bare },
        MessageType::MaHello => Message { nli: None, hello_id: all.hello_id, ..bare },
    }
}

/// A message with every object but the stack.
fn objects() -> impl Strategy<Value = Message> {
    let ids = (any::<[u8; 16]>(), 1..=u32::MAX);
    (mri(), nli(), ids, words(8), option::of(words(8)), nat_traversal(), error(), words(40)).prop_map(
        |(mri, nli, (session, hello_id), query_cookie, responder_cookie, nat_traversal, error, data)| Message {
            mri: Some(mri),
            nli: Some(nli),
            session: Some(SessionId(session)),
            hello_id: Some(hello_id),
            query_cookie: Some(Cookie(query_cookie)),
            responder_cookie: responder_cookie.map(Cookie),
            nat_traversal,
            error: Some(error),
            nslp_data: Some(data),
            ..Message::new(MessageType::Query, 0)
        },
    )
}

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(source, destination)| (source.into(), destination.into())),
        any::<([u8; 16], [u8; 16])>().prop_map(|(source, destination)| (source.into(), destination.into())),
    ]
}

fn mri() -> impl Strategy<Value = Mri> {
    let direction = || prop::sample::select(vec![Direction::Downstream, Direction::Upstream]);
    let prefixes = any::<(u8, u8)>();
    let upper = option::of(any::<(u8, Option<u16>, Option<u16>, Option<u32>)>());
    let path_coupled = (addresses(), prefixes, upper, any::<(Option<u8>, Option<u32>)>(), direction()).prop_map(
        |((source, destination), (source_prefix, destination_prefix), upper, (dscp, flow_label), direction)| {
            let mut flow = PathCoupled::new(source, destination).expect("addresses of one version");
            flow = flow.with_prefixes(source_prefix, destination_prefix).with_direction(direction);
            if let Some((protocol, source_port, destination_port, spi)) = upper {
                flow = flow.with_ports(protocol, source_port, destination_port);
                flow = spi.map_or(flow.clone(), |spi| flow.with_spi(protocol, spi));
            }
            flow = dscp.map_or(flow.clone(), |dscp| flow.with_dscp(dscp));
            Mri::PathCoupled(flow_label.map_or(flow.clone(), |label| flow.with_flow_label(label)))
        },
    );
    let loose_end = (addresses(), direction()).prop_map(|((source, destination), direction)| {
        Mri::LooseEnd(LooseEnd::new(source, destination, direction).expect("addresses of one version"))
    });
    let other =
        (2..=255_u8, words(10)).prop_map(|(method, rest)| Mri::parse_quoted(&[&[method, 0, 1, 2], &rest[..]].concat()));
    prop_oneof![4 => path_coupled, 1 => loose_end, 1 => other]
}

fn nli() -> impl Strategy<Value = Nli> {
    (vec(any::<u8>(), 0..256), any::<u8>(), time(), addresses())
        .prop_map(|(peer_identity, ip_ttl, validity, (address, _))| Nli { peer_identity, ip_ttl, validity, address })
}

fn time() -> impl Strategy<Value = Duration> {
    (1..=u32::MAX).prop_map(|milliseconds| Duration::from_millis(milliseconds.into()))
}

fn nat_traversal() -> impl Strategy<Value = Option<NatTraversal>> {
    let nats = vec(vec(any::<u8>(), 0..9), 0..4);
    option::of((mri(), vec(any::<u16>(), 0..5), nats).prop_map(|(mri, translated, nats)| NatTraversal {
        mri,
        translated,
        nats,
    }))
}

/// A proposal and a configuration that fits it.
fn stack() -> impl Strategy<Value = Option<(StackProposal, StackConfiguration)>> {
    let option = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), option::of(any::<u16>()), any::<bool>());
    let profiles = vec(vec(1..=5_u8, 1..6), 1..5);
    option::of((profiles, time(), vec(option, 0..5)).prop_map(|(profiles, hold_time, options)| {
        let options = options.into_iter().map(|(profile, layer, port, forbidden)| {
            let profile = profile.index(profiles.len());
            let protocol = *layer.get(&profiles[profile]);
            let has_port = matches!(protocol, PROTOCOL_FORWARDS_TCP | PROTOCOL_FORWARDS_SCTP);
            let profile = u8::try_from(profile + 1).expect("few profiles");
            ProtocolOption { protocol, profile, port: port.filter(|_| has_port), forbidden }
        });
        let options = options.collect();
        (StackProposal { profiles }, StackConfiguration { hold_time, options })
    }))
}

fn error() -> impl Strategy<Value = ErrorObject> {
    let about = (option::of(any::<[u8; 16]>()), option::of(mri()));
    let what = any::<(u8, u16, u8, bool, bool, [u8; 8])>();
    (what, about, vec(info(), 0..4), option::of("[a-zä ]{0,40}")).prop_map(
        |((class, code, subcode, datagram, q_mode, header), (session, mri), infos, comment)| ErrorObject {
            class,
            code,
            subcode,
            datagram,
            q_mode,
            header,
            session: session.map(SessionId),
            mri,
            infos,
            comment,
        },
    )
}

fn info() -> impl Strategy<Value = AdditionalInfo> {
    prop_oneof![
        any::<u16>().prop_map(AdditionalInfo::MessageLength),
        any::<u16>().prop_map(AdditionalInfo::Mtu),
        any::<u16>().prop_map(AdditionalInfo::ObjectType),
        (words(8), any::<u16>()).prop_map(|(object, offset)| AdditionalInfo::ObjectValue { object, offset }),
        (5..=u16::MAX, words(4)).prop_map(|(kind, value)| AdditionalInfo::Other { kind, value }),
    ]
}

fn words(words_max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<[u8; 4]>(), 0..=words_max).prop_map(|words| words.concat())
}
