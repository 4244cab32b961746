// SPDX-License-Identifier: Apache-2.0
//! The packet path of one receive queue: driver → filters → rings → verdicts → driver.
//!
//! One thread runs it. It never waits for the control loop: it looks at its commands between batches.
//! Invariant: every packet that the driver gave is finished exactly once, with a verdict or a counted reason.

mod pending;
mod port;
#[cfg(test)]
mod tests;

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
use netserv_model::{DropReason, Filter, Flow, UserId, Verdict, limits};
use netserv_wire::container::ring::{Answer, Ingress, RING_ENTRIES, Returned};
use netserv_wire::ip::IpView;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use pending::{Held, Pending, Stop};
use port::Port;

use crate::packet_counters::PacketCounters;

/// How long the loop sleeps at most while nothing happens; then it looks whether a module hangs.
const IDLE_SLEEP: Duration = Duration::from_millis(250);
/// How often the watchdog looks.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);
/// A watchdog that did not look for longer than this trusts nobody's clock, its own included.
const WATCH_GAP_MAX: Duration = Duration::from_secs(1);
/// How long the loop sleeps at most while containers hold packets, so that a stall is seen.
const BUSY_SLEEP: Duration = Duration::from_millis(20);

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
    ports: BTreeMap<UserId, Port>,
    pending: Pending,
    counters: Arc<PacketCounters>,
    commands: Receiver<PacketCommand>,
    wake: OwnedFd,
    report: Report,
    watched_at: Instant,
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
        let (rules, ports, pending) = (BTreeMap::new(), BTreeMap::new(), Pending::default());
        let watched_at = Instant::now();
        PacketLoop { driver, rules, ports, pending, counters, commands, wake, report, watched_at }
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
        for packet in batch.iter() {
            self.admit(&packet);
        }
        let returned = self.take_returned();
        for port in self.ports.values_mut() {
            port.ring.wake();
        }
        self.driver.flush()?;
        self.watch(Instant::now());
        Ok(!batch.is_empty() || returned > 0)
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
                self.remove_container(&user, DropReason::ContainerGone);
                self.ports.insert(user, Port::new(generation, *ring, prefixes));
            }
            PacketCommand::RemoveContainer { user, reason } => self.remove_container(&user, reason),
            PacketCommand::SetPrefixes { user, prefixes } => {
                if let Some(port) = self.ports.get_mut(&user) {
                    port.prefixes = prefixes;
                }
            }
            PacketCommand::ChangeRules { add, remove } => {
                self.rules.extend(add);
                for id in remove {
                    self.rules.remove(&id);
                }
            }
            PacketCommand::SetCallTime { user, slot, call } => {
                if let Some(port) = self.ports.get_mut(&user) {
                    port.call_times.insert(slot, call);
                }
            }
            PacketCommand::SetLoaded { user, slot, loaded } => {
                if let Some(port) = self.ports.get_mut(&user) {
                    port.loaded = if loaded { port.loaded | bit(slot) } else { port.loaded & !bit(slot) };
                }
            }
            PacketCommand::Stop => {}
        }
    }

    /// Takes a packet from the driver and sends it to the first container on its way.
    fn admit(&mut self, packet: &Packet<'_>) {
        self.counters.received();
        let Ok(view) = IpView::parse(packet.bytes) else {
            self.counters.unparsed();
            return self.driver.finish(packet.id, Final::Pass);
        };
        let flow = view.flow();
        let mut way = self.way(&flow);
        if way.is_empty() {
            self.counters.unmatched();
            return self.driver.finish(packet.id, Final::Pass);
        }
        let at = way.remove(0);
        let bytes = if way.is_empty() { Vec::new() } else { packet.bytes.to_vec() };
        let interface = packet.interface.0;
        let ends = (flow.source, flow.destination);
        let held = Held { packet: packet.id, ends, interface, at, rest: way, changed: false, bytes };
        self.enter(held, packet.bytes);
    }

    /// Returns the containers that want to see packets of a flow, in the order in which they were first wanted.
    fn way(&self, flow: &Flow) -> Vec<Stop> {
        let mut stops: Vec<Stop> = Vec::new();
        for rule in self.rules.values().filter(|rule| rule.filter.matches(flow)) {
            let modules = bit(rule.slot);
            let closed = if rule.on_failure == FailureMode::Closed { modules } else { 0 };
            match stops.iter_mut().find(|stop| stop.user == rule.user) {
                Some(stop) => {
                    stop.modules |= modules;
                    stop.closed |= closed;
                }
                None => stops.push(Stop { user: rule.user.clone(), modules, closed }),
            }
        }
        stops
    }

    /// Puts a packet into the ring of the container that it is at, or on, until one takes it or its way ends.
    fn enter(&mut self, mut held: Held, bytes: &[u8]) {
        loop {
            let Err(reason) = self.offer(&mut held, bytes) else {
                self.counters.shown();
                return self.pending.insert(held);
            };
            self.counters.unseen(reason);
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
        let port = self.ports.get_mut(&held.at.user).ok_or(DropReason::ContainerGone)?;
        let missing = held.at.modules & !port.loaded;
        // A module that is down and fails open must not keep the others from seeing the packet.
        if missing & held.at.closed != 0 || missing == held.at.modules {
            return Err(DropReason::Trapped);
        }
        held.at.modules &= port.loaded;
        if self.pending.is_full() {
            return Err(DropReason::RingFull);
        }
        let ingress = Ingress { interface: held.interface, timestamp_ns: monotonic_nanos() };
        port.offer(bytes, ingress, held.at.modules, self.pending.next_cookie())
    }

    fn pass(&mut self, held: &Held, bytes: &[u8]) {
        let verdict = if held.changed { Final::Replace(bytes) } else { Final::Pass };
        self.counters.finished(if held.changed { Verdict::Modified } else { Verdict::Pass });
        self.driver.finish(held.packet, verdict);
    }

    fn drop(&mut self, held: &Held, reason: DropReason) {
        self.counters.dropped(reason);
        self.driver.finish(held.packet, Final::Drop);
    }

    /// Takes what containers gave back, at most one batch from each, so that none holds the others up.
    fn take_returned(&mut self) -> usize {
        let users: Vec<UserId> = self.ports.keys().cloned().collect();
        let mut taken = 0;
        for user in users {
            // Out of the map while it is worked on, so that the packet can go on to another container.
            let Some(mut port) = self.ports.remove(&user) else { continue };
            taken += self.take_from(&user, &mut port, limits::BATCH_PACKETS_MAX);
            self.ports.insert(user, port);
        }
        taken
    }

    /// Takes at most so many answers and injected packets from a container; returns how many there were.
    fn take_from(&mut self, user: &UserId, port: &mut Port, at_most: usize) -> usize {
        for taken in 0..at_most {
            match port.ring.pop() {
                Ok(Some(Returned::Answer { cookie, answer, bytes, .. })) => {
                    self.settle(&port.prefixes, cookie, answer, bytes);
                }
                Ok(Some(Returned::Injected { bytes, .. })) => {
                    let may = port.injections.take(Instant::now());
                    self.inject(&port.prefixes, bytes, may);
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
                        let (user, generation, detail) = (user.clone(), port.generation, error.to_string());
                        port.reported = (self.report)(PacketEvent::RingBroken { user, generation, detail });
                    }
                    return taken;
                }
            }
        }
        port.answered(Instant::now());
        at_most
    }

    fn settle(&mut self, prefixes: &[IpNet], cookie: u64, answer: Answer, bytes: &[u8]) {
        let Some(mut held) = self.pending.remove(cookie) else { return };
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
    fn fail(&mut self, held: Held, reason: DropReason) {
        self.counters.unseen(reason);
        match held.at.on_failure() {
            FailureMode::Open => self.go_on(held),
            FailureMode::Closed => self.drop(&held, reason),
        }
    }

    fn inject(&mut self, prefixes: &[IpNet], bytes: &[u8], may: bool) {
        // A packet that a module makes has no ends of its own: only the user's prefixes count.
        let judged = if may { judge(bytes, None, prefixes) } else { Err(DropReason::TooMany) };
        let sent = judged.and_then(|_| self.driver.inject(bytes).map_err(|_| DropReason::SendFailed));
        match sent {
            Ok(()) => self.counters.injected(),
            Err(reason) => self.counters.refused(reason),
        }
    }

    fn remove_container(&mut self, user: &UserId, reason: DropReason) {
        let Some(mut port) = self.ports.remove(user) else { return };
        // What it answered before its end counts. It may still run, so there must be an end to that.
        port.reported = true;
        self.take_from(user, &mut port, RING_ENTRIES);
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
        for (user, port) in &mut self.ports {
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
        let mut awake = self.ports.values_mut().filter(|port| !port.reported && !port.broken);
        let ready = awake.any(|port| !port.ring.prepare_sleep());
        if !ready {
            let wait = if self.pending.is_empty() { IDLE_SLEEP } else { BUSY_SLEEP };
            self.wait(wait);
        }
        for port in self.ports.values_mut() {
            port.ring.awake();
        }
    }

    fn wait(&self, wait: Duration) {
        let driver = self.driver.poll_fd();
        let wait = if driver.is_some() { wait } else { wait.min(BLIND_SLEEP) };
        let fds =
            std::iter::once(self.wake.as_fd()).chain(driver).chain(self.ports.values().map(|port| port.ring.as_fd()));
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout =
            Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(1), tv_nsec: i64::from(wait.subsec_nanos()) };
        // An interrupted or failed poll only means that the loop looks again.
        let _ = poll(&mut fds, Some(&timeout));
        drain(&self.wake);
    }

    fn release_everything(&mut self) {
        let users: Vec<UserId> = self.ports.keys().cloned().collect();
        for user in users {
            self.remove_container(&user, DropReason::ContainerGone);
        }
        if let Err(error) = self.driver.flush() {
            tracing::warn!(%error, "the last verdicts could not be sent");
        }
        self.counters.set_driver(self.driver.counters());
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
