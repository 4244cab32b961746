// SPDX-License-Identifier: Apache-2.0
//! The life of a module: from its SETUP over fetch, load and filters to its end.

use std::collections::VecDeque;

use netserv_model::effect::{EffectId, InstalledRecord, Job, ModuleLoad, ModuleSlot, PackageJob, StoreJob, WorkerJob};
use netserv_model::limits::REQUESTS_PENDING_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::request::{Outcome, Setup, StateSource};
use netserv_model::{Digest, Flavour, Nonce, Refusal, RefusalKind, WorkerId};

use crate::Controller;
use crate::admission::{Asked, check_manifest, clamp_limits, merged_properties};
use crate::control::Control;
use crate::draining::can_drain;
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::limits::{FETCH_ANSWER_TIME_MAX, LOAD_ANSWER_TIME_MAX};
use crate::report::not_installed;
use crate::state::{
    Active, Backoff, Candidate, Change, Entry, Key, Leave, ModuleRule, Operation, Origin, PendingAnswer, Removal, Role,
    Run, SlotHolder, Stage, Task, Waiter, entry_in,
};

impl Controller {
    /// Takes a request for a module; it waits for those before it.
    pub(crate) fn enqueue(&mut self, key: &Key, waiter: Waiter) {
        if self.in_flight > REQUESTS_PENDING_MAX && !self.make_way(&key.0) {
            let detail = format!("the node works on {REQUESTS_PENDING_MAX} requests, and on none of others for longer");
            return self.refuse(waiter.ticket, Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        self.entry_or_new(key).waiting.push_back(waiter);
        self.advance(key);
    }

    /// Goes on with a module's requests unless one is under way, and drops what nobody needs any more.
    pub(crate) fn advance(&mut self, key: &Key) {
        while let Some(Waiter { ticket, origin, task }) = self.next_waiter(key) {
            match task {
                Task::Setup(setup) => self.begin_setup(key, ticket, origin, *setup),
                Task::Repeat => self.repeat(key, ticket, origin),
                Task::Remove(removal) => self.remove(key, ticket, origin, removal),
                Task::RemoveAgain(nonce) => self.remove_again(key, ticket, nonce),
            }
        }
        self.expire_if_due(key);
        self.sweep(key);
    }

    /// A package is there.
    pub(crate) fn fetched(&mut self, key: &Key, id: EffectId, manifest: Manifest, flavour: Flavour) {
        self.timers.cancel(&Timer::Fetch(id));
        if matches!(self.stage(key), Some(Stage::Fetching(wanted)) if *wanted == id) {
            return self.operation_fetched(key, manifest, flavour);
        }
        self.active_fetched(key, id, manifest, flavour);
    }

    /// A package could not be fetched, or a service not be composed. What took too long to compile is not compiled again
    /// for a while.
    pub(crate) fn fetch_failed(&mut self, key: &Key, id: EffectId, refusal: &Refusal) {
        self.timers.cancel(&Timer::Fetch(id));
        let stage = self.stage(key);
        let installing = matches!(stage, Some(Stage::Fetching(wanted) | Stage::Composing(wanted, _)) if *wanted == id);
        let digest = if installing {
            self.operation(key).map(|operation| operation.setup.digest)
        } else {
            self.record_fetching(key, id).map(|record| record.digest)
        };
        if let (RefusalKind::CompileLimit, Some(digest)) = (refusal.kind, digest) {
            self.keep_out(key, digest);
        }
        if installing {
            return self.fail_operation(key, refusal.clone());
        }
        self.active_not_fetched(key, id, refusal);
    }

    /// A package was not fetched in time.
    pub(crate) fn fetch_overdue(&mut self, id: EffectId, refusal: &Refusal) {
        let Some(key) = self.abandon_effect(id) else { return };
        self.fetch_failed(&key, id, refusal);
    }

    /// A module runs.
    pub(crate) fn loaded(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        let Some(place) = self.end_load(worker, slot) else { return };
        let key = (worker.user.clone(), place.module);
        match place.role {
            Role::Leaving => self.free_place(worker, slot),
            Role::Draining => self.counters.stray_events += 1,
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
            Role::Draining => self.end_draining(worker, slot),
            Role::Candidate => self.lose_candidate(&key, refusal),
            Role::Active if refusal.kind == RefusalKind::NodeFailed => self.fail_load(&key, refusal),
            Role::Active => self.fail_active(&key, refusal),
        }
    }

    /// A worker could not be told to load a module.
    pub(crate) fn load_refused(
        &mut self,
        worker: &WorkerId,
        generation: Option<EffectId>,
        slot: ModuleSlot,
        refusal: Refusal,
    ) {
        // Of a worker that died, its modules' loads are settled.
        if self.worker(worker).is_some_and(|worker| worker.generation == generation) {
            self.module_failed(worker, slot, refusal);
        }
    }

    /// A module that is not in force yet left its worker.
    pub(crate) fn lose_candidate(&mut self, key: &Key, refusal: Refusal) {
        if !self.fail_swap(key, &refusal, false) {
            self.candidate_gone(key);
            self.fail_operation(key, refusal);
        }
    }

    /// Puts a loaded and filtered module in force; the one before it goes.
    pub(crate) fn finish(&mut self, key: &Key) {
        let Some(entry) = self.entry(key) else { return };
        let settling = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Settling(..)));
        let Some(Operation { ticket, origin, mut setup, stage: Stage::Settling(candidate, _) }) = settling else {
            return;
        };
        // It may have been drained meanwhile.
        setup.ttl = self.granted_ttl(key, setup.ttl);
        let mut old = self.entry_or_new(key).active.take();
        let control = old.as_mut().map(|old| std::mem::take(&mut old.control)).unwrap_or_default();
        let before = old.as_ref().map(|old| (old.record.clone(), old.sessions.clone()));
        let is_other = old.as_ref().is_some_and(|old| !old.is_same_module(&setup));
        let lease_s = setup.ttl.as_secs();
        let outcome = if old.is_some() { Outcome::Replaced { lease_s } } else { Outcome::Installed { lease_s } };
        if let Some(old) = old {
            self.timers.cancel(&Timer::Thaw(key.clone()));
            self.end_buffering(key);
            self.retire(key, &old);
        }
        if let Some((flavour, slot)) = candidate.place().filter(|_| setup.state.is_some()) {
            let job = WorkerJob::Confirm { worker: WorkerId::new(key.0.clone(), flavour), slot };
            self.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
        }
        let mut active = self.activate(key, origin, &setup, candidate);
        active.control = control;
        if let Some((before, sessions)) = before {
            // Nobody asked: it is composed anew.
            let is_same_request = ticket.is_none();
            match is_same_request {
                true => {
                    active.record.order = before.order;
                    active.restore_sessions(sessions);
                }
                false => active.take_over_sessions(sessions),
            }
            if is_other {
                self.tell_replaced(key, &active.sessions[..active.sessions.len() - 1], &setup);
            } else {
                active.record.wish = before.wish;
                active.share_wish(origin);
            }
            let record = &mut active.record;
            if record.epoch == before.epoch {
                record.state = record.state.or(before.state);
            }
            let lost = before.given_up.into_iter().filter(|lost| is_same_request || lost.epoch >= record.epoch);
            record.given_up.extend(lost);
        }
        self.leave_to_later(key, &mut active.record);
        let (floating, epoch) = (active.record.floating.clone(), active.record.epoch);
        self.entry_or_new(key).active = Some(active);
        // Others may have left meanwhile.
        self.fit_rules(key);
        self.store_active(key);
        self.arm_lease(key);
        self.end_finishing(key);
        self.take_floating(key, &floating, epoch);
        self.hold_floating(&key.0);
        self.tell_rest(key);
        self.order_packets(&key.0);
        if let Some(ticket) = ticket {
            self.answer_when_done(&key.0, ticket, outcome);
        }
        self.check_services(&key.0);
        self.advance(key);
    }

