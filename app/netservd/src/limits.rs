// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the daemon's own; those that others share are in `netserv_model::limits`.

use std::time::Duration;

/// Packets inside containers at a time, over all containers; more get their modules' failure verdict.
pub const PENDING_PACKETS_MAX: usize = 65_536;
/// How long a worker may leave packets alone while it is in no module: it may wait for the processor.
pub const OUTSIDE_TIME_MAX: Duration = Duration::from_secs(5);
/// Packets that the modules of one container may make in a second, in the long run.
pub const INJECTED_PER_SECOND_MAX: u32 = 20_000;
/// Packets that the modules of one container may make at once.
pub const INJECTED_BURST_MAX: u32 = 2048;
