// SPDX-License-Identifier: Apache-2.0
//! One container per user: started when a module wants in, started again when it died, stopped when it is empty.

use std::mem;

use netserv_model::command::{Command, ModuleSlot};
use netserv_model::{ModuleName, Refusal, RefusalKind, UserId};

use crate::Controller;
use crate::expiry::Timer;
use crate::lifecycle::LoadWhat;
use crate::limits::{LOAD_ANSWER_TIME_MAX, START_ANSWER_TIME_MAX};
use crate::state::{Entry, Key, Phase, Place, Role, Run, Stage, Tenant};

impl Controller {
    /// Brings a user's waiting modules on: into the container if it takes them, else by starting it.
    pub(crate) fn pump(&mut self, user: &UserId) {
        let Some(tenant) = self.tenants.get(user) else { return };
        let asked_for = tenant.modules.values().any(operation_waits);
        if !asked_for && !tenant.modules.values().any(active_waits) {
            return;
        }
        match tenant.container.phase {
            Phase::Starting => {}
            Phase::Ready => self.load_waiting(user),
            Phase::Absent => self.start_container(user),
            // A request is worth an attempt at once; modules that only come back wait for the back-off.
            Phase::Down if asked_for => self.start_container(user),
            Phase::Down => {}
        }
    }

    /// A container takes modules.
    pub(crate) fn container_ready(&mut self, user: &UserId) {
        let Some(tenant) = self.tenants.get_mut(user) else {
            self.counters.stray_events += 1;
            self.commands.push_back(Command::StopContainer { user: user.clone() });
            return;
        };
        match tenant.container.phase {
            Phase::Starting => {
                tenant.container.phase = Phase::Ready;
                self.timers.cancel(&Timer::Start(user.clone()));
                self.load_waiting(user);
                self.release_if_unused(user);
            }
            Phase::Ready => self.counters.stray_events += 1,
            Phase::Absent | Phase::Down => {
                self.counters.stray_events += 1;
                self.commands.push_back(Command::StopContainer { user: user.clone() });
            }
        }
    }

    /// A container could not be started, or ended by itself.
    pub(crate) fn container_died(&mut self, user: &UserId, refusal: &Refusal, culprit: Option<ModuleSlot>) {
        let Some(tenant) = self.tenants.get_mut(user) else {
            self.counters.stray_events += 1;
            return;
        };
        let was_starting = match tenant.container.phase {
            Phase::Starting => true,
            Phase::Ready => false,
            Phase::Absent | Phase::Down => {
                self.counters.stray_events += 1;
                return;
            }
        };
        self.counters.container_deaths += 1;
        let blamed = whom_to_blame(tenant, culprit);
        let wait = match blamed {
            Some(_) => std::time::Duration::ZERO,
            None => tenant.container.backoff.retry(self.now.instant),
        };
        tenant.container.phase = Phase::Down;
        let slots: Vec<ModuleSlot> = tenant.container.places.keys().copied().collect();
        tenant.container.places.retain(|_, place| place.role != Role::Leaving);
        let names: Vec<ModuleName> = tenant.modules.keys().cloned().collect();
        self.timers.cancel(&Timer::Start(user.clone()));
        for slot in slots {
            self.timers.cancel(&Timer::Load(user.clone(), slot));
        }
        self.timers.set(Timer::RestartContainer(user.clone()), self.now.instant + wait);
        for name in names {
            self.outlive_container(&(user.clone(), name), refusal, blamed.as_ref(), was_starting);
        }
        self.release_if_unused(user);
    }

    /// A container's wait is over.
    pub(crate) fn restart_container(&mut self, user: &UserId) {
        if let Some(tenant) = self.tenants.get_mut(user)
            && tenant.container.phase == Phase::Down
        {
            tenant.container.phase = Phase::Absent;
            self.pump(user);
        }
    }

    /// A container did not answer in time that it started.
    pub(crate) fn start_overdue(&mut self, user: &UserId) {
        let detail = format!("the container did not start within {} s", START_ANSWER_TIME_MAX.as_secs());
        self.commands.push_back(Command::StopContainer { user: user.clone() });
        self.container_died(user, &Refusal::new(RefusalKind::NodeFailed, detail), None);
    }