    /// Ends the operation under way without a trace of it, and answers with why.
    pub(crate) fn fail_operation(&mut self, key: &Key, refusal: Refusal) {
        if self.fail_swap(key, &refusal, true) {
            return;
        }
        let Some(operation) = self.entry(key).and_then(|entry| entry.operation.take()) else { return };
        match operation.stage {
            Stage::Fetching(job) => self.drop_job(job),
            Stage::Composing(job, candidate) => {
                self.drop_job(job);
                self.drop_candidate(key, &candidate, None);
            }
            Stage::Waiting(candidate) => self.drop_candidate(key, &candidate, None),
            Stage::Loading(candidate) => self.drop_candidate(key, &candidate, Some(Run::Loading)),
            Stage::Settling(candidate, _) => self.drop_candidate(key, &candidate, Some(Run::Running)),
            Stage::Joining(joining) => self.remove_rules(key, &joining.rules),
        }
        self.hold_floating(&key.0);
        self.sweep(key);
        match operation.ticket {
            Some(ticket) => self.refuse_setup(key, ticket, operation.origin, &refusal),
            None => self.dissolve(key, refusal),
        }
        self.check_services(&key.0);
        self.advance(key);
    }

    /// Takes an installed module away, for good.
    pub(crate) fn uninstall(&mut self, key: &Key, leave: Leave) -> bool {
        let Some(mut active) = self.entry(key).and_then(|entry| entry.active.take()) else { return false };
        self.remember_told(key, &active.control);
        self.timers.cancel(&Timer::Thaw(key.clone()));
        self.end_buffering(key);
        self.epochs.note(key, active.epoch_min());
        if let Some(state) = active.record.state {
            self.epochs.note_state(key, active.record.epoch, state);
        }
        self.hold_floating(&key.0);
        match leave {
            Leave::Drain if can_drain(&active) => self.drain(key, &mut active),
            Leave::Drain | Leave::AtOnce => self.retire(key, &active),
        }
        self.forget(key);
        self.order_packets(&key.0);
        self.check_services(&key.0);
        if matches!(self.stage(key), Some(Stage::Joining(_))) {
            self.fail_operation(key, not_installed(key));
        }
        true
    }

