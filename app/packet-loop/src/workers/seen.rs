// SPDX-License-Identifier: Apache-2.0
//! What the lanes know of one worker together.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::SPINNERS_MAX;
use crate::real_time::Standing;

/// What the watchdogs of all lanes know of one worker.
#[derive(Clone)]
pub(crate) struct WorkerSeen {
    shared: Arc<SeenByAll>,
    /// How many workers look for packets again and again; held while one begins or ends.
    spinners: Arc<Mutex<usize>>,
    begun: Instant,
    lanes: usize,
}

#[derive(Default)]
pub(super) struct SeenByAll {
    reported: AtomicBool,
    sampled: AtomicU64,
    standing: Standing,
    /// How many lanes let it look for packets again and again.
    spun_by: AtomicUsize,
}

impl WorkerSeen {
    pub(super) fn new(shared: Arc<SeenByAll>, spinners: Arc<Mutex<usize>>, begun: Instant, lanes: usize) -> WorkerSeen {
        WorkerSeen { shared, spinners, begun, lanes }
    }

    /// Returns how many lanes the worker serves in turn.
    pub(crate) fn lanes(&self) -> u32 {
        u32::try_from(self.lanes).expect("there are few lanes")
    }

    /// Returns whether the control loop knows that the worker must go.
    pub(crate) fn is_reported(&self) -> bool {
        self.shared.reported.load(Ordering::Acquire)
    }

    /// Has `report` tell the control loop that the worker must go, unless it knows from any lane. `report` returns whether it
    /// could.
    pub(crate) fn report_once(&self, report: impl FnOnce() -> bool) {
        if !self.shared.reported.swap(true, Ordering::AcqRel) && !report() {
            self.shared.reported.store(false, Ordering::Release);
        }
    }

    /// Has no lane report it from here on.
    pub(crate) fn is_going(&self) {
        self.shared.reported.store(true, Ordering::Release);
    }

    /// Returns whether what the worker does at this look counts: of the looks of several lanes, one in each `interval` does.
    pub(crate) fn counts(&self, now: Instant, interval: Duration) -> bool {
        if self.lanes == 1 {
            return true;
        }
        let tick = now.saturating_duration_since(self.begun).as_nanos() / interval.as_nanos();
        let tick = u64::try_from(tick).unwrap_or(u64::MAX);
        self.shared.sampled.swap(tick, Ordering::Relaxed) != tick
    }

    /// Notes that a lane lets it look for packets again and again; false, and it may not, if [`SPINNERS_MAX`] others do.
    pub(crate) fn begin_spinning(&self) -> bool {
        let mut spinners = lock(&self.spinners);
        if self.shared.spun_by.load(Ordering::Relaxed) == 0 {
            if *spinners >= SPINNERS_MAX {
                return false;
            }
            *spinners += 1;
        }
        self.shared.spun_by.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Notes that a lane, which did, lets it do so no longer.
    pub(crate) fn end_spinning(&self) {
        let mut spinners = lock(&self.spinners);
        if self.shared.spun_by.fetch_sub(1, Ordering::Relaxed) == 1 {
            *spinners -= 1;
        }
    }

    /// Returns whether it is in the real-time class, as it is told there.
    pub(crate) fn standing(&self) -> &Standing {
        &self.shared.standing
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
