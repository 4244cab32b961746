// SPDX-License-Identifier: Apache-2.0
//! Messages that are wrong as a whole, and what the Error about them says.

use super::samples;
use crate::gist::*;

#[test]
fn codes_and_numbers_belong_together() {
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_parts(code.code(), code.subcode()), Some(code));
    }
    assert_eq!(ErrorCode::from_parts(10, 6), None);
    assert_eq!((ErrorCode::NoRoutingState.class(), ErrorCode::EndpointFound.class()), (2, 4));
    for kind in ObjectType::ALL {
        assert_eq!(ObjectType::from_number(kind.number()), Some(kind));
    }
    for kind in MessageType::ALL {
        assert_eq!(MessageType::from_number(kind.number()), Some(kind));
    }
}

#[test]
fn headers_are_checked_first() {
    use ErrorCode::*;
    let check = |kind: MessageType, change: fn(&mut [u8]), code: ErrorCode| {
        let mut bytes = samples::full(kind).emit();
        change(&mut bytes);
        let error = Message::parse(&bytes).unwrap_err();
        assert_eq!(error.code, code, "{kind:?}");
        // Nothing of a message with a wrong header is quoted.
        if let Some(object) = error.error_object(true, false) {
            assert_eq!((object.session, object.mri), (None, None));
            assert_eq!(object.header, bytes[..8]);
        }
    };
    check(MessageType::Query, |bytes| bytes[0] = 2, UnknownVersion);
    check(MessageType::Query, |bytes| bytes[6] = 0x86, UnknownType);
    check(MessageType::Query, |bytes| bytes[7] = 0x80, InvalidRFlag);
    check(MessageType::Response, |bytes| bytes[7] = 0x80, InvalidRFlag);
    check(MessageType::Confirm, |bytes| bytes[7] = 0xC0, InvalidRFlag);
    check(MessageType::Data, |bytes| bytes[7] = 0xC0, InvalidRFlag);
    check(MessageType::Error, |bytes| bytes[7] = 0xC0, InvalidRFlag);
    for kind in [MessageType::Query, MessageType::Response, MessageType::Confirm, MessageType::MaHello] {
        check(kind, |bytes| bytes[7] |= 0x20, InvalidEFlag);
    }
    check(MessageType::Query, |bytes| bytes[6] = 0x00, InvalidCFlag);
    for kind in [MessageType::Response, MessageType::Confirm, MessageType::Error, MessageType::MaHello] {
        check(kind, |bytes| bytes[6] |= 0x80, InvalidCFlag);
    }
}

#[test]
fn reserved_bits_are_ignored() {
    let message = samples::full(MessageType::Query);
    let mut bytes = message.emit();
    bytes[7] |= 0x1F;
    bytes[8] |= 0x30;
    bytes[10] |= 0xF0;
    assert_eq!(Message::parse(&bytes).unwrap(), message);
}

#[test]
fn lengths_must_add_up() {
    let bytes = samples::full(MessageType::Query).emit();
    let words = u16::try_from(bytes.len() / 4 - 2).unwrap();
    let check = |bytes: &[u8], counted: u16| {
        let error = Message::parse(bytes).unwrap_err();
        assert_eq!(error.code, ErrorCode::IncorrectMessageLength);
        assert_eq!(error.context.infos, [AdditionalInfo::MessageLength(counted)]);
    };
    check(&bytes[..bytes.len() - 4], words);
    check(&[&bytes[..], &[0; 4]].concat(), words + 1);
    check(&[&bytes[..], &[0; 2]].concat(), words + 1);
    let mut longer = bytes.clone();
    longer[3] += 1;
    check(&longer, words);
    // The last object claims to be longer than the message.
    let mut longer = bytes.clone();
    let last_object = bytes.len() - 16;
    longer[last_object + 3] += 5;
    check(&longer, words + 5);
}

#[test]
fn what_is_shorter_than_a_header_is_no_message() {
    for length in 0..HEADER_BYTES {
        let error = Message::parse(&[1; HEADER_BYTES][..length]).unwrap_err();
        assert_eq!(error.error_object(true, true), None);
    }
}

#[test]
fn every_message_needs_its_objects() {
    use ObjectType::*;
    let check = |kind: MessageType, remove: &[ObjectType], missing: ObjectType| {
        let mut message = samples::full(kind);
        for object in remove {
            without(&mut message, *object);
        }
        let error = Message::parse(&message.emit()).unwrap_err();
        assert_eq!(error.code, ErrorCode::MissingObject, "{kind:?} {remove:?}");
        assert_eq!(error.context.infos, [AdditionalInfo::ObjectType(missing.number())], "{kind:?} {remove:?}");
    };
    for kind in [MessageType::Query, MessageType::Response] {
        for object in [Mri, SessionId, Nli, QueryCookie, StackProposal, StackConfiguration] {
            check(kind, &[object], object);
        }
    }
    for object in [Mri, SessionId, Nli, ResponderCookie, StackProposal] {
        check(MessageType::Confirm, &[object], object);
    }
    for object in [Mri, SessionId, NslpData] {
        check(MessageType::Data, &[object], object);
    }
    check(MessageType::Response, &[ResponderCookie], ResponderCookie);
    check(MessageType::Error, &[Error], Error);
    check(MessageType::MaHello, &[HelloId], HelloId);
}

