// SPDX-License-Identifier: Apache-2.0
//! The packet path of one lane, the receive queues of one packet thread: driver → filters → rings → verdicts → driver.
//!
//! One thread runs a lane. It never waits for the control loop: it looks at its commands between batches.
//! Invariant: every packet that the driver gave is finished exactly once, with a verdict or a counted reason.
//! Invariant: a container that sleeps and holds nothing is not visited; it writes its eventfd when it has something.
//!
//! The loop only dispatches. Each part owns its state: `workers` has the ring ends and which of them have something to do,
//! `filters` the modules' filters, `in_flight` the packets inside containers and those that wait, `wakeups` the sleepers with
//! packets, `eventfds` what ends a sleep, `watchdog` finds workers that hang, `pacing` shares the core out, and `cx` is what each
//! step is lent. `path` leads a packet through the parts.

pub mod budget;
mod command;
pub mod counters;
mod cx;
mod event;
mod eventfds;
mod filters;
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
mod wakeups;
mod watchdog;
mod workers;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ipnet::IpNet;
use netserv_model::{DropReason, WorkerId};
use netserv_plane::{Batch, Driver, DriverError};
use rand::TryRng;
use rand::rngs::SysRng;

pub use command::PacketCommand;
pub use event::{PacketEvent, Report};
pub use lanes::{LanePlace, Reply};
pub use module_filter::{Buffers, ModuleFilter};
pub use real_time::RealTimeClub;
pub use traces::{Tap, TapCounts, TraceId, Traced, feed};
pub use workers::WorkerRings;

use crate::counters::PacketCounters;
use crate::cx::Cx;
use crate::eventfds::Eventfds;
use crate::filters::Filters;
use crate::in_flight::InFlight;
use crate::limits::SLEEPERS_FEW;
use crate::pacing::Pacing;
use crate::wakeups::Wakeups;
use crate::watchdog::Watchdog;
use crate::workers::{RingEnd, WorkerSlot, Workers};

/// The loop of one lane.
pub struct PacketLoop {
    lane: LanePlace,
    commands: Receiver<PacketCommand>,
    cx: Cx,
    filters: Filters,
    workers: Workers,
    in_flight: InFlight,
    wakeups: Wakeups,
    eventfds: Eventfds,
    watchdog: Watchdog,
    pacing: Pacing,
}

impl PacketLoop {
    /// Builds the loop of a lane. `wake` is an eventfd that is written after each command.
    ///
    /// # Errors
    /// The system gives no epoll instance or no random number.
    pub fn new(
        driver: Box<dyn Driver>,
        lane: LanePlace,
        counters: Arc<PacketCounters>,
        commands: Receiver<PacketCommand>,
        wake: OwnedFd,
        report: Report,
    ) -> Result<PacketLoop> {
        let seed = SysRng.try_next_u64().context("the system gives no random number")?;
        let now = Instant::now();
        Ok(PacketLoop {
            filters: Filters::new(seed),
            workers: Workers::new(lane.budgets().clone()),
            in_flight: InFlight::new(driver.owed_max().min(lane.pending_max())),
            wakeups: Wakeups::default(),
            eventfds: Eventfds::new(wake, driver.poll_fd(), now).context("epoll")?,
            watchdog: Watchdog::new(now),
            pacing: Pacing::new(now),
            cx: Cx::new(driver, counters, report, now),
            lane,
            commands,
        })
    }

    /// Sets how long the loop polls before it sleeps. While containers hold packets, it yields its core to them.
    pub fn set_busy_poll(&mut self, busy_poll: Duration) {
        self.pacing.set_busy_poll(busy_poll);
    }

    /// Sets how long packets gather with the driver after a small batch, while they are frequent. A loop that polls takes each as it
    /// comes.
    pub fn set_coalescing(&mut self, time: Duration) {
        self.pacing.set_coalescing(time, self.cx.now);
    }

    /// Has the calling thread, which is to run the loop, and the workers that may be in the real-time class be in it.
    ///
    /// # Errors
    /// The kernel refuses; all stay in the usual class.
    pub fn begin_real_time(&mut self) -> Result<()> {
        self.pacing.begin_real_time()
    }

    /// Has the calling thread, which is to run the loop, be in the real-time class with that of another lane, and under the
    /// same guard.
    ///
    /// # Errors
    /// The kernel refuses; it stays in the usual class.
    pub fn join_real_time(&mut self, club: &RealTimeClub) -> Result<()> {
        self.pacing.join_real_time(club)
    }

    /// Returns what loops of other lanes join the real-time class by, if this one is in it.
    pub fn real_time_club(&self) -> Option<RealTimeClub> {
        self.pacing.real_time_club()
    }