    /// Asks for a package, and for the state that its module is to begin with.
    pub(crate) fn fetch(&mut self, key: &Key, url: String, digest: Digest, state: Option<StateSource>) -> EffectId {
        let keys = self.policy.users.get(&key.0).map(|user| user.keys.clone()).unwrap_or_default();
        self.start_package(key, PackageJob::Fetch { url, digest, keys, state })
    }

    /// Starts a job about a module's package, which is to end in time.
    pub(crate) fn start_package(&mut self, key: &Key, job: PackageJob) -> EffectId {
        let purpose = match &job {
            PackageJob::Fetch { .. } => Purpose::Fetch(key.clone()),
            PackageJob::Compose { .. } => Purpose::Compose(key.clone()),
        };
        let id = self.start_effect(&key.0, Job::Packages(job), purpose);
        self.timers.set(Timer::Fetch(id), self.now.instant + FETCH_ANSWER_TIME_MAX);
        id
    }

    /// Has a module remembered across restarts.
    pub(crate) fn store(&mut self, key: &Key, record: &InstalledRecord) {
        let job = StoreJob::Put(Box::new(record.clone()));
        self.start_effect(&key.0, Job::Store(job), Purpose::Store(key.clone()));
    }

    /// Has a module forgotten.
    pub(crate) fn forget(&mut self, key: &Key) {
        let job = StoreJob::Forget { user: key.0.clone(), module: key.1.clone() };
        self.start_effect(&key.0, Job::Store(job), Purpose::Store(key.clone()));
    }

    /// Asks a worker to load a module.
    pub(crate) fn load_into(&mut self, worker: &WorkerId, slot: ModuleSlot, what: &LoadWhat<'_>) {
        let key = (worker.user.clone(), what.manifest.module().name);
        let messages =
            self.active(&key).map(|active| active.control.give_kept((worker.flavour, slot))).unwrap_or_default();
        let user = self.policy.users.get(&worker.user);
        let (granted, container) = user.map(|user| (user.module_limits, user.container)).unwrap_or_default();
        let load = ModuleLoad {
            worker: worker.clone(),
            slot,
            module: what.manifest.module(),
            digest: what.digest,
            properties: merged_properties(what.manifest, what.properties),
            limits: clamp_limits(&what.manifest.limits, &granted),
            state_schema: what.manifest.state_schema,
            packet: what.manifest.packet.is_some(),
            parallel: what.manifest.is_parallel(),
            processors: container.cpu_permille / 1000,
            server: what.manifest.server.clone(),
            chain: what.chain.to_vec(),
            blocks: self.policy.blocks.keys().cloned().collect(),
            messages,
            state: what.state,
        };
        self.timers.set(Timer::Load(worker.clone(), slot), self.now.instant + LOAD_ANSWER_TIME_MAX);
        let generation = self.worker(worker).and_then(|worker| worker.generation);
        let purpose = Purpose::Load(worker.clone(), generation, slot);
        self.start_effect(&worker.user, Job::Workers(WorkerJob::Load(Box::new(load))), purpose);
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
        entry_in(&mut self.tenants, key)
    }

