// SPDX-License-Identifier: Apache-2.0
//! A simulated world: many nodes with the real engines, links with delay, loss and reordering, in virtual time.
//!
//! A run is a function of the seed and of what the test asks for; [`World::trace_hash`] tells two runs apart. Nodes are
//! those that `netservd` runs, `netserv_node::Node` as it is shipped; their machines carry effects out in virtual time,
//! and badly if a test wants that. [`expected_stack`] says in a few lines what a request must bring back.

mod catalogue;
pub mod follow;
mod machine;
mod net;
mod reference;
mod sim;
mod station;
mod tcp;
mod topology;
mod trace;
pub mod truth;

pub use catalogue::{MODULES, USERS};
pub use machine::{LIFE_MAX, MachineQuality};
pub use reference::{Expected, expected_stack, fault_in_stack};
pub use sim::{Fault, Leftovers, Outcome, Settings, World};
pub use topology::{Kind, LinkId, LinkQuality, Topology, VertexId};

/// Returns the seed of a run: `NETSERV_SEED` if it is set, or `default`; printed, so that a failure can be run again.
pub fn seed_from_env(default: u64) -> u64 {
    let seed = std::env::var("NETSERV_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    println!("NETSERV_SEED={seed}");
    seed
}
