// SPDX-License-Identifier: Apache-2.0
//! Admission, life cycle, filters, leases and quotas of a node: requests and events in, commands out.
//!
//! After any `handle_*` call, drain [`Controller::poll_command`], then re-arm from [`Controller::poll_timeout`].
//! Calling [`Controller::handle_timeout`] early does nothing.
//!
//! What the one who carries out effects must keep to:
//! - Each [`Command::Do`] is answered once, by [`Controller::handle_outcome`], at any later time. Ordered effects of one
//!   user ([`Job::is_ordered`]) are carried out one after the other, each after the outcome of the one before.
//! - Nothing that an effect changes is taken to be so before its outcome. The module in force keeps its filters until the
//!   change is done that brings its successor's, and a request is answered after the last of its effects.
//! - News of a worker carry its generation; those of an earlier one are counted and change nothing.
//! - [`WorkerJob::Load`] leads to exactly one of [`WorkerNews::Loaded`] and [`WorkerNews::Failed`] unless it is refused or
//!   the worker dies; one that comes after [`WorkerJob::Unload`] counts too.
//! - A reading of meters ([`Job::ReadMeters`]) has every run of a module, worker or network of which no reading said that it
//!   ended, with all that it counted since it began.
//!
//! While an installed module is down (backing off, in quarantine, its worker being restarted), its filters and its
//! place stay: the packet loop lets its packets pass or drops them as `on_failure` says.
#![forbid(unsafe_code)]

mod admission;
mod buffering;
mod control;
mod counters;
mod draining;
mod effects;
mod expiry;
mod filters;
mod floating;
mod forbidden;
mod freezing;
mod ledger;
mod lifecycle;
pub mod limits;
mod maintenance;
mod metering;
mod moves;
mod operator;
mod preparing;
mod quota;
mod report;
mod restart;
mod rules;
mod seen;
mod services;
mod sessions;
mod state;
#[cfg(test)]
mod tests;
mod wishes;
mod workers;

use std::collections::{BTreeMap, VecDeque};

use netserv_model::api::UsageReport;
#[cfg(doc)]
use netserv_model::effect::WorkerJob;
use netserv_model::effect::{
    Command, EffectId, EffectOutcome, Job, ModuleSlot, News, PolicyChange, RequestId, Stored, Wish, WorkerNews,
};
use netserv_model::policy::{AddressPlan, NodePolicy};
use netserv_model::request::{Body, ModuleStatus, NodeLoad, Request};
use netserv_model::usage::Usage;
use netserv_model::{Instant, ModuleName, Nonce, Now, Refusal, RefusalKind, UserId, WorkerId};

pub use counters::Counters;

use admission::Freshness;
use buffering::Buffered;
use control::{PendingTell, ToldBefore};
use effects::{Effects, Purpose};
use expiry::Timers;
use freezing::{Exporting, Freezing};
use ledger::Ledger;
use metering::Metering;
use moves::Epochs;
use operator::Changes;
use quota::{Newest, Nonces, Quarantine};
use seen::Seen;
use state::{Key, Leave, Origin, PendingAnswer, Phase, Removal, Task, Tenant, Waiter};

/// Decides what runs on a node. One per node.
#[derive(Debug)]
pub struct Controller {
    policy: NodePolicy,
    /// The clocks at the last input.
    now: Now,
    /// The clocks when it took over from an earlier run, if it did.
    started: Option<Now>,
    tenants: BTreeMap<UserId, Tenant>,
    effects: Effects,
    /// Changes of the policy that are not in force everywhere.
    changes: Changes,
    /// Services without code of their own, which are to be put in force.
    swaps: VecDeque<Key>,
    /// Answers, which need not wait for commands that others led to.
    answers: VecDeque<Command>,
    commands: VecDeque<Command>,
    timers: Timers,
    nonces: Nonces,
    newest: Newest,
    seen: Seen,
    quarantine: Quarantine,
    /// Messages that workers are asked to put into inboxes.
    tells: BTreeMap<EffectId, PendingTell>,
    told_before: ToldBefore,
    /// Requests that wait for a state to be written.
    exports: BTreeMap<EffectId, Exporting>,
    freezing: BTreeMap<EffectId, Freezing>,
    epochs: Epochs,
    /// Modules for which packets wait.
    buffered: BTreeMap<Key, Buffered>,
    /// Modules for which all is ready that was to be, and the workers that wait for them.
    prepared: VecDeque<(Key, Option<WorkerId>)>,
    counters: Counters,
    ledger: Ledger,
    metering: Metering,
    load: NodeLoad,
    /// Requests that are not answered yet.
    in_flight: usize,
    next_rule: u64,
    next_order: u64,
}

