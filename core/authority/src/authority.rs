// SPDX-License-Identifier: Apache-2.0
//! The users that have rights on a node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::evidence::{AddressProof, CheckedGrants, Checklist, Evidence, Holder, ProvenAddress};
use netserv_model::policy::{AddressPlan, NodePolicy, UserPolicy};
use netserv_model::request::{Body, Request};
use netserv_model::{Digest, Instant, Now, PublicKey, Refusal, RefusalKind, UnixTime, UserId};
use sha2::{Digest as _, Sha256};

use crate::chain::Chain;
use crate::grant::{digest_of_grant, user_of};
use crate::jws::is_signed_by;
use crate::limits::{ADDRESS_ASKED_AFTER, GRANTED_USERS_MAX, UNKNOWN_KEPT_TIME};
use crate::revocations::{Lists, Revocations, RevocationsError};
use crate::vouched::{Vouched, Voucher, check_address};

/// The users whom the node's policy does not name and who have proven their rights, beside those whom it names.
#[derive(Debug, Default)]
pub struct Authority {
    granted: BTreeMap<UserId, Granted>,
    lists: Lists,
}

/// Why it is not known yet who asks, or that nobody does who may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// It is refused.
    Refused(Refusal),
    /// Somebody has to be asked; what they say is for [`Authority::vouched_for`].
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

/// A user who is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The user.
    pub user: UserId,
    /// What its rights came from, in words.
    pub basis: String,
    /// Why it has none.
    pub why: Refusal,
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
    granted: Option<Granted>,
}

