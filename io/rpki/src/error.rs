// SPDX-License-Identifier: Apache-2.0
//! Why there is no cache, and why a checklist says nothing.

use std::path::PathBuf;
use std::time::Duration;

use netserv_model::{Digest, UnixTime};

use crate::limits::{CHECKLIST_BYTES_MAX, DEPTH_MAX, FILE_BYTES_MAX, PREFIXES_MAX, READ_BYTES_MAX, TALS_MAX};

/// Why trust anchor locators cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// There is none.
    #[error("no trust anchor locator is named, so no checklist can be checked; name the files of the relying party")]
    NoTal,
    /// There are more than [`TALS_MAX`].
    #[error("more than {TALS_MAX} trust anchor locators are named")]
    TooManyTals,
    /// It cannot be read, or has more than [`TAL_BYTES_MAX`](crate::limits::TAL_BYTES_MAX) bytes.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// It is not a locator by RFC 8630.
    #[error("{}: not a trust anchor locator (RFC 8630): {reason}", path.display())]
    NotTal {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why a checklist vouches for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It has more than [`CHECKLIST_BYTES_MAX`] bytes.
    #[error("the checklist has {bytes} bytes, and at most {CHECKLIST_BYTES_MAX} are taken")]
    TooLarge {
        /// How many it has.
        bytes: usize,
    },
    /// An object is not DER, or not what its RFC wants.
    #[error("{of} is malformed: {reason}")]
    Malformed {
        /// The object.
        of: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The object is signed for something else, such as the origin of routes.
    #[error("an object of type {content_type} does not vouch; only a checklist does (RFC 9323)")]
    NotChecklist {
        /// Its eContentType.
        content_type: String,
    },
    /// The checklist's certificate has a Subject Information Access extension.
    #[error("the checklist's certificate says where it is published, which RFC 9323 forbids")]
    Published,
    /// The checklist's certificate inherits addresses or AS numbers.
    #[error("the checklist's certificate inherits what it is for, which RFC 9323 forbids")]
    Inherits,
    /// The checklist is for something else.
    #[error("the checklist does not list the grant's digest {digest}")]
    OtherDigest {
        /// That of the grant.
        digest: Digest,
    },
    /// The checklist names no addresses.
    #[error("the checklist names AS numbers and no addresses")]
    NoAddresses,
    /// The checklist names more than [`PREFIXES_MAX`] prefixes.
    #[error("the checklist is for more than {PREFIXES_MAX} prefixes")]
    TooManyPrefixes,
    /// More is claimed than the issuer has.
    #[error("{of} claims addresses or AS numbers that its issuer does not have")]
    Overclaims {
        /// The object.
        of: String,
    },
    /// A certificate is of the policy of RFC 8360, by which it may claim more than its issuer has.
    #[error("{of} has the policy of RFC 8360, which is not supported")]
    Reconsidered {
        /// The certificate.
        of: String,
    },
    /// It is too early.
    #[error("{of} is valid from {from} on, it is {now} here")]
    NotYetValid {
        /// The object.
        of: String,
        /// When its time begins.
        from: UnixTime,
        /// What time it is by the node's clock.
        now: UnixTime,
    },
    /// It is too late.
    #[error("{of} was valid until {until}, it is {now} here")]
    Expired {
        /// The object.
        of: String,
        /// When its time ended.
        until: UnixTime,
        /// What time it is by the node's clock.
        now: UnixTime,
    },
    /// The issuer took it back.
    #[error("{of} is revoked by its issuer")]
    Revoked {
        /// The certificate.
        of: String,
    },
    /// A signature is not by the key that it should be by, or not over this text.
    #[error("{of} is not signed by its issuer: {reason}")]
    BadSignature {
        /// The object.
        of: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No trust anchor's key is at the end of the chain.
    #[error("{of} is not issued under a trust anchor that the operator trusts")]
    UnknownAnchor {
        /// The last certificate that was found.
        of: String,
    },
    /// A certificate's issuer is neither in the cache nor a trust anchor that the operator trusts.
    #[error("the issuer of {of} is no trust anchor that the operator trusts, and the cache has no {file}")]
    NoIssuer {
        /// The certificate.
        of: String,
        /// The path of its issuer's certificate below the cache's directory.
        file: String,
    },
    /// A trust anchor's certificate has another key than its locator says.
    #[error("{file} has another key than the trust anchor locator says")]
    OtherAnchorKey {
        /// The certificate's file.
        file: String,
    },
    /// There are more than [`DEPTH_MAX`] certificates between checklist and trust anchor.
    #[error("more than {DEPTH_MAX} certificates lie between the checklist and a trust anchor")]
    TooDeep,
    /// A certificate names another revocation list than its issuer's manifest.
    #[error("{of} names another revocation list than its issuer's manifest")]
    OtherRevocationList {
        /// The certificate.
        of: String,
    },
    /// A file is not in its issuer's manifest.
    #[error("{file} is not listed in {manifest}")]
    NotListed {
        /// The file's URI.
        file: String,
        /// That of the manifest.
        manifest: String,
    },
    /// A file is not the one in its issuer's manifest.
    #[error("{file} has another hash than in {manifest}")]
    OtherHash {
        /// The file's URI.
        file: String,
        /// That of the manifest.
        manifest: String,
    },
    /// A file is not in the cache.
    #[error("the cache has no {file}")]
    Missing {
        /// Its path below the cache's directory.
        file: String,
    },
    /// A path leads out of the cache's directory, or over a symbolic link.
    #[error("{file} leads out of the cache")]
    Outside {
        /// The path.
        file: String,
    },
    /// A file cannot be read, or is none.
    #[error("{file} cannot be read: {reason}")]
    Unreadable {
        /// Its path below the cache's directory.
        file: String,
        /// What went wrong.
        reason: String,
    },
    /// A file has more than [`FILE_BYTES_MAX`] bytes, or all together more than [`READ_BYTES_MAX`].
    #[error("{file} is too large: {FILE_BYTES_MAX} bytes are read of a file, {READ_BYTES_MAX} for one checklist")]
    TooMuch {
        /// Its path below the cache's directory.
        file: String,
    },
    /// There is no cache.
    #[error("{} cannot be read: {reason}", directory.display())]
    NoCache {
        /// The cache's directory.
        directory: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// The relying party has not run for too long, by the node's clock.
    #[error("the relying party's last run is {} s away from the node's clock, and at most {} s are allowed", age.as_secs(), age_max.as_secs())]
    OldCache {
        /// How long ago it ran. A run in the future counts as one in the past: the clock is wrong.
        age: Duration,
        /// How long ago it may have.
        age_max: Duration,
    },
}

impl Invalid {
    /// Returns what to do about it, if that is known.
    pub fn fix(&self) -> Option<&'static str> {
        match self {
            Invalid::TooLarge { .. } | Invalid::TooManyPrefixes => {
                Some("issue a checklist for fewer prefixes and files")
            }
            Invalid::NotChecklist { .. } | Invalid::Published | Invalid::Inherits | Invalid::NoAddresses => {
                Some("issue a checklist for the prefixes by RFC 9323")
            }
            Invalid::OtherDigest { .. } => Some("issue a checklist with the digest of this grant"),
            Invalid::Overclaims { .. } => Some("issue a checklist for prefixes that the certificate has"),
            Invalid::NotYetValid { .. } => Some("wait until then, or set the node's clock"),
            Invalid::Expired { .. } => Some("issue a new checklist; if another object ended, ask its issuer"),
            Invalid::Revoked { .. } => Some("issue another checklist under a certificate that holds"),
            Invalid::UnknownAnchor { .. } | Invalid::NoIssuer { .. } => {
                Some("ask the node's operator to trust the registry's trust anchor")
            }
            Invalid::Missing { .. }
            | Invalid::NotListed { .. }
            | Invalid::OtherHash { .. }
            | Invalid::OtherRevocationList { .. } => {
                Some("wait for the next run of the node's relying party; if it lasts, publish the certificate again")
            }
            Invalid::OtherAnchorKey { .. } => Some("operator: take the registry's current trust anchor locator"),
            Invalid::NoCache { .. } | Invalid::OldCache { .. } | Invalid::Unreadable { .. } => {
                Some("operator: see that the relying party runs, and that the node may read its cache")
            }
            Invalid::Malformed { .. }
            | Invalid::Reconsidered { .. }
            | Invalid::BadSignature { .. }
            | Invalid::TooDeep
            | Invalid::Outside { .. }
            | Invalid::TooMuch { .. } => None,
        }
    }

    /// Returns whether it is the cache's fault, and may be gone later: the relying party was replacing files, or did not run.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Invalid::Missing { .. }
                | Invalid::NoIssuer { .. }
                | Invalid::NotListed { .. }
                | Invalid::OtherHash { .. }
                | Invalid::Unreadable { .. }
                | Invalid::NoCache { .. }
                | Invalid::OldCache { .. }
        )
    }
}
