// SPDX-License-Identifier: Apache-2.0
//! Carries out the controller's commands: packages, containers, filters, the store.
//!
//! What takes long is done on threads of its own and comes back as an event; everything else is done at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::IpNet;
use netserv_container::{CompileLimits, ControlChannel, Launcher, Process};
use netserv_dataplane::FilterTable;
use netserv_model::command::{Command, Event as ControllerEvent, InstalledRecord, JobId, Load, ModuleSlot, RequestId};
use netserv_model::manifest::Manifest;
use netserv_model::policy::ContainerLimits;
use netserv_model::request::NodeReport;
use netserv_model::trace::TraceRequest;
use netserv_model::{Digest, DropReason, ModuleRef, PublicKey, Refusal, RefusalKind, UserId};
use netserv_repository::{FetchLimits, Repository};
use netserv_wire::container::frames::{FromWorker, LogLevel, ToWorker};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use crate::config::Config;
use crate::control_loop::{Counted, Event, Place};
use crate::filter_changes::FilterChanges;
use crate::packet_counters::PacketTotals;
use crate::packet_loop::{PacketCommand, Rule, TraceId};
use crate::packet_port::PacketPort;
use crate::readable::readable;
use crate::store::Store;
use crate::trace::{Feed, TraceRefusal, Traces};

/// How long a worker may take until it says that it is ready.
const READY_WAIT: Duration = Duration::from_secs(10);
/// How long the kernel may take to end a container that was killed.
const EXIT_WAIT: Duration = Duration::from_millis(200);
/// Frames taken from one worker at a time, before other events have their turn.
const FRAMES_BATCH: usize = 256;

/// Packages whose code can be found without asking the store again; when there are more, those not in use are forgotten
/// and a new SETUP fetches them from the store.
const CODE_PATHS_MAX: usize = 4096;

/// A container's socket, process or deadline wants a look.
pub struct ContainerEvent {
    /// The container's user.
    pub user: UserId,
    /// Which of the user's containers, since they follow each other.
    pub generation: u64,
    /// It had its time to get ready.
    pub overdue: bool,
}

/// A package that is in the store, with its code compiled.
pub struct Fetched {
    digest: Digest,
    code: PathBuf,
    manifest: Box<Manifest>,
}

/// A line that a container wrote for the log.
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
    repository: Arc<Repository>,
    fetch_limits: FetchLimits,
    engine: String,
    launcher: Option<Arc<Launcher>>,
    store: Store,
    filters: Arc<dyn FilterTable>,
    packets: PacketPort,
    events: mpsc::Sender<Event>,
    containers: BTreeMap<UserId, Running>,
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
    /// What tells one version of the worker from another; part of the names of compiled code.
    pub engine: String,
    /// Makes containers; nothing if this machine cannot have any.
    pub launcher: Option<Launcher>,
    /// The store of installed modules.
    pub store: Store,
    /// Checked packages.
    pub repository: Arc<Repository>,
    /// What a download may take.
    pub fetch_limits: FetchLimits,
    /// The driver's filters.
    pub filters: Arc<dyn FilterTable>,
    /// The way to the packet thread.
    pub packets: PacketPort,
    /// The way back to the control loop.
    pub events: mpsc::Sender<Event>,
}

struct Running {
    control: ControlChannel,
    process: Process,
    generation: u64,
    ready: bool,
    stats_asked: bool,
    pinned: BTreeMap<ModuleSlot, Digest>,
}

