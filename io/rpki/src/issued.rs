// SPDX-License-Identifier: Apache-2.0
//! Certificates: what they must be like, whoever issued them.

use std::fmt::Display;

use rpki::repository::cert::{Cert, Overclaim, ResourceCert};

use crate::error::Invalid;
use crate::limits::REASON_CHARS_MAX;
use crate::time::Clock;

/// Whether the names in certificates must be as RFC 6487 §4.4 says. Nothing rests on names, and registries had others.
pub(crate) const STRICT_NAMES: bool = false;

/// Checks a certificate of an authority, once it is known that it is listed and not revoked.
pub(crate) fn authority(
    of: &str,
    certificate: Cert,
    issuer: &ResourceCert,
    clock: &mut Clock,
) -> Result<ResourceCert, Invalid> {
    must_not_overclaim(of, &certificate)?;
    clock.certificate(of, certificate.validity())?;
    certificate.inspect_ca(STRICT_NAMES).map_err(|error| malformed(of, &error))?;
    must_be_signed(of, &certificate, issuer)?;
    // Time and signature are right by now.
    certificate.verify_ca_at(issuer, STRICT_NAMES, clock.now()).map_err(|_| Invalid::Overclaims { of: of.to_owned() })
}

/// Checks the certificate of a signed object, apart from what differs between published objects and others.
pub(crate) fn end_entity(
    of: &str,
    certificate: Cert,
    issuer: &ResourceCert,
    clock: &mut Clock,
) -> Result<ResourceCert, Invalid> {
    must_not_overclaim(of, &certificate)?;
    clock.certificate(of, certificate.validity())?;
    must_be_signed(of, &certificate, issuer)?;
    certificate.verify_ee_at(issuer, STRICT_NAMES, clock.now()).map_err(|_| Invalid::Overclaims { of: of.to_owned() })
}

/// Checks that a certificate names this issuer and is signed by it.
pub(crate) fn must_be_signed(of: &str, certificate: &Cert, issuer: &Cert) -> Result<(), Invalid> {
    if certificate.authority_key_identifier() != Some(issuer.subject_key_identifier()) {
        return Err(bad_signature(of, &"it names another key as its issuer's"));
    }
    certificate.verify_signature(issuer, STRICT_NAMES).map_err(|error| bad_signature(of, &error))
}

/// Certificates by RFC 8360 are cut to what their issuers have; no relying party in Debian takes them.
pub(crate) fn must_not_overclaim(of: &str, certificate: &Cert) -> Result<(), Invalid> {
    match certificate.overclaim() {
        Overclaim::Refuse => Ok(()),
        Overclaim::Trim => Err(Invalid::Reconsidered { of: of.to_owned() }),
    }
}

pub(crate) fn malformed(of: &str, reason: &dyn Display) -> Invalid {
    Invalid::Malformed { of: of.to_owned(), reason: short(reason) }
}

pub(crate) fn bad_signature(of: &str, reason: &dyn Display) -> Invalid {
    Invalid::BadSignature { of: of.to_owned(), reason: short(reason) }
}

/// Returns a text of the checklist's for a reason, cut to what a reader needs.
pub(crate) fn short(text: &dyn Display) -> String {
    text.to_string().chars().take(REASON_CHARS_MAX).collect()
}
