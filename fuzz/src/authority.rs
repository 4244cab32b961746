// SPDX-License-Identifier: Apache-2.0
//! What strangers and issuers sign: grants and revocation lists. An input has texts as they come, or claims that are signed here.

use std::fmt::Display;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ed25519_dalek::{Signer as _, SigningKey};
use netserv_authority::chain::{Chain, check_narrower};
use netserv_authority::grant::Grant;
use netserv_authority::limits::{CHAIN_GRANTS_MAX, GRANT_PORTS_MAX, GRANT_PREFIXES_MAX, REVOKED_MAX};
use netserv_authority::revocations::Revocations;
use netserv_model::{PublicKey, Refusal, RefusalKind, UnixTime};

/// Reads a chain, a grant in each line. One that begins with `{` is a grant's claims, which are signed by the key of its place in the chain.
///
/// # Panics
/// If a grant does not come back as it was, or one in a chain is wider than the one before.
pub fn grant_chain(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n').take(CHAIN_GRANTS_MAX + 1).enumerate();
    let texts: Vec<String> = lines.map(|(place, line)| text("netserv-grant+jwt", &key(place), line)).collect();
    for (place, text) in texts.iter().enumerate() {
        match Grant::parse(text) {
            Ok(grant) => {
                let (from, until) = grant.time();
                assert!(from < until && until <= UnixTime::LAST);
                assert!((1..=GRANT_PREFIXES_MAX).contains(&grant.prefixes.len()));
                assert!(grant.ports.len() <= GRANT_PORTS_MAX);
                let again = Grant::verify(&grant.clone().sign(&key(place)));
                assert_eq!(again, Ok(Grant { iss: public(place), ..grant.clone() }));
                assert_eq!(Grant::verify(text).is_ok(), is_signed(text, &grant.iss));
            }
            Err(error) => says_in_one_line(&error),
        }
    }
    let chain = match Chain::parse(&texts) {
        Ok(chain) => chain,
        Err(error) => return says_in_one_line(&error),
    };
    let grants: Vec<&Grant> = chain.grants().collect();
    assert_eq!(grants.len(), texts.len());
    assert!(grants.windows(2).all(|pair| check_narrower(pair[1], pair[0]).is_ok()));
    let (from, until) = chain.time();
    for grant in &grants {
        assert!(grant.time().0 <= from && until <= grant.time().1);
        let within = |prefix| grant.prefixes.iter().any(|outer| outer.contains(prefix));
        assert!(chain.last().prefixes.iter().all(within));
        assert!(grant.modules_max.is_none_or(|most| chain.modules_max().is_some_and(|least| least <= most)));
    }
    let all_signed = texts.iter().all(|text| Grant::verify(text).is_ok());
    assert_eq!(Chain::verify(&texts).as_ref().ok(), all_signed.then_some(&chain));
}

/// Reads a revocation list. One that begins with `{` is its claims, which are signed here.
///
/// # Panics
/// If a list does not come back as it was, or is beyond its bounds.
pub fn revocation_list(data: &[u8]) {
    let text = text("netserv-revocations+jwt", &key(0), data);
    match Revocations::parse(&text) {
        Ok(list) => {
            assert!(list.grants.len() + list.keys.len() <= REVOKED_MAX && !list.keys.contains(&list.iss));
            assert!(list.made() < list.until(Duration::MAX));
            assert!(list.until(Duration::from_secs(1)) <= UnixTime(list.made().0 + 1000));
            assert_eq!(Revocations::verify(&text).is_ok(), is_signed(&text, &list.iss));
            let signed = Revocations { iss: public(0), ..list.clone() };
            // A list may take back the key that signs here, and then that signs none.
            let is_sound = !list.keys.contains(&public(0));
            assert_eq!(Revocations::verify(&list.sign(&key(0))).ok(), is_sound.then_some(signed));
        }
        Err(error) => says_in_one_line(&error),
    }
}

/// Returns the key of a place in a chain: the seeds of the corpus name the public ones.
fn key(place: usize) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(place).unwrap_or(u8::MAX); 32])
}

fn public(place: usize) -> PublicKey {
    PublicKey(key(place).verifying_key().to_bytes())
}

fn text(typ: &str, key: &SigningKey, line: &[u8]) -> String {
    if !line.starts_with(b"{") {
        return String::from_utf8_lossy(line).into_owned();
    }
    let header = format!(r#"{{"alg":"EdDSA","typ":"{typ}"}}"#);
    let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(line));
    let signature = key.sign(signed.as_bytes());
    format!("{signed}.{}", BASE64.encode(signature.to_bytes()))
}

/// Returns whether a key signed a text in three parts.
fn is_signed(text: &str, by: &PublicKey) -> bool {
    let Some((signed, signature)) = text.rsplit_once('.') else { return false };
    let signature = BASE64.decode(signature).ok().and_then(|bytes| ed25519_dalek::Signature::from_slice(&bytes).ok());
    let by = ed25519_dalek::VerifyingKey::from_bytes(&by.0);
    by.ok().zip(signature).is_some_and(|(by, signature)| by.verify_strict(signed.as_bytes(), &signature).is_ok())
}

fn says_in_one_line(error: &impl Display) {
    let refusal = Refusal::new(RefusalKind::BadProof, error.to_string());
    assert!(!refusal.detail.is_empty() && refusal.detail.chars().all(|letter| !letter.is_control()), "{refusal}");
    assert!(refusal.detail.chars().count() <= 400);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_reach_what_they_are_for() {
        let four: Vec<String> = include_str!("../corpus/grant_chain/four")
            .lines()
            .enumerate()
            .map(|(place, line)| text("netserv-grant+jwt", &key(place), line.as_bytes()))
            .collect();
        assert_eq!(Chain::verify(&four).expect("a chain").modules_max(), Some(1));
        let list = text("netserv-revocations+jwt", &key(0), include_bytes!("../corpus/revocation_list/claims"));
        assert_eq!(Revocations::verify(&list).expect("a list").grants.len(), 1);
    }
}
