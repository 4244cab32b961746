// SPDX-License-Identifier: Apache-2.0
//! One grant: a key may do something until a time, as another key says.
//!
//! A grant is a JWS in compact form (RFC 7515 §3.1), signed by Ed25519 (RFC 8037 §3.1). Its claims are those of RFC 7519 where that has one:
//! `iss` and `sub` are keys, `nbf` and `exp` seconds since 1970. A claim that is not known here may limit what is granted, so a grant with one
//! is none.

use std::fmt;

use ed25519_dalek::SigningKey;
use ipnet::IpNet;
use netserv_model::{Digest, PortRange, PublicKey, UnixTime, UserId, prefix};
use serde::{Deserialize, Deserializer, Serialize, de};
use sha2::{Digest as _, Sha256};

use crate::jws::{self, Malformed};
use crate::limits::{EVIDENCE_BYTES_MAX, GRANT_PORTS_MAX, GRANT_PREFIXES_MAX};

/// What one key says that another may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Grant {
    /// The key that signs it.
    pub iss: PublicKey,
    /// The key that it is for.
    pub sub: PublicKey,
    /// From when on it holds, in seconds since 1970.
    pub nbf: u64,
    /// When it ends, in seconds since 1970.
    pub exp: u64,
    /// Prefixes of which one end of each filter must lie in one, 1 to [`GRANT_PREFIXES_MAX`].
    #[serde(deserialize_with = "prefixes")]
    pub prefixes: Vec<IpNet>,
    /// Ports that filters may name; all, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "ports")]
    pub ports: Vec<PortRange>,
    /// Modules at most; as many as the node lets, if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules_max: Option<u32>,
    /// How often it may be delegated further, one after the other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delegations: u8,
}

/// Why a text is no grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// It is longer than all evidence may be.
    #[error("a grant is {0} bytes long, at most {EVIDENCE_BYTES_MAX}")]
    TooLong(usize),
    /// It has not three parts of base64url (RFC 7515 §3.1).
    #[error("a grant has three parts of base64url with dots between")]
    NotCompact,
    /// Its header is not that of a grant.
    #[error("a grant's header names `alg` EdDSA, `typ` {TYPE} and perhaps a `kid`")]
    Header,
    /// Its claims are not those of a grant.
    #[error("a grant's claims: {0}")]
    Claims(String),
    /// Another key signed it, or nobody did.
    #[error("its issuer {0} did not sign a grant")]
    Signature(PublicKey),
}

impl Grant {
    /// Returns the grant as text, signed by its issuer, whose public key is `iss` from here on.
    pub fn sign(mut self, issuer: &SigningKey) -> String {
        self.iss = PublicKey(issuer.verifying_key().to_bytes());
        jws::sign(TYPE, &self, issuer)
    }

    /// Understands a text that may be anything, without looking at who signed it.
    ///
    /// # Errors
    /// It is no grant.
    pub fn parse(text: &str) -> Result<Grant, GrantError> {
        if text.len() > EVIDENCE_BYTES_MAX {
            return Err(GrantError::TooLong(text.len()));
        }
        let grant: Grant = jws::parse(TYPE, text)?;
        grant.check()?;
        Ok(grant)
    }

    /// Understands a text and checks that its issuer signed it.
    ///
    /// # Errors
    /// It is no grant, or nobody's.
    pub fn verify(text: &str) -> Result<Grant, GrantError> {
        let grant = Grant::parse(text)?;
        grant.check_signature(text)?;
        Ok(grant)
    }

    /// Checks that the issuer signed the text of which this was understood.
    pub(crate) fn check_signature(&self, text: &str) -> Result<(), GrantError> {
        if jws::is_signed(text, &self.iss)? { Ok(()) } else { Err(GrantError::Signature(self.iss)) }
    }

    /// Returns from when on and until when it holds.
    pub fn time(&self) -> (UnixTime, UnixTime) {
        (UnixTime(self.nbf.saturating_mul(1000)), UnixTime(self.exp.saturating_mul(1000)))
    }

    fn check(&self) -> Result<(), GrantError> {
        let bad = |detail: String| Err(GrantError::Claims(detail));
        if self.prefixes.is_empty() || self.prefixes.len() > GRANT_PREFIXES_MAX {
            return bad(format!("{} prefixes, 1 to {GRANT_PREFIXES_MAX} are granted", self.prefixes.len()));
        }
        if self.ports.len() > GRANT_PORTS_MAX {
            return bad(format!("{} ranges of ports, at most {GRANT_PORTS_MAX} are granted", self.ports.len()));
        }
        if self.exp > UnixTime::LAST.0 / 1000 {
            return bad("`exp` is after the year 9999; it is in seconds".to_owned());
        }
        if self.nbf >= self.exp {
            return bad("`exp` is not after `nbf`".to_owned());
        }
        Ok(())
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes: Vec<String> = self.prefixes.iter().map(ToString::to_string).collect();
        write!(f, "{} for {} until {}", self.sub, prefixes.join(", "), self.time().1)
    }
}

impl From<Malformed> for GrantError {
    fn from(malformed: Malformed) -> GrantError {
        match malformed {
            Malformed::NotCompact => GrantError::NotCompact,
            Malformed::Header => GrantError::Header,
            Malformed::Claims(error) => GrantError::Claims(error),
        }
    }
}

/// Returns by what checklists and revocation lists name a grant: the SHA-256 of its text.
pub fn digest_of_grant(text: &str) -> Digest {
    Digest(Sha256::digest(text).into())
}

/// Returns the name of a user whom no operator named: its key's thumbprint (of 130 bits), `k-` and 26 characters of base32.
pub fn user_of(key: &PublicKey) -> UserId {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digest = Sha256::digest(key.0);
    let letter = |index: usize| {
        let bits = (0..5).map(|bit| index * 5 + bit).map(|bit| digest[bit / 8] >> (7 - bit % 8) & 1);
        char::from(LETTERS[bits.fold(0, |value, bit| value << 1 | usize::from(bit))])
    };
    let name: String = (0..26).map(letter).collect();
    format!("k-{name}").parse().expect("it has 28 letters and digits")
}

const TYPE: &str = "netserv-grant+jwt";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let read = |text: &String| {
        let bad = || de::Error::custom(format!("`{text}` is not a prefix such as 192.0.2.0/24"));
        prefix::parse(text).ok_or_else(bad)
    };
    Vec::<String>::deserialize(deserializer)?.iter().map(read).collect()
}

mod ports {
    use netserv_model::PortRange;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(ports: &[PortRange], serializer: S) -> Result<S::Ok, S::Error> {
        ports.iter().map(PortRange::to_string).collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PortRange>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
    }
}
