// SPDX-License-Identifier: Apache-2.0
//! Carries out the controller's commands: packages, containers, filters, the store.
//!
//! What takes long is done on threads of its own and comes back as an event; everything else is done at once. What the
//! controller must know before its next command is waited for, while the control loop does other things.

pub mod filters;
mod media;
pub mod networks;
pub mod packages;
pub mod store;
pub mod workers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use anyhow::Result;
use ipnet::IpNet;
use netserv_container::{Activity, Process};
use netserv_dataplane::FilterTable;
use netserv_model::api::DeviceInfo;
use netserv_model::effect::{Command, Event as ControllerEvent, InstalledRecord, JobId, ModuleSlot, RequestId};
use netserv_model::policy::ContainerLimits;
use netserv_model::request::NodeReport;
use netserv_model::trace::TraceRequest;
use netserv_model::{Digest, Flavour, ModuleName, ModuleRef, PublicKey, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::frames::{FromWorker, StorageFailures, ToWorker};
use tokio::sync::{mpsc, oneshot};

use filters::FilterChanges;
use filters::traces::Traces;
use networks::jobs::{Interception, NetworkJob};
use networks::{Book, Networks};
use packages::Packages;
use store::Store;
use workers::ending::Ending;
use workers::launches::Job;
use workers::log_budget::{LogBudget, LogEntry};
use workers::outbox::Outbox;

use crate::config::Config;
use crate::event::{CodeParts, ContainerEvent, Event, Fetched};
use crate::limits::{CODE_PATHS_MAX, FRAMES_BATCH};
use crate::metrics::gauges::{Counted, Place};
use crate::packet_loop::counters::PacketTotals;
use crate::packet_loop::feed::{Feed, TraceRefusal};
use crate::packet_loop::thread::PacketPort;
use crate::packet_loop::{ModuleFilter, PacketCommand, TraceId};

/// Carries out commands.
pub struct Executor {
    config_path: Option<PathBuf>,
    /// Nothing on a host, which runs no modules.
    parts: Option<ModuleParts>,
    store: Store,
    book: Book,
    filters: Arc<dyn FilterTable>,
    packets: PacketPort,
    events: mpsc::Sender<Event>,
    /// Workers that are being started.
    starting: BTreeMap<WorkerId, Starting>,
    workers: BTreeMap<WorkerId, Running>,
    /// Workers that were told to end, by their generation.
    ending: BTreeMap<u64, Ending>,
    /// Workers that have more to say than was listened to, each once, in the order of their turns.
    unheard: VecDeque<ContainerEvent>,
    /// Packages of installed modules, which must not leave the store.
    installed: BTreeMap<(UserId, ModuleName), Digest>,
    prefixes: BTreeMap<UserId, Vec<IpNet>>,
    /// The building blocks that modules may use.
    blocks: BTreeSet<String>,
    stats: BTreeMap<Place, Counted>,
    /// What was last loaded where.
    modules: BTreeMap<Place, ModuleRef>,
    code: BTreeMap<(Digest, Flavour), CodeParts>,
    /// Where the compositions of packages' components are.
    composed: BTreeMap<Vec<Digest>, PathBuf>,
    /// Who waits for the compositions that are being made.
    composing: BTreeMap<Vec<Digest>, Vec<JobId>>,
    happened: VecDeque<ControllerEvent>,
    reports: VecDeque<(RequestId, NodeReport)>,
    changes: FilterChanges,
    traces: Traces,
    media: media::Media,
    next_generation: u64,
    /// The thread of networks is at a command of which no other may be carried out before its answer.
    busy: bool,
}

/// What the executor is made of.
pub struct ExecutorParts {
    /// The configuration file, to be read again on request.
    pub config_path: Option<PathBuf>,
    /// What runs modules; nothing on a host.
    pub modules: Option<ModuleParts>,
    /// The store of installed modules.
    pub store: Store,
    /// The driver's filters.
    pub filters: Arc<dyn FilterTable>,
    /// The way to the packet thread.
    pub packets: PacketPort,
    /// The way back to the control loop.
    pub events: mpsc::Sender<Event>,
}

/// What a node needs to run modules.
pub struct ModuleParts {
    /// Gets packages.
    pub packages: Packages,
    /// The way to the thread that starts workers.
    pub launches: Sender<Job>,
    /// Containers' networks; that thread makes and removes them.
    pub networks: Option<Arc<Networks>>,
    /// The way to the thread that changes them.
    pub network_jobs: Option<Sender<NetworkJob>>,
}

struct Starting {
    generation: u64,
    limits: ContainerLimits,
    /// Nobody was asked for it yet: the user's other worker is being started, whose container it is to join, or the
    /// last one of its kind has not ended.
    waits: bool,
}

struct Running {
    control: Outbox,
    /// When to send again what waits.
    send_again: Option<Instant>,
    process: Process,
    /// What the worker says that it is doing, also when it is dead.
    activity: Box<dyn Fn() -> Activity + Send>,
    generation: u64,
    ready: bool,
    /// It has had server modules, whose requests are to end before it does.
    serves: bool,
    stats_asked: bool,
    /// Whether sockets of IPv4, and of IPv6, are being made for it.
    sockets_asked: [bool; 2],
    /// What it last said of its files.
    storage: StorageFailures,
    pinned: BTreeMap<ModuleSlot, Digest>,
    dying: Option<Dying>,
    log: LogBudget,
}

/// A worker whose channel ended and that is killed, until it is known how it ended.
struct Dying {
    /// Why, unless its exit tells better.
    refusal: Refusal,
    /// It hung up, as one does that ends. One that wrote what is no frame is believed in nothing.
    hung_up: bool,
}

impl Executor {
    /// Puts the executor together.
    pub fn new(parts: ExecutorParts, config: &Config) -> Executor {
        let ExecutorParts { config_path, modules, store, filters, packets, events } = parts;
        let mut executor = Executor {
            config_path,
            parts: modules,
            book: Book::new(&store),
            store,
            filters,
            packets,
            events,
            starting: BTreeMap::new(),
            workers: BTreeMap::new(),
            ending: BTreeMap::new(),
            unheard: VecDeque::new(),
            installed: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            blocks: BTreeSet::new(),
            stats: BTreeMap::new(),
            modules: BTreeMap::new(),
            code: BTreeMap::new(),
            composed: BTreeMap::new(),
            composing: BTreeMap::new(),
            happened: VecDeque::new(),
            reports: VecDeque::new(),
            changes: FilterChanges::default(),
            traces: Traces::default(),
            media: media::Media::default(),
            next_generation: 0,
            busy: false,
        };
        executor.set_users(config);
        executor
    }

    /// Returns the configuration file.
    pub fn config_path(&self) -> Option<PathBuf> {
        self.config_path.clone()
    }

    /// Takes over which addresses are whose.
    pub fn set_users(&mut self, config: &Config) {
        self.set_networks(config);
        self.media.set(&config.blocks);
        self.blocks = config.blocks.versions(config.has_network()).into_keys().collect();
        self.prefixes = config.users.iter().map(|user| (user.name.clone(), user.prefixes.clone())).collect();
        let users: BTreeSet<&UserId> = self.workers.keys().map(|worker| &worker.user).collect();
        for user in users {
            let prefixes = self.prefixes.get(user).cloned().unwrap_or_default();
            self.packets.send(PacketCommand::SetPrefixes { user: user.clone(), prefixes });
        }
    }

    /// Returns what was installed when the node last ran.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn stored(&mut self) -> Result<Vec<InstalledRecord>> {
        let records = self.store.all()?;
        for record in &records {
            self.keep_package(record);
        }
        Ok(records)
    }

    /// Returns whether no command may be carried out for the moment.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Carries out one command.
    pub fn carry_out(&mut self, command: Command) {
        let filter_command = matches!(command, Command::InstallFilter { .. } | Command::RemoveFilter { .. });
        if !filter_command {
            self.finish_commands();
        }
        match command {
            Command::Fetch { job, url, digest, keys } => self.fetch(job, url, digest, keys),
            Command::Compose { job, parts, names } => self.compose(job, parts, names),
            Command::StartWorker { worker, limits } => self.start_worker(&worker, limits),
            Command::StopWorker { worker } => {
                self.let_worker_end(&worker);
                self.ask_for_waiting(&worker.user);
                self.spare_network(&worker.user);
            }
            Command::Load(load) => self.load(load),
            Command::Unload { worker, slot } => self.unload(&worker, slot),
            Command::InstallFilter { id, worker, slot, filter, on_failure } => {
                let module = self.modules.get(&(worker.clone(), slot)).cloned();
                self.changes.install(id, ModuleFilter { worker, slot, module, filter, on_failure });
            }
            Command::Order { worker, slots } => self.order(&worker, slots),
            Command::RemoveFilter { id } => self.changes.remove(id),
            Command::Intercept { id, worker, slot, filter, on_failure } => {
                self.intercept(Interception { id, worker, slot, filter, on_failure });
            }
            Command::SuspendIntercept { id } => {
                self.change_network(NetworkJob::Suspend(id));
            }
            Command::EndIntercept { id } => {
                self.change_network(NetworkJob::End(id));
            }
            Command::Store(record) => {
                self.keep_package(&record);
                if let Err(error) = self.store.put(&record) {
                    tracing::error!(%error, module = %record.module, "a module will not survive a restart");
                }
            }
            Command::Forget { user, module } => {
                self.let_package_go(&user, &module);
                if let Err(error) = self.store.forget(&user, &module) {
                    tracing::error!(%error, %module, "a module that is gone will come back after a restart");
                }
                self.spare_network(&user);
            }
            Command::Dissolved { user, module, refusal } => {
                tracing::warn!(%user, %module, %refusal, "a service is removed");
            }
            Command::Answer { request, report } => self.reports.push_back((request, *report)),
        }
    }

    /// Makes the filter changes that are noted; returns whether that has consequences for the controller.
    pub fn finish_commands(&mut self) -> bool {
        let failed = self.changes.make(&self.filters, &self.packets);
        let consequences = !failed.is_empty();
        self.happened.extend(failed);
        consequences
    }

    /// Returns the next thing that the controller must know.
    pub fn poll_event(&mut self) -> Option<ControllerEvent> {
        self.happened.pop_front()
    }

    /// Returns the next answer for the signaling.
    pub fn poll_report(&mut self) -> Option<(RequestId, NodeReport)> {
        self.reports.pop_front()
    }

    /// Returns what became of packets so far.
    pub fn packet_totals(&self) -> PacketTotals {
        self.packets.totals()
    }

    /// Returns what a module last said that it counted.
    pub fn stats(&self, place: &Place) -> Option<&Counted> {
        self.stats.get(place)
    }

    /// Asks every worker what its modules counted.
    pub fn ask_stats(&mut self) {
        for running in self.workers.values_mut().filter(|running| running.can_be_asked()) {
            running.stats_asked = running.control.send(&ToWorker::Stats, &[]).is_ok();
        }
    }

    /// Returns what each worker last said of its files.
    pub fn storage_failures(&self) -> impl Iterator<Item = (&WorkerId, StorageFailures)> {
        self.workers.iter().map(|(worker, running)| (worker, running.storage))
    }

    /// Returns whether a worker still has to say what its modules counted.
    pub fn stats_missing(&self) -> bool {
        self.workers.values().any(|running| running.stats_asked)
    }

    /// Looks at a worker whose socket, process or deadline changed, and returns what it wrote for the log.
    pub fn container_changed(&mut self, event: &ContainerEvent) -> Vec<LogEntry> {
        let mut lines = Vec::new();
        if self.see_off(event) {
            return lines;
        }
        self.send_waiting(&event.worker);
        for _ in 0..FRAMES_BATCH {
            let Some(running) = self.workers.get_mut(&event.worker) else { return lines };
            if running.generation != event.generation {
                return lines;
            }
            if running.dying.is_some() {
                self.see_it_die(event);
                return lines;
            }
            match running.control.receive() {
                Ok(Some(frame)) => lines.extend(self.take_frame(&event.worker, frame)),
                Ok(None) => match running.process.exit().cloned() {
                    Some(exit) => self.worker_ended(&event.worker, &exit),
                    None => return lines,
                },
                Err(error) => self.let_die(event, &error),
            }
        }
        // What is there already makes no further event.
        if !self.unheard.contains(event) {
            self.unheard.push_back(event.clone());
        }
        lines
    }

    /// Returns the worker whose turn it is to say more.
    pub fn poll_unheard(&mut self) -> Option<ContainerEvent> {
        self.unheard.pop_front()
    }

    /// Returns whether a worker has more to say.
    pub fn has_unheard(&self) -> bool {
        !self.unheard.is_empty()
    }

    /// Asks which devices the forwarding plane serves; nobody answers if it has ended.
    pub fn ask_devices(&self) -> oneshot::Receiver<Vec<DeviceInfo>> {
        let (reply, devices) = oneshot::channel();
        self.packets.send(PacketCommand::Devices(reply));
        devices
    }

    /// Starts to follow packets, until the feed is dropped.
    ///
    /// # Errors
    /// There are too many traces, or the driver refuses.
    pub fn start_trace(&mut self, request: &TraceRequest) -> Result<Feed, TraceRefusal> {
        self.traces.start(request, &self.filters, &self.packets, &self.events)
    }

    /// Takes away what a trace added.
    pub fn end_trace(&mut self, id: TraceId) {
        self.traces.end(id, &self.filters, &self.packets);
    }

    /// Ends every container and the packet thread; the rules go with the driver.
    pub fn stop(&mut self) {
        self.packets.stop();
        self.let_workers_end();
        if let Some(parts) = self.parts.take() {
            parts.packages.keeper.end();
            if let Some(networks) = parts.networks {
                networks.end();
            }
        }
    }

    fn fetch(&mut self, job: JobId, url: String, digest: Digest, keys: Vec<PublicKey>) {
        let Some(parts) = &self.parts else {
            let refusal = Refusal::new(RefusalKind::NotANode, "this machine runs no modules");
            return self.happened.push_back(ControllerEvent::FetchFailed { job, refusal });
        };
        let (packages, events) = (parts.packages.clone(), self.events.clone());
        // The runtime bounds its blocking threads, the controller its jobs.
        tokio::task::spawn_blocking(move || {
            let fetched = packages.get(&url, digest, &keys);
            // The control loop may have ended.
            let _ = events.blocking_send(Event::Fetched(job, fetched));
        });
    }

    /// Takes what a fetch ended with.
    pub fn fetched(&mut self, job: JobId, result: Result<Fetched, Refusal>) {
        self.happened.push_back(match result {
            Ok(Fetched { digest, flavour, parts, manifest }) => {
                if self.code.len() >= CODE_PATHS_MAX {
                    let running = self.workers.values().flat_map(|running| running.pinned.values());
                    let used: BTreeSet<Digest> = running.chain(self.installed.values()).copied().collect();
                    self.code.retain(|(digest, _), _| used.contains(digest));
                }
                self.code.insert((digest, flavour), parts);
                ControllerEvent::Fetched { job, manifest, flavour }
            }
            Err(refusal) => ControllerEvent::FetchFailed { job, refusal },
        });
    }

    /// Keeps the package of an installed module in the store, also while its container is down.
    fn keep_package(&mut self, record: &InstalledRecord) {
        let Some(parts) = &self.parts else { return };
        parts.packages.repository.pin(record.digest);
        let key = (record.user.clone(), record.module.name.clone());
        if let Some(before) = self.installed.insert(key, record.digest) {
            parts.packages.repository.unpin(before);
        }
    }

    fn let_package_go(&mut self, user: &UserId, module: &ModuleName) {
        let digest = self.installed.remove(&(user.clone(), module.clone()));
        if let (Some(parts), Some(digest)) = (&self.parts, digest) {
            parts.packages.repository.unpin(digest);
        }
    }

    fn unload(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        self.cancel_media_of(worker, Some(slot));
        self.drop_listeners(worker, Some(slot));
        let Some(running) = self.workers.get_mut(worker) else { return };
        if let (Some(digest), Some(parts)) = (running.pinned.remove(&slot), &self.parts) {
            parts.packages.repository.unpin(digest);
        }
        self.stats.remove(&(worker.clone(), slot));
        self.packets.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded: false });
        if running.dying.is_some() {
            return;
        }
        if let Err(error) = running.control.send(&ToWorker::Unload { slot }, &[]) {
            let detail = format!("the worker does not take frames: {error}");
            self.kill_worker(worker, Refusal::new(RefusalKind::NodeFailed, detail), None);
        }
    }

    fn take_frame(&mut self, worker: &WorkerId, frame: FromWorker) -> Option<LogEntry> {
        let running = self.workers.get_mut(worker)?;
        match frame {
            FromWorker::Ready { abi, engine } => {
                tracing::debug!(%worker, abi, engine, "worker ready");
                running.ready = true;
                self.happened.push_back(ControllerEvent::WorkerReady { worker: worker.clone() });
            }
            FromWorker::Loaded { slot } => {
                let loaded = running.pinned.contains_key(&slot);
                self.packets.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded });
                self.happened.push_back(ControllerEvent::Loaded { worker: worker.clone(), slot });
            }
            FromWorker::Failed { slot, refusal } => {
                // Its text is the worker's, so it is made one line again here.
                let refusal = Refusal::new(refusal.kind, refusal.detail);
                self.packets.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded: false });
                self.happened.push_back(ControllerEvent::ModuleFailed { worker: worker.clone(), slot, refusal });
                self.drop_listeners(worker, Some(slot));
            }
            FromWorker::Log { slot, level, text } => {
                let entry = LogEntry { worker: worker.clone(), slot, level, text };
                return running.log.spend(Instant::now(), entry);
            }
            FromWorker::Stats { slot, packets, counters, server } => {
                if running.pinned.contains_key(&slot) {
                    self.stats.insert((worker.clone(), slot), Counted { packets, counters, server });
                }
            }
            FromWorker::StatsDone { storage } => {
                running.stats_asked = false;
                running.storage = storage;
            }
            FromWorker::Sockets { count, v6 } => self.ask_for_sockets(worker, count, v6),
            FromWorker::Media { slot, job, task } => self.start_media(worker, slot, job, task),
            FromWorker::MediaCancel { job } => self.cancel_media(worker, job),
        }
        None
    }
}

impl Running {
    fn can_be_asked(&self) -> bool {
        self.ready && !self.stats_asked && self.dying.is_none()
    }
}

#[cfg(test)]
mod tests;
