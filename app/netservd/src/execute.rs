// SPDX-License-Identifier: Apache-2.0
//! Carries out the controller's commands: packages, containers, filters, the store.
//!
//! What takes long is done on threads of its own and comes back as an event; everything else is done at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ipnet::IpNet;
use netserv_container::{Container, ControlChannel, ControlError, Process};
use netserv_dataplane::FilterTable;
use netserv_model::api::DeviceInfo;
use netserv_model::command::{Command, Event as ControllerEvent, InstalledRecord, JobId, Load, ModuleSlot, RequestId};
use netserv_model::policy::ContainerLimits;
use netserv_model::request::NodeReport;
use netserv_model::trace::TraceRequest;
use netserv_model::{Digest, DropReason, ModuleName, ModuleRef, PublicKey, Refusal, RefusalKind, UserId};
use netserv_wire::container::frames::{FromWorker, LogLevel, ToWorker};
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};

use crate::config::Config;
use crate::control_loop::{Counted, Event, Place};
use crate::filter_changes::FilterChanges;
use crate::launcher::{Launch, Launched};
use crate::limits::{CODE_PATHS_MAX, FRAMES_BATCH};
use crate::log_budget::LogBudget;
use crate::packages::{Fetched, Packages};
use crate::packet_counters::PacketTotals;
use crate::packet_loop::{PacketCommand, Rule, TraceId};
use crate::packet_port::PacketPort;
use crate::readable::readable;
use crate::store::Store;
use crate::trace::{Feed, TraceRefusal, Traces};

/// How long it may take to learn how a container ended that was killed.
const EXIT_WAIT: Duration = Duration::from_millis(500);

/// A container's socket, process or deadline wants a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerEvent {
    /// The container's user.
    pub user: UserId,
    /// Which of the user's containers, since they follow each other.
    pub generation: u64,
    /// It had its time to end.
    pub overdue: bool,
}

/// A line that a container wrote for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The container's user.
    pub user: UserId,
    /// The module that wrote it; nothing if the worker did.
    pub slot: Option<ModuleSlot>,
    /// How important it is.
    pub level: LogLevel,
    /// The text.
    pub text: String,
}

/// Carries out commands.
pub struct Executor {
    config_path: Option<PathBuf>,
    /// Nothing on a host, which runs no modules.
    parts: Option<ModuleParts>,
    store: Store,
    filters: Arc<dyn FilterTable>,
    packets: PacketPort,
    events: mpsc::Sender<Event>,
    /// Containers that are being started, each with its generation.
    starting: BTreeMap<UserId, u64>,
    containers: BTreeMap<UserId, Running>,
    /// Containers that have more to say than was listened to, each once, in the order of their turns.
    unheard: VecDeque<ContainerEvent>,
    /// Packages of installed modules, which must not leave the store.
    installed: BTreeMap<(UserId, ModuleName), Digest>,
    prefixes: BTreeMap<UserId, Vec<IpNet>>,
    stats: BTreeMap<Place, Counted>,
    /// What was last loaded where.
    modules: BTreeMap<Place, ModuleRef>,
    code: BTreeMap<Digest, PathBuf>,
    happened: VecDeque<ControllerEvent>,
    reports: VecDeque<(RequestId, NodeReport)>,
    changes: FilterChanges,
    traces: Traces,
    next_generation: u64,
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
    /// The way to the thread that starts containers.
    pub launches: Sender<Launch>,
}

struct Running {
    control: ControlChannel,
    process: Process,
    generation: u64,
    ready: bool,
    stats_asked: bool,
    pinned: BTreeMap<ModuleSlot, Digest>,
    /// It is being killed, for this reason unless its exit tells a better one.
    dying: Option<Refusal>,
    log: LogBudget,
}

