// SPDX-License-Identifier: Apache-2.0
//! The threads that may be in the real-time class, and what they tell the guard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use netserv_container::{Activity, ScheduledThread};

/// The priority of packet thread and workers; nearly everything else in the class goes before them.
pub(crate) const PRIORITY: u8 = 2;

/// What the packet loop and the guard tell each other.
#[derive(Default)]
pub(crate) struct Pulse {
    /// Until when nobody has to wonder that the loop says nothing, in nanoseconds since the beginning.
    pub(crate) quiet_until_ns: AtomicU64,
    /// Since when the loop waits for packets and no worker has any; 0 while that is not so.
    pub(crate) idle_since_ns: AtomicU64,
    /// How long that was so before.
    pub(crate) idle_ns: AtomicU64,
}

/// Says whether a worker's thread is in the class at this moment.
#[derive(Clone, Default)]
pub(crate) struct Standing(pub(crate) Arc<AtomicBool>);

impl Standing {
    pub(crate) fn is_real_time(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A thread that may be in the class.
pub(crate) struct Candidate {
    /// The thread.
    pub(crate) thread: ScheduledThread,
    /// Tells what the worker is doing.
    pub(crate) activity: Box<dyn Fn() -> Activity + Send + Sync>,
    /// Tells how long the thread has been running.
    pub(crate) used: Used,
}

/// Tells how long a thread has been running, if the system does.
pub(crate) type Used = Box<dyn Fn(&ScheduledThread) -> Option<Duration> + Send + Sync>;

/// Returns what tells that of threads of this machine.
pub(crate) fn used() -> Used {
    Box::new(|thread| thread.processor_time().ok())
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
