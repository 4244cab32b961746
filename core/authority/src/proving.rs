// SPDX-License-Identifier: Apache-2.0
//! Who asks, and by what.

use std::net::IpAddr;

use netserv_model::evidence::{AddressProof, CheckedGrants, Checklist, Evidence, Holder, ProvenAddress};
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::request::{Body, Request};
use netserv_model::{Digest, PublicKey, Refusal, RefusalKind, UnixTime, UserId};
use sha2::{Digest as _, Sha256};

use crate::chain::Chain;
use crate::grant::{digest_of_grant, user_of};
use crate::granted::{Granted, check_list};
use crate::jws::is_signed_by;
use crate::limits::ADDRESS_ASKED_AFTER;
use crate::revocations::Lists;
use crate::vouched::{Vouched, check_address};

/// Why it is not known yet who asks, or that nobody does who may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// It is refused.
    Refused(Refusal),
    /// Somebody has to be asked; what they say is for [`Authority::vouched_for`](crate::Authority::vouched_for).
    Ask(Question),
}

/// What has to be known of a request before it is known who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// What an address says of the user.
    Address(IpAddr),
    /// Who is behind a checklist that names a grant.
    Holder {
        /// The checklist.
        checklist: Checklist,
        /// The grant's digest.
        grant: Digest,
    },
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// What lies at the address.
    Address(Digest),
    /// Who is behind the checklist.
    Holder(Holder),
}

impl From<Refusal> for Unproven {
    fn from(refusal: Refusal) -> Unproven {
        Unproven::Refused(refusal)
    }
}

/// Who asks, and what was proven by that.
#[derive(Debug)]
pub struct Proof<'a> {
    /// The user who signed the request.
    pub user: &'a UserId,
    /// By which key; nothing if the operator takes unsigned requests.
    pub key: Option<PublicKey>,
    pub(crate) granted: Option<Granted>,
}

impl Proof<'_> {
    /// Returns whether the request brought evidence that is to be accepted.
    pub fn brings_evidence(&self) -> bool {
        self.granted.is_some()
    }
}

/// A request of which it is to be proven that its user asks.
pub(crate) struct Asking<'a, 'r> {
    pub(crate) policy: &'a NodePolicy,
    pub(crate) lists: &'a Lists,
    /// What the user has proven before that is in force.
    pub(crate) known: Option<&'a Granted>,
    pub(crate) user: &'r UserId,
    pub(crate) request: &'r Request,
    pub(crate) now: UnixTime,
}

