// SPDX-License-Identifier: Apache-2.0
//! Modules that are gone while connections that they had taken over go on: the worker hands on what comes from either
//! end, or the module goes on with them. New connections pass.
//!
//! Such a module keeps its place in the worker, and the worker stays, until it says that no connection is left, they have
//! had their time, or somebody ends them.

use netserv_model::WorkerId;
use netserv_model::control::{ControlMessage, DRAINING_TOPIC};
use netserv_model::effect::{InterceptJob, Job, ModuleSlot, WorkerJob};
use netserv_model::limits::MODULES_PER_CONTAINER_MAX;
use netserv_model::manifest::Drain;
use netserv_model::policy::UserPolicy;

use crate::Controller;
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::filters;
use crate::limits::{DRAIN_TIME_MAX, DRAINING_MAX, FINISHING_MEMORY_PART};
use crate::state::{Active, Draining, Key, Role, RuleKind, Run};

/// Returns whether connections of a module go on when it goes.
pub(crate) fn can_drain(active: &Active) -> bool {
    let goes_on = active.manifest.as_ref().is_some_and(|manifest| manifest.drain() != Drain::Close);
    let takes = active.rules.iter().any(|rule| rule.kind == RuleKind::Intercept && !rule.ids.is_empty());
    goes_on && takes && active.run == Run::Running && active.place().is_some()
}