impl Proof<'_> {
    /// Returns whether the request brought evidence that is to be accepted.
    pub fn brings_evidence(&self) -> bool {
        self.granted.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Granted {
    evidence: Evidence,
    /// What it gives by the policy in force, or why nothing.
    vouched: Result<Vouched, Refusal>,
    /// Why nobody is behind its checklist, as it was found last.
    denied: Option<Refusal>,
    /// Whether it was not found out last time who is behind it.
    is_doubted: bool,
    /// Since when it gives nothing for that alone.
    unknown: Option<Instant>,
}

impl Granted {
    fn new(evidence: Evidence, vouched: Result<Vouched, Refusal>) -> Granted {
        Granted { evidence, vouched, denied: None, is_doubted: false, unknown: None }
    }

    fn basis(&self) -> String {
        match (&self.evidence, &self.vouched) {
            (Evidence::Grants(texts), vouched) => {
                let digest = digest_of_grant(texts.last().map_or("", String::as_str));
                match vouched {
                    Ok(Vouched { voucher: Voucher::Issuer(name), .. }) => format!("grant of {name} {digest}"),
                    Ok(_) | Err(_) => format!("grant {digest}"),
                }
            }
            (Evidence::Address(proven), _) => format!("address {}", proven.address),
            (Evidence::Checklist(checked), _) => {
                format!("checklist {}", Digest(Sha256::digest(checked.checklist.der()).into()))
            }
        }
    }

    /// Returns the key that signs the user's requests.
    fn key(&self) -> Option<PublicKey> {
        match &self.evidence {
            Evidence::Address(proven) => Some(proven.key),
            Evidence::Grants(grants) => last_key(grants),
            Evidence::Checklist(checked) => last_key(&checked.grants),
        }
    }
}

impl Authority {
    /// Returns the user who has proven to ask, and what by. Nothing is changed by it.
    ///
    /// # Errors
    /// The request names no user (`unsigned`), one whom the policy does not know (`unknown-user`) nor a good proof (`bad-proof`), or is not signed
    /// by the user (`unsigned`, `bad-signature`). Or somebody has to be asked first.
    pub fn prove<'a>(&self, policy: &NodePolicy, request: &'a Request, now: UnixTime) -> Result<Proof<'a>, Unproven> {
        let Some(user) = &request.user else {
            return Err(Refusal::new(RefusalKind::Unsigned, "the request names no user").into());
        };
        let is_named = policy.users.contains_key(user);
        if let Some(proof) = request.address_proof.filter(|_| !is_named && request.grants.is_empty()) {
            return self.prove_by_address(policy, user, request, proof, now);
        }
        if is_named || request.grants.is_empty() {
            let may = self.rights(policy, user, now)?;
            // Who signs the operator's packages does not sign its requests.
            let key = match policy.operator.as_ref().filter(|operator| operator.user == *user) {
                Some(operator) => check_signature(std::slice::from_ref(&operator.key), false, request)?,
                None => check_signature(&may.keys, policy.accept_unsigned && is_named, request)?,
            };
            return Ok(Proof { user, key, granted: None });
        }
        let is_asker = |chain: &Chain| {
            check_own(&chain.last().sub, user)?;
            check_signature(&[chain.last().sub], false, request).map(|_| ())
        };
        if let Some(checklist) = &request.checklist {
            return self.prove_by_checklist(policy, user, &request.grants, checklist, now, is_asker);
        }
        let vouched = Vouched::asked(policy, &request.grants, is_asker)?;
        self.newly_proven(user, Evidence::Grants(request.grants.clone()), vouched, now).map_err(Unproven::from)
    }

    /// Everything about a proof by an address that can be known before the address is asked.
    fn prove_by_address<'a>(
        &self,
        policy: &NodePolicy,
        user: &'a UserId,
        request: &'a Request,
        AddressProof { address, key, .. }: AddressProof,
        now: UnixTime,
    ) -> Result<Proof<'a>, Unproven> {
        check_own(&key, user)?;
        check_signature(&[key], false, request)?;
        check_address(policy, address, key, now)?;
        let known = self.granted.get(user).filter(|_| self.vouched(user, now).is_some());
        let is_known = known.is_some_and(|granted| match &granted.evidence {
            Evidence::Address(proven) => {
                let is_fresh = proven.asked.distance(now) <= ADDRESS_ASKED_AFTER;
                proven.address == address && (is_fresh || !matches!(request.body, Body::Setup(_)))
            }
            Evidence::Grants(_) | Evidence::Checklist(_) => false,
        });
        if is_known {
            Ok(Proof { user, key: Some(key), granted: None })
        } else {
            Err(Unproven::Ask(Question::Address(address)))
        }
    }

    /// Everything about grants of a holder of prefixes that can be known before it is known who is behind the checklist.
    fn prove_by_checklist<'a>(
        &self,
        policy: &NodePolicy,
        user: &'a UserId,
        grants: &[String],
        checklist: &Checklist,
        now: UnixTime,
        is_asker: impl FnOnce(&Chain) -> Result<(), Refusal>,
    ) -> Result<Proof<'a>, Unproven> {
        let vouched = Vouched::asked_by_checklist(policy, grants, is_asker)?;
        vouched.check_time(now)?;
        check_list(&self.lists, &vouched, now, false)?;
        let known = self.granted.get(user).filter(|_| self.vouched(user, now).is_some());
        let is_known = known.is_some_and(|granted| match &granted.evidence {
            Evidence::Checklist(checked) => checked.grants == grants && checked.checklist == *checklist,
            Evidence::Grants(_) | Evidence::Address(_) => false,
        });
        if is_known {
            return Ok(Proof { user, key: vouched.may.keys.first().copied(), granted: None });
        }
        let (checklist, grant) = (checklist.clone(), digest_of_grant(&grants[0]));
        Err(Unproven::Ask(Question::Holder { checklist, grant }))
    }

    /// Returns the user who has proven to ask by the answer to a question.
    ///
    /// # Errors
    /// The answer is not for this user, or gives nothing.
    pub fn vouched_for<'a>(
        &self,
        policy: &NodePolicy,
        request: &'a Request,
        said: Said,
        now: UnixTime,
    ) -> Result<Proof<'a>, Refusal> {
        let nothing_asked = || Refusal::new(RefusalKind::Unsigned, "the request names no user, or no evidence");
        let user = request.user.as_ref().ok_or_else(nothing_asked)?;
        let evidence = match said {
            Said::Address(said) => {
                let proof = request.address_proof.ok_or_else(nothing_asked)?;
                if said != digest_of(&proof) {
                    let detail = format!("what lies at {} is not for this key and random number", proof.address);
                    return Err(Refusal::new(RefusalKind::BadProof, detail));
                }
                let AddressProof { address, key, .. } = proof;
                Evidence::Address(ProvenAddress { address, key, asked: now })
            }
            Said::Holder(holder) => {
                let (grants, checklist) = (request.grants.clone(), request.checklist.clone());
                let checklist = checklist.ok_or_else(nothing_asked)?;
                Evidence::Checklist(Box::new(CheckedGrants { grants, checklist, holder }))
            }
        };
        let vouched = Vouched::by(policy, &evidence)?;
        self.newly_proven(user, evidence, vouched, now)
    }

    /// Returns the proof by what evidence gives, if it holds now and is not taken back.
    fn newly_proven<'a>(
        &self,
        user: &'a UserId,
        evidence: Evidence,
        vouched: Vouched,
        now: UnixTime,
    ) -> Result<Proof<'a>, Refusal> {
        vouched.check_time(now)?;
        check_list(&self.lists, &vouched, now, false)?;
        let key = vouched.may.keys.first().copied();
        Ok(Proof { user, key, granted: Some(Granted::new(evidence, Ok(vouched))) })
    }

    /// Returns whether some user's rights depend on a checklist.
    pub fn has_checklists(&self) -> bool {
        self.granted.values().any(|granted| matches!(granted.evidence, Evidence::Checklist(_)))
    }

    /// Returns the next user after one, or the first, whose rights depend on a checklist, with what to ask of it.
    pub fn next_checklist(&self, after: Option<&UserId>) -> Option<(&UserId, Question)> {
        let later = |user: &UserId| after.is_none_or(|after| user > after);
        self.granted.iter().filter(|(user, _)| later(user)).find_map(|(user, granted)| match &granted.evidence {
            Evidence::Checklist(checked) => {
                let (checklist, grant) = (checked.checklist.clone(), digest_of_grant(checked.grants.first()?));
                Some((user, Question::Holder { checklist, grant }))
            }
            Evidence::Grants(_) | Evidence::Address(_) => None,
        })
    }

    /// Takes over who is behind a user's checklist now, or why nobody is; returns whether the user has lost something by that. That it was not
    /// found out counts the second time in a row, as the relying party may be replacing files.
    pub fn checked_again(
        &mut self,
        policy: &NodePolicy,
        now: Instant,
        user: &UserId,
        asked: &Checklist,
        said: Result<Holder, Refusal>,
    ) -> bool {
        let Some(granted) = self.granted.get_mut(user) else { return false };
        let checked = match &mut granted.evidence {
            Evidence::Checklist(checked) if checked.checklist == *asked => checked,
            // It has other evidence by now.
            Evidence::Checklist(_) | Evidence::Grants(_) | Evidence::Address(_) => return false,
        };
        let is_unknown = said.as_ref().is_err_and(may_pass) && granted.vouched.is_ok();
        granted.is_doubted = is_unknown && !granted.is_doubted;
        if granted.is_doubted {
            return false;
        }
        granted.unknown = said.as_ref().is_err_and(may_pass).then(|| granted.unknown.unwrap_or(now));
        granted.denied = said.as_ref().err().cloned();
        let vouched = said.and_then(|holder| {
            checked.holder = holder;
            Vouched::by_checklist(policy, checked)
        });
        let before = std::mem::replace(&mut granted.vouched, vouched);
        match (before, &granted.vouched) {
            (Ok(before), Ok(now)) => !now.has_all_of(&before) || now.until < before.until,
            (Ok(_), Err(_)) => true,
            (Err(_), Ok(_) | Err(_)) => false,
        }
    }

    /// Returns whether it was not found out last time who is behind some checklist.
    pub fn has_doubts(&self) -> bool {
        self.granted.values().any(|granted| granted.is_doubted)
    }

    /// Puts into force what a request proved; returns who is forgotten for that. `has_modules` says whether something of a user's depends
    /// on its rights.
    ///
    /// # Errors
    /// The grant takes away what another one gives that is in force and that modules depend on, or there are too many users
    /// (`quota-exceeded`).
    pub fn accept(
        &mut self,
        proof: Proof<'_>,
        now: UnixTime,
        has_modules: impl Fn(&UserId) -> bool,
    ) -> Result<Vec<Forgotten>, Refusal> {
        let Some(give_way) = self.change_by(&proof, now, has_modules)? else { return Ok(Vec::new()) };
        let forget = |user: UserId| {
            let basis = self.granted.remove(&user)?.basis();
            let why = Refusal::new(RefusalKind::QuotaExceeded, "another user takes its place");
            Some(Forgotten { user, basis, why })
        };
        let forgotten = give_way.into_iter().filter_map(forget).collect();
        if let Proof { user, granted: Some(granted), .. } = proof {
            self.granted.insert(user.clone(), granted);
        }
        Ok(forgotten)
    }

    /// Checks that what a request proved may be put into force, so that nothing is noted of one that is refused.
    ///
    /// # Errors
    /// Those of [`Authority::accept`].
    pub fn check(
        &self,
        proof: &Proof<'_>,
        now: UnixTime,
        has_modules: impl Fn(&UserId) -> bool,
    ) -> Result<(), Refusal> {
        self.change_by(proof, now, has_modules).map(|_| ())
    }

    /// Returns who gives way to what a request proved; nothing if that changes nothing.
    fn change_by(
        &self,
        Proof { user, granted, .. }: &Proof<'_>,
        now: UnixTime,
        has_modules: impl Fn(&UserId) -> bool,
    ) -> Result<Option<Vec<UserId>>, Refusal> {
        let vouched = granted.as_ref().and_then(|granted| granted.vouched.as_ref().ok());
        let Some(vouched) = vouched else { return Ok(None) };
        if let Some(in_force) = self.vouched(user, now) {
            if in_force.has_all_of(vouched) && in_force.until >= vouched.until {
                return Ok(None);
            }
            if !vouched.has_all_of(in_force) && has_modules(user) {
                let detail = format!(
                    "the grant does not have all of the one in force until {}, and modules depend on that: \
                     use one that has both, or remove the modules",
                    in_force.until
                );
                return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
            }
        }
        self.room_for(user, vouched, now, has_modules).map(Some)
    }

    /// Takes over evidence of an earlier run, whether it still holds or not. Of several of a user's, that is the last one that was
    /// in force: while there are modules, each that comes has all of the one before.
    pub fn restore(&mut self, policy: &NodePolicy, user: &UserId, evidence: &Evidence, now: UnixTime) {
        let is_full = self.granted.len() >= GRANTED_USERS_MAX && !self.granted.contains_key(user);
        if policy.users.contains_key(user) || is_full {
            return;
        }
        let vouched = Vouched::by(policy, evidence);
        let comes_after = |known: &Granted| match (&vouched, &known.vouched) {
            (Ok(vouched), Ok(known)) if self.holds(vouched, now) != self.holds(known, now) => self.holds(vouched, now),
            (Ok(vouched), Ok(known)) if vouched.has_all_of(known) != known.has_all_of(vouched) => {
                vouched.has_all_of(known)
            }
            (Ok(vouched), Ok(known)) => vouched.until > known.until,
            (vouched, known) => vouched.is_ok() && known.is_err(),
        };
        if self.granted.get(user).is_none_or(comes_after) {
            self.granted.insert(user.clone(), Granted::new(evidence.clone(), vouched));
        }
    }

    /// Puts a revocation list of an issuer into force; returns whether it is another one than before. Users whose rights it takes have none
    /// from here on.
    ///
    /// # Errors
    /// It is no list of the issuer's, or an older one.
    pub fn set_list(&mut self, policy: &NodePolicy, issuer: &str, text: &str) -> Result<bool, RevocationsError> {
        let issuer = policy.issuers.iter().find(|known| known.name == issuer && known.revocations.is_some());
        issuer.map_or(Ok(false), |issuer| self.lists.set(issuer, text))
    }

    /// Says whether the first revocation list of an issuer is on its way: users who have rights keep them for so long.
    pub fn set_awaited(&mut self, issuer: &str, is_awaited: bool) {
        self.lists.set_awaited(issuer, is_awaited);
    }

    /// Returns the newest revocation list of an issuer, whether it is still good or not.
    pub fn list_of(&self, issuer: &str) -> Option<&Revocations> {
        self.lists.of(issuer)
    }

    /// Has all evidence looked at again: the policy is another one.
    pub fn set_policy(&mut self, policy: &NodePolicy) {
        self.lists.set_policy(policy);
        self.granted.retain(|user, _| !policy.users.contains_key(user));
        for granted in self.granted.values_mut() {
            let vouched = Vouched::by(policy, &granted.evidence);
            granted.unknown = granted.unknown.filter(|_| vouched.is_ok());
            granted.vouched = granted.denied.clone().map_or(vouched, Err);
        }
    }

    /// Forgets users whose proofs have ended or were taken back, and who have nothing on the node; returns them. If it is not known who is behind
    /// a checklist, its user is remembered for [`UNKNOWN_KEPT_TIME`], unless others need the place.
    pub fn forget_ended(&mut self, now: Now, has_modules: impl Fn(&UserId) -> bool) -> Vec<Forgotten> {
        let lists = &self.lists;
        let is_waited_for = |since: Instant| now.instant.since(since) < UNKNOWN_KEPT_TIME;
        let why = |granted: &Granted| match &granted.vouched {
            Ok(vouched) => in_force(lists, vouched, now.wall).err(),
            Err(_) if granted.unknown.is_some_and(is_waited_for) => None,
            Err(refusal) => Some(refusal.clone()),
        };
        let gone = self.granted.extract_if(.., |user, granted| why(granted).is_some() && !has_modules(user));
        gone.filter_map(|(user, granted)| Some(Forgotten { basis: granted.basis(), why: why(&granted)?, user }))
            .collect()
    }

    /// Returns what a user may do now.
    ///
    /// # Errors
    /// The node does not know the user, or its proof does not hold now (`unknown-user`, `bad-proof`).
    pub fn rights<'a>(
        &'a self,
        policy: &'a NodePolicy,
        user: &UserId,
        now: UnixTime,
    ) -> Result<&'a UserPolicy, Refusal> {
        if let Some(configured) = policy.users.get(user) {
            return Ok(configured);
        }
        let unknown = || Refusal::new(RefusalKind::UnknownUser, format!("no user `{user}` here"));
        let vouched = self.granted.get(user).ok_or_else(unknown)?.vouched.as_ref().map_err(Refusal::clone)?;
        in_force(&self.lists, vouched, now)?;
        Ok(&vouched.may)
    }

    /// Returns how long a lease of a user's may last, if its proof bounds it.
    pub fn lease_max(&self, user: &UserId, now: UnixTime) -> Option<Duration> {
        // Also before it begins, as the clock may be set back while a module is loaded.
        let vouched = self.granted.get(user)?.vouched.as_ref().ok()?;
        let left = if now < vouched.until { vouched.until.distance(now) } else { Duration::ZERO };
        Some(vouched.lease_max.map_or(left, |most| most.min(left)))
    }

    /// Returns what a user's rights come from; nothing of those whom the policy names.
    pub fn evidence(&self, user: &UserId) -> Option<&Evidence> {
        self.granted.get(user).map(|granted| &granted.evidence)
    }

    /// Returns the users whom the policy does not name, with their keys and what their rights come from.
    pub fn strangers(&self) -> impl Iterator<Item = (&UserId, Option<PublicKey>, String)> {
        self.granted.iter().map(|(user, granted)| (user, granted.key(), granted.basis()))
    }

    /// Says what a user's rights come from, also if they have ended; nothing of users who never had any.
    pub fn basis(&self, policy: &NodePolicy, user: &UserId) -> Option<String> {
        match policy.users.contains_key(user) {
            true => Some("configured".to_owned()),
            false => self.granted.get(user).map(Granted::basis),
        }
    }

    /// Says by what a request is proven to be of its user.
    pub fn basis_of(&self, policy: &NodePolicy, proof: &Proof<'_>) -> Option<String> {
        proof.granted.as_ref().map(Granted::basis).or_else(|| self.basis(policy, proof.user))
    }

    /// Returns whether nobody is known whom the policy does not name.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }

    /// Returns when the next proof ends that holds now, or a list that one depends on.
    pub fn next_end(&self, now: UnixTime) -> Option<UnixTime> {
        let all = self.granted.values().filter_map(|granted| granted.vouched.as_ref().ok());
        let list = |vouched: &Vouched| vouched.revocable.as_ref().and_then(|of| self.lists.good_until(of));
        let ends = all.flat_map(|vouched| [Some(vouched.until), list(vouched)]).flatten();
        ends.filter(|until| *until > now).min()
    }

    /// Returns when a user's proof ends, of those whom the policy does not name.
    pub fn end_of(&self, user: &UserId) -> Option<UnixTime> {
        self.granted.get(user)?.vouched.as_ref().ok().map(|vouched| vouched.until)
    }

    /// Returns of what all users' containers get their addresses.
    pub fn address_plan(&self, policy: &NodePolicy) -> AddressPlan {
        let mut plan = policy.address_plan();
        if policy.has_network() {
            plan.users.extend(self.granted.keys().map(|user| (user.clone(), Vec::new())));
        }
        plan
    }

    fn vouched(&self, user: &UserId, now: UnixTime) -> Option<&Vouched> {
        let vouched = self.granted.get(user)?.vouched.as_ref().ok()?;
        self.holds(vouched, now).then_some(vouched)
    }

    /// Returns whether what was proven before gives rights now.
    fn holds(&self, vouched: &Vouched, now: UnixTime) -> bool {
        in_force(&self.lists, vouched, now).is_ok()
    }

    /// Returns who gives way to a user, if that is one more, or one more of who vouches: those with nothing on the node whose proofs end first.
    fn room_for(
        &self,
        user: &UserId,
        Vouched { voucher, users_max, .. }: &Vouched,
        now: UnixTime,
        has_modules: impl Fn(&UserId) -> bool,
    ) -> Result<Vec<UserId>, Refusal> {
        let by_it = |granted: &Granted| granted.vouched.as_ref().is_ok_and(|vouched| vouched.voucher == *voucher);
        let others = || self.granted.iter().filter(|(other, _)| *other != user);
        let known = self.granted.get(user);
        let of_it = others().filter(|(_, granted)| by_it(granted)).count();
        let too_many_of_it = if known.is_some_and(by_it) { 0 } else { (of_it + 1).saturating_sub(*users_max) };
        let all = others().count() + 1;
        let too_many = if known.is_some() { 0 } else { all.saturating_sub(GRANTED_USERS_MAX) }.max(too_many_of_it);
        if too_many == 0 {
            return Ok(Vec::new());
        }
        let until = |granted: &Granted| granted.vouched.as_ref().map_or(now, |vouched| vouched.until);
        let idle = others().filter(|(user, granted)| !has_modules(user) && (too_many_of_it == 0 || by_it(granted)));
        let mut idle: Vec<(UnixTime, &UserId)> = idle.map(|(user, granted)| (until(granted), user)).collect();
        if idle.len() < too_many {
            let most = (*users_max).min(GRANTED_USERS_MAX);
            let by = match voucher {
                Voucher::Issuer(name) => format!("grants of `{name}`"),
                Voucher::Address => "proofs of addresses".to_owned(),
                Voucher::Checklist => "checklists".to_owned(),
            };
            let detail = format!("the node has {most} users with modules by {by}");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        idle.sort_unstable();
        Ok(idle.into_iter().take(too_many).map(|(_, user)| user.clone()).collect())
    }
}

