// SPDX-License-Identifier: Apache-2.0
//! The packet path of one receive queue: driver → filters → rings → verdicts → driver.
//!
//! One thread runs it. It never waits for the control loop: it looks at its commands between batches.
//! Invariant: every packet that the driver gave is finished exactly once, with a verdict or a counted reason.

mod pending;
mod port;
mod seats;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netserv_container::HostRing;
use netserv_dataplane::{Batch, Driver, DriverError, Final, Packet};
use netserv_model::command::{FilterId, ModuleSlot};
use netserv_model::verdict::FailureMode;
use netserv_model::{DropReason, Filter, Flow, ModuleRef, UserId, Verdict, limits};
use netserv_wire::container::ring::{Answer, Ingress, RING_ENTRIES, Returned};
use netserv_wire::ip::IpView;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use pending::{Held, Pending, Stop};
use port::Port;
use seats::{SeatId, Seats};
use trace::Tracer;

#[allow(unused_imports, reason = "the API follows")]
pub use trace::{Tap, TapCounts, TraceId, Traced};

use crate::packet_counters::PacketCounters;

/// How long the loop sleeps at most while nothing happens; then it looks whether a module hangs.
const IDLE_SLEEP: Duration = Duration::from_millis(250);
/// How often the watchdog looks.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);
/// A watchdog that did not look for longer than this trusts nobody's clock, its own included.
const WATCH_GAP_MAX: Duration = Duration::from_secs(1);
/// How long the loop sleeps at most while containers hold packets, so that a stall is seen.
const BUSY_SLEEP: Duration = Duration::from_millis(20);
/// How many full batches are taken in before a sleeping container is woken for them.
const UNWOKEN_TURNS_MAX: u32 = 3;

/// What the control loop wants of the packet loop.
pub enum PacketCommand {
    /// Packets may go to this user's container.
    AddContainer {
        /// The container's user.
        user: UserId,
        /// Tells the user's containers apart, which follow each other.
        generation: u64,
        /// The host's side of its ring.
        ring: Box<HostRing>,
        /// Source addresses that its packets may have beside their own.
        prefixes: Vec<IpNet>,
    },
    /// The container is gone; packets that it holds get their failure verdict.
    RemoveContainer {
        /// The container's user.
        user: UserId,
        /// Why its packets are lost to it.
        reason: DropReason,
    },
    /// Source addresses that a user's packets may have beside their own.
    SetPrefixes {
        /// The container's user.
        user: UserId,
        /// Its prefixes.
        prefixes: Vec<IpNet>,
    },
    /// Rules that come and go together.
    ChangeRules {
        /// Rules to add.
        add: Vec<(FilterId, Rule)>,
        /// Rules to take away.
        remove: Vec<FilterId>,
    },
    /// A module's longest call, for the watchdog. Give it before the module is loaded.
    SetCallTime {
        /// The container's user.
        user: UserId,
        /// The module's place.
        slot: ModuleSlot,
        /// How long a call may take.
        call: Duration,
    },
    /// A module is loaded, or is no more; while it is not, it cannot answer for its packets.
    SetLoaded {
        /// The container's user.
        user: UserId,
        /// The module's place.
        slot: ModuleSlot,
        /// Whether it is loaded.
        loaded: bool,
    },
    /// Follow packets.
    Trace(Tap),
    /// Follow them no longer.
    EndTrace(TraceId),
    /// End the loop; the driver takes its rules away.
    Stop,
}

/// One installed filter.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Whose module.
    pub user: UserId,
    /// The module's place.
    pub slot: ModuleSlot,
    /// The module, for people who trace packets.
    pub module: Option<ModuleRef>,
    /// Which packets.
    pub filter: Filter,
    /// What happens to them while the module cannot say.
    pub on_failure: FailureMode,
}

/// What the packet loop tells the control loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// A container has not answered for longer than its module may take.
    Stalled {
        /// The container's user.
        user: UserId,
        /// Which of the user's containers.
        generation: u64,
        /// The module that it was in.
        slot: Option<ModuleSlot>,
    },
    /// A container broke the rules of the ring.
    RingBroken {
        /// The container's user.
        user: UserId,
        /// Which of the user's containers.
        generation: u64,
        /// How.
        detail: String,
    },
    /// The driver failed for good.
    DriverFailed {
        /// Why.
        detail: String,
    },
}

