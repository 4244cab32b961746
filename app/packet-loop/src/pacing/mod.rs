// SPDX-License-Identifier: Apache-2.0
//! How the loop uses its core: when it takes packets, and when it leaves the core to workers or sleeps.

mod coalescing;
mod idle_sleep;

use std::time::{Duration, Instant};

use anyhow::Result;
use netserv_plane::{Batch, DriverError};

use crate::cx::{Cx, monotonic_nanos};
use crate::eventfds::Eventfds;
use crate::in_flight::InFlight;
use crate::limits::HELD_PACKETS_MANY;
use crate::real_time::{Candidate, RealTime, RealTimeClub, used};
use crate::wakeups::Wakeups;
use crate::workers::{RingEnd, Workers};
use coalescing::Coalescing;
use idle_sleep::{IDLE_SLEEP, IdleSleep};

/// How long the loop sleeps at most while nothing happens; then it looks whether a module hangs.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(250);
/// How long the loop sleeps at most while containers hold packets, so that a stall is seen.
const PENDING_WAIT_MAX: Duration = Duration::from_millis(20);
/// How long a loop in the real-time class leaves its core to workers that are not in it: half as long as a full turn takes.
const USUAL_TURN: Duration = Duration::from_micros(50);

/// Who has the core, and for how long.
pub(crate) struct Pacing {
    /// How long to look for packets again and again before sleeping.
    busy_poll: Duration,
    /// When the loop last had something to do.
    busy_at: Instant,
    coalescing: Coalescing,
    idle_sleep: IdleSleep,
    real_time: Option<RealTime>,
}

impl Pacing {
    pub(crate) fn new(now: Instant) -> Pacing {
        let coalescing = Coalescing::new(Duration::ZERO, now);
        let idle_sleep = IdleSleep::default();
        Pacing { busy_poll: Duration::ZERO, busy_at: now, coalescing, idle_sleep, real_time: None }
    }

    /// Sets how long the loop polls before it sleeps.
    pub(crate) fn set_busy_poll(&mut self, busy_poll: Duration) {
        self.busy_poll = busy_poll;
    }

    /// Sets how long packets stay with the driver after a small batch, while they are frequent.
    pub(crate) fn set_coalescing(&mut self, time: Duration, now: Instant) {
        self.coalescing = Coalescing::new(time, now);
    }

    /// Puts the calling thread into the real-time class.
    pub(crate) fn begin_real_time(&mut self) -> Result<()> {
        self.real_time = Some(RealTime::begin()?);
        Ok(())
    }

    /// Puts the calling thread into the real-time class with that of another lane.
    pub(crate) fn join_real_time(&mut self, club: &RealTimeClub) -> Result<()> {
        self.real_time = Some(club.join()?);
        Ok(())
    }

    /// Returns what loops of other lanes join the real-time class by, if this one is in it.
    pub(crate) fn real_time_club(&self) -> Option<RealTimeClub> {
        self.real_time.as_ref().map(RealTime::club)
    }

    /// Has a new worker be in the real-time class if it may be and the loop is.
    pub(crate) fn add(&self, end: &mut RingEnd) {
        let Some(real_time) = &self.real_time else { return };
        if let Some(thread) = end.ring.take_thread() {
            let activity = Box::new(end.ring.activity_probe());
            real_time.add(Candidate { thread, activity, used: used() }, end.seen.standing().clone());
        }
        end.standing = Some(end.seen.standing().clone());
    }

    /// Forgets a worker that is gone.
    pub(crate) fn remove(&self, end: &RingEnd) {
        if let (Some(real_time), Some(standing)) = (&self.real_time, &end.standing) {
            real_time.remove(standing);
        }
    }

    /// Starts a turn.
    pub(crate) fn begin_turn(&self, now: Instant) {
        if let Some(real_time) = &self.real_time {
            real_time.beat(now);
        }
    }

    /// Takes note of how many packets workers gave back in a turn, and how many they hold.
    pub(crate) fn returned(&mut self, returned: usize, held: usize) {
        self.idle_sleep.turn(returned, held);
    }

    /// Takes note that the loop had something to do.
    pub(crate) fn was_busy(&mut self, now: Instant) {
        self.busy_at = now;
    }

    /// Takes packets from the driver, unless they are still to be coalesced.
    pub(crate) fn receive(&mut self, cx: &mut Cx, batch: &mut Batch) -> Result<(), DriverError> {
        match self.coalescing.left(cx.now) {
            Some(_) => batch.clear(),
            None => {
                cx.driver.receive(batch, Some(Duration::ZERO))?;
                self.coalescing.received(cx.now, batch.len());
            }
        }
        if !batch.is_empty() {
            cx.now_ns = monotonic_nanos();
        }
        Ok(())
    }

    /// Returns whether packets are coalesced at this moment.
    pub(crate) fn coalesces(&self, now: Instant) -> bool {
        self.coalescing.left(now).is_some()
    }

    /// Returns whether workers may look for packets again and again. In the usual class they would keep this thread waiting.
    pub(crate) fn may_spin(&self) -> bool {
        !self.busy_poll.is_zero() && self.real_time.as_ref().is_some_and(RealTime::may_spin)
    }

    /// Returns whether workers that have something to do get this core only if it is given to them.
    pub(crate) fn keeps_workers_waiting(&self, in_flight: &InFlight, wakeups: &Wakeups) -> bool {
        match self.is_real_time() {
            true => !in_flight.pending.is_empty(),
            false => wakeups.is_empty() && in_flight.pending.len() >= HELD_PACKETS_MANY,
        }
    }

    fn is_real_time(&self) -> bool {
        self.real_time.as_ref().is_some_and(RealTime::is_in_force)
    }

    /// Lets workers have this core, if they wait for it.
    pub(crate) fn hand_over(&mut self, workers: &mut Workers) {
        if self.is_real_time() && !workers.active_are_real_time() {
            std::thread::sleep(USUAL_TURN);
        } else if !self.is_real_time() && self.idle_sleep.take_due() {
            std::thread::sleep(IDLE_SLEEP);
        } else {
            std::thread::yield_now();
        }
    }

    pub(crate) fn may_sleep(&self, now: Instant) -> bool {
        now.duration_since(self.busy_at) >= self.busy_poll
    }

    /// Sleeps until something happens, unless a worker has answers already. `idle` says that no packet is in flight.
    pub(crate) fn sleep(&self, now: Instant, idle: bool, workers: &mut Workers, eventfds: &mut Eventfds) {
        workers.end_spinning();
        match workers.listen() {
            Some(place) => workers.set_round(place),
            None => self.wait(now, idle, workers, eventfds),
        }
        workers.stop_listening();
    }

    fn wait(&self, now: Instant, idle: bool, workers: &mut Workers, eventfds: &mut Eventfds) {
        let coalesces = self.coalescing.left(Instant::now());
        let at_most = coalesces.unwrap_or(if idle { WAIT_MAX } else { PENDING_WAIT_MAX });
        if let Some(real_time) = &self.real_time {
            real_time.sleeps(now, at_most, idle);
        }
        match coalesces {
            Some(left) => eventfds.poll_without_driver(left, workers),
            None => drop(eventfds.poll(now, at_most, workers)),
        }
        if let Some(real_time) = &self.real_time {
            real_time.wakes(Instant::now());
        }
    }
}

#[cfg(test)]
impl Pacing {
    /// Returns whether workers may look for packets again and again, whatever the loop does.
    pub(crate) fn class_may_spin(&self) -> bool {
        self.real_time.as_ref().is_some_and(RealTime::may_spin)
    }
}