    /// Runs until told to stop.
    ///
    /// # Errors
    /// The driver failed for good.
    pub fn run(mut self) -> Result<(), DriverError> {
        let mut batch = Batch::new();
        while !self.take_commands() {
            match self.turn(&mut batch) {
                Ok(busy) => self.rest(busy),
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
        let PacketLoop { cx, filters, workers, in_flight, wakeups, eventfds, watchdog, pacing, .. } = self;
        cx.now = Instant::now();
        pacing.begin_turn(cx.now);
        // What can go goes before more comes in, and before a worker takes this core.
        let returned = path::take_returned(cx, filters, workers, in_flight);
        pacing.returned(returned, in_flight.pending.len());
        path::resume_buffered(cx, filters, workers, in_flight);
        if returned > 0 {
            cx.driver.flush()?;
        }
        pacing.receive(cx, batch)?;
        for packet in batch.iter() {
            path::admit(cx, filters, workers, in_flight, &packet);
        }
        path::trim_buffered(cx, filters, workers, in_flight);
        wakeups.publish(workers, cx.now);
        cx.driver.flush()?;
        let may_spin = pacing.may_spin();
        wakeups.wake(workers, cx.now, batch.len(), may_spin);
        if workers.spinners() > 0 && (!may_spin || wakeups.len() > SLEEPERS_FEW) {
            workers.end_spinning();
        }
        cx.publish();
        let busy = !batch.is_empty() || returned > 0 || !wakeups.is_empty();
        if busy {
            pacing.was_busy(cx.now);
        }
        let is_ready = eventfds.poll_if_due(cx.now, workers);
        if watchdog.look(workers, cx.now, &cx.report) {
            cx.publish_driver();
        }
        Ok(busy || is_ready)
    }

    /// Hands the core to workers or sleeps, after a turn that was `busy` or had nothing to do.
    fn rest(&mut self, busy: bool) {
        let PacketLoop { cx, workers, in_flight, wakeups, eventfds, pacing, .. } = self;
        let woke = wakeups.take_woke();
        if woke && pacing.coalesces(cx.now) {
            // A loop that coalesces packets sleeps anyway, and so a worker woken on this core gets it at once.
            self.sleep();
        } else if woke || busy && pacing.keeps_workers_waiting(in_flight, wakeups) {
            // Yields, so that a worker woken on this core gets it before many full batches have passed. If no worker
            // waits for the core, this costs next to nothing.
            pacing.hand_over(workers);
        } else if !busy && pacing.may_sleep(cx.now) {
            self.sleep();
        } else if !busy {
            if workers.spinners() == 0 {
                eventfds.poll(cx.now, Duration::ZERO, workers);
            }
            if !in_flight.pending.is_empty() {
                pacing.hand_over(workers);
            }
        }
    }

    fn sleep(&mut self) {
        let PacketLoop { cx, workers, in_flight, eventfds, pacing, .. } = self;
        pacing.sleep(cx.now, in_flight.is_empty(), workers, eventfds);
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
        let PacketLoop { lane, cx, filters, workers, in_flight, .. } = self;
        match command {
            PacketCommand::AddWorker { worker, generation, rings, prefixes } => {
                self.add_worker(&worker, generation, &rings, prefixes);
                self.cx.tracer.forget_modules(&worker);
            }
            PacketCommand::RemoveWorker { worker, reason } => {
                let slot = workers.slot_of(&worker);
                self.remove_worker(slot, reason);
                self.cx.tracer.forget_modules(&worker);
            }
            PacketCommand::SetPrefixes { user, prefixes } => workers.set_prefixes(&user, &prefixes),
            PacketCommand::SetSendLimits { user, limits } => workers.set_send_limits(&user, limits, Instant::now()),
            PacketCommand::ChangeFilters { add, remove, known } => {
                path::change_filters(cx, filters, workers, in_flight, add, remove);
                // Whoever waits for all lanes to know it waits for this one no longer.
                drop(known);
            }
            PacketCommand::SetCallTime { worker, slot, call } => {
                if let Some(end) = workers.end_of(&worker) {
                    end.set_call_time(slot, call);
                }
            }
            PacketCommand::SetLoaded { worker, slot, loaded } => {
                cx.tracer.note_module(&worker, slot, loaded);
                if let Some(end) = workers.end_of(&worker) {
                    end.set_loaded(slot, loaded);
                }
            }
            PacketCommand::Meter { worker, slot, load } => workers.begin_meter(&worker, slot, load),
            PacketCommand::ReadMeters { ended, reply } => reply.add(|counts| workers.read_meters(&ended, counts)),
            PacketCommand::Devices(reply) => {
                if lane.leads() {
                    reply.add(|devices| *devices = cx.driver.devices());
                }
            }
            PacketCommand::Trace(tap) => cx.tracer.add(tap),
            PacketCommand::EndTrace(id) => cx.tracer.remove(id),
            PacketCommand::Stop => {}
        }
    }

    /// Puts a worker's ring end into its slot.
    fn add_worker(&mut self, worker: &WorkerId, generation: u64, rings: &WorkerRings, prefixes: Vec<IpNet>) {
        let slot = self.workers.slot_of(worker);
        self.remove_worker(slot, DropReason::ContainerGone);
        let Some((ring, seen)) = self.lane.take(rings) else { return };
        let mut end = Box::new(RingEnd::new(generation, (ring, seen), prefixes, Instant::now()));
        self.pacing.add(&mut end);
        if let Err(error) = self.eventfds.add(slot, &end.ring) {
            end.report_broken(worker, format!("its eventfd cannot be waited for: {error}"), &self.cx.report);
        }
        self.workers.put(slot, end);
        self.workers.activate(slot);
    }

    /// Takes a worker away; its packets get their failure verdict.
    fn remove_worker(&mut self, slot: WorkerSlot, reason: DropReason) {
        let PacketLoop { lane, cx, filters, workers, in_flight, eventfds, pacing, .. } = self;
        let Some(end) = workers.remove(slot) else { return };
        eventfds.remove(&end.ring);
        if lane.leads() {
            pacing.remove(&end);
        }
        path::end_worker(cx, filters, workers, in_flight, (slot, end), reason);
    }

    fn release_everything(&mut self) {
        let PacketLoop { cx, filters, workers, in_flight, .. } = self;
        path::release_buffered(cx, filters, workers, in_flight, DropReason::ContainerGone);
        for slot in self.workers.ids() {
            self.remove_worker(slot, DropReason::ContainerGone);
        }
        if let Err(error) = self.cx.driver.flush() {
            tracing::warn!(%error, "the last verdicts could not be sent");
        }
        self.cx.publish();
        self.cx.publish_driver();
    }
}
