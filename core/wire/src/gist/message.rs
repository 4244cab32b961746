// SPDX-License-Identifier: Apache-2.0
//! Whole messages: the grammar of RFC 5971 §5.1.

use netserv_model::SessionId;

use super::{
    Cookie, DecodeError, ErrorObject, Header, MessageType, Mri, NatTraversal, Nli, RawObject, StackConfiguration,
    StackProposal,
};

/// A GIST message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// GIST nodes that the message may still visit, the next included. Parsing lets 0 pass, which the receiver has to
    /// answer with [`ErrorCode::HopLimitExceeded`](super::ErrorCode::HopLimitExceeded).
    pub hops: u8,
    /// The signaling application; 0 in Error and MA-Hello.
    pub nslp_id: u16,
    /// The type.
    pub kind: MessageType,
    /// C: 1 in a Query and in Data sent in Q-mode.
    pub context_free: bool,
    /// S: the IP source is the sender's own.
    pub source_is_signaller: bool,
    /// R: the sender wants a reply.
    pub reply_wanted: bool,
    /// E: explicitly routed Data.
    pub explicit: bool,
    /// What NATs changed.
    pub nat_traversal: Option<NatTraversal>,
    /// The flow.
    pub mri: Option<Mri>,
    /// The session.
    pub session: Option<SessionId>,
    /// The sender.
    pub nli: Option<Nli>,
    /// The cookie of the querying node.
    pub query_cookie: Option<Cookie>,
    /// The cookie of the responding node.
    pub responder_cookie: Option<Cookie>,
    /// The stacks proposed.
    pub stack_proposal: Option<StackProposal>,
    /// Their configuration.
    pub stack_configuration: Option<StackConfiguration>,
    /// The number of an MA-Hello.
    pub hello_id: Option<u32>,
    /// What an Error says.
    pub error: Option<ErrorObject>,
    /// What the NSLP says, at most [`NSLP_DATA_BYTES_MAX`](super::limits::NSLP_DATA_BYTES_MAX) bytes. Whole words
    /// travel: data of another length arrives with up to three zero bytes more.
    pub nslp_data: Option<Vec<u8>>,
    /// Objects that the node does not know and that must be forwarded.
    pub unknown: Vec<RawObject>,
}

impl Message {
    /// Returns an empty message of a type, with the flags that most messages of the type have: hops 1, S set, R and C
    /// set in a Query.
    pub fn new(kind: MessageType, nslp_id: u16) -> Message {
        todo!("{kind:?}{nslp_id}")
    }

    /// Reads one whole message, without magic number.
    ///
    /// # Errors
    /// Says what an Error to the sender has to say.
    pub fn parse(bytes: &[u8]) -> Result<Message, DecodeError> {
        todo!("{bytes:?}")
    }

    /// Returns the message as bytes, without magic number.
    ///
    /// # Panics
    /// If a field is longer than its limit; what was parsed never is.
    pub fn emit(&self) -> Vec<u8> {
        todo!()
    }

    /// Returns the message as the payload of a datagram: magic number and message.
    pub fn emit_datagram(&self) -> Vec<u8> {
        todo!()
    }

    /// Returns the common header with the right length.
    pub fn header(&self) -> Header {
        todo!()
    }
}
