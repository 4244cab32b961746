// SPDX-License-Identifier: Apache-2.0
//! Effects: what the node wants done to the machine, given to whoever owns that kind of thing.
//!
//! Every owner has a thread and an inbox that never blocks the sender, and answers each effect by its [`ticket::Ticket`].
//! Owners do not know each other; what one makes for another goes through here.

pub mod filters;
mod lists;
pub mod networks;
pub mod packages;
mod proofs;
pub mod routes;
pub mod store;
pub mod ticket;
pub mod workers;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use netserv_model::effect::{Effect, EffectId, Job, ModuleLoad, PackageJob, StoreJob, WorkerJob};
use netserv_model::policy::Permits;
use netserv_model::trace::TraceRequest;
use netserv_model::{Digest, Flavour, Refusal, RefusalKind, UserId};
use netserv_packet_loop::feed::{Feed, TraceRefusal};
use netserv_repository::{AddressAsker, Downloaded, ListAsker};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use filters::FilterJob;
use networks::jobs::NetworkJob;
use packages::PackageRequest;
pub use proofs::Holders;
use routes::RouteJob;
use ticket::{Answer, Cargo, Ticket};
use workers::{LoadFiles, Loading, WorkersJob};

use crate::event::CodeParts;
use crate::limits::{CODE_PATHS_MAX, COMPOSITIONS_MAX, STATES_HELD_MAX, STATES_HELD_PER_USER_MAX};
use crate::metrics::gauges::WorkerGauges;

/// The ways to the owners.
pub struct Owners {
    /// Rules of packets.
    pub filters: Sender<FilterJob>,
    /// What outlives the process.
    pub store: store::Jobs,
    /// The node's own addresses toward others.
    pub routes: Sender<RouteJob>,
    /// What runs modules; nothing on a host.
    pub modules: Option<ModuleOwners>,
}

/// The ways to the owners that a host has not.
#[derive(Clone)]
pub struct ModuleOwners {
    /// Packages and their code.
    pub packages: Sender<PackageRequest>,
    /// Containers' networks.
    pub networks: Sender<NetworkJob>,
    /// Workers.
    pub workers: UnboundedSender<WorkersJob>,
    /// What addresses say of users.
    pub proofs: Arc<AddressAsker>,
    /// By what it is found out who is behind checklists, if the operator has that.
    pub holders: Option<Holders>,
    /// Revocation lists.
    pub lists: ListAsker,
}

/// Gives effects to their owners, and keeps what later effects need of earlier ones.
pub struct Effects {
    owners: Owners,
    answers: UnboundedSender<Answer>,
    /// Where the code of packages is.
    code: BTreeMap<(Digest, Flavour), CodeParts>,
    /// Where the compositions of packages' components are.
    compositions: BTreeMap<Vec<Digest>, PathBuf>,
    /// States that modules are to begin with which are about to be loaded, by their digests.
    states: VecDeque<(Digest, Arc<Downloaded>)>,
    gauges: WorkerGauges,
}

impl Effects {
    /// Returns what gives effects to these owners, and where they answer.
    pub fn new(owners: Owners) -> (Effects, tokio::sync::mpsc::UnboundedReceiver<Answer>) {
        let (answers, inbox) = unbounded_channel();
        let (code, compositions, states) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        (Effects { owners, answers, code, compositions, states, gauges: WorkerGauges::default() }, inbox)
    }

