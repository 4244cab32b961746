// SPDX-License-Identifier: Apache-2.0
//! Netlink messages, by which programs and the Linux kernel talk: headers and attributes, as bytes.
//!
//! Numbers in headers are in the machine's own byte order; what the attributes hold is the business of each family.

use std::net::IpAddr;

/// Bytes of a message header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of an attribute header.
pub const ATTRIBUTE_HEADER_BYTES: usize = 4;

/// A reply that says how a request went (`NLMSG_ERROR`).
pub const TYPE_ERROR: u16 = 2;
/// The end of a reply of many messages (`NLMSG_DONE`).
pub const TYPE_DONE: u16 = 3;

/// The message asks for something (`NLM_F_REQUEST`).
pub const FLAG_REQUEST: u16 = 0x01;
/// The message wants an answer in any case (`NLM_F_ACK`).
pub const FLAG_ACK: u16 = 0x04;
/// The message asks for a whole table (`NLM_F_DUMP`).
pub const FLAG_DUMP: u16 = 0x300;

/// One received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The type, whose meaning depends on the family.
    pub kind: u16,
    /// The number of the request that it answers.
    pub sequence: u32,
    /// What follows the header, padding left out.
    pub body: &'a [u8],
}

/// Returns the messages in what one receive call gave; the rest after a malformed header is left out.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let length = usize::try_from(native_u32(header, 0)).ok()?;
        let body = bytes.get(HEADER_BYTES..length)?;
        let message = Message { kind: native_u16(header, 4), sequence: native_u32(header, 8), body };
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some(message)
    })
}

/// Returns the attributes, as type and content; the rest after a malformed one is left out.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header: &[u8; ATTRIBUTE_HEADER_BYTES] = bytes.first_chunk()?;
        let length = usize::from(native_u16(header, 0));
        let content = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((native_u16(header, 2) & ATTRIBUTE_TYPE_MASK, content))
    })
}

/// Returns the error number in the body of a [`TYPE_ERROR`] message: 0 for success.
pub fn error_number(body: &[u8]) -> Option<i32> {
    body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes).saturating_neg())
}

/// Appends one message: its family's own header, then the attributes, each as type and content.
///
/// # Panics
/// If an attribute is over 65,531 bytes long; callers bound what they send.
pub fn append(to: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32, family: &[u8], attributes: &[(u16, &[u8])]) {
    let start = to.len();
    to.extend([0; 4]);
    to.extend(kind.to_ne_bytes());
    to.extend(flags.to_ne_bytes());
    to.extend(sequence.to_ne_bytes());
    to.extend([0; 4]);
    to.extend(family);
    to.resize(start + aligned(to.len() - start), 0);
    attributes.iter().for_each(|(kind, content)| append_attribute(to, *kind, content));
    let length = u32::try_from(to.len() - start).expect("a message of few attributes is under 4 GiB");
    to[start..start + 4].copy_from_slice(&length.to_ne_bytes());
}

/// Appends one attribute and its padding to attributes or to a message's own header, whose length is a multiple of four.
///
/// # Panics
/// If it is over 65,531 bytes long; callers bound what they send.
pub fn append_attribute(to: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + content.len()).expect("attributes are bounded by callers");
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(content);
    to.resize(to.len() + aligned(content.len()) - content.len(), 0);
}

/// Returns attributes one after the other, as the content of one that holds them.
///
/// # Panics
/// If one of them is over 65,531 bytes long; callers bound what they send.
pub fn nested(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut content = Vec::new();
    attributes.iter().for_each(|(kind, bytes)| append_attribute(&mut content, *kind, bytes));
    content
}

/// Returns an address as attributes hold it.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// Reads an address of either version.
pub fn address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

/// Without the flags for nested and network-order attributes.
const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn native_u16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn native_u32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_follow_each_other_with_padding() {
        let mut bytes = Vec::new();
        append(&mut bytes, 7, FLAG_REQUEST, 1, &[9, 0, 0, 1], &[(1, b"abcde"), (2, b"")]);
        append(&mut bytes, 8, FLAG_REQUEST, 2, &[], &[(3, b"xyz")]);
        let read: Vec<Message<'_>> = messages(&bytes).collect();
        assert_eq!(read.iter().map(|message| (message.kind, message.sequence)).collect::<Vec<_>>(), [(7, 1), (8, 2)]);
        let found: Vec<_> = attributes(&read[0].body[4..]).collect();
        assert_eq!(found, [(1, b"abcde".as_slice()), (2, b"".as_slice())]);
        assert_eq!(attributes(read[1].body).collect::<Vec<_>>(), [(3, b"xyz".as_slice())]);
    }

    #[test]
    fn lengths_that_lie_end_the_reading() {
        let mut bytes = Vec::new();
        append(&mut bytes, 7, 0, 1, &[], &[(1, b"abcd")]);
        for length in [0_u32, 15, 25, u32::MAX] {
            let mut bad = bytes.clone();
            bad[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&bad).count(), 0, "{length}");
        }
        for length in [0_u16, 3, 9, u16::MAX] {
            let mut bad = bytes.clone();
            bad[16..18].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&bad).flat_map(|message| attributes(message.body)).count(), 0, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let read = messages(&bytes).flat_map(|message| attributes(message.body));
            prop_assert!(read.map(|(_, content)| content.len()).sum::<usize>() <= bytes.len());
        }

        #[test]
        fn what_was_appended_is_read_back(
            kind: u16, sequence: u32, family in proptest::collection::vec(any::<u8>(), 4),
            contents in proptest::collection::vec((0_u16..0x4000, proptest::collection::vec(any::<u8>(), 0..40)), 0..5),
        ) {
            let wanted: Vec<(u16, &[u8])> = contents.iter().map(|(kind, bytes)| (*kind, bytes.as_slice())).collect();
            let mut bytes = Vec::new();
            append(&mut bytes, kind, 0, sequence, &family, &wanted);
            let read: Vec<Message<'_>> = messages(&bytes).collect();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!((read[0].kind, read[0].sequence, &read[0].body[..4]), (kind, sequence, family.as_slice()));
            prop_assert_eq!(attributes(&read[0].body[4..]).collect::<Vec<_>>(), wanted);
        }
    }
}
