// SPDX-License-Identifier: Apache-2.0
//! Signed objects (RFC 6488): their content and the CMS around it.

use ipnet::IpNet;
use netserv_model::{Digest, UnixTime};

use crate::der::{self, *};

/// The content of the OID 1.2.840.113549.1.9.16.1.48: a checklist (RFC 9323 §3).
pub const CHECKLIST: [u8; 11] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x01, 0x30];
/// The content of the OID 1.2.840.113549.1.9.16.1.24: the origin of routes (RFC 9582 §3).
pub const ROUTE_ORIGIN: [u8; 11] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x01, 0x18];
/// The content of the OID 1.2.840.113549.1.9.16.1.26: a manifest (RFC 9286 §4.1).
pub(crate) const MANIFEST: [u8; 11] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x01, 0x1A];

const SIGNED_DATA: [u8; 9] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02];
const ATTRIBUTE_CONTENT_TYPE: [u8; 9] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x03];
const ATTRIBUTE_MESSAGE_DIGEST: [u8; 9] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x04];
const ATTRIBUTE_SIGNING_TIME: [u8; 9] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x05];
const RSA_ENCRYPTION: [u8; 9] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01];

/// Returns the content of a checklist (RFC 9323 §4).
pub(crate) fn checklist(
    version: Option<u64>,
    prefixes: &[IpNet],
    asns: &[u32],
    entries: &[(Option<String>, Digest)],
) -> Vec<u8> {
    let version = version.map(|version| value(CONTEXT_0, &[&number(version)])).unwrap_or_default();
    let asns: Vec<Vec<u8>> = asns.iter().map(|asn| number(u64::from(*asn))).collect();
    let asns = match asns.as_slice() {
        [] => Vec::new(),
        asns => value(CONTEXT_0, &[&value(SEQUENCE, &[&value(CONTEXT_0, &[&value(SEQUENCE, &[&asns.concat()])])])]),
    };
    let addresses = match prefixes {
        [] => Vec::new(),
        prefixes => value(CONTEXT_1, &[&families(prefixes, prefix)]),
    };
    let entries = entries.iter().map(|(name, digest)| {
        let name = name.as_ref().map(|name| value(IA5_STRING, &[name.as_bytes()])).unwrap_or_default();
        value(SEQUENCE, &[&name, &value(OCTET_STRING, &[&digest.0])])
    });
    let entries = value(SEQUENCE, &[&entries.collect::<Vec<_>>().concat()]);
    value(SEQUENCE, &[&version, &value(SEQUENCE, &[&asns, &addresses]), &sha256(), &entries])
}

/// Returns the content of a ROA (RFC 9582 §4).
pub(crate) fn route_origin(asn: u32, prefixes: &[IpNet]) -> Vec<u8> {
    let address = |address: &IpNet| value(SEQUENCE, &[&prefix(address)]);
    value(SEQUENCE, &[&number(u64::from(asn)), &families(prefixes, address)])
}

/// Returns the content of a manifest (RFC 9286 §4.2).
pub(crate) fn manifest(number: u64, from: UnixTime, until: UnixTime, files: &[(String, Digest)]) -> Vec<u8> {
    let files = files.iter().map(|(name, digest)| {
        value(SEQUENCE, &[&value(IA5_STRING, &[name.as_bytes()]), &value(BIT_STRING, &[&[0], &digest.0])])
    });
    let files = value(SEQUENCE, &[&files.collect::<Vec<_>>().concat()]);
    let (from, until) = (generalized_time(from), generalized_time(until));
    value(SEQUENCE, &[&der::number(number), &from, &until, &value(OID, &[&SHA256]), &files])
}

/// Returns the attributes that are signed, as a SET (RFC 5652 §5.3, §5.4).
pub(crate) fn attributes(content_type: &[u8], digest: &Digest, signed: UnixTime) -> Vec<u8> {
    let attribute = |oid: &[u8], content: &[u8]| value(SEQUENCE, &[&value(OID, &[oid]), &value(SET, &[content])]);
    let mut attributes = [
        attribute(&ATTRIBUTE_CONTENT_TYPE, &value(OID, &[content_type])),
        attribute(&ATTRIBUTE_SIGNING_TIME, &utc_time(signed)),
        attribute(&ATTRIBUTE_MESSAGE_DIGEST, &value(OCTET_STRING, &[&digest.0])),
    ];
    attributes.sort();
    value(SET, &[&attributes.concat()])
}

/// Returns the object (RFC 6488 §2).
pub(crate) fn signed(
    content_type: &[u8],
    content: &[u8],
    certificate: &[u8],
    key: &[u8],
    attributes: &[u8],
    signature: &[u8],
) -> Vec<u8> {
    let content = value(CONTEXT_0, &[&value(OCTET_STRING, &[content])]);
    let content = value(SEQUENCE, &[&value(OID, &[content_type]), &content]);
    let mut attributes = attributes.to_vec();
    attributes[0] = CONTEXT_0;
    let algorithm = value(SEQUENCE, &[&value(OID, &[&RSA_ENCRYPTION]), &value(NULL, &[])]);
    let signer = value(
        SEQUENCE,
        &[
            &number(3),
            &value(CONTEXT_0 & !0x20, &[key]),
            &sha256(),
            &attributes,
            &algorithm,
            &value(OCTET_STRING, &[signature]),
        ],
    );
    let data = value(
        SEQUENCE,
        &[&number(3), &value(SET, &[&sha256()]), &content, &value(CONTEXT_0, &[certificate]), &value(SET, &[&signer])],
    );
    value(SEQUENCE, &[&value(OID, &[&SIGNED_DATA]), &value(CONTEXT_0, &[&data])])
}
