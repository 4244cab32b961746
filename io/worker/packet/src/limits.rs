// SPDX-License-Identifier: Apache-2.0
//! Named bounds of packet parts.

use std::time::Duration;

/// Random bytes in one call.
pub const RANDOM_BYTES_MAX: usize = 4096;
/// The longest delay and period of a timer.
pub const TIMER_DELAY_MAX: Duration = Duration::from_nanos(1 << 62);
/// Tables of one module.
pub const TABLES_MAX: usize = 4;
