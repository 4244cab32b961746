// SPDX-License-Identifier: Apache-2.0
//! Each object alone: wrong lengths, wrong values.

use std::time::Duration;

use super::samples;
use crate::gist::reader::pad;
use crate::gist::tlv::objects;
use crate::gist::*;

/// Goal: an object that is shorter or longer than its content says is refused as such, wherever it is cut.
/// Method: every object with a form of its own is cut to each shorter length in words, and made a word longer.
#[test]
fn objects_of_wrong_length_are_refused() {
    use ObjectType::*;
    for kind in [NatTraversal, Mri, SessionId, Nli, StackProposal, StackConfiguration] {
        check_lengths(MessageType::Query, kind);
    }
    check_lengths(MessageType::MaHello, HelloId);
}

#[test]
fn objects_without_form_may_have_any_length() {
    use ObjectType::*;
    for (message, kind) in
        [(MessageType::Query, QueryCookie), (MessageType::Response, ResponderCookie), (MessageType::Data, NslpData)]
    {
        for bytes in [0, 4, limits::OBJECT_BYTES_MAX] {
            let bytes = with_object(&samples::full(message), kind, &vec![7; bytes]);
            assert_eq!(Message::parse(&bytes).unwrap().emit(), bytes);
        }
    }
}

#[test]
fn an_error_is_read_as_far_as_it_goes() {
    let full = samples::full(MessageType::Error);
    let value = value_of(&full, ObjectType::Error);
    let parsed = |words: usize| {
        let bytes = with_object(&full, ObjectType::Error, &value[..4 * words]);
        Message::parse(&bytes).map(|message| message.error.unwrap())
    };
    for words in 0..4 {
        assert_eq!(parsed(words).unwrap_err().code, ErrorCode::IncorrectLength);
    }
    let bare = parsed(4).unwrap();
    assert_eq!((bare.session, &bare.mri, &bare.comment), (None, &None, &None));
    assert_eq!(bare.error_code(), Some(ErrorCode::InvalidCookie));
    assert!(bare.infos.is_empty());
    assert_eq!(parsed(8).unwrap().session, samples::error().session);
    assert_eq!(parsed(13).unwrap().mri, samples::error().mri);
    assert_eq!(parsed(15).unwrap().infos, samples::error().infos[..1]);
    assert_eq!(parsed(value.len() / 4).unwrap(), samples::error());
}

/// NSIS-ka answers a Query at the end of its flow with an Error whose S flag is 0 and whose copy of the header has
/// another length than the Query had.
#[test]
fn an_error_of_nsis_ka_is_understood() {
    let nli = "00020007 10000000 00007530 fb36417461dd6a92909dacd4825ce0db 0a4d01fe".replace("10000000", "10004000");
    let error = "0009000c 04000700 d8000400 012000180021 80c0 5574fd9e1bf172aa4721b90d29c86f8c
                 00004000 0a4d0101 0a4d0201 20200000";
    let text: String = ["0101001500000400", &nli, error].concat().split_whitespace().collect();
    let message = Message::parse(&hex::decode(text).unwrap()).unwrap();
    assert!(!message.source_is_signaller);
    let error = message.error.unwrap();
    assert_eq!(error.error_code(), Some(ErrorCode::EndpointFound));
    assert_eq!(error.class, 4);
    assert!(error.datagram && error.q_mode);
    assert_eq!(error.session.unwrap().to_string(), "5574fd9e1bf172aa4721b90d29c86f8c");
    assert_eq!(error.mri.unwrap().addresses().unwrap().1, "10.77.2.1".parse::<std::net::IpAddr>().unwrap());
}

#[test]
fn a_quoted_mri_is_kept_even_if_it_is_wrong() {
    let mut value = value_of(&samples::full(MessageType::Error), ObjectType::Error);
    value[16 + 16 + 2] = 0x50;
    let message = Message::parse(&with_object(&samples::full(MessageType::Error), ObjectType::Error, &value)).unwrap();
    let Some(Mri::Other(mri)) = &message.error.as_ref().unwrap().mri else { panic!("{message:?}") };
    assert_eq!((mri.method(), mri.raw()[2]), (0, 0x50));
    assert_eq!(value_of(&message, ObjectType::Error), value);
}

