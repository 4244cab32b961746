// SPDX-License-Identifier: Apache-2.0
//! The users that have rights on a node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::evidence::{AddressProof, Evidence, ProvenAddress};
use netserv_model::policy::{AddressPlan, NodePolicy, UserPolicy};
use netserv_model::request::{Body, Request};
use netserv_model::{Digest, PublicKey, Refusal, RefusalKind, UnixTime, UserId};
use sha2::{Digest as _, Sha256};

use crate::chain::Chain;
use crate::grant::user_of;
use crate::jws::is_signed_by;
use crate::limits::{ADDRESS_ASKED_AFTER, GRANTED_USERS_MAX};
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
    /// An address has to be asked; what it says is for [`Authority::vouched_for`].
    Ask(IpAddr),
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
}

impl Authority {
    /// Returns the user who has proven to ask, and what by. Nothing is changed by it.
    ///
    /// # Errors
    /// The request names no user (`unsigned`), one whom the policy does not know (`unknown-user`) nor a good proof (`bad-proof`), or is not signed
    /// by the user (`unsigned`, `bad-signature`). Or an address has to be asked first.
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
            match policy.operator.as_ref().filter(|operator| operator.user == *user) {
                Some(operator) => check_signature(std::slice::from_ref(&operator.key), false, request)?,
                None => check_signature(&may.keys, policy.accept_unsigned && is_named, request)?,
            }
            return Ok(Proof { user, granted: None });
        }
        let is_asker = |chain: &Chain| {
            check_own(&chain.last().sub, user)?;
            check_signature(&[chain.last().sub], false, request)
        };
        let vouched = Vouched::asked(policy, &request.grants, is_asker)?;
        vouched.check_time(now)?;
        check_list(&self.lists, &vouched, now, false)?;
        let evidence = Evidence::Grants(request.grants.clone());
        Ok(Proof { user, granted: Some(Granted { evidence, vouched: Ok(vouched) }) })
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
            Evidence::Grants(_) => false,
        });
        if is_known { Ok(Proof { user, granted: None }) } else { Err(Unproven::Ask(address)) }
    }

    /// Returns the user who has proven to ask by what the address says of it.
    ///
    /// # Errors
    /// The address says something else, or vouches for nobody.
    pub fn vouched_for<'a>(
        &self,
        policy: &NodePolicy,
        request: &'a Request,
        said: Digest,
        now: UnixTime,
    ) -> Result<Proof<'a>, Refusal> {
        let (Some(user), Some(proof)) = (&request.user, request.address_proof) else {
            return Err(Refusal::new(RefusalKind::Unsigned, "the request names no user"));
        };
        if said != digest_of(&proof) {
            let detail = format!("what lies at {} is not for this key and random number", proof.address);
            return Err(Refusal::new(RefusalKind::BadProof, detail));
        }
        let AddressProof { address, key, .. } = proof;
        let evidence = Evidence::Address(ProvenAddress { address, key, asked: now });
        let vouched = Vouched::by(policy, &evidence)?;
        Ok(Proof { user, granted: Some(Granted { evidence, vouched: Ok(vouched) }) })
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
    ) -> Result<Vec<UserId>, Refusal> {
        let Some(give_way) = self.change_by(&proof, now, has_modules)? else { return Ok(Vec::new()) };
        for user in &give_way {
            self.granted.remove(user);
        }
        if let Proof { user, granted: Some(granted) } = proof {
            self.granted.insert(user.clone(), granted);
        }
        Ok(give_way)
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
        Proof { user, granted }: &Proof<'_>,
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
            self.granted.insert(user.clone(), Granted { evidence: evidence.clone(), vouched });
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
        self.granted.values_mut().for_each(|granted| granted.vouched = Vouched::by(policy, &granted.evidence));
    }

    /// Forgets users whose proofs have ended or were taken back, and who have nothing on the node; returns them.
    pub fn forget_ended(&mut self, now: UnixTime, has_modules: impl Fn(&UserId) -> bool) -> Vec<UserId> {
        let lists = &self.lists;
        let holds =
            |granted: &Granted| granted.vouched.as_ref().is_ok_and(|vouched| in_force(lists, vouched, now).is_ok());
        let gone = self.granted.extract_if(.., |user, granted| !holds(granted) && !has_modules(user));
        gone.map(|(user, _)| user).collect()
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

fn check_signature(keys: &[PublicKey], accept_unsigned: bool, request: &Request) -> Result<(), Refusal> {
    let Some(signature) = request.signature else {
        let refusal = Refusal::new(RefusalKind::Unsigned, "the node takes only signed requests");
        return if accept_unsigned { Ok(()) } else { Err(refusal) };
    };
    let signed_by = |key: &PublicKey| is_signed_by(key, &request.signed_bytes, &signature);
    let refusal = || Refusal::new(RefusalKind::BadSignature, format!("none of the user's {} keys fits", keys.len()));
    if keys.iter().any(signed_by) { Ok(()) } else { Err(refusal()) }
}
