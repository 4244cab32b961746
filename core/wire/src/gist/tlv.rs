// SPDX-License-Identifier: Apache-2.0
//! Objects as bytes (RFC 5971 A.2): extensibility flags, type, length in words, value.

use super::limits::OBJECT_BYTES_MAX;
use super::reader::pad;

/// Bytes in front of an object's value.
pub(super) const OBJECT_HEADER_BYTES: usize = 4;

/// A type of object (RFC 5971 A.3), in the order in which objects stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectType {
    /// What NATs changed.
    NatTraversal,
    /// The flow.
    Mri,
    /// The session.
    SessionId,
    /// The sender.
    Nli,
    /// The cookie of the querying node.
    QueryCookie,
    /// The cookie of the responding node.
    ResponderCookie,
    /// The stacks proposed.
    StackProposal,
    /// Their configuration.
    StackConfiguration,
    /// The number of an MA-Hello.
    HelloId,
    /// What was wrong.
    Error,
    /// What the NSLP says.
    NslpData,
}

impl ObjectType {
    /// Every type.
    pub const ALL: [ObjectType; 11] = [
        ObjectType::NatTraversal,
        ObjectType::Mri,
        ObjectType::SessionId,
        ObjectType::Nli,
        ObjectType::QueryCookie,
        ObjectType::ResponderCookie,
        ObjectType::StackProposal,
        ObjectType::StackConfiguration,
        ObjectType::HelloId,
        ObjectType::Error,
        ObjectType::NslpData,
    ];

    /// Returns the number on the wire.
    pub fn number(self) -> u16 {
        match self {
            ObjectType::Mri => 0x000,
            ObjectType::SessionId => 0x001,
            ObjectType::Nli => 0x002,
            ObjectType::StackProposal => 0x003,
            ObjectType::StackConfiguration => 0x004,
            ObjectType::QueryCookie => 0x005,
            ObjectType::ResponderCookie => 0x006,
            ObjectType::NatTraversal => 0x007,
            ObjectType::NslpData => 0x008,
            ObjectType::Error => 0x009,
            ObjectType::HelloId => 0x00A,
        }
    }

    /// Returns the type with a number.
    pub fn from_number(number: u16) -> Option<ObjectType> {
        ObjectType::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// What a node does with an object whose type it does not know: the flags A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extensibility {
    Mandatory,
    Ignore,
    Forward,
    Reserved,
}

/// An object that the node does not know and must forward unchanged (A=1, B=0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawObject {
    /// The object type, 12 bits.
    pub kind: u16,
    /// The value, whole words.
    pub value: Vec<u8>,
}

/// One object in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tlv<'a> {
    pub(super) extensibility: Extensibility,
    pub(super) kind: u16,
    /// The object with its header.
    pub(super) bytes: &'a [u8],
}

impl<'a> Tlv<'a> {
    pub(super) fn value(&self) -> &'a [u8] {
        &self.bytes[OBJECT_HEADER_BYTES..]
    }

    /// Splits the object in front of the rest. `None` if it does not end inside the bytes.
    pub(super) fn split(bytes: &'a [u8]) -> Option<(Tlv<'a>, &'a [u8])> {
        let [a, b, c, d] = *bytes.first_chunk()?;
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let (object, rest) = bytes.split_at_checked(declared_bytes(second))?;
        let extensibility = match first >> 14 {
            0 => Extensibility::Mandatory,
            1 => Extensibility::Ignore,
            2 => Extensibility::Forward,
            _ => Extensibility::Reserved,
        };
        Some((Tlv { extensibility, kind: first & 0x0FFF, bytes: object }, rest))
    }
}

/// Returns the objects of a message body as far as they end inside it.
pub(super) fn objects(body: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let (object, after) = Tlv::split(rest)?;
        rest = after;
        Some(object)
    })
}

/// Returns how many words a message body would need for the objects that start in it.
pub(super) fn declared_words(body: &[u8]) -> usize {
    let whole: usize = objects(body).map(|object| object.bytes.len()).sum();
    let cut = &body[whole..];
    let missing = match cut {
        [] => 0,
        [_, _, c, d, ..] => declared_bytes(u16::from_be_bytes([*c, *d])),
        [_, ..] => OBJECT_HEADER_BYTES,
    };
    (whole + missing) / 4
}

/// Appends an object, its value padded to whole words.
pub(super) fn put_object(out: &mut Vec<u8>, kind: ObjectType, put_value: impl FnOnce(&mut Vec<u8>)) {
    put_tlv(out, kind.number(), put_value);
}

/// Appends an object that is to be forwarded.
pub(super) fn put_raw_object(out: &mut Vec<u8>, object: &RawObject) {
    put_tlv(out, FLAGS_FORWARD | (object.kind & 0x0FFF), |out| out.extend_from_slice(&object.value));
}

fn put_tlv(out: &mut Vec<u8>, first: u16, put_value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&first.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    put_value(out);
    pad(out);
    let value_bytes = out.len() - start - OBJECT_HEADER_BYTES;
    assert!(value_bytes <= OBJECT_BYTES_MAX, "object {first:#06x} has {value_bytes} bytes");
    let words = u16::try_from(value_bytes / 4).expect("OBJECT_BYTES_MAX is 4095 words");
    out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
}

/// Returns the bytes of an object with its header, by the second half of the header.
fn declared_bytes(second_half: u16) -> usize {
    OBJECT_HEADER_BYTES + 4 * usize::from(second_half & 0x0FFF)
}

/// RFC 5971 A.2.1: A=1, B=0.
const FLAGS_FORWARD: u16 = 0x8000;