impl<'r> Asking<'_, 'r> {
    /// By what the user may do already, as the policy says or since it has proven it.
    pub(crate) fn by_rights(&self, may: &UserPolicy, is_named: bool) -> Result<Proof<'r>, Refusal> {
        // Who signs the operator's packages does not sign its requests.
        let key = match self.policy.operator.as_ref().filter(|operator| operator.user == *self.user) {
            Some(operator) => check_signature(std::slice::from_ref(&operator.key), false, self.request)?,
            None => check_signature(&may.keys, self.policy.accept_unsigned && is_named, self.request)?,
        };
        Ok(Proof { user: self.user, key, granted: None })
    }

    /// By grants of an issuer.
    pub(crate) fn by_grants(&self) -> Result<Proof<'r>, Refusal> {
        let vouched = Vouched::asked(self.policy, &self.request.grants, |chain| self.check_asker(chain))?;
        self.newly(Evidence::Grants(self.request.grants.clone()), vouched)
    }

    /// Everything about a proof by an address that can be known before the address is asked.
    pub(crate) fn by_address(&self, AddressProof { address, key, .. }: AddressProof) -> Result<Proof<'r>, Unproven> {
        check_own(&key, self.user)?;
        check_signature(&[key], false, self.request)?;
        check_address(self.policy, address, key, self.now)?;
        let is_known = self.known.is_some_and(|granted| match &granted.evidence {
            Evidence::Address(proven) => {
                let is_fresh = proven.asked.distance(self.now) <= ADDRESS_ASKED_AFTER;
                proven.address == address && (is_fresh || !matches!(self.request.body, Body::Setup(_)))
            }
            Evidence::Grants(_) | Evidence::Checklist(_) => false,
        });
        if is_known {
            Ok(Proof { user: self.user, key: Some(key), granted: None })
        } else {
            Err(Unproven::Ask(Question::Address(address)))
        }
    }

    /// Everything about grants of a holder of prefixes that can be known before it is known who is behind the checklist.
    pub(crate) fn by_checklist(&self, checklist: &Checklist) -> Result<Proof<'r>, Unproven> {
        let grants = &self.request.grants;
        let vouched = Vouched::asked_by_checklist(self.policy, grants, |chain| self.check_asker(chain))?;
        vouched.check_time(self.now)?;
        check_list(self.lists, &vouched, self.now, false)?;
        let is_known = self.known.is_some_and(|granted| match &granted.evidence {
            Evidence::Checklist(checked) => checked.grants == *grants && checked.checklist == *checklist,
            Evidence::Grants(_) | Evidence::Address(_) => false,
        });
        if is_known {
            return Ok(Proof { user: self.user, key: vouched.may.keys.first().copied(), granted: None });
        }
        let (checklist, grant) = (checklist.clone(), digest_of_grant(&grants[0]));
        Err(Unproven::Ask(Question::Holder { checklist, grant }))
    }

    /// By the answer to a question.
    pub(crate) fn by_answer(&self, said: Said) -> Result<Proof<'r>, Refusal> {
        let evidence = match said {
            Said::Address(said) => {
                let proof = self.request.address_proof.ok_or_else(nothing_asked)?;
                if said != digest_of(&proof) {
                    let detail = format!("what lies at {} is not for this key and random number", proof.address);
                    return Err(Refusal::new(RefusalKind::BadProof, detail));
                }
                let AddressProof { address, key, .. } = proof;
                Evidence::Address(ProvenAddress { address, key, asked: self.now })
            }
            Said::Holder(holder) => {
                let (grants, checklist) = (self.request.grants.clone(), self.request.checklist.clone());
                let checklist = checklist.ok_or_else(nothing_asked)?;
                Evidence::Checklist(Box::new(CheckedGrants { grants, checklist, holder }))
            }
        };
        let vouched = Vouched::by(self.policy, &evidence)?;
        self.newly(evidence, vouched)
    }

    /// Returns the proof by what evidence gives, if it holds now and is not taken back.
    fn newly(&self, evidence: Evidence, vouched: Vouched) -> Result<Proof<'r>, Refusal> {
        vouched.check_time(self.now)?;
        check_list(self.lists, &vouched, self.now, false)?;
        let key = vouched.may.keys.first().copied();
        Ok(Proof { user: self.user, key, granted: Some(Granted::new(evidence, Ok(vouched))) })
    }

    fn check_asker(&self, chain: &Chain) -> Result<(), Refusal> {
        check_own(&chain.last().sub, self.user)?;
        check_signature(&[chain.last().sub], false, self.request).map(drop)
    }
}

/// Says that an answer is to no question of the request's.
pub(crate) fn nothing_asked() -> Refusal {
    Refusal::new(RefusalKind::Unsigned, "the request names no user, or no evidence")
}

/// Returns what has to lie at an address by which it vouches: SHA-256 over a fixed text, the key and the random number.
pub fn digest_of(proof: &AddressProof) -> Digest {
    let AddressProof { address: _, key, random } = proof;
    let text = [&b"netserv-address-proof/1\n"[..], &key.0, &random.0].concat();
    Digest(Sha256::digest(text).into())
}

/// Checks that a user is named by its key.
fn check_own(key: &PublicKey, user: &UserId) -> Result<(), Refusal> {
    let own = user_of(key);
    if own == *user {
        return Ok(());
    }
    let detail = format!("the proof is for user `{own}`, the request names `{user}`");
    Err(Refusal::new(RefusalKind::BadProof, detail))
}

/// Returns the key that signed a request; nothing if it need not be signed.
fn check_signature(keys: &[PublicKey], accept_unsigned: bool, request: &Request) -> Result<Option<PublicKey>, Refusal> {
    let Some(signature) = request.signature else {
        let refusal = Refusal::new(RefusalKind::Unsigned, "the node takes only signed requests");
        return if accept_unsigned { Ok(None) } else { Err(refusal) };
    };
    let signed_by = |key: &PublicKey| is_signed_by(key, &request.signed_bytes, &signature);
    let refusal = || Refusal::new(RefusalKind::BadSignature, format!("none of the user's {} keys fits", keys.len()));
    keys.iter().copied().find(signed_by).map(Some).ok_or_else(refusal)
}