#[test]
fn what_an_error_quotes_and_says_is_bounded() {
    let long = AdditionalInfo::invalid_object(&[0; limits::INVALID_OBJECT_BYTES_MAX + 4], 70_000);
    let object = vec![0; limits::INVALID_OBJECT_BYTES_MAX];
    assert_eq!(long, AdditionalInfo::ObjectValue { object, offset: u16::MAX });

    let mut message = samples::full(MessageType::Error);
    let error = message.error.as_mut().unwrap();
    error.comment = Some("ä".repeat(limits::COMMENT_BYTES_MAX));
    error.mri = Some(mri(&[vec![0x7F], vec![0; limits::ERROR_MRI_BYTES_MAX + 3]].concat()).unwrap());
    let error = Message::parse(&message.emit()).unwrap().error.unwrap();
    assert_eq!(error.comment.unwrap().len(), limits::COMMENT_BYTES_MAX);
    assert_eq!(error.mri, None);
    assert_eq!(error.infos, samples::error().infos);
}

#[test]
fn flags_of_an_mri_must_agree() {
    let value = |flags: &str, tail: &str| format!("0000{flags} 0a010001 0a020009 20201100 {tail}");
    let check = |flags: &str, tail: &str, expected: Option<ErrorCode>| {
        let bytes = hex::decode(value(flags, tail).replace(' ', "")).unwrap();
        assert_eq!(mri(&bytes).err(), expected, "{flags}");
    };
    check("4000", "", None);
    check("4880", "000013c4", None);
    check("4840", "000013c4", None);
    check("4900", "000000ff", None);
    check("49c0", "000000ff 13c413c4", None);
    check("4080", "000013c4", Some(ErrorCode::InvalidFlagCombination));
    check("4040", "000013c4", Some(ErrorCode::InvalidFlagCombination));
    check("4100", "000000ff", Some(ErrorCode::InvalidFlagCombination));
    check("4200", "000000ff", Some(ErrorCode::InvalidFlagCombination));
    check("5000", "", Some(ErrorCode::ValueNotSupported));
    check("4880", "", Some(ErrorCode::IncorrectLength));
    check("4000", "000013c4", Some(ErrorCode::IncorrectLength));
}

#[test]
fn fields_of_an_mri_that_have_no_flag_are_padding() {
    let noisy = hex::decode("00804fff0a0100010a020009182011ff000000ff13c413c4".replace("4fff", "4d5f")).unwrap();
    let Ok(Mri::PathCoupled(flow)) = mri(&noisy) else { panic!() };
    assert_eq!((flow.protocol(), flow.dscp(), flow.spi()), (Some(17), Some(63), Some(255)));
    assert_eq!((flow.source_port(), flow.destination_port()), (None, Some(5060)));
    assert_eq!((flow.source_prefix(), flow.destination_prefix()), (24, 32));
    let mut emitted = Vec::new();
    Mri::PathCoupled(flow).emit_value(&mut emitted);
    assert_eq!(hex::encode(emitted), "00004d400a0100010a020009182011fc000000ff000013c4");
}

#[test]
fn prefixes_are_no_longer_than_addresses() {
    let wide = hex::decode("000040000a0100010a02000921200000").unwrap();
    assert_eq!(mri(&wide), Err(ErrorCode::ValueNotSupported));
    let source = "10.0.0.1".parse().unwrap();
    let flow = PathCoupled::new(source, source).unwrap().with_prefixes(33, 8);
    assert_eq!((flow.source_prefix(), flow.destination_prefix()), (32, 8));
}

