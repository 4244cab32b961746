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
    /// Returns what is known of a user.
    pub(crate) fn get(&self, user: &UserId) -> Option<&Tenant> {
        self.users.get(user)
    }

    /// Returns what is known of a user, to be changed.
    pub(crate) fn get_mut(&mut self, user: &UserId) -> Option<&mut Tenant> {
        self.users.get_mut(user)
    }

    /// Returns all users in order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&UserId, &Tenant)> {
        self.users.iter()
    }

    /// Returns how many users there are.
    pub(crate) fn len(&self) -> usize {
        self.users.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Forgets a user.
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

    /// Returns what is known of a module.
    pub(crate) fn entry(&self, key: &Key) -> Option<&Entry> {
        self.users.get(&key.0)?.modules.get(&key.1)
    }

    /// Returns what is known of a module, to be changed.
    pub(crate) fn entry_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.users.get_mut(&key.0)?.modules.get_mut(&key.1)
    }

    /// Returns what is known of a module, to be changed; nothing is known of a new one.
    pub(crate) fn entry_or_new(&mut self, key: &Key) -> &mut Entry {
        self.users.entry(key.0.clone()).or_default().modules.entry(key.1.clone()).or_default()
    }

    /// Returns an installed module.
    pub(crate) fn active(&self, key: &Key) -> Option<&Active> {
        self.entry(key)?.active.as_ref()
    }

    /// Returns an installed module, to be changed.
    pub(crate) fn active_mut(&mut self, key: &Key) -> Option<&mut Active> {
        self.entry_mut(key)?.active.as_mut()
    }

    /// Returns the SETUP under way for a module.
    pub(crate) fn operation(&self, key: &Key) -> Option<&Operation> {
        self.entry(key)?.operation.as_ref()
    }

    /// Returns the SETUP under way for a module, to be changed.
    pub(crate) fn operation_mut(&mut self, key: &Key) -> Option<&mut Operation> {
        self.entry_mut(key)?.operation.as_mut()
    }

    /// Returns how far the SETUP under way for a module is.
    pub(crate) fn stage(&self, key: &Key) -> Option<&Stage> {
        self.operation(key).map(|operation| &operation.stage)
    }

    /// Returns what is known of a worker.
    pub(crate) fn worker(&self, id: &WorkerId) -> Option<&Worker> {
        self.get(&id.user)?.workers.get(&id.flavour)
    }

    /// Returns what is known of a worker, to be changed.
    pub(crate) fn worker_mut(&mut self, id: &WorkerId) -> Option<&mut Worker> {
        self.get_mut(&id.user)?.workers.get_mut(&id.flavour)
    }

    /// Returns the module that has a place in a worker.
    pub(crate) fn module_at(&self, worker: &WorkerId, slot: ModuleSlot) -> Option<&ModuleName> {
        Some(&self.worker(worker)?.places.get(&slot)?.module)
    }

    /// Returns whether a module is installed or about to be.
    pub(crate) fn is_taken(&self, user: &UserId, module: &ModuleName) -> bool {
        let entry = self.get(user).and_then(|tenant| tenant.modules.get(module));
        entry.is_some_and(|entry| entry.active.is_some() || entry.operation.is_some())
    }

    /// Returns the session of the SETUP with a nonce, if that is in force or under way.
    pub(crate) fn session_having(&self, key: &Key, nonce: Nonce) -> Option<SessionId> {
        let entry = self.entry(key)?;
        let under_way = entry.operation.as_ref().filter(|operation| operation.origin.nonce == Some(nonce));
        let in_force = || Some(entry.active.as_ref()?.session_by(nonce)?.origin());
        under_way.map(|operation| operation.origin).or_else(in_force).map(|origin| origin.session)
    }

    /// Returns whether connections of a module of this name go on without it.
    pub(crate) fn drains(&self, key: &Key) -> bool {
        !self.draining_of(key).is_empty()
    }

    /// Returns the places of those of a name.
    pub(crate) fn draining_of(&self, key: &Key) -> Vec<(WorkerId, ModuleSlot)> {
        self.find_draining(|worker, draining| worker.user == key.0 && draining.module.name == key.1)
    }

    /// Returns the places of modules that are gone while their connections go on, of which something is true.
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

    /// Takes the next request for a module, unless one is under way.
    pub(crate) fn next_waiter(&mut self, key: &Key) -> Option<Waiter> {
        let entry = self.entry_mut(key)?;
        if entry.operation.is_some() { None } else { entry.waiting.pop_front() }
    }

    /// Has a place be free once the load of the module in it is answered.
    pub(crate) fn leave_place(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        if let Some(worker) = self.worker_mut(worker)
            && let Some(place) = worker.places.get_mut(&slot)
        {
            place.role = Role::Leaving;
        }
    }

    /// Gives a place back.
    pub(crate) fn free_place(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        if let Some(worker) = self.worker_mut(worker) {
            worker.places.remove(&slot);
        }
    }

    /// Returns the epoch in which this node has a module; 0 if it has not.
    pub(crate) fn epoch_of(&self, key: &Key) -> u64 {
        self.active(key).map_or(0, |active| active.record.epoch)
    }

    /// Sets what an installed module is doing.
    pub(crate) fn set_run(&mut self, key: &Key, run: Run) {
        if let Some(active) = self.active_mut(key) {
            active.run = run;
        }
    }

    /// Returns what is remembered of an installed module whose package is being had by a job.
    pub(crate) fn record_fetching(&self, key: &Key, job: EffectId) -> Option<&InstalledRecord> {
        let active = self.active(key)?;
        (active.run == Run::Fetching(job)).then_some(&active.record)
    }

    /// Returns a module that is loaded and about to be in force.
    pub(crate) fn settling(&mut self, key: &Key) -> Option<(&mut Candidate, &mut Settling)> {
        match &mut self.operation_mut(key)?.stage {
            Stage::Settling(candidate, settling) => Some((candidate, settling)),
            Stage::Fetching(_) | Stage::Composing(..) | Stage::Waiting(_) | Stage::Loading(_) | Stage::Joining(_) => {
                None
            }
        }
    }

    /// Returns what the other sessions than one ask for.
    pub(crate) fn others_than(&self, key: &Key, session: SessionId) -> Vec<SessionRecord> {
        let sessions = self.active(key).map(|active| &active.sessions[..]).unwrap_or_default();
        sessions.iter().filter(|held| !held.is_of(session)).map(|session| session.record.clone()).collect()
    }

    /// Returns how far a session is that joins those which hold a module.
    pub(crate) fn joining(&mut self, key: &Key) -> Option<&mut Joining> {
        match &mut self.operation_mut(key)?.stage {
            Stage::Joining(joining) => Some(joining),
            Stage::Fetching(_) | Stage::Composing(..) | Stage::Waiting(_) | Stage::Loading(_) | Stage::Settling(..) => {
                None
            }
        }
    }

    /// Sets what a worker is doing.
    pub(crate) fn set_phase(&mut self, id: &WorkerId, phase: Phase) {
        if let Some(worker) = self.worker_mut(id) {
            worker.phase = phase;
        }
    }

    /// Takes a module's place away that went with its worker.
    pub(crate) fn candidate_gone(&mut self, key: &Key) {
        let Some(operation) = self.operation_mut(key) else { return };
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