    /// Begins an effect. It does not wait: the answer comes later.
    pub fn begin(&mut self, effect: Effect) {
        let Effect { id, user, job } = effect;
        let ticket = Ticket::new(id, self.answers.clone());
        // An owner that is gone drops the ticket, which answers.
        match job {
            Job::Filters(change) => drop(self.owners.filters.send(FilterJob::Change(change, ticket))),
            Job::Route(destination) => drop(self.owners.routes.send(RouteJob::Source(destination, ticket))),
            Job::Store(job) => self.store(job, ticket),
            Job::Packages(job) => self.package(job, user, ticket),
            Job::Workers(job) => self.worker(job, ticket),
            Job::Intercepts(job) => match &self.owners.modules {
                Some(modules) => drop(modules.networks.send(NetworkJob::Intercept(job, ticket))),
                None => ticket.refuse(not_a_node()),
            },
            Job::Permit(permits) => self.permit(user, permits, ticket),
            Job::Limit(limits) => match (&self.owners.modules, user) {
                (Some(modules), Some(user)) => drop(modules.workers.send(WorkersJob::Limit(user, limits, ticket))),
                (Some(_) | None, _) => ticket.refuse(not_a_node()),
            },
            Job::Floating(addresses) => match (&self.owners.modules, user) {
                (Some(modules), Some(user)) => {
                    drop(modules.networks.send(NetworkJob::Floating(user, addresses, ticket)));
                }
                (Some(_) | None, _) => ticket.refuse(not_a_node()),
            },
            Job::Addresses(plan) => match &self.owners.modules {
                Some(modules) => drop(modules.networks.send(NetworkJob::Addresses(plan, ticket))),
                None => ticket.refuse(not_a_node()),
            },
            Job::AskAddress { address, user, tls } => match &self.owners.modules {
                Some(modules) => proofs::ask(&modules.proofs, (address, user, tls), ticket),
                None => ticket.refuse(not_a_node()),
            },
            Job::FindHolder { checklist, grant, is_again } => match &self.owners.modules {
                Some(modules) => {
                    let asked = proofs::Asked { checklist, grant, is_again };
                    proofs::find_holder(modules.holders.as_ref(), asked, ticket);
                }
                None => ticket.refuse(not_a_node()),
            },
            Job::AskList { url, etag } => match &self.owners.modules {
                Some(modules) => lists::ask(&modules.lists, url, etag, ticket),
                None => ticket.refuse(not_a_node()),
            },
            Job::ReadMeters => self.read_meters(ticket),
            Job::Measure => match &self.owners.modules {
                Some(modules) => drop(modules.workers.send(WorkersJob::Measure(ticket))),
                None => ticket.refuse(not_a_node()),
            },
        }
    }

    /// Says that nobody waits for an effect any more.
    pub fn abandon(&self, id: EffectId) {
        if let Some(modules) = &self.owners.modules {
            // If nobody is there, nobody works on it.
            let _ = modules.packages.send(PackageRequest::Abandon(id));
        }
    }

    /// Keeps what an answer brings along.
    pub fn keep(&mut self, cargo: Cargo) {
        match cargo {
            Cargo::Code(digest, flavour, parts) => self.keep_code(digest, flavour, parts),
            Cargo::CodeAndState(digest, flavour, parts, state, file) => {
                self.keep_code(digest, flavour, parts);
                self.keep_state(state, file);
            }
            Cargo::Composition(parts, code) => {
                // What is loaded stays so; a service that is loaded again is composed anew.
                let full = self.compositions.len() >= COMPOSITIONS_MAX;
                let mut forgotten = if full { std::mem::take(&mut self.compositions) } else { BTreeMap::new() };
                if let Some(older) = self.compositions.insert(parts.clone(), code) {
                    forgotten.insert(parts, older);
                }
                if let Some(modules) = &self.owners.modules {
                    forgotten.into_values().for_each(|code| drop(modules.packages.send(PackageRequest::Remove(code))));
                }
            }
            Cargo::Gauges(gauges) => self.gauges = gauges,
        }
    }

    fn keep_code(&mut self, digest: Digest, flavour: Flavour, parts: CodeParts) {
        // Whoever needs what is forgotten fetches it again, from the store.
        if self.code.len() >= CODE_PATHS_MAX {
            self.code.clear();
        }
        self.code.insert((digest, flavour), parts);
    }

