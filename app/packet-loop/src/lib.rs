// SPDX-License-Identifier: Apache-2.0
//! The packet path of one lane, the receive queues of one packet thread: driver → filters → rings → verdicts → driver.
//!
//! One thread runs a lane. It never waits for the control loop: it looks at its commands between batches.
//! Invariant: every packet that the driver gave is finished exactly once, with a verdict or a counted reason.
//! Invariant: a container that sleeps and holds nothing is not visited; it writes its eventfd when it has something.

pub mod budget;
mod carry_out;
mod command;
pub mod counters;
mod event;
mod eventfds;
mod in_flight;
mod lanes;
pub mod limits;
pub mod meters;
mod module_filter;
mod pacing;
mod path;
mod real_time;
#[cfg(test)]
mod tests;
pub mod thread;
mod traces;
mod workers;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use netserv_dataplane::{Batch, Driver, DriverError};
use netserv_model::effect::{FilterId, ModuleSlot};
use netserv_model::{DropReason, FilterIndex};
use rand::TryRngCore;
use rand::rngs::OsRng;

pub use command::PacketCommand;
use counters::{PacketCounters, Tally};
pub use event::{PacketEvent, Report};
use eventfds::Eventfds;
use in_flight::{Buffered, Pending, Stop};
pub use lanes::{LanePlace, Reply};
use meters::ModuleCounts;
use pacing::{Coalescing, IDLE_SLEEP, IdleSleep};
use real_time::RealTime;
pub use real_time::RealTimeClub;
use traces::Tracer;
pub use traces::feed;
pub use workers::WorkerRings;
use workers::{WorkerSlot, Workers};

pub use module_filter::{Buffers, ModuleFilter};
pub use traces::{Tap, TapCounts, TraceId, Traced};

use crate::limits::{EVENTFDS_INTERVAL_MAX, HELD_PACKETS_MANY, SLEEPERS_FEW};

/// How long the loop sleeps at most while nothing happens; then it looks whether a module hangs.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// After a gap longer than this, the watchdog gives every worker its time anew: this thread itself stood still.
const WATCH_GAP_MAX: Duration = Duration::from_secs(1);
/// How long the loop sleeps at most while containers hold packets, so that a stall is seen.
const PENDING_WAIT_MAX: Duration = Duration::from_millis(20);
/// How long a loop in the real-time class leaves its core to workers that are not in it: half as long as a full turn takes.
const USUAL_TURN: Duration = Duration::from_micros(50);

/// The loop and everything that it owns.
pub struct PacketLoop {
    driver: Box<dyn Driver>,
    place: LanePlace,
    /// How many packets the driver and this loop can do without at a time.
    room: usize,
    module_filters: BTreeMap<FilterId, ModuleFilter>,
    /// The same, as packets meet them.
    filters: FilterIndex<Stop>,
    /// Scratch space: the filters that match a packet, and the stops that they lead to.
    found: Vec<(FilterId, Stop)>,
    stops: Vec<Stop>,
    workers: Workers,
    eventfds: Eventfds,
    /// Scratch space: the containers that rang.
    ready: Vec<WorkerSlot>,
    /// A container was woken, and may wait for this core.
    woke: bool,
    idle_sleep: IdleSleep,
    /// Containers with packets in their rings that are not published yet.
    staged: Vec<WorkerSlot>,
    /// Sleeping containers with published packets, and since when they have them, the oldest first.
    unwoken: VecDeque<(Instant, WorkerSlot)>,
    pending: Pending,
    buffered: Buffered,
    tally: Tally,
    /// What loads of modules counted whose place another one has, or whose worker is gone.
    metered: ModuleCounts,
    counters: Arc<PacketCounters>,
    commands: Receiver<PacketCommand>,
    /// Keeps the eventfd of commands open; the epoll instances have it too.
    _wake: OwnedFd,
    report: Report,
    /// How long to look for packets again and again before sleeping.
    busy_poll: Duration,
    coalescing: Coalescing,
    /// When the current turn began, and when it did on the node's monotonic clock.
    now: Instant,
    now_ns: u64,
    /// When the loop last had something to do.
    busy_at: Instant,
    polled_at: Instant,
    watched_at: Instant,
    /// Rings whose memory this look may still give back.
    may_give_back: usize,
    /// The worker that the watchdog looked at last.
    watched: usize,
    tracer: Tracer,
    real_time: Option<RealTime>,
    /// How many workers this lane lets look for packets again and again.
    spinners: usize,
    /// Changes of users' send limits that this lane has been told of.
    limit_changes: u64,
}