impl Executor {
    /// Puts the executor together.
    pub fn new(parts: ExecutorParts, config: &Config) -> Executor {
        let ExecutorParts { config_path, modules, store, filters, packets, events } = parts;
        let mut executor = Executor {
            config_path,
            parts: modules,
            store,
            filters,
            packets,
            events,
            starting: BTreeMap::new(),
            containers: BTreeMap::new(),
            unheard: VecDeque::new(),
            installed: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            stats: BTreeMap::new(),
            modules: BTreeMap::new(),
            code: BTreeMap::new(),
            happened: VecDeque::new(),
            reports: VecDeque::new(),
            changes: FilterChanges::default(),
            traces: Traces::default(),
            next_generation: 0,
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
        self.prefixes = config.users.iter().map(|user| (user.name.clone(), user.prefixes.clone())).collect();
        for user in self.containers.keys() {
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

    /// Carries out one command.
    pub fn carry_out(&mut self, command: Command) {
        let filter_command = matches!(command, Command::InstallFilter { .. } | Command::RemoveFilter { .. });
        if !filter_command {
            self.finish_commands();
        }
        match command {
            Command::Fetch { job, url, digest, keys } => self.fetch(job, url, digest, keys),
            Command::StartContainer { user, limits } => self.start_container(&user, &limits),
            Command::StopContainer { user } => {
                self.forget_container(&user, DropReason::ContainerGone);
            }
            Command::Load(load) => self.load(load),
            Command::Unload { user, slot } => self.unload(&user, slot),
            Command::InstallFilter { id, user, slot, filter, on_failure } => {
                let module = self.modules.get(&(user.clone(), slot)).cloned();
                self.changes.install(id, Rule { user, slot, module, filter, on_failure });
            }
            Command::RemoveFilter { id } => self.changes.remove(id),
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
    pub fn stats(&self, user: &UserId, slot: ModuleSlot) -> Option<&Counted> {
        self.stats.get(&(user.clone(), slot))
    }

    /// Asks every container what its modules counted.
    pub fn ask_stats(&mut self) {
        for running in self.containers.values_mut().filter(|running| running.can_be_asked()) {
            running.stats_asked = running.control.send(&ToWorker::Stats, None).is_ok();
        }
    }

    /// Returns whether a container still has to say what its modules counted.
    pub fn stats_missing(&self) -> bool {
        self.containers.values().any(|running| running.stats_asked)
    }

    /// Looks at a container whose socket, process or deadline changed, and returns what it wrote for the log.
    pub fn container_changed(&mut self, event: &ContainerEvent) -> Vec<LogEntry> {
        let mut lines = Vec::new();
        for _ in 0..FRAMES_BATCH {
            let Some(running) = self.containers.get_mut(&event.user) else { return lines };
            if running.generation != event.generation {
                return lines;
            }
            if running.dying.is_some() {
                self.see_it_die(event);
                return lines;
            }
            match running.control.receive() {
                Ok(Some(frame)) => lines.extend(self.take_frame(&event.user, frame)),
                Ok(None) => match running.process.exit().map(|exit| exit.refusal()) {
                    Some(refusal) => self.container_died(&event.user, refusal, None),
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

    /// Returns the container whose turn it is to say more.
    pub fn poll_unheard(&mut self) -> Option<ContainerEvent> {
        self.unheard.pop_front()
    }

    /// Returns whether a container has more to say.
    pub fn has_unheard(&self) -> bool {
        !self.unheard.is_empty()
    }

    /// Kills a container whose control channel ended; how it ended is known a little later.
    fn let_die(&mut self, event: &ContainerEvent, error: &ControlError) {
        let Some(running) = self.containers.get_mut(&event.user) else { return };
        running.process.kill();
        let detail = format!("the control channel broke: {error}");
        running.dying = Some(Refusal::new(RefusalKind::NodeFailed, detail));
        running.stats_asked = false;
        let (user, reason) = (event.user.clone(), DropReason::ContainerGone);
        self.packets.send(PacketCommand::RemoveContainer { user, reason });
        tokio::spawn(remind(ContainerEvent { overdue: true, ..event.clone() }, self.events.clone()));
        self.see_it_die(event);
    }

    fn see_it_die(&mut self, event: &ContainerEvent) {
        let Some(running) = self.containers.get_mut(&event.user) else { return };
        let refusal = match running.process.exit() {
            Some(exit) => Some(exit.refusal()),
            None if event.overdue => running.dying.take(),
            None => None,
        };
        if let Some(refusal) = refusal {
            self.container_died(&event.user, refusal, None);
        }
    }

    /// Kills a container that broke the rules, if it is still this one, and tells the controller.
    pub fn condemn(&mut self, user: &UserId, generation: u64, refusal: Refusal, culprit: Option<ModuleSlot>) {
        // The packet loop's report may have been under way while the container was replaced.
        if self.containers.get(user).is_some_and(|running| running.generation == generation) {
            self.kill_container(user, refusal, culprit);
        }
    }

    fn kill_container(&mut self, user: &UserId, refusal: Refusal, culprit: Option<ModuleSlot>) {
        tracing::warn!(%user, %refusal, ?culprit, "a container is killed");
        self.container_died(user, refusal, culprit);
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
        self.containers.clear();
        if let Some(parts) = self.parts.take() {
            parts.packages.keeper.end();
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
            Ok(Fetched { digest, code, manifest }) => {
                if self.code.len() >= CODE_PATHS_MAX {
                    let running = self.containers.values().flat_map(|running| running.pinned.values());
                    let used: BTreeSet<Digest> = running.chain(self.installed.values()).copied().collect();
                    self.code.retain(|digest, _| used.contains(digest));
                }
                self.code.insert(digest, code);
                ControllerEvent::Fetched { job, manifest }
            }
            Err(refusal) => ControllerEvent::FetchFailed { job, refusal },
        });
    }

    fn start_container(&mut self, user: &UserId, limits: &ContainerLimits) {
        self.forget_container(user, DropReason::ContainerGone);
        let generation = self.next_generation;
        self.next_generation += 1;
        self.starting.insert(user.clone(), generation);
        let launch = Launch { user: user.clone(), generation, limits: *limits };
        let sent = self.parts.as_ref().is_some_and(|parts| parts.launches.send(launch).is_ok());
        if !sent {
            let refusal = Refusal::new(RefusalKind::NodeFailed, "nobody starts containers; restart netservd");
            self.launched(Launched { user: user.clone(), generation, result: Err(refusal) });
        }
    }

    /// Takes a container that was started, unless it is not wanted any more.
    pub fn launched(&mut self, launched: Launched) {
        let Launched { user, generation, result } = launched;
        if self.starting.get(&user) != Some(&generation) {
            // Dropping a container ends it.
            return;
        }
        self.starting.remove(&user);
        let adopted = result.and_then(|container| {
            self.adopt(&user, generation, container).map_err(|error| {
                let detail = format!("the container cannot be watched: {error}");
                Refusal::new(RefusalKind::NodeFailed, detail)
            })
        });
        if let Err(refusal) = adopted {
            tracing::warn!(%user, %refusal, "a container could not be started");
            self.happened.push_back(ControllerEvent::ContainerDied { user, refusal, culprit: None });
        }
    }

    fn adopt(&mut self, user: &UserId, generation: u64, container: Container) -> std::io::Result<()> {
        let (control, ring, process) = container.split();
        let event = ContainerEvent { user: user.clone(), generation, overdue: false };
        for fd in [readable(&control)?, readable(&process)?] {
            tokio::spawn(watch(fd, event.clone(), self.events.clone()));
        }
        let prefixes = self.prefixes.get(user).cloned().unwrap_or_default();
        let (owner, ring) = (user.clone(), Box::new(ring));
        self.packets.send(PacketCommand::AddContainer { user: owner, generation, ring, prefixes });
        let running = Running {
            control,
            process,
            generation,
            ready: false,
            stats_asked: false,
            pinned: BTreeMap::new(),
            dying: None,
            log: LogBudget::default(),
        };
        self.containers.insert(user.clone(), running);
        Ok(())
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

    fn load(&mut self, load: Load) {
        // Its death will be told, which settles this too.
        if self.containers.get(&load.user).is_some_and(|running| running.dying.is_some()) {
            return;
        }
        let (user, slot) = (load.user.clone(), load.slot);
        if let Err(error) = self.try_load(load) {
            let detail = format!("the module could not be given to its container: {error:#}");
            let refusal = Refusal::new(RefusalKind::NodeFailed, detail);
            self.happened.push_back(ControllerEvent::ModuleFailed { user, slot, refusal });
        }
    }

    fn try_load(&mut self, load: Load) -> Result<()> {
        let Load { user, slot, module, digest, properties, limits, state_schema } = load;
        let running = self.containers.get_mut(&user).context("there is no container")?;
        let parts = self.parts.as_ref().context("this machine runs no modules")?;
        let path = self.code.get(&digest).context("the package was not fetched")?;
        let code = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let call = Duration::from_millis(limits.call_ms.into());
        self.modules.insert((user.clone(), slot), module.clone());
        let frame = ToWorker::Load { slot, module, properties, limits, state_schema };
        // Before the module starts, which is its first call.
        self.packets.send(PacketCommand::SetCallTime { user, slot, call });
        running.control.send(&frame, Some(code.as_fd()))?;
        parts.packages.repository.pin(digest);
        if let Some(before) = running.pinned.insert(slot, digest) {
            parts.packages.repository.unpin(before);
        }
        Ok(())
    }

    fn unload(&mut self, user: &UserId, slot: ModuleSlot) {
        let Some(running) = self.containers.get_mut(user) else { return };
        if let (Some(digest), Some(parts)) = (running.pinned.remove(&slot), &self.parts) {
            parts.packages.repository.unpin(digest);
        }
        self.stats.remove(&(user.clone(), slot));
        self.packets.send(PacketCommand::SetLoaded { user: user.clone(), slot, loaded: false });
        if running.dying.is_some() {
            return;
        }
        if let Err(error) = running.control.send(&ToWorker::Unload { slot }, None) {
            let detail = format!("the worker does not take frames: {error}");
            self.kill_container(user, Refusal::new(RefusalKind::NodeFailed, detail), None);
        }
    }

    fn take_frame(&mut self, user: &UserId, frame: FromWorker) -> Option<LogEntry> {
        let running = self.containers.get_mut(user)?;
        match frame {
            FromWorker::Ready { abi, engine } => {
                tracing::debug!(%user, abi, engine, "container ready");
                running.ready = true;
                self.happened.push_back(ControllerEvent::ContainerReady { user: user.clone() });
            }
            FromWorker::Loaded { slot } => {
                let loaded = running.pinned.contains_key(&slot);
                self.packets.send(PacketCommand::SetLoaded { user: user.clone(), slot, loaded });
                self.happened.push_back(ControllerEvent::Loaded { user: user.clone(), slot });
            }
            FromWorker::Failed { slot, refusal } => {
                // Its text is the worker's, so it is made one line again here.
                let refusal = Refusal::new(refusal.kind, refusal.detail);
                self.packets.send(PacketCommand::SetLoaded { user: user.clone(), slot, loaded: false });
                self.happened.push_back(ControllerEvent::ModuleFailed { user: user.clone(), slot, refusal });
            }
            FromWorker::Log { slot, level, text } => {
                let entry = LogEntry { user: user.clone(), slot, level, text };
                return running.log.spend(Instant::now(), entry);
            }
            FromWorker::Stats { slot, packets, counters } => {
                if running.pinned.contains_key(&slot) {
                    self.stats.insert((user.clone(), slot), (packets, counters));
                }
            }
            FromWorker::StatsDone => running.stats_asked = false,
        }
        None
    }

    fn container_died(&mut self, user: &UserId, refusal: Refusal, culprit: Option<ModuleSlot>) {
        let reason = if refusal.kind == RefusalKind::Stalled { DropReason::Stalled } else { DropReason::ContainerGone };
        if self.forget_container(user, reason) {
            self.happened.push_back(ControllerEvent::ContainerDied { user: user.clone(), refusal, culprit });
        }
    }

    /// Ends a container and forgets it; returns whether there was one.
    fn forget_container(&mut self, user: &UserId, reason: DropReason) -> bool {
        self.starting.remove(user);
        let Some(running) = self.containers.remove(user) else { return false };
        // Before its process ends, so that its packets get their verdict at once.
        self.packets.send(PacketCommand::RemoveContainer { user: user.clone(), reason });
        if let Some(parts) = &self.parts {
            running.pinned.values().for_each(|digest| parts.packages.repository.unpin(*digest));
        }
        self.stats.retain(|(owner, _), _| owner != user);
        true
    }
}

impl Running {
    fn can_be_asked(&self) -> bool {
        self.ready && !self.stats_asked && self.dying.is_none()
    }
}

/// Says whenever a descriptor becomes readable, until its other end is closed.
async fn watch(fd: AsyncFd<OwnedFd>, event: ContainerEvent, events: mpsc::Sender<Event>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        // The runtime never clears this state, so waiting on would be no waiting.
        let closed = ready.ready().is_read_closed();
        ready.clear_ready();
        if events.send(Event::Container(event.clone())).await.is_err() || closed {
            return;
        }
    }
}

async fn remind(event: ContainerEvent, events: mpsc::Sender<Event>) {
    tokio::time::sleep(EXIT_WAIT).await;
    // The control loop may have ended.
    let _ = events.send(Event::Container(event)).await;
}

#[cfg(test)]
mod tests;
