// SPDX-License-Identifier: Apache-2.0
//! The rounds over containers: taking what they gave back, showing them what came, and looking whether they hang.
//!
//! A turn costs by what is done in it, not by how many containers there are: it visits active ones only, and not more than
//! [`VISITS_PER_TURN_MAX`] of them.

use std::time::{Duration, Instant};

use netserv_model::{DropReason, WorkerId, limits};
use netserv_wire::container::ring::{RING_ENTRIES, Returned};

use crate::limits::{
    GIVEN_BACK_PER_LOOK_MAX, SLEEPERS_FEW, UNWOKEN_PACKETS_EACH_MAX, UNWOKEN_PACKETS_MAX, UNWOKEN_TIME_EACH,
    UNWOKEN_TIME_FEW_MAX, UNWOKEN_TIME_MAX, VISITS_PER_TURN_MAX, WAKES_PER_TURN_MAX, WATCH_INTERVAL,
    WATCHED_PER_LOOK_MAX,
};
use crate::real_time::{Candidate, RealTime, used};
use crate::workers::WorkerSlot;
use crate::workers::{RingEnd, Shown};
use crate::{PacketEvent, PacketLoop, WATCH_GAP_MAX, WorkerRings, meters};

impl PacketLoop {
    /// Makes a container active, so that turns visit it; returns whether it was not.
    pub(crate) fn activate(&mut self, worker: WorkerSlot) -> bool {
        let new = self.workers.activate(worker);
        if new && let Some(end) = self.workers.end(worker) {
            end.ring.cancel_sleep();
        }
        new
    }

    /// Visits active containers, and takes at most one batch from each, so that none holds the others up.
    pub(crate) fn take_returned(&mut self) -> usize {
        let (mut taken, mut place) = (0, self.workers.round());
        for _ in 0..self.workers.active_len().min(VISITS_PER_TURN_MAX) {
            if place >= self.workers.active_len() {
                place = 0;
            }
            let Some(worker) = self.workers.active(place) else { break };
            let mut rests = true;
            // Out of its slot while it is worked on, so that the packet can go on to another container.
            if let Some(mut end) = self.workers.take(worker) {
                taken += self.take_from(worker, &mut end, limits::BATCH_PACKETS_MAX);
                rests = end.rest();
                self.workers.put(worker, end);
            }
            if rests {
                self.workers.deactivate(place);
            } else {
                place += 1;
            }
        }
        self.workers.set_round(place);
        taken
    }

