// SPDX-License-Identifier: Apache-2.0
//! The checklist itself (RFC 9323).

use bytes::Bytes;
use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};
use netserv_model::Digest;
use rpki::repository::cert::{Cert, ResourceCert};
use rpki::repository::rsc::{ResourceSignedChecklist, Rsc};
use rpki::repository::sigobj::SignedObject;

use crate::der::{CONTEXT_0, SEQUENCE, Values};
use crate::error::Invalid;
use crate::issued::{self, STRICT_NAMES};
use crate::limits::{CHECKLIST_BYTES_MAX, PREFIXES_MAX};
use crate::time::Clock;

/// How the checklist's certificate is called in reasons.
pub(crate) const CERTIFICATE: &str = "the checklist's certificate";
const CHECKLIST: &str = "the checklist";
/// The content of the OID 1.2.840.113549.1.9.16.1.48, `id-ct-signedChecklist`. The crate's constant ends in .58.
const CONTENT_TYPE: [u8; 11] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x01, 0x30];
/// The OID of the extension Subject Information Access in DER (RFC 5280 §4.2.2.2).
const INFORMATION_ACCESS: [u8; 10] = [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x0B];

/// A checklist of the right form, of which nothing is verified.
pub(crate) struct Checklist {
    rsc: Rsc,
}

impl Checklist {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Checklist, Invalid> {
        if bytes.len() > CHECKLIST_BYTES_MAX {
            return Err(Invalid::TooLarge { bytes: bytes.len() });
        }
        let bytes = Bytes::copy_from_slice(bytes);
        let signed = SignedObject::decode(bytes.clone(), true).map_err(|error| issued::malformed(CHECKLIST, &error))?;
        if signed.content_type().as_ref() != CONTENT_TYPE {
            return Err(Invalid::NotChecklist { content_type: issued::short(signed.content_type()) });
        }
        if !is_whole(&bytes) {
            return Err(issued::malformed(CHECKLIST, &"something follows it"));
        }
        if names_version(&signed.content().to_bytes()) {
            return Err(issued::malformed(CHECKLIST, &"it names a version, which version 0 does not (RFC 9323 §4.1)"));
        }
        let rsc = Rsc::decode(bytes.clone(), true).map_err(|error| issued::malformed(CHECKLIST, &error))?;
        let checklist = Checklist { rsc };
        checklist.inspect(&bytes)?;
        Ok(checklist)
    }

    /// Checks what RFC 9323 wants and the crate does not look at.
    fn inspect(&self, bytes: &[u8]) -> Result<(), Invalid> {
        let certificate = self.certificate();
        let encoded = certificate.to_captured();
        if !contains(bytes, &encoded) {
            return Err(issued::malformed(CERTIFICATE, &"its signature has unused bits or another algorithm"));
        }
        if contains(&encoded, &INFORMATION_ACCESS) {
            return Err(Invalid::Published);
        }
        let inherits = certificate.v4_resources().is_inherited()
            || certificate.v6_resources().is_inherited()
            || certificate.as_resources().is_inherited();
        if inherits {
            return Err(Invalid::Inherits);
        }
        certificate.inspect_detached_ee(STRICT_NAMES).map_err(|error| issued::malformed(CERTIFICATE, &error))
    }

    pub(crate) fn certificate(&self) -> &Cert {
        self.rsc.signed().cert()
    }

    /// Checks that it lists the grant's digest.
    pub(crate) fn must_list(&self, grant: &Digest) -> Result<(), Invalid> {
        let mut entries = self.rsc.content().iter();
        if entries.any(|entry| entry.hash() == grant.0.as_slice()) {
            return Ok(());
        }
        Err(Invalid::OtherDigest { digest: *grant })
    }

    /// Returns the prefixes that it is for.
    pub(crate) fn prefixes(&self) -> Result<Vec<IpNet>, Invalid> {
        let (v4, v6) = (self.rsc.content().v4_resources(), self.rsc.content().v6_resources());
        let v4 = v4.iter().flat_map(|block| Ipv4Subnets::new(block.min().to_v4(), block.max().to_v4(), 0));
        let v6 = v6.iter().flat_map(|block| Ipv6Subnets::new(block.min().to_v6(), block.max().to_v6(), 0));
        let prefixes: Vec<IpNet> = v4.map(IpNet::from).chain(v6.map(IpNet::from)).take(PREFIXES_MAX + 1).collect();
        match prefixes.len() {
            0 => Err(Invalid::NoAddresses),
            1..=PREFIXES_MAX => Ok(prefixes),
            _ => Err(Invalid::TooManyPrefixes),
        }
    }

    /// Checks it, once it is known that its certificate is not revoked.
    pub(crate) fn verify(self, issuer: &ResourceCert, clock: &mut Clock) -> Result<(), Invalid> {
        let certificate = issued::end_entity(CERTIFICATE, self.certificate().clone(), issuer, clock)?;
        must_be_covered(self.rsc.content(), &certificate)?;
        let verified = self.rsc.signed().clone().validate_detached_at(issuer, STRICT_NAMES, clock.now());
        verified.map_err(|error| issued::bad_signature(CHECKLIST, &error))?;
        Ok(())
    }
}

/// Checks that the certificate has what the checklist is for.
fn must_be_covered(content: &ResourceSignedChecklist, certificate: &ResourceCert) -> Result<(), Invalid> {
    let covered = certificate.v4_resources().contains(content.v4_resources())
        && certificate.v6_resources().contains(content.v6_resources())
        && certificate.as_resources().contains(content.as_resources());
    if covered { Ok(()) } else { Err(Invalid::Overclaims { of: CHECKLIST.to_owned() }) }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns whether a SEQUENCE takes all the bytes, which the crate does not look at.
fn is_whole(bytes: &[u8]) -> bool {
    let mut values = Values(bytes);
    values.take(SEQUENCE).and_then(|_| values.end(())).is_some()
}

/// Returns whether a checklist's content begins with a version. DER leaves out what is the default (X.690 §11.5).
fn names_version(content: &[u8]) -> bool {
    Values(content).take(SEQUENCE).and_then(|content| Values(content).take(CONTEXT_0)).is_some()
}
