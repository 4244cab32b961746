// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker serve`: the loop inside a service container.
//!
//! While a module is the only one of its container, the ring's slots are mapped into its memory and packets are not
//! copied. With others beside it, each has packets copied to it: what one module writes over a packet that it passes is
//! not for the next to see, nor are packets that only the others see.
//!
//! One thread does all of this. Only while every module of the container is parallel, each further lane of the node has a
//! packet thread ([`lane_threads`]), which is stopped whenever something about the modules changes.

mod ends;
mod lane_threads;
mod moves;
mod parts;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use netserv_model::control::ControlMessage;
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::MODULES_PER_CONTAINER_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_model::node_info::NodeInfo;
use netserv_model::request::PacketCounts;
use netserv_model::{Instant, ModuleName, Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, LogLevel, StorageFailures, TellVerdict, ToWorker};
use netserv_worker_base::error::ServeError;
use netserv_worker_base::link::ABI;
use netserv_worker_base::link::birth::Birth;
use netserv_worker_base::link::control::{Control, Next, Received};
use netserv_worker_base::link::lanes::Lanes;
use netserv_worker_base::link::ring_memory::RingMemory;
use netserv_worker_base::shared::channel::Channels;
use netserv_worker_base::shared::control::ControlPort;
use netserv_worker_base::shared::kv::KvStores;
use netserv_worker_base::shared::messages::Exchanges;
use netserv_worker_base::shared::moves::{Moves, Owner};
use netserv_worker_base::storage::cache::{CacheHandle, CacheSource};
use netserv_worker_base::storage::limits::KV_CLOSE_TIME_MAX;
use netserv_worker_base::storage::{CACHE_FILE, KV_FILE, StoreFile};
use netserv_worker_base::wakeup::Wakeup;
use netserv_worker_base::{failure, limits, media, sys};
use netserv_worker_packet::chain::{Chain, Surroundings, inject_all};
use netserv_worker_packet::engine::{ENGINE_NAME, Runtime};
use netserv_worker_packet::host::{Clock, Entropy, Host};
use netserv_worker_packet::instance::Instance;
use netserv_worker_server::module::{CoderMemory, HitMemory, Shared};
use rustix::event::{PollFd, PollFlags};

use lane_threads::LaneThreads;
use parts::{News, PacketPart, Parts, Servers, Step};
use rounds::{Failure, Rounds, last_lines};

/// How packets get to modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In the ring's own slots where that can be, else as copies.
    Mapped,
    /// As copies, for comparison.
    Copied,
}

/// Runs modules until the node says that it is enough, or is gone. What outlives it is in the files of `store`. The
/// container has `memory_bytes`.
///
/// # Errors
/// [`ServeError`] if the process was not started as the worker of a container, or its node breaks the rules.
pub fn serve(delivery: Delivery, store: &Path, memory_bytes: u64) -> Result<(), ServeError> {
    let Birth { control, memory, wake_worker, wake_host } = Birth::take()?;
    let runtime =
        Runtime::without_compiler().map_err(|error| ServeError::Engine("the Wasm engine", error.to_string()))?;
    let wake = Arc::new(Wakeup::new().map_err(|error| ServeError::Io("eventfd", error))?);
    let waker = Arc::clone(&wake);
    media::desk().open(move || waker.raise());
    let mut worker = Worker {
        rounds: Rounds::new(Lanes::new(memory.words(), wake_worker, wake_host)?, Chain::default()),
        control,
        memory,
        memory_bytes,
        delivery,
        runtime,
        lane_threads: LaneThreads::new(Arc::clone(&wake)),
        wakeups: Vec::new(),
        kv: KvStores::in_file(StoreFile::open(&store.join(KV_FILE))),
        exchanges: Exchanges::new(Arc::clone(&wake)),
        channels: Channels::new(memory_bytes),
        coder_memory: CoderMemory::of(memory_bytes),
        hit_memory: HitMemory::of(memory_bytes),
        ports: BTreeMap::new(),
        kept: BTreeMap::new(),
        moves: Moves::default(),
        cache: CacheSource::at(store.join(CACHE_FILE), memory_bytes),
        servers: Servers::new(Arc::clone(&wake), memory_bytes),
        wake,
        node: Arc::default(),
    };
    sys::give_back_program();
    worker.control.send(&FromWorker::Ready { abi: ABI, engine: ENGINE_NAME.to_owned() });
    let ended = worker.run();
    worker.kv.close(KV_CLOSE_TIME_MAX);
    ended
}