impl Controller {
    /// Has the connections of a module go on when it goes.
    pub(crate) fn drain(&mut self, key: &Key, active: &mut Active) {
        let Some((flavour, slot)) = active.place() else { return };
        self.timers.cancel(&Timer::Lease(key.clone()));
        self.timers.cancel(&Timer::Restart(key.clone()));
        let rules = std::mem::take(&mut active.rules);
        let (connections, packets): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|rule| rule.kind == RuleKind::Intercept);
        self.remove_rules(key, &packets);
        let worker = WorkerId::new(key.0.clone(), flavour);
        let until = self.now.instant + DRAIN_TIME_MAX;
        let (module, digest) = (active.record.module.clone(), active.record.digest);
        let manifest = active.manifest.as_ref().filter(|manifest| manifest.drain() == Drain::Finish);
        let finish = manifest.map(|manifest| manifest.limits.memory_bytes);
        let draining = Draining { module, digest, rules: connections, until, finish };
        for id in draining.rules.iter().flat_map(|rule| &rule.ids) {
            self.start_effect(&key.0, Job::Intercepts(InterceptJob::Drain(*id)), Purpose::Nothing);
        }
        if finish.is_some()
            && let Ok(topic) = DRAINING_TOPIC.parse()
        {
            let message = ControlMessage { topic, seq: active.control.next(), body: Vec::new() };
            let job = WorkerJob::Tell { worker: worker.clone(), slot, message };
            self.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
        }
        let job = WorkerJob::Drain { worker: worker.clone(), slot, finish: finish.is_some() };
        self.start_effect(&key.0, Job::Workers(job), Purpose::Stop);
        self.timers.set(Timer::Drain(worker.clone(), slot), until);
        let Some(known) = self.worker(&worker) else { return };
        if let Some(place) = known.places.get_mut(&slot) {
            place.role = Role::Draining;
        }
        known.draining.insert(slot, draining);
        if known.draining.len() > DRAINING_MAX {
            self.end_first_draining(&worker);
        }
        self.bound_finishing(&worker);
    }

    /// Ends those that go on with their connections themselves, the first ones first, while they may have too much memory.
    fn bound_finishing(&mut self, worker: &WorkerId) {
        let container = self.policy.users.get(&worker.user).map_or(0, |user| user.container.memory_bytes);
        while let Some(known) = self.worker(worker) {
            let finishing = || known.draining.iter().filter_map(|(slot, one)| Some((one.until, *slot, one.finish?)));
            let first = finishing().min().map(|(_, slot, _)| slot);
            let bytes: u64 = finishing().map(|(.., bytes)| bytes).sum();
            let Some(first) = first.filter(|_| bytes > container / FINISHING_MEMORY_PART) else { return };
            self.end_draining(worker, first);
        }
    }

    /// Has the next version of a module, which is in force, take over the connections of those that go on with theirs.
    pub(crate) fn end_finishing(&mut self, key: &Key) {
        let finishing = self.draining(|worker, draining| {
            worker.user == key.0 && draining.module.name == key.1 && draining.finish.is_some()
        });
        finishing.iter().for_each(|(worker, slot)| self.end_draining(worker, *slot));
    }

    /// A worker has no connections of such a module any more.
    pub(crate) fn drained(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        match self.worker(worker).is_some_and(|worker| worker.draining.contains_key(&slot)) {
            true => self.end_draining(worker, slot),
            false => self.counters.stray_events += 1,
        }
    }

    /// Ends what is left of the connections of such a module.
    pub(crate) fn end_draining(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        let Some(draining) = self.worker(worker).and_then(|worker| worker.draining.remove(&slot)) else { return };
        self.drop_draining(worker, slot, draining);
        self.unload(worker, slot);
        self.release_unused(&worker.user);
    }

    fn end_first_draining(&mut self, worker: &WorkerId) {
        if let Some(first) = self.worker(worker).and_then(|known| known.first_draining()) {
            self.end_draining(worker, first);
        }
    }

    fn drop_draining(&mut self, worker: &WorkerId, slot: ModuleSlot, draining: Draining) {
        self.timers.cancel(&Timer::Drain(worker.clone(), slot));
        self.remove_rules(&(worker.user.clone(), draining.module.name), &draining.rules);
        self.free_place(worker, slot);
    }

    /// Has the connections of the module that went first end if a worker has no place for another one.
    pub(crate) fn make_room(&mut self, worker: &WorkerId) {
        if self.worker(worker).is_some_and(|known| known.places.len() >= MODULES_PER_CONTAINER_MAX) {
            self.end_first_draining(worker);
        }
    }

    /// Ends what is left of the connections of all modules of this name that are gone. Returns whether there were any.
    pub(crate) fn end_all_draining(&mut self, key: &Key) -> bool {
        let own = self.draining_of(key);
        own.iter().for_each(|(worker, slot)| self.end_draining(worker, *slot));
        !own.is_empty()
    }

    /// Returns whether connections of a module of this name go on without it.
    pub(crate) fn drains(&self, key: &Key) -> bool {
        !self.draining_of(key).is_empty()
    }

    fn draining_of(&self, key: &Key) -> Vec<(WorkerId, ModuleSlot)> {
        self.draining(|worker, draining| worker.user == key.0 && draining.module.name == key.1)
    }

    /// Ends what the policy does not allow any more.
    pub(crate) fn revoke_draining(&mut self) {
        let policy = &self.policy;
        let gone = self.draining(|worker, draining| {
            let wanted: Vec<_> = draining.rules.iter().map(|rule| rule.filter.clone()).collect();
            let user = policy.users.get(&worker.user);
            let may = |user: &UserPolicy| user.needs_network() && filters::check(policy, user, &wanted).is_ok();
            policy.host_only || !policy.has_network() || !user.is_some_and(may)
        });
        gone.iter().for_each(|(worker, slot)| self.end_draining(worker, *slot));
    }

    /// Takes note that the connections of all such modules went with their worker.
    pub(crate) fn forget_draining(&mut self, worker: &WorkerId) {
        let Some(known) = self.worker(worker) else { return };
        for (slot, draining) in std::mem::take(&mut known.draining) {
            self.drop_draining(worker, slot, draining);
        }
    }

    fn draining(&self, wanted: impl Fn(&WorkerId, &Draining) -> bool) -> Vec<(WorkerId, ModuleSlot)> {
        let mut found = Vec::new();
        for (user, tenant) in &self.tenants {
            for (flavour, known) in &tenant.workers {
                let worker = WorkerId::new(user.clone(), *flavour);
                let own = known.draining.iter().filter(|(_, draining)| wanted(&worker, draining));
                found.extend(own.map(|(slot, _)| (worker.clone(), *slot)));
            }
        }
        found
    }
}
