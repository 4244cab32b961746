// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker serve`: the loop inside a service container.
//!
//! While a module is the only one of its container, the ring's slots are mapped into its memory and packets are not
//! copied. With others beside it, each has packets copied to it: what one module writes over a packet that it passes is
//! not for the next to see, nor are packets that only the others see.

mod parts;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{BATCH_PACKETS_MAX, MODULES_PER_CONTAINER_MAX};
use netserv_model::request::PacketCounts;
use netserv_model::{Instant, Refusal};
use netserv_wire::container::frames::{FromWorker, LogLevel, StorageFailures, ToWorker};
use netserv_wire::container::ring::{Arrival, Ingress};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::clock;
use crate::error::ServeError;
use crate::link::ABI;
use crate::link::birth::Birth;
use crate::link::control::{Control, Next, Received};
use crate::link::lanes::Lanes;
use crate::link::ring_memory::RingMemory;
use crate::packet::chain::{Chain, Outcome, PacketBatch, Surroundings, inject_all};
use crate::packet::engine::{ENGINE_NAME, Runtime};
use crate::packet::host::{Clock, Entropy, Host};
use crate::packet::instance::Instance;
use crate::server::module::Shared;
use crate::shared::kv::KvStores;
use crate::shared::log::Line;
use crate::shared::messages::Exchanges;
use crate::storage::cache::{CacheHandle, CacheSource};
use crate::storage::limits::KV_CLOSE_TIME_MAX;
use crate::storage::{CACHE_FILE, KV_FILE, StoreFile};
use crate::wakeup::Wakeup;
use crate::{limits, media, sys};
use parts::{News, PacketPart, Parts, Servers, Step};

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
        around: Around {
            lanes: Lanes::new(memory.words(), wake_host)?,
            arrivals: Vec::new(),
            control,
            failed: Vec::new(),
        },
        memory,
        delivery,
        wake_worker,
        runtime,
        chain: Chain::default(),
        kv: KvStores::in_file(StoreFile::open(&store.join(KV_FILE))),
        exchanges: Exchanges::new(Arc::clone(&wake)),
        cache: CacheSource::at(store.join(CACHE_FILE)),
        servers: Servers::new(wake, memory_bytes),
        outcomes: Vec::new(),
    };
    sys::give_back_program();
    worker.around.control.send(&FromWorker::Ready { abi: ABI, engine: ENGINE_NAME.to_owned() });
    let ended = worker.run();
    worker.kv.close(KV_CLOSE_TIME_MAX);
    ended
}

struct Worker {
    around: Around,
    memory: RingMemory,
    delivery: Delivery,
    wake_worker: Wakeup,
    runtime: Runtime,
    chain: Chain,
    kv: KvStores,
    exchanges: Exchanges,
    cache: Arc<CacheSource>,
    servers: Servers,
    outcomes: Vec<Outcome>,
}

/// What modules are run on: the rings with a batch from one of them, and the control socket.
struct Around {
    lanes: Lanes,
    arrivals: Vec<Arrival>,
    control: Control,
    /// Modules that failed since this was last looked at.
    failed: Vec<ModuleSlot>,
}

