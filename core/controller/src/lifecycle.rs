// SPDX-License-Identifier: Apache-2.0
//! The life of a module: from its SETUP over fetch, load and filters to its end.

use std::mem;

use netserv_model::command::{Command, FilterId, InstalledRecord, JobId, Load, ModuleSlot};
use netserv_model::limits::REQUESTS_PENDING_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::request::{Outcome, Setup};
use netserv_model::{Digest, Flavour, Refusal, RefusalKind, SessionId, WorkerId};

use crate::Controller;
use crate::admission::{check_manifest, clamp_limits, merged_properties, narrowed};
use crate::expiry::Timer;
use crate::limits::{FETCH_ANSWER_TIME_MAX, LOAD_ANSWER_TIME_MAX};
use crate::report::not_installed;
use crate::state::{
    Active, Backoff, Candidate, Entry, Key, Operation, Place, Role, Rule, RuleKind, Run, Stage, Task, Ticket, Waiter,
};

impl Controller {
    /// Takes a request for a module; it waits for those before it.
    pub(crate) fn enqueue(&mut self, key: &Key, waiter: Waiter) {
        if self.in_flight > REQUESTS_PENDING_MAX {
            let detail = format!("the node works on {REQUESTS_PENDING_MAX} requests");
            return self.refuse(waiter.ticket, Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        self.entry_or_new(key).waiting.push_back(waiter);
        self.advance(key);
    }

    /// Goes on with a module's requests unless one is under way, and drops what nobody needs any more.
    pub(crate) fn advance(&mut self, key: &Key) {
        while let Some(Waiter { ticket, session, task }) = self.next_waiter(key) {
            match task {
                Task::Setup(setup) => self.begin_setup(key, ticket, session, *setup),
                Task::Remove => self.remove(key, ticket),
            }
        }
        self.expire_if_due(key);
        self.sweep(key);
    }

    /// A package is there.
    pub(crate) fn fetched(&mut self, job: JobId, manifest: Manifest, flavour: Flavour) {
        let Some(key) = self.end_job(job) else { return };
        if let Some(Stage::Fetching(wanted)) = self.stage(&key)
            && *wanted == job
        {
            return self.operation_fetched(&key, manifest, flavour);
        }
        self.active_fetched(&key, job, manifest, flavour);
    }

    /// A package could not be had.
    pub(crate) fn fetch_failed(&mut self, job: JobId, refusal: &Refusal) {
        let Some(key) = self.end_job(job) else { return };
        if let Some(Stage::Fetching(wanted) | Stage::Composing(wanted, _)) = self.stage(&key)
            && *wanted == job
        {
            return self.fail_operation(&key, refusal.clone());
        }
        self.active_not_fetched(&key, job, refusal);
    }

    /// A module runs.
    pub(crate) fn loaded(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        let Some(place) = self.end_load(worker, slot) else { return };
        let key = (worker.user.clone(), place.module);
        match place.role {
            Role::Leaving => self.free_place(worker, slot),
            Role::Candidate => self.settle(&key),
            Role::Active => self.run(&key, worker, slot),
        }
    }

    /// A module could not be loaded, or trapped.
    pub(crate) fn module_failed(&mut self, worker: &WorkerId, slot: ModuleSlot, refusal: Refusal) {
        let Some(place) = self.end_load(worker, slot) else { return };
        let key = (worker.user.clone(), place.module);
        match place.role {
            Role::Leaving => self.free_place(worker, slot),
            Role::Candidate => {
                self.free_place(worker, slot);
                self.forget_candidate_slot(&key);
                self.fail_operation(&key, refusal);
            }
            Role::Active if refusal.kind == RefusalKind::NodeFailed => self.fail_load(&key, refusal),
            Role::Active => self.fail_active(&key, refusal),
        }
    }

    /// A filter rule could not be installed.
    pub(crate) fn filter_failed(&mut self, id: FilterId, refusal: Refusal) {
        let Some(key) = self.rules.remove(&id) else {
            self.counters.stray_events += 1;
            return;
        };
        if let Some(Operation { stage: Stage::Settling(candidate), .. }) = self.operation(&key)
            && forget_rule(&mut candidate.rules, id)
        {
            return self.fail_operation(&key, refusal);
        }
        let Some(entry) = self.entry(&key) else { return };
        if let Some(active) = &mut entry.active {
            forget_rule(&mut active.rules, id);
        }
        match entry.answering.take_if(|(_, outcome)| matches!(outcome, Outcome::Installed { .. })) {
            Some((ticket, _)) => {
                self.uninstall(&key);
                self.sweep(&key);
                self.refuse(ticket, refusal);
                self.advance(&key);
            }
            None => self.fail_filter(&key, refusal),
        }
    }

    /// Puts a loaded and filtered module in force; the one before it goes.
    pub(crate) fn finish(&mut self, key: &Key) {
        let Some(entry) = self.entry(key) else { return };
        let settling = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Settling(_)));
        let Some(Operation { ticket, session, setup, stage: Stage::Settling(candidate) }) = settling else { return };
        let old = entry.active.take();
        let kept = old.as_ref().filter(|_| ticket.is_none()).map(Active::lease);
        let lease_s = setup.ttl.as_secs();
        let outcome = if old.is_some() { Outcome::Replaced { lease_s } } else { Outcome::Installed { lease_s } };
        if let Some(old) = old {
            self.retire(key, old);
        }
        let mut active = self.activate(key, session, setup, candidate);
        if let Some(lease) = kept {
            active.keep_lease(lease);
        }
        self.commands.push_back(Command::Store(active.record.clone()));
        self.timers.set(Timer::Lease(key.clone()), active.lease_end);
        let entry = self.entry_or_new(key);
        entry.active = Some(active);
        if let Some(ticket) = ticket {
            entry.answering = Some((ticket, outcome));
            self.answering.push_back(key.clone());
        }
        self.order_packets(&key.0);
        self.check_services(&key.0);
        self.advance(key);
    }

