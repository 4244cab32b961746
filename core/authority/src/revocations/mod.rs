// SPDX-License-Identifier: Apache-2.0
//! What an issuer takes back before its time: lists of grants and keys, of which the newest counts.
//!
//! A list is a JWS as a grant is, signed by a key of the issuer. Its claims are those of RFC 7519 where that has one: `iss` is a key, `iat` and
//! `exp` seconds since 1970. A claim that is not known here may take something back, so a list with one is none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ed25519_dalek::SigningKey;
use netserv_model::policy::{Issuer, NodePolicy};
use netserv_model::{Digest, PublicKey, UnixTime};
use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::grant::digest_of_grant;
use crate::jws::{self, Malformed};
use crate::limits::{REVOCATIONS_BYTES_MAX, REVOKED_MAX};

#[cfg(test)]
mod tests;

/// What an issuer has taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Revocations {
    /// The key that signs it.
    pub iss: PublicKey,
    /// When it was made, in seconds since 1970.
    pub iat: u64,
    /// When it ends, in seconds since 1970: grants of the issuer need another one from then on.
    pub exp: u64,
    /// Its number. One with a higher number takes its place.
    pub number: u64,
    /// Grants that do not count any more, by [`digest_of_grant`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub grants: BTreeSet<Digest>,
    /// Keys of which no grant counts any more, neither by them nor for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub keys: BTreeSet<PublicKey>,
}

/// Why a text is no list of an issuer, or not one that takes the place of the list in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevocationsError {
    /// It is longer than a list may be.
    #[error("a revocation list has at most {REVOCATIONS_BYTES_MAX} bytes")]
    TooLong,
    /// It has not three parts of base64url (RFC 7515 §3.1).
    #[error("a revocation list has three parts of base64url with dots between")]
    NotCompact,
    /// Its header is not that of a list.
    #[error("a revocation list's header names `alg` EdDSA, `typ` {TYPE} and perhaps a `kid`")]
    Header,
    /// Its claims are not those of a list.
    #[error("a revocation list's claims: {0}")]
    Claims(String),
    /// Another key signed it, or nobody did.
    #[error("its issuer {0} did not sign a revocation list")]
    Signature(PublicKey),
    /// It is signed by a key that is not the issuer's.
    #[error("the revocation list is signed by {0}, which is no key of the issuer")]
    Issuer(PublicKey),
    /// It is signed by a key that the list in force takes back.
    #[error("the revocation list is signed by {0}, which the list before takes back")]
    Revoked(PublicKey),
    /// Its number is lower than that of the list in force, or the same and it says something else.
    #[error("the revocation list has number {number}, after another one with number {in_force}")]
    Older {
        /// Its number.
        number: u64,
        /// That of the list in force.
        in_force: u64,
    },
}

impl Revocations {
    /// Returns the list as text, signed by its issuer, whose public key is `iss` from here on.
    pub fn sign(mut self, issuer: &SigningKey) -> String {
        self.iss = PublicKey(issuer.verifying_key().to_bytes());
        jws::sign(TYPE, &self, issuer)
    }

    /// Understands a text that may be anything, without looking at who signed it.
    ///
    /// # Errors
    /// It is no list.
    pub fn parse(text: &str) -> Result<Revocations, RevocationsError> {
        if text.len() > REVOCATIONS_BYTES_MAX {
            return Err(RevocationsError::TooLong);
        }
        let list: Revocations = jws::parse(TYPE, text)?;
        list.check()?;
        Ok(list)
    }

    /// Understands a text and checks that its issuer signed it.
    ///
    /// # Errors
    /// It is no list, or nobody's.
    pub fn verify(text: &str) -> Result<Revocations, RevocationsError> {
        let list = Revocations::parse(text)?;
        if jws::is_signed(text, &list.iss)? { Ok(list) } else { Err(RevocationsError::Signature(list.iss)) }
    }

    /// Returns when it was made.
    pub fn made(&self) -> UnixTime {
        UnixTime::from_secs(self.iat)
    }

    /// Returns until when it is good for who takes none that is older.
    pub fn until(&self, age_max: Duration) -> UnixTime {
        UnixTime::from_secs(self.exp).min(self.made() + age_max)
    }

    /// Checks that its claims are within their bounds, as they are to be before it is signed.
    ///
    /// # Errors
    /// [`RevocationsError::Claims`] says which is not.
    pub fn check(&self) -> Result<(), RevocationsError> {
        let bad = |detail: String| Err(RevocationsError::Claims(detail));
        let entries = self.grants.len() + self.keys.len();
        if entries > REVOKED_MAX {
            return bad(format!("{entries} grants and keys, at most {REVOKED_MAX} are taken back"));
        }
        if self.exp > UnixTime::LAST.0 / 1000 {
            return bad("`exp` is after the year 9999; it is in seconds".to_owned());
        }
        if self.iat >= self.exp {
            return bad("`exp` is not after `iat`".to_owned());
        }
        // No list could come after it.
        if self.keys.contains(&self.iss) {
            return bad("`keys` has the key that signs it".to_owned());
        }
        Ok(())
    }