impl Controller {
    /// Returns a controller without modules.
    pub fn new(policy: NodePolicy) -> Controller {
        Controller {
            policy,
            now: Now::default(),
            started: None,
            tenants: BTreeMap::new(),
            effects: Effects::default(),
            changes: Changes::default(),
            swaps: VecDeque::new(),
            answers: VecDeque::new(),
            commands: VecDeque::new(),
            timers: Timers::default(),
            nonces: Nonces::default(),
            newest: Newest::default(),
            seen: Seen::default(),
            quarantine: Quarantine::default(),
            tells: BTreeMap::new(),
            told_before: ToldBefore::default(),
            exports: BTreeMap::new(),
            freezing: BTreeMap::new(),
            epochs: Epochs::default(),
            buffered: BTreeMap::new(),
            prepared: VecDeque::new(),
            counters: Counters::default(),
            ledger: Ledger::default(),
            metering: Metering::default(),
            load: NodeLoad::default(),
            in_flight: 0,
            next_rule: 0,
            next_order: 0,
        }
    }

    /// Takes over the modules and sums of an earlier run; call it once, before anything else, also if there are none.
    ///
    /// Modules keep what is left of their leases; those whose lease has ended, or that the policy no longer allows, are
    /// forgotten. Requests that were made before this moment, to the second, are refused from here on, as they may have
    /// been carried out before the restart. If the wall clock is set later, the moment moves with it.
    pub fn restore(&mut self, now: Now, stored: impl Into<Stored>) {
        let Stored { installed, usage, messages } = stored.into();
        self.now = now;
        if !usage.is_empty() {
            self.ledger.restore(usage);
            self.meter_soon();
        }
        self.started = Some(now);
        let plan = self.policy.address_plan();
        if plan != AddressPlan::default() {
            self.start_node_effect(Job::Addresses(Box::new(plan)), Purpose::Nothing);
        }
        self.restore_records(installed, messages);
    }