impl Worker {
    fn run(&mut self) -> Result<(), ServeError> {
        let mut rounds = 0;
        loop {
            let busy = self.packets()? > 0;
            rounds += 1;
            let hands_over = self.around.lanes.may_spin() && self.around.failed.is_empty();
            if busy && hands_over && rounds < limits::ROUNDS_BETWEEN_CONTROL {
                // The node waits for these answers, and has the next packets.
                rustix::thread::sched_yield();
                continue;
            }
            self.timers();
            self.chain.handle_messages(&mut self.around);
            if !self.around.failed.is_empty() {
                self.after_failure()?;
            }
            self.around.lanes.publish(busy)?;
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

    /// Runs one batch from each ring. Returns the length of all of them.
    fn packets(&mut self) -> Result<usize, ServeError> {
        let mut count = 0;
        for lane in (0..self.around.lanes.len()).rev() {
            // What modules make outside of batches leaves by lane 0, which is the last.
            self.around.lanes.turn_to(lane);
            count += self.batch()?;
        }
        Ok(count)
    }

    /// Runs one batch of the lane whose turn it is. Returns its length.
    fn batch(&mut self) -> Result<usize, ServeError> {
        while self.around.arrivals.len() < BATCH_PACKETS_MAX
            && let Some(arrival) = self.around.lanes.ring_mut().pop()?
        {
            self.around.arrivals.push(arrival);
        }
        let count = self.around.arrivals.len();
        if count > 0 {
            self.chain.process(&mut self.around, &mut self.outcomes);
            for (arrival, outcome) in self.around.arrivals.drain(..).zip(&self.outcomes) {
                self.around.lanes.ring_mut().answer(arrival, outcome.answer, outcome.module)?;
            }
        }
        self.around.lanes.publish_one(count == BATCH_PACKETS_MAX)?;
        Ok(count)
    }

    /// Calls the timers that are due.
    fn timers(&mut self) {
        if let Some(due) = self.chain.poll_timeout() {
            let now = Clock::System.instant();
            if due <= now {
                self.chain.handle_timeout(now, &mut self.around);
            }
        }
    }

    /// Forgets what failed modules left, and looks at the rest anew.
    fn after_failure(&mut self) -> Result<(), ServeError> {
        for slot in std::mem::take(&mut self.around.failed) {
            self.end_server(slot)?;
        }
        self.kv.handle_timeout(Clock::System.instant());
        self.deliver()
    }

    /// Maps the slots of all lanes into a module that is alone, and into no other.
    fn deliver(&mut self) -> Result<(), ServeError> {
        let alone = self.chain.len() == 1 && self.delivery == Delivery::Mapped;
        for (slot, instance) in self.chain.iter_mut() {
            if !alone {
                instance.unmap().map_err(|error| ServeError::Io("mmap", error))?;
            } else if let Err(error) = instance.map(&self.memory) {
                let text = format!("packets are copied to the module, since the slots cannot be mapped: {error}");
                self.around.control.send(&FromWorker::Log { slot: Some(slot), level: LogLevel::Warn, text });
            }
        }
        Ok(())
    }

    /// Answers the packets that are under way while what a module wrote over them is seen by no other.
    fn settle(&mut self) -> Result<(), ServeError> {
        for (_, instance) in self.chain.iter_mut() {
            instance.unmap().map_err(|error| ServeError::Io("mmap", error))?;
        }
        self.drain()
    }

    /// Sends what modules wrote to their logs.
    fn collect(&mut self) {
        for (slot, instance) in self.chain.iter_mut() {
            let log = &mut instance.host_mut().log;
            if !log.is_empty() {
                self.around.control.send_log(Some(slot), log.take());
            }
        }
        for text in self.kv.take_reports() {
            self.around.control.send(&FromWorker::Log { slot: None, level: LogLevel::Warn, text });
        }
        while self.around.control.has_room()
            && let Some(wish) = media::desk().poll_wish()
        {
            self.around.control.send(&wish);
        }
        self.around.control.flush();
    }

    /// Waits until there is something to do, or only looks if `busy`. Returns whether the control socket has something.
    fn wait(&mut self, busy: bool) -> Result<bool, ServeError> {
        if !busy && self.spin() {
            return Ok(false);
        }
        let sleep = !busy && !self.around.lanes.may_spin() && self.around.lanes.prepare_sleep();
        let timeout =
            if sleep { self.poll_timeout().map(clock::until) } else { Some(Timespec { tv_sec: 0, tv_nsec: 0 }) };
        let mut control = PollFlags::IN;
        control.set(PollFlags::OUT, self.around.control.is_waiting());
        let mut fds = [
            PollFd::new(&self.around.control, control),
            PollFd::new(&self.wake_worker, PollFlags::IN),
            PollFd::from_borrowed_fd(self.servers.wake(), PollFlags::IN),
        ];
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ServeError::Io("poll", error.into())),
        }
        let (control, woken) = (fds[0].revents(), fds[1].revents().contains(PollFlags::IN));
        let served = fds[2].revents().contains(PollFlags::IN);
        if sleep {
            self.around.lanes.cancel_sleep();
        }
        if woken {
            self.wake_worker.clear()?;
        }
        if served {
            self.reports()?;
        }
        if self.kv.poll_timeout().is_some_and(|due| due <= Clock::System.instant()) {
            self.kv.handle_timeout(Clock::System.instant());
        }
        Ok(control.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
    }

    /// Looks for packets for a while, as long as the node lets it, while others may have the core; returns whether some came.
    fn spin(&self) -> bool {
        let may = |_: &u32| self.around.lanes.may_spin();
        (0..limits::SPINS_BETWEEN_CONTROL).take_while(may).any(|_| {
            rustix::thread::sched_yield();
            self.around.lanes.has_more()
        })
    }

    /// Returns when something is due next.
    fn poll_timeout(&self) -> Option<Instant> {
        self.chain.poll_timeout().into_iter().chain(self.kv.poll_timeout()).min()
    }

    fn control(&mut self) -> Result<Next, ServeError> {
        loop {
            let (frame, descriptors) = match self.around.control.receive() {
                Received::Frame(frame, descriptors) => (frame, descriptors),
                Received::Nothing => return Ok(Next::Continue),
                Received::Closed => return Ok(Next::End),
                Received::Malformed(error) => {
                    let text = format!("a control frame was not understood: {error}");
                    self.around.control.send(&FromWorker::Log { slot: None, level: LogLevel::Error, text });
                    continue;
                }
            };
            match frame {
                load @ ToWorker::Load { .. } => self.load(load, descriptors)?,
                ToWorker::Unload { slot } => self.unload(slot)?,
                ToWorker::Order { slots } => {
                    self.settle()?;
                    self.chain.sort(&slots);
                }
                ToWorker::Stats => self.stats(),
                ToWorker::Permit { connect, listen } => self.servers.permit(&connect, &listen),
                ToWorker::Sockets { v6 } => self.servers.sockets(v6, descriptors)?,
                ToWorker::MediaStarted { job } => media::desk().handle_started(job, descriptors),
                ToWorker::MediaEnded { job, outcome, detail } => media::desk().handle_ended(job, outcome, detail),
                ToWorker::Lane => self.around.lanes.add(&mut self.memory, descriptors)?,
                ToWorker::Shutdown => {
                    self.shutdown()?;
                    return Ok(Next::End);
                }
            }
            self.around.lanes.publish(false)?;
            self.collect();
        }
    }

    /// Begins to load a module: its server part first, if it has one, whose thread reports when it runs.
    fn load(&mut self, frame: ToWorker, descriptors: Vec<OwnedFd>) -> Result<(), ServeError> {
        let Some(parts) = Parts::new(frame, descriptors) else { return Ok(()) };
        let name = &parts.profile.name.name;
        let shared = Shared {
            kv: self.kv.open(name, parts.state_schema),
            messages: self.exchanges.open(name),
            cache: Arc::new(CacheHandle::new(&self.cache, name)),
        };
        let (packets, server) = parts.which();
        shared.messages.set_parts(packets, server);
        let slot = parts.profile.slot;
        match self.servers.load(parts, shared)? {
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
        let started = part.map(|part| {
            let PacketPart { code, profile, shared: Shared { kv, messages, .. } } = part;
            messages.tell_again();
            let host = Host::new(profile.properties, profile.limits, kv, Clock::System, Entropy::System);
            let host = Host { messages, lanes: self.memory.lanes(), ..host };
            self.around.enter(slot);
            let checked = self.runtime.load(code).and_then(|checked| checked.permit(&profile.blocks));
            let started = checked.and_then(|checked| Instance::start(&checked, host));
            self.around.leave();
            started
        });
        match started {
            Some(Ok(mut instance)) => {
                inject_all(slot, &mut instance, &mut self.around);
                if let Some(old) = self.chain.insert(slot, instance) {
                    self.stop(slot, old);
                }
                self.around.control.send(&FromWorker::Loaded { slot });
            }
            None => {
                if let Some(old) = self.chain.remove(slot) {
                    self.stop(slot, old);
                }
                self.around.control.send(&FromWorker::Loaded { slot });
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

    /// Ends what packets a module sees, and tells the node why.
    fn fail(&mut self, slot: ModuleSlot, refusal: Refusal) {
        if let Some(old) = self.chain.remove(slot) {
            self.stop(slot, old);
        }
        self.around.control.send(&FromWorker::Failed { slot, refusal });
    }

    fn unload(&mut self, slot: ModuleSlot) -> Result<(), ServeError> {
        self.settle()?;
        self.end_server(slot)?;
        if let Some(instance) = self.chain.remove(slot) {
            self.stop(slot, instance);
        }
        self.kv.handle_timeout(Clock::System.instant());
        self.deliver()
    }

    /// Ends the server part of a module, if it has one.
    fn end_server(&mut self, slot: ModuleSlot) -> Result<(), ServeError> {
        let lines = self.servers.unload(slot)?;
        self.around.control.send_log(Some(slot), lines);
        Ok(())
    }

    /// Does what the server thread's reports ask for.
    fn reports(&mut self) -> Result<(), ServeError> {
        self.servers.clear()?;
        while let Some(news) = self.servers.news()? {
            match news {
                News::Loaded(slot, packet) => self.load_packet(slot, packet)?,
                News::Failed(slot, refusal, lines) => {
                    self.settle()?;
                    self.around.control.send_log(Some(slot), lines);
                    self.fail(slot, refusal);
                    self.deliver()?;
                }
                News::WantsSockets { count, v6 } => {
                    self.around.control.send(&FromWorker::Sockets { count, v6 });
                }
            }
        }
        for (slot, lines) in self.servers.lines() {
            self.around.control.send_log(Some(slot), lines);
        }
        Ok(())
    }

    /// Answers the packets that are under way, before the set of modules changes.
    fn drain(&mut self) -> Result<(), ServeError> {
        let mut answered = 0;
        while answered < self.around.lanes.packets_max() {
            match self.packets()? {
                0 => break,
                count => answered += count,
            }
        }
        Ok(())
    }

    /// Tells a module that it ends. What it does then cannot fail anything.
    fn stop(&mut self, slot: ModuleSlot, mut instance: Instance) {
        self.around.enter(slot);
        let stopped = instance.stop();
        self.around.leave();
        if let Err(refusal) = stopped {
            let text = format!("the module failed while it stopped: {refusal}");
            self.around.control.send(&FromWorker::Log { slot: Some(slot), level: LogLevel::Warn, text });
        } else {
            inject_all(slot, &mut instance, &mut self.around);
        }
        self.around.control.send_log(Some(slot), last_lines(instance.into_host()));
    }

    fn stats(&mut self) {
        let mut served = self.servers.counted();
        for (slot, instance) in self.chain.iter_mut() {
            let mut counters = instance.host().counters.all();
            let server = served.remove(&slot).map(|(more, server)| {
                more.into_iter().for_each(|(name, count)| *counters.entry(name).or_default() += count);
                server
            });
            self.around.control.send_stats(slot, instance.counts, counters, server);
        }
        for (slot, (counters, server)) in served {
            self.around.control.send_stats(slot, PacketCounts::default(), counters, Some(server));
        }
        let storage = StorageFailures { kv: self.kv.failures(), cache: self.cache.failures() };
        self.around.control.send(&FromWorker::StatsDone { storage });
    }

    fn shutdown(&mut self) -> Result<(), ServeError> {
        // Modules may take longer to end than the node waits.
        self.kv.hurry();
        self.drain()?;
        self.servers.end();
        for (slot, lines) in self.servers.lines() {
            self.around.control.send_log(Some(slot), lines);
        }
        for slot in (0..MODULES_PER_CONTAINER_MAX).filter_map(|slot| u8::try_from(slot).ok()).map(ModuleSlot) {
            if let Some(instance) = self.chain.remove(slot) {
                self.stop(slot, instance);
            }
        }
        self.around.lanes.publish(false)?;
        self.around.control.flush();
        Ok(())
    }
}

impl PacketBatch for Around {
    fn len(&self) -> usize {
        self.arrivals.len()
    }

    fn length(&self, index: usize) -> usize {
        self.arrivals[index].length()
    }

    fn modules(&self, index: usize) -> u64 {
        self.arrivals[index].modules
    }

    fn ingress(&self, index: usize) -> Ingress {
        self.arrivals[index].ingress
    }

    fn read(&self, index: usize, into: &mut [u8]) {
        self.lanes.ring().read(&self.arrivals[index], into);
    }

    fn write(&mut self, index: usize, packet: &[u8]) {
        let written = self.lanes.ring_mut().write(&mut self.arrivals[index], packet);
        debug_assert!(written.is_ok(), "the instance checked the length");
    }

    fn slot(&self, index: usize) -> usize {
        self.lanes.slot(&self.arrivals[index])
    }

    fn resize(&mut self, index: usize, length: usize) {
        let resized = self.lanes.ring_mut().resize(&mut self.arrivals[index], length);
        debug_assert!(resized.is_ok(), "the instance checked the length");
    }
}

impl Surroundings for Around {
    fn enter(&mut self, slot: ModuleSlot) {
        self.lanes.enter(slot);
    }

    fn leave(&mut self) {
        self.lanes.leave();
    }

    fn inject(&mut self, slot: ModuleSlot, packet: &[u8]) -> bool {
        self.lanes.ring_mut().inject(packet, slot).is_ok()
    }

    fn failed(&mut self, slot: ModuleSlot, refusal: Refusal, rest: Host) {
        self.failed.push(slot);
        self.control.send_log(Some(slot), last_lines(rest));
        self.control.send(&FromWorker::Failed { slot, refusal });
    }
}

fn last_lines(mut host: Host) -> Vec<Line> {
    host.log.note_left_out();
    host.log.take()
}
