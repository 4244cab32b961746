// SPDX-License-Identifier: Apache-2.0
//! The machine's clocks.

use netserv_model::Instant;
use rustix::event::Timespec;
use rustix::time::ClockId;

/// Returns the monotonic clock.
pub fn monotonic() -> Instant {
    Instant::from_nanos(nanos(ClockId::Monotonic))
}

/// Returns nanoseconds since 1970-01-01T00:00:00Z.
pub fn wall_ns() -> u64 {
    nanos(ClockId::Realtime)
}

/// Returns how long it is from now until `due`.
pub fn until(due: Instant) -> Timespec {
    let wait = due.since(monotonic());
    Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(wait.subsec_nanos()) }
}

fn nanos(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