    /// A container did not answer in time that a module is loaded: it hangs, and starts afresh.
    pub(crate) fn load_overdue(&mut self, user: &UserId, slot: ModuleSlot) {
        let detail = format!("the module did not load within {} s", LOAD_ANSWER_TIME_MAX.as_secs());
        self.commands.push_back(Command::StopContainer { user: user.clone() });
        self.container_died(user, &Refusal::new(RefusalKind::Stalled, detail), Some(slot));
    }

    /// Lets a container go that nobody needs, and all that is known of its user.
    pub(crate) fn release_container(&mut self, user: &UserId) {
        let Some(tenant) = self.tenants.get(user) else { return };
        match tenant.container.phase {
            // It is stopped once it answers, so that its answer is not taken for that of a later one.
            Phase::Starting => return,
            Phase::Ready => self.commands.push_back(Command::StopContainer { user: user.clone() }),
            Phase::Absent | Phase::Down => {}
        }
        for slot in tenant.container.places.keys() {
            self.timers.cancel(&Timer::Load(user.clone(), *slot));
        }
        self.timers.cancel(&Timer::RestartContainer(user.clone()));
        self.tenants.remove(user);
    }

    fn release_if_unused(&mut self, user: &UserId) {
        if self.tenants.get(user).is_some_and(|tenant| tenant.modules.is_empty()) {
            self.release_container(user);
        }
    }

    fn start_container(&mut self, user: &UserId) {
        let Some(tenant) = self.tenants.get_mut(user) else { return };
        tenant.container.phase = Phase::Starting;
        let limits = self.policy.users.get(user).map(|user| user.container).unwrap_or_default();
        self.timers.cancel(&Timer::RestartContainer(user.clone()));
        self.timers.set(Timer::Start(user.clone()), self.now.instant + START_ANSWER_TIME_MAX);
        self.commands.push_back(Command::StartContainer { user: user.clone(), limits });
    }

    /// Loads what waits: installed modules in install order, then those being installed in order of their requests.
    fn load_waiting(&mut self, user: &UserId) {
        let Some(tenant) = self.tenants.get(user) else { return };
        let mut waiting: Vec<(u64, ModuleName)> = Vec::new();
        let actives = tenant.modules.iter().filter(|(_, entry)| active_waits(entry));
        let order = |entry: &Entry| entry.active.as_ref().map_or(0, |active| active.record.order);
        waiting.extend(actives.map(|(name, entry)| (order(entry), name.clone())));
        waiting.sort_unstable();
        for (_, name) in waiting.drain(..) {
            self.load_active(&(user.clone(), name));
        }
        let Some(tenant) = self.tenants.get(user) else { return };
        let operations = tenant.modules.iter().filter(|(_, entry)| operation_waits(entry));
        let request = |entry: &Entry| entry.operation.as_ref().map_or(0, |operation| operation.ticket.request.0);
        waiting.extend(operations.map(|(name, entry)| (request(entry), name.clone())));
        waiting.sort_unstable();
        for (_, name) in waiting {
            self.load_candidate(&(user.clone(), name));
        }
    }

    fn load_active(&mut self, key: &Key) {
        let Some(tenant) = self.tenants.get_mut(&key.0) else { return };
        let Some(active) = tenant.modules.get_mut(&key.1).and_then(|entry| entry.active.as_mut()) else { return };
        let place = Place { module: key.1.clone(), role: Role::Active };
        let Some(slot) = active.slot.or_else(|| tenant.container.take_place(place)) else {
            // A place is free again at the latest when a load that is under way is answered.
            self.timers.set(Timer::Restart(key.clone()), self.now.instant + crate::limits::BACKOFF_MIN);
            return;
        };
        active.slot = Some(slot);
        active.run = Run::Loading;
        let Some(manifest) = active.manifest.clone() else { return };
        let (digest, properties) = (active.record.digest, active.record.properties.clone());
        self.load_into(key, slot, &LoadWhat { digest, manifest: &manifest, properties: &properties });
    }

