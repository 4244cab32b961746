// SPDX-License-Identifier: Apache-2.0
//! What every part of the controller is given, and where what it wants goes: commands, answers, effects, timers.

pub(crate) mod effects;
pub(crate) mod hearing;
pub(crate) mod jobs;
pub(crate) mod request;
pub(crate) mod timers;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use netserv_authority::{Authority, Forgotten, Proof};
use netserv_model::control::ModuleMessage;
use netserv_model::effect::{Command, Effect, EffectId, FilterId, Job, ModuleNews, Notice, RequestId, StoreJob};
use netserv_model::notify::NotifyEvent;
use netserv_model::policy::{AddressPlan, NodePolicy, UserPolicy};
use netserv_model::request::{NodeReport, Outcome};
use netserv_model::{Instant, ModuleRef, Now, Refusal, UserId};

use crate::counters::Counters;
use crate::cx::effects::{Checking, Effects, Purpose};
use crate::cx::hearing::Hearing;
use crate::cx::request::{Key, Origin, PendingAnswer};
use crate::cx::timers::{Timer, Timers};
use crate::limits::{CHECKLISTS_LOOKED_AT_AFTER, CHECKLISTS_PAUSE_MIN, DOUBTS_LOOKED_AT_AFTER, PROOFS_LOOKED_AT_AFTER};

/// What every part is given: the clocks and the policy, and where what it wants goes.
#[derive(Debug)]
pub(crate) struct Cx {
    pub(crate) policy: NodePolicy,
    pub(crate) authority: Authority,
    /// The clocks at the last input.
    pub(crate) now: Now,
    pub(crate) timers: Timers,
    pub(crate) counters: Counters,
    pub(crate) names: RuleNames,
    /// The checklist that is being looked at again.
    pub(crate) checking: Option<Checking>,
    /// When the first of them was looked at last.
    pub(crate) checked_from: Instant,
    pub(crate) hearing: Hearing,
    /// Whether users were forgotten who may have suspended modules.
    pub(crate) has_forgotten: bool,
    effects: Effects,
    /// Answers, which need not wait for commands that others led to.
    answers: VecDeque<Command>,
    commands: VecDeque<Command>,
    /// Requests that are not answered yet.
    in_flight: usize,
}

/// Names rules.
#[derive(Debug, Default)]
pub(crate) struct RuleNames {
    next: u64,
}

impl RuleNames {
    /// Returns a name that no rule had before.
    pub(crate) fn take(&mut self) -> FilterId {
        self.next += 1;
        FilterId(self.next - 1)
    }
}

impl Cx {
    /// Returns a context in which nothing is under way.
    pub(crate) fn new(policy: NodePolicy) -> Cx {
        Cx {
            policy,
            authority: Authority::default(),
            now: Now::default(),
            timers: Timers::default(),
            counters: Counters::default(),
            names: RuleNames::default(),
            checking: None,
            checked_from: Instant::default(),
            hearing: Hearing::default(),
            has_forgotten: false,
            effects: Effects::default(),
            answers: VecDeque::new(),
            commands: VecDeque::new(),
            in_flight: 0,
        }
    }

    /// Returns the next thing to do or to say.
    pub(crate) fn pop_command(&mut self) -> Option<Command> {
        self.answers.pop_front().or_else(|| self.commands.pop_front())
    }

    /// Takes note of a request, which is to be answered.
    pub(crate) fn open_request(&mut self, request: RequestId, method: &'static str) -> PendingAnswer {
        self.in_flight += 1;
        PendingAnswer { request, method, received: self.now.instant, proven: None }
    }

    /// Returns how many requests are not answered.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Wants something done to the machine for a user.
    pub(crate) fn start_effect(&mut self, user: &UserId, job: Job, purpose: Purpose) -> EffectId {
        let id = self.effects.begin(Some(user), purpose, job.is_ordered());
        self.commands.push_back(Command::Do(Effect { id, user: Some(user.clone()), job }));
        id
    }

    /// Wants something done to the machine that is about no user alone.
    pub(crate) fn start_node_effect(&mut self, job: Job, purpose: Purpose) -> EffectId {
        let id = self.effects.begin(None, purpose, false);
        self.commands.push_back(Command::Do(Effect { id, user: None, job }));
        id
    }

    /// Waits for an effect no longer.
    ///
    /// Returns the module that it was for.
    pub(crate) fn abandon_effect(&mut self, id: EffectId) -> Option<Key> {
        let key = self.effects.abandon(id)?;
        self.commands.push_back(Command::Abandon(id));
        Some(key)
    }