    /// Takes a request, which is answered exactly once by [`Command::Answer`].
    ///
    /// The report's `address` is left unspecified, and packet counts are left at zero.
    pub fn handle_request(&mut self, now: Now, id: RequestId, request: Request) {
        self.now = now;
        self.in_flight += 1;
        let ticket = PendingAnswer { request: id, method: request.body.method(), received: now.instant };
        if self.is_stopping() {
            return self.refuse(ticket, Refusal::new(RefusalKind::NodeFailed, "the node is about to stop"));
        }
        let (user, time) = match self.admit(&request) {
            Ok(admitted) => admitted,
            Err(outcome) => return self.answer(ticket, outcome),
        };
        let wish = match &request.body {
            Body::Setup(setup) => Some(Wish { what: wishes::digest(setup), made: request.created }),
            Body::Remove(_) | Body::Tell(_) | Body::Export(_) | Body::Probe(_) => None,
        };
        let origin = Origin { session: request.session, nonce: Some(request.nonce), wish };
        match (request.body, user) {
            (Body::Probe(probe), user) => self.answer_probe(ticket, user.as_ref(), &probe),
            (Body::Setup(mut setup), Some(user)) => {
                let key = (user, setup.module.name.clone());
                let task = match time {
                    Freshness::Fresh => Task::Setup(setup),
                    Freshness::Late { left } => {
                        setup.ttl = left;
                        Task::Setup(setup)
                    }
                    Freshness::Repeated => Task::Repeat,
                };
                self.take_task(&key, ticket, origin, task, request.dry_run);
            }
            (Body::Remove(remove), Some(user)) => {
                let leave = if remove.force { Leave::AtOnce } else { Leave::Drain };
                // What another node owns from here on goes whoever holds it.
                let session = (!remove.all && remove.epoch.is_none()).then_some(request.session);
                let removal = Removal { leave, epoch: remove.epoch, session };
                let task = match time {
                    Freshness::Repeated => Task::RemoveAgain(request.nonce),
                    Freshness::Fresh | Freshness::Late { .. } => Task::Remove(removal),
                };
                self.take_task(&(user, remove.module), ticket, origin, task, request.dry_run);
            }
            (Body::Tell(tell), Some(user)) => {
                let key = (user, tell.module.clone());
                self.tell(key, ticket, tell, request.created, request.dry_run);
            }
            (Body::Export(export), Some(user)) => {
                let key = (user, export.module.clone());
                self.export(&key, ticket, export, request.dry_run);
            }
            (Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_), None) => {
                unreachable!("admission lets only a PROBE be without a user")
            }
        }
    }

    /// Ends the session of the SETUP with this nonce: its path does not lead here any more. The module goes if no other session
    /// holds it. A SETUP that is still under way is refused. Returns whether there was anything.
    pub fn withdraw(&mut self, now: Now, user: &UserId, module: &ModuleName, nonce: Nonce) -> bool {
        self.now = now;
        let key = (user.clone(), module.clone());
        let from_it = |origin: Origin| origin.nonce == Some(nonce);
        let under_way = self.operation(&key).is_some_and(|operation| from_it(operation.origin));
        let installed = self.active(&key).is_some_and(|active| active.session_by(nonce).is_some());
        if under_way || installed {
            // The path may come back.
            self.nonces.undo(user, nonce);
            self.newest.undo(user, module, nonce);
        }
        if under_way {
            self.fail_operation(&key, Refusal::new(RefusalKind::NotInstalled, "the path does not lead here any more"));
        }
        if installed {
            self.counters.leases_withdrawn += 1;
            if !self.leave(&key, |session| session.record.nonce == Some(nonce)) {
                self.uninstall(&key, Leave::Drain);
            }
            self.advance(&key);
        }
        under_way || installed
    }

    /// Takes the outcome of an effect.
    pub fn handle_outcome(&mut self, now: Now, id: EffectId, outcome: EffectOutcome) {
        self.now = now;
        self.end_effect(id, outcome);
    }

    /// Takes news of a worker.
    pub fn handle_news(&mut self, now: Now, news: News) {
        self.now = now;
        let News { worker, generation, what } = news;
        if self.worker(&worker).is_none_or(|known| known.generation != Some(generation)) {
            self.counters.stray_events += 1;
            return;
        }
        match what {
            WorkerNews::Ready { addresses } => self.worker_ready(&worker, addresses),
            WorkerNews::Died { refusal, culprit } => self.worker_died(&worker, &refusal, culprit),
            WorkerNews::Loaded(slot) => self.loaded(&worker, slot),
            WorkerNews::Failed { slot, refusal } => self.module_failed(&worker, slot, refusal),
            WorkerNews::Drained(slot) => self.drained(&worker, slot),
            WorkerNews::Notified { slot, message } => self.notified(&worker, slot, &message),
        }
    }

    /// Does what is due; calling it early does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        self.now = now;
        while let Some(timer) = self.timers.pop_due(now.instant) {
            self.fire(timer);
        }
    }

    /// Puts another policy in force; answered once by [`Command::InForce`], when running containers are held to it.
    ///
    /// Modules and requests under way whose user or filters it does not allow are removed and refused. What single
    /// modules may use holds from their next load.
    pub fn set_policy(&mut self, now: Now, change: PolicyChange, policy: NodePolicy) {
        self.now = now;
        let before = std::mem::replace(&mut self.policy, policy);
        self.apply_policy(change, &before);
    }

    /// Sets what PROBE says of the load; `containers` and `modules` are counted by the controller itself.
    pub fn set_load(&mut self, load: NodeLoad) {
        self.load = load;
    }

    /// Returns the next thing to do or to say.
    pub fn poll_command(&mut self) -> Option<Command> {
        loop {
            if let Some(command) = self.answers.pop_front().or_else(|| self.commands.pop_front()) {
                return Some(command);
            }
            if let Some((key, worker)) = self.prepared.pop_front() {
                self.end_preparing(&key, worker.as_ref());
                continue;
            }
            let key = self.swaps.pop_front()?;
            self.swap(&key);
        }
    }

    /// Returns when [`Controller::handle_timeout`] is due next, and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.next()
    }

    /// Returns the modules by user and install order; packet counts and counters are left out.
    pub fn modules(&self, now: Now) -> Vec<ModuleStatus> {
        self.tenants.iter().flat_map(|(user, tenant)| report::modules_of(user, tenant, now.instant)).collect()
    }

    /// Returns an installed module's worker and its place there, by which its packet counts are found.
    pub fn place(&self, user: &UserId, module: &ModuleName) -> Option<(WorkerId, ModuleSlot)> {
        let (flavour, slot) = self.tenants.get(user)?.modules.get(module)?.active.as_ref()?.place()?;
        Some((WorkerId::new(user.clone(), flavour), slot))
    }

    /// Returns the module that has a place in a worker.
    pub fn module_at(&self, worker: &WorkerId, slot: ModuleSlot) -> Option<&ModuleName> {
        Some(&self.tenants.get(&worker.user)?.workers.get(&worker.flavour)?.places.get(&slot)?.module)
    }

    /// Returns the load with the controller's own counts filled in.
    pub fn load(&self) -> NodeLoad {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let modules = self.tenants.values().flat_map(|tenant| tenant.modules.values());
        let modules = modules.filter(|entry| entry.active.is_some()).count();
        let there = |tenant: &&Tenant| tenant.workers.values().any(|worker| worker.phase != Phase::Absent);
        let containers = self.tenants.values().filter(there).count();
        let maintenance = self.policy.maintenance;
        NodeLoad { containers: count(containers), modules: count(modules), maintenance, ..self.load }
    }

    /// Returns what was used, as it was last measured.
    pub fn usage(&self) -> UsageReport {
        self.ledger.report()
    }

    /// Returns what each user used, as it was last measured.
    pub fn usage_by_user(&self) -> impl Iterator<Item = (&UserId, &Usage)> {
        self.ledger.users()
    }

    /// Returns what was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn take_task(&mut self, key: &Key, ticket: PendingAnswer, origin: Origin, task: Task, dry_run: bool) {
        if let Task::Setup(setup) = &task
            && let Err(refusal) = self.check_setup(key, setup)
        {
            return self.refuse(ticket, refusal);
        }
        if dry_run && !matches!(&task, Task::Setup(setup) if setup.prepare) {
            return self.answer_dry_run(key, ticket, origin, &task);
        }
        self.enqueue(key, Waiter { ticket, origin, task });
    }
}
