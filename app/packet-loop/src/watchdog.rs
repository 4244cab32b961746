// SPDX-License-Identifier: Apache-2.0
//! The watchdog: finds workers that hang, and gives memory of their rings back.

use std::time::{Duration, Instant};

use crate::event::{PacketEvent, Report};
use crate::limits::{GIVEN_BACK_PER_LOOK_MAX, WATCH_INTERVAL, WATCHED_PER_LOOK_MAX};
use crate::workers::{WorkerSlot, Workers};

/// After a gap longer than this, the watchdog gives every worker its time anew: this thread itself stood still.
pub(crate) const WATCH_GAP_MAX: Duration = Duration::from_secs(1);

/// When the workers were looked at, and which of them.
pub(crate) struct Watchdog {
    pub(crate) looked_at: Instant,
    /// The place of the worker that was looked at last.
    place: usize,
    /// Rings whose memory this look may still give back.
    pub(crate) may_give_back: usize,
}

impl Watchdog {
    pub(crate) fn new(now: Instant) -> Watchdog {
        Watchdog { looked_at: now, place: 0, may_give_back: 0 }
    }

    /// Looks at the workers every [`WATCH_INTERVAL`], and reports those that hang; returns whether it did look.
    pub(crate) fn look(&mut self, workers: &mut Workers, now: Instant, report: &Report) -> bool {
        let since = now.duration_since(self.looked_at);
        if since < WATCH_INTERVAL {
            return false;
        }
        self.looked_at = now;
        if since > WATCH_GAP_MAX {
            // This thread itself stood still, and so, most likely, did everything else.
            workers.ends_mut().for_each(|end| end.give_time(now));
        }
        self.may_give_back = GIVEN_BACK_PER_LOOK_MAX;
        for place in 0..workers.active_len() {
            if let Some(slot) = workers.active(place) {
                self.look_at(workers, slot, now, report);
            }
        }
        // Modules of the others can hang as well, in a timer. They are looked at by turns; after a sleep, all of them.
        let looks = since.as_millis() / WATCH_INTERVAL.as_millis();
        let looks = usize::try_from(looks).unwrap_or(usize::MAX).saturating_mul(WATCHED_PER_LOOK_MAX);
        for _ in 0..looks.min(workers.len()) {
            self.place = (self.place + 1) % workers.len();
            if let Some(slot) = workers.at(self.place) {
                self.look_at(workers, slot, now, report);
            }
        }
        true
    }

    fn look_at(&mut self, workers: &mut Workers, slot: WorkerSlot, now: Instant, report: &Report) {
        let Some((worker, end)) = workers.named_end(slot) else { return };
        if self.may_give_back > 0 && end.give_back(now) {
            self.may_give_back -= 1;
        }
        if end.broken && !end.seen.is_reported() {
            // The control loop had no room for it, or for what another lane had to say of the worker.
            return end.report_broken(worker, "it broke the rules of its ring before".to_owned(), report);
        }
        if let Some(slot) = end.stalled(now)
            && !end.seen.is_reported()
        {
            let event = PacketEvent::Stalled { worker: worker.clone(), generation: end.generation, slot };
            end.seen.report_once(|| report(event));
        }
    }
}
