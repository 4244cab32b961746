// SPDX-License-Identifier: Apache-2.0
//! What needs keys.

use ed25519_dalek::{Signature, VerifyingKey};
use hmac::{Hmac, Mac};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use sha2::{Sha256, Sha512};

use crate::error::HostError;
use crate::limits;

/// How to seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305,
    /// AES-256 in Galois/Counter Mode (RFC 5116).
    Aes256Gcm,
}

/// Returns HMAC-SHA-256 (RFC 2104).
///
/// # Errors
/// [`HostError::TooLarge`] for more than [`limits::CRYPTO_BYTES_MAX`] bytes.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> Result<Vec<u8>, HostError> {
    check(&[key, message])?;
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).map_err(|_| HostError::Invalid)?;
    mac.update(message);
    Ok(mac.finalize().into_bytes().to_vec())
}

/// Returns HMAC-SHA-512 (RFC 2104).
///
/// # Errors
/// [`HostError::TooLarge`] for more than [`limits::CRYPTO_BYTES_MAX`] bytes.
pub fn hmac_sha512(key: &[u8], message: &[u8]) -> Result<Vec<u8>, HostError> {
    check(&[key, message])?;
    let mut mac = <Hmac<Sha512> as Mac>::new_from_slice(key).map_err(|_| HostError::Invalid)?;
    mac.update(message);
    Ok(mac.finalize().into_bytes().to_vec())
}

/// Returns whether two byte strings are equal, in a time that tells nothing of where they differ.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b));
    std::hint::black_box(differ) == 0 && a.len() == b.len()
}