/// The loop and everything that it owns.
pub struct PacketLoop {
    driver: Box<dyn Driver>,
    rules: BTreeMap<FilterId, Rule>,
    /// The rules as packets meet them, in their order.
    matches: Vec<Match>,
    seats: Seats,
    pending: Pending,
    counters: Arc<PacketCounters>,
    commands: Receiver<PacketCommand>,
    wake: OwnedFd,
    report: Report,
    watched_at: Instant,
    /// When the current batch came, on the node's monotonic clock.
    now_ns: u64,
    /// Turns in a row for which no container was woken.
    unwoken: u32,
    tracer: Tracer,
}

/// A rule as packets meet it.
struct Match {
    filter: Filter,
    stop: Stop,
}

/// Tells the control loop; false if that was not possible and the loop is to try again.
pub type Report = Arc<dyn Fn(PacketEvent) -> bool + Send + Sync>;

impl PacketLoop {
    /// Builds the loop. `wake` is an eventfd that is written after each command.
    pub fn new(
        driver: Box<dyn Driver>,
        counters: Arc<PacketCounters>,
        commands: Receiver<PacketCommand>,
        wake: OwnedFd,
        report: Report,
    ) -> PacketLoop {
        PacketLoop {
            driver,
            rules: BTreeMap::new(),
            matches: Vec::new(),
            seats: Seats::default(),
            pending: Pending::default(),
            counters,
            commands,
            wake,
            report,
            watched_at: Instant::now(),
            now_ns: 0,
            unwoken: 0,
            tracer: Tracer::default(),
        }
    }

    /// Runs until told to stop.
    ///
    /// # Errors
    /// The driver failed for good.
    pub fn run(mut self) -> Result<(), DriverError> {
        let mut batch = Batch::new();
        while !self.take_commands() {
            match self.turn(&mut batch) {
                Ok(true) => {}
                Ok(false) => self.sleep(),
                Err(error) => {
                    self.release_everything();
                    return Err(error);
                }
            }
        }
        self.release_everything();
        Ok(())
    }

    /// Moves what there is to be moved; returns whether there was anything.
    fn turn(&mut self, batch: &mut Batch) -> Result<bool, DriverError> {
        self.driver.receive(batch, Some(Duration::ZERO))?;
        if !batch.is_empty() {
            self.now_ns = monotonic_nanos();
        }
        for packet in batch.iter() {
            self.admit(&packet);
        }
        let returned = self.take_returned();
        self.wake_containers(batch.is_full());
        self.driver.flush()?;
        self.watch(Instant::now());
        Ok(!batch.is_empty() || returned > 0)
    }

    /// Lets containers see their packets, and wakes those that sleep.
    ///
    /// After a full batch there is most likely another, so for some turns only those see them that are awake: a wake-up
    /// costs as much as many packets, and more where it takes this thread's core.
    fn wake_containers(&mut self, more: bool) {
        let later = more && self.unwoken < UNWOKEN_TURNS_MAX;
        self.unwoken = if later { self.unwoken + 1 } else { 0 };
        for port in self.seats.ports_mut() {
            if later { port.ring.publish() } else { port.ring.wake() }
        }
    }

