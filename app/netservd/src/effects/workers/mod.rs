// SPDX-License-Identifier: Apache-2.0
//! The workers of all users: started, told, heard and ended on one thread with a runtime of its own.
//!
//! Starts of containers block, so they are done on a thread beside it ([`launches`]). What a worker wants of its user's
//! network goes out as a [`Wish`].

pub mod ending;
mod exports;
pub mod launches;
mod life;
mod load;
pub mod log_budget;
mod measure;
mod media;
mod meters;
pub mod outbox;
mod tells;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use anyhow::{Context as _, Result};
use ipnet::IpNet;
use netserv_container::{ControlError, Process};
use netserv_model::control::ControlMessage;
use netserv_model::effect::{EffectId, ModuleExport, ModuleSlot, News, WorkerNews};
use netserv_model::node_info::NodeInfo;
use netserv_model::policy::{ContainerLimits, Permits};
use netserv_model::usage::NetworkMeter;
use netserv_model::{Digest, Flavour, ModuleRef, Refusal, RefusalKind, UserId, WorkerId};
use netserv_packet_loop::budget::SendLimits;
use netserv_packet_loop::thread::PacketSender;
use netserv_packet_loop::{PacketCommand, PacketEvent};
use netserv_repository::Repository;
use netserv_wire::container::frames::{FromWorker, StorageFailures, ToWorker};
use tokio::sync::{mpsc, oneshot};

use ending::Ending;
use exports::Exports;
use launches::Launch;
use log_budget::{LogBudget, LogEntry};
use measure::Measuring;
use meters::Metered;
use outbox::Outbox;
use tells::{NotifyBudget, Tells};

use super::ticket::Ticket;
use crate::config::blocks::Blocks;
use crate::event::{ContainerEvent, Event, SocketWish, UserNetwork, Wish, WorkerEvent};
use crate::limits::FRAMES_BATCH;
use crate::logs::Logs;
use crate::machine::keeper::Keeper;
use crate::metrics::gauges::{Counted, WorkerSlot};

pub use load::{LoadFiles, Loading};

/// What the thread for workers is to do. Those with a ticket are effects, of which each user has one under way.
pub enum WorkersJob {
    /// Start a worker in its user's network.
    Start {
        /// The worker.
        worker: WorkerId,
        /// What the user's container may use as a whole.
        limits: ContainerLimits,
        /// What the user's containers are held to.
        permits: Box<Permits>,
        /// The network of the user's container, or why there is none; nothing for a user who is permitted nothing.
        network: Result<Option<UserNetwork>, Refusal>,
        /// Its id is the worker's generation.
        ticket: Ticket,
    },
    /// Have a worker end by itself, and forget it.
    Stop(WorkerId, Ticket),
    /// Load a module.
    Load(Box<Loading>, Ticket),
    /// Unload a module.
    Unload(WorkerId, ModuleSlot, Ticket),
    /// Call a module no more, and let its connections go on.
    Drain(WorkerId, ModuleSlot, bool, Ticket),
    /// Have what was there before a module with a state not be put back any more.
    Confirm(WorkerId, ModuleSlot, Ticket),
    /// Have packets go through modules in this order.
    Order(WorkerId, Vec<ModuleSlot>, Ticket),
    /// Put a message into the inbox of a module.
    Tell(WorkerId, ModuleSlot, ControlMessage, Ticket),
    /// Ask a module for its state, and put that where its user wants it.
    Export(Box<ModuleExport>, Ticket),
    /// Find out what modules counted and how busy the machine is.
    Measure(Ticket),
    /// Read all meters; with those of networks.
    ReadMeters(Vec<NetworkMeter>, Ticket),
    /// Hold a user's containers to this; with what came of that for their network.
    Permit(UserId, Box<Permits>, Result<(), Refusal>, Ticket),
    /// Hold a user's running containers to other limits.
    Limit(UserId, ContainerLimits, Ticket),
    /// End all workers, wait for that, and end.
    End(oneshot::Sender<()>),
}

/// What the thread for workers is made of.
pub struct WorkersParts {
    /// The way to the thread that starts containers.
    pub launches: Sender<launches::Job>,
    /// Ends the launcher, when all workers have ended.
    pub keeper: Arc<Keeper>,
    /// The store of packages, of which those in use stay.
    pub repository: Arc<Repository>,
    /// The way to the packet thread.
    pub packets: PacketSender,
    /// What takes workers' wishes; it must not wait.
    pub wishes: Box<dyn Fn(Wish) + Send>,
    /// The way to the control loop.
    pub news: mpsc::Sender<Event>,
    /// The way back to this thread, for what is watched and reminded of.
    pub events: mpsc::Sender<WorkerEvent>,
    /// The node's log.
    pub logs: Logs,
    /// The directory of what users keep on disk; nothing if nobody may.
    pub stored: Option<PathBuf>,
    /// What modules are told of the node, but for the addresses of their containers.
    pub node: NodeInfo,
}

