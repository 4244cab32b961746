// SPDX-License-Identifier: Apache-2.0
//! Effects under way: what the controller waits for, and the answers that wait with it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::effect::{EffectId, EffectOutcome, FilterId, Hold, ModuleSlot, PolicyChange};
use netserv_model::evidence::Checklist;
use netserv_model::request::Outcome;
use netserv_model::{Instant, Refusal, RefusalKind, UserId, WorkerId};

use crate::cx::request::{Key, PendingAnswer};
use crate::limits::PROOF_ANSWER_TIME_MAX;

/// What an effect is for, and so who continues when it has its outcome.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A module's package is fetched.
    Fetch(Key),
    /// A service is composed.
    Compose(Key),
    /// Rules of a module's packets are installed.
    Filters(Key, Vec<FilterId>),
    /// A rule of connections that a module takes over is installed.
    Intercept(Key, FilterId),
    /// A user's floating addresses lead to its container, of which these did not before.
    Floating(UserId, BTreeSet<IpAddr>),
    /// A worker is started.
    Start(WorkerId),
    /// A worker of a generation is told to load a module into a place.
    Load(WorkerId, Option<EffectId>, ModuleSlot),
    /// A message is put into the inbox of a module.
    Tell,
    /// The state of a module is put somewhere.
    Export,
    /// A question is asked that a request waits for.
    Prove,
    /// It is found out again who is behind a user's checklist.
    CheckAgain,
    /// An issuer's revocation list is asked for.
    List(String),
    /// It is written.
    KeepList(String),
    /// What is kept of a module is written.
    Store(Key),
    /// Containers are held to a part of a changed policy.
    Policy(PolicyChange, Hold),
    /// A worker is stopped, or a module unloaded: their meters do not count any more.
    Stop,
    /// Meters are read.
    Meters,
    /// What was used is written.
    Usage,
    /// Nobody continues after it.
    Nothing,
}

/// A user's checklist that is being looked at again.
#[derive(Debug)]
pub(crate) struct Checking {
    pub(crate) id: EffectId,
    pub(crate) user: UserId,
    pub(crate) checklist: Checklist,
    pub(crate) started: Instant,
}

impl Checking {
    /// Returns until when that may take.
    pub(crate) fn until(&self) -> Instant {
        self.started + PROOF_ANSWER_TIME_MAX
    }
}

/// The effects that have no outcome yet: a few for each module and request at most.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    open: BTreeMap<EffectId, (Option<UserId>, Purpose)>,
    /// The last ordered effect of each user, while it is open.
    last: BTreeMap<UserId, EffectId>,
    /// Answers that are given when an effect is done.
    answers: BTreeMap<EffectId, Vec<(PendingAnswer, Outcome)>>,
    next: u64,
}

impl Effects {
    /// Returns whether nothing is under way.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.last.is_empty() && self.answers.is_empty()
    }

    /// Takes note of an effect, and returns its name.
    pub(crate) fn begin(&mut self, user: Option<&UserId>, purpose: Purpose, is_ordered: bool) -> EffectId {
        let id = EffectId(self.next);
        self.next += 1;
        self.open.insert(id, (user.cloned(), purpose));
        if let Some(user) = user.filter(|_| is_ordered) {
            self.last.insert(user.clone(), id);
        }
        id
    }

    /// Has nobody continue after an effect; returns the module that a package was had for by it.
    pub(crate) fn abandon(&mut self, id: EffectId) -> Option<Key> {
        let (_, purpose) = self.open.get_mut(&id)?;
        let (Purpose::Fetch(key) | Purpose::Compose(key)) = std::mem::replace(purpose, Purpose::Nothing) else {
            return None;
        };
        Some(key)
    }

    /// Takes note that an effect has its outcome; returns what it was for.
    pub(crate) fn close(&mut self, id: EffectId) -> Option<Purpose> {
        let (user, purpose) = self.open.remove(&id)?;
        if let Some(user) = user
            && self.last.get(&user) == Some(&id)
        {
            self.last.remove(&user);
        }
        Some(purpose)
    }

    /// Returns the last ordered effect of a user, while it is open.
    pub(crate) fn last_of(&self, user: &UserId) -> Option<EffectId> {
        self.last.get(user).copied()
    }

    /// Has an answer wait for an effect.
    pub(crate) fn add_answer(&mut self, id: EffectId, ticket: PendingAnswer, outcome: Outcome) {
        self.answers.entry(id).or_default().push((ticket, outcome));
    }

    /// Returns the answers that waited for an effect.
    pub(crate) fn take_answers(&mut self, id: EffectId) -> Vec<(PendingAnswer, Outcome)> {
        self.answers.remove(&id).unwrap_or_default()
    }
}

/// Returns why an effect did not bring what it was for.
pub(crate) fn why_not(outcome: EffectOutcome) -> Refusal {
    let strange = || Refusal::new(RefusalKind::NodeFailed, "the node answered itself as if not asked");
    failure(outcome).unwrap_or_else(strange)
}

/// Returns why an effect was not done, if it was not.
pub(crate) fn failure(outcome: EffectOutcome) -> Option<Refusal> {
    match outcome {
        EffectOutcome::Refused(refusal) => Some(refusal),
        EffectOutcome::Done
        | EffectOutcome::Fetched { .. }
        | EffectOutcome::Exported { .. }
        | EffectOutcome::Measured(_)
        | EffectOutcome::Metered(_)
        | EffectOutcome::Routed(_)
        | EffectOutcome::Vouched(_)
        | EffectOutcome::Held(_)
        | EffectOutcome::Listed(_) => None,
    }
}
