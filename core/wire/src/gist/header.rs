// SPDX-License-Identifier: Apache-2.0
//! The common header (RFC 5971 A.1).

use super::{DecodeContext, DecodeError, ErrorCode, VERSION};

/// Bytes of the common header.
pub const HEADER_BYTES: usize = 8;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageType {
    /// Looks for the next node of an NSLP along a flow.
    Query,
    /// Answers a Query.
    Response,
    /// Completes the handshake.
    Confirm,
    /// Carries NSLP data.
    Data,
    /// Tells that a message was wrong.
    Error,
    /// Keeps a messaging association alive.
    MaHello,
}

impl MessageType {
    /// Every type.
    pub const ALL: [MessageType; 6] = [
        MessageType::Query,
        MessageType::Response,
        MessageType::Confirm,
        MessageType::Data,
        MessageType::Error,
        MessageType::MaHello,
    ];

    /// Returns the number on the wire.
    pub fn number(self) -> u8 {
        match self {
            MessageType::Query => 0x00,
            MessageType::Response => 0x01,
            MessageType::Confirm => 0x02,
            MessageType::Data => 0x03,
            MessageType::Error => 0x04,
            MessageType::MaHello => 0x05,
        }
    }

    /// Returns the type with a number.
    pub fn from_number(number: u8) -> Option<MessageType> {
        MessageType::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// The common header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// GIST nodes that the message may still visit, the next included.
    pub hops: u8,
    /// Words of the message after the header.
    pub words: u16,
    /// The signaling application; 0 is GIST itself.
    pub nslp_id: u16,
    /// The type.
    pub kind: MessageType,
    /// C: the message stands outside a routing state.
    pub context_free: bool,
    /// S: the IP source is the sender's own.
    pub source_is_signaller: bool,
    /// R: the sender wants a reply.
    pub reply_wanted: bool,
    /// E: explicitly routed.
    pub explicit: bool,
}

impl Header {
    /// Reads the header at the start of a message and checks version, type and flags, but neither length nor hop count.
    ///
    /// # Errors
    /// Code 1: unknown version or type, or flags that do not fit the type.
    pub fn parse(bytes: &[u8]) -> Result<Header, DecodeError> {
        let Some(raw) = bytes.first_chunk() else {
            let detail = "bytes that are too short for a message";
            return Err(DecodeError::new(ErrorCode::IncorrectMessageLength, detail, DecodeContext::default()));
        };
        Header::read(*raw).map_err(|(code, detail)| {
            DecodeError::new(code, detail, DecodeContext { header: Some(*raw), ..DecodeContext::default() })
        })
    }

    fn read(raw: [u8; HEADER_BYTES]) -> Result<Header, (ErrorCode, &'static str)> {
        let [version, hops, words_high, words_low, nslp_high, nslp_low, type_field, flags] = raw;
        if version != VERSION {
            return Err((ErrorCode::UnknownVersion, "a version of GIST that is not 1"));
        }
        let kind = MessageType::from_number(type_field & TYPE_MASK);
        let header = Header {
            hops,
            words: u16::from_be_bytes([words_high, words_low]),
            nslp_id: u16::from_be_bytes([nslp_high, nslp_low]),
            kind: kind.ok_or((ErrorCode::UnknownType, "a message type that does not exist"))?,
            context_free: type_field & FLAG_CONTEXT_FREE != 0,
            source_is_signaller: flags & FLAG_SOURCE_IS_SIGNALLER != 0,
            reply_wanted: flags & FLAG_REPLY_WANTED != 0,
            explicit: flags & FLAG_EXPLICIT != 0,
        };
        header.check_flags()?;
        Ok(header)
    }

    /// RFC 5971 §5.1 and A.1: which message may carry which flag.
    fn check_flags(&self) -> Result<(), (ErrorCode, &'static str)> {
        let (reply, context_free, explicit) = (self.reply_wanted, self.context_free, self.explicit);
        let (reply_ok, context_free_ok, explicit_ok) = match self.kind {
            MessageType::Query => (reply, context_free, !explicit),
            MessageType::Response | MessageType::MaHello => (true, !context_free, !explicit),
            MessageType::Confirm | MessageType::Error => (!reply, !context_free, !explicit),
            MessageType::Data => (!reply, true, true),
        };
        if !reply_ok {
            return Err((ErrorCode::InvalidRFlag, "an R flag that does not fit the message type"));
        }
        if !explicit_ok {
            return Err((ErrorCode::InvalidEFlag, "an E flag on a message that is not Data"));
        }
        if !context_free_ok {
            return Err((ErrorCode::InvalidCFlag, "a C flag that does not fit the message type"));
        }
        Ok(())
    }

    /// Returns whether a header is that of an Error, whatever else may be wrong with it.
    pub(super) fn is_error(raw: [u8; HEADER_BYTES]) -> bool {
        raw[6] & TYPE_MASK == MessageType::Error.number()
    }

    /// Returns the bytes of the message that the header announces, header included.
    pub fn message_bytes(&self) -> usize {
        HEADER_BYTES + 4 * usize::from(self.words)
    }

    /// Returns the bytes of the header.
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let flag = |on: bool, mask: u8| if on { mask } else { 0 };
        let [words_high, words_low] = self.words.to_be_bytes();
        let [nslp_high, nslp_low] = self.nslp_id.to_be_bytes();
        let type_field = self.kind.number() | flag(self.context_free, FLAG_CONTEXT_FREE);
        let flags = flag(self.source_is_signaller, FLAG_SOURCE_IS_SIGNALLER)
            | flag(self.reply_wanted, FLAG_REPLY_WANTED)
            | flag(self.explicit, FLAG_EXPLICIT);
        [VERSION, self.hops, words_high, words_low, nslp_high, nslp_low, type_field, flags]
    }
}

/// Sets the hop count of a message that is forwarded as it is; does nothing to bytes that are no message.
pub fn set_hops(message: &mut [u8], hops: u8) {
    if let Some(raw) = message.first_chunk_mut::<HEADER_BYTES>() {
        raw[1] = hops;
    }
}

// RFC 5971 A.1: fields of the last half word.
const TYPE_MASK: u8 = 0x7F;
const FLAG_CONTEXT_FREE: u8 = 0x80;
const FLAG_SOURCE_IS_SIGNALLER: u8 = 0x80;
const FLAG_REPLY_WANTED: u8 = 0x40;
const FLAG_EXPLICIT: u8 = 0x20;