#[test]
fn objects_that_may_be_left_out_are() {
    use ObjectType::*;
    let check = |kind: MessageType, optional: &[ObjectType]| {
        let mut message = samples::full(kind);
        for object in optional {
            without(&mut message, *object);
            assert_eq!(Message::parse(&message.emit()).as_ref(), Ok(&message), "{kind:?} without {object:?}");
        }
    };
    check(MessageType::Confirm, &[StackConfiguration, StackProposal, ResponderCookie, NslpData]);
    check(MessageType::Data, &[NatTraversal, Nli]);
    check(MessageType::Error, &[NatTraversal, Nli]);
    let mut response = samples::full(MessageType::Response);
    for object in [NatTraversal, StackProposal, StackConfiguration, NslpData] {
        without(&mut response, object);
    }
    assert_eq!(Message::parse(&response.emit()), Ok(response.clone()));
    without(&mut response, ResponderCookie);
    response.reply_wanted = false;
    assert_eq!(Message::parse(&response.emit()), Ok(response));
}

#[test]
fn objects_have_one_place() {
    let message = samples::full(MessageType::Data);
    let bytes = message.emit();
    let check = |order: &[usize], code: ErrorCode, object: ObjectType| {
        let error = Message::parse(&reordered(&bytes, order)).unwrap_err();
        assert_eq!((error.code, &error.context.infos[..]), (code, &[AdditionalInfo::ObjectType(object.number())][..]));
        // The sender can be told all the same.
        assert_eq!((&error.context.nli, error.context.session), (&message.nli, message.session));
        let object = error.error_object(true, false).unwrap();
        assert_eq!((object.mri.as_ref(), object.session), (message.mri.as_ref(), message.session));
    };
    // NAT traversal, MRI, session, NLI, data.
    check(&[0, 2, 1, 3, 4], ErrorCode::InvalidObjectType, ObjectType::Mri);
    check(&[1, 2, 3, 4, 0], ErrorCode::InvalidObjectType, ObjectType::NatTraversal);
    check(&[0, 1, 2, 3, 4, 4], ErrorCode::DuplicateObject, ObjectType::NslpData);
    check(&[0, 1, 2, 1, 3, 4], ErrorCode::DuplicateObject, ObjectType::Mri);
}

#[test]
fn objects_of_other_messages_are_refused() {
    use ObjectType::*;
    let check = |kind: MessageType, add: fn(&mut Message), object: ObjectType| {
        let mut message = samples::full(kind);
        add(&mut message);
        let error = Message::parse(&message.emit()).unwrap_err();
        let info = AdditionalInfo::ObjectType(object.number());
        assert_eq!((error.code, &error.context.infos[..]), (ErrorCode::InvalidObjectType, &[info][..]), "{kind:?}");
    };
    let cookie = |message: &mut Message| message.query_cookie = Some(Cookie(vec![0; 4]));
    check(MessageType::Confirm, cookie, QueryCookie);
    check(MessageType::Data, cookie, QueryCookie);
    check(MessageType::Query, |message| message.responder_cookie = Some(Cookie(vec![0; 4])), ResponderCookie);
    check(MessageType::Query, |message| message.hello_id = Some(1), HelloId);
    check(MessageType::Query, |message| message.error = Some(samples::error()), Error);
    check(
        MessageType::Confirm,
        |message| message.nat_traversal = samples::full(MessageType::Data).nat_traversal,
        NatTraversal,
    );
    check(MessageType::MaHello, |message| message.nli = samples::full(MessageType::Data).nli, Nli);
    check(MessageType::Error, |message| message.session = samples::error().session, SessionId);
    check(
        MessageType::Data,
        |message| message.stack_proposal = samples::full(MessageType::Query).stack_proposal,
        StackProposal,
    );
}

#[test]
fn flags_say_what_to_do_with_an_unknown_object() {
    let message = samples::full(MessageType::Data);
    let parsed = |first: u16| {
        let [a, b] = first.to_be_bytes();
        let mut bytes = [&message.emit()[..], &[a, b, 0, 1, 1, 2, 3, 4]].concat();
        let words = u16::try_from(bytes.len() / 4 - 2).unwrap();
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
        (Message::parse(&bytes), bytes)
    };
    let code = |first: u16| parsed(first).0.unwrap_err().code;
    assert_eq!(code(0x07D0), ErrorCode::UnrecognizedObject);
    assert_eq!(code(0xC7D0), ErrorCode::InvalidExtensibilityFlags);
    // Also on an object that is known.
    assert_eq!(code(0xC003), ErrorCode::InvalidExtensibilityFlags);
    assert_eq!(parsed(0x47D0).0.unwrap(), message);
    let (forwarded, bytes) = parsed(0x87D0);
    let forwarded = forwarded.unwrap();
    assert_eq!(forwarded.unknown, [RawObject { kind: 0x7D0, value: vec![1, 2, 3, 4] }]);
    assert_eq!(forwarded.emit(), bytes);
}

