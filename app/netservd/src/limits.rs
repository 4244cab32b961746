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
/// Traces that run at a time; further ones are refused.
pub const TRACES_MAX: usize = 4;
/// Filters of one trace.
pub const TRACE_FILTERS_MAX: usize = 8;
/// Packets that one trace follows in a second; further ones are counted and not followed.
pub const TRACED_PER_SECOND_MAX: u32 = 1000;
/// Packets of one trace that wait to be told of; further ones are counted and lost.
pub const TRACED_WAITING_MAX: usize = 1024;
/// Steps that are told of one packet; of further ones only the number.
pub const TRACE_STEPS_MAX: usize = 128;
/// Bytes that are told of one packet.
pub const TRACE_BYTES_MAX: usize = 2048;
/// How long a trace runs at most.
pub const TRACE_TIME_MAX: Duration = Duration::from_secs(3600);