/// Returns what has to lie at an address by which it vouches: SHA-256 over a fixed text, the key and the random number.
pub fn digest_of(proof: &AddressProof) -> Digest {
    let AddressProof { address: _, key, random } = proof;
    let text = [&b"netserv-address-proof/1\n"[..], &key.0, &random.0].concat();
    Digest(Sha256::digest(text).into())
}

fn last_key(grants: &[String]) -> Option<PublicKey> {
    Chain::parse(grants).ok().map(|chain| chain.last().sub)
}

/// Returns whether a refusal says of the node that it does not know, and not of the checklist that nobody is behind it.
pub fn may_pass(refusal: &Refusal) -> bool {
    matches!(refusal.kind, RefusalKind::FetchFailed | RefusalKind::NodeFailed)
}

/// Says why what was proven before gives no rights any more, if it does not.
fn in_force(lists: &Lists, vouched: &Vouched, now: UnixTime) -> Result<(), Refusal> {
    vouched.check_end(now)?;
    check_list(lists, vouched, now, true)
}

/// Says why what is proven does not count, if its issuer took it back or cannot be heard. `is_known` says that it counted before.
fn check_list(lists: &Lists, vouched: &Vouched, now: UnixTime, is_known: bool) -> Result<(), Refusal> {
    let Some(revocable) = &vouched.revocable else { return Ok(()) };
    lists.check(revocable, now, is_known).or_else(|why| vouched.refuse(&why))
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