    pub(crate) fn entry_or_new(&mut self, key: &Key) -> &mut Entry {
        self.tenants.entry(key.0.clone()).or_default().modules.entry(key.1.clone()).or_default()
    }

    fn next_waiter(&mut self, key: &Key) -> Option<Waiter> {
        let entry = self.entry(key)?;
        if entry.operation.is_some() { None } else { entry.waiting.pop_front() }
    }

    pub(crate) fn stage(&self, key: &Key) -> Option<&Stage> {
        let entry = self.tenants.get(&key.0)?.modules.get(&key.1)?;
        entry.operation.as_ref().map(|operation| &operation.stage)
    }

    fn begin_setup(&mut self, key: &Key, ticket: PendingAnswer, mut origin: Origin, mut setup: Setup) {
        if let Err(refusal) = self.check_setup(key, &setup) {
            return self.refuse_setup(key, ticket, origin, &refusal);
        }
        setup.ttl = self.granted_ttl(key, setup.ttl);
        let brings_state = self.brings_state(key, &setup);
        // One of an epoch that is in force came with the SETUP that began it.
        setup.state = setup.state.filter(|_| brings_state && !setup.prepare);
        if let Err(refusal) = self.check_room_for(key, origin.session) {
            return self.refuse_setup(key, ticket, origin, &refusal);
        }
        if let Some(active) = self.active(key).filter(|_| !setup.prepare) {
            active.adopt(origin.session, &setup);
        }
        if !brings_state
            && !setup.prepare
            && let Err(refusal) = self.weigh(key, &mut origin, &mut setup)
        {
            return self.refuse_setup(key, ticket, origin, &refusal);
        }
        let active = self.active(key);
        if let Some(active) = active.as_ref().filter(|_| !brings_state && !setup.prepare) {
            let change = active.change_by(origin.session, &setup);
            if change != Change::Reload {
                return self.join(key, ticket, origin, setup, change);
            }
        }
        let same_code = active.filter(|active| active.record.digest == setup.digest && !brings_state);
        if let Some(code) = same_code.and_then(|active| active.whole_manifest().zip(active.record.flavour)) {
            self.try_candidate(key, ticket, origin, setup, code);
        } else {
            let job = self.fetch(key, setup.url.clone(), setup.digest, setup.state.clone());
            let stage = Stage::Fetching(job);
            self.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
        }
    }

    /// Answers a request that came once more, as those do that a node sends again when the path changes.
    fn repeat(&mut self, key: &Key, ticket: PendingAnswer, origin: Origin) {
        let now = self.now.instant;
        let active = origin.nonce.and_then(|nonce| Some((self.active(key)?, nonce)));
        let in_force = active.and_then(|(active, nonce)| active.session_by(nonce));
        match in_force.map(|session| session.lease_end.since(now).as_secs()) {
            Some(lease_s) => self.answer_when_done(&key.0, ticket, Outcome::Refreshed { lease_s }),
            None => {
                let detail = "another request came after this one, or what it installed is gone";
                self.refuse(ticket, Refusal::new(RefusalKind::Replayed, detail));
            }
        }
    }

    /// Refuses a SETUP, and those that are the same one and wait for it: it may come by several ways.
    pub(crate) fn refuse_setup(&mut self, key: &Key, ticket: PendingAnswer, origin: Origin, refusal: &Refusal) {
        let same = |waiter: &Waiter| matches!(waiter.task, Task::Repeat) && waiter.origin.nonce == origin.nonce;
        let waiting = self.entry(key).map(|entry| std::mem::take(&mut entry.waiting)).unwrap_or_default();
        let (repeats, others): (VecDeque<_>, VecDeque<_>) = waiting.into_iter().partition(same);
        if !others.is_empty() {
            self.entry_or_new(key).waiting = others;
        }
        for ticket in std::iter::once(ticket).chain(repeats.into_iter().map(|waiter| waiter.ticket)) {
            self.answer_when_done(&key.0, ticket, Outcome::Refused(refusal.clone()));
        }
    }