    /// Returns what an effect was for that has its outcome; each has one.
    pub(crate) fn close_effect(&mut self, id: EffectId) -> Option<Purpose> {
        self.effects.close(id)
    }

    /// Gives the answers that waited for an effect.
    pub(crate) fn answer_waiting(&mut self, id: EffectId) {
        for (ticket, outcome) in self.effects.take_answers(id) {
            self.answer(ticket, outcome);
        }
    }

    /// Answers a user's request once the user's effects so far are done, of which the last is done last.
    pub(crate) fn answer_when_done(&mut self, user: &UserId, ticket: PendingAnswer, outcome: Outcome) {
        match self.effects.last_of(user) {
            Some(last) => self.effects.add_answer(last, ticket, outcome),
            None => self.answer(ticket, outcome),
        }
    }

    /// Answers a request once an effect is done.
    pub(crate) fn answer_after(&mut self, id: EffectId, ticket: PendingAnswer, outcome: Outcome) {
        self.effects.add_answer(id, ticket, outcome);
    }

    /// Answers a request.
    pub(crate) fn answer(&mut self, ticket: PendingAnswer, outcome: Outcome) {
        let report = self.report(&ticket, outcome);
        self.send(ticket, report);
    }

    /// Answers a request with a refusal.
    pub(crate) fn refuse(&mut self, ticket: PendingAnswer, refusal: Refusal) {
        self.answer(ticket, Outcome::Refused(refusal));
    }

    /// Returns the report of an answer.
    pub(crate) fn report(&self, ticket: &PendingAnswer, outcome: Outcome) -> NodeReport {
        let took = self.now.instant.since(ticket.received);
        NodeReport {
            node: self.policy.node.clone(),
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            outcome,
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            hop: None,
            load: None,
            modules: Vec::new(),
            blocks: Vec::new(),
            environments: Vec::new(),
            policy: None,
        }
    }

    /// Says of a request that it is of the user whom it names, before it is answered.
    pub(crate) fn say_proven(&mut self, ticket: &PendingAnswer) {
        self.answers.push_back(Command::Proven(ticket.request));
    }

    /// Answers a request with a report.
    pub(crate) fn send(&mut self, ticket: PendingAnswer, report: NodeReport) {
        let PendingAnswer { request, method, received: _, proven } = ticket;
        self.in_flight -= 1;
        self.counters.answered(method, &report.outcome);
        self.answers.push_back(Command::Answer { request, report: Box::new(report), proven });
    }

    /// Says something that is no answer.
    pub(crate) fn say(&mut self, command: Command) {
        self.commands.push_back(command);
    }

    /// Says that a module is removed since its user's rights ended, or the policy does not allow it.
    pub(crate) fn say_revoked(&mut self, user: &UserId, module: ModuleRef, refusal: Refusal) {
        self.counters.revoked += 1;
        let evidence = self.authority.basis(&self.policy, user);
        let is_stranger = self.authority.evidence(user).is_some();
        self.say(Command::Notify(Notice::Revoked { user: user.clone(), module, refusal, evidence, is_stranger }));
    }

    /// Says that a module is back since its user has rights again.
    pub(crate) fn say_resumed(&mut self, user: &UserId, module: ModuleRef) {
        let evidence = self.authority.basis(&self.policy, user);
        self.say(Command::Notify(Notice::Resumed { user: user.clone(), module, evidence }));
    }

    /// Says that a module is removed since its last lease ended.
    pub(crate) fn say_expired(&mut self, user: &UserId, module: ModuleRef) {
        let evidence = self.authority.basis(&self.policy, user);
        let is_stranger = !self.policy.users.contains_key(user);
        self.say(Command::Notify(Notice::Expired { user: user.clone(), module, evidence, is_stranger }));
    }

    /// Has the requester of one SETUP told what happened to a module, or what the module itself says.
    pub(crate) fn tell_requester(
        &mut self,
        key: &Key,
        origin: Origin,
        event: NotifyEvent,
        detail: String,
        message: Option<ModuleMessage>,
    ) {
        let news = ModuleNews { message, ..news_for(key, origin, event, detail) };
        self.say(Command::TellRequesters(Box::new(news)));
    }

    /// Has those told whose SETUPs installed a module, of which the last is from `origin`, what happened to it.
    pub(crate) fn tell_all_requesters(&mut self, key: &Key, origin: Origin, event: NotifyEvent, detail: String) {
        let news = ModuleNews { is_for_one: false, ..news_for(key, origin, event, detail) };
        self.say(Command::TellRequesters(Box::new(news)));
    }