struct Worker {
    rounds: Rounds,
    control: Control,
    memory: RingMemory,
    /// Of the container.
    memory_bytes: u64,
    coder_memory: CoderMemory,
    hit_memory: HitMemory,
    delivery: Delivery,
    runtime: Runtime,
    lane_threads: LaneThreads,
    /// What wakes the threads of lanes beyond the first, by lane.
    wakeups: Vec<Arc<Wakeup>>,
    kv: KvStores,
    exchanges: Exchanges,
    channels: Channels,
    /// What modules are told, by their places.
    ports: BTreeMap<ModuleSlot, Arc<ControlPort>>,
    /// What the modules begin with that are loaded next.
    kept: BTreeMap<ModuleSlot, (ModuleName, Vec<ControlMessage>)>,
    moves: Moves,
    cache: Arc<CacheSource>,
    servers: Servers,
    /// What wakes this thread.
    wake: Arc<Wakeup>,
    /// What modules are told of their node.
    node: Arc<NodeInfo>,
}

impl Worker {
    fn run(&mut self) -> Result<(), ServeError> {
        let mut rounds = 0;
        loop {
            self.lend();
            let busy = self.rounds.packets()? > 0;
            rounds += 1;
            let hands_over = self.rounds.around.lanes.may_spin() && self.rounds.around.failed.is_empty();
            if busy && hands_over && rounds < limits::ROUNDS_BETWEEN_CONTROL {
                // The node waits for these answers, and has the next packets.
                rustix::thread::sched_yield();
                continue;
            }
            self.rounds.timers();
            self.rounds.chain.handle_messages(&mut self.rounds.around);
            if !self.rounds.around.failed.is_empty() {
                self.after_failure()?;
            }
            self.rounds.around.lanes.publish(busy)?;
            self.collect();
            if busy && rounds < limits::ROUNDS_BETWEEN_CONTROL {
                continue;
            }
            rounds = 0;
            if self.wait(busy)? && self.control()? == Next::End {
                return Ok(());
            }
        }
    }

    /// Gives lanes to threads of their own, if all modules are parallel.
    #[inline]
    fn lend(&mut self) {
        if let Err(error) = self.lane_threads.lend(&mut self.rounds) {
            let text = format!("one thread serves all lanes, since the system gives no more: {error}");
            self.control.send(&FromWorker::Log { slot: None, level: LogLevel::Warn, text });
        }
    }

    /// Takes back what the threads of lanes have, before anything about the modules is looked at or changed.
    fn recall(&mut self) -> Result<(), ServeError> {
        let left = self.lane_threads.recall(&mut self.rounds, &self.wakeups)?;
        self.send_lane_lines();
        for (slot, hosts) in left {
            self.control.send_log(Some(slot), last_lines(hosts));
        }
        Ok(())
    }

    fn send_lane_lines(&mut self) {
        for (slot, lines) in self.lane_threads.lines() {
            self.control.send_log(Some(slot), lines);
        }
    }

    /// Tells of modules that failed, forgets what they left, and looks at the rest anew.
    fn after_failure(&mut self) -> Result<(), ServeError> {
        self.recall()?;
        self.tell_failed()?;
        self.kv.handle_timeout(Clock::System.instant());
        self.deliver()
    }

    fn tell_failed(&mut self) -> Result<(), ServeError> {
        let mut told = BTreeSet::new();
        for Failure { slot, refusal, lines } in std::mem::take(&mut self.rounds.around.failed) {
            self.control.send_log(Some(slot), lines);
            if told.insert(slot) {
                self.control.send(&FromWorker::Failed { slot, refusal });
                self.forget(slot);
                self.end_server(slot)?;
            }
        }
        Ok(())
    }

    /// Maps the slots of all lanes into a module that is alone, and into no other. Of a module with an instance for each lane,
    /// each gets those of its lane.
    fn deliver(&mut self) -> Result<(), ServeError> {
        let alone = self.rounds.chain.len() == 1 && self.delivery == Delivery::Mapped;
        for (slot, instances) in self.rounds.chain.iter_mut() {
            let are_several = instances.len() > 1;
            for (lane, instance) in instances.iter_mut().enumerate() {
                let slots = if are_several { self.memory.slots_of(lane) } else { self.memory.slots() };
                if !alone {
                    instance.unmap().map_err(|error| ServeError::Io("mmap", error))?;
                } else if let Err(error) = instance.map(slots) {
                    let text = format!("packets are copied to the module, since the slots cannot be mapped: {error}");
                    self.control.send(&FromWorker::Log { slot: Some(slot), level: LogLevel::Warn, text });
                }
            }
        }
        Ok(())
    }