impl PacketLoop {
    /// Builds the loop of a lane. `wake` is an eventfd that is written after each command.
    ///
    /// # Errors
    /// The system gives no epoll instance or no random number.
    pub fn new(
        driver: Box<dyn Driver>,
        place: LanePlace,
        counters: Arc<PacketCounters>,
        commands: Receiver<PacketCommand>,
        wake: OwnedFd,
        report: Report,
    ) -> Result<PacketLoop> {
        let seed = OsRng.try_next_u64().context("the system gives no random number")?;
        let now = Instant::now();
        let eventfds = Eventfds::new(&wake, driver.poll_fd()).context("epoll")?;
        Ok(PacketLoop {
            room: driver.owed_max().min(place.pending_max()),
            workers: Workers::new(place.budgets().clone()),
            driver,
            place,
            module_filters: BTreeMap::new(),
            filters: FilterIndex::new(seed),
            found: Vec::new(),
            stops: Vec::new(),
            eventfds,
            ready: Vec::new(),
            woke: false,
            idle_sleep: IdleSleep::default(),
            staged: Vec::new(),
            unwoken: VecDeque::new(),
            pending: Pending::default(),
            buffered: Buffered::default(),
            tally: Tally::default(),
            metered: ModuleCounts::new(),
            counters,
            commands,
            _wake: wake,
            report,
            busy_poll: Duration::ZERO,
            coalescing: Coalescing::new(Duration::ZERO, now),
            now,
            now_ns: 0,
            busy_at: now,
            polled_at: now,
            watched_at: now,
            may_give_back: 0,
            watched: 0,
            tracer: Tracer::default(),
            real_time: None,
            spinners: 0,
            limit_changes: 0,
        })
    }

    /// Sets how long the loop polls before it sleeps. While containers hold packets, it yields its core to them.
    pub fn set_busy_poll(&mut self, busy_poll: Duration) {
        self.busy_poll = busy_poll;
    }

    /// Sets how long packets gather with the driver after a small batch, while they are frequent. A loop that polls takes each as it
    /// comes.
    pub fn set_coalescing(&mut self, time: Duration) {
        self.coalescing = Coalescing::new(time, self.now);
    }

    /// Has the calling thread, which is to run the loop, and the workers that may be in the real-time class be in it.
    ///
    /// # Errors
    /// The kernel refuses; all stay in the usual class.
    pub fn begin_real_time(&mut self) -> Result<()> {
        self.real_time = Some(RealTime::begin()?);
        Ok(())
    }

    /// Has the calling thread, which is to run the loop, be in the real-time class with that of another lane, and under the
    /// same guard.
    ///
    /// # Errors
    /// The kernel refuses; it stays in the usual class.
    pub fn join_real_time(&mut self, club: &RealTimeClub) -> Result<()> {
        self.real_time = Some(club.join()?);
        Ok(())
    }

    /// Returns what loops of other lanes join the real-time class by, if this one is in it.
    pub fn real_time_club(&self) -> Option<RealTimeClub> {
        self.real_time.as_ref().map(RealTime::club)
    }

    /// Runs until told to stop.
    ///
    /// # Errors
    /// The driver failed for good.
    pub fn run(mut self) -> Result<(), DriverError> {
        let mut batch = Batch::new();
        while !self.take_commands() {
            match self.turn(&mut batch) {
                // Whoever waits for packets to gather sleeps anyway, and so a worker woken on this core gets it at once.
                Ok(_) if self.woke && self.coalescing.left(self.now).is_some() => {
                    self.woke = false;
                    self.sleep();
                }
                // Yields, so that a worker woken on this core gets it before many full batches have passed. If nobody
                // waits for the core, this costs next to nothing.
                Ok(busy) if std::mem::take(&mut self.woke) || busy && self.keeps_workers_waiting() => self.hand_over(),
                Ok(true) => {}
                Ok(false) if self.may_sleep() => self.sleep(),
                Ok(false) => self.stay_awake(),
                Err(error) => {
                    self.release_everything();
                    return Err(error);
                }
            }
        }
        self.release_everything();
        Ok(())
    }

