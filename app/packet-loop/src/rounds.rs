// SPDX-License-Identifier: Apache-2.0
//! The rounds over containers: taking what they gave back, showing them what came, and looking whether they hang.
//!
//! A turn costs by what is done in it, not by how many containers there are: it visits active ones only, and not more than
//! [`VISITS_PER_TURN_MAX`] of them.

use std::time::{Duration, Instant};

use netserv_container::HostRing;
use netserv_model::{DropReason, WorkerId, limits};
use netserv_wire::container::ring::{RING_ENTRIES, Returned};

use super::ring_end::RingEnd;
use super::seats::SeatId;
use super::{PacketEvent, PacketLoop, WATCH_GAP_MAX, WATCH_INTERVAL};
use crate::limits::{UNWOKEN_TIME_MAX, VISITS_PER_TURN_MAX, WATCHED_PER_LOOK_MAX};

impl PacketLoop {
    /// Makes a container active, so that turns visit it; returns whether it was not.
    pub(super) fn activate(&mut self, seat: SeatId) -> bool {
        let new = self.seats.activate(seat);
        if new && let Some(end) = self.seats.end(seat) {
            end.ring.cancel_sleep();
        }
        new
    }

    /// Visits active containers, and takes at most one batch from each, so that none holds the others up.
    pub(super) fn take_returned(&mut self) -> usize {
        let (mut taken, mut place) = (0, self.seats.round());
        for _ in 0..self.seats.active_len().min(VISITS_PER_TURN_MAX) {
            if place >= self.seats.active_len() {
                place = 0;
            }
            let Some(seat) = self.seats.active(place) else { break };
            let mut rests = true;
            // Out of its seat while it is worked on, so that the packet can go on to another container.
            if let Some(mut end) = self.seats.take(seat) {
                taken += self.take_from(seat, &mut end, limits::BATCH_PACKETS_MAX);
                rests = end.rest();
                self.seats.put(seat, end);
            }
            if rests {
                self.seats.deactivate(place);
            } else {
                place += 1;
            }
        }
        self.seats.set_round(place);
        taken
    }

