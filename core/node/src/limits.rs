// SPDX-License-Identifier: Apache-2.0
//! Bounds of the node's own; those of the engines are in their crates.

/// Steps of one drain. What is left is done at once after the next look at other inputs, so that the engines cannot
/// keep the shell to themselves.
pub const DRAIN_STEPS_MAX: usize = 10_000;
/// How long a node that is to stop waits for what it began, and for what was used to be stored.
pub const STOP_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// Calls and requests that wait for fresh counters at a time; further calls get the counters as they are.
pub const FRESH_WAITING_MAX: usize = 1024;
/// Destinations whose own address is known; over it, all are forgotten and asked for again.
pub const ROUTES_KNOWN_MAX: usize = 4096;
/// Messages and requests that wait for the node's own address toward a destination; further ones have no route.
pub const ROUTE_WAITING_MAX: usize = 4096;
