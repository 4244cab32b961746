// SPDX-License-Identifier: Apache-2.0
//! Whole messages that are right.

use super::samples;
use crate::gist::*;

#[test]
fn full_messages_come_back_as_they_were() {
    for kind in MessageType::ALL {
        let message = samples::full(kind);
        assert_eq!(Message::parse(&message.emit()), Ok(message));
    }
}

#[test]
fn new_messages_have_the_usual_flags() {
    let flags = |kind| Message::new(kind, 33).emit()[6..8].to_vec();
    assert_eq!(flags(MessageType::Query), [0x80, 0xC0]);
    assert_eq!(flags(MessageType::Response), [0x01, 0x80]);
    assert_eq!(flags(MessageType::Confirm), [0x02, 0x80]);
    assert_eq!(flags(MessageType::Data), [0x03, 0x80]);
    assert_eq!(flags(MessageType::Error), [0x04, 0x80]);
    assert_eq!(flags(MessageType::MaHello), [0x05, 0x80]);
}

#[test]
fn a_hello_is_ten_bytes_of_content() {
    let mut hello = Message::new(MessageType::MaHello, 0);
    hello.hello_id = Some(0x4D);
    assert_eq!(hex::encode(hello.emit()), "01010002000005800".to_owned() + "00a00010000004d");
}

#[test]
fn a_datagram_has_the_magic_number_in_front() {
    let message = samples::full(MessageType::Data);
    let datagram = message.emit_datagram();
    assert_eq!(datagram[..4], [0x4E, 0x04, 0xBD, 0xA5]);
    assert_eq!(strip_magic(&datagram), Some(&message.emit()[..]));
    assert_eq!(strip_magic(&message.emit()), None);
    assert_eq!(strip_magic(&datagram[..3]), None);
}

#[test]
fn hops_change_without_touching_the_rest() {
    let mut bytes = samples::full(MessageType::Query).emit();
    set_hops(&mut bytes, 31);
    let changed = Message { hops: 31, ..samples::full(MessageType::Query) };
    assert_eq!(Message::parse(&bytes), Ok(changed));
    let mut short = [1; 7];
    set_hops(&mut short, 31);
    assert_eq!(short, [1; 7]);
}

/// Goal: a node that only passes a message on can read its header, whatever objects it has.
#[test]
fn a_header_is_read_alone() {
    let bytes = samples::full(MessageType::Query).emit();
    let header = Header::parse(&bytes[..HEADER_BYTES]).unwrap();
    assert_eq!((header.nslp_id, header.kind, header.message_bytes()), (0x7FC0, MessageType::Query, bytes.len()));
    assert_eq!(header.emit(), bytes[..HEADER_BYTES]);
}

#[test]
fn nslp_data_travels_in_whole_words_up_to_the_limit() {
    let mut message = samples::full(MessageType::Data);
    message.nslp_data = Some(b"12345".to_vec());
    let arrived = Message::parse(&message.emit()).unwrap().nslp_data.unwrap();
    assert_eq!(arrived, b"12345\0\0\0");
    message.nslp_data = Some(vec![1; limits::NSLP_DATA_BYTES_MAX]);
    assert_eq!(Message::parse(&message.emit()), Ok(message));
}

#[test]
#[should_panic(expected = "has 16384 bytes")]
fn nslp_data_over_the_limit_is_our_own_mistake() {
    let mut message = samples::full(MessageType::Data);
    message.nslp_data = Some(vec![1; limits::NSLP_DATA_BYTES_MAX + 1]);
    message.emit();
}
