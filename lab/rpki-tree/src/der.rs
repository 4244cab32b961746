// SPDX-License-Identifier: Apache-2.0
//! The few encodings of DER that signed objects need.

use ipnet::IpNet;
use netserv_model::UnixTime;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OID: u8 = 0x06;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// `[0]` and `[1]` of an explicit or constructed value; without 0x20 of a primitive one.
pub(crate) const CONTEXT_0: u8 = 0xA0;
pub(crate) const CONTEXT_1: u8 = 0xA1;

/// Returns a value of these parts.
pub(crate) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let mut bytes = vec![tag];
    if content.len() >= 0x80 {
        bytes.push(0x80 | u8::try_from(length.len()).expect("a length has at most eight bytes"));
    }
    bytes.extend(length);
    bytes.extend(content);
    bytes
}

pub(crate) fn number(number: u64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    // One that begins with a set bit would be negative.
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let zero: &[u8] = if bytes[first] & 0x80 == 0 { &[] } else { &[0] };
    value(INTEGER, &[zero, &bytes[first..]])
}

/// Returns the algorithm SHA-256 without parameters (RFC 5754 §2).
pub(crate) fn sha256() -> Vec<u8> {
    value(SEQUENCE, &[&value(OID, &[&SHA256])])
}

/// The content of the OID 2.16.840.1.101.3.4.2.1.
pub(crate) const SHA256: [u8; 9] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];

/// Returns an address prefix (RFC 3779 §2.1.1).
pub(crate) fn prefix(prefix: &IpNet) -> Vec<u8> {
    let address = match prefix.network() {
        std::net::IpAddr::V4(address) => address.octets().to_vec(),
        std::net::IpAddr::V6(address) => address.octets().to_vec(),
    };
    let bytes = prefix.prefix_len().div_ceil(8);
    let unused = bytes * 8 - prefix.prefix_len();
    value(BIT_STRING, &[&[unused], &address[..usize::from(bytes)]])
}

/// Returns the blocks of each family that has prefixes, each of which is written by `each`.
pub(crate) fn families(prefixes: &[IpNet], each: impl Fn(&IpNet) -> Vec<u8>) -> Vec<u8> {
    let family = |number: u8, is_v4: bool| {
        let of_family: Vec<Vec<u8>> =
            prefixes.iter().filter(|prefix| prefix.addr().is_ipv4() == is_v4).map(&each).collect();
        let afi = value(OCTET_STRING, &[&[0, number]]);
        if of_family.is_empty() {
            Vec::new()
        } else {
            value(SEQUENCE, &[&afi, &value(SEQUENCE, &[&of_family.concat()])])
        }
    };
    value(SEQUENCE, &[&family(1, true), &family(2, false)])
}

pub(crate) fn utc_time(time: UnixTime) -> Vec<u8> {
    value(UTC_TIME, &[&digits(time).as_bytes()[2..]])
}

pub(crate) fn generalized_time(time: UnixTime) -> Vec<u8> {
    value(GENERALIZED_TIME, &[digits(time).as_bytes()])
}

fn digits(time: UnixTime) -> String {
    time.to_string().replace(['-', ':', 'T'], "")
}
