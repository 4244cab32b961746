// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a message, in the terms of an Error object.

use std::fmt;

use netserv_model::SessionId;

use super::{AdditionalInfo, ErrorObject, Header, Mri, NatTraversal, Nli};

/// An error of RFC 5971 A.4: a code with its subcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// 1/0: a version that the node does not speak.
    UnknownVersion,
    /// 1/1: a message type that does not exist.
    UnknownType,
    /// 1/2: the R flag does not fit the message.
    InvalidRFlag,
    /// 1/3: the message length is not the sum of its objects.
    IncorrectMessageLength,
    /// 1/4: the E flag does not fit the message.
    InvalidEFlag,
    /// 1/5: the C flag does not fit the message.
    InvalidCFlag,
    /// 2/0: the GIST hop count ran out.
    HopLimitExceeded,
    /// 3/0: the message must not travel in this encapsulation.
    IncorrectEncapsulation,
    /// 4/0: the messaging association does not belong to this flow, session and NSLP.
    IncorrectlyDelivered,
    /// 5/0: the node has no routing state for the message.
    NoRoutingState,
    /// 6/0: the node does not run the NSLP.
    UnknownNslpId,
    /// 7/0: the Query came to the end of the flow, which does not run the NSLP.
    EndpointFound,
    /// 8/0: the message is too large for the next link.
    MessageTooLarge,
    /// 9/0: an object occurs twice.
    DuplicateObject,
    /// 9/1: an unknown object that must be understood.
    UnrecognizedObject,
    /// 9/2: an object is missing.
    MissingObject,
    /// 9/3: an object is not allowed here.
    InvalidObjectType,
    /// 9/4: a NAT left an object untranslated.
    UntranslatedObject,
    /// 9/5: the A and B flags are both set.
    InvalidExtensibilityFlags,
    /// 10/0: an object's length does not fit its content.
    IncorrectLength,
    /// 10/1: a value that the node does not support.
    ValueNotSupported,
    /// 10/2: flags of an MRI contradict each other.
    InvalidFlagCombination,
    /// 10/3: a stack profile without protocols.
    EmptyList,
    /// 10/4: a cookie that is not the node's.
    InvalidCookie,
    /// 10/5: stack proposal and stack configuration contradict each other.
    StackMismatch,
    /// 11/0: the IP TTL of an upstream Query shows that it did not come from a neighbour.
    InvalidIpTtl,
    /// 12/0: the MRI covers too many flows.
    MriTooWild,
    /// 12/1: the MRI is of another IP version than the packet.
    IpVersionMismatch,
    /// 12/2: the flow's source cannot come from where the Query came.
    IngressFilterFailure,
}

/// Why bytes are not a GIST message, with all that an Error object about it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// What is wrong.
    pub code: ErrorCode,
    /// What is wrong, for people.
    pub detail: &'static str,
    /// What could be read of the message all the same.
    pub context: Box<DecodeContext>,
}

/// What could be read of a message that is not valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodeContext {
    /// The common header, unless the message is too short for one.
    pub header: Option<[u8; 8]>,
    /// What the Error object says about the fault.
    pub infos: Vec<AdditionalInfo>,
    /// The NAT traversal object.
    pub nat_traversal: Option<NatTraversal>,
    /// The message routing information.
    pub mri: Option<Mri>,
    /// The session.
    pub session: Option<SessionId>,
    /// Who sent the message; an Error goes there.
    pub nli: Option<Nli>,
}

impl DecodeError {
    /// Returns the Error object that tells the sender, or `None` if there must be none: for an Error, and for bytes
    /// that are too short to be a message.
    pub fn error_object(&self, datagram: bool, q_mode: bool) -> Option<ErrorObject> {
        let header = self.context.header?;
        if Header::is_error(header) {
            return None;
        }
        let mut object = ErrorObject::new(self.code, header, datagram, q_mode);
        object.infos = self.context.infos.clone();
        // RFC 5971 A.4.1: SID and MRI are left out if the common header is wrong.
        if !self.code.is_about_header() {
            object.session = self.context.session;
            object.mri = self.context.mri.clone();
        }
        Some(object)
    }

    pub(super) fn new(code: ErrorCode, detail: &'static str, context: DecodeContext) -> DecodeError {
        DecodeError { code, detail, context: Box::new(context) }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {}/{})", self.detail, self.code.code(), self.code.subcode())
    }
}

