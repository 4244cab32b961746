// SPDX-License-Identifier: Apache-2.0
//! The provider's side, without I/O: observations of clients in, deployments of modules near them out.
//!
//! Clients are counted by region, a prefix of their addresses. A region with enough of them is asked for the nodes on the way
//! ([`Wish::Probe`]): if the last of them has the rule's module already, the region shares that deployment, and else one is made
//! ([`Wish::Setup`]). It is refreshed while clients of any of its regions are seen, and removed when none is. So however many
//! clients there are behind one node, it has one deployment, and one SETUP is under way.
//!
//! Who calls carries wishes out and answers each by [`Placement::answered`]; [`Change`]s are to be kept, so that a restarted agent
//! finds what it has deployed.
//!
//! [`candidates`] says which node suits a module; [`relocation`] has the steps by which one moves.
#![forbid(unsafe_code)]

mod around;
pub mod candidates;
mod deployment;
mod error;
pub mod limits;
mod moves;
mod placement;
mod region;
mod regulator;
pub mod relocation;
mod rule;
#[cfg(test)]
mod tests;
mod wish;

pub use deployment::{Deployment, DeploymentId, Distance, Health, Node, Served};
pub use error::RuleError;
pub use moves::{Ended, MoveEnd, MoveRecord, Moves, Moving, Why};
pub use placement::{Counters, Placement};
pub use regulator::{Bounds, Regulator, Said};
pub use rule::Rule;
pub use wish::{Answer, Change, Ticket, Wish};

/// A rule; no other one has or had its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);
