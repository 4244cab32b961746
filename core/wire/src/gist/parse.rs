// SPDX-License-Identifier: Apache-2.0
//! From bytes to a message: lengths first, then flags, order and completeness of objects, then their values.

use super::error::ValueError;
use super::error_object::AdditionalInfo;
use super::tlv::{Extensibility, OBJECT_HEADER_BYTES, Tlv, declared_words, objects};
use super::{
    Cookie, DecodeContext, DecodeError, ErrorCode, ErrorObject, HEADER_BYTES, Header, Message, MessageType, Mri,
    NatTraversal, Nli, ObjectType, RawObject, StackConfiguration, StackProposal, hello, session,
};

/// Reads the objects of a message whose header is fine.
pub(super) fn parse_body(header: Header, bytes: &[u8]) -> Result<Message, DecodeError> {
    let body = &bytes[HEADER_BYTES..];
    let fault = |fault: Fault| fault.into_error(bytes);
    check_length(header, body).map_err(fault)?;
    let collected = Collected::new(header.kind, body).map_err(fault)?;
    collected.check_complete(header).map_err(fault)?;
    collected.into_message(header).map_err(fault)
}

/// What is wrong with a message, before what can be read of it all the same is put beside it.
struct Fault {
    code: ErrorCode,
    detail: &'static str,
    infos: Vec<AdditionalInfo>,
}

impl Fault {
    fn object_type(code: ErrorCode, kind: u16, detail: &'static str) -> Fault {
        Fault { code, detail, infos: vec![AdditionalInfo::ObjectType(kind)] }
    }

    fn value(object: Tlv<'_>, error: ValueError) -> Fault {
        let info = AdditionalInfo::invalid_object(object.bytes, OBJECT_HEADER_BYTES + error.offset);
        Fault { code: error.code, detail: error.detail, infos: vec![info] }
    }

    fn into_error(self, bytes: &[u8]) -> DecodeError {
        let context = DecodeContext { infos: self.infos, ..salvage(bytes) };
        DecodeError::new(self.code, self.detail, context)
    }
}

/// Reads what tells where an Error about the message goes and what it is about; takes what is good and leaves the rest.
fn salvage(bytes: &[u8]) -> DecodeContext {
    let mut context = DecodeContext { header: bytes.first_chunk().copied(), ..DecodeContext::default() };
    for object in objects(bytes.get(HEADER_BYTES..).unwrap_or_default()) {
        let value = object.value();
        match ObjectType::from_number(object.kind) {
            Some(ObjectType::NatTraversal) => context.nat_traversal = NatTraversal::parse(value).ok(),
            Some(ObjectType::Mri) => context.mri = Mri::parse(value).ok(),
            Some(ObjectType::SessionId) => context.session = session::parse(value).ok(),
            Some(ObjectType::Nli) => context.nli = Nli::parse(value).ok(),
            Some(
                ObjectType::QueryCookie
                | ObjectType::ResponderCookie
                | ObjectType::StackProposal
                | ObjectType::StackConfiguration
                | ObjectType::HelloId
                | ObjectType::Error
                | ObjectType::NslpData,
            )
            | None => {}
        }
    }
    context
}

/// RFC 5971 A.1: the length field counts exactly the objects.
fn check_length(header: Header, body: &[u8]) -> Result<(), Fault> {
    let words = declared_words(body);
    if body.len() == 4 * usize::from(header.words) && body.len() == 4 * words {
        return Ok(());
    }
    let info = AdditionalInfo::MessageLength(u16::try_from(words).unwrap_or(u16::MAX));
    let detail = "a message length that is not the sum of the objects";
    Err(Fault { code: ErrorCode::IncorrectMessageLength, detail, infos: vec![info] })
}

/// The objects of a message, each in its place and none twice, their values not looked at.
struct Collected<'a> {
    known: [Option<Tlv<'a>>; ObjectType::ALL.len()],
    unknown: Vec<RawObject>,
}

