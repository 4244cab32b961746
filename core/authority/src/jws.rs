// SPDX-License-Identifier: Apache-2.0
//! Claims that a key signs: JWS in compact form (RFC 7515 §3.1), signed by Ed25519 (RFC 8037 §3.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ed25519_dalek::{Signer, SigningKey, Verifier as _, VerifyingKey};
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

/// Returns whether a key signed these bytes, by the rules of [`VerifyingKey::verify_strict`]: neither the key nor the signature's point R is
/// of small order.
///
/// That function decompresses R, which takes a tenth of its time. A signature that is good otherwise has R in its one encoding, so R is
/// of small order if it is one of eight texts.
pub(crate) fn is_signed_by(key: &PublicKey, bytes: &[u8], signature: &Signature) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
    let is_weak = SMALL_ORDER.contains(signature.r_bytes());
    let key = VerifyingKey::from_bytes(&key.0).ok().filter(|key| !is_weak && !key.is_weak());
    key.is_some_and(|key| key.verify(bytes, &signature).is_ok())
}

/// The eight points of small order, as they are encoded (RFC 8032 §5.1.2).
const SMALL_ORDER: [[u8; 32]; 8] = [
    y(0x01, 0x00, 0x00),
    y(0xec, 0xff, 0x7f),
    y(0x00, 0x00, 0x00),
    y(0x00, 0x00, 0x80),
    EIGHTH[0],
    with_sign(EIGHTH[0]),
    EIGHTH[1],
    with_sign(EIGHTH[1]),
];
/// Of those of order 8, the two without the sign.
const EIGHTH: [[u8; 32]; 2] = [
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

const fn y(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    (bytes[0], bytes[31]) = (first, last);
    bytes
}

const fn with_sign(mut bytes: [u8; 32]) -> [u8; 32] {
    bytes[31] |= 0x80;
    bytes
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Goal: all points of small order are known. Method: there are eight, and the crate finds each of these weak.
    #[test]
    fn the_eight_points_of_small_order_are_known() {
        assert_eq!(BTreeSet::from(SMALL_ORDER).len(), 8);
        for bytes in SMALL_ORDER {
            assert!(VerifyingKey::from_bytes(&bytes).unwrap().is_weak(), "{bytes:x?}");
        }
    }

    /// Goal: nobody's key is one for which everybody can sign. Method: keys and points of small order with S = 0, of which the usual check takes some.
    #[test]
    fn signatures_of_small_order_are_none() {
        let mut taken = 0;
        for (key, point) in SMALL_ORDER.iter().flat_map(|key| SMALL_ORDER.map(|point| (key, point))) {
            let signature = [point, [0; 32]].concat().try_into().unwrap();
            let usual = VerifyingKey::from_bytes(key).unwrap();
            taken += usize::from(usual.verify(b"x", &ed25519_dalek::Signature::from_bytes(&signature)).is_ok());
            assert!(!is_signed_by(&PublicKey(*key), b"x", &Signature(signature)));
        }
        assert!(taken > 0);
    }

    proptest! {
        /// Goal: what is taken is what the crate takes by its strict rules. Method: signatures of random keys, and changed ones.
        #[test]
        fn signatures_are_checked_as_strictly_as_may_be(
            seed: [u8; 32],
            bytes: Vec<u8>,
            at in 0_usize..64,
            change in prop_oneof![Just(0), any::<u8>()],
            point in 0_usize..32,
        ) {
            let key = SigningKey::from_bytes(&seed);
            let mut signature = key.sign(&bytes).to_bytes();
            signature[at] ^= change;
            if let Some(weak) = SMALL_ORDER.get(point) {
                signature[..32].copy_from_slice(weak);
            }
            let (public, signature) = (key.verifying_key(), Signature(signature));
            let strict = public.verify_strict(&bytes, &ed25519_dalek::Signature::from_bytes(&signature.0));
            prop_assert_eq!(is_signed_by(&PublicKey(public.to_bytes()), &bytes, &signature), strict.is_ok());
        }
    }
}