    fn remove(&mut self, key: &Key, ticket: PendingAnswer, origin: Origin, removal: Removal) {
        let Removal { leave, epoch, session } = removal;
        if let Err(refusal) = self.check_handed_over(key, epoch) {
            return self.refuse(ticket, refusal);
        }
        if let Some(session) = session.filter(|_| self.active_of(key).is_some()) {
            if let Err(refusal) = self.check_held(key, session) {
                return self.refuse(ticket, refusal);
            }
            let ended = self.active_of(key).map(|active| active.ended_by(session)).unwrap_or_default();
            if self.leave(key, |held| ended.contains(&held.record.session)) {
                self.note_removed(key, origin);
                return self.answer_when_done(&key.0, ticket, Outcome::Removed);
            }
        }
        let drained = leave == Leave::AtOnce && self.end_all_draining(key);
        if !self.uninstall(key, leave) && !drained {
            return self.refuse(ticket, not_installed(key));
        }
        // From this epoch on another node has it.
        self.epochs.note(key, epoch.map_or(0, |epoch| epoch.saturating_add(1)));
        self.sweep(key);
        self.note_removed(key, origin);
        self.answer_when_done(&key.0, ticket, Outcome::Removed);
    }

    /// Answers a REMOVE that came once more, as it does by the second way of a round trip.
    fn remove_again(&mut self, key: &Key, ticket: PendingAnswer, nonce: Nonce) {
        match self.nonces.has_removed(&key.0, nonce) {
            true => self.answer_when_done(&key.0, ticket, Outcome::Removed),
            false => self.refuse(ticket, not_installed(key)),
        }
    }

    fn note_removed(&mut self, key: &Key, origin: Origin) {
        if let Some(nonce) = origin.nonce {
            self.nonces.note_removed(&key.0, nonce);
        }
    }

    fn operation_fetched(&mut self, key: &Key, manifest: Manifest, flavour: Flavour) {
        let Some(operation) = self.entry(key).and_then(|entry| entry.operation.take()) else { return };
        let Operation { ticket: Some(ticket), origin, setup, stage: _ } = operation else { return };
        // The package of what is installed may have come meanwhile.
        let same = self.active_of(key).filter(|active| active.manifest.is_some() && active.is_same_module(&setup));
        if same.is_some() && !setup.prepare && setup.state.is_none() {
            self.begin_setup(key, ticket, origin, setup);
            return self.advance(key);
        }
        self.try_candidate(key, ticket, origin, setup, (manifest, flavour));
        self.advance(key);
    }

    fn try_candidate(
        &mut self,
        key: &Key,
        ticket: PendingAnswer,
        origin: Origin,
        setup: Setup,
        (manifest, flavour): (Manifest, Flavour),
    ) {
        let user = self.user_policy(&key.0);
        let (others, declared) = (self.others_than(key, origin.session), manifest.intercept().to_vec());
        let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
        let checked = user.and_then(|user| check_manifest(&self.policy, user, &setup, &others, manifest, flavour));
        let checked = checked.and_then(|(manifest, filters)| {
            self.check_ports(key, &manifest)?;
            let composition = self.composition(key, &manifest)?;
            Ok((manifest, filters, composition))
        });
        let (manifest, filters, composition) = match checked {
            Ok(checked) => checked,
            Err(refusal) => {
                self.refuse_setup(key, ticket, origin, &refusal);
                return self.sweep(key);
            }
        };
        let rules = ModuleRule::all_of(&filters, Some(&manifest));
        let flavour = if composition.is_some() { Flavour::Wasm } else { flavour };
        let candidate = Candidate { manifest, declared, flavour, rules, slot: None, composition };
        let (prepares, loads) =
            (setup.prepare, candidate.composition.as_ref().is_none_or(|parts| !parts.servers.is_empty()));
        if prepares && !loads {
            let stage = Stage::Waiting(candidate);
            self.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
            return self.prepared.push_back((key.clone(), None));
        }
        let stage = self.first_stage(key, candidate);
        self.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
        self.pump(&key.0);
    }

    /// Takes note that an installed module runs again, and installs the filters that it has not yet.
    fn run(&mut self, key: &Key, worker: &WorkerId, slot: ModuleSlot) {
        let Some(active) = self.active(key) else { return };
        if active.run != Run::Loading {
            // It failed before this answer was given, so the worker must not keep it.
            let down = active.run != Run::Running;
            self.counters.stray_events += 1;
            if down {
                self.unload(worker, slot);
            }
            return;
        }
        active.run = Run::Running;
        self.tell_rest(key);
        self.order_packets(&key.0);
        self.resume_floating(key);
        self.install_rules(key);
    }

