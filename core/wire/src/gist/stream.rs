// SPDX-License-Identifier: Apache-2.0
//! Messages out of the byte stream of a messaging association.

use super::{DecodeError, Message};

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
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Vec<Result<Message, DecodeError>> {
        todo!("{bytes:?}")
    }

    /// Returns whether the stream is beyond repair.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}