    /// Puts another policy in force, and returns the one before.
    pub(crate) fn set_policy(&mut self, policy: NodePolicy) -> NodePolicy {
        let before = std::mem::replace(&mut self.policy, policy);
        self.authority.set_policy(&self.policy);
        before
    }

    /// Returns what a user may do now, or why nothing.
    pub(crate) fn rights(&self, user: &UserId) -> Result<&UserPolicy, Refusal> {
        self.authority.rights(&self.policy, user, self.now.wall)
    }

    /// Returns what a user may do now, if anything.
    pub(crate) fn may(&self, user: &UserId) -> Option<&UserPolicy> {
        self.rights(user).ok()
    }

    /// Puts into force what a request proved.
    pub(crate) fn accept(&mut self, proof: Proof<'_>, has_modules: impl Fn(&UserId) -> bool) -> Result<(), Refusal> {
        if !proof.brings_evidence() {
            return Ok(());
        }
        let is_new = self.authority.evidence(proof.user).is_none();
        let gone = self.authority.accept(proof, self.now.wall, has_modules)?;
        let changes = is_new || !gone.is_empty();
        self.forget_users(gone);
        if changes {
            self.plan_addresses();
        }
        self.watch_proofs();
        self.watch_checklists(self.now.instant);
        Ok(())
    }

    /// Has users forgotten who have nothing on the node, with what their modules kept.
    pub(crate) fn forget_users(&mut self, users: Vec<Forgotten>) {
        self.has_forgotten |= !users.is_empty();
        for Forgotten { user, basis, why } in users {
            self.start_node_effect(Job::Store(StoreJob::ForgetUser { user: user.clone() }), Purpose::Nothing);
            self.say(Command::Notify(Notice::Forgotten { user, refusal: why, evidence: basis }));
        }
    }

    /// Has containers' addresses be by the plan as it is now, if they have a network.
    pub(crate) fn plan_addresses(&mut self) {
        if self.policy.has_network() {
            let plan = self.address_plan();
            self.start_node_effect(Job::Addresses(Box::new(plan)), Purpose::Nothing);
        }
    }

    /// Has proofs looked at when the next one ends. The clock may be set meanwhile, so that is often; and also if none holds, as
    /// users are forgotten then.
    pub(crate) fn watch_proofs(&mut self) {
        if self.authority.is_empty() {
            return;
        }
        let end = self.authority.next_end(self.now.wall);
        let left = end.map_or(PROOFS_LOOKED_AT_AFTER, |end| end.distance(self.now.wall).min(PROOFS_LOOKED_AT_AFTER));
        self.timers.set_not_after(Timer::Proofs, self.now.instant + left);
    }

    /// Has checklists looked at again a while after a time, if there are some.
    pub(crate) fn watch_checklists(&mut self, since: Instant) {
        if self.authority.has_checklists() {
            let wait = if self.authority.has_doubts() { DOUBTS_LOOKED_AT_AFTER } else { CHECKLISTS_LOOKED_AT_AFTER };
            let at = (since + wait).max(self.now.instant + CHECKLISTS_PAUSE_MIN);
            self.timers.set_not_after(Timer::Checklists, at);
        }
    }

    /// Returns of what all users' containers get their addresses.
    pub(crate) fn address_plan(&self) -> AddressPlan {
        self.authority.address_plan(&self.policy)
    }

    /// Returns whether the node takes nothing new of a user, since it is being drained.
    pub(crate) fn is_drained_for(&self, user: &UserId) -> bool {
        self.policy.maintenance && !self.is_operator(user)
    }

    /// Returns whether a user is the operator.
    pub(crate) fn is_operator(&self, user: &UserId) -> bool {
        self.policy.operator.as_ref().is_some_and(|operator| operator.user == *user)
    }

    /// Returns whether nothing is under way, and nothing left to say.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.effects.is_empty() && self.commands.is_empty() && self.answers.is_empty()
    }
}

/// Returns what the requester of one SETUP is told.
fn news_for(
    (user, module): &Key,
    Origin { session, nonce, .. }: Origin,
    event: NotifyEvent,
    detail: String,
) -> ModuleNews {
    let (user, module) = (user.clone(), module.clone());
    ModuleNews { user, module, session, nonce, is_for_one: true, event, detail, message: None }
}