    /// Has a worker unload a module.
    pub(crate) fn unload(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        let job = WorkerJob::Unload { worker: worker.clone(), slot };
        self.start_effect(&worker.user, Job::Workers(job), Purpose::Stop);
    }

    fn activate(&mut self, key: &Key, origin: Origin, setup: &Setup, candidate: Candidate) -> Active {
        if let Some(tenant) = self.tenants.get_mut(&key.0)
            && let Some(slot) = candidate.slot
            && let Some(worker) = tenant.workers.get_mut(&candidate.flavour)
            && let Some(place) = worker.places.get_mut(&slot)
        {
            place.role = Role::Active;
        }
        let sees_packets = candidate.manifest.packet.is_some();
        let state = setup.state.as_ref().map(|state| state.digest);
        let record = InstalledRecord {
            user: key.0.clone(),
            module: setup.module.clone(),
            url: setup.url.clone(),
            digest: setup.digest,
            session: origin.session,
            nonce: origin.nonce,
            filters: if sees_packets { ModuleRule::shown(&candidate.rules) } else { setup.filters.clone() },
            intercept: setup.intercept.clone(),
            properties: setup.properties.clone(),
            lease_until: self.now.wall + setup.ttl,
            sessions: Vec::new(),
            wish: origin.wish,
            order: self.next_order,
            flavour: Some(candidate.flavour),
            epoch: setup.epoch,
            floating: setup.floating.clone(),
            given_up: Vec::new(),
            state,
            moved_in: None,
        };
        self.next_order += 1;
        let mut active = Active {
            record,
            sessions: Vec::new(),
            lease_end: self.now.instant + setup.ttl,
            manifest: Some(candidate.manifest),
            declared: candidate.declared,
            rules: candidate.rules,
            slot: candidate.slot,
            composition: candidate.composition,
            run: Run::Running,
            backoff: Backoff::default(),
            restarts: 0,
            is_frozen: false,
            holds_floating: true,
            control: Control::default(),
            last_failure: None,
        };
        active.take_session(self.now, origin, setup);
        active
    }

    /// Removes everything that an installed module has outside of its entry.
    fn retire(&mut self, key: &Key, active: &Active) {
        self.timers.cancel(&Timer::Lease(key.clone()));
        self.timers.cancel(&Timer::Restart(key.clone()));
        if let Run::Fetching(job) = active.run {
            self.drop_job(job);
        }
        let (place, run) = (active.place(), Some(active.run).filter(|run| run.in_worker()));
        self.drop_module(key, &active.rules, place, run);
    }

    fn drop_candidate(&mut self, key: &Key, candidate: &Candidate, run: Option<Run>) {
        let place = candidate.place();
        self.drop_module(key, &candidate.rules, place, run);
    }

    fn drop_module(&mut self, key: &Key, rules: &[ModuleRule], place: Option<(Flavour, ModuleSlot)>, run: Option<Run>) {
        self.remove_rules(key, rules);
        let Some((flavour, slot)) = place else { return };
        let worker = WorkerId::new(key.0.clone(), flavour);
        if run.is_some() {
            self.unload(&worker, slot);
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

    /// Takes note of the answer to a load, or of later news of it; returns who has the place.
    fn end_load(&mut self, worker: &WorkerId, slot: ModuleSlot) -> Option<SlotHolder> {
        self.timers.cancel(&Timer::Load(worker.clone(), slot));
        let place = self.worker(worker).and_then(|worker| worker.places.get(&slot)).cloned();
        if place.is_none() {
            self.counters.stray_events += 1;
        }
        place
    }

    fn drop_job(&mut self, id: EffectId) {
        self.timers.cancel(&Timer::Fetch(id));
        self.abandon_effect(id);
    }
}

/// What to load, apart from where.
pub(crate) struct LoadWhat<'a> {
    pub(crate) digest: Digest,
    pub(crate) manifest: &'a Manifest,
    pub(crate) properties: &'a std::collections::BTreeMap<String, String>,
    /// The packages that a service's component is composed of.
    pub(crate) chain: &'a [Digest],
    /// The state that it begins with.
    pub(crate) state: Option<Digest>,
}
