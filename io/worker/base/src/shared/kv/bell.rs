// SPDX-License-Identifier: Apache-2.0
//! What tells the thread that writes that something changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What tells the thread that something changed. Ringing it again before it was heard costs next to nothing.
#[derive(Debug, Default)]
pub struct Bell {
    is_rung: AtomicBool,
    state: Mutex<BellState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BellState {
    rung: bool,
    hurry: bool,
    stop: bool,
    stopped: bool,
}

impl Bell {
    /// Says that there is something to write.
    pub fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::Relaxed) {
            self.lock().rung = true;
            self.changed.notify_all();
        }
    }

    /// Waits until there is something to write, and then a while for more. Returns whether it is the last time.
    pub fn wait(&self, delay: Duration) -> bool {
        let mut state = self.lock();
        while !(state.rung || state.stop) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + delay;
        while !(state.hurry || state.stop) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        (state.rung, state.hurry) = (false, false);
        self.is_rung.store(false, Ordering::Relaxed);
        state.stop
    }

    /// Has what there is written at once, if there is something.
    pub fn hurry(&self) {
        if self.is_rung.load(Ordering::Relaxed) {
            self.lock().hurry = true;
            self.changed.notify_all();
        }
    }

    /// Has the thread end, and waits for that, at most so long. Returns whether it has.
    pub fn stop(&self, at_most: Duration) -> bool {
        let mut state = self.lock();
        state.stop = true;
        self.changed.notify_all();
        let until = Instant::now() + at_most;
        while !state.stopped {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Says that the thread has ended.
    pub fn say_stopped(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