    /// Answers the request that put a module in force.
    pub(crate) fn answer_setup(&mut self, key: &Key) {
        let Some((ticket, outcome)) = self.entry(key).and_then(|entry| entry.answering.take()) else { return };
        self.answer(ticket, outcome);
        self.advance(key);
    }

    /// Ends the operation under way without a trace of it, and answers with why.
    pub(crate) fn fail_operation(&mut self, key: &Key, refusal: Refusal) {
        let Some(operation) = self.entry(key).and_then(|entry| entry.operation.take()) else { return };
        match operation.stage {
            Stage::Fetching(job) => self.drop_job(job),
            Stage::Composing(job, candidate) => {
                self.drop_job(job);
                self.drop_candidate(key, candidate, None);
            }
            Stage::Waiting(candidate) => self.drop_candidate(key, candidate, None),
            Stage::Loading(candidate) => self.drop_candidate(key, candidate, Some(Run::Loading)),
            Stage::Settling(candidate) => self.drop_candidate(key, candidate, Some(Run::Running)),
        }
        self.sweep(key);
        match operation.ticket {
            Some(ticket) => self.refuse(ticket, refusal),
            None => self.dissolve(key, refusal),
        }
        self.check_services(&key.0);
        self.advance(key);
    }

    /// Takes an installed module away, for good.
    pub(crate) fn uninstall(&mut self, key: &Key) -> bool {
        let Some(active) = self.entry(key).and_then(|entry| entry.active.take()) else { return false };
        self.retire(key, active);
        self.commands.push_back(Command::Forget { user: key.0.clone(), module: key.1.clone() });
        self.order_packets(&key.0);
        self.check_services(&key.0);
        true
    }

    /// Asks for a package.
    pub(crate) fn fetch(&mut self, key: &Key, url: String, digest: Digest) -> JobId {
        let job = self.begin_job(key);
        let keys = self.policy.users.get(&key.0).map(|user| user.keys.clone()).unwrap_or_default();
        self.commands.push_back(Command::Fetch { job, url, digest, keys });
        job
    }

    /// Names a job for a module, which is to end in time.
    pub(crate) fn begin_job(&mut self, key: &Key) -> JobId {
        let job = JobId(self.next_job);
        self.next_job += 1;
        self.jobs.insert(job, key.clone());
        self.timers.set(Timer::Fetch(job), self.now.instant + FETCH_ANSWER_TIME_MAX);
        job
    }

    /// Asks a worker to load a module.
    pub(crate) fn load_into(&mut self, worker: &WorkerId, slot: ModuleSlot, what: &LoadWhat<'_>) {
        let granted = self.policy.users.get(&worker.user).map(|user| user.module_limits).unwrap_or_default();
        let load = Load {
            worker: worker.clone(),
            slot,
            module: what.manifest.module(),
            digest: what.digest,
            properties: merged_properties(what.manifest, what.properties),
            limits: clamp_limits(&what.manifest.limits, &granted),
            state_schema: what.manifest.state_schema,
            packet: what.manifest.packet.is_some(),
            server: what.manifest.server.clone(),
            chain: what.chain.to_vec(),
        };
        self.timers.set(Timer::Load(worker.clone(), slot), self.now.instant + LOAD_ANSWER_TIME_MAX);
        self.commands.push_back(Command::Load(load));
    }