    /// Keeps a state until its module is loaded. Whoever is not loaded by then is refused.
    fn keep_state(&mut self, state: Digest, file: Arc<Downloaded>) {
        let of = |user: &UserId| self.states.iter().filter(|(_, held)| held.user() == user).count();
        let most = self.states.iter().map(|(_, held)| held.user()).max_by_key(|user| of(user));
        let gone = match most {
            _ if of(file.user()) >= STATES_HELD_PER_USER_MAX => Some(file.user()),
            Some(most) if self.states.len() >= STATES_HELD_MAX => Some(most),
            Some(_) | None => None,
        };
        if let Some(place) = gone.and_then(|user| self.states.iter().position(|(_, held)| held.user() == user)) {
            self.states.remove(place);
        }
        self.states.push_back((state, file));
    }

    /// Returns what workers last said of themselves.
    pub fn gauges(&self) -> &WorkerGauges {
        &self.gauges
    }

    /// Has packets followed until the feed is dropped.
    pub fn trace(&self, request: Box<TraceRequest>, reply: oneshot::Sender<Result<Feed, TraceRefusal>>) {
        // Without an owner, the reply is dropped, which says so.
        let _ = self.owners.filters.send(FilterJob::Trace(request, reply));
    }

    /// Has the packets counted that the firewalls of containers dropped. Without an owner, nobody answers.
    pub fn count_drops(&self) -> oneshot::Receiver<BTreeMap<UserId, BTreeMap<String, u64>>> {
        let (reply, counted) = oneshot::channel();
        if let Some(modules) = &self.owners.modules {
            let _ = modules.networks.send(NetworkJob::CountDrops(reply));
        }
        counted
    }

    /// Ends workers, then networks, and waits for that. The other owners end with this.
    pub async fn stop(self) {
        let Some(ModuleOwners { networks, workers, .. }) = self.owners.modules else { return };
        let (ended, is_ended) = oneshot::channel();
        if workers.send(WorkersJob::End(ended)).is_ok() {
            // It ends also without saying so.
            let _ = is_ended.await;
        }
        let (ended, is_ended) = oneshot::channel();
        if networks.send(NetworkJob::End(ended)).is_ok() {
            let _ = is_ended.await;
        }
    }

    fn store(&self, job: StoreJob, ticket: Ticket) {
        if let Some(modules) = &self.owners.modules {
            let note = match &job {
                StoreJob::Put(record) => Some(NetworkJob::Installed(record.user.clone(), record.module.name.clone())),
                StoreJob::Forget { user, module } => Some(NetworkJob::Gone(user.clone(), module.clone())),
                StoreJob::ForgetUser { .. }
                | StoreJob::PutMessage { .. }
                | StoreJob::PutList(_)
                | StoreJob::PutUsage(_) => None,
            };
            note.into_iter().for_each(|note| drop(modules.networks.send(note)));
        }
        let _ = self.owners.store.send((job, ticket));
    }

    fn package(&mut self, job: PackageJob, user: Option<UserId>, ticket: Ticket) {
        let (Some(modules), Some(user)) = (&self.owners.modules, user) else { return ticket.refuse(not_a_node()) };
        let request = match job {
            PackageJob::Fetch { url, digest, keys, state } => {
                PackageRequest::Fetch { user, url, digest, keys, state, ticket }
            }
            PackageJob::Compose { parts, .. } if self.compositions.contains_key(&parts) => return ticket.done(),
            PackageJob::Compose { parts, names } => {
                let component = |digest: &Digest| self.code.get(&(*digest, Flavour::Wasm))?.component.clone();
                let Some(components) = parts.iter().map(component).collect() else {
                    let detail = "a part of the service was not fetched";
                    return ticket.refuse(Refusal::new(RefusalKind::NodeFailed, detail));
                };
                PackageRequest::Compose { user, parts, components, names, ticket }
            }
        };
        let _ = modules.packages.send(request);
    }

