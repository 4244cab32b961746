// SPDX-License-Identifier: Apache-2.0
//! `netserv-jvm serve`: the packet thread inside a service container.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use netserv_model::control::ControlMessage;
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{BATCH_PACKETS_MAX, MODULES_PER_CONTAINER_MAX};
use netserv_model::{Instant, ModuleName, Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, LogLevel, PartKind, StorageFailures, TellVerdict, ToWorker};
use netserv_wire::container::ring::{Answer, Arrival};
use netserv_worker_base::error::ServeError;
use netserv_worker_base::limits::ROUNDS_BETWEEN_CONTROL;
use netserv_worker_base::link::ABI;
use netserv_worker_base::link::birth::Birth;
use netserv_worker_base::link::control::{Control, Next, Received};
use netserv_worker_base::link::lanes::Lanes;
use netserv_worker_base::link::ring_memory::RingMemory;
use netserv_worker_base::shared::log::Line;
use netserv_worker_base::shared::moves::{Moves, Owner};
use netserv_worker_base::shared::state::{self, Said};
use netserv_worker_base::{clock, media, sys};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::batch::{BatchMemory, Left};
use super::bundles::{self, Bundles};
use super::home::Places;
use super::options::Archive;
use super::outbox::{FromJava, Outbox};
use super::start::{HEADER_WORDS, Host, Purpose, RingParts, broken, java_home};
use super::sys::{Bridge, BundleLoad, End, cache, control, kv, state as states};
use crate::limits;

/// How long after a start or a load the memory that it took is given back.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// The archived classes of the host, inside a container.
const ARCHIVE: &str = "/java/archive/host.jsa";

/// The arguments of `serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The directory of the Java that is used.
    #[arg(long)]
    pub java_home: PathBuf,
    /// Bytes of memory that the container has.
    #[arg(long)]
    pub memory_bytes: u64,
    /// Archived classes, used if the file is there.
    #[arg(long, hide = true, default_value = ARCHIVE)]
    pub archive: PathBuf,
    /// Where the Java part is.
    #[command(flatten)]
    pub places: Places,
}

/// Runs bundles until the node says that it is enough, or is gone.
///
/// # Errors
/// [`ServeError`] if the process was not started as the worker of a container, there is no JVM, or the Java host broke.
pub fn serve(args: &Args) -> Result<(), ServeError> {
    let Birth { control, mut memory, wake_worker, wake_host } = Birth::take()?;
    let lanes = Lanes::new(memory.words(), wake_worker, wake_host)?;
    let bundles = Bundles::open(&args.places.data).map_err(|error| ServeError::Io("mkdir", error))?;
    let header = &memory.words()[..HEADER_WORDS];
    let purpose = Purpose {
        home: &java_home(&args.java_home)?,
        places: &args.places,
        memory_bytes: args.memory_bytes,
        archive: if args.archive.is_file() { Archive::Use(&args.archive) } else { Archive::Default },
        test: false,
    };
    // Java is told of the slots once.
    let slots = memory.room().map_err(|error| ServeError::Io("mmap", error))?;
    let parts = RingParts { slots, header };
    let outbox = Outbox::leak()?;
    media::desk().open(|| outbox.wake());
    let host = Host::start(&purpose, parts, outbox, Box::new(move |end| last_words(end, header)))?;
    let mut worker = Worker {
        bridge: host.bridge,
        batch: host.batch,
        memory,
        lanes,
        arrivals: Vec::with_capacity(BATCH_PACKETS_MAX),
        control,
        outbox: host.outbox,
        bundles,
        due: None,
        is_stale: true,
        is_held: false,
        settled: None,
        ports: BTreeMap::new(),
        kept: BTreeMap::new(),
        moves: Moves::default(),
    };
    worker.run()
}

struct Worker {
    bridge: Bridge,
    batch: BatchMemory,
    memory: RingMemory,
    lanes: Lanes,
    arrivals: Vec<Arrival>,
    control: Control,
    outbox: &'static Outbox,
    bundles: Bundles,
    /// When Java wants to be called next, as it said last.
    due: Option<Instant>,
    /// Whether modules ran since Java said so.
    is_stale: bool,
    /// Whether Java told more than the node has read.
    is_held: bool,
    /// When what a start or a load took can be given back.
    settled: Option<Instant>,
    /// The numbers of what modules are told by, by their places.
    ports: BTreeMap<ModuleSlot, i64>,
    /// What the modules begin with that are loaded next.
    kept: BTreeMap<ModuleSlot, (ModuleName, Vec<ControlMessage>)>,
    moves: Moves,
}