#[test]
fn a_flow_has_addresses_of_one_version() {
    let (v4, v6) = ("10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap());
    assert_eq!(PathCoupled::new(v4, v6), None);
    assert_eq!(LooseEnd::new(v6, v4, Direction::Upstream), None);
    assert_eq!(PathCoupled::new(v4, v4).unwrap().with_flow_label(5).flow_label(), None);
    assert_eq!(PathCoupled::new(v6, v6).unwrap().with_flow_label(u32::MAX).flow_label(), Some(0xF_FFFF));
}

#[test]
fn loose_end_and_unknown_methods_are_read() {
    let value = hex::decode("010048000a0100010a020009").unwrap();
    let loose_end = mri(&value).unwrap();
    assert_eq!(loose_end.direction(), Some(Direction::Upstream));
    assert_eq!(loose_end.inverted().direction(), Some(Direction::Downstream));
    assert_eq!(loose_end.inverted().inverted(), loose_end);

    let value = hex::decode("7d80ffff01020304").unwrap();
    let Ok(Mri::Other(other)) = mri(&value) else { panic!() };
    assert_eq!((other.method(), other.raw()), (125, &value[..]));
    assert_eq!(Mri::Other(other.clone()).inverted(), Mri::Other(other));
}

#[test]
fn values_that_nobody_may_send_are_refused() {
    use ErrorCode::*;
    let check = |kind: ObjectType, digits: &str, code: ErrorCode, offset: u16| {
        let value = hex::decode(digits.replace(' ', "")).unwrap();
        let error = Message::parse(&with_object(&samples::full(MessageType::Query), kind, &value)).unwrap_err();
        let [AdditionalInfo::ObjectValue { object, offset: at }] = &error.context.infos[..] else {
            panic!("{error:?}")
        };
        assert_eq!((error.code, &object[4..], *at), (code, &value[..], 4 + offset), "{kind:?}");
    };
    check(ObjectType::Nli, "00004000 00000000 0a010001", ValueNotSupported, 4);
    check(ObjectType::Nli, "00005000 00007530 0a010001", ValueNotSupported, 2);
    check(ObjectType::Nli, "ff004000 00007530 0a010001", IncorrectLength, 8);
    check(ObjectType::StackProposal, "00000000", ValueNotSupported, 0);
    check(ObjectType::StackProposal, "02000000 01010000 00000000", EmptyList, 8);
    check(ObjectType::StackConfiguration, "00000000 00000000", ValueNotSupported, 4);
    check(ObjectType::StackConfiguration, "01000000 00007530 01010300 75300000", IncorrectLength, 12);
    check(ObjectType::NatTraversal, "01000000 00005000", ValueNotSupported, 6);
}

#[test]
fn both_lengths_of_a_port_are_read() {
    for length in ["02", "04"] {
        let value = hex::decode(format!("01000000000075300101{length}0075300000")).unwrap();
        let message =
            Message::parse(&with_object(&samples::full(MessageType::Query), ObjectType::StackConfiguration, &value));
        assert_eq!(message.unwrap().stack_configuration.unwrap().options[0].port, Some(30000));
    }
}

#[test]
fn times_are_cut_to_what_the_field_holds() {
    let mut message = samples::full(MessageType::Query);
    for (time, expected) in
        [(Duration::MAX, u64::from(u32::MAX)), (Duration::ZERO, 1), (Duration::from_micros(1500), 1)]
    {
        message.nli.as_mut().unwrap().validity = time;
        let parsed = Message::parse(&message.emit()).unwrap();
        assert_eq!(parsed.nli.unwrap().validity, Duration::from_millis(expected));
    }
}

fn check_lengths(message: MessageType, kind: ObjectType) {
    let full = samples::full(message);
    let value = value_of(&full, kind);
    let longer = [&value[..], &[0; 4]].concat();
    let shorter = (0..value.len()).step_by(4).map(|bytes| &value[..bytes]);
    for wrong in shorter.chain([&longer[..]]) {
        let error = Message::parse(&with_object(&full, kind, wrong)).expect_err("a length that does not fit");
        assert_eq!(error.code, ErrorCode::IncorrectLength, "{kind:?} with {} bytes", wrong.len());
        let [AdditionalInfo::ObjectValue { object, offset }] = &error.context.infos[..] else { panic!("{error:?}") };
        assert_eq!(&object[4..], wrong);
        assert!(usize::from(*offset) <= object.len());
    }
}

/// Returns the message with another value for one of its objects.
fn with_object(message: &Message, kind: ObjectType, value: &[u8]) -> Vec<u8> {
    let bytes = message.emit();
    let mut changed = bytes[..HEADER_BYTES].to_vec();
    for object in objects(&bytes[HEADER_BYTES..]) {
        if object.kind == kind.number() {
            let words = u16::try_from(value.len() / 4).unwrap();
            changed.extend_from_slice(&kind.number().to_be_bytes());
            changed.extend_from_slice(&words.to_be_bytes());
            changed.extend_from_slice(value);
            pad(&mut changed);
        } else {
            changed.extend_from_slice(object.bytes);
        }
    }
    let words = u16::try_from((changed.len() - HEADER_BYTES) / 4).unwrap();
    changed[2..4].copy_from_slice(&words.to_be_bytes());
    changed
}

fn value_of(message: &Message, kind: ObjectType) -> Vec<u8> {
    let bytes = message.emit();
    let object = objects(&bytes[HEADER_BYTES..]).find(|object| object.kind == kind.number());
    object.unwrap().value().to_vec()
}

fn mri(value: &[u8]) -> Result<Mri, ErrorCode> {
    let bytes = with_object(&samples::full(MessageType::Data), ObjectType::Mri, value);
    Message::parse(&bytes).map(|message| message.mri.unwrap()).map_err(|error| error.code)
}