impl ErrorCode {
    /// Every error.
    pub const ALL: [ErrorCode; 29] = [
        ErrorCode::UnknownVersion,
        ErrorCode::UnknownType,
        ErrorCode::InvalidRFlag,
        ErrorCode::IncorrectMessageLength,
        ErrorCode::InvalidEFlag,
        ErrorCode::InvalidCFlag,
        ErrorCode::HopLimitExceeded,
        ErrorCode::IncorrectEncapsulation,
        ErrorCode::IncorrectlyDelivered,
        ErrorCode::NoRoutingState,
        ErrorCode::UnknownNslpId,
        ErrorCode::EndpointFound,
        ErrorCode::MessageTooLarge,
        ErrorCode::DuplicateObject,
        ErrorCode::UnrecognizedObject,
        ErrorCode::MissingObject,
        ErrorCode::InvalidObjectType,
        ErrorCode::UntranslatedObject,
        ErrorCode::InvalidExtensibilityFlags,
        ErrorCode::IncorrectLength,
        ErrorCode::ValueNotSupported,
        ErrorCode::InvalidFlagCombination,
        ErrorCode::EmptyList,
        ErrorCode::InvalidCookie,
        ErrorCode::StackMismatch,
        ErrorCode::InvalidIpTtl,
        ErrorCode::MriTooWild,
        ErrorCode::IpVersionMismatch,
        ErrorCode::IngressFilterFailure,
    ];

    /// Returns the error class: 2 protocol error, 4 permanent failure.
    pub fn class(self) -> u8 {
        match self.code() {
            0x0002 | 0x0006..=0x0008 | 0x000B | 0x000C => 0x04,
            _ => 0x02,
        }
    }

    /// Returns the error code.
    pub fn code(self) -> u16 {
        self.parts().0
    }

    /// Returns the error subcode.
    pub fn subcode(self) -> u8 {
        self.parts().1
    }

    /// Returns whether the common header is wrong, so that nothing else of the message can be trusted.
    pub fn is_about_header(self) -> bool {
        self.code() == 0x0001
    }

    /// Returns the error with this code and subcode.
    pub fn from_parts(code: u16, subcode: u8) -> Option<ErrorCode> {
        ErrorCode::ALL.into_iter().find(|error| error.parts() == (code, subcode))
    }

    /// RFC 5971 A.4.4: the catalogue of codes and subcodes.
    fn parts(self) -> (u16, u8) {
        match self {
            ErrorCode::UnknownVersion => (0x0001, 0x00),
            ErrorCode::UnknownType => (0x0001, 0x01),
            ErrorCode::InvalidRFlag => (0x0001, 0x02),
            ErrorCode::IncorrectMessageLength => (0x0001, 0x03),
            ErrorCode::InvalidEFlag => (0x0001, 0x04),
            ErrorCode::InvalidCFlag => (0x0001, 0x05),
            ErrorCode::HopLimitExceeded => (0x0002, 0x00),
            ErrorCode::IncorrectEncapsulation => (0x0003, 0x00),
            ErrorCode::IncorrectlyDelivered => (0x0004, 0x00),
            ErrorCode::NoRoutingState => (0x0005, 0x00),
            ErrorCode::UnknownNslpId => (0x0006, 0x00),
            ErrorCode::EndpointFound => (0x0007, 0x00),
            ErrorCode::MessageTooLarge => (0x0008, 0x00),
            ErrorCode::DuplicateObject => (0x0009, 0x00),
            ErrorCode::UnrecognizedObject => (0x0009, 0x01),
            ErrorCode::MissingObject => (0x0009, 0x02),
            ErrorCode::InvalidObjectType => (0x0009, 0x03),
            ErrorCode::UntranslatedObject => (0x0009, 0x04),
            ErrorCode::InvalidExtensibilityFlags => (0x0009, 0x05),
            ErrorCode::IncorrectLength => (0x000A, 0x00),
            ErrorCode::ValueNotSupported => (0x000A, 0x01),
            ErrorCode::InvalidFlagCombination => (0x000A, 0x02),
            ErrorCode::EmptyList => (0x000A, 0x03),
            ErrorCode::InvalidCookie => (0x000A, 0x04),
            ErrorCode::StackMismatch => (0x000A, 0x05),
            ErrorCode::InvalidIpTtl => (0x000B, 0x00),
            ErrorCode::MriTooWild => (0x000C, 0x00),
            ErrorCode::IpVersionMismatch => (0x000C, 0x01),
            ErrorCode::IngressFilterFailure => (0x000C, 0x02),
        }
    }
}

/// What is wrong with the value of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueError {
    pub(super) code: ErrorCode,
    /// Where in the value.
    pub(super) offset: usize,
    pub(super) detail: &'static str,
}

impl ValueError {
    pub(super) fn new(code: ErrorCode, offset: usize, detail: &'static str) -> ValueError {
        ValueError { code, offset, detail }
    }

    pub(super) fn length(offset: usize, detail: &'static str) -> ValueError {
        ValueError::new(ErrorCode::IncorrectLength, offset, detail)
    }

    pub(super) fn unsupported(offset: usize, detail: &'static str) -> ValueError {
        ValueError::new(ErrorCode::ValueNotSupported, offset, detail)
    }
}