    /// Answers the packets that are under way while what a module wrote over them is seen by no other.
    fn settle(&mut self) -> Result<(), ServeError> {
        self.recall()?;
        for (_, instances) in self.rounds.chain.iter_mut() {
            instances.iter_mut().try_for_each(Instance::unmap).map_err(|error| ServeError::Io("mmap", error))?;
        }
        self.rounds.drain()
    }

    /// Sends what modules wrote to their logs.
    fn collect(&mut self) {
        for (slot, instances) in self.rounds.chain.iter_mut() {
            for log in instances.iter_mut().map(|instance| &mut instance.host_mut().log) {
                if !log.is_empty() {
                    self.control.send_log(Some(slot), log.take());
                }
            }
        }
        for (slot, port) in &self.ports {
            if !self.control.has_room() {
                break;
            }
            for message in port.take_notifies() {
                self.control.send(&FromWorker::Notify { slot: *slot, message });
            }
        }
        for text in self.kv.take_reports() {
            self.control.send(&FromWorker::Log { slot: None, level: LogLevel::Warn, text });
        }
        while self.control.has_room()
            && let Some(wish) = media::desk().poll_wish()
        {
            self.control.send(&wish);
        }
        self.control.flush();
    }

    /// Waits until there is something to do, or only looks if `busy`. Returns whether the control socket has something.
    fn wait(&mut self, busy: bool) -> Result<bool, ServeError> {
        if !busy && self.rounds.spin() {
            return Ok(false);
        }
        let due = self.poll_timeout();
        let mut control = PollFlags::IN;
        control.set(PollFlags::OUT, self.control.is_waiting());
        let others =
            [PollFd::new(&self.control, control), PollFd::from_borrowed_fd(self.servers.wake(), PollFlags::IN)];
        let [control, served] = self.rounds.wait(busy, others, due)?;
        if served.contains(PollFlags::IN) {
            self.reports()?;
        }
        if self.kv.poll_timeout().is_some_and(|due| due <= Clock::System.instant()) {
            self.kv.handle_timeout(Clock::System.instant());
        }
        Ok(control.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
    }

    /// Returns when something is due next.
    fn poll_timeout(&self) -> Option<Instant> {
        self.rounds.chain.poll_timeout().into_iter().chain(self.kv.poll_timeout()).min()
    }

    fn control(&mut self) -> Result<Next, ServeError> {
        loop {
            let (frame, descriptors) = match self.control.receive() {
                Received::Frame(frame, descriptors) => (frame, descriptors),
                Received::Nothing => return Ok(Next::Continue),
                Received::Closed => return Ok(Next::End),
                Received::Malformed(error) => {
                    let text = format!("a control frame was not understood: {error}");
                    self.control.send(&FromWorker::Log { slot: None, level: LogLevel::Error, text });
                    continue;
                }
            };
            match frame {
                load @ ToWorker::Load { .. } => self.load(load, descriptors)?,
                ToWorker::Unload { slot } => self.unload(slot)?,
                ToWorker::Drain { slot, finish } => self.drain(slot, finish)?,
                ToWorker::Confirm { slot } => self.moves.confirm(slot),
                ToWorker::Kept { slot, module, messages } => drop(self.kept.insert(slot, (module, messages))),
                ToWorker::Tell { slot, message } => self.tell(slot, message),
                ToWorker::Node { info } => self.node = Arc::new(info),
                ToWorker::Order { slots } => {
                    self.settle()?;
                    self.rounds.chain.sort(&slots);
                }
                ToWorker::Stats => self.stats()?,
                ToWorker::Export { slot } => self.export(slot, descriptors)?,
                ToWorker::Permit { connect, listen } => self.servers.permit(&connect, &listen),
                ToWorker::Sockets { v6 } => self.servers.sockets(v6, descriptors)?,
                ToWorker::MediaStarted { job } => media::desk().handle_started(job, descriptors),
                ToWorker::MediaEnded { job, outcome, detail } => media::desk().handle_ended(job, outcome, detail),
                ToWorker::Lane => self.add_lane(descriptors)?,
                ToWorker::Shutdown => {
                    self.shutdown()?;
                    return Ok(Next::End);
                }
            }
            self.rounds.around.lanes.publish(false)?;
            self.collect();
        }
    }

    /// Puts a control message into the inbox of a module, and says whether it is there.
    fn tell(&mut self, slot: ModuleSlot, message: ControlMessage) {
        let seq = message.seq;
        let verdict = self.ports.get(&slot).map_or(TellVerdict::NotLoaded, |port| port.tell(message));
        self.control.send(&FromWorker::Told { slot, seq, verdict });
    }

    fn add_lane(&mut self, descriptors: Vec<OwnedFd>) -> Result<(), ServeError> {
        self.recall()?;
        let lanes = &mut self.rounds.around.lanes;
        lanes.add(&mut self.memory, descriptors)?;
        self.wakeups = lanes.wakeups().skip(1).map(Arc::clone).collect();
        Ok(())
    }

    /// Begins to load a module: its server part first, if it has one, whose thread reports when it runs.
    fn load(&mut self, frame: ToWorker, descriptors: Vec<OwnedFd>) -> Result<(), ServeError> {
        let Some(mut parts) = Parts::new(frame, descriptors) else { return Ok(()) };
        let (slot, name) = (parts.profile.slot, &parts.profile.name.name);
        let kept = self.kept.remove(&slot).filter(|(module, _)| module == name).map(|(_, messages)| messages);
        let shared = Shared {
            kv: self.kv.open(name, parts.state_schema),
            messages: self.exchanges.open(name),
            channel: self.channels.open(name),
            control: Arc::new(ControlPort::new(kept.unwrap_or_default(), Some(Arc::clone(&self.wake)))),
            cache: Arc::new(CacheHandle::new(&self.cache, name)),
            node: Arc::clone(&self.node),
            coder_memory: self.coder_memory.clone(),
            hit_memory: self.hit_memory.clone(),
        };
        let (packets, server) = parts.which();
        shared.messages.set_parts(packets, server);
        self.ports.insert(slot, Arc::clone(&shared.control));
        self.end_moves(slot);
        let owner = Owner { name: name.clone(), schema: parts.state_schema, kv: shared.kv.clone() };
        let step = match self.moves.begin(slot, owner, parts.state.take(), &parts.profile.limits, parts.which()) {
            Ok(said) => self.servers.load(parts, shared, said)?,
            Err(refusal) => Step::Fail(refusal),
        };
        match step {
            Step::Wait => Ok(()),
            Step::Start(packet) => self.load_packet(slot, Some(packet)),
            Step::Fail(refusal) => {
                self.settle()?;
                self.fail(slot, refusal);
                self.deliver()
            }
        }
    }

    /// Loads the part of a module that sees packets, if it has one, and says that the module runs.
    fn load_packet(&mut self, slot: ModuleSlot, part: Option<PacketPart>) -> Result<(), ServeError> {
        self.settle()?;
        let started = part.map(|part| self.start(slot, part));
        match started {
            Some(Ok(mut instances)) => {
                for instance in &mut instances {
                    inject_all(slot, instance, &mut self.rounds.around);
                }
                if let Some(old) = self.rounds.chain.insert(slot, instances) {
                    self.stop(slot, old);
                }
                self.say_loaded(slot);
            }
            None => {
                if let Some(old) = self.rounds.chain.remove(slot) {
                    self.stop(slot, old);
                }
                self.say_loaded(slot);
            }
            Some(Err(refusal)) => {
                self.end_server(slot)?;
                self.fail(slot, refusal);
            }
        }
        self.kv.handle_timeout(Clock::System.instant());
        sys::give_back_program();
        self.deliver()
    }

    /// Starts the part of a module that sees packets: one instance, or one for each lane if it is parallel.
    fn start(&mut self, slot: ModuleSlot, part: PacketPart) -> Result<Vec<Instance>, Refusal> {
        let PacketPart { code, profile, parallel, shared, mut state } = part;
        let Shared { kv, messages, channel, control, node, .. } = shared;
        messages.tell_again();
        let lanes = self.memory.lanes();
        let count = if parallel { lanes } else { 1 };
        self.check_memory(&profile.limits, count)?;
        if state.is_some() && count > 1 {
            return Err(failure::no_carrier("packet"));
        }
        self.rounds.around.enter(slot);
        let checked = self.runtime.load(code).and_then(|checked| checked.permit(&profile.blocks));
        self.rounds.around.leave();
        let checked = checked?;
        if checked.has_inbox() {
            control.open_for_packets();
        }
        let mut instances = Vec::new();
        for _ in 0..count {
            let (properties, kv, messages) = (profile.properties.clone(), kv.clone(), Arc::clone(&messages));
            let host = Host::new(properties, profile.limits, kv, Clock::System, Entropy::System);
            let (channel, control, node) = (Arc::clone(&channel), Arc::clone(&control), Arc::clone(&node));
            let host = Host { messages, channel, control, node, lanes: if count > 1 { 1 } else { lanes }, ..host };
            // Each may take as long as a call.
            self.rounds.around.enter(slot);
            let mut started = Instance::start(&checked, host);
            if let (Ok(instance), Some(state)) = (&mut started, state.take()) {
                let taken = instance.import_state(state);
                started = started.and_then(|instance| taken.map(|()| instance));
            }
            self.rounds.around.leave();
            match started {
                Ok(instance) => instances.push(instance),
                Err(refusal) => {
                    self.stop(slot, instances);
                    return Err(refusal);
                }
            }
        }
        Ok(instances)
    }

    /// Checks that all instances of a module fit the container, if there are several. What others have beside it is not
    /// looked at, as for all modules: a version is loaded while the one before it runs.
    fn check_memory(&self, limits: &ModuleLimits, count: usize) -> Result<(), Refusal> {
        if count == 1 || limits.memory_bytes.saturating_mul(count as u64) <= self.memory_bytes {
            return Ok(());
        }
        let (each, all) = (limits.memory_bytes, self.memory_bytes);
        let detail = format!(
            "{count} instances of a parallel module, one for each lane, of up to {each} bytes each do not fit the container's \
             {all} bytes; lower limits.memory-bytes or leave `parallel` out"
        );
        Err(Refusal::new(RefusalKind::MemoryLimit, detail))
    }

    /// Does what the reports of the server thread and of the threads of lanes ask for.
    fn reports(&mut self) -> Result<(), ServeError> {
        self.servers.clear()?;
        self.send_lane_lines();
        if self.lane_threads.take_alarm() {
            self.after_failure()?;
        }
        while let Some(news) = self.servers.news()? {
            match news {
                News::Loaded(slot, packet) => self.load_packet(slot, packet)?,
                News::Failed(slot, refusal, lines) => {
                    self.settle()?;
                    self.control.send_log(Some(slot), lines);
                    self.fail(slot, refusal);
                    self.deliver()?;
                }
                News::Drained(slot) => {
                    self.control.send(&FromWorker::Drained { slot });
                }
                News::Exported(slot, said) => self.go_on_exporting(slot, said)?,
                News::WantsSockets { count, v6 } => {
                    self.control.send(&FromWorker::Sockets { count, v6 });
                }
            }
        }
        for (slot, lines) in self.servers.lines() {
            self.control.send_log(Some(slot), lines);
        }
        Ok(())
    }

    /// Tells all instances of a module that they end. What they do then cannot fail anything.
    fn stop(&mut self, slot: ModuleSlot, instances: Vec<Instance>) {
        for mut instance in instances {
            self.rounds.around.enter(slot);
            let stopped = instance.stop();
            self.rounds.around.leave();
            if let Err(refusal) = stopped {
                let text = format!("the module failed while it stopped: {refusal}");
                self.control.send(&FromWorker::Log { slot: Some(slot), level: LogLevel::Warn, text });
            } else {
                inject_all(slot, &mut instance, &mut self.rounds.around);
            }
            self.control.send_log(Some(slot), last_lines(vec![instance.into_host()]));
        }
    }

    fn stats(&mut self) -> Result<(), ServeError> {
        self.recall()?;
        let mut served = self.servers.counted();
        for (slot, instances) in self.rounds.chain.iter() {
            let mut counters = BTreeMap::new();
            let mut packets = PacketCounts::default();
            for instance in instances {
                add(&mut counters, instance.host().counters.all());
                packets += instance.counts;
            }
            let server = served.remove(&slot).map(|(more, server)| {
                add(&mut counters, more);
                server
            });
            self.control.send_stats(slot, packets, counters, server);
        }
        for (slot, (counters, server)) in served {
            self.control.send_stats(slot, PacketCounts::default(), counters, Some(server));
        }
        let storage = StorageFailures { kv: self.kv.failures(), cache: self.cache.failures() };
        self.control.send(&FromWorker::StatsDone { storage });
        Ok(())
    }

    fn shutdown(&mut self) -> Result<(), ServeError> {
        // Modules may take longer to end than the node waits.
        self.kv.hurry();
        self.recall()?;
        self.rounds.drain()?;
        self.tell_failed()?;
        self.servers.end();
        for (slot, lines) in self.servers.lines() {
            self.control.send_log(Some(slot), lines);
        }
        for slot in (0..MODULES_PER_CONTAINER_MAX).filter_map(|slot| u8::try_from(slot).ok()).map(ModuleSlot) {
            if let Some(instances) = self.rounds.chain.remove(slot) {
                self.stop(slot, instances);
            }
        }
        self.rounds.around.lanes.publish(false)?;
        self.control.flush();
        Ok(())
    }
}

/// Adds what is counted under the same names.
fn add(counters: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (name, count) in more {
        let counter = counters.entry(name).or_default();
        *counter = counter.wrapping_add(count);
    }
}