    /// Carries out what the control loop wants; returns whether the loop is to end.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(PacketCommand::Stop) | Err(TryRecvError::Disconnected) => return true,
                Ok(command) => self.carry_out(command),
                Err(TryRecvError::Empty) => return false,
            }
        }
    }

    fn carry_out(&mut self, command: PacketCommand) {
        match command {
            PacketCommand::AddContainer { user, generation, ring, prefixes } => {
                let seat = self.seats.of(&user);
                self.remove_container(seat, DropReason::ContainerGone);
                self.tracer.forget_modules(&user);
                self.seats.put(seat, Port::new(generation, *ring, prefixes));
            }
            PacketCommand::RemoveContainer { user, reason } => {
                let seat = self.seats.of(&user);
                self.remove_container(seat, reason);
                self.tracer.forget_modules(&user);
            }
            PacketCommand::SetPrefixes { user, prefixes } => {
                if let Some(port) = self.seats.port_of(&user) {
                    port.prefixes = prefixes;
                }
            }
            PacketCommand::ChangeRules { add, remove } => {
                self.rules.extend(add);
                for id in remove {
                    self.rules.remove(&id);
                }
                self.matches = self.rules.values().map(|rule| rule.as_match(&mut self.seats)).collect();
            }
            PacketCommand::SetCallTime { user, slot, call } => {
                if let Some(port) = self.seats.port_of(&user) {
                    port.call_times.insert(slot, call);
                }
            }
            PacketCommand::SetLoaded { user, slot, loaded } => {
                self.tracer.note_module(&user, slot, loaded);
                if let Some(port) = self.seats.port_of(&user) {
                    port.loaded = if loaded { port.loaded | bit(slot) } else { port.loaded & !bit(slot) };
                }
            }
            PacketCommand::Trace(tap) => self.tracer.add(tap),
            PacketCommand::EndTrace(id) => self.tracer.remove(id),
            PacketCommand::Stop => {}
        }
    }

    /// Takes a packet from the driver and sends it to the first container on its way.
    fn admit(&mut self, packet: &Packet<'_>) {
        self.counters.received();
        let Ok(view) = IpView::parse(packet.bytes) else {
            self.counters.unparsed();
            self.trace_unwanted(packet, None);
            return self.driver.finish(packet.id, Final::Pass);
        };
        let flow = view.flow();
        let Some((at, rest)) = self.way(&flow) else {
            self.counters.unmatched();
            self.trace_unwanted(packet, Some(&flow));
            return self.driver.finish(packet.id, Final::Pass);
        };
        let bytes = if rest.is_empty() { Vec::new() } else { packet.bytes.to_vec() };
        let interface = packet.interface.0;
        let ends = (flow.source, flow.destination);
        let trace = self.begin_trace(packet, &flow);
        let held = Held { packet: packet.id, ends, interface, at, rest, changed: false, bytes, trace };
        self.enter(held, packet.bytes);
    }

    /// Returns the containers that want to see packets of a flow, in the order in which they were first wanted: the
    /// first one and the others.
    fn way(&self, flow: &Flow) -> Option<(Stop, Vec<Stop>)> {
        let mut stops = self.matches.iter().filter(|one| one.filter.matches(flow)).map(|one| one.stop);
        let (mut first, mut rest) = (stops.next()?, Vec::<Stop>::new());
        for stop in stops {
            let mut known = std::iter::once(&mut first).chain(&mut rest);
            match known.find(|known| known.seat == stop.seat) {
                Some(known) => {
                    known.modules |= stop.modules;
                    known.closed |= stop.closed;
                }
                None => rest.push(stop),
            }
        }
        Some((first, rest))
    }

    /// Puts a packet into the ring of the container that it is at, or on, until one takes it or its way ends.
    fn enter(&mut self, mut held: Held, bytes: &[u8]) {
        loop {
            let Err(reason) = self.offer(&mut held, bytes) else {
                self.counters.shown();
                self.note_entered(&mut held);
                return self.pending.insert(held);
            };
            self.counters.unseen(reason);
            self.note_failure(&mut held, reason);
            if held.at.on_failure() == FailureMode::Closed {
                return self.drop(&held, reason);
            }
            if held.rest.is_empty() {
                return self.pass(&held, bytes);
            }
            held.at = held.rest.remove(0);
        }
    }

    fn offer(&mut self, held: &mut Held, bytes: &[u8]) -> Result<(), DropReason> {
        let port = self.seats.port(held.at.seat).ok_or(DropReason::ContainerGone)?;
        let missing = held.at.modules & !port.loaded;
        // A module that is down and fails open must not keep the others from seeing the packet.
        if missing & held.at.closed != 0 || missing == held.at.modules {
            return Err(DropReason::Trapped);
        }
        held.at.modules &= port.loaded;
        if self.pending.is_full() {
            return Err(DropReason::RingFull);
        }
        let ingress = Ingress { interface: held.interface, timestamp_ns: self.now_ns };
        port.offer(bytes, ingress, held.at.modules, self.pending.next_cookie())
    }

    fn pass(&mut self, held: &Held, bytes: &[u8]) {
        let verdict = if held.changed { Final::Replace(bytes) } else { Final::Pass };
        self.counters.finished(if held.changed { Verdict::Modified } else { Verdict::Pass });
        self.tell_trace(held, verdict, None);
        self.driver.finish(held.packet, verdict);
    }

    fn drop(&mut self, held: &Held, reason: DropReason) {
        self.counters.dropped(reason);
        self.tell_trace(held, Final::Drop, Some(reason));
        self.driver.finish(held.packet, Final::Drop);
    }

    /// Takes what containers gave back, at most one batch from each, so that none holds the others up.
    fn take_returned(&mut self) -> usize {
        let mut taken = 0;
        for seat in self.seats.ids() {
            // Out of its seat while it is worked on, so that the packet can go on to another container.
            let Some(mut port) = self.seats.take(seat) else { continue };
            taken += self.take_from(seat, &mut port, limits::BATCH_PACKETS_MAX);
            self.seats.put(seat, port);
        }
        taken
    }

    /// Takes at most so many answers and injected packets from a container; returns how many there were.
    fn take_from(&mut self, seat: SeatId, port: &mut Port, at_most: usize) -> usize {
        for taken in 0..at_most {
            match port.ring.pop() {
                Ok(Some(Returned::Answer { cookie, answer, bytes, module, .. })) => {
                    self.settle(&port.prefixes, cookie, (answer, module), bytes);
                }
                Ok(Some(Returned::Injected { bytes, module })) => {
                    let may = port.injections.take(Instant::now());
                    let sent = self.inject(&port.prefixes, bytes, may);
                    self.trace_made(seat, module, bytes, sent);
                }
                Ok(None) => {
                    if taken > 0 {
                        port.answered(Instant::now());
                    }
                    return taken;
                }
                Err(error) => {
                    port.broken = true;
                    if !port.reported {
                        let (user, detail) = (self.seats.user(seat).clone(), error.to_string());
                        let event = PacketEvent::RingBroken { user, generation: port.generation, detail };
                        port.reported = (self.report)(event);
                    }
                    return taken;
                }
            }
        }
        port.answered(Instant::now());
        at_most
    }

    fn settle(&mut self, prefixes: &[IpNet], cookie: u64, said: (Answer, Option<ModuleSlot>), bytes: &[u8]) {
        let Some(mut held) = self.pending.remove(cookie) else { return };
        let (answer, module) = said;
        self.note_answer(&mut held, answer, module);
        match answer {
            Answer::Pass => self.go_on(held),
            Answer::Drop => self.drop(&held, DropReason::Module),
            Answer::Failed => self.fail(held, DropReason::Trapped),
            Answer::Modified => match judge(bytes, Some(held.ends), prefixes) {
                Err(reason) => self.drop(&held, reason),
                Ok(ends) => {
                    (held.ends, held.changed) = (ends, true);
                    held.bytes.clear();
                    held.bytes.extend_from_slice(bytes);
                    self.go_on(held);
                }
            },
        }
    }

    fn go_on(&mut self, mut held: Held) {
        let bytes = std::mem::take(&mut held.bytes);
        if held.rest.is_empty() {
            return self.pass(&held, &bytes);
        }
        held.at = held.rest.remove(0);
        if held.changed || !held.rest.is_empty() {
            held.bytes.clone_from(&bytes);
        }
        self.enter(held, &bytes);
    }

    /// Gives a packet that its container did not judge its failure verdict.
    fn fail(&mut self, mut held: Held, reason: DropReason) {
        self.counters.unseen(reason);
        self.note_failure(&mut held, reason);
        match held.at.on_failure() {
            FailureMode::Open => self.go_on(held),
            FailureMode::Closed => self.drop(&held, reason),
        }
    }

    fn inject(&mut self, prefixes: &[IpNet], bytes: &[u8], may: bool) -> Result<(), DropReason> {
        // A packet that a module makes has no ends of its own: only the user's prefixes count.
        let judged = if may { judge(bytes, None, prefixes) } else { Err(DropReason::TooMany) };
        let sent = judged.and_then(|_| self.driver.inject(bytes).map_err(|_| DropReason::SendFailed));
        match sent {
            Ok(()) => self.counters.injected(),
            Err(reason) => self.counters.refused(reason),
        }
        sent
    }

    fn remove_container(&mut self, seat: SeatId, reason: DropReason) {
        let Some(mut port) = self.seats.take(seat) else { return };
        // What it answered before its end counts. It may still run, so there must be an end to that.
        port.reported = true;
        self.take_from(seat, &mut port, RING_ENTRIES);
        for outstanding in port.ring.take_outstanding() {
            if let Some(held) = self.pending.remove(outstanding.cookie) {
                self.fail(held, reason);
            }
        }
    }

    /// Reports containers that hang.
    fn watch(&mut self, now: Instant) {
        let since = now.duration_since(self.watched_at);
        if since < WATCH_INTERVAL {
            return;
        }
        self.watched_at = now;
        self.counters.set_driver(self.driver.counters());
        for (user, port) in self.seats.users_mut() {
            if since > WATCH_GAP_MAX {
                // This thread itself stood still, and so, most likely, did everything else.
                port.give_time(now);
            }
            if let Some(slot) = port.stalled(now)
                && !port.reported
            {
                let event = PacketEvent::Stalled { user: user.clone(), generation: port.generation, slot };
                port.reported = (self.report)(event);
            }
        }
    }

    fn sleep(&mut self) {
        let mut ports = self.seats.ports_mut();
        let ready = ports.any(|port| !port.reported && !port.broken && !port.ring.prepare_sleep());
        drop(ports);
        let woken =
            if ready { Vec::new() } else { self.wait(if self.pending.is_empty() { IDLE_SLEEP } else { BUSY_SLEEP }) };
        let mut woken = woken.into_iter();
        for port in self.seats.ports_mut() {
            match woken.next() {
                Some(true) => port.ring.awake(),
                Some(false) | None => port.ring.cancel_sleep(),
            }
        }
    }

    /// Waits until there is something to do, or for some time; returns which containers have woken this thread.
    fn wait(&self, wait: Duration) -> Vec<bool> {
        let driver = self.driver.poll_fd();
        let wait = if driver.is_some() { wait } else { wait.min(BLIND_SLEEP) };
        let rings = self.seats.ports().map(|port| port.ring.as_fd());
        let fds = std::iter::once(self.wake.as_fd()).chain(driver).chain(rings);
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout =
            Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(1), tv_nsec: i64::from(wait.subsec_nanos()) };
        // An interrupted or failed poll only means that the loop looks again.
        let _ = poll(&mut fds, Some(&timeout));
        let readable = |fd: &PollFd<'_>| !fd.revents().is_empty();
        if readable(&fds[0]) {
            drain(&self.wake);
        }
        fds[1 + usize::from(driver.is_some())..].iter().map(readable).collect()
    }

    fn release_everything(&mut self) {
        for seat in self.seats.ids() {
            self.remove_container(seat, DropReason::ContainerGone);
        }
        if let Err(error) = self.driver.flush() {
            tracing::warn!(%error, "the last verdicts could not be sent");
        }
        self.counters.set_driver(self.driver.counters());
    }
}

