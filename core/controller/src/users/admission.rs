// SPDX-License-Identifier: Apache-2.0
//! Who may ask for what.

use std::time::Duration;

use netserv_authority::{Proof, Question, Said, Unproven};
use netserv_model::audit::Proven;
use netserv_model::limits::TTL_MIN;
use netserv_model::request::{Ask, Body, NodeLoad, Outcome, Probe, Request};
use netserv_model::target::Condition;
use netserv_model::{ModuleName, Nonce, Now, Refusal, RefusalKind, UnixTime, UserId};

use crate::cx::Cx;
use crate::limits::{CLOCK_SLEW_MAX, REMEMBERED_USERS_MAX};
use crate::tenants::Tenants;
use crate::users::overheard::{is_overheard, overheard};
use crate::users::quota::{Newest, Nonces};
use crate::users::seen::{Seen, check_same};
use crate::workers::changes::{held_of, hold_to_proof};

/// How old a request is that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Its user has just made it.
    Fresh,
    /// It is a SETUP that was made for nodes on another path, and its lease would still run.
    Late {
        /// What is left of the lease.
        left: Duration,
    },
    /// It is a SETUP that came before, and may be in force.
    Repeated,
}

/// What is remembered of users' requests, so that none is taken that is too late.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// The clocks when the node started, if it did: requests made before are stale, as their nonces may have been seen by an earlier run.
    started: Option<Now>,
    newest: Newest,
    seen: Seen,
}

/// What is said of who asks.
pub(crate) struct Claim<'a> {
    pub(crate) request: &'a Request,
    /// The answer to the question that had to be asked first, if there was one.
    pub(crate) said: Option<Said>,
    /// Set as soon as the request is proven to be the user's, whether or not it is taken.
    pub(crate) proven: &'a mut Option<Proven>,
}

/// Why a request is not taken.
pub(crate) enum Denied {
    /// It is answered so.
    Answer(Outcome),
    /// Its user is proven, it is for other nodes, and is answered so.
    ForOthers(UserId, Outcome),
    /// It is not known before this is answered.
    NotYet(Question),
}

impl Denied {
    /// Returns whether a request is denied since anybody may have copied it that its user made before.
    pub(crate) fn is_for_copies(&self) -> bool {
        let kinds = [RefusalKind::Replayed, RefusalKind::StaleRequest];
        matches!(self, Denied::Answer(outcome) if kinds.iter().any(|kind| outcome.is_refused_for(*kind)))
    }
}

impl From<Outcome> for Denied {
    fn from(outcome: Outcome) -> Denied {
        Denied::Answer(outcome)
    }
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Denied {
        Denied::Answer(refusal.into())
    }
}

impl Users {
    /// Has requests be stale that were made before the node starts, to the second: they may have been carried out before.
    pub(crate) fn start(&mut self, now: Now) {
        self.started = Some(now);
    }

    /// Takes note that a request was undone, and may be carried out again.
    pub(crate) fn undo(&mut self, user: &UserId, module: &ModuleName, nonce: Nonce) {
        self.newest.undo(user, module, nonce);
    }

    /// Forgets users that are no longer known, once nothing of theirs could be taken if they came back.
    pub(crate) fn retain(&mut self, wall: UnixTime, known: impl Fn(&UserId) -> bool) {
        self.newest.retain(wall, &known);
        self.seen.retain(wall, &known);
    }

