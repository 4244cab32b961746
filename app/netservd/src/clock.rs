// SPDX-License-Identifier: Apache-2.0
//! Reads both clocks for the engines, which never do.

use std::time::Duration;

use netserv_model::{Instant, Now};

use crate::logs::wall;

/// The node's monotonic clock, which starts with the process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Clock {
        Clock { start: std::time::Instant::now() }
    }

    /// Returns both clocks.
    pub fn now(self) -> Now {
        let since_start = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Now { instant: Instant::from_nanos(since_start), wall: wall() }
    }

    /// Returns how long it is until an instant; zero if it has passed.
    pub fn until(self, instant: Instant) -> Duration {
        instant.since(self.now().instant)
    }
}
