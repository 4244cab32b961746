// SPDX-License-Identifier: Apache-2.0
//! Messages out of streams.

use super::samples;
use crate::gist::*;

#[test]
fn messages_come_out_however_the_stream_is_cut() {
    let messages = MessageType::ALL.map(samples::full);
    let bytes: Vec<u8> = messages.iter().flat_map(Message::emit).collect();
    for size in [1, 3, 7, 8, 9, 100, bytes.len()] {
        let mut stream = MessageStream::new();
        let out: Vec<Message> =
            bytes.chunks(size).flat_map(|chunk| stream.handle_bytes(chunk)).map(|out| out.unwrap().message).collect();
        assert_eq!(out, messages, "in pieces of {size}");
        assert!(!stream.is_broken());
    }
}

#[test]
fn the_longest_message_passes() {
    let mut message = samples::full(MessageType::Data);
    let value = vec![0; limits::OBJECT_BYTES_MAX];
    let length = message.emit().len();
    message.unknown = (0..15).map(|kind| RawObject { kind: 0x7D0 + kind, value: value.clone() }).collect();
    let left = limits::MESSAGE_BYTES_MAX - message.emit().len() - 4;
    message.unknown.push(RawObject { kind: 0x7F0, value: vec![0; left] });
    assert_eq!(message.emit().len(), limits::MESSAGE_BYTES_MAX);
    assert!(length < left);

    let mut stream = MessageStream::new();
    let out: Vec<_> = message.emit().chunks(1000).flat_map(|chunk| stream.handle_bytes(chunk)).collect();
    assert_eq!(out, [Ok(StreamMessage { header: *message.emit().first_chunk().unwrap(), message })]);
}

#[test]
fn a_malformed_message_costs_only_itself() {
    let good = samples::full(MessageType::Data);
    let mut malformed = good.clone();
    malformed.mri = None;
    let bytes = [good.emit(), malformed.emit(), good.emit()].concat();
    let out = MessageStream::new().handle_bytes(&bytes);
    let [Ok(first), Err(error), Ok(last)] = &out[..] else { panic!("{out:?}") };
    assert_eq!((&first.message, &last.message), (&good, &good));
    assert_eq!(error.code, ErrorCode::MissingObject);
}

#[test]
fn a_malformed_header_breaks_the_stream() {
    let good = samples::full(MessageType::Data).emit();
    for (byte, value) in [(0, 2), (6, 0x7F), (7, 0x40)] {
        let mut bad = good.clone();
        bad[byte] = value;
        let mut stream = MessageStream::new();
        let out = stream.handle_bytes(&[&good[..], &bad, &good].concat());
        let [Ok(_), Err(error)] = &out[..] else { panic!("{out:?}") };
        assert!(error.code.is_about_header());
        assert!(stream.is_broken());
        assert_eq!(stream.handle_bytes(&good), []);
    }
}

/// Goal: a peer that announces a long message and sends rubbish is cut off at the header, not after 256 KiB.
#[test]
fn a_malformed_header_is_found_before_the_message_is_there() {
    let mut stream = MessageStream::new();
    assert_eq!(stream.handle_bytes(b"GET / H").len(), 0);
    assert_eq!(stream.handle_bytes(b"T")[0].as_ref().unwrap_err().code, ErrorCode::UnknownVersion);
    assert!(stream.is_broken());
}