    fn worker(&mut self, job: WorkerJob, ticket: Ticket) {
        let Some(ModuleOwners { networks, workers, .. }) = self.owners.modules.clone() else {
            return ticket.refuse(not_a_node());
        };
        let job = match job {
            WorkerJob::Start { worker, limits, permits } => {
                let (user, made_for) = (worker.user.clone(), permits.clone());
                let then = Box::new(move |network| {
                    drop(workers.send(WorkersJob::Start { worker, limits, permits, network, ticket }));
                });
                return drop(networks.send(NetworkJob::Make(user, made_for, then)));
            }
            WorkerJob::Load(load) => return self.load(*load, ticket),
            WorkerJob::Stop { worker } => WorkersJob::Stop(worker, ticket),
            WorkerJob::Unload { worker, slot } => WorkersJob::Unload(worker, slot, ticket),
            WorkerJob::Drain { worker, slot, finish } => WorkersJob::Drain(worker, slot, finish, ticket),
            WorkerJob::Confirm { worker, slot } => WorkersJob::Confirm(worker, slot, ticket),
            WorkerJob::Order { worker, slots } => WorkersJob::Order(worker, slots, ticket),
            WorkerJob::Export(export) => WorkersJob::Export(export, ticket),
            WorkerJob::Tell { worker, slot, message } => WorkersJob::Tell(worker, slot, message, ticket),
        };
        let _ = workers.send(job);
    }

    /// Has all meters read: those of networks first.
    fn read_meters(&self, ticket: Ticket) {
        let Some(ModuleOwners { networks, workers, .. }) = self.owners.modules.clone() else {
            return ticket.refuse(not_a_node());
        };
        let then = Box::new(move |meters| drop(workers.send(WorkersJob::ReadMeters(meters, ticket))));
        let _ = networks.send(NetworkJob::ReadMeters(then));
    }

    /// Has a user's containers held to this: by the kernel first, then by themselves.
    fn permit(&self, user: Option<UserId>, permits: Box<Permits>, ticket: Ticket) {
        let (Some(ModuleOwners { networks, workers, .. }), Some(user)) = (self.owners.modules.clone(), user) else {
            return ticket.refuse(not_a_node());
        };
        let (permitted_to, permitted) = (user.clone(), permits.clone());
        let then = Box::new(move |network| drop(workers.send(WorkersJob::Permit(user, permits, network, ticket))));
        let _ = networks.send(NetworkJob::Permit(permitted_to, permitted, then));
    }

    /// Has a module loaded, once the sockets are made that its intercepted connections arrive at.
    fn load(&mut self, load: ModuleLoad, ticket: Ticket) {
        let Some(ModuleOwners { networks, workers, .. }) = self.owners.modules.clone() else {
            return ticket.refuse(not_a_node());
        };
        let code = self.code.get(&(load.digest, load.worker.flavour)).cloned();
        let is_its =
            |(held, file): &(Digest, Arc<Downloaded>)| Some(*held) == load.state && *file.user() == load.worker.user;
        let state = self.states.iter().rposition(is_its).and_then(|place| self.states.remove(place));
        let state = state.map(|(_, file)| file);
        let files = LoadFiles { code, composition: self.compositions.get(&load.chain).cloned(), state };
        if load.server.as_ref().is_none_or(|server| server.intercept.is_empty()) {
            let loading = Loading { load, files, listeners: Ok(Vec::new()) };
            return drop(workers.send(WorkersJob::Load(Box::new(loading), ticket)));
        }
        if load.worker.flavour != Flavour::Wasm {
            let detail = "bundles do not take over connections between others";
            return ticket.refuse(Refusal::new(RefusalKind::NodeFailed, detail));
        }
        let (worker, slot) = (load.worker.clone(), load.slot);
        let then = Box::new(move |listeners| {
            let loading = Loading { load, files, listeners };
            drop(workers.send(WorkersJob::Load(Box::new(loading), ticket)));
        });
        let _ = networks.send(NetworkJob::Listeners(worker, slot, then));
    }
}

fn not_a_node() -> Refusal {
    Refusal::new(RefusalKind::NotANode, "this machine runs no modules")
}

#[cfg(test)]
mod tests;
