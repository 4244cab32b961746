// SPDX-License-Identifier: Apache-2.0
//! Claims that a key signs: JWS in compact form (RFC 7515 §3.1), signed by Ed25519 (RFC 8037 §3.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use netserv_model::{PublicKey, Signature};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Why a text is no JWS of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// It has not three parts of base64url.
    NotCompact,
    /// Its header is not that of the type.
    Header,
    /// Its claims are not those of the type.
    Claims(String),
}

/// Returns claims as text, signed.
pub(crate) fn sign(typ: &str, claims: &impl Serialize, key: &SigningKey) -> String {
    let claims = serde_json::to_vec(claims).expect("claims are plain data");
    let header = format!(r#"{{"alg":"{}","typ":"{typ}"}}"#, ALGORITHMS[0]);
    let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
    let signature = key.sign(signed.as_bytes());
    format!("{signed}.{}", BASE64.encode(signature.to_bytes()))
}

/// Understands a text that may be anything, without looking at who signed it.
pub(crate) fn parse<T: DeserializeOwned>(typ: &str, text: &str) -> Result<T, Malformed> {
    let (signed, _) = parts(text)?;
    let (header, claims) = signed.split_once('.').ok_or(Malformed::NotCompact)?;
    let header: Header = object(&decode(header)?).map_err(|_| Malformed::Header)?;
    if !ALGORITHMS.contains(&header.alg.as_str()) || header.typ != typ {
        return Err(Malformed::Header);
    }
    object(&decode(claims)?).map_err(|error| Malformed::Claims(error.chars().take(120).collect()))
}

/// Returns whether a key signed a text.
pub(crate) fn is_signed(text: &str, key: &PublicKey) -> Result<bool, Malformed> {
    let (signed, signature) = parts(text)?;
    let signature: [u8; 64] = decode(signature)?.try_into().map_err(|_| Malformed::NotCompact)?;
    Ok(is_signed_by(key, signed.as_bytes(), &Signature(signature)))
}

/// Returns whether a key signed these bytes.
pub(crate) fn is_signed_by(key: &PublicKey, bytes: &[u8], signature: &Signature) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
    VerifyingKey::from_bytes(&key.0).is_ok_and(|key| key.verify_strict(bytes, &signature).is_ok())
}

/// The names of Ed25519 in JOSE: that of RFC 8037, and that of RFC 9864.
const ALGORITHMS: [&str; 2] = ["EdDSA", "Ed25519"];

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
fn parts(text: &str) -> Result<(&str, &str), Malformed> {
    text.rsplit_once('.').ok_or(Malformed::NotCompact)
}

fn decode(text: &str) -> Result<Vec<u8>, Malformed> {
    BASE64.decode(text).map_err(|_| Malformed::NotCompact)
}

/// Reads an object. As serde has it, an array of the values would do as well.
fn object<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    match json.trim_ascii_start().starts_with(b"{") {
        true => serde_json::from_slice(json).map_err(|error| error.to_string()),
        false => Err("they are no object".to_owned()),
    }
}
