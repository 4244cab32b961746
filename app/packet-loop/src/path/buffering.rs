// SPDX-License-Identifier: Apache-2.0
//! The wait of packets at a container for a module that moves: until their rule goes, and then in order, as the container takes them.
//!
//! They meet the rules that are there when theirs goes. Those that come while its container takes them wait behind them.

use netserv_model::DropReason;
use netserv_model::limits::BUFFERING_TIME_MAX;

use crate::PacketLoop;
use crate::in_flight::Waiting;
use crate::in_flight::{Held, Stop};

impl PacketLoop {
    /// Returns whether a packet at a stop has to wait there.
    pub(crate) fn must_wait(&self, at: &Stop) -> bool {
        at.wait.is_some_and(|id| self.buffered.waits_by(id, self.now)) || self.buffered.any_wait_at(at)
    }

    /// Has a packet wait at its stop.
    pub(crate) fn buffer(&mut self, held: Held, received: &[u8]) {
        let received = if held.journey.is_some() { Vec::new() } else { received.to_vec() };
        self.tally.buffered();
        self.buffered.push(Waiting { held, received, since: self.now });
    }

    /// If too many packets wait, has the first of the longest queue go on.
    pub(crate) fn trim_buffered(&mut self) {
        while self.buffered.is_over_full(self.room)
            && let Some(first) = self.buffered.longest().and_then(|queue| self.buffered.pop(&queue))
        {
            if let Some((first, reason)) = self.show_waiting(first) {
                self.fail(first.held, reason);
            }
        }
    }

    /// Has packets go on that wait for nothing any more, as far as their containers take them.
    pub(crate) fn feed_buffered(&mut self) {
        if self.buffered.is_empty() {
            return;
        }
        for queue in self.buffered.over(self.now) {
            while let Some(first) = self.buffered.pop(&queue) {
                let Some((first, reason)) = self.show_waiting(first) else { continue };
                if reason == DropReason::RingFull && self.now.duration_since(first.since) < BUFFERING_TIME_MAX * 2 {
                    self.buffered.push_front(first);
                    break;
                }
                self.fail(first.held, reason);
            }
        }
    }

    /// Puts a packet into its container's ring, or gives it back with why not.
    fn show_waiting(&mut self, Waiting { held, received, since }: Waiting) -> Option<(Waiting, DropReason)> {
        let (held, reason) = self.show(held, &received).err()?;
        Some((Waiting { held, received, since }, reason))
    }

    /// Has packets meet the rules that are there now, since rules came or went that packets wait for. One that has had its time does
    /// not wait by another one.
    pub(crate) fn match_buffered(&mut self) {
        for mut waiting in self.buffered.take_released() {
            let Waiting { held, received, since } = &mut waiting;
            self.find_stops(&held.flow, held.interface, held.maker());
            self.stops.retain(|stop| !held.has_left(stop.worker));
            let (before, had_its_time) = (held.at.worker, self.now.duration_since(*since) >= BUFFERING_TIME_MAX);
            if !held.return_to(&self.stops, received, self.buffered.changes()) {
                self.pass(&waiting.held, waiting.held.changed());
            } else if waiting.held.at.wait.is_some() && had_its_time {
                self.fail(waiting.held, DropReason::Frozen);
            } else if waiting.held.at.worker == before {
                self.buffered.push(waiting);
            } else {
                self.enter(waiting.held, &waiting.received);
            }
        }
    }

    /// Lets all packets go that wait; none does any more.
    pub(crate) fn miss_buffered(&mut self, reason: DropReason) {
        for mut waiting in self.buffered.take_all() {
            waiting.held.end_journey();
            self.fail(waiting.held, reason);
        }
    }
}
