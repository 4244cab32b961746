// SPDX-License-Identifier: Apache-2.0
//! Clocks.

use std::time::Duration;

use crate::host;

/// Returns the time on a clock that never steps, since an arbitrary start.
pub fn monotonic() -> Duration {
    Duration::from_nanos(host::monotonic_ns())
}

/// Returns the time since 1970-01-01T00:00:00Z.
pub fn wall() -> Duration {
    Duration::from_nanos(host::wall_ns())
}