    /// Returns from when on requests are taken, to the second: when the node started, by the wall clock as it is now. A machine that
    /// starts with a wrong time is set right later.
    pub(crate) fn fresh_from(&self, now: Now) -> UnixTime {
        let Some(started) = self.started else { return UnixTime::default() };
        let uptime = now.instant.since(started.instant);
        let by_now = now.wall.0.saturating_sub(u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX));
        let is_set = started.wall.distance(UnixTime(by_now)) > CLOCK_SLEW_MAX;
        UnixTime(if is_set { by_now } else { started.wall.0 } / 1000 * 1000)
    }

    #[cfg(test)]
    pub(crate) fn newest_mut(&mut self) -> &mut Newest {
        &mut self.newest
    }

    #[cfg(test)]
    pub(crate) fn seen_mut(&mut self) -> &mut Seen {
        &mut self.seen
    }

    /// Checks who asks, that the request is in time and that it is for this node; returns the proven user, if the request
    /// needs one, or else why it is not taken.
    pub(crate) fn admit(
        &mut self,
        cx: &mut Cx,
        tenants: &Tenants,
        nonces: &mut Nonces,
        load: &NodeLoad,
        Claim { request, said, proven }: Claim<'_>,
    ) -> Result<(Option<UserId>, Freshness), Denied> {
        if cx.policy.host_only {
            return match &request.body {
                Body::Probe(_) => Ok((None, Freshness::Fresh)),
                Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) => {
                    Err(Refusal::new(RefusalKind::NotANode, format!("{} is a host", cx.policy.node)).into())
                }
            };
        }
        if is_harmless(&request.body) && (request.user.is_none() || request.signature.is_none()) {
            check_target(cx, load, request, false)?;
            return Ok((None, Freshness::Fresh));
        }
        if cx.policy.require_target && !request.is_bound && !is_harmless(&request.body) {
            let detail = "it names no path, domain or node, and the operator wants it to (`admission.require-target`)";
            return Err(Refusal::new(RefusalKind::NotForThisNode, detail).into());
        }
        let is_overheard = || request.address_proof.is_some_and(|proof| is_overheard(cx, tenants, proof.address));
        let by_rights = || cx.authority.prove_by_rights(&cx.policy, request, cx.now.wall).map_err(overheard);
        let proof = match said {
            Some(Said::Address(_)) if is_overheard() => by_rights()?,
            Some(said) => cx.authority.vouched_for(&cx.policy, request, said, cx.now.wall)?,
            None => match cx.authority.prove(&cx.policy, request, cx.now.wall) {
                Ok(proof) => proof,
                Err(Unproven::Refused(refusal)) => return Err(refusal.into()),
                Err(Unproven::Ask(Question::Address(_))) if is_overheard() => by_rights()?,
                Err(Unproven::Ask(question)) => {
                    // Nobody is asked for a request that came from elsewhere long ago.
                    self.check_fresh(cx, request)?;
                    return Err(Denied::NotYet(question));
                }
            },
        };
        let user = proof.user;
        let evidence = cx.authority.basis_of(&cx.policy, &proof);
        let is_stranger = !cx.policy.users.contains_key(user);
        *proven = evidence.map(|evidence| Proven { key: proof.key, evidence, is_stranger });
        let module = module_of(&request.body);
        if self.is_repeated(tenants, nonces, user, request)? {
            check_target(cx, load, request, true)?;
            return Ok((Some(user.clone()), Freshness::Repeated));
        }
        let time = self.check_fresh(cx, request)?;
        // Before anything is noted: it may be for this node later.
        let is_there = module.is_some_and(|module| tenants.is_taken(user, module));
        if let Err(outcome) = check_target(cx, load, request, is_there) {
            return Err(Denied::ForOthers(user.clone(), outcome));
        }
        if proof.brings_evidence() {
            cx.authority.check(&proof, cx.now.wall, |user| tenants.get(user).is_some())?;
            self.make_room(cx, nonces, user)?;
        }
        self.note(cx, nonces, user, request, time)?;
        accept(cx, tenants, proof)?;
        Ok((Some(user.clone()), time))
    }

    /// Makes room for what is to be remembered of the requests of a stranger.
    fn make_room(&mut self, cx: &Cx, nonces: &mut Nonces, user: &UserId) -> Result<(), Refusal> {
        let known = |user: &UserId| cx.may(user).is_some();
        if !self.newest.has_room_for(user) || !self.seen.has_room_for(user) {
            self.retain(cx.now.wall, known);
            self.newest.make_room(user, known);
            self.seen.make_room(user, known);
        }
        if nonces.users() < REMEMBERED_USERS_MAX || nonces.knows(user) {
            return Ok(());
        }
        nonces.retain(cx.now.wall, known);
        if nonces.users() < REMEMBERED_USERS_MAX {
            return Ok(());
        }
        let detail = format!("the node remembers requests of {REMEMBERED_USERS_MAX} users");
        Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
    }

    /// Returns whether a request came before and may be in force.
    ///
    /// # Errors
    /// It came by another session.
    fn is_repeated(
        &self,
        tenants: &Tenants,
        nonces: &Nonces,
        user: &UserId,
        request: &Request,
    ) -> Result<bool, Refusal> {
        let having = |module: &ModuleName| tenants.session_having(&(user.clone(), module.clone()), request.nonce);
        if let (Body::Setup(setup), false) = (&request.body, request.dry_run) {
            self.seen.check(user, request.nonce, request.session)?;
            if let Some(first) = having(&setup.module.name) {
                check_same(request.nonce, first, request.session)?;
            }
        }
        let module = match &request.body {
            Body::Setup(setup) => &setup.module.name,
            Body::Remove(remove) => &remove.module,
            Body::Tell(_) | Body::Export(_) | Body::Probe(_) => return Ok(false),
        };
        Ok(!request.dry_run && (having(module).is_some() || nonces.has(user, request.nonce)))
    }

    /// Checks that a request comes after those about the same that were taken before, and takes note of it.
    fn note(
        &mut self,
        cx: &Cx,
        nonces: &mut Nonces,
        user: &UserId,
        request: &Request,
        time: Freshness,
    ) -> Result<(), Refusal> {
        let (skew, wall) = (cx.policy.clock_skew_max, cx.now.wall);
        if let Body::Tell(tell) = &request.body {
            // Its number says whether it came before, so its nonce need not be remembered.
            return self.newest.check_message(user, &tell.module, request.created);
        }
        if let Body::Export(_) = &request.body {
            return nonces.take(user, request.nonce, request.created, skew, wall);
        }
        let module = module_of(&request.body);
        let late = matches!(time, Freshness::Late { .. });
        let is_remove = matches!(request.body, Body::Remove(_));
        // A REMOVE for all is about every session's requests.
        let session = match &request.body {
            Body::Remove(remove) if remove.all || remove.epoch.is_some() => None,
            Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) | Body::Probe(_) => {
                Some(request.session)
            }
        };
        if let Some(module) = module.filter(|_| !is_remove) {
            let again = late || nonces.was_undone(user, request.nonce);
            if again {
                self.seen.check_late(user, request.nonce, request.created)?;
            }
            self.newest.check(user, (module, session), request.created, again)?;
        }
        if !late {
            nonces.take(user, request.nonce, request.created, skew, wall)?;
        }
        if let (Body::Setup(setup), false) = (&request.body, request.dry_run) {
            let until = request.created + skew + setup.ttl;
            self.seen.note(user, (request.nonce, request.session), (request.created, until), wall);
        }
        if let Some(module) = module.filter(|_| !request.dry_run) {
            let until = request.created + skew + cx.policy.ttl_max;
            self.newest.note(user, (module, session), (request.nonce, request.created), is_remove, until, wall);
        }
        Ok(())
    }

    /// Checks when a request was made. A SETUP is sent again by nodes when its path changes, so it can be taken for as long
    /// as its lease would run if it had been taken at the last moment at which it was fresh.
    fn check_fresh(&self, cx: &Cx, request: &Request) -> Result<Freshness, Refusal> {
        let (created, wall, skew) = (request.created, cx.now.wall, cx.policy.clock_skew_max);
        let fresh_from = self.fresh_from(cx.now);
        if created < fresh_from {
            let detail = format!("made at {created}, before the node started at {fresh_from}; it is {wall} here");
            return Err(Refusal::new(RefusalKind::StaleRequest, detail));
        }
        if created.distance(wall) <= skew {
            return Ok(Freshness::Fresh);
        }
        if let (Body::Setup(setup), false) = (&request.body, request.dry_run) {
            let ends = created + skew + setup.ttl;
            let left = ends.distance(wall);
            if created < wall && wall < ends && left >= TTL_MIN && setup.ttl <= cx.policy.ttl_max {
                return Ok(Freshness::Late { left });
            }
        }
        let detail = format!("made at {created}, it is {wall} here, at most {} s apart", skew.as_secs());
        Err(Refusal::new(RefusalKind::StaleRequest, detail))
    }
}