impl Rule {
    fn as_match(&self, seats: &mut Seats) -> Match {
        let modules = bit(self.slot);
        let closed = if self.on_failure == FailureMode::Closed { modules } else { 0 };
        Match { filter: self.filter.clone(), stop: Stop { seat: seats.of(&self.user), modules, closed } }
    }
}

/// How long the loop sleeps at most with a driver that cannot be waited for.
const BLIND_SLEEP: Duration = Duration::from_millis(1);

/// Returns source and destination of a packet that a module changed or made, if the packet may be sent.
///
/// `before` is what they were. A source that is not the user's may stay only on a packet that goes where it went, or to
/// the user: sent to anybody else, it would be a packet in another's name.
fn judge(bytes: &[u8], before: Option<(IpAddr, IpAddr)>, prefixes: &[IpNet]) -> Result<(IpAddr, IpAddr), DropReason> {
    let view = IpView::parse(bytes).map_err(|_| DropReason::BadVerdict)?;
    if view.bytes().len() != bytes.len() {
        // The driver would not send it.
        return Err(DropReason::BadVerdict);
    }
    let (source, destination) = (view.source(), view.destination());
    let own = |address: IpAddr| prefixes.iter().any(|prefix| prefix.contains(&address));
    let kept = before.is_some_and(|(from, to)| from == source && (to == destination || own(destination)));
    if kept || own(source) { Ok((source, destination)) } else { Err(DropReason::SourceRefused) }
}

/// Returns the bit of a module in packet descriptors.
fn bit(slot: ModuleSlot) -> u64 {
    1 << (slot.0 & 63)
}

fn monotonic_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

fn drain(wake: &OwnedFd) {
    let mut count = [0_u8; 8];
    // Non-blocking: nothing to read is as good as the count.
    let _ = rustix::io::read(wake, &mut count);
}
