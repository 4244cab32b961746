// SPDX-License-Identifier: Apache-2.0
//! GIST messages and streams of them.

use netserv_wire::gist::{Message, MessageStream, MessageType};

/// Reads a GIST message.
///
/// # Panics
/// If a message that is understood is written to more bytes than it came in or means something else then, or if an
/// Error about one that is not cannot be read.
pub fn gist_message(data: &[u8]) {
    match Message::parse(data) {
        Ok(message) => {
            let emitted = message.emit();
            assert!(emitted.len() <= data.len());
            assert_eq!(Message::parse(&emitted), Ok(message));
        }
        Err(error) => {
            let mut answer = Message::new(MessageType::Error, 0);
            answer.error = error.error_object(true, false);
            if answer.error.is_some() {
                assert_eq!(Message::parse(&answer.emit()), Ok(answer));
            }
        }
    }
}

/// Reads a stream of GIST messages, in pieces of the size in its first byte.
///
/// # Panics
/// If another cut gives other messages.
pub fn gist_stream(data: &[u8]) {
    let Some((size, bytes)) = data.split_first() else { return };
    let mut whole = MessageStream::new();
    let expected = whole.handle_bytes(bytes);
    let mut cut = MessageStream::new();
    let pieces = bytes.chunks(usize::from(*size).max(1));
    let messages: Vec<_> = pieces.flat_map(|piece| cut.handle_bytes(piece)).collect();
    assert_eq!((messages, cut.is_broken()), (expected, whole.is_broken()));
}
