// SPDX-License-Identifier: Apache-2.0
//! What an idle session takes of a node's memory.

use std::time::Duration;

use super::graph::Graph;
use super::net::Net;
use crate::sys::allocated_bytes;

/// Bytes for each session, as the allocator counts them: with its own headers and rounding, without pages that it keeps.
#[derive(Clone, Copy, Debug)]
pub struct IdleBytes {
    /// Both ends of a path together: the querying end with its lease, and the responding end with its.
    pub ends: f64,
    /// A node between: a row toward either neighbour, and the lease.
    pub between: f64,
}

/// Sets sessions up along two nodes and along three, lets them be for some refreshes, and counts. Nothing else may allocate
/// meanwhile. Each run has random numbers of its own.
pub fn idle_bytes(sessions: u32, run: u32) -> IdleBytes {
    let (two, three) = (bytes(2, sessions, run), bytes(3, sessions, run));
    IdleBytes { ends: two, between: three - two }
}

fn bytes(nodes: u32, sessions: u32, run: u32) -> f64 {
    let mut net = Net::of_run(Graph::chain(nodes), run, |_| {});
    let before = allocated_bytes();
    for _ in 0..sessions {
        net.begin(0, nodes - 1, LEASE);
        net.run_for(PACE);
    }
    net.run_for(REFRESHED);
    assert_eq!(net.leases(), (sessions * nodes) as usize, "every node has a lease of every session");
    assert_eq!(net.rows(), (sessions * (nodes - 1)) as usize, "and is asked by the one before it");
    let all = allocated_bytes().saturating_sub(before);
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let each = all as f64 / f64::from(sessions);
    each
}

const LEASE: Duration = Duration::from_secs(24 * 3600);
/// Between two sessions, so that few are under way at a time.
const PACE: Duration = Duration::from_micros(500);
/// Two refreshes of each row.
const REFRESHED: Duration = Duration::from_secs(50);