    /// Drops what an entry no longer needs: itself, then its worker.
    pub(crate) fn sweep(&mut self, key: &Key) {
        let Some(tenant) = self.tenants.get_mut(&key.0) else { return };
        if tenant.modules.get(&key.1).is_some_and(Entry::is_empty) {
            tenant.modules.remove(&key.1);
        }
        self.release_unused(&key.0);
    }

    /// Returns an installed module.
    pub(crate) fn active(&mut self, key: &Key) -> Option<&mut Active> {
        self.entry(key)?.active.as_mut()
    }

    /// Returns the SETUP under way for a module.
    pub(crate) fn operation(&mut self, key: &Key) -> Option<&mut Operation> {
        self.entry(key)?.operation.as_mut()
    }

    pub(crate) fn entry(&mut self, key: &Key) -> Option<&mut Entry> {
        self.tenants.get_mut(&key.0)?.modules.get_mut(&key.1)
    }

    pub(crate) fn entry_or_new(&mut self, key: &Key) -> &mut Entry {
        self.tenants.entry(key.0.clone()).or_default().modules.entry(key.1.clone()).or_default()
    }

    fn next_waiter(&mut self, key: &Key) -> Option<Waiter> {
        let entry = self.entry(key)?;
        if entry.is_busy() { None } else { entry.waiting.pop_front() }
    }

    pub(crate) fn stage(&self, key: &Key) -> Option<&Stage> {
        let entry = self.tenants.get(&key.0)?.modules.get(&key.1)?;
        entry.operation.as_ref().map(|operation| &operation.stage)
    }

