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

mod control;
mod counters;
mod cx;
pub mod limits;
mod modules;
mod moves;
mod policy;
mod report;
mod rules;
mod services;
mod tenants;
#[cfg(test)]
mod tests;
mod usage;
mod users;
mod workers;

pub use counters::Counters;
use netserv_authority::Said;
use netserv_model::api::{RevocationInfo, UsageReport, UserInfo};
#[cfg(doc)]
use netserv_model::effect::WorkerJob;
use netserv_model::effect::{
    Command, EffectId, EffectOutcome, ModuleSlot, News, Notice, PolicyChange, RequestId, Stored, StoredList, Wish,
    WorkerNews,
};
use netserv_model::policy::NodePolicy;
use netserv_model::request::{Body, ModuleStatus, NodeLoad, Request};
use netserv_model::usage::Usage;
use netserv_model::{Instant, ModuleName, Nonce, Now, Refusal, RefusalKind, UserId, WorkerId};

use control::tells::{self, Telling, Tells};
use cx::Cx;
use cx::effects::{Purpose, failure, why_not};
use cx::request::{Origin, PendingAnswer};
use cx::timers::Timer;
use modules::{
    Modules, fetching, lifecycle, loading, passing, policy_change, preparing, requests, restoring, resuming, settling,
};
use moves::exports::Exports;
use moves::freezing;
use tenants::later::Next;
use tenants::wishes;
use usage::metering::Metering;
use users::admission::{Claim, Denied, Users};
use users::proving::{self, Proving};
use users::revoking::Revoking;
use workers::changes::{Changes, Held};
use workers::{draining, release};

/// Decides what runs on a node. One per node.
#[derive(Debug)]
pub struct Controller {
    cx: Cx,
    modules: Modules,
    users: Users,
    proving: Proving,
    revoking: Revoking,
    exports: Exports,
    tells: Tells,
    /// Changes of the policy that are not in force everywhere.
    changes: Changes,
    metering: Metering,
    load: NodeLoad,
}

impl Controller {
    /// Returns a controller without modules.
    pub fn new(policy: NodePolicy) -> Controller {
        let (mut cx, mut revoking) = (Cx::new(policy), Revoking::default());
        revoking.set_policy(&mut cx);
        Controller {
            cx,
            modules: Modules::default(),
            users: Users::default(),
            proving: Proving::default(),
            revoking,
            exports: Exports::default(),
            tells: Tells::default(),
            changes: Changes::default(),
            metering: Metering::default(),
            load: NodeLoad::default(),
        }
    }

    /// Takes over the modules and sums of an earlier run; call it once, before anything else, also if there are none.
    ///
    /// Modules keep what is left of their leases; those whose lease has ended, or that the policy no longer allows, are
    /// forgotten. Requests that were made before this moment, to the second, are refused from here on, as they may have
    /// been carried out before the restart. If the wall clock is set later, the moment moves with it.
    pub fn restore(&mut self, now: Now, stored: impl Into<Stored>) {
        let Stored { installed, usage, messages, lists } = stored.into();
        self.cx.now = now;
        self.metering.restore(&mut self.cx, usage);
        self.users.start(now);
        for StoredList { issuer, text } in lists {
            // The operator may trust another key by now. It is asked for at once.
            let _ = self.cx.authority.set_list(&self.cx.policy, &issuer, &text);
        }
        for record in &installed {
            let Some(evidence) = &record.evidence else { continue };
            self.cx.authority.restore(&self.cx.policy, &record.user, evidence, now.wall);
            if let Some(since) = record.suspended {
                self.cx.authority.set_unknown(&record.user, since, now);
            }
        }
        self.cx.watch_proofs();
        proving::check_again(&mut self.cx, None);
        self.cx.plan_addresses();
        restoring::restore_records(&mut self.cx, &mut self.modules, installed, messages);
    }

    /// Takes a request, which is answered exactly once by [`Command::Answer`].
    ///
    /// The report's `address` is left unspecified, and packet counts are left at zero.
    pub fn handle_request(&mut self, now: Now, id: RequestId, request: Request) {
        self.cx.now = now;
        let ticket = self.cx.open_request(id, request.body.verb().as_str());
        self.take_request(ticket, request, None);
    }