    /// Moves packets both ways once; returns whether there were any.
    fn turn(&mut self, batch: &mut Batch) -> Result<bool, DriverError> {
        self.now = Instant::now();
        if let Some(real_time) = &self.real_time {
            real_time.beat(self.now);
        }
        // What can go goes before more comes in, and before a worker takes this core.
        let returned = self.take_returned();
        self.idle_sleep.turn(returned, self.pending.len());
        self.feed_buffered();
        if returned > 0 {
            self.driver.flush()?;
        }
        match self.coalescing.left(self.now) {
            Some(_) => batch.clear(),
            None => {
                self.driver.receive(batch, Some(Duration::ZERO))?;
                self.coalescing.received(self.now, batch.len());
            }
        }
        if !batch.is_empty() {
            self.now_ns = monotonic_nanos();
        }
        for packet in batch.iter() {
            self.admit(&packet);
        }
        self.trim_buffered();
        self.show_staged();
        self.driver.flush()?;
        self.wake_sleepers(batch.len());
        if self.spinners > 0 && (!self.may_spin() || self.unwoken.len() > SLEEPERS_FEW) {
            self.end_spinning();
        }
        self.counters.publish(&self.tally);
        let quiet = batch.is_empty() && returned == 0 && self.unwoken.is_empty();
        if !quiet {
            self.busy_at = self.now;
        }
        let ready =
            self.now.duration_since(self.polled_at) >= EVENTFDS_INTERVAL_MAX && self.poll_eventfds(Duration::ZERO);
        self.watch(self.now);
        Ok(!quiet || ready)
    }

    /// Returns whether workers that have something to do get this core only if it is given to them.
    fn keeps_workers_waiting(&self) -> bool {
        match self.is_real_time() {
            true => !self.pending.is_empty(),
            false => self.unwoken.is_empty() && self.pending.len() >= HELD_PACKETS_MANY,
        }
    }

    fn is_real_time(&self) -> bool {
        self.real_time.as_ref().is_some_and(RealTime::is_in_force)
    }

    /// Lets workers have this core, if they wait for it.
    fn hand_over(&mut self) {
        if self.is_real_time()
            && !(0..self.workers.active_len()).all(|place| self.active_end(place).is_none_or(|end| end.is_real_time()))
        {
            std::thread::sleep(USUAL_TURN);
        } else if !self.is_real_time() && self.idle_sleep.take_due() {
            std::thread::sleep(IDLE_SLEEP);
        } else {
            std::thread::yield_now();
        }
    }

    fn may_sleep(&self) -> bool {
        self.now.duration_since(self.busy_at) >= self.busy_poll
    }

    fn stay_awake(&mut self) {
        if self.spinners == 0 {
            self.poll_eventfds(Duration::ZERO);
        }
        if !self.pending.is_empty() {
            self.hand_over();
        }
    }

    fn sleep(&mut self) {
        self.end_spinning();
        let mut places = 0..self.workers.active_len();
        let ready = places.find(|place| self.active_end(*place).is_some_and(|end| !end.listen()));
        match ready {
            Some(place) => self.workers.set_round(place),
            None => {
                let idle = self.pending.is_empty() && self.buffered.is_empty();
                let gathers = self.coalescing.left(Instant::now());
                let at_most = gathers.unwrap_or(if idle { WAIT_MAX } else { PENDING_WAIT_MAX });
                if let Some(real_time) = &self.real_time {
                    real_time.sleeps(self.now, at_most, idle);
                }
                match gathers {
                    Some(left) => self.poll_rings(left),
                    None => drop(self.poll_eventfds(at_most)),
                }
                if let Some(real_time) = &self.real_time {
                    real_time.wakes(Instant::now());
                }
            }
        }
        for place in 0..self.workers.active_len() {
            if let Some(end) = self.active_end(place) {
                end.ring.cancel_sleep();
            }
        }
    }

    fn active_end(&mut self, place: usize) -> Option<&mut workers::RingEnd> {
        let worker = self.workers.active(place)?;
        self.workers.end(worker)
    }

    fn release_everything(&mut self) {
        self.miss_buffered(DropReason::ContainerGone);
        for worker in self.workers.ids() {
            self.remove_worker(worker, DropReason::ContainerGone);
        }
        if let Err(error) = self.driver.flush() {
            tracing::warn!(%error, "the last verdicts could not be sent");
        }
        self.counters.publish(&self.tally);
        self.counters.set_driver(self.driver.counters());
    }
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