impl<'a> Collected<'a> {
    fn new(kind: MessageType, body: &'a [u8]) -> Result<Collected<'a>, Fault> {
        let mut collected = Collected { known: [None; ObjectType::ALL.len()], unknown: Vec::new() };
        let mut seen = SeenTypes::default();
        let mut last = None;
        for object in objects(body) {
            if object.extensibility == Extensibility::Reserved {
                let detail = "an object with both extensibility flags";
                return Err(Fault::object_type(ErrorCode::InvalidExtensibilityFlags, object.kind, detail));
            }
            if !seen.insert(object.kind) {
                return Err(Fault::object_type(ErrorCode::DuplicateObject, object.kind, "an object that occurs twice"));
            }
            match ObjectType::from_number(object.kind) {
                None => collected.add_unknown(object)?,
                Some(known) => {
                    if !is_allowed(kind, known) || last >= Some(known) {
                        let detail = "an object that has no place here";
                        return Err(Fault::object_type(ErrorCode::InvalidObjectType, object.kind, detail));
                    }
                    last = Some(known);
                    collected.known[known as usize] = Some(object);
                }
            }
        }
        Ok(collected)
    }

    fn add_unknown(&mut self, object: Tlv<'_>) -> Result<(), Fault> {
        match object.extensibility {
            Extensibility::Mandatory | Extensibility::Reserved => {
                let detail = "an unknown object that must be understood";
                return Err(Fault::object_type(ErrorCode::UnrecognizedObject, object.kind, detail));
            }
            Extensibility::Ignore => {}
            Extensibility::Forward => {
                self.unknown.push(RawObject { kind: object.kind, value: object.value().to_vec() });
            }
        }
        Ok(())
    }

    fn has(&self, kind: ObjectType) -> bool {
        self.known[kind as usize].is_some()
    }

    fn check_complete(&self, header: Header) -> Result<(), Fault> {
        if let Some(missing) = self.missing(header.kind) {
            let detail = "a message without an object that it needs";
            return Err(Fault::object_type(ErrorCode::MissingObject, missing.number(), detail));
        }
        // RFC 5971 §5.1: a Response with a responder cookie wants a Confirm.
        let is_response = header.kind == MessageType::Response;
        if is_response && self.has(ObjectType::ResponderCookie) && !header.reply_wanted {
            let detail = "a Response with a cookie that wants no Confirm";
            return Err(Fault { code: ErrorCode::InvalidRFlag, detail, infos: Vec::new() });
        }
        Ok(())
    }

    fn missing(&self, kind: MessageType) -> Option<ObjectType> {
        let needed: &[ObjectType] = match kind {
            MessageType::Query | MessageType::Response => {
                &[ObjectType::Mri, ObjectType::SessionId, ObjectType::Nli, ObjectType::QueryCookie]
            }
            MessageType::Confirm => &[ObjectType::Mri, ObjectType::SessionId, ObjectType::Nli],
            MessageType::Data => &[ObjectType::Mri, ObjectType::SessionId, ObjectType::NslpData],
            MessageType::Error => &[ObjectType::Error],
            MessageType::MaHello => &[ObjectType::HelloId],
        };
        let stack = (self.has(ObjectType::StackProposal), self.has(ObjectType::StackConfiguration));
        let answers = matches!(kind, MessageType::Response | MessageType::Confirm);
        let unbacked = answers && stack != (false, false) && !self.has(ObjectType::ResponderCookie);
        let implied = match stack {
            (true, true) | (false, false) => None,
            (false, true) => Some(ObjectType::StackProposal),
            // RFC 5971 §5.1: only a Confirm may echo the proposal without a configuration.
            (true, false) if kind == MessageType::Confirm => None,
            (true, false) => Some(ObjectType::StackConfiguration),
        };
        let needed = needed.iter().copied().find(|kind| !self.has(*kind));
        needed.or(unbacked.then_some(ObjectType::ResponderCookie)).or(implied)
    }

    fn into_message(self, header: Header) -> Result<Message, Fault> {
        let stack_proposal = self.value(ObjectType::StackProposal, StackProposal::parse)?;
        Ok(Message {
            hops: header.hops,
            nslp_id: header.nslp_id,
            kind: header.kind,
            context_free: header.context_free,
            source_is_signaller: header.source_is_signaller,
            reply_wanted: header.reply_wanted,
            explicit: header.explicit,
            nat_traversal: self.value(ObjectType::NatTraversal, NatTraversal::parse)?,
            mri: self.value(ObjectType::Mri, Mri::parse)?,
            session: self.value(ObjectType::SessionId, session::parse)?,
            nli: self.value(ObjectType::Nli, Nli::parse)?,
            query_cookie: self.value(ObjectType::QueryCookie, Cookie::parse)?,
            responder_cookie: self.value(ObjectType::ResponderCookie, Cookie::parse)?,
            stack_configuration: self.stack_configuration(stack_proposal.as_ref())?,
            stack_proposal,
            hello_id: self.value(ObjectType::HelloId, |value| hello::parse(value, header.reply_wanted))?,
            error: self.value(ObjectType::Error, ErrorObject::parse)?,
            nslp_data: self.value(ObjectType::NslpData, |value| Ok(value.to_vec()))?,
            unknown: self.unknown,
        })
    }

    fn value<T>(
        &self,
        kind: ObjectType,
        parse: impl FnOnce(&[u8]) -> Result<T, ValueError>,
    ) -> Result<Option<T>, Fault> {
        let Some(object) = self.known[kind as usize] else { return Ok(None) };
        parse(object.value()).map(Some).map_err(|error| Fault::value(object, error))
    }

    fn stack_configuration(&self, proposal: Option<&StackProposal>) -> Result<Option<StackConfiguration>, Fault> {
        let configuration = self.value(ObjectType::StackConfiguration, StackConfiguration::parse)?;
        if let (Some(configuration), Some(proposal)) = (&configuration, proposal)
            && !configuration.fits(proposal)
        {
            let both =
                [ObjectType::StackProposal, ObjectType::StackConfiguration].map(|kind| self.known[kind as usize]);
            let infos = both.into_iter().flatten().map(|object| AdditionalInfo::invalid_object(object.bytes, 0));
            let detail = "a stack configuration that does not fit the proposal";
            return Err(Fault { code: ErrorCode::StackMismatch, detail, infos: infos.collect() });
        }
        Ok(configuration)
    }
}

/// RFC 5971 §5.1: which object may stand in which message.
fn is_allowed(kind: MessageType, object: ObjectType) -> bool {
    let handshake = matches!(kind, MessageType::Query | MessageType::Response | MessageType::Confirm);
    match object {
        ObjectType::NatTraversal => !matches!(kind, MessageType::Confirm | MessageType::MaHello),
        ObjectType::Mri | ObjectType::SessionId | ObjectType::NslpData => handshake || kind == MessageType::Data,
        ObjectType::Nli => kind != MessageType::MaHello,
        ObjectType::QueryCookie => matches!(kind, MessageType::Query | MessageType::Response),
        ObjectType::ResponderCookie => matches!(kind, MessageType::Response | MessageType::Confirm),
        ObjectType::StackProposal | ObjectType::StackConfiguration => handshake,
        ObjectType::HelloId => kind == MessageType::MaHello,
        ObjectType::Error => kind == MessageType::Error,
    }
}

/// The types of objects seen so far, one bit each.
#[derive(Default)]
struct SeenTypes([u128; 0x1000 / 128]);

impl SeenTypes {
    /// Adds a type of 12 bits and returns whether it was not there.
    fn insert(&mut self, kind: u16) -> bool {
        let (word, bit) = (usize::from(kind & 0x0FFF) / 128, 1 << (kind % 128));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}
