// SPDX-License-Identifier: Apache-2.0
//! Whole messages: the grammar of RFC 5971 §5.1.

use netserv_model::SessionId;

use super::parse::parse_body;
use super::tlv::{put_object, put_raw_object};
use super::{
    Cookie, DecodeError, ErrorObject, HEADER_BYTES, Header, MAGIC, MessageType, Mri, NatTraversal, Nli, ObjectType,
    RawObject, StackConfiguration, StackProposal, hello, session,
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
        let is_query = kind == MessageType::Query;
        Message {
            hops: 1,
            nslp_id,
            kind,
            context_free: is_query,
            source_is_signaller: true,
            reply_wanted: is_query,
            explicit: false,
            nat_traversal: None,
            mri: None,
            session: None,
            nli: None,
            query_cookie: None,
            responder_cookie: None,
            stack_proposal: None,
            stack_configuration: None,
            hello_id: None,
            error: None,
            nslp_data: None,
            unknown: Vec::new(),
        }
    }

    /// Reads one whole message, without magic number.
    ///
    /// # Errors
    /// Says what an Error to the sender has to say.
    pub fn parse(bytes: &[u8]) -> Result<Message, DecodeError> {
        let header = Header::parse(bytes)?;
        parse_body(header, bytes)
    }

    /// Returns the message as bytes, without magic number.
    ///
    /// # Panics
    /// If a field is longer than its limit; what was parsed never is.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(EMIT_BYTES_USUAL);
        self.emit_into(&mut out);
        out
    }

    /// Returns the message as the payload of a datagram: magic number and message.
    ///
    /// # Panics
    /// As [`Message::emit`].
    pub fn emit_datagram(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(EMIT_BYTES_USUAL);
        out.extend_from_slice(&MAGIC.to_be_bytes());
        self.emit_into(&mut out);
        out
    }

    fn emit_into(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        self.emit_objects(out);
        let body_bytes = out.len() - start - HEADER_BYTES;
        let words = u16::try_from(body_bytes / 4).expect("a message has at most 65535 words of objects");
        out[start..start + HEADER_BYTES].copy_from_slice(&self.header(words).emit());
    }

    fn header(&self, words: u16) -> Header {
        Header {
            hops: self.hops,
            words,
            nslp_id: self.nslp_id,
            kind: self.kind,
            context_free: self.context_free,
            source_is_signaller: self.source_is_signaller,
            reply_wanted: self.reply_wanted,
            explicit: self.explicit,
        }
    }

    fn emit_objects(&self, out: &mut Vec<u8>) {
        if let Some(nat_traversal) = &self.nat_traversal {
            put_object(out, ObjectType::NatTraversal, |out| nat_traversal.emit(out));
        }
        if let Some(mri) = &self.mri {
            put_object(out, ObjectType::Mri, |out| mri.emit_value(out));
        }
        if let Some(session) = self.session {
            put_object(out, ObjectType::SessionId, |out| session::emit(session, out));
        }
        if let Some(nli) = &self.nli {
            put_object(out, ObjectType::Nli, |out| nli.emit(out));
        }
        if let Some(Cookie(cookie)) = &self.query_cookie {
            put_object(out, ObjectType::QueryCookie, |out| out.extend_from_slice(cookie));
        }
        if let Some(Cookie(cookie)) = &self.responder_cookie {
            put_object(out, ObjectType::ResponderCookie, |out| out.extend_from_slice(cookie));
        }
        if let Some(proposal) = &self.stack_proposal {
            put_object(out, ObjectType::StackProposal, |out| proposal.emit(out));
        }
        if let Some(configuration) = &self.stack_configuration {
            put_object(out, ObjectType::StackConfiguration, |out| configuration.emit(out));
        }
        if let Some(hello_id) = self.hello_id {
            put_object(out, ObjectType::HelloId, |out| hello::emit(hello_id, out));
        }
        if let Some(error) = &self.error {
            put_object(out, ObjectType::Error, |out| error.emit(out));
        }
        if let Some(data) = &self.nslp_data {
            put_object(out, ObjectType::NslpData, |out| out.extend_from_slice(data));
        }
        for object in &self.unknown {
            put_raw_object(out, object);
        }
    }
}

/// Bytes that most messages without NSLP data have room in.
const EMIT_BYTES_USUAL: usize = 256;