    /// Takes a request; `said` answers the question that had to be asked first, if there was one.
    fn take_request(&mut self, mut ticket: PendingAnswer, request: Request, said: Option<Said>) {
        let Controller { cx, modules, users, proving, exports, tells, metering, load, .. } = self;
        if metering.is_stopping() {
            return cx.refuse(ticket, Refusal::new(RefusalKind::NodeFailed, "the node is about to stop"));
        }
        let claim = Claim { request: &request, said, proven: &mut ticket.proven };
        let admitted = users.admit(cx, &modules.tenants, &mut modules.nonces, load, claim);
        if ticket.proven.is_some() && !admitted.as_ref().is_err_and(Denied::is_for_copies) {
            cx.say_proven(&ticket);
        }
        let (user, time) = match admitted {
            Ok(admitted) => admitted,
            Err(Denied::Answer(outcome)) => return cx.answer(ticket, outcome),
            Err(Denied::NotYet(question)) => return proving.ask(cx, ticket, request, question),
            Err(Denied::ForOthers(user, outcome)) => {
                let outcome = passing::pass_by(cx, modules, &user, &request, outcome);
                return cx.answer(ticket, outcome);
            }
        };
        user.iter().for_each(|user| resuming::settle_before(cx, modules, user));
        // What is in force decides, which need not be what the request brought.
        let in_force = user.as_ref().and_then(|user| cx.authority.basis(&cx.policy, user));
        if let Some((proven, in_force)) = ticket.proven.as_mut().zip(in_force) {
            proven.evidence = in_force;
        }
        let wish = if let Body::Setup(setup) = &request.body {
            Some(Wish { what: wishes::digest(setup), made: request.created })
        } else {
            None
        };
        let origin = Origin { session: request.session, nonce: Some(request.nonce), wish };
        let key = |module: &ModuleName| {
            let user = user.clone().expect("admission lets only a PROBE be without a user");
            (user, module.clone())
        };
        match request.body {
            Body::Probe(probe) => report::answer_probe(cx, &modules.tenants, load, ticket, user.as_ref(), &probe),
            Body::Setup(setup) => {
                let key = key(&setup.module.name);
                let task = requests::setup_task(setup, time);
                requests::take_task(cx, modules, &key, ticket, origin, task, request.dry_run);
            }
            Body::Remove(remove) => {
                let key = key(&remove.module);
                let task = requests::remove_task(&remove, request.session, request.nonce, time);
                requests::take_task(cx, modules, &key, ticket, origin, task, request.dry_run);
            }
            Body::Tell(tell) => {
                let key = key(&tell.module);
                let (created, dry_run) = (request.created, request.dry_run);
                let telling = Telling { key, message: tell.message, created, dry_run };
                tells.tell(cx, &mut modules.tenants, &modules.told_before, ticket, telling);
            }
            Body::Export(export) => {
                let key = key(&export.module);
                exports.export(cx, &mut modules.tenants, &mut modules.buffers, ticket, (&key, export), request.dry_run);
            }
        }
    }

    /// Ends the session of the SETUP with this nonce: its path does not lead here any more. The module goes if no other session
    /// holds it. A SETUP that is still under way is refused. Returns whether there was anything.
    pub fn withdraw(&mut self, now: Now, user: &UserId, module: &ModuleName, nonce: Nonce) -> bool {
        let Controller { cx, modules, users, .. } = self;
        cx.now = now;
        let key = (user.clone(), module.clone());
        let was_there = requests::withdraw(cx, modules, &key, nonce);
        if was_there {
            users.undo(user, module, nonce);
        }
        was_there
    }

    /// Takes the outcome of an effect.
    pub fn handle_outcome(&mut self, now: Now, id: EffectId, outcome: EffectOutcome) {
        self.cx.now = now;
        let Some(purpose) = self.cx.close_effect(id) else {
            self.cx.counters.stray_events += 1;
            return;
        };
        if matches!(purpose, Purpose::Prove) {
            self.question_asked(id, outcome);
        } else {
            self.go_on(id, purpose, outcome);
        }
        self.cx.answer_waiting(id);
    }

