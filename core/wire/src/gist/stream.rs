// SPDX-License-Identifier: Apache-2.0
//! Messages out of the byte stream of a messaging association.

use super::{DecodeError, HEADER_BYTES, Header, Message};

/// A message out of a byte stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// Its common header as it came, which an Error about it quotes (RFC 5971 A.4.1).
    pub header: [u8; HEADER_BYTES],
    /// The message.
    pub message: Message,
}

/// Splits the byte stream of a messaging association into messages.
///
/// Holds less than one message, so at most [`MESSAGE_BYTES_MAX`](super::limits::MESSAGE_BYTES_MAX) bytes.
#[derive(Debug, Default)]
pub struct MessageStream {
    buffer: Vec<u8>,
    broken: bool,
}

impl MessageStream {
    /// Returns a splitter at the start of a stream.
    pub fn new() -> MessageStream {
        MessageStream::default()
    }

    /// Takes bytes of the stream and returns the messages that they complete.
    ///
    /// A message that is malformed after its header costs only itself. A malformed header breaks the stream: its error
    /// is the last item ever returned, and the association has to be closed.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Vec<Result<StreamMessage, DecodeError>> {
        let mut messages = Vec::new();
        let mut rest = bytes;
        while !self.broken {
            match self.next_message(&mut rest) {
                Ok(None) => break,
                Ok(Some(message)) => messages.push(Ok(message)),
                Err(error) => {
                    self.broken = error.code.is_about_header();
                    messages.push(Err(error));
                }
            }
        }
        if self.broken {
            self.buffer = Vec::new();
        }
        messages
    }

    /// Takes bytes until they make a message; takes none of the next.
    fn next_message(&mut self, rest: &mut &[u8]) -> Result<Option<StreamMessage>, DecodeError> {
        if !self.fill(HEADER_BYTES, rest) {
            return Ok(None);
        }
        let message_bytes = Header::parse(&self.buffer)?.message_bytes();
        let header = *self.buffer.first_chunk().expect("the header is there");
        if !self.fill(message_bytes, rest) {
            return Ok(None);
        }
        let message = Message::parse(&self.buffer);
        self.buffer.clear();
        self.buffer.shrink_to(IDLE_BUFFER_BYTES_MAX);
        message.map(|message| Some(StreamMessage { header, message }))
    }

    /// Moves bytes to the buffer until it has as many as wanted, and returns whether it has.
    fn fill(&mut self, wanted: usize, rest: &mut &[u8]) -> bool {
        let missing = wanted.saturating_sub(self.buffer.len());
        let (moved, after) = rest.split_at(missing.min(rest.len()));
        self.buffer.extend_from_slice(moved);
        *rest = after;
        self.buffer.len() >= wanted
    }

    /// Returns whether the stream is beyond repair.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

/// Bytes of buffer that a stream keeps between messages, so that one long message does not cost memory for ever.
const IDLE_BUFFER_BYTES_MAX: usize = 2048;