/// Puts into force what a request proved that is in time.
fn accept(cx: &mut Cx, tenants: &Tenants, proof: Proof<'_>) -> Result<(), Refusal> {
    if !proof.brings_evidence() {
        return Ok(());
    }
    let (user, before) = (proof.user, held_of(cx, proof.user));
    cx.accept(proof, |user| tenants.get(user).is_some())?;
    hold_to_proof(cx, tenants, user, before);
    Ok(())
}

/// Returns the module that a request is about.
fn module_of(body: &Body) -> Option<&ModuleName> {
    match body {
        Body::Setup(setup) => Some(&setup.module.name),
        Body::Remove(remove) => Some(&remove.module),
        Body::Tell(tell) => Some(&tell.module),
        Body::Export(export) => Some(&export.module),
        Body::Probe(_) => None,
    }
}

/// Checks that a request is for this node. What is there already does not have to find room once more.
fn check_target(cx: &Cx, load: &NodeLoad, request: &Request, is_there: bool) -> Result<(), Outcome> {
    let unmet = || request.require.iter().find_map(|condition| unmet(cx, load, condition, is_there));
    match request.passed_by.clone().or_else(unmet) {
        Some(reason) => Err(Outcome::NotTargeted { reason }),
        None => Ok(()),
    }
}

/// Returns why a condition is not true here, if it is not.
fn unmet(cx: &Cx, load: &NodeLoad, condition: &Condition, is_there: bool) -> Option<String> {
    let has = match condition {
        Condition::Flavour(flavour) => {
            let has = cx.policy.blocks.contains_key(flavour.as_str());
            return (!has).then(|| format!("`{condition}` is asked for, the node does not run it"));
        }
        Condition::Block(block) => match cx.policy.blocks.get(&block.block) {
            Some(version) if *version >= block.version_min => return None,
            Some(version) => format!("the node has version {version}"),
            None => "the node has none".to_owned(),
        },
        Condition::MemoryFree(_) | Condition::LoadBelow(_) if is_there => return None,
        Condition::MemoryFree(bytes) => {
            let free = load.memory_free_kib.saturating_mul(1024);
            if free >= *bytes {
                return None;
            }
            format!("{free} bytes are free")
        }
        Condition::LoadBelow(permille) => {
            let load = load.load_permille;
            if load < *permille {
                return None;
            }
            format!("the load is {}.{:03}", load / 1000, load % 1000)
        }
    };
    Some(format!("`{condition}` is asked for, {has}"))
}

/// Returns whether a request tells only what everybody may know.
fn is_harmless(body: &Body) -> bool {
    match body {
        Body::Probe(Probe { ask }) => ask.iter().all(|ask| match ask {
            Ask::Nodes | Ask::Blocks | Ask::Load => true,
            Ask::Modules | Ask::Policy => false,
        }),
        Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) => false,
    }
}