    /// Takes at most so many answers and injected packets from a container; returns how many there were.
    fn take_from(&mut self, seat: SeatId, end: &mut RingEnd, at_most: usize) -> usize {
        let mut taken = 0;
        while taken < at_most {
            match end.ring.pop() {
                Ok(Some(Returned::Answer { cookie, answer, bytes, module, .. })) => {
                    self.settle(&end.prefixes, cookie, (answer, module), bytes);
                }
                Ok(Some(Returned::Injected { bytes, module })) => {
                    let may = self.seats.may_make_packet(seat, bytes.len(), self.now);
                    let sent = self.inject(&end.prefixes, bytes, may);
                    if sent.is_ok() {
                        end.meters.made(module, bytes.len());
                    }
                    self.trace_made(seat, module, bytes, sent);
                    // The slot goes back to the container.
                    if !end.staged {
                        end.staged = true;
                        self.staged.push(seat);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.report_broken(seat, end, error.to_string());
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

    fn report_broken(&mut self, seat: SeatId, end: &mut RingEnd, detail: String) {
        end.broken = true;
        if !end.reported {
            let event =
                PacketEvent::RingBroken { worker: self.seats.worker(seat).clone(), generation: end.generation, detail };
            end.reported = (self.report)(event);
        }
    }

    /// Lets containers see their packets, and wakes those that sleep, unless more packets are to come soon.
    pub(super) fn show_staged(&mut self, more_soon: bool) {
        let mut staged = std::mem::take(&mut self.staged);
        for seat in staged.drain(..) {
            let Some(end) = self.seats.end(seat) else { continue };
            let before = end.unwoken_since;
            self.woke |= end.show(self.now, more_soon);
            if let (None, Some(since)) = (before, end.unwoken_since) {
                self.unwoken.push_back((since, seat));
            }
        }
        self.staged = staged;
        self.wake_sleepers(more_soon);
    }

    /// Wakes all sleepers together when the first of them is due: they then take the core once, one after the other.
    fn wake_sleepers(&mut self, more_soon: bool) {
        while let Some((since, seat)) = self.unwoken.front().copied() {
            // A container that was woken meanwhile is skipped.
            if self.seats.end(seat).is_some_and(|end| end.unwoken_since == Some(since)) {
                if more_soon && self.now.duration_since(since) < UNWOKEN_TIME_MAX {
                    return;
                }
                break;
            }
            self.unwoken.pop_front();
        }
        while let Some((since, seat)) = self.unwoken.pop_front() {
            if let Some(end) = self.seats.end(seat).filter(|end| end.unwoken_since == Some(since)) {
                self.woke |= end.wake();
            }
        }
    }

    /// Activates containers that rang; returns whether there are any, or commands. Waits at most so long for one, for a
    /// command, or for packets.
    pub(super) fn hear_bells(&mut self, wait: Duration) -> bool {
        self.heard_at = self.now;
        let mut rung = std::mem::take(&mut self.rung);
        let mut any = self.bells.take(wait, &mut rung);
        for seat in rung.drain(..) {
            any |= self.seats.end(seat).is_some() && self.activate(seat);
        }
        self.rung = rung;
        any
    }

    /// Puts a worker's ring end into its seat.
    pub(super) fn add_worker(&mut self, worker: &WorkerId, end: (u64, HostRing), prefixes: Vec<ipnet::IpNet>) {
        let seat = self.seats.of(worker);
        self.remove_worker(seat, DropReason::ContainerGone);
        let mut end = Box::new(RingEnd::new(end.0, end.1, prefixes, Instant::now()));
        if let Err(error) = self.bells.add(seat, &end.ring) {
            self.report_broken(seat, &mut end, format!("its eventfd cannot be waited for: {error}"));
        }
        self.seats.put(seat, end);
        self.activate(seat);
    }

    /// Takes a worker away; its packets get their failure verdict.
    pub(super) fn remove_worker(&mut self, seat: SeatId, reason: DropReason) {
        let Some(mut end) = self.seats.take(seat) else { return };
        self.bells.remove(&end.ring);
        // What it answered before its end counts. It may still run, so there must be an end to that.
        end.reported = true;
        self.take_from(seat, &mut end, RING_ENTRIES);
        self.metered.extend(end.meters.counts());
        for outstanding in end.ring.take_outstanding() {
            if let Some(held) = self.pending.remove(outstanding.cookie) {
                self.fail(held, reason);
            }
        }
    }

    /// Reports containers that hang.
    pub(super) fn watch(&mut self, now: Instant) {
        let since = now.duration_since(self.watched_at);
        if since < WATCH_INTERVAL {
            return;
        }
        self.watched_at = now;
        self.counters.set_driver(self.driver.counters());
        if since > WATCH_GAP_MAX {
            // This thread itself stood still, and so, most likely, did everything else.
            self.seats.ends_mut().for_each(|end| end.give_time(now));
        }
        for place in 0..self.seats.active_len() {
            if let Some(seat) = self.seats.active(place) {
                self.watch_one(seat, now);
            }
        }
        // Modules of the others can hang as well, in a timer. They are looked at by turns; after a sleep, all of them.
        let looks = since.as_millis() / WATCH_INTERVAL.as_millis();
        let looks = usize::try_from(looks).unwrap_or(usize::MAX).saturating_mul(WATCHED_PER_LOOK_MAX);
        for _ in 0..looks.min(self.seats.len()) {
            self.watched = (self.watched + 1) % self.seats.len();
            if let Some(seat) = self.seats.at(self.watched) {
                self.watch_one(seat, now);
            }
        }
    }

    fn watch_one(&mut self, seat: SeatId, now: Instant) {
        let Some(end) = self.seats.end(seat) else { return };
        if let Some(slot) = end.stalled(now)
            && !end.reported
        {
            let generation = end.generation;
            let event = PacketEvent::Stalled { worker: self.seats.worker(seat).clone(), generation, slot };
            let reported = (self.report)(event);
            if let Some(end) = self.seats.end(seat) {
                end.reported = reported;
            }
        }
    }
}