impl Executor {
    /// Puts the executor together.
    pub fn new(parts: ExecutorParts, config: &Config) -> Executor {
        let ExecutorParts { config_path, engine, launcher, store, repository, fetch_limits, filters, packets, events } =
            parts;
        let mut executor = Executor {
            config_path,
            repository,
            fetch_limits,
            launcher: launcher.map(Arc::new),
            engine,
            store,
            filters,
            packets,
            events,
            containers: BTreeMap::new(),
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
    pub fn stored(&self) -> Result<Vec<InstalledRecord>> {
        self.store.all()
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
                if let Err(error) = self.store.put(&record) {
                    tracing::error!(%error, module = %record.module, "a module will not survive a restart");
                }
            }
            Command::Forget { user, module } => {
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
        for running in self.containers.values_mut().filter(|running| running.ready && !running.stats_asked) {
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
            if event.overdue && !running.ready {
                let detail = format!("the worker was not ready within {} s", READY_WAIT.as_secs());
                self.kill_container(&event.user, Refusal::new(RefusalKind::NodeFailed, detail), None);
                return lines;
            }
            match running.control.receive() {
                Ok(Some(frame)) => lines.extend(self.take_frame(&event.user, frame)),
                Ok(None) => match running.process.exit().map(|exit| exit.refusal()) {
                    Some(refusal) => self.container_died(&event.user, refusal, None),
                    None => return lines,
                },
                Err(error) => {
                    running.process.kill();
                    let refusal = match running.process.wait(EXIT_WAIT) {
                        Some(exit) => exit.refusal(),
                        None => Refusal::new(RefusalKind::NodeFailed, format!("the control channel broke: {error}")),
                    };
                    self.container_died(&event.user, refusal, None);
                }
            }
        }
        // There may be more; a full queue of events means that another look comes anyway.
        let again = ContainerEvent { user: event.user.clone(), ..*event };
        let _ = self.events.try_send(Event::Container(again));
        lines
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
        self.launcher = None;
    }

    fn fetch(&mut self, job: JobId, url: String, digest: Digest, keys: Vec<PublicKey>) {
        let Some(launcher) = self.launcher.clone() else {
            let refusal = no_containers();
            return self.happened.push_back(ControllerEvent::FetchFailed { job, refusal });
        };
        let (repository, limits, engine) = (self.repository.clone(), self.fetch_limits, self.engine.clone());
        let events = self.events.clone();
        // The runtime bounds its blocking threads, the controller its jobs.
        tokio::task::spawn_blocking(move || {
            let fetched = repository.fetch(&url, digest, &keys, &limits).and_then(|stored| {
                let code = code_path(&stored.wasm_path, &engine);
                if !code.exists() {
                    launcher.compile(&stored.wasm_path, &code, &CompileLimits::default())?;
                }
                Ok(Fetched { digest, code, manifest: Box::new(stored.manifest) })
            });
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
                    let used: BTreeSet<Digest> = running.copied().collect();
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
        if let Err(error) = self.try_start_container(user, limits) {
            let detail = format!("the container could not be started: {error:#}");
            let refusal = Refusal::new(RefusalKind::NodeFailed, detail);
            self.happened.push_back(ControllerEvent::ContainerDied { user: user.clone(), refusal, culprit: None });
        }
    }

    fn try_start_container(&mut self, user: &UserId, limits: &ContainerLimits) -> Result<()> {
        let launcher = self.launcher.as_ref().context("this machine cannot run containers (`netservd doctor`)")?;
        let (control, ring, process) = launcher.launch(user, limits)?.split();
        let generation = self.next_generation;
        self.next_generation += 1;
        let event = |overdue| ContainerEvent { user: user.clone(), generation, overdue };
        for fd in [readable(&control)?, readable(&process)?] {
            tokio::spawn(watch(fd, event(false), self.events.clone()));
        }
        tokio::spawn(remind(event(true), self.events.clone()));
        let prefixes = self.prefixes.get(user).cloned().unwrap_or_default();
        let (owner, ring) = (user.clone(), Box::new(ring));
        self.packets.send(PacketCommand::AddContainer { user: owner, generation, ring, prefixes });
        let running =
            Running { control, process, generation, ready: false, stats_asked: false, pinned: BTreeMap::new() };
        self.containers.insert(user.clone(), running);
        Ok(())
    }

    fn load(&mut self, load: Load) {
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
        let path = self.code.get(&digest).context("the package was not fetched")?;
        let code = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let call = Duration::from_millis(limits.call_ms.into());
        self.modules.insert((user.clone(), slot), module.clone());
        let frame = ToWorker::Load { slot, module, properties, limits, state_schema };
        // Before the module starts, which is its first call.
        self.packets.send(PacketCommand::SetCallTime { user, slot, call });
        running.control.send(&frame, Some(code.as_fd()))?;
        self.repository.pin(digest);
        running.pinned.insert(slot, digest);
        Ok(())
    }

    fn unload(&mut self, user: &UserId, slot: ModuleSlot) {
        let Some(running) = self.containers.get_mut(user) else { return };
        if let Some(digest) = running.pinned.remove(&slot) {
            self.repository.unpin(digest);
        }
        self.stats.remove(&(user.clone(), slot));
        self.packets.send(PacketCommand::SetLoaded { user: user.clone(), slot, loaded: false });
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
            FromWorker::Log { slot, level, text } => return Some(LogEntry { user: user.clone(), slot, level, text }),
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
        let Some(running) = self.containers.remove(user) else { return false };
        // Before its process ends, so that its packets get their verdict at once.
        self.packets.send(PacketCommand::RemoveContainer { user: user.clone(), reason });
        for digest in running.pinned.into_values() {
            self.repository.unpin(digest);
        }
        self.stats.retain(|(owner, _), _| owner != user);
        true
    }
}

/// Compiled code lies beside the module that it was made from, and leaves the store with it.
fn code_path(wasm: &Path, engine: &str) -> PathBuf {
    wasm.with_extension(format!("{engine}.cwasm"))
}

fn no_containers() -> Refusal {
    Refusal::new(RefusalKind::NodeFailed, "this machine cannot run containers (`netservd doctor` says why)")
}

/// Says whenever a descriptor becomes readable, until its other end is closed.
async fn watch(fd: AsyncFd<OwnedFd>, event: ContainerEvent, events: mpsc::Sender<Event>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        // The runtime never clears this state, so waiting on would be no waiting.
        let closed = ready.ready().is_read_closed();
        ready.clear_ready();
        let event = ContainerEvent { user: event.user.clone(), ..event };
        if events.send(Event::Container(event)).await.is_err() || closed {
            return;
        }
    }
}

async fn remind(event: ContainerEvent, events: mpsc::Sender<Event>) {
    tokio::time::sleep(READY_WAIT).await;
    // The control loop may have ended.
    let _ = events.send(Event::Container(event)).await;
}
