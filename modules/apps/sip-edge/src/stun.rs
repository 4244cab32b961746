// SPDX-License-Identifier: Apache-2.0
//! STUN binding requests on the SIP port (RFC 8489, RFC 5626 §4.4.2), by which phones keep their binding of a NAT.

use std::net::{IpAddr, SocketAddr};

/// Bytes of an answer at most.
pub const ANSWER_BYTES_MAX: usize = HEAD_BYTES + 24 + 8;

/// Writes the answer to a binding request from an address. Returns its length; nothing for whatever else came.
///
/// A request with attributes that have to be understood, other than a fingerprint, is the server's.
pub fn answer(request: &[u8], source: SocketAddr, into: &mut [u8; ANSWER_BYTES_MAX]) -> Option<usize> {
    let (head, attributes) = request.split_first_chunk::<HEAD_BYTES>()?;
    let is_binding = head[..2] == BINDING_REQUEST.to_be_bytes() && head[4..8] == COOKIE;
    if !is_binding || usize::from(u16::from_be_bytes([head[2], head[3]])) != attributes.len() {
        return None;
    }
    let has_fingerprint = check(request, attributes)?;
    let mut length = HEAD_BYTES;
    into[..2].copy_from_slice(&BINDING_SUCCESS.to_be_bytes());
    into[4..HEAD_BYTES].copy_from_slice(&head[4..]);
    length += put_address(source, &head[4..], &mut into[length..]);
    if has_fingerprint {
        put_length(into, length + 8);
        let sum = crc32(&into[..length]) ^ FINGERPRINT_XOR;
        into[length..length + 4].copy_from_slice(&[0x80, 0x28, 0, 4]);
        into[length + 4..length + 8].copy_from_slice(&sum.to_be_bytes());
        length += 8;
    } else {
        put_length(into, length);
    }
    Some(length)
}

/// Returns whether there is a fingerprint, which is right and the last attribute. Nothing if an attribute is damaged or has to be
/// understood.
fn check(request: &[u8], attributes: &[u8]) -> Option<bool> {
    let mut rest = attributes;
    while !rest.is_empty() {
        let (head, after) = rest.split_first_chunk::<4>()?;
        let kind = u16::from_be_bytes([head[0], head[1]]);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let value = after.get(..length)?;
        if kind == FINGERPRINT {
            let sum = crc32(&request[..request.len() - rest.len()]) ^ FINGERPRINT_XOR;
            return (value == sum.to_be_bytes() && after.len() == 4).then_some(true);
        }
        if kind < FIRST_OPTIONAL {
            return None;
        }
        rest = after.get(length.next_multiple_of(4)..)?;
    }
    Some(false)
}

/// Writes XOR-MAPPED-ADDRESS; `mask` is cookie and transaction id. Returns its length.
fn put_address(source: SocketAddr, mask: &[u8], into: &mut [u8]) -> usize {
    let mut xor = |from: usize, bytes: &[u8]| {
        for (at, byte) in bytes.iter().enumerate() {
            into[from + at] = byte ^ mask[at];
        }
    };
    xor(6, &source.port().to_be_bytes());
    let (family, length) = match source.ip() {
        IpAddr::V4(address) => {
            xor(8, &address.octets());
            (1, 8)
        }
        IpAddr::V6(address) => {
            xor(8, &address.octets());
            (2, 20)
        }
    };
    into[..6].copy_from_slice(&[0, 0x20, 0, length, 0, family]);
    4 + usize::from(length)
}

fn put_length(message: &mut [u8], length: usize) {
    let length = u16::try_from(length - HEAD_BYTES).expect("a short message");
    message[2..4].copy_from_slice(&length.to_be_bytes());
}

/// The checksum of ITU V.42, as in RFC 8489 §14.7. The messages have some dozens of bytes.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}

const HEAD_BYTES: usize = 20;
const BINDING_REQUEST: u16 = 0x0001;
const BINDING_SUCCESS: u16 = 0x0101;
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const FINGERPRINT: u16 = 0x8028;
const FINGERPRINT_XOR: u32 = 0x5354_554e;
/// RFC 8489 §14: below it, attributes have to be understood.
const FIRST_OPTIONAL: u16 = 0x8000;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(attributes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(attributes.len()).unwrap().to_be_bytes();
        [&[0, 1], &length[..], &COOKIE, b"transaction1", attributes].concat()
    }

    fn answered(request: &[u8], source: &str) -> Option<Vec<u8>> {
        let mut into = [0; ANSWER_BYTES_MAX];
        let length = answer(request, source.parse().unwrap(), &mut into)?;
        Some(into[..length].to_vec())
    }

    /// RFC 5769 §2.1 has a request with a fingerprint; §2.2 the mapped address of its answer.
    #[test]
    fn the_samples_of_rfc_5769_are_understood() {
        let software = [&[0x80, 0x22, 0, 16][..], b"STUN test client"].concat();
        let transaction = [0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae];
        let request = [&[0, 1, 0, 20][..], &COOKIE, &transaction, &software].concat();
        let answer = answered(&request, "192.0.2.1:32853").unwrap();
        assert_eq!(answer[20..], [0x00, 0x20, 0x00, 0x08, 0x00, 0x01, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        let answer = answered(&request, "[2001:db8:1234:5678:11:2233:4455:6677]:32853").unwrap();
        let mapped = [
            0x00, 0x20, 0x00, 0x14, 0x00, 0x02, 0xa1, 0x47, 0x01, 0x13, 0xa9, 0xfa, 0xa5, 0xd3, 0xf1, 0x79, 0xbc, 0x25,
            0xf4, 0xb5, 0xbe, 0xd2, 0xb9, 0xd9,
        ];
        assert_eq!(answer[20..], mapped);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_fingerprint_is_checked_and_answered_by_one() {
        let sealed = |bytes: &[u8]| {
            let sum = crc32(bytes) ^ FINGERPRINT_XOR;
            [bytes, &[0x80, 0x28, 0, 4], &sum.to_be_bytes()].concat()
        };
        let mut plain = request(&[]);
        plain[3] = 8;
        let answer = answered(&sealed(&plain), "192.0.2.1:1").unwrap();
        assert_eq!(answer.len(), 40);
        assert_eq!(sealed(&answer[..32]), answer);
        let mut wrong = sealed(&plain);
        wrong[27] ^= 1;
        assert_eq!(answered(&wrong, "192.0.2.1:1"), None);
    }

    /// In bytes of IP, an answer has at most half more than its request.
    #[test]
    fn answers_are_small() {
        for (source, headers) in [("192.0.2.1:1", 28), ("[2001:db8::1]:1", 48)] {
            let request = request(&[]);
            let answer = answered(&request, source).unwrap();
            assert!(2 * (answer.len() + headers) <= 3 * (request.len() + headers), "{source}");
        }
    }

    #[test]
    fn whatever_else_comes_is_the_servers() {
        let mut cut = request(&[]);
        cut.pop();
        let mut indication = request(&[]);
        indication[1] = 0x11;
        let mut old = request(&[]);
        old[4] = 0;
        let username = request(&[0, 6, 0, 4, b'u', b's', b'e', b'r']);
        let damaged = request(&[0x80, 0x22, 0, 9, b'u', b's', b'e', b'r']);
        let odd = request(&[0x80, 0x22, 0, 1, b'u']);
        for wrong in [&b""[..], &cut, &indication, &old, &username, &damaged, &odd, b"OPTIONS sip:a SIP/2.0\r\n\r\n"] {
            assert_eq!(answered(wrong, "192.0.2.1:1"), None, "{wrong:?}");
        }
    }
}
