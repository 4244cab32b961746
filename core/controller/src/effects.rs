// SPDX-License-Identifier: Apache-2.0
//! Effects under way: what the controller waits for, and the answers that wait with it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::effect::{
    Command, Effect, EffectId, EffectOutcome, FilterId, Hold, Job, ModuleSlot, Notice, PolicyChange,
};
use netserv_model::request::Outcome;
use netserv_model::{Refusal, RefusalKind, UserId, WorkerId};

use crate::Controller;
use crate::state::{Key, PendingAnswer};

/// What an effect is for, and so who goes on when it has its outcome.
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
    /// What is kept of a module is written.
    Store(Key),
    /// Containers are held to a part of a changed policy.
    Policy(PolicyChange, Hold),
    /// A worker is stopped, or a module unloaded: their meters stand still.
    Stop,
    /// Meters are read.
    Meters,
    /// What was used is written.
    Usage,
    /// Nobody goes on after it.
    Nothing,
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

    fn close(&mut self, id: EffectId) -> Option<Purpose> {
        let (user, purpose) = self.open.remove(&id)?;
        if let Some(user) = user
            && self.last.get(&user) == Some(&id)
        {
            self.last.remove(&user);
        }
        Some(purpose)
    }
}

impl Controller {
    /// Wants something done to the machine for a user.
    pub(crate) fn start_effect(&mut self, user: &UserId, job: Job, purpose: Purpose) -> EffectId {
        let ordered = job.is_ordered();
        let id = self.start_effect_of(Some(user.clone()), job, purpose);
        if ordered {
            self.effects.last.insert(user.clone(), id);
        }
        id
    }

    /// Wants something done to the machine that is about no user alone.
    pub(crate) fn start_node_effect(&mut self, job: Job, purpose: Purpose) -> EffectId {
        self.start_effect_of(None, job, purpose)
    }

    fn start_effect_of(&mut self, user: Option<UserId>, job: Job, purpose: Purpose) -> EffectId {
        let id = EffectId(self.effects.next);
        self.effects.next += 1;
        self.effects.open.insert(id, (user.clone(), purpose));
        self.commands.push_back(Command::Do(Effect { id, user, job }));
        id
    }

    /// Waits for an effect no longer.
    ///
    /// Returns the module that it was for.
    pub(crate) fn abandon_effect(&mut self, id: EffectId) -> Option<Key> {
        let (_, purpose) = self.effects.open.get_mut(&id)?;
        let (Purpose::Fetch(key) | Purpose::Compose(key)) = std::mem::replace(purpose, Purpose::Nothing) else {
            return None;
        };
        self.commands.push_back(Command::Abandon(id));
        Some(key)
    }

    /// Answers a user's request once the user's effects so far are done, of which the last is done last.
    pub(crate) fn answer_when_done(&mut self, user: &UserId, ticket: PendingAnswer, outcome: Outcome) {
        match self.effects.last.get(user) {
            Some(last) => self.effects.answers.entry(*last).or_default().push((ticket, outcome)),
            None => self.answer(ticket, outcome),
        }
    }

    /// Answers a request once an effect is done.
    pub(crate) fn answer_after(&mut self, id: EffectId, ticket: PendingAnswer, outcome: Outcome) {
        self.effects.answers.entry(id).or_default().push((ticket, outcome));
    }

    /// Takes the outcome of an effect; each has one.
    pub(crate) fn end_effect(&mut self, id: EffectId, outcome: EffectOutcome) {
        let Some(purpose) = self.effects.close(id) else {
            self.counters.stray_events += 1;
            return;
        };
        self.go_on(id, purpose, outcome);
        for (ticket, outcome) in self.effects.answers.remove(&id).unwrap_or_default() {
            self.answer(ticket, outcome);
        }
    }

    fn go_on(&mut self, id: EffectId, purpose: Purpose, outcome: EffectOutcome) {
        match (purpose, outcome) {
            (Purpose::Fetch(key), EffectOutcome::Fetched { manifest, flavour }) => {
                self.fetched(&key, id, *manifest, flavour);
            }
            (Purpose::Compose(key), EffectOutcome::Done) => self.composed(&key, id),
            (Purpose::Fetch(key) | Purpose::Compose(key), EffectOutcome::Refused(refusal)) => {
                self.fetch_failed(&key, id, &refusal);
            }
            // Somebody waits for it all the same.
            (Purpose::Fetch(key) | Purpose::Compose(key), _) => {
                self.counters.stray_events += 1;
                let refusal =
                    Refusal::new(RefusalKind::NodeFailed, "the node answered itself as if asked for another job");
                self.fetch_failed(&key, id, &refusal);
            }
            (Purpose::Filters(key, ids), outcome) => self.filters_changed(&key, id, &ids, failure(outcome)),
            (Purpose::Policy(change, hold), outcome) => self.policy_applied(change, hold, id, failure(outcome)),
            (Purpose::Intercept(key, rule), outcome) => self.intercepted(&key, id, rule, failure(outcome)),
            (Purpose::Floating(user, come), outcome) => self.floating_changed(&user, id, &come, failure(outcome)),
            (Purpose::Start(worker), EffectOutcome::Refused(refusal)) => self.start_refused(&worker, id, &refusal),
            (Purpose::Load(worker, generation, slot), EffectOutcome::Refused(refusal)) => {
                self.load_refused(&worker, generation, slot, refusal);
            }
            (Purpose::Store((user, module)), EffectOutcome::Refused(refusal)) => {
                self.counters.store_failures += 1;
                self.commands.push_back(Command::Notify(Notice::NotStored { user, module, refusal }));
            }
            (Purpose::Tell, outcome) => self.told(id, failure(outcome)),
            (Purpose::Export, outcome) => self.exported(id, outcome),
            (Purpose::Meters, EffectOutcome::Metered(meters)) => self.metered(Some(*meters)),
            (Purpose::Meters, _) => self.metered(None),
            (Purpose::Usage, outcome) => self.usage_stored(outcome == EffectOutcome::Done),
            (Purpose::Stop, _) => self.meter_soon(),
            (Purpose::Start(_) | Purpose::Load(..) | Purpose::Store(_), EffectOutcome::Done)
            | (Purpose::Nothing, _) => {}
            // No effect of the controller's has such an outcome; those who wait for news of it have timers.
            (
                Purpose::Start(_) | Purpose::Load(..) | Purpose::Store(_),
                EffectOutcome::Fetched { .. }
                | EffectOutcome::Exported { .. }
                | EffectOutcome::Measured(_)
                | EffectOutcome::Metered(_)
                | EffectOutcome::Routed(_),
            ) => self.counters.stray_events += 1,
        }
    }
}

fn failure(outcome: EffectOutcome) -> Option<Refusal> {
    match outcome {
        EffectOutcome::Refused(refusal) => Some(refusal),
        EffectOutcome::Done
        | EffectOutcome::Fetched { .. }
        | EffectOutcome::Exported { .. }
        | EffectOutcome::Measured(_)
        | EffectOutcome::Metered(_)
        | EffectOutcome::Routed(_) => None,
    }
}
