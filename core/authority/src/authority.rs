// SPDX-License-Identifier: Apache-2.0
//! The users that have rights on a node.

use std::collections::BTreeMap;
use std::time::Duration;

use netserv_model::evidence::{Checklist, Evidence, Holder};
use netserv_model::policy::{AddressPlan, NodePolicy, UserPolicy};
use netserv_model::request::Request;
use netserv_model::{Instant, Now, PublicKey, Refusal, RefusalKind, UnixTime, UserId};

use crate::grant::digest_of_grant;
use crate::granted::{Granted, check, holds};
use crate::limits::GRANTED_USERS_MAX;
use crate::proving::{Asking, Proof, Question, Said, Unproven, nothing_asked};
use crate::revocations::{Lists, Revocations, RevocationsError};
use crate::vouched::{Vouched, Voucher};

/// The users whom the node's policy does not name and who have proven their rights, beside those whom it names.
#[derive(Debug, Default)]
pub struct Authority {
    granted: BTreeMap<UserId, Granted>,
    lists: Lists,
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
        let (asking, is_named) = (self.asking(policy, user, request, now), policy.users.contains_key(user));
        match (request.address_proof, &request.checklist, request.grants.is_empty()) {
            (Some(proof), _, true) if !is_named => asking.by_address(proof),
            (_, Some(checklist), false) if !is_named => asking.by_checklist(checklist),
            (_, None, false) if !is_named => Ok(asking.by_grants()?),
            _ => Ok(asking.by_rights(self.rights(policy, user, now)?, is_named)?),
        }
    }

    /// Returns the user who has proven to ask by rights that it has already, whatever evidence the request brings.
    ///
    /// # Errors
    /// It has none, or did not sign the request.
    pub fn prove_by_rights<'a>(
        &self,
        policy: &NodePolicy,
        request: &'a Request,
        now: UnixTime,
    ) -> Result<Proof<'a>, Refusal> {
        let user = request.user.as_ref().ok_or_else(nothing_asked)?;
        let may = self.rights(policy, user, now)?;
        self.asking(policy, user, request, now).by_rights(may, policy.users.contains_key(user))
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
        let user = request.user.as_ref().ok_or_else(nothing_asked)?;
        // The operator may have named the user meanwhile, with other keys.
        if policy.users.contains_key(user) {
            return self.prove_by_rights(policy, request, now);
        }
        self.asking(policy, user, request, now).by_answer(said)
    }

    fn asking<'a, 'r>(
        &'a self,
        policy: &'a NodePolicy,
        user: &'r UserId,
        request: &'r Request,
        now: UnixTime,
    ) -> Asking<'a, 'r> {
        let known = self.granted.get(user).filter(|granted| granted.in_force(&self.lists, now).is_some());
        Asking { policy, lists: &self.lists, known, user, request, now }
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

    /// Takes over who is behind a user's checklist now, or why nobody is, by a check of a round that began at a time; returns whether some user has
    /// lost something. That it is not found out counts after [`DOUBTED_TIME`](crate::limits::DOUBTED_TIME), for others as well: their next check
    /// may wait for a disk that hangs.
    pub fn checked_again(
        &mut self,
        policy: &NodePolicy,
        (round, now): (Instant, Instant),
        user: &UserId,
        asked: &Checklist,
        said: Result<Holder, Refusal>,
    ) -> bool {
        let granted = self.granted.get_mut(user);
        let is_lost = granted.is_some_and(|granted| granted.checked_again(policy, (round, now), asked, said));
        self.granted.values_mut().fold(is_lost, |is_lost, granted| granted.end_doubt(now) || is_lost)
    }

    /// Returns whether it was not found out last time who is behind some checklist.
    pub fn has_doubts(&self) -> bool {
        self.granted.values().any(|granted| granted.doubt.is_some())
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
        let holds = |vouched: &Vouched| holds(&self.lists, vouched, now);
        let comes_after = |known: &Granted| match (&vouched, &known.vouched) {
            (Ok(vouched), Ok(known)) if holds(vouched) != holds(known) => holds(vouched),
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

    /// Takes over that it was not known at the end of an earlier run who is behind a user's checklist, since then.
    pub fn set_unknown(&mut self, user: &UserId, since: UnixTime, now: Now) {
        if let Some(granted) = self.granted.get_mut(user) {
            granted.set_unknown(since, now);
        }
    }

    /// Returns whether a user has no rights only since it is not known who is behind its checklist: it may have them again later.
    pub fn is_unknown(&self, user: &UserId) -> bool {
        self.granted.get(user).is_some_and(Granted::is_unknown)
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
        self.granted.values_mut().for_each(|granted| granted.set_policy(policy));
    }

    /// Forgets users whose proofs have ended or were taken back, and who have nothing on the node; returns them. If it is not known who is behind
    /// a checklist, its user is remembered for [`UNKNOWN_KEPT_TIME`](crate::limits::UNKNOWN_KEPT_TIME), unless others need the place.
    pub fn forget_ended(&mut self, now: Now, has_modules: impl Fn(&UserId) -> bool) -> Vec<Forgotten> {
        let lists = &self.lists;
        let gone =
            self.granted.extract_if(.., |user, granted| granted.ended(lists, now).is_some() && !has_modules(user));
        let forgotten = |(user, granted): (UserId, Granted)| {
            Some(Forgotten { user, basis: granted.basis(), why: granted.ended(lists, now)? })
        };
        gone.filter_map(forgotten).collect()
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
        check(&self.lists, vouched, now)?;
        Ok(&vouched.may)
    }

    /// Returns how long a lease of a user's may last, if its proof bounds it.
    pub fn lease_max(&self, user: &UserId, now: UnixTime) -> Option<Duration> {
        // Also before it begins, as the clock may be set back while a module is loaded.
        let vouched = self.granted.get(user)?.vouched.as_ref().ok()?;
        let left = if now < vouched.until { vouched.until.distance(now) } else { Duration::ZERO };
        Some(vouched.lease_max.map_or(left, |most| most.min(left)))
    }

    /// Has a refusal of what lies outside a user's rights say which evidence bounds them.
    pub fn explain(&self, user: &UserId, refusal: Refusal) -> Refusal {
        let is_of_ports = refusal.kind == RefusalKind::PortNotAllowed;
        let is_of_scope = is_of_ports || refusal.kind == RefusalKind::PrefixNotAllowed;
        match self.granted.get(user).filter(|_| is_of_scope) {
            Some(granted) => Refusal::new(refusal.kind, format!("{}; {}", refusal.detail, granted.bound(is_of_ports))),
            None => refusal,
        }
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
        self.granted.get(user)?.in_force(&self.lists, now)
    }

    /// Returns who gives way to a user, if that is one more, or one more of who vouches: those with nothing on the node whose proofs end first.
    fn room_for(
        &self,
        user: &UserId,
        Vouched { voucher, users_max, .. }: &Vouched,
        now: UnixTime,
        has_modules: impl Fn(&UserId) -> bool,
    ) -> Result<Vec<UserId>, Refusal> {
        let by_it = |granted: &Granted| granted.voucher().is_some_and(|of_it| of_it == voucher);
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
