// SPDX-License-Identifier: Apache-2.0
//! One grant: a key may do something until a time, as another key says.
//!
//! A grant is a JWS in compact form (RFC 7515 §3.1), signed by Ed25519 (RFC 8037 §3.1). Its claims are those of RFC 7519 where that has one:
//! `iss` and `sub` are keys, `nbf` and `exp` seconds since 1970. A claim that is not known here may limit what is granted, so a grant with one
//! is none.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use ipnet::IpNet;
use netserv_model::{PortRange, PublicKey, Signature, UnixTime, UserId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

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
        let claims = serde_json::to_vec(&self).expect("claims are plain data");
        let header = format!(r#"{{"alg":"{}","typ":"{TYPE}"}}"#, ALGORITHMS[0]);
        let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        let signature = issuer.sign(signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature.to_bytes()))
    }

    /// Understands a text that may be anything, without looking at who signed it.
    ///
    /// # Errors
    /// It is no grant.
    pub fn parse(text: &str) -> Result<Grant, GrantError> {
        if text.len() > EVIDENCE_BYTES_MAX {
            return Err(GrantError::TooLong(text.len()));
        }
        let (signed, _) = parts(text)?;
        let (header, claims) = signed.split_once('.').ok_or(GrantError::NotCompact)?;
        let header: Header = object(&decode(header)?).map_err(|_| GrantError::Header)?;
        if !ALGORITHMS.contains(&header.alg.as_str()) || header.typ != TYPE {
            return Err(GrantError::Header);
        }
        let grant: Grant = object(&decode(claims)?).map_err(|error| {
            let error: String = error.chars().take(120).collect();
            GrantError::Claims(error)
        })?;
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
        let (signed, signature) = parts(text)?;
        let signature: [u8; 64] = decode(signature)?.try_into().map_err(|_| GrantError::NotCompact)?;
        let is_signed = is_signed_by(&self.iss, signed.as_bytes(), &Signature(signature));
        if is_signed { Ok(()) } else { Err(GrantError::Signature(self.iss)) }
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
        if self.exp > EXP_MAX {
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

/// Returns whether a key signed these bytes.
pub(crate) fn is_signed_by(key: &PublicKey, bytes: &[u8], signature: &Signature) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
    VerifyingKey::from_bytes(&key.0).is_ok_and(|key| key.verify_strict(bytes, &signature).is_ok())
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
/// The names of Ed25519 in JOSE: that of RFC 8037, and that of RFC 9864.
const ALGORITHMS: [&str; 2] = ["EdDSA", "Ed25519"];

/// The last second of the year 9999.
const EXP_MAX: u64 = 253_402_300_799;

/// What the header says; what else it might say could have to be understood (RFC 7515 §4.1.11).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    typ: String,
    #[serde(default, rename = "kid")]
    _kid: Option<String>,
}

/// Returns what is signed, and the signature's text.
fn parts(text: &str) -> Result<(&str, &str), GrantError> {
    text.rsplit_once('.').ok_or(GrantError::NotCompact)
}

fn decode(text: &str) -> Result<Vec<u8>, GrantError> {
    BASE64.decode(text).map_err(|_| GrantError::NotCompact)
}

/// Reads an object. As serde has it, an array of the values would do as well.
fn object<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    match json.trim_ascii_start().starts_with(b"{") {
        true => serde_json::from_slice(json).map_err(|error| error.to_string()),
        false => Err("they are no object".to_owned()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
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
