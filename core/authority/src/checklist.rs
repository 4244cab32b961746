// SPDX-License-Identifier: Apache-2.0
//! What a holder of prefixes signs to vouch for a grant: the content of an RPKI Signed Checklist (RFC 9323 §4) in DER.

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::Digest;

/// Returns a checklist's content: these prefixes, and the digest of a grant ([`digest_of_grant`](crate::digest_of_grant)) without a name.
pub fn content(prefixes: &[IpNet], grant: &Digest) -> Vec<u8> {
    // The default version is left out, and there are no AS numbers (RFC 9323 §4.1, §4.3).
    let resources = value(SEQUENCE, &[value(IP_BLOCKS, &[ip_blocks(prefixes)])]);
    let sha256 = value(SEQUENCE, &[value(OID, &[SHA256.to_vec()])]);
    let entry = value(SEQUENCE, &[value(OCTET_STRING, &[grant.0.to_vec()])]);
    value(SEQUENCE, &[resources, sha256, value(SEQUENCE, &[entry])])
}

const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[1]` of a ResourceBlock.
const IP_BLOCKS: u8 = 0xA1;
/// 2.16.840.1.101.3.4.2.1, SHA-256.
const SHA256: [u8; 9] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];

/// The families that have prefixes, IPv4 first, each with its prefixes in order and none within another (RFC 3779 §2.2.3).
fn ip_blocks(prefixes: &[IpNet]) -> Vec<u8> {
    let all = IpNet::aggregate(&prefixes.to_vec());
    let family = |number: u8, is_v4: bool| {
        let of_family: Vec<Vec<u8>> = all.iter().filter(|net| net.addr().is_ipv4() == is_v4).map(bits).collect();
        let afi = value(OCTET_STRING, &[vec![0, number]]);
        if of_family.is_empty() { Vec::new() } else { value(SEQUENCE, &[afi, value(SEQUENCE, &of_family)]) }
    };
    value(SEQUENCE, &[family(1, true), family(2, false)])
}

fn bits(prefix: &IpNet) -> Vec<u8> {
    let address = match prefix.network() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let bytes = prefix.prefix_len().div_ceil(8);
    let unused = bytes * 8 - prefix.prefix_len();
    value(BIT_STRING, &[vec![unused], address[..usize::from(bytes)].to_vec()])
}

/// One value of DER.
fn value(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is to be signed is what RFC 9323 says, byte by byte. Method: one prefix of each family, written out by hand.
    #[test]
    fn a_checklist_is_written_as_the_rfc_has_it() {
        let prefixes = ["10.1.2.0/24", "2001:db8:1::/48", "10.1.2.128/25"].map(|net| net.parse().unwrap());
        let written = hex::encode(content(&prefixes, &Digest([0xab; 32])));
        let blocks = "301f 300c 04020001 3006 0304 000a0102 300f 04020002 3009 0307 0020010db80001";
        let digest = "ab".repeat(32);
        let expected = format!("3058 3023 a121 {blocks} 300b 0609608648016503040201 3024 3022 0420 {digest}");
        assert_eq!(written, expected.replace(' ', ""));
    }
}
