// SPDX-License-Identifier: Apache-2.0
//! Bounds of what is known of clients and deployments.

use std::time::Duration;

/// Rules.
pub const RULES_MAX: usize = 64;
/// Regions whose clients are counted, over all rules. For further ones, those of the network with the most give way: 16 bits of IPv4,
/// 40 of IPv6.
pub const REGIONS_MAX: usize = if cfg!(test) { 1000 } else { 1_000_000 };
/// Regions of that network that are looked at, whether something came of them.
pub const GIVING_WAY_LOOKED_MAX: usize = 256;
/// Deployments at a time, over all rules; each rule has a bound of its own below it.
pub const DEPLOYMENTS_MAX: usize = 10_000;
/// Nodes that are kept of one path.
pub const NODES_MAX: usize = 64;
/// Regions that are looked at in one go, whether they are to be forgotten.
pub const SWEEP_STEP: usize = if cfg!(test) { 100 } else { 2048 };
/// How long it is until the next ones are,
pub const SWEEP_EVERY: Duration = Duration::from_millis(50);
/// and until all of them are looked at anew.
pub const SWEEP_REST: Duration = Duration::from_secs(10);
/// Requests that wait for their answer.
pub const ASKED_MAX: usize = 256;
/// Of them, those for the way to a region. Others wait for their turn, which networks of IPv4 (16 bits) and IPv6 (40 bits) take.
pub const PROBES_MAX: usize = 32;
/// Regions of one network that wait for it; further ones are brought up again by their next client.
pub const WANTED_PER_NETWORK_MAX: usize = 256;
/// Networks with regions that wait for it.
pub const NETWORKS_MAX: usize = if cfg!(test) { 1000 } else { 1 << 16 };
/// How long the way to a region counts as known.
pub const WAY_TIME: Duration = Duration::from_secs(600);
/// How long a region is left alone at first whose way has no node, or where a request failed; doubled each time.
pub const BACKOFF_MIN: Duration = Duration::from_secs(5);
/// How long at most.
pub const BACKOFF_MAX: Duration = Duration::from_secs(3600);
/// How often nodes are asked to remove a module at most,
pub const REMOVES_MAX: u32 = 5;
/// and how long it is from a failure to the next time.
pub const REMOVE_AGAIN: Duration = Duration::from_millis(500);
/// How long it is at least until a lease is renewed, however short it is.
pub const REFRESH_MIN: Duration = Duration::from_secs(5);
/// Looks in a row at most by which a module moves.
pub const LOOKS_MAX: u32 = 100;
/// How long it is at most from one look at the nodes around a deployment to the next.
pub const LOOK_EVERY_MAX: Duration = Duration::from_secs(3600);
/// How long a module that moved stays where it is at most.
pub const REST_MAX: Duration = Duration::from_secs(86_400);
/// Clients of a deployment whose ways are looked at, in turn: those that were seen last, one of each region.
pub const CLIENTS_MAX: usize = 4;
/// Nodes that are known not to have taken a module; of more, the one that is asked again first is forgotten.
pub const AVOID_MAX: usize = 64;
/// How long such a node is left alone at most.
pub const AVOID_TIME_MAX: Duration = Duration::from_secs(600);
/// Moves that are kept in mind for people.
pub const MOVES_KEPT: usize = 32;
/// How often a node is asked again whether it is ready for a module, which it answers after a minute at the latest.
pub const TRIES_MAX: u32 = 5;
/// By how much the epoch of a module's next owner is later than that of the last one, at most: what is said beyond is not believed.
pub const EPOCHS_AHEAD_MAX: u64 = 1000;
/// Leases shorter than this are refreshed too often.
pub const LEASE_MIN: Duration = Duration::from_secs(10);
