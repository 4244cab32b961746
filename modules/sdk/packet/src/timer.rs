// SPDX-License-Identifier: Apache-2.0
//! Timers, by numbers that the module chooses. Delays are at least one millisecond.

use std::time::Duration;

use crate::error::Error;
use crate::host;

/// Has [`PacketModule::timer`](crate::PacketModule::timer) called once, replacing an earlier timer of that number.
///
/// # Errors
/// [`Error::Quota`] if the module has no more timers.
pub fn once(id: u32, delay: Duration) -> Result<(), Error> {
    host::timer_set(id, nanos(delay), 0)
}

/// Has [`PacketModule::timer`](crate::PacketModule::timer) called each `period`, replacing an earlier timer of that
/// number. Periods that were missed are skipped.
///
/// # Errors
/// [`Error::Quota`] if the module has no more timers.
pub fn every(id: u32, period: Duration) -> Result<(), Error> {
    host::timer_set(id, nanos(period), nanos(period).max(1))
}

/// Forgets a timer.
///
/// # Errors
/// [`Error::NotFound`] if there is none.
pub fn cancel(id: u32) -> Result<(), Error> {
    host::timer_cancel(id)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