    /// Returns what it takes back of a chain, if it does.
    fn finds(&self, of: &Revocable) -> Option<String> {
        let key = || of.keys.iter().find(|key| self.keys.contains(key)).map(|key| format!("key {key}"));
        let grant = || of.grants.iter().find(|grant| self.grants.contains(grant)).map(|grant| format!("grant {grant}"));
        key().or_else(grant)
    }
}

impl From<Malformed> for RevocationsError {
    fn from(malformed: Malformed) -> RevocationsError {
        match malformed {
            Malformed::NotCompact => RevocationsError::NotCompact,
            Malformed::Header => RevocationsError::Header,
            Malformed::Claims(error) => RevocationsError::Claims(error),
        }
    }
}

/// What of a chain its issuer can take back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revocable {
    issuer: String,
    age_max: Duration,
    grants: Vec<Digest>,
    keys: Vec<PublicKey>,
}

impl Revocable {
    /// Returns that of a chain of grants; nothing if the operator has asked for no lists of their issuer.
    pub(crate) fn of(issuer: &Issuer, chain: &Chain, texts: &[String]) -> Option<Revocable> {
        let age_max = issuer.revocations.as_ref()?.age_max;
        let grants = texts.iter().map(|text| digest_of_grant(text)).collect();
        let keys = std::iter::once(chain.root().iss).chain(chain.grants().map(|grant| grant.sub)).collect();
        Some(Revocable { issuer: issuer.name.clone(), age_max, grants, keys })
    }
}

/// The newest list of each issuer of which the operator wants lists.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    by_issuer: BTreeMap<String, Known>,
}

#[derive(Debug, Default)]
struct Known {
    list: Option<Revocations>,
    /// Whether the first one is on its way: users who have rights keep them meanwhile.
    is_awaited: bool,
}

impl Lists {
    /// Returns the newest list of an issuer.
    pub(crate) fn of(&self, issuer: &str) -> Option<&Revocations> {
        self.by_issuer.get(issuer)?.list.as_ref()
    }

    /// Has users who have rights keep them until the first list is there, or for no longer.
    pub(crate) fn set_awaited(&mut self, issuer: &str, is_awaited: bool) {
        self.by_issuer.entry(issuer.to_owned()).or_default().is_awaited = is_awaited;
    }

    /// Puts a list into force, whether it is still good or not: what it takes back stays so. Returns whether it is another one than before.
    pub(crate) fn set(&mut self, issuer: &Issuer, text: &str) -> Result<bool, RevocationsError> {
        let list = Revocations::verify(text)?;
        if !issuer.keys.contains(&list.iss) {
            return Err(RevocationsError::Issuer(list.iss));
        }
        let known = self.by_issuer.get(&issuer.name).and_then(|known| known.list.as_ref());
        if known == Some(&list) {
            return Ok(false);
        }
        if let Some(before) = known {
            let (number, in_force) = (list.number, before.number);
            if number <= in_force {
                return Err(RevocationsError::Older { number, in_force });
            }
            if before.keys.contains(&list.iss) {
                return Err(RevocationsError::Revoked(list.iss));
            }
        }
        self.by_issuer.entry(issuer.name.clone()).or_default().list = Some(list);
        Ok(true)
    }

    /// Forgets lists of issuers that the policy does not name or wants no lists of, and those by keys that are not theirs any more.
    pub(crate) fn set_policy(&mut self, policy: &NodePolicy) {
        self.by_issuer.retain(|name, known| {
            let has_lists = |issuer: &&Issuer| issuer.name == *name && issuer.revocations.is_some();
            let issuer = policy.issuers.iter().find(has_lists);
            known.list.take_if(|list| issuer.is_none_or(|issuer| !issuer.keys.contains(&list.iss)));
            issuer.is_some()
        });
    }

    /// Says why a chain does not count, if it does not: it is taken back, or no list is good that would say so. Without a list that is good,
    /// users who are `known` keep their rights while the first one is awaited.
    pub(crate) fn check(&self, of: &Revocable, now: UnixTime, is_known: bool) -> Result<(), String> {
        let known = self.by_issuer.get(&of.issuer);
        let list = known.and_then(|known| known.list.as_ref());
        if let Some((list, what)) = list.and_then(|list| Some((list, list.finds(of)?))) {
            let made = list.made();
            return Err(format!("revocation list {} of {made} takes back {what}: ask for another grant", list.number));
        }
        let good_until = list.map(|list| list.until(of.age_max));
        if good_until.is_some_and(|until| now < until) || is_known && known.is_some_and(|known| known.is_awaited) {
            return Ok(());
        }
        let why = match good_until {
            Some(until) => format!("the revocation list was good until {until}, it is {now} here"),
            None => "the node has no revocation list".to_owned(),
        };
        Err(format!("{why}: wait, or ask the operator (`netserv node status`)"))
    }

    /// Returns until when the list is good that a chain depends on.
    pub(crate) fn good_until(&self, of: &Revocable) -> Option<UnixTime> {
        self.of(&of.issuer).map(|list| list.until(of.age_max))
    }
}

const TYPE: &str = "netserv-revocations+jwt";