impl Worker {
    fn run(&mut self) -> Result<(), ServeError> {
        let mut rounds = 0;
        loop {
            let busy = self.packets()? > 0;
            rounds += 1;
            let look = !busy || rounds >= ROUNDS_BETWEEN_CONTROL;
            self.java(look)?;
            self.lanes.publish(busy)?;
            if !look {
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
        for lane in (0..self.lanes.len()).rev() {
            // What modules make outside of batches leaves by lane 0, which is the last.
            self.lanes.turn_to(lane);
            count += self.one_batch()?;
        }
        Ok(count)
    }

    /// Runs one batch of the lane whose turn it is. Returns its length.
    fn one_batch(&mut self) -> Result<usize, ServeError> {
        while self.arrivals.len() < BATCH_PACKETS_MAX
            && let Some(arrival) = self.lanes.ring_mut().pop()?
        {
            let (index, slot) = (self.arrivals.len(), self.lanes.slot(&arrival));
            self.batch.write(index, slot, arrival.length(), arrival.ingress, arrival.modules);
            self.arrivals.push(arrival);
        }
        let count = self.arrivals.len();
        if count > 0 {
            self.is_stale = true;
            let injected = self.bridge.process(count).map_err(broken)?;
            self.inject(injected);
            self.answer()?;
        }
        self.lanes.publish_one(count == BATCH_PACKETS_MAX)?;
        Ok(count)
    }

    /// Answers the packets of a batch as Java left them.
    fn answer(&mut self) -> Result<(), ServeError> {
        let mut nonsense = 0;
        for (index, mut arrival) in self.arrivals.drain(..).enumerate() {
            let left = self.batch.read(index).unwrap_or_else(|| {
                nonsense += 1;
                Left { answer: Answer::Failed, length: 0, module: first_module(arrival.modules) }
            });
            if left.answer == Answer::Modified {
                self.lanes.ring_mut().resize(&mut arrival, left.length)?;
            }
            self.lanes.ring_mut().answer(arrival, left.answer, left.module)?;
        }
        if nonsense > 0 {
            let text = format!("the Java host left {nonsense} verdicts that mean nothing; their packets failed");
            self.outbox.log(None, LogLevel::Error, text.as_bytes());
        }
        Ok(())
    }

    /// Hands packets that modules made to the node.
    fn inject(&mut self, count: i32) {
        if count == 0 {
            return;
        }
        let mut lost = [0_u32; MODULES_PER_CONTAINER_MAX];
        let nothing = self.batch.take_injected(count, |slot, packet| {
            if self.lanes.ring_mut().inject(packet, slot).is_err() {
                lost[usize::from(slot.0)] += 1;
            }
        });
        for (slot, lost) in (0..).zip(lost).filter(|(_, lost)| *lost > 0) {
            let text = format!("{lost} injected packets lost: the node has no room for more");
            self.outbox.log(Some(ModuleSlot(slot)), LogLevel::Warn, text.as_bytes());
        }
        if nothing > 0 {
            let text = format!("{nothing} injected packets lost: the Java host gave a length or a slot that none has");
            self.outbox.log(None, LogLevel::Error, text.as_bytes());
        }
    }

    /// Takes what Java has to tell, and lets it run what is due. With `look`, asks it when that is.
    fn java(&mut self, look: bool) -> Result<(), ServeError> {
        let raised = self.outbox.poll_raised()?;
        if raised || (self.is_held && self.control.has_room()) {
            self.report();
        }
        let is_due = self.due.is_some_and(|due| due <= clock::monotonic());
        if raised || is_due || (look && self.is_stale) {
            self.due = self.bridge.idle(clock::monotonic()).map_err(broken)?;
            self.is_stale = false;
            let injected = self.bridge.injected().map_err(broken)?;
            self.inject(injected);
        }
        Ok(())
    }

    /// Sends what Java has to tell.
    fn report(&mut self) {
        for (slot, lines) in self.outbox.take_logs() {
            self.control.send_log(slot, lines);
        }
        if self.control.has_room()
            && let Some(line) = self.outbox.take_lost()
        {
            self.control.send_log(None, vec![line]);
        }
        while self.control.has_room()
            && let Some(event) = self.outbox.poll_event()
        {
            match event {
                FromJava::Ready(engine) => {
                    self.settle_later();
                    self.control.send(&FromWorker::Ready { abi: ABI, engine });
                }
                FromJava::Loaded(slot) => {
                    self.settle_later();
                    self.moves.loaded(slot);
                    self.control.send(&FromWorker::Loaded { slot });
                }
                FromJava::Failed(slot, refusal) => {
                    let last = self.outbox.renew_log(slot);
                    self.control.send_log(Some(slot), last);
                    self.end_moves(slot);
                    self.control.send(&FromWorker::Failed { slot, refusal });
                }
                FromJava::Stats(slot, packets, counters) => self.control.send_stats(slot, packets, counters, None),
                FromJava::StatsDone => {
                    for text in kv::upkeep() {
                        self.control.send_log(None, vec![Line { level: LogLevel::Warn, text }]);
                    }
                    let storage = StorageFailures { kv: kv::failures(), cache: cache::failures() };
                    self.control.send(&FromWorker::StatsDone { storage });
                }
            }
        }
        while self.control.has_room()
            && let Some(wish) = media::desk().poll_wish()
        {
            self.control.send(&wish);
        }
        self.send_notifies();
        self.is_held = !self.control.has_room();
        self.control.flush();
    }

    /// Sends what modules tell the requesters of their SETUPs.
    fn send_notifies(&mut self) {
        for (slot, number) in &self.ports {
            if !self.control.has_room() {
                break;
            }
            for message in control::port(*number).map(|port| port.take_notifies()).unwrap_or_default() {
                self.control.send(&FromWorker::Notify { slot: *slot, message });
            }
        }
    }

    /// Gives memory back for the moment, and once more when what was begun will have been compiled.
    fn settle_later(&mut self) {
        sys::give_back_program();
        self.settled = Some(clock::monotonic() + SETTLED_AFTER);
    }

    /// Gives back what was needed to get going. What was freed, the JVM gives back itself.
    fn settle(&mut self) {
        if self.settled.is_some_and(|due| due <= clock::monotonic()) {
            self.settled = None;
            sys::give_back_program();
        }
    }

    /// Waits until there is something to do, or only looks if `busy`. Returns whether the control socket has something.
    fn wait(&mut self, busy: bool) -> Result<bool, ServeError> {
        let sleep = !busy && self.lanes.prepare_sleep();
        let due = self.due.into_iter().chain(self.settled).min();
        let timeout = if sleep { due.map(clock::until) } else { Some(Timespec { tv_sec: 0, tv_nsec: 0 }) };
        let mut control = PollFlags::IN;
        control.set(PollFlags::OUT, self.control.is_waiting());
        let mut fds = vec![PollFd::new(&self.control, control), PollFd::new(self.outbox, PollFlags::IN)];
        self.lanes.listen(&mut fds);
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ServeError::Io("poll", error.into())),
        }
        let (control, told) = (fds[0].revents(), fds[1].revents().contains(PollFlags::IN));
        let woken = Lanes::woken(&fds[2..]);
        if sleep {
            self.lanes.cancel_sleep();
        }
        self.lanes.clear(woken)?;
        if told {
            self.outbox.handle_readable()?;
        }
        self.settle();
        if control.contains(PollFlags::OUT) {
            self.control.flush();
        }
        Ok(control.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
    }

    fn control(&mut self) -> Result<Next, ServeError> {
        loop {
            let (frame, descriptors) = match self.control.receive() {
                Received::Frame(frame, descriptors) => (frame, descriptors),
                Received::Nothing => return Ok(Next::Continue),
                Received::Closed => return Ok(Next::End),
                Received::Malformed(error) => {
                    let text = format!("a control frame was not understood: {error}");
                    self.control.send_log(None, vec![Line { level: LogLevel::Error, text }]);
                    continue;
                }
            };
            match frame {
                load @ ToWorker::Load { .. } => self.load(&load, descriptors)?,
                ToWorker::Unload { slot } => self.unload(slot)?,
                ToWorker::Drain { slot, .. } => {
                    // It takes over no connections.
                    self.unload(slot)?;
                    self.control.send(&FromWorker::Drained { slot });
                }
                ToWorker::Confirm { slot } => self.moves.confirm(slot),
                ToWorker::Export { slot } => self.export(slot, descriptors)?,
                ToWorker::Stats => self.bridge.stats().map_err(broken)?,
                // The kernel holds a JVM to its permissions; it takes over no connections.
                ToWorker::Permit { .. } | ToWorker::Sockets { .. } | ToWorker::Order { .. } => {}
                ToWorker::Node { info } => self.bridge.node(&info).map_err(broken)?,
                ToWorker::Kept { slot, module, messages } => drop(self.kept.insert(slot, (module, messages))),
                ToWorker::Tell { slot, message } => self.tell(slot, message),
                ToWorker::Lane => self.lanes.add(&mut self.memory, descriptors)?,
                ToWorker::MediaStarted { job } => media::desk().handle_started(job, descriptors),
                ToWorker::MediaEnded { job, outcome, detail } => media::desk().handle_ended(job, outcome, detail),
                ToWorker::Shutdown => {
                    self.shutdown()?;
                    return Ok(Next::End);
                }
            }
            self.control.flush();
        }
    }

    /// Puts a control message into the inbox of a module, and says whether it is there.
    fn tell(&mut self, slot: ModuleSlot, message: ControlMessage) {
        let seq = message.seq;
        let port = self.ports.get(&slot).and_then(|number| control::port(*number));
        let verdict = port.map_or(TellVerdict::NotLoaded, |port| port.tell(message));
        self.control.send(&FromWorker::Told { slot, seq, verdict });
        // Java is to look for it.
        self.is_stale = true;
    }

    /// Writes what a module says, and then what kv has of it.
    fn export(&mut self, slot: ModuleSlot, descriptors: Vec<OwnedFd>) -> Result<(), ServeError> {
        let file = descriptors.into_iter().next().map(File::from);
        let is_asked = file.is_some_and(|file| self.moves.ask(slot, file));
        let refusal = if is_asked {
            // One that stands still has seen all that was there for it.
            self.drain()?;
            let said = self.bridge.export(slot).map_err(broken)?;
            self.is_stale = true;
            let injected = self.bridge.injected().map_err(broken)?;
            self.inject(injected);
            self.write_state(slot, said).err()
        } else {
            Some(not_running())
        };
        self.control.send(&FromWorker::Exported { slot, refusal });
        Ok(())
    }

    fn write_state(&mut self, slot: ModuleSlot, said: Result<Option<Vec<u8>>, Refusal>) -> Result<(), Refusal> {
        let (file, owner) = self.moves.answer(slot).ok_or_else(not_running)?;
        let said = Said { packet: said?, server: None };
        state::write(file, &owner.name, owner.schema, &owner.kv, &said)
    }

    fn end_moves(&mut self, slot: ModuleSlot) {
        if let Some(text) = self.moves.end(slot) {
            self.control.send_log(Some(slot), vec![Line { level: LogLevel::Warn, text }]);
        }
    }

    /// Gives kv the state that a module is to begin with, if there is one. Returns what the module itself is told.
    fn give_state(&mut self, frame: &ToWorker, state: Option<File>) -> Result<Option<Vec<u8>>, Refusal> {
        let ToWorker::Load { slot, module, limits, state_schema, .. } = frame else { return Ok(None) };
        self.end_moves(*slot);
        let (name, schema) = (module.name.clone(), *state_schema);
        let Some(kv) = kv::store_of(&name, schema) else {
            let detail = "the node has no kv state for bundles";
            return state.map_or(Ok(None), |_| Err(Refusal::new(RefusalKind::NodeFailed, detail)));
        };
        let said = self.moves.begin(*slot, Owner { name, schema, kv }, state, limits, (true, false))?;
        Ok(said.packet.filter(|said| !said.is_empty()))
    }

    fn load(&mut self, frame: &ToWorker, descriptors: Vec<OwnedFd>) -> Result<(), ServeError> {
        let ToWorker::Load { slot, module, properties, limits, state_schema, blocks, parts, .. } = frame else {
            return Ok(());
        };
        let (mut file, mut state) = (None, None);
        for (kind, descriptor) in parts.iter().zip(descriptors) {
            match kind {
                PartKind::Packet => file = Some(File::from(descriptor)),
                PartKind::State => state = Some(File::from(descriptor)),
                PartKind::Server | PartKind::Tls | PartKind::ListenerV4 | PartKind::ListenerV6 => {}
            }
        }
        let last = self.outbox.renew_log(*slot);
        self.control.send_log(Some(*slot), last);
        let kept = self.kept.remove(slot).filter(|(name, _)| *name == module.name);
        let messages = kept.map(|(_, messages)| messages).unwrap_or_default();
        match self.give_state(frame, state).and_then(|said| self.open(file, messages, said)) {
            Ok((jar, control)) => {
                self.ports.insert(*slot, control);
                let state_schema = *state_schema;
                let load =
                    BundleLoad { slot: *slot, module, jar: &jar, properties, limits, state_schema, blocks, control };
                self.bridge.load(&load).inspect_err(|_| bundles::remove(&jar)).map_err(broken)
            }
            Err(refusal) => {
                // As with code that does not load, what was there before goes.
                self.unload(*slot)?;
                self.control.send(&FromWorker::Failed { slot: *slot, refusal });
                Ok(())
            }
        }
    }

    /// Returns where the bundle of a load is, and the number by which Java knows its port and its state, and closes both.
    fn open(
        &mut self,
        bundle: Option<File>,
        messages: Vec<ControlMessage>,
        said: Option<Vec<u8>>,
    ) -> Result<(PathBuf, i64), Refusal> {
        let missing = || Refusal::new(RefusalKind::NodeFailed, "a load frame came without a bundle");
        let jar = self.bundles.add(bundle.ok_or_else(missing)?)?;
        let control = control::open(messages);
        if let Some(said) = said {
            states::give(control, said).inspect_err(|_| bundles::remove(&jar))?;
        }
        Ok((jar, control))
    }

    fn unload(&mut self, slot: ModuleSlot) -> Result<(), ServeError> {
        self.ports.remove(&slot);
        self.end_moves(slot);
        self.drain()?;
        self.bridge.unload(slot).map_err(broken)
    }

    /// Answers the packets that are under way, before the set of modules changes.
    fn drain(&mut self) -> Result<(), ServeError> {
        let mut answered = 0;
        while answered < self.lanes.packets_max() {
            match self.packets()? {
                0 => break,
                count => answered += count,
            }
        }
        Ok(())
    }

    fn shutdown(&mut self) -> Result<(), ServeError> {
        self.drain()?;
        self.bridge.shutdown(limits::JAVA_SHUTDOWN_MAX).map_err(broken)?;
        self.outbox.wake();
        self.java(true)?;
        self.lanes.publish(false)
    }
}

fn not_running() -> Refusal {
    Refusal::new(RefusalKind::NotRunning, "the module does not run at the moment")
}

fn first_module(modules: u64) -> Option<ModuleSlot> {
    let slot = u8::try_from(modules.trailing_zeros()).ok()?;
    (usize::from(slot) < MODULES_PER_CONTAINER_MAX).then_some(ModuleSlot(slot))
}

/// Says on standard error how the JVM ended, and returns the code to end with.
fn last_words(end: End, header: &'static [AtomicU64]) -> i32 {
    let activity = netserv_wire::container::ring::activity(header);
    let who = match activity.module {
        Some(slot) => format!(" while module slot {} had a packet or a timer", slot.0),
        None => String::new(),
    };
    match end {
        End::Exit(STALLED) => {
            // The Java host said why.
            STALLED
        }
        End::Exit(code) => {
            say(&format!("the JVM ended with code {code}{who}: Java code called System.exit or Runtime.halt"));
            if code == 0 { EXITED } else { code }
        }
        End::Abort => {
            say(&format!("the JVM found itself broken{who}"));
            EXITED
        }
    }
}

/// The code with which the Java host ends a process whose module does not stop.
const STALLED: i32 = 70;
/// The code of a worker that Java code ended as if all were well.
const EXITED: i32 = 71;

fn say(text: &str) {
    // Without a standard error, there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("netserv-jvm: {text}\n").as_bytes());
}