    fn begin_setup(&mut self, key: &Key, ticket: Ticket, session: SessionId, setup: Setup) {
        if let Err(refusal) = self.check_setup(key, &setup) {
            return self.refuse(ticket, refusal);
        }
        let active = self.active(key);
        if active.as_ref().is_some_and(|active| active.is_what(&setup)) {
            return self.refresh(key, ticket, session, &setup);
        }
        // A manifest that was narrowed by the request before does not say what it was.
        let same_code = active.filter(|active| active.record.digest == setup.digest && !active.is_narrowed());
        if let Some(code) = same_code.and_then(|active| active.manifest.clone().zip(active.record.flavour)) {
            self.try_candidate(key, ticket, session, setup, code);
        } else {
            let job = self.fetch(key, setup.url.clone(), setup.digest);
            let stage = Stage::Fetching(job);
            self.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), session, setup, stage });
        }
    }

    fn refresh(&mut self, key: &Key, ticket: Ticket, session: SessionId, setup: &Setup) {
        let now = self.now;
        let active = self.active(key).expect("only what is installed is refreshed");
        active.lease_end = now.instant + setup.ttl;
        active.record.lease_until = now.wall + setup.ttl;
        active.record.session = session;
        active.record.url.clone_from(&setup.url);
        let (lease_end, record) = (active.lease_end, active.record.clone());
        self.timers.set(Timer::Lease(key.clone()), lease_end);
        self.commands.push_back(Command::Store(record));
        self.answer(ticket, Outcome::Refreshed { lease_s: setup.ttl.as_secs() });
    }

    fn remove(&mut self, key: &Key, ticket: Ticket) {
        if !self.uninstall(key) {
            return self.refuse(ticket, not_installed(key));
        }
        self.sweep(key);
        self.answer(ticket, Outcome::Removed);
    }

    fn operation_fetched(&mut self, key: &Key, manifest: Manifest, flavour: Flavour) {
        let Some(operation) = self.entry(key).and_then(|entry| entry.operation.take()) else { return };
        let Operation { ticket: Some(ticket), session, setup, stage: _ } = operation else { return };
        self.try_candidate(key, ticket, session, setup, (manifest, flavour));
        self.advance(key);
    }

    fn try_candidate(
        &mut self,
        key: &Key,
        ticket: Ticket,
        session: SessionId,
        setup: Setup,
        (manifest, flavour): (Manifest, Flavour),
    ) {
        let manifest = narrowed(manifest, &setup);
        let user = self.user_policy(&key.0);
        let checked = user.and_then(|user| check_manifest(&self.policy, user, &setup, &manifest, flavour));
        let checked = checked.and_then(|filters| {
            self.check_ports(key, &manifest)?;
            Ok((filters, self.composition(key, &manifest)?))
        });
        let (filters, composition) = match checked {
            Ok(checked) => checked,
            Err(refusal) => {
                self.sweep(key);
                return self.refuse(ticket, refusal);
            }
        };
        let rules = Rule::all_of(&filters, Some(&manifest));
        let flavour = if composition.is_some() { Flavour::Wasm } else { flavour };
        let candidate = Candidate { manifest, flavour, rules, slot: None, composition };
        let stage = self.first_stage(key, candidate);
        self.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), session, setup, stage });
        self.pump(&key.0);
    }

    /// Installs the filters of a module that has just been loaded.
    fn settle(&mut self, key: &Key) {
        let Some(operation) = self.operation(key) else { return };
        let Stage::Loading(candidate) = &mut operation.stage else { return };
        let slot = candidate.slot.expect("a module is loaded into a place");
        let worker = WorkerId::new(key.0.clone(), candidate.flavour);
        let (manifest, rules) = (candidate.manifest.clone(), mem::take(&mut candidate.rules));
        let (flavour, composition) = (candidate.flavour, candidate.composition.take());
        let settling = Candidate { manifest: manifest.clone(), flavour, rules: vec![], slot: Some(slot), composition };
        operation.stage = Stage::Settling(settling);
        // It is in its place before it sees packets.
        self.order_packets(&key.0);
        let rules = self.install_rules(key, (&worker, slot), &manifest, rules);
        if let Some(Operation { stage: Stage::Settling(candidate), .. }) = self.operation(key) {
            candidate.rules = rules;
        }
        self.settling.push_back(key.clone());
    }

    /// Takes note that an installed module runs again, and installs the filters that it has not yet.
    fn run(&mut self, key: &Key, worker: &WorkerId, slot: ModuleSlot) {
        let Some(active) = self.active(key) else { return };
        if active.run != Run::Loading {
            // It failed before this answer was given, so the worker must not keep it.
            let down = active.run != Run::Running;
            self.counters.stray_events += 1;
            if down {
                self.commands.push_back(Command::Unload { worker: worker.clone(), slot });
            }
            return;
        }
        active.run = Run::Running;
        let Some(manifest) = active.manifest.clone() else { return };
        let rules = mem::take(&mut active.rules);
        self.order_packets(&key.0);
        let rules = self.install_rules(key, (worker, slot), &manifest, rules);
        if let Some(active) = self.active(key) {
            active.rules = rules;
        }
    }

    /// Installs the rules that are not installed, and those of connections again, which were suspended.
    fn install_rules(
        &mut self,
        key: &Key,
        (worker, slot): (&WorkerId, ModuleSlot),
        manifest: &Manifest,
        mut rules: Vec<Rule>,
    ) -> Vec<Rule> {
        for rule in &mut rules {
            let known = rule.id;
            let id = known.unwrap_or(FilterId(self.next_rule));
            if known.is_none() {
                self.next_rule += 1;
                rule.id = Some(id);
                self.rules.insert(id, key.clone());
            }
            let (worker, filter) = (worker.clone(), rule.filter.clone());
            match rule.kind {
                RuleKind::Show if known.is_some() => {}
                RuleKind::Show => {
                    let on_failure = manifest.on_failure();
                    self.commands.push_back(Command::InstallFilter { id, worker, slot, filter, on_failure });
                }
                RuleKind::Intercept => {
                    let on_failure = manifest.server.as_ref().map(|server| server.on_failure).unwrap_or_default();
                    self.commands.push_back(Command::Intercept { id, worker, slot, filter, on_failure });
                }
            }
        }
        rules
    }

    /// Has the new connections that a running module takes over treated as its failure mode says, since it goes down.
    pub(crate) fn suspend_intercepts(&mut self, key: &Key) {
        let Some(active) = self.active(key).filter(|active| active.run == Run::Running) else { return };
        let taken = active.rules.iter().filter(|rule| rule.kind == RuleKind::Intercept);
        let ids: Vec<FilterId> = taken.filter_map(|rule| rule.id).collect();
        self.commands.extend(ids.into_iter().map(|id| Command::SuspendIntercept { id }));
    }

    /// Takes a rule away that was installed.
    pub(crate) fn remove_rule(&mut self, kind: RuleKind, id: FilterId) {
        self.rules.remove(&id);
        self.commands.push_back(match kind {
            RuleKind::Show => Command::RemoveFilter { id },
            RuleKind::Intercept => Command::EndIntercept { id },
        });
    }

    fn activate(&mut self, key: &Key, session: SessionId, setup: Setup, candidate: Candidate) -> Active {
        if let Some(tenant) = self.tenants.get_mut(&key.0)
            && let Some(slot) = candidate.slot
            && let Some(worker) = tenant.workers.get_mut(&candidate.flavour)
            && let Some(place) = worker.places.get_mut(&slot)
        {
            place.role = Role::Active;
        }
        let sees_packets = candidate.manifest.packet.is_some();
        let record = InstalledRecord {
            user: key.0.clone(),
            module: setup.module,
            url: setup.url,
            digest: setup.digest,
            session,
            filters: if sees_packets { Rule::shown(&candidate.rules) } else { setup.filters },
            properties: setup.properties,
            lease_until: self.now.wall + setup.ttl,
            order: self.next_order,
            flavour: Some(candidate.flavour),
        };
        self.next_order += 1;
        Active {
            record,
            lease_end: self.now.instant + setup.ttl,
            manifest: Some(candidate.manifest),
            rules: candidate.rules,
            slot: candidate.slot,
            composition: candidate.composition,
            run: Run::Running,
            backoff: Backoff::default(),
            restarts: 0,
            last_failure: None,
        }
    }

    /// Removes everything that an installed module has outside of its entry.
    fn retire(&mut self, key: &Key, active: Active) {
        self.timers.cancel(&Timer::Lease(key.clone()));
        self.timers.cancel(&Timer::Restart(key.clone()));
        if let Run::Fetching(job) = active.run {
            self.drop_job(job);
        }
        let (place, run) = (active.place(), Some(active.run).filter(|run| run.in_worker()));
        self.drop_module(key, active.rules, place, run);
    }

    fn drop_candidate(&mut self, key: &Key, candidate: Candidate, run: Option<Run>) {
        let place = candidate.place();
        self.drop_module(key, candidate.rules, place, run);
    }

    fn drop_module(&mut self, key: &Key, rules: Vec<Rule>, place: Option<(Flavour, ModuleSlot)>, run: Option<Run>) {
        for (kind, id) in rules.into_iter().filter_map(|rule| Some((rule.kind, rule.id?))) {
            self.remove_rule(kind, id);
        }
        let Some((flavour, slot)) = place else { return };
        let worker = WorkerId::new(key.0.clone(), flavour);
        if run.is_some() {
            self.commands.push_back(Command::Unload { worker: worker.clone(), slot });
        }
        if run == Some(Run::Loading) {
            self.leave_place(&worker, slot);
        } else {
            self.free_place(&worker, slot);
        }
    }

    fn leave_place(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        if let Some(worker) = self.worker(worker)
            && let Some(place) = worker.places.get_mut(&slot)
        {
            place.role = Role::Leaving;
        }
    }

    /// Gives a place back.
    pub(crate) fn free_place(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        if let Some(worker) = self.worker(worker) {
            worker.places.remove(&slot);
        }
    }

    fn forget_candidate_slot(&mut self, key: &Key) {
        let Some(operation) = self.operation(key) else { return };
        if let Stage::Loading(candidate) | Stage::Settling(candidate) = &mut operation.stage {
            candidate.slot = None;
        }
    }

    /// Takes note of the answer to a load, or of later news of it; returns who has the place.
    fn end_load(&mut self, worker: &WorkerId, slot: ModuleSlot) -> Option<Place> {
        self.timers.cancel(&Timer::Load(worker.clone(), slot));
        let place = self.worker(worker).and_then(|worker| worker.places.get(&slot)).cloned();
        if place.is_none() {
            self.counters.stray_events += 1;
        }
        place
    }

    pub(crate) fn end_job(&mut self, job: JobId) -> Option<Key> {
        self.timers.cancel(&Timer::Fetch(job));
        let key = self.jobs.remove(&job);
        if key.is_none() {
            self.counters.stray_events += 1;
        }
        key
    }

    fn drop_job(&mut self, job: JobId) {
        self.timers.cancel(&Timer::Fetch(job));
        self.jobs.remove(&job);
    }
}

/// What to load, apart from where.
pub(crate) struct LoadWhat<'a> {
    pub(crate) digest: Digest,
    pub(crate) manifest: &'a Manifest,
    pub(crate) properties: &'a std::collections::BTreeMap<String, String>,
    /// The packages that a service's component is composed of.
    pub(crate) chain: &'a [Digest],
}

fn forget_rule(rules: &mut [Rule], id: FilterId) -> bool {
    match rules.iter_mut().find(|rule| rule.id == Some(id)) {
        Some(rule) => {
            rule.id = None;
            true
        }
        None => false,
    }
}