    /// Takes news of a worker.
    pub fn handle_news(&mut self, now: Now, news: News) {
        let Controller { cx, modules, metering, .. } = self;
        cx.now = now;
        let News { worker, generation, what } = news;
        if modules.tenants.worker(&worker).is_none_or(|known| known.generation != Some(generation)) {
            cx.counters.stray_events += 1;
            return;
        }
        match what {
            WorkerNews::Ready { addresses } => loading::worker_ready(cx, modules, metering, &worker, addresses),
            WorkerNews::Died { refusal, culprit } => {
                loading::worker_died(cx, modules, metering, &worker, &refusal, culprit);
            }
            WorkerNews::Loaded(slot) => loading::loaded(cx, modules, &worker, slot),
            WorkerNews::Failed { slot, refusal } => loading::module_failed(cx, modules, &worker, slot, refusal),
            WorkerNews::Drained(slot) => draining::drained(cx, &mut modules.tenants, &worker, slot),
            WorkerNews::Notified { slot, message } => {
                tells::notified(cx, &mut modules.tenants, &worker, slot, &message);
            }
        }
    }

    /// Does what is due; calling it early does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        self.cx.now = now;
        while let Some(timer) = self.cx.timers.pop_due(now.instant) {
            self.fire(timer);
        }
    }

    /// Puts another policy in force; answered once by [`Command::InForce`], when running containers are held to it.
    ///
    /// Modules and requests under way whose user or filters it does not allow are removed and refused. What single
    /// modules may use holds from their next load.
    pub fn set_policy(&mut self, now: Now, change: PolicyChange, policy: NodePolicy) {
        self.cx.now = now;
        let held = Held::now(&self.cx, &self.modules.tenants);
        let before = self.cx.set_policy(policy);
        self.revoking.set_policy(&mut self.cx);
        self.changes.begin(&mut self.cx, &self.modules.tenants, change, &held);
        if self.cx.policy.maintenance && !before.maintenance {
            policy_change::say_maintenance(&mut self.cx, &self.modules.tenants);
        }
        policy_change::apply_policy(&mut self.cx, &mut self.modules, &mut self.users);
        proving::check_again(&mut self.cx, None);
    }

    /// Sets what PROBE says of the load; `containers` and `modules` are counted by the controller itself.
    pub fn set_load(&mut self, load: NodeLoad) {
        self.load = load;
    }

    /// Returns the next thing to do or to say.
    pub fn poll_command(&mut self) -> Option<Command> {
        loop {
            if let Some(command) = self.cx.pop_command() {
                return Some(command);
            }
            match self.modules.later.pop()? {
                Next::Prepared(key, worker) => {
                    preparing::end_preparing(&mut self.cx, &mut self.modules, &key, worker.as_ref());
                }
                Next::Swap(key) => settling::swap_rules(&mut self.cx, &mut self.modules, &key),
            }
        }
    }

    /// Returns when [`Controller::handle_timeout`] is due next, and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.cx.timers.next()
    }

    /// Returns the modules by user and install order; packet counts and counters are left out.
    pub fn modules(&self, now: Now) -> Vec<ModuleStatus> {
        self.modules.tenants.iter().flat_map(|(user, tenant)| report::modules_of(user, tenant, now.instant)).collect()
    }

    /// Returns who may do what.
    pub fn users(&self, now: Now) -> Vec<UserInfo> {
        let cx = &self.cx;
        report::users(cx, &self.modules.tenants, now.instant)
    }

    /// Returns the modules of users that are left on the node.
    pub fn user_modules(&self, now: Now) -> Vec<ModuleStatus> {
        let users = self.modules.tenants.iter().filter(|(user, _)| !self.cx.is_operator(user));
        users.flat_map(|(user, tenant)| report::modules_of(user, tenant, now.instant)).collect()
    }

    /// Returns an installed module's worker and its place there, by which its packet counts are found.
    pub fn place(&self, user: &UserId, module: &ModuleName) -> Option<(WorkerId, ModuleSlot)> {
        let (flavour, slot) = self.modules.tenants.get(user)?.modules.get(module)?.active.as_ref()?.place()?;
        Some((WorkerId::new(user.clone(), flavour), slot))
    }

    /// Returns the module that has a place in a worker.
    pub fn module_at(&self, worker: &WorkerId, slot: ModuleSlot) -> Option<&ModuleName> {
        self.modules.tenants.module_at(worker, slot)
    }

    /// Returns the load with the controller's own counts filled in.
    pub fn load(&self) -> NodeLoad {
        report::counted_load(&self.cx, &self.modules.tenants, &self.load)
    }

    /// Begins to read all meters, unless that is under way; returns whether it began.
    pub fn read_meters(&mut self, now: Now) -> Option<EffectId> {
        self.cx.now = now;
        self.metering.read(&mut self.cx)
    }

    /// Returns whether meters are being read.
    pub fn reads_meters(&self) -> bool {
        self.metering.is_reading()
    }

    /// Refuses requests from here on, and has what was used until here stored; ends with [`Command::Settled`].
    pub fn handle_stop(&mut self, now: Now) {
        self.cx.now = now;
        self.metering.stop(&mut self.cx);
    }

    /// Returns what was used, as it was last measured.
    pub fn usage(&self) -> UsageReport {
        self.metering.usage()
    }

    /// Returns what each user used, as it was last measured.
    pub fn usage_by_user(&self) -> impl Iterator<Item = (&UserId, &Usage)> {
        self.metering.usage_by_user()
    }

    /// Returns what is known of revocation lists.
    pub fn revocations(&self, now: Now) -> Vec<RevocationInfo> {
        self.revoking.report(&self.cx, now.instant)
    }

    /// Returns what was counted.
    pub fn counters(&self) -> &Counters {
        &self.cx.counters
    }

    /// A question that a request waits for was answered, or not.
    fn question_asked(&mut self, id: EffectId, outcome: EffectOutcome) {
        let Some((ticket, request)) = self.proving.take(&mut self.cx, id) else { return };
        if let EffectOutcome::Vouched(said) = outcome {
            self.take_request(ticket, request, Some(Said::Address(said)));
        } else if let EffectOutcome::Held(holder) = outcome {
            self.take_request(ticket, request, Some(Said::Holder(holder)));
        } else {
            self.cx.refuse(ticket, why_not(outcome));
        }
    }

    fn go_on(&mut self, id: EffectId, purpose: Purpose, outcome: EffectOutcome) {
        let Controller { cx, modules, users, revoking, exports, tells, changes, metering, .. } = self;
        match (purpose, outcome) {
            (Purpose::Fetch(key), EffectOutcome::Fetched { manifest, flavour }) => {
                fetching::package_fetched(cx, modules, &key, id, *manifest, flavour);
            }
            (Purpose::Compose(key), EffectOutcome::Done) => fetching::service_composed(cx, modules, &key, id),
            (Purpose::Fetch(key) | Purpose::Compose(key), EffectOutcome::Refused(refusal)) => {
                fetching::fetch_failed(cx, modules, &key, id, &refusal);
            }
            // Somebody waits for it all the same.
            (Purpose::Fetch(key) | Purpose::Compose(key), _) => {
                cx.counters.stray_events += 1;
                let refusal =
                    Refusal::new(RefusalKind::NodeFailed, "the node answered itself as if asked for another job");
                fetching::fetch_failed(cx, modules, &key, id, &refusal);
            }
            (Purpose::Filters(key, ids), outcome) => {
                settling::filters_changed(cx, modules, exports, &key, id, &ids, failure(outcome));
            }
            (Purpose::Policy(change, hold), outcome) => changes.applied(cx, change, hold, id, failure(outcome)),
            (Purpose::Intercept(key, rule), outcome) => {
                settling::intercepted(cx, modules, &key, id, rule, failure(outcome));
            }
            (Purpose::Floating(user, come), outcome) => {
                settling::floating_changed(cx, modules, &user, id, &come, failure(outcome));
            }
            (Purpose::Start(worker), EffectOutcome::Refused(refusal)) => {
                loading::start_refused(cx, modules, metering, &worker, id, &refusal);
            }
            (Purpose::Load(worker, generation, slot), EffectOutcome::Refused(refusal)) => {
                loading::load_refused(cx, modules, &worker, generation, slot, refusal);
            }
            (Purpose::Store((user, module)), EffectOutcome::Refused(refusal)) => {
                cx.counters.store_failures += 1;
                cx.say(Command::Notify(Notice::NotStored { user, module, refusal }));
            }
            (Purpose::List(issuer), outcome) => {
                revoking.listed(cx, &issuer, id, outcome);
                policy_change::end_proofs(cx, modules, users);
            }
            (Purpose::KeepList(issuer), EffectOutcome::Refused(refusal)) => {
                cx.counters.store_failures += 1;
                cx.say(Command::Notify(Notice::NotListed { issuer, refusal }));
            }
            (Purpose::Tell, outcome) => tells.told(cx, &mut modules.tenants, id, failure(outcome)),
            (Purpose::Export, outcome) => exports.exported(cx, &mut modules.tenants, &mut modules.buffers, id, outcome),
            (Purpose::Meters, EffectOutcome::Metered(meters)) => metering.take(cx, Some(*meters)),
            (Purpose::Meters, _) => metering.take(cx, None),
            (Purpose::Usage, outcome) => metering.stored(cx, outcome == EffectOutcome::Done),
            (Purpose::Stop, _) => metering.read_soon(cx),
            (Purpose::CheckAgain, outcome) => {
                let said = if let EffectOutcome::Held(holder) = outcome { Ok(holder) } else { Err(why_not(outcome)) };
                policy_change::checked_again(cx, modules, users, id, said);
            }
            (Purpose::Start(_) | Purpose::Load(..) | Purpose::Store(_) | Purpose::KeepList(_), EffectOutcome::Done)
            | (Purpose::Nothing | Purpose::Prove, _) => {}
            // No effect of the controller's has such an outcome; those who wait for news of it have timers.
            (Purpose::Start(_) | Purpose::Load(..) | Purpose::Store(_) | Purpose::KeepList(_), _) => {
                cx.counters.stray_events += 1;
            }
        }
    }

    /// Does what a timer was set for.
    fn fire(&mut self, timer: Timer) {
        let Controller { cx, modules, users, proving, revoking, exports, tells, metering, .. } = self;
        match timer {
            Timer::Lease(key) => lifecycle::advance(cx, modules, &key),
            Timer::Restart(key) => fetching::restart_module(cx, modules, &key),
            Timer::RestartWorker(worker) => loading::restart_worker(cx, modules, &worker),
            Timer::Fetch(job) => fetching::fetch_overdue(cx, modules, job),
            Timer::Start(worker) => loading::start_overdue(cx, modules, metering, &worker),
            Timer::Load(worker, slot) => loading::load_overdue(cx, modules, metering, &worker, slot),
            Timer::StopIdle(worker) => release::stop_idle(cx, &mut modules.tenants, &worker),
            Timer::Prepared(worker) => release::release_unused(cx, &mut modules.tenants, &worker.user),
            Timer::Drain(worker, slot) => draining::end_draining(cx, &mut modules.tenants, &worker, slot),
            Timer::Tell(id) => tells.overdue(cx, id),
            Timer::Export(id) => exports.overdue(cx, &mut modules.tenants, &mut modules.buffers, id),
            Timer::Thaw(key) => freezing::thaw(cx, &mut modules.tenants, &mut modules.buffers, &key),
            Timer::Buffered(key) => modules.buffers.end(cx, &key),
            Timer::Prove(id) => proving.overdue(cx, id),
            Timer::List(issuer) => {
                revoking.ask(cx, &issuer);
                policy_change::end_proofs(cx, modules, users);
            }
            Timer::Proofs => policy_change::end_proofs(cx, modules, users),
            Timer::Checklists => policy_change::look_at_checklists(cx, modules, users),
            Timer::ReadMeters => metering.read_due(cx),
        }
    }
}