/// Starts the thread. It ends when `jobs` is closed.
///
/// # Errors
/// The system gives no thread.
pub fn start(
    parts: WorkersParts,
    blocks: &Blocks,
    jobs: mpsc::UnboundedReceiver<WorkersJob>,
    events: mpsc::Receiver<WorkerEvent>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("runtime for workers")?;
    let media = media::Media::new(blocks);
    let thread = std::thread::Builder::new().name("workers".to_owned());
    let run = move || runtime.block_on(async move { Workers::new(parts, media).run(jobs, events).await });
    thread.spawn(run).context("thread for workers")?;
    Ok(())
}

/// The workers of all users.
pub struct Workers {
    parts: WorkersParts,
    /// Workers that are being started.
    starting: BTreeMap<WorkerId, Starting>,
    workers: BTreeMap<WorkerId, Running>,
    /// Workers that were told to end, by their generation.
    ending: BTreeMap<u64, Ending>,
    /// Workers that have more to say than was listened to, each once, in the order of their turns.
    unheard: VecDeque<ContainerEvent>,
    /// What users' containers have as networks.
    networks: BTreeMap<UserId, UserNetwork>,
    /// What the containers of each user were last held to.
    permits: BTreeMap<UserId, Permits>,
    stats: BTreeMap<WorkerSlot, Counted>,
    /// What was last loaded where.
    modules: BTreeMap<WorkerSlot, ModuleRef>,
    media: media::Media,
    measuring: Option<Measuring>,
    metered: Metered,
    happened: VecDeque<News>,
}

struct Starting {
    generation: u64,
    limits: ContainerLimits,
    network: Option<UserNetwork>,
    /// Nobody was asked for it yet: the user's other worker is being started, whose container it is to join, or the
    /// last one of its kind has not ended.
    waits: bool,
}

struct Running {
    control: Outbox,
    /// When to send again what waits.
    send_again: Option<Instant>,
    process: Process,
    /// Tells in which module the worker says that it is, also when it is dead; none if its threads are in several.
    inside: Box<dyn Fn() -> Option<ModuleSlot> + Send>,
    /// Its first packet thread may be in the real-time class.
    real_time: bool,
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
    /// Messages to its modules.
    tells: Tells,
    notifies: NotifyBudget,
    exports: Exports,
}

/// A worker whose channel ended and that is killed, until it is known how it ended.
struct Dying {
    /// Why, unless its exit tells better.
    refusal: Refusal,
    /// It hung up, as one does that ends. One that wrote what is no frame is believed in nothing.
    hung_up: bool,
}

impl Workers {
    /// Returns that there are none.
    fn new(parts: WorkersParts, media: media::Media) -> Workers {
        Workers {
            parts,
            starting: BTreeMap::new(),
            workers: BTreeMap::new(),
            ending: BTreeMap::new(),
            unheard: VecDeque::new(),
            networks: BTreeMap::new(),
            permits: BTreeMap::new(),
            stats: BTreeMap::new(),
            modules: BTreeMap::new(),
            media,
            measuring: None,
            metered: Metered::default(),
            happened: VecDeque::new(),
        }
    }

