// SPDX-License-Identifier: Apache-2.0
//! Error (object 9, RFC 5971 A.4): what was wrong with a message that the receiver sent.

use netserv_model::SessionId;

use super::{ErrorCode, Mri};

/// What was wrong with a message that the receiver sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorObject {
    /// 0 informational, 1 success, 2 protocol error, 3 transient failure, 4 permanent failure.
    pub class: u8,
    /// The error code.
    pub code: u16,
    /// The error subcode.
    pub subcode: u8,
    /// The message came in a datagram.
    pub datagram: bool,
    /// The message came in Q-mode.
    pub q_mode: bool,
    /// The common header of the message.
    pub header: [u8; 8],
    /// The session of the message, if it could be read.
    pub session: Option<SessionId>,
    /// The MRI of the message, if it could be read.
    pub mri: Option<Mri>,
    /// What else is known about the fault.
    pub infos: Vec<AdditionalInfo>,
    /// Text for people.
    pub comment: Option<String>,
}

impl ErrorObject {
    /// Returns an Error about a message that was understood.
    pub fn new(code: ErrorCode, header: [u8; 8], datagram: bool, q_mode: bool) -> ErrorObject {
        todo!("{code:?}{header:?}{datagram}{q_mode}")
    }

    /// Returns the error by name, if RFC 5971 has one for the code and subcode.
    pub fn error_code(&self) -> Option<ErrorCode> {
        ErrorCode::from_parts(self.code, self.subcode)
    }
}

/// What else is known about a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdditionalInfo {
    /// The length of the message in words, as the receiver counted it.
    MessageLength(u16),
    /// The MTU of the link that the message was too large for, in bytes.
    Mtu(u16),
    /// The type of the object that is wrong.
    ObjectType(u16),
    /// The object that is wrong.
    ObjectValue {
        /// The object with its header, whole words, cut if it is long.
        object: Vec<u8>,
        /// The byte in the object at which it is wrong.
        offset: u16,
    },
    /// A kind that this node does not know.
    Other {
        /// The type.
        kind: u16,
        /// The value, whole words.
        value: Vec<u8>,
    },
}