/// Returns whether an Ed25519 signature (RFC 8032) is by a key. Keys of small order, with which anybody could sign,
/// never fit.
///
/// # Errors
/// [`HostError::Invalid`] for a key that is none of 32 bytes or a signature of another length than 64;
/// [`HostError::TooLarge`] for more than [`limits::CRYPTO_BYTES_MAX`] bytes.
pub fn verify_ed25519(key: &[u8], message: &[u8], signature: &[u8]) -> Result<bool, HostError> {
    check(&[message])?;
    let key: &[u8; 32] = key.try_into().map_err(|_| HostError::Invalid)?;
    let signature: &[u8; 64] = signature.try_into().map_err(|_| HostError::Invalid)?;
    let key = VerifyingKey::from_bytes(key).map_err(|_| HostError::Invalid)?;
    Ok(key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

/// Encrypts, and adds 16 bytes that tell a forgery. `key` has 32 bytes, `nonce` 12; no nonce may be used with a key
/// twice.
///
/// # Errors
/// [`HostError::Invalid`] for another length, [`HostError::TooLarge`] for more than [`limits::CRYPTO_BYTES_MAX`] bytes.
pub fn seal(cipher: Cipher, key: &[u8], nonce: &[u8], message: &[u8], associated: &[u8]) -> Result<Vec<u8>, HostError> {
    check(&[message, associated])?;
    let (key, nonce) = key_and_nonce(cipher, key, nonce)?;
    let mut sealed = Vec::with_capacity(message.len() + key.algorithm().tag_len());
    sealed.extend_from_slice(message);
    key.seal_in_place_append_tag(nonce, Aad::from(associated), &mut sealed).map_err(|_| HostError::TooLarge)?;
    Ok(sealed)
}

/// Decrypts what [`seal`] made.
///
/// # Errors
/// [`HostError::NotFound`] for a forgery, and as [`seal`].
pub fn open(cipher: Cipher, key: &[u8], nonce: &[u8], sealed: &[u8], associated: &[u8]) -> Result<Vec<u8>, HostError> {
    check(&[sealed, associated])?;
    let (key, nonce) = key_and_nonce(cipher, key, nonce)?;
    let mut opened = sealed.to_vec();
    let length = key.open_in_place(nonce, Aad::from(associated), &mut opened).map_err(|_| HostError::NotFound)?.len();
    opened.truncate(length);
    Ok(opened)
}

fn key_and_nonce(cipher: Cipher, key: &[u8], nonce: &[u8]) -> Result<(LessSafeKey, Nonce), HostError> {
    let algorithm = match cipher {
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        Cipher::Aes256Gcm => &AES_256_GCM,
    };
    let key = UnboundKey::new(algorithm, key).map_err(|_| HostError::Invalid)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| HostError::Invalid)?;
    Ok((LessSafeKey::new(key), nonce))
}

fn check(parts: &[&[u8]]) -> Result<(), HostError> {
    let fits = parts.iter().map(|part| part.len()).sum::<usize>() <= limits::CRYPTO_BYTES_MAX;
    if fits { Ok(()) } else { Err(HostError::TooLarge) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CIPHERS: [Cipher; 2] = [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm];

    #[test]
    fn hmacs_are_those_of_rfc_4231() {
        let mac = hmac_sha256(b"Jefe", b"what do ya want for nothing?").unwrap();
        assert_eq!(hex(&mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let mac = hmac_sha512(b"Jefe", b"what do ya want for nothing?").unwrap();
        assert!(hex(&mac).starts_with("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"));
    }

    #[test]
    fn strings_are_compared() {
        assert!(equal(b"", b"") && equal(b"abc", b"abc"));
        assert!(!equal(b"abc", b"abd") && !equal(b"abc", b"ab") && !equal(b"", b"a"));
    }

    #[test]
    fn signatures_are_verified_as_in_rfc_8032() {
        let key = bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        let signature = bytes(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        );
        assert_eq!(verify_ed25519(&key, &[0x72], &signature), Ok(true));
        assert_eq!(verify_ed25519(&key, &[0x73], &signature), Ok(false));
        assert_eq!(verify_ed25519(&key[1..], &[0x72], &signature), Err(HostError::Invalid));
        assert_eq!(verify_ed25519(&key, &[0x72], &signature[1..]), Err(HostError::Invalid));
        // The neutral element as a key signs everything in a lax implementation.
        let (mut neutral, mut of_neutral) = ([0; 32], [0; 64]);
        (neutral[0], of_neutral[0]) = (1, 1);
        assert_eq!(verify_ed25519(&neutral, b"anything", &of_neutral), Ok(false));
    }

    #[test]
    fn aead_is_that_of_the_standards() {
        // RFC 8439 §2.8.2.
        let key: Vec<u8> = (0x80..0xa0).collect();
        let nonce = bytes("070000004041424344454647");
        let text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
                     sunscreen would be it.";
        let sealed = seal(Cipher::ChaCha20Poly1305, &key, &nonce, text, &bytes("50515253c0c1c2c3c4c5c6c7")).unwrap();
        assert!(hex(&sealed).starts_with("d31a8d34648e60db7b86afbc53ef7ec2"));
        assert!(hex(&sealed).ends_with("1ae10b594f09e26a7e902ecbd0600691"));
        // The GCM specification's test case 14.
        let sealed = seal(Cipher::Aes256Gcm, &[0; 32], &[0; 12], &[0; 16], b"").unwrap();
        assert_eq!(hex(&sealed), "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
    }

    #[test]
    fn lengths_are_checked() {
        for cipher in CIPHERS {
            for (key, nonce) in [(31, 12), (33, 12), (32, 11), (32, 13), (0, 0)] {
                assert_eq!(seal(cipher, &vec![0; key], &vec![0; nonce], b"", b""), Err(HostError::Invalid));
                assert_eq!(open(cipher, &vec![0; key], &vec![0; nonce], b"", b""), Err(HostError::Invalid));
            }
            assert_eq!(open(cipher, &[0; 32], &[0; 12], &[0; 15], b""), Err(HostError::NotFound));
        }
        let long = vec![0; limits::CRYPTO_BYTES_MAX + 1];
        assert_eq!(seal(CIPHERS[0], &[0; 32], &[0; 12], &long, b""), Err(HostError::TooLarge));
        assert_eq!(open(CIPHERS[0], &[0; 32], &[0; 12], b"", &long), Err(HostError::TooLarge));
        assert_eq!(hmac_sha256(&long, b""), Err(HostError::TooLarge));
        assert_eq!(hmac_sha512(b"", &long), Err(HostError::TooLarge));
        assert_eq!(verify_ed25519(&[0; 32], &long, &[0; 64]), Err(HostError::TooLarge));
        assert!(seal(CIPHERS[0], &[0; 32], &[0; 12], &long[1..], b"").is_ok());
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_opened_and_forgeries_are_not(
            message in proptest::collection::vec(any::<u8>(), 0..100),
            flipped in any::<proptest::sample::Index>(),
            bit in 0_u8..8,
            which in 0_usize..2,
        ) {
            let cipher = CIPHERS[which];
            let mut sealed = seal(cipher, &[7; 32], &[9; 12], &message, b"head").unwrap();
            prop_assert_eq!(sealed.len(), message.len() + 16);
            prop_assert_eq!(open(cipher, &[7; 32], &[9; 12], &sealed, b"head"), Ok(message));
            prop_assert_eq!(open(cipher, &[7; 32], &[9; 12], &sealed, b"Head"), Err(HostError::NotFound));
            let at = flipped.index(sealed.len());
            sealed[at] ^= 1_u8 << bit;
            prop_assert_eq!(open(cipher, &[7; 32], &[9; 12], &sealed, b"head"), Err(HostError::NotFound));
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }
}