    fn load_candidate(&mut self, key: &Key) {
        let Some(tenant) = self.tenants.get_mut(&key.0) else { return };
        let entry = tenant.modules.get_mut(&key.1);
        let Some(operation) = entry.and_then(|entry| entry.operation.as_mut()) else { return };
        let Stage::Waiting(candidate) = &mut operation.stage else { return };
        let Some(slot) = tenant.container.take_place(Place { module: key.1.clone(), role: Role::Candidate }) else {
            let detail = "every place of the container is taken";
            return self.fail_operation(key, Refusal::new(RefusalKind::QuotaExceeded, detail));
        };
        let rules = mem::take(&mut candidate.rules);
        let manifest = candidate.manifest.clone();
        operation.stage =
            Stage::Loading(crate::state::Candidate { manifest: manifest.clone(), rules, slot: Some(slot) });
        let (digest, properties) = (operation.setup.digest, operation.setup.properties.clone());
        self.load_into(key, slot, &LoadWhat { digest, manifest: &manifest, properties: &properties });
    }

    /// Settles what the end of its container means for one module.
    fn outlive_container(&mut self, key: &Key, refusal: &Refusal, blamed: Option<&(ModuleName, Role)>, starting: bool) {
        let blame = |role: Role| blamed.is_some_and(|(name, blamed)| *name == key.1 && *blamed == role);
        if let Some(active) = self.active(key).filter(|active| active.run.in_container()) {
            if blame(Role::Active) {
                self.fail_culprit(key, refusal.clone());
            } else {
                active.last_failure = Some(refusal.clone());
                active.restarts = active.restarts.saturating_add(1);
                active.run = Run::Waiting;
            }
        }
        let Some(operation) = self.operation(key) else { return };
        let lost = match &operation.stage {
            Stage::Fetching(_) => false,
            Stage::Waiting(_) => starting,
            Stage::Loading(_) | Stage::Settling(_) => true,
        };
        let innocent = matches!(operation.stage, Stage::Loading(_)) && blamed.is_some() && !blame(Role::Candidate);
        if innocent {
            self.wait_again(key);
        } else if lost {
            self.candidate_gone(key);
            self.fail_operation(key, refusal.clone());
        }
    }

    /// Puts a module whose load was cut off by another's fault back in line.
    fn wait_again(&mut self, key: &Key) {
        self.candidate_gone(key);
        let Some(entry) = self.entry(key) else { return };
        let Some(mut operation) = entry.operation.take() else { return };
        operation.stage = match operation.stage {
            Stage::Loading(candidate) => Stage::Waiting(candidate),
            other @ (Stage::Fetching(_) | Stage::Waiting(_) | Stage::Settling(_)) => other,
        };
        entry.operation = Some(operation);
    }

    /// Takes a module's place away that went with its container.
    fn candidate_gone(&mut self, key: &Key) {
        let Some(tenant) = self.tenants.get_mut(&key.0) else { return };
        let Some(operation) = tenant.modules.get_mut(&key.1).and_then(|entry| entry.operation.as_mut()) else { return };
        let slot = match &mut operation.stage {
            Stage::Fetching(_) => None,
            Stage::Waiting(candidate) | Stage::Loading(candidate) | Stage::Settling(candidate) => candidate.slot.take(),
        };
        if let Some(slot) = slot {
            tenant.container.places.remove(&slot);
        }
    }
}

fn active_waits(entry: &Entry) -> bool {
    entry.active.as_ref().is_some_and(|active| active.run == Run::Waiting)
}

fn operation_waits(entry: &Entry) -> bool {
    entry.operation.as_ref().is_some_and(|operation| matches!(operation.stage, Stage::Waiting(_)))
}

/// Returns the module to blame: the one that is named, or else the only one that was in the container.
fn whom_to_blame(tenant: &Tenant, culprit: Option<ModuleSlot>) -> Option<(ModuleName, Role)> {
    let in_container = |place: &&Place| {
        let Some(entry) = tenant.modules.get(&place.module) else { return false };
        match place.role {
            Role::Leaving => true,
            Role::Active => entry.active.as_ref().is_some_and(|active| active.run.in_container()),
            Role::Candidate => true,
        }
    };
    let place = match culprit {
        Some(slot) => tenant.container.places.get(&slot),
        None => {
            let mut inside = tenant.container.places.values().filter(in_container);
            inside.next().filter(|_| inside.next().is_none())
        }
    };
    place.map(|place| (place.module.clone(), place.role))
}