/// Goal: a message cannot hold more unknown objects than there are types, however long it is.
#[test]
fn an_unknown_object_occurs_once() {
    let mut message = samples::full(MessageType::Data);
    message.unknown = (11..0x1000).map(|kind| RawObject { kind, value: Vec::new() }).collect();
    assert_eq!(Message::parse(&message.emit()).as_ref(), Ok(&message));
    message.unknown.push(RawObject { kind: 11, value: Vec::new() });
    assert_eq!(Message::parse(&message.emit()).unwrap_err().code, ErrorCode::DuplicateObject);
}

#[test]
fn configuration_must_fit_the_proposal() {
    let check = |protocol: u8, profile: u8, fits: bool| {
        let mut message = samples::full(MessageType::Query);
        message.stack_configuration.as_mut().unwrap().options =
            vec![ProtocolOption { protocol, profile, port: None, forbidden: false }];
        match Message::parse(&message.emit()) {
            Ok(parsed) => assert!(fits && parsed == message, "{protocol} in {profile}"),
            Err(error) => {
                assert!(!fits && error.code == ErrorCode::StackMismatch, "{protocol} in {profile}");
                assert_eq!(error.context.infos.len(), 2);
            }
        }
    };
    check(PROTOCOL_FORWARDS_TCP, 1, true);
    check(PROTOCOL_TLS, 2, true);
    check(PROTOCOL_TLS, 0, true);
    check(PROTOCOL_TLS, 1, false);
    check(PROTOCOL_FORWARDS_SCTP, 0, false);
    check(PROTOCOL_FORWARDS_TCP, 3, false);
}

#[test]
fn a_hello_that_wants_a_reply_has_a_number() {
    let mut hello = samples::full(MessageType::MaHello);
    hello.hello_id = Some(0);
    assert_eq!(Message::parse(&hello.emit()).unwrap_err().code, ErrorCode::ValueNotSupported);
    hello.reply_wanted = false;
    assert_eq!(Message::parse(&hello.emit()), Ok(hello));
}

#[test]
fn an_error_is_never_answered_with_one() {
    let mut bytes = samples::full(MessageType::Error).emit();
    bytes[3] += 1;
    assert_eq!(Message::parse(&bytes).unwrap_err().error_object(true, false), None);
    bytes[0] = 2;
    assert_eq!(Message::parse(&bytes).unwrap_err().error_object(true, false), None);
}

#[test]
fn an_error_about_an_error_fits_a_datagram() {
    let mut query = samples::full(MessageType::Query);
    query.stack_proposal = Some(StackProposal { profiles: vec![vec![PROTOCOL_TLS; 255]; 60] });
    let error = Message::parse(&query.emit()).unwrap_err();
    assert_eq!(error.code, ErrorCode::StackMismatch);
    let mut answer = Message::new(MessageType::Error, 0);
    answer.nli = query.nli;
    answer.error = error.error_object(false, true);
    let bytes = answer.emit();
    assert!(bytes.len() <= 512, "{} bytes", bytes.len());
    let error = Message::parse(&bytes).unwrap().error.unwrap();
    assert!(error.datagram && error.q_mode);
}

/// Returns the message with its objects in another order, some perhaps twice.
fn reordered(bytes: &[u8], order: &[usize]) -> Vec<u8> {
    let objects: Vec<&[u8]> = tlv::objects(&bytes[HEADER_BYTES..]).map(|object| object.bytes).collect();
    let mut changed = bytes[..HEADER_BYTES].to_vec();
    order.iter().for_each(|index| changed.extend_from_slice(objects[*index]));
    let words = u16::try_from(changed.len() / 4 - 2).unwrap();
    changed[2..4].copy_from_slice(&words.to_be_bytes());
    changed
}

fn without(message: &mut Message, object: ObjectType) {
    match object {
        ObjectType::NatTraversal => message.nat_traversal = None,
        ObjectType::Mri => message.mri = None,
        ObjectType::SessionId => message.session = None,
        ObjectType::Nli => message.nli = None,
        ObjectType::QueryCookie => message.query_cookie = None,
        ObjectType::ResponderCookie => message.responder_cookie = None,
        ObjectType::StackProposal => message.stack_proposal = None,
        ObjectType::StackConfiguration => message.stack_configuration = None,
        ObjectType::HelloId => message.hello_id = None,
        ObjectType::Error => message.error = None,
        ObjectType::NslpData => message.nslp_data = None,
    }
}