    async fn run(mut self, mut jobs: mpsc::UnboundedReceiver<WorkersJob>, mut events: mpsc::Receiver<WorkerEvent>) {
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(WorkersJob::End(ended)) => {
                        self.let_workers_end();
                        self.parts.keeper.end();
                        // Whoever asked may be gone.
                        let _ = ended.send(());
                        return;
                    }
                    Some(job) => self.carry_out(job),
                    None => return self.let_workers_end(),
                },
                event = events.recv() => match event {
                    Some(event) => self.handle(event),
                    None => return self.let_workers_end(),
                },
                // Other tasks have their turn first.
                () = tokio::task::yield_now(), if !self.unheard.is_empty() => self.hear_one(),
                () = measure::until(self.measuring.as_ref()) => self.end_measuring(),
            }
            while let Some(news) = self.poll_news() {
                if self.parts.news.send(Event::News(news)).await.is_err() {
                    return self.let_workers_end();
                }
            }
        }
    }

    /// Carries out one job.
    pub fn carry_out(&mut self, job: WorkersJob) {
        match job {
            WorkersJob::Start { worker, limits, permits, network, ticket } => {
                self.permit(&worker.user, *permits);
                self.start(&worker, limits, network, ticket);
            }
            WorkersJob::Stop(worker, ticket) => {
                self.let_worker_end(&worker);
                self.ask_for_waiting(&worker.user);
                self.leave_network(&worker.user);
                ticket.done();
            }
            WorkersJob::Load(loading, ticket) => {
                let loaded = self.load(*loading, ticket.id());
                ticket.end(loaded);
            }
            WorkersJob::Unload(worker, slot, ticket) => {
                self.unload(&worker, slot);
                ticket.done();
            }
            WorkersJob::Drain(worker, slot, finish, ticket) => {
                self.drain(&worker, slot, finish);
                ticket.done();
            }
            WorkersJob::Confirm(worker, slot, ticket) => {
                self.send_or_kill(&worker, &ToWorker::Confirm { slot });
                ticket.done();
            }
            WorkersJob::Order(worker, slots, ticket) => {
                self.order(&worker, slots);
                ticket.done();
            }
            WorkersJob::Tell(worker, slot, message, ticket) => self.tell_module(&worker, slot, message, ticket),
            WorkersJob::Export(export, ticket) => self.export(*export, ticket),
            WorkersJob::Measure(ticket) => self.measure(ticket),
            WorkersJob::ReadMeters(networks, ticket) => self.read_meters(networks, ticket),
            WorkersJob::Permit(user, permits, network, ticket) => {
                self.permit(&user, *permits);
                ticket.end(network);
            }
            WorkersJob::Limit(user, limits, ticket) => self.limit(&user, limits, ticket),
            WorkersJob::End(ended) => {
                self.let_workers_end();
                let _ = ended.send(());
            }
        }
    }

    /// Takes one event.
    pub fn handle(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::Container(event) => self.container_changed(&event),
            WorkerEvent::Launched(launched) => self.launched(*launched),
            WorkerEvent::Media(event) => self.media_changed(event),
            WorkerEvent::Sockets(wish, sockets) => self.give_sockets(&wish, &sockets),
            WorkerEvent::Packet(event) => self.packet_event(event),
        }
    }

    /// Returns the next thing that the controller must know.
    pub fn poll_news(&mut self) -> Option<News> {
        self.happened.pop_front()
    }

    /// Has a worker heard whose turn it is.
    pub fn hear_one(&mut self) {
        if let Some(event) = self.unheard.pop_front() {
            self.container_changed(&event);
        }
    }

    /// Holds a user's containers to this, those that run and those that start.
    fn permit(&mut self, user: &UserId, permits: Permits) {
        let before = self.permits.insert(user.clone(), permits.clone()).unwrap_or_default();
        let Permits { prefixes, listen, connect, rate } = permits;
        let (limits, user) = (SendLimits::from(rate), user.clone());
        if limits != before.rate.into() {
            self.parts.packets.send(PacketCommand::SetSendLimits { user: user.clone(), limits });
        }
        if prefixes != before.prefixes {
            let prefixes = self.sources(&user);
            self.parts.packets.send(PacketCommand::SetPrefixes { user: user.clone(), prefixes });
        }
        if (&listen, &connect) != (&before.listen, &before.connect) {
            // A JVM is held to it by the kernel alone.
            self.tell(&WorkerId::new(user, Flavour::Wasm), ToWorker::Permit { connect, listen });
        }
    }

    /// Returns the sources that packets of a user's modules may have beside those of packets that they were shown: the user's
    /// prefixes, and the addresses of the user's container.
    fn sources(&self, user: &UserId) -> Vec<IpNet> {
        let addresses = self.addresses(user).into_iter().map(IpNet::from);
        self.permits(user).prefixes.into_iter().chain(addresses).collect()
    }

    /// Has a user's containers held to other limits, those that run and those that are being started.
    fn limit(&mut self, user: &UserId, limits: ContainerLimits, ticket: Ticket) {
        let starting = self.starting.iter_mut().filter(|(worker, _)| worker.user == *user);
        starting.for_each(|(_, starting)| starting.limits = limits);
        // After the starts that were asked for. If nobody is there, the ticket says so.
        let _ = self.parts.launches.send(launches::Job::Limit(user.clone(), limits, ticket));
    }

    /// Returns what a user's containers are held to.
    fn permits(&self, user: &UserId) -> Permits {
        self.permits.get(user).cloned().unwrap_or_default()
    }

    /// Returns the addresses of a user's container; none without a network.
    fn addresses(&self, user: &UserId) -> Vec<IpAddr> {
        self.networks.get(user).map(|network| network.addresses.clone()).unwrap_or_default()
    }

    fn packet_event(&mut self, event: PacketEvent) {
        match event {
            PacketEvent::Stalled { worker, generation, slot } => {
                let refusal = Refusal::new(RefusalKind::Stalled, "the module did not come to an end in time");
                self.condemn(&worker, generation, refusal, slot);
            }
            PacketEvent::RingBroken { worker, generation, detail } => {
                tracing::warn!(%worker, detail, "a worker broke the rules of its ring");
                let refusal = Refusal::new(RefusalKind::NodeFailed, format!("broke the rules of its ring: {detail}"));
                self.condemn(&worker, generation, refusal, None);
            }
            PacketEvent::DriverFailed { detail } => {
                tracing::error!(detail, "the forwarding plane failed; packets pass unseen until the node is restarted");
            }
        }
    }

    /// Says that nothing of a user's runs, starts or ends any more, if that is so: its network may go.
    fn leave_network(&mut self, user: &UserId) {
        let used = self.workers.keys().chain(self.starting.keys()).any(|worker| worker.user == *user);
        if !used && !self.has_ending(user) && self.networks.remove(user).is_some() {
            (self.parts.wishes)(Wish::Leave(user.clone()));
        }
    }

    /// Takes note that a worker has no listening sockets any more, for a module or for all.
    fn drop_listeners(&self, worker: &WorkerId, slot: Option<ModuleSlot>) {
        if self.networks.contains_key(&worker.user) {
            (self.parts.wishes)(Wish::DropListeners(worker.clone(), slot));
        }
    }

    /// Has sockets made with which a worker can speak for others, none if there can be none.
    ///
    /// Bundles take over nothing, so a Java worker that asks has been taken over itself.
    fn ask_for_sockets(&mut self, worker: &WorkerId, count: u32, v6: bool) {
        let has_network = self.networks.contains_key(&worker.user);
        let Some(running) = self.workers.get_mut(worker) else { return };
        // One that asks twice gets one answer.
        if std::mem::replace(&mut running.sockets_asked[usize::from(v6)], true) {
            return;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let wish = SocketWish { worker: worker.clone(), generation: running.generation, v6, count };
        match worker.flavour == Flavour::Wasm && has_network {
            true => (self.parts.wishes)(Wish::Sockets(wish)),
            false => self.give_sockets(&wish, &[]),
        }
    }

    fn give_sockets(&mut self, wish: &SocketWish, sockets: &[OwnedFd]) {
        let SocketWish { worker, generation, v6, .. } = wish;
        let running = self.workers.get_mut(worker).filter(|running| running.generation == *generation);
        let Some(running) = running else { return };
        running.sockets_asked[usize::from(*v6)] = false;
        let borrowed: Vec<_> = sockets.iter().map(OwnedFd::as_fd).collect();
        let frame = ToWorker::Sockets { v6: *v6 };
        if let Err(ControlError::Full) = running.control.send(&frame, &borrowed) {
            // It asks again once it reads that there are none: nobody keeps sockets for it.
            self.tell(worker, frame);
        }
    }

    fn tell_news(&mut self, worker: &WorkerId, generation: u64, what: WorkerNews) {
        let (worker, generation) = (worker.clone(), EffectId(generation));
        self.happened.push_back(News { worker, generation, what });
    }

    /// Looks at a worker whose socket, process or deadline changed.
    pub fn container_changed(&mut self, event: &ContainerEvent) {
        if self.see_off(event) {
            return;
        }
        self.send_waiting(&event.worker);
        for _ in 0..FRAMES_BATCH {
            let Some(running) = self.workers.get_mut(&event.worker) else { return };
            if running.generation != event.generation {
                return;
            }
            if running.dying.is_some() {
                self.see_it_die(event);
                return;
            }
            match running.control.receive() {
                Ok(Some(frame)) => self.take_frame(&event.worker, frame),
                Ok(None) => match running.process.exit().cloned() {
                    Some(exit) => self.worker_ended(&event.worker, &exit),
                    None => return,
                },
                Err(error) => self.let_die(event, &error),
            }
        }
        // What is there already makes no further event.
        if !self.unheard.contains(event) {
            self.unheard.push_back(event.clone());
        }
    }

    fn unload(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        self.cancel_media_of(worker, Some(slot));
        self.drop_listeners(worker, Some(slot));
        let Some(running) = self.workers.get_mut(worker) else { return };
        if let Some(digest) = running.pinned.remove(&slot) {
            self.parts.repository.unpin(&worker.user, digest);
        }
        running.tells.end(Some(slot));
        running.exports.end(Some(slot));
        self.stats.remove(&(worker.clone(), slot));
        self.metered.end(worker, Some(slot));
        self.parts.packets.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded: false });
        self.send_or_kill(worker, &ToWorker::Unload { slot });
    }

    fn drain(&mut self, worker: &WorkerId, slot: ModuleSlot, finish: bool) {
        if !finish {
            self.cancel_media_of(worker, Some(slot));
        }
        let Some(running) = self.workers.get_mut(worker) else { return };
        running.tells.end(Some(slot));
        running.exports.end(Some(slot));
        self.parts.packets.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded: false });
        self.send_or_kill(worker, &ToWorker::Drain { slot, finish });
    }

    fn send_or_kill(&mut self, worker: &WorkerId, frame: &ToWorker) {
        let Some(running) = self.workers.get_mut(worker).filter(|running| running.dying.is_none()) else { return };
        if let Err(error) = running.control.send(frame, &[]) {
            let detail = format!("the worker does not take frames: {error}");
            self.kill_worker(worker, Refusal::new(RefusalKind::NodeFailed, detail), None);
        }
    }

    fn take_frame(&mut self, worker: &WorkerId, frame: FromWorker) {
        let Some(running) = self.workers.get_mut(worker) else { return };
        let generation = running.generation;
        match frame {
            FromWorker::Ready { abi, engine } => {
                tracing::debug!(%worker, abi, engine, "worker ready");
                running.ready = true;
                let addresses = self.addresses(&worker.user);
                // Before it is told to load anything.
                if !self.parts.node.id.is_empty() {
                    let info = NodeInfo { addresses: addresses.clone(), ..self.parts.node.clone() };
                    self.tell(worker, ToWorker::Node { info });
                }
                self.tell_news(worker, generation, WorkerNews::Ready { addresses });
            }
            FromWorker::Loaded { slot } => {
                let loaded = running.pinned.contains_key(&slot);
                self.parts.packets.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded });
                self.tell_news(worker, generation, WorkerNews::Loaded(slot));
            }
            FromWorker::Drained { slot } => self.tell_news(worker, generation, WorkerNews::Drained(slot)),
            FromWorker::Failed { slot, refusal } => {
                // Its text is the worker's, so it is made one line again here.
                let refusal = refusal.clean();
                self.log_of(worker, LogEntry::of_failure(worker, slot, &refusal));
                self.parts.packets.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded: false });
                self.metered.end(worker, Some(slot));
                if let Some(running) = self.workers.get_mut(worker) {
                    running.exports.end(Some(slot));
                }
                self.tell_news(worker, generation, WorkerNews::Failed { slot, refusal });
                self.drop_listeners(worker, Some(slot));
            }
            FromWorker::Log { slot, level, text } => {
                self.log_of(worker, LogEntry { worker: worker.clone(), slot, level, text });
            }
            FromWorker::Stats { slot, packets, counters, server } => {
                if running.pinned.contains_key(&slot) {
                    self.stats.insert((worker.clone(), slot), Counted { packets, counters, server });
                }
            }
            FromWorker::StatsDone { storage } => {
                running.stats_asked = false;
                running.storage = storage;
                self.end_measuring_if_complete();
            }
            FromWorker::Sockets { count, v6 } => self.ask_for_sockets(worker, count, v6),
            FromWorker::Media { slot, job, task } => self.start_media(worker, slot, job, task),
            FromWorker::MediaCancel { job } => self.cancel_media(worker, job),
            FromWorker::Exported { slot, refusal } => self.exported(worker, slot, refusal),
            FromWorker::Told { slot, seq, verdict } => self.told(worker, slot, seq, verdict),
            FromWorker::Notify { slot, message } => self.notified(worker, slot, message),
        }
    }

    /// Writes a line of a worker's, if its container may write one more.
    fn log_of(&mut self, worker: &WorkerId, entry: LogEntry) {
        let Some(running) = self.workers.get_mut(worker) else { return };
        if let Some(entry) = running.log.spend(Instant::now(), entry) {
            self.log(&entry);
        }
    }

    fn log(&self, entry: &LogEntry) {
        let user = &entry.worker.user;
        let module = entry.slot.and_then(|slot| self.modules.get(&(entry.worker.clone(), slot)));
        let source = module.map_or_else(|| user.to_string(), |module| format!("{user}/{}", module.name));
        self.parts.logs.push(entry.level.as_str(), &source, &entry.text);
    }
}

impl Running {
    fn can_be_asked(&self) -> bool {
        self.ready && !self.stats_asked && self.dying.is_none()
    }
}

#[cfg(test)]
mod tests;
