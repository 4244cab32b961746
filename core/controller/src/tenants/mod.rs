// SPDX-License-Identifier: Apache-2.0
//! The users on the node, each with workers and modules.

pub(crate) mod active;
pub(crate) mod backoff;
pub(crate) mod inbox;
pub(crate) mod later;
pub(crate) mod operation;
pub(crate) mod rule;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod tenant;
pub(crate) mod wishes;
pub(crate) mod worker;

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::effect::{EffectId, InstalledRecord, ModuleSlot, SessionRecord};
use netserv_model::{ModuleName, Nonce, SessionId, UserId, WorkerId};

use crate::cx::request::Key;
use crate::tenants::active::{Active, Run};
use crate::tenants::operation::{Candidate, Joining, Operation, Settling, Stage};
use crate::tenants::tenant::{Entry, Tenant, Waiter};
use crate::tenants::worker::{Draining, Phase, Role, Worker};

/// The users with a container or on the way to one.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    users: BTreeMap<UserId, Tenant>,
    next_order: u64,
}

impl Tenants {
    /// Returns a user's.
    pub(crate) fn get(&self, user: &UserId) -> Option<&Tenant> {
        self.users.get(user)
    }

    pub(crate) fn get_mut(&mut self, user: &UserId) -> Option<&mut Tenant> {
        self.users.get_mut(user)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&UserId, &Tenant)> {
        self.users.iter()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &UserId> {
        self.users.keys()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Tenant> {
        self.users.values()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.users.len()
    }

    pub(crate) fn remove(&mut self, user: &UserId) {
        self.users.remove(user);
    }

    /// Returns the place of the next module in the order of installation.
    pub(crate) fn take_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order - 1
    }

    /// Has later modules come after one.
    pub(crate) fn order_after(&mut self, order: u64) {
        self.next_order = self.next_order.max(order.saturating_add(1));
    }

    pub(crate) fn entry(&mut self, key: &Key) -> Option<&mut Entry> {
        self.users.get_mut(&key.0)?.modules.get_mut(&key.1)
    }

    pub(crate) fn entry_or_new(&mut self, key: &Key) -> &mut Entry {
        self.users.entry(key.0.clone()).or_default().modules.entry(key.1.clone()).or_default()
    }

    /// Returns the module that has a place in a worker.
    pub(crate) fn module_at(&self, worker: &WorkerId, slot: ModuleSlot) -> Option<&ModuleName> {
        Some(&self.get(&worker.user)?.workers.get(&worker.flavour)?.places.get(&slot)?.module)
    }

    /// Returns whether a module is installed or about to be.
    pub(crate) fn is_taken(&self, user: &UserId, module: &ModuleName) -> bool {
        let entry = self.get(user).and_then(|tenant| tenant.modules.get(module));
        entry.is_some_and(|entry| entry.active.is_some() || entry.operation.is_some())
    }

    /// Returns the session of the SETUP with a nonce, if that is in force or under way.
    pub(crate) fn session_having(&self, key: &Key, nonce: Nonce) -> Option<SessionId> {
        let entry = self.get(&key.0)?.modules.get(&key.1)?;
        let under_way = entry.operation.as_ref().filter(|operation| operation.origin.nonce == Some(nonce));
        let in_force = || Some(entry.active.as_ref()?.session_by(nonce)?.origin());
        under_way.map(|operation| operation.origin).or_else(in_force).map(|origin| origin.session)
    }

    /// Returns whether connections of a module of this name go on without it.
    pub(crate) fn drains(&self, key: &Key) -> bool {
        !self.draining_of(key).is_empty()
    }

    pub(crate) fn draining_of(&self, key: &Key) -> Vec<(WorkerId, ModuleSlot)> {
        self.find_draining(|worker, draining| worker.user == key.0 && draining.module.name == key.1)
    }

    pub(crate) fn find_draining(&self, wanted: impl Fn(&WorkerId, &Draining) -> bool) -> Vec<(WorkerId, ModuleSlot)> {
        let mut found = Vec::new();
        for (user, tenant) in self.iter() {
            for (flavour, known) in &tenant.workers {
                let worker = WorkerId::new(user.clone(), *flavour);
                let own = known.draining.iter().filter(|(_, draining)| wanted(&worker, draining));
                found.extend(own.map(|(slot, _)| (worker.clone(), *slot)));
            }
        }
        found
    }

    /// Returns the modules that have an address, or are to, each with its epoch.
    pub(crate) fn owners_of(&self, address: IpAddr) -> impl Iterator<Item = (Key, u64)> {
        self.iter().flat_map(move |(user, tenant)| {
            tenant.modules.iter().flat_map(move |(module, entry)| {
                let active = entry.active.as_ref().map(|active| (&active.record.floating, active.record.epoch));
                let wanted = entry.operation.as_ref().map(|op| (&op.setup.floating, op.setup.epoch));
                let owns = active.into_iter().chain(wanted).filter(move |(own, _)| own.contains(&address));
                owns.map(move |(_, epoch)| ((user.clone(), module.clone()), epoch))
            })
        })
    }

    /// Returns an installed module.
    pub(crate) fn active(&mut self, key: &Key) -> Option<&mut Active> {
        self.entry(key)?.active.as_mut()
    }

    /// Returns the SETUP under way for a module.
    pub(crate) fn operation(&mut self, key: &Key) -> Option<&mut Operation> {
        self.entry(key)?.operation.as_mut()
    }

    pub(crate) fn next_waiter(&mut self, key: &Key) -> Option<Waiter> {
        let entry = self.entry(key)?;
        if entry.operation.is_some() { None } else { entry.waiting.pop_front() }
    }

    pub(crate) fn stage(&self, key: &Key) -> Option<&Stage> {
        let entry = self.get(&key.0)?.modules.get(&key.1)?;
        entry.operation.as_ref().map(|operation| &operation.stage)
    }

    pub(crate) fn leave_place(&mut self, worker: &WorkerId, slot: ModuleSlot) {
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

    /// Returns the epoch in which this node has a module; 0 if it has not.
    pub(crate) fn epoch_of(&self, key: &Key) -> u64 {
        self.active_of(key).map_or(0, |active| active.record.epoch)
    }

    /// Returns a module that this node has.
    pub(crate) fn active_of(&self, key: &Key) -> Option<&Active> {
        self.get(&key.0)?.modules.get(&key.1)?.active.as_ref()
    }

    /// Sets what an installed module is doing.
    pub(crate) fn set_run(&mut self, key: &Key, run: Run) {
        if let Some(active) = self.active(key) {
            active.run = run;
        }
    }

    pub(crate) fn record_fetching(&self, key: &Key, job: EffectId) -> Option<&InstalledRecord> {
        let active = self.get(&key.0)?.modules.get(&key.1)?.active.as_ref()?;
        (active.run == Run::Fetching(job)).then_some(&active.record)
    }

    pub(crate) fn settling(&mut self, key: &Key) -> Option<(&mut Candidate, &mut Settling)> {
        match &mut self.operation(key)?.stage {
            Stage::Settling(candidate, settling) => Some((candidate, settling)),
            Stage::Fetching(_) | Stage::Composing(..) | Stage::Waiting(_) | Stage::Loading(_) | Stage::Joining(_) => {
                None
            }
        }
    }

    /// Returns what the other sessions than one ask for.
    pub(crate) fn others_than(&self, key: &Key, session: SessionId) -> Vec<SessionRecord> {
        let sessions = self.active_of(key).map(|active| &active.sessions[..]).unwrap_or_default();
        sessions.iter().filter(|held| !held.is_of(session)).map(|session| session.record.clone()).collect()
    }

    pub(crate) fn joining(&mut self, key: &Key) -> Option<&mut Joining> {
        match &mut self.operation(key)?.stage {
            Stage::Joining(joining) => Some(joining),
            Stage::Fetching(_) | Stage::Composing(..) | Stage::Waiting(_) | Stage::Loading(_) | Stage::Settling(..) => {
                None
            }
        }
    }

    /// Returns what is known of a worker.
    pub(crate) fn worker(&mut self, id: &WorkerId) -> Option<&mut Worker> {
        self.get_mut(&id.user)?.workers.get_mut(&id.flavour)
    }

    pub(crate) fn set_phase(&mut self, id: &WorkerId, phase: Phase) {
        if let Some(worker) = self.worker(id) {
            worker.phase = phase;
        }
    }

    /// Takes a module's place away that went with its worker.
    pub(crate) fn candidate_gone(&mut self, key: &Key) {
        let Some(operation) = self.operation(key) else { return };
        let place = match &mut operation.stage {
            Stage::Fetching(_) | Stage::Composing(_, _) | Stage::Joining(_) => None,
            Stage::Waiting(candidate) | Stage::Loading(candidate) | Stage::Settling(candidate, _) => {
                let place = candidate.place();
                candidate.slot = None;
                place
            }
        };
        if let Some((flavour, slot)) = place {
            self.free_place(&WorkerId::new(key.0.clone(), flavour), slot);
        }
    }
}
