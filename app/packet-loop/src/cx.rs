// SPDX-License-Identifier: Apache-2.0
//! What each step of a packet's path is lent.

use std::sync::Arc;
use std::time::Instant;

use netserv_plane::Driver;

use crate::counters::{PacketCounters, Tally};
use crate::event::Report;
use crate::traces::Tracer;

/// The time, the driver, the counts, the traces and the way to the control loop.
pub(crate) struct Cx {
    /// When the current turn began.
    pub(crate) now: Instant,
    /// When the current batch came, on the node's monotonic clock.
    pub(crate) now_ns: u64,
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) tally: Tally,
    pub(crate) tracer: Tracer,
    pub(crate) report: Report,
    counters: Arc<PacketCounters>,
}

impl Cx {
    pub(crate) fn new(driver: Box<dyn Driver>, counters: Arc<PacketCounters>, report: Report, now: Instant) -> Cx {
        let (tally, tracer) = (Tally::default(), Tracer::default());
        Cx { now, now_ns: 0, driver, tally, tracer, report, counters }
    }

    /// Lets others see what was counted.
    pub(crate) fn publish(&self) {
        self.counters.publish(&self.tally);
    }

    /// Lets others see what the driver counted.
    pub(crate) fn publish_driver(&self) {
        self.counters.set_driver(self.driver.counters());
    }
}

/// Returns the time on the node's monotonic clock.
pub(crate) fn monotonic_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}
