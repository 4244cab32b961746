// SPDX-License-Identifier: Apache-2.0
//! NetServ signaling texts.

use netserv_model::SessionId;
use netserv_wire::nslp::{
    Message, Part, Payload, Response, Tear, decode_properties, emit_notify, encode_properties, parts, peek_nonce,
};

/// Reads NSLP data.
///
/// # Panics
/// If what is understood does not come back from its text or from its parts.
pub fn nslp_text(data: &[u8]) {
    let nonce = peek_nonce(data);
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(properties) = decode_properties(text)
    {
        assert_eq!(decode_properties(&encode_properties(&properties)), Ok(properties));
    }
    match Payload::parse(data) {
        Ok(Payload::Request(envelope, message)) => {
            // An envelope may have a header of that name, too.
            assert!(nonce == Some(message.nonce()) || !envelope.unknown.is_empty());
            let text = envelope.emit(&message);
            assert_eq!(Payload::parse(text.as_bytes()), Ok(Payload::Request(envelope, message.clone())));
            assert_eq!(Message::parse(message.as_str().as_bytes()).as_ref(), Ok(&*message));
            assert_eq!(joined(message.as_str(), &message), message.as_str().as_bytes());
            let request = message.request(SessionId([0; 16]));
            assert_eq!(request.signed_bytes, message.canonical().as_bytes());
        }
        Ok(Payload::Response(response)) => {
            let text = response.emit();
            assert_eq!(Response::parse(text.as_bytes()).as_ref(), Ok(&*response));
        }
        Ok(Payload::Notify(notify)) => {
            // Its text for people is cut to a length.
            let Ok(Payload::Notify(again)) = Payload::parse(emit_notify(&notify).as_bytes()) else {
                panic!("{notify:?}")
            };
            assert_eq!(emit_notify(&again), emit_notify(&notify));
        }
        Ok(Payload::Tear(tear)) => assert_eq!(Tear::parse(tear.emit().as_bytes()).as_ref(), Ok(&*tear)),
        Ok(Payload::Part(part)) => assert_eq!(Part::parse(&part.emit()), Some(part)),
        Err(refusal) => assert!(refusal.detail.len() <= 4 * 400),
    }
}

/// Returns a request's text as it comes out of the parts that it travels in, without what filled the last one.
fn joined(text: &str, message: &Message) -> Vec<u8> {
    let mut whole = Vec::new();
    for piece in parts(text, message.nonce()) {
        assert!(piece.len().is_multiple_of(4));
        match Part::parse(&piece) {
            Some(part) => whole.extend_from_slice(&part.bytes),
            None => whole.extend_from_slice(&piece),
        }
    }
    assert!((text.len()..text.len() + 4).contains(&whole.len()));
    whole.truncate(text.len());
    whole
}
