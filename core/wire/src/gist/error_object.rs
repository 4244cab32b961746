// SPDX-License-Identifier: Apache-2.0
//! Error (object 9, RFC 5971 A.4): what was wrong with a message that the receiver sent.

use netserv_model::SessionId;

use super::error::ValueError;
use super::limits::{COMMENT_BYTES_MAX, ERROR_MRI_BYTES_MAX, INVALID_OBJECT_BYTES_MAX};
use super::reader::{Reader, pad};
use super::tlv::{OBJECT_HEADER_BYTES, put_object};
use super::{ErrorCode, Mri, NatTraversal, Nli, ObjectType};

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
        ErrorObject {
            class: code.class(),
            code: code.code(),
            subcode: code.subcode(),
            datagram: datagram || q_mode,
            q_mode,
            header,
            session: None,
            mri: None,
            infos: Vec::new(),
            comment: None,
        }
    }

    /// Returns the error by name, if RFC 5971 has one for the code and subcode.
    pub fn error_code(&self) -> Option<ErrorCode> {
        ErrorCode::from_parts(self.code, self.subcode)
    }

    /// Reads what can be read: nodes are known that send Errors with wrong lengths, and an Error is never answered.
    pub(super) fn parse(value: &[u8]) -> Result<ErrorObject, ValueError> {
        let mut reader = Reader::new(value);
        let class = reader.u8()?;
        let code = reader.u16()?;
        let subcode = reader.u8()?;
        let flags = reader.u16()?;
        let [mri_words, info_count] = reader.array()?;
        let header = reader.array()?;
        let has = |flag: u16| flags & flag != 0;
        let session = has(FLAG_SESSION).then(|| reader.array().ok()).flatten().map(SessionId);
        let mri_bytes = 4 * usize::from(mri_words);
        let mri = has(FLAG_MRI).then(|| reader.take(mri_bytes).ok()).flatten().map(Mri::parse_quoted);
        let infos = (0..info_count).map_while(|_| AdditionalInfo::parse(&mut reader).ok()).collect();
        let comment = has(FLAG_COMMENT).then(|| parse_comment(reader.rest())).flatten();
        let (datagram, q_mode) = (has(FLAG_DATAGRAM), has(FLAG_Q_MODE));
        Ok(ErrorObject { class, code, subcode, datagram, q_mode, header, session, mri, infos, comment })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let mri = self.quoted_mri();
        let set = [
            (FLAG_SESSION, self.session.is_some()),
            (FLAG_MRI, mri.is_some()),
            (FLAG_COMMENT, self.comment.is_some()),
            (FLAG_DATAGRAM, self.datagram),
            (FLAG_Q_MODE, self.q_mode),
        ];
        let flags = set.into_iter().filter(|(_, on)| *on).fold(0, |flags, (flag, _)| flags | flag);
        let mri = mri.unwrap_or_default();
        let mri_words = u8::try_from(mri.len() / 4).expect("a quoted MRI has at most 255 words");
        let info_count = u8::try_from(self.infos.len()).expect("an Error has at most 255 additional infos");
        out.push(self.class);
        out.extend_from_slice(&self.code.to_be_bytes());
        out.push(self.subcode);
        out.extend_from_slice(&u16::to_be_bytes(flags));
        out.extend_from_slice(&[mri_words, info_count]);
        out.extend_from_slice(&self.header);
        out.extend(self.session.iter().flat_map(|session| session.0));
        out.extend_from_slice(&mri);
        for info in &self.infos {
            info.emit(out);
        }
        if let Some(comment) = &self.comment {
            out.extend_from_slice(cut_comment(comment).as_bytes());
            out.push(0);
            pad(out);
        }
    }

    fn quoted_mri(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.mri.as_ref()?.emit_value(&mut bytes);
        (bytes.len() <= ERROR_MRI_BYTES_MAX).then_some(bytes)
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

impl AdditionalInfo {
    /// Returns the description of an invalid object, given with its header, and where in it the fault is.
    pub fn invalid_object(object: &[u8], offset: usize) -> AdditionalInfo {
        let kept = object.len().min(INVALID_OBJECT_BYTES_MAX) / 4 * 4;
        AdditionalInfo::ObjectValue {
            object: object[..kept].to_vec(),
            offset: u16::try_from(offset).unwrap_or(u16::MAX),
        }
    }

    /// Returns the description of an MRI that is wrong at a byte of its value.
    pub fn invalid_mri(mri: &Mri, offset: usize) -> AdditionalInfo {
        AdditionalInfo::invalid_value(ObjectType::Mri, |out| mri.emit_value(out), offset)
    }

    /// Returns the description of network layer information that is wrong at a byte of its value.
    pub fn invalid_nli(nli: &Nli, offset: usize) -> AdditionalInfo {
        AdditionalInfo::invalid_value(ObjectType::Nli, |out| nli.emit(out), offset)
    }

    /// Returns the description of a NAT traversal object that is wrong at a byte of its value.
    pub fn invalid_nat_traversal(object: &NatTraversal, offset: usize) -> AdditionalInfo {
        AdditionalInfo::invalid_value(ObjectType::NatTraversal, |out| object.emit(out), offset)
    }

    fn invalid_value(kind: ObjectType, put_value: impl FnOnce(&mut Vec<u8>), offset: usize) -> AdditionalInfo {
        let mut object = Vec::new();
        put_object(&mut object, kind, put_value);
        AdditionalInfo::invalid_object(&object, OBJECT_HEADER_BYTES + offset)
    }

    fn parse(reader: &mut Reader<'_>) -> Result<AdditionalInfo, ValueError> {
        let kind = reader.u16()?;
        let words = usize::from(reader.u16()?);
        let value = reader.take(4 * words)?;
        Ok(match (kind, value) {
            (INFO_MESSAGE_LENGTH, [high, low, _, _]) => {
                AdditionalInfo::MessageLength(u16::from_be_bytes([*high, *low]))
            }
            (INFO_MTU, [high, low, _, _]) => AdditionalInfo::Mtu(u16::from_be_bytes([*high, *low])),
            (INFO_OBJECT_TYPE, [high, low, _, _]) => AdditionalInfo::ObjectType(u16::from_be_bytes([*high, *low])),
            (INFO_OBJECT_VALUE, [_, _, high, low, object @ ..]) => {
                AdditionalInfo::ObjectValue { object: object.to_vec(), offset: u16::from_be_bytes([*high, *low]) }
            }
            (_, _) => AdditionalInfo::Other { kind, value: value.to_vec() },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            AdditionalInfo::MessageLength(words) => put_info(out, INFO_MESSAGE_LENGTH, *words, 0, &[]),
            AdditionalInfo::Mtu(bytes) => put_info(out, INFO_MTU, *bytes, 0, &[]),
            AdditionalInfo::ObjectType(kind) => put_info(out, INFO_OBJECT_TYPE, *kind, 0, &[]),
            AdditionalInfo::ObjectValue { object, offset } => {
                let words = u16::try_from(object.len() / 4).unwrap_or(u16::MAX).min(0x0FFF);
                put_info(out, INFO_OBJECT_VALUE, words, *offset, object);
            }
            AdditionalInfo::Other { kind, value } => {
                let words = u16::try_from(value.len() / 4).expect("an additional info fits an object");
                out.extend_from_slice(&kind.to_be_bytes());
                out.extend_from_slice(&words.to_be_bytes());
                out.extend_from_slice(value);
            }
        }
    }
}

fn put_info(out: &mut Vec<u8>, kind: u16, first: u16, second: u16, rest: &[u8]) {
    let words = u16::try_from(1 + rest.len() / 4).expect("an additional info fits an object");
    for half in [kind, words, first, second] {
        out.extend_from_slice(&half.to_be_bytes());
    }
    out.extend_from_slice(rest);
}

/// Returns the text before the first NUL as far as it is UTF-8, or nothing if there is no room for text.
fn parse_comment(bytes: &[u8]) -> Option<String> {
    let (_last, room) = bytes.split_last()?;
    let text = room.split(|byte| *byte == 0).next().unwrap_or_default();
    let valid = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    Some(cut_comment(valid).to_owned())
}

fn cut_comment(text: &str) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    &text[..text.floor_char_boundary(COMMENT_BYTES_MAX)]
}

// RFC 5971 A.4.1: flags of the Error object, in the high half of its second word.
const FLAG_SESSION: u16 = 0x8000;
const FLAG_MRI: u16 = 0x4000;
const FLAG_COMMENT: u16 = 0x2000;
const FLAG_DATAGRAM: u16 = 0x1000;
const FLAG_Q_MODE: u16 = 0x0800;

// RFC 5971 A.4.3: types of additional information.
const INFO_MESSAGE_LENGTH: u16 = 0x0001;
const INFO_MTU: u16 = 0x0002;
const INFO_OBJECT_TYPE: u16 = 0x0003;
const INFO_OBJECT_VALUE: u16 = 0x0004;