    /// Takes at most so many answers and injected packets from a container; returns how many there were.
    fn take_from(&mut self, worker: WorkerSlot, end: &mut RingEnd, at_most: usize) -> usize {
        let mut taken = 0;
        while taken < at_most {
            match end.ring.pop() {
                Ok(Some(Returned::Answer { cookie, answer, bytes, module, .. })) => {
                    self.settle(&end.prefixes, cookie, (answer, module), bytes);
                }
                Ok(Some(Returned::Injected { bytes, module })) => {
                    if self.inject((worker, module), &end.prefixes, bytes).is_ok() {
                        end.meters.made(module, bytes.len());
                    }
                    // The slot goes back to the container.
                    if !end.staged {
                        end.staged = true;
                        self.staged.push(worker);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.report_broken(worker, end, error.to_string());
                    return taken;
                }
            }
            taken += 1;
        }
        if taken > 0 {
            end.answered(self.now);
        }
        taken
    }

    fn report_broken(&mut self, worker: WorkerSlot, end: &mut RingEnd, detail: String) {
        end.broken = true;
        let event =
            || PacketEvent::RingBroken { worker: self.workers.id(worker).clone(), generation: end.generation, detail };
        end.seen.report_once(|| (self.report)(event()));
    }

    /// Lets containers see their packets. Those that sleep are left to [`PacketLoop::wake_sleepers`].
    pub(crate) fn show_staged(&mut self) {
        let mut staged = std::mem::take(&mut self.staged);
        for worker in staged.drain(..) {
            let is_few = self.unwoken.len() <= SLEEPERS_FEW;
            let Some(end) = self.workers.end(worker) else { continue };
            match end.show(self.now, if is_few { UNWOKEN_PACKETS_MAX } else { UNWOKEN_PACKETS_EACH_MAX }) {
                // It answers soon.
                Shown::Awake => drop(self.activate(worker)),
                Shown::Asleep => self.unwoken.push_back((self.now, worker)),
                Shown::Ripe(since) => self.unwoken.push_front((since, worker)),
                Shown::Known => {}
            }
        }
        self.staged = staged;
    }

    /// Wakes sleepers that have waited for long enough, the first to wait first, after a turn in which so many packets
    /// came.
    pub(crate) fn wake_sleepers(&mut self, came: usize) {
        let mut woken = 0;
        while woken < WAKES_PER_TURN_MAX
            && let Some((since, worker)) = self.unwoken.front().copied()
        {
            // One that was woken meanwhile is skipped.
            if let Some(end) = self.workers.end(worker).filter(|end| end.unwoken_since == Some(since)) {
                let waited = self.now.duration_since(since);
                if !end.is_ripe && waited < patience(self.unwoken.len(), came) {
                    return;
                }
                self.activate(worker);
                self.woke |= self.workers.end(worker).is_some_and(RingEnd::wake);
                self.let_spin(worker);
                woken += 1;
            }
            self.unwoken.pop_front();
        }
    }

    /// Lets a worker look for packets again and again, if it is one of a few and hands the core over where it has none.
    fn let_spin(&mut self, worker: WorkerSlot) {
        if self.may_spin()
            && let Some(end) = self.workers.end(worker).filter(|end| !end.spins && end.is_real_time())
        {
            self.spinners += usize::from(end.let_spin());
        }
    }

    /// Returns whether workers may look for packets again and again. In the usual class they would keep this thread waiting.
    pub(crate) fn may_spin(&self) -> bool {
        !self.busy_poll.is_zero() && self.real_time.as_ref().is_some_and(RealTime::may_spin)
    }

    /// Has all workers sleep that have no packets.
    pub(crate) fn end_spinning(&mut self) {
        if self.spinners > 0 {
            self.spinners = 0;
            for end in self.workers.ends_mut() {
                end.end_spinning();
            }
        }
    }

    /// Activates containers that rang; returns whether there are any, or commands. Waits at most so long for one, for a
    /// command, or for packets.
    pub(crate) fn poll_eventfds(&mut self, wait: Duration) -> bool {
        self.polled_at = self.now;
        let mut ready = std::mem::take(&mut self.ready);
        let any = self.eventfds.take(wait, &mut ready);
        any | self.activate_ready(ready)
    }

    /// Activates containers that rang, while packets are left with the driver. Waits at most so long for one, or for a command.
    pub(crate) fn poll_rings(&mut self, wait: Duration) {
        let mut ready = std::mem::take(&mut self.ready);
        self.eventfds.take_without_driver(wait, &mut ready);
        self.activate_ready(ready);
    }

    fn activate_ready(&mut self, mut ready: Vec<WorkerSlot>) -> bool {
        let mut any = false;
        for worker in ready.drain(..) {
            any |= self.workers.end(worker).is_some() && self.activate(worker);
        }
        self.ready = ready;
        any
    }

    /// Puts a worker's ring end into its slot.
    pub(crate) fn add_worker(
        &mut self,
        worker: &WorkerId,
        generation: u64,
        rings: &WorkerRings,
        prefixes: Vec<ipnet::IpNet>,
    ) {
        let slot = self.workers.of(worker);
        self.remove_worker(slot, DropReason::ContainerGone);
        let Some((ring, seen)) = self.place.take(rings) else { return };
        let mut end = Box::new(RingEnd::new(generation, (ring, seen), prefixes, Instant::now()));
        if let Some(real_time) = &self.real_time {
            if let Some(thread) = end.ring.take_thread() {
                let activity = Box::new(end.ring.activity_probe());
                real_time.add(Candidate { thread, activity, used: used() }, end.seen.standing().clone());
            }
            end.standing = Some(end.seen.standing().clone());
        }
        if let Err(error) = self.eventfds.add(slot, &end.ring) {
            self.report_broken(slot, &mut end, format!("its eventfd cannot be waited for: {error}"));
        }
        self.workers.put(slot, end);
        self.activate(slot);
    }

    /// Takes a worker away; its packets get their failure verdict.
    pub(crate) fn remove_worker(&mut self, worker: WorkerSlot, reason: DropReason) {
        let Some(mut end) = self.workers.take(worker) else { return };
        self.eventfds.remove(&end.ring);
        self.spinners -= usize::from(end.end_spinning());
        if let (Some(real_time), Some(standing)) = (&self.real_time, &end.standing)
            && self.place.leads()
        {
            real_time.remove(standing);
        }
        // What it answered before its end counts. It may still run, so there must be an end to that.
        end.seen.is_going();
        self.take_from(worker, &mut end, RING_ENTRIES);
        meters::add(&mut self.metered, end.meters.counts());
        for outstanding in end.ring.take_outstanding() {
            if let Some(held) = self.pending.remove(outstanding.cookie) {
                self.fail(held, reason);
            }
        }
    }

    /// Reports containers that hang.
    pub(crate) fn watch(&mut self, now: Instant) {
        let since = now.duration_since(self.watched_at);
        if since < WATCH_INTERVAL {
            return;
        }
        self.watched_at = now;
        self.counters.set_driver(self.driver.counters());
        if since > WATCH_GAP_MAX {
            // This thread itself stood still, and so, most likely, did everything else.
            self.workers.ends_mut().for_each(|end| end.give_time(now));
        }
        self.may_give_back = GIVEN_BACK_PER_LOOK_MAX;
        for place in 0..self.workers.active_len() {
            if let Some(worker) = self.workers.active(place) {
                self.watch_one(worker, now);
            }
        }
        // Modules of the others can hang as well, in a timer. They are looked at by turns; after a sleep, all of them.
        let looks = since.as_millis() / WATCH_INTERVAL.as_millis();
        let looks = usize::try_from(looks).unwrap_or(usize::MAX).saturating_mul(WATCHED_PER_LOOK_MAX);
        for _ in 0..looks.min(self.workers.len()) {
            self.watched = (self.watched + 1) % self.workers.len();
            if let Some(worker) = self.workers.at(self.watched) {
                self.watch_one(worker, now);
            }
        }
    }

    fn watch_one(&mut self, worker: WorkerSlot, now: Instant) {
        let Some(end) = self.workers.end(worker) else { return };
        if self.may_give_back > 0 && end.give_back(now) {
            self.may_give_back -= 1;
        }
        if end.broken && !end.seen.is_reported() {
            // The control loop had no room for it, or for what another lane had to say of the worker.
            if let Some(mut end) = self.workers.take(worker) {
                self.report_broken(worker, &mut end, "it broke the rules of its ring before".to_owned());
                self.workers.put(worker, end);
            }
            return;
        }
        if let Some(slot) = end.stalled(now)
            && !end.seen.is_reported()
        {
            let (seen, generation) = (end.seen.clone(), end.generation);
            let event = PacketEvent::Stalled { worker: self.workers.id(worker).clone(), generation, slot };
            seen.report_once(|| (self.report)(event));
        }
    }
}

/// Returns how long sleepers wait for more packets, of which so many came in this turn. To wake one costs as much as many
/// packets: a loop that has caught up wakes them at once, and one that has not wakes fewer of them, with more packets each.
pub(crate) fn patience(sleepers: usize, came: usize) -> Duration {
    match came {
        0 => Duration::ZERO,
        limits::BATCH_PACKETS_MAX if sleepers <= SLEEPERS_FEW => UNWOKEN_TIME_FEW_MAX,
        _ if sleepers <= SLEEPERS_FEW => Duration::ZERO,
        _ => UNWOKEN_TIME_EACH.saturating_mul(u32::try_from(sleepers).unwrap_or(u32::MAX)).min(UNWOKEN_TIME_MAX),
    }
}
