// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a rule.

use crate::limits::{DEPLOYMENTS_MAX, LEASE_MIN, LOOK_EVERY_MAX, LOOKS_MAX, REST_MAX};

/// A rule that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The count is 0.
    #[error("`count` is 0; 1 deploys at the first client")]
    Count,
    /// The window or the idle time is nothing.
    #[error("`{0}` is no time at all")]
    NoTime(&'static str),
    /// A prefix is longer than an address.
    #[error("`{0}` is longer than an address")]
    Bits(&'static str),
    /// The lease is too short.
    #[error("`lease` is below {} s", LEASE_MIN.as_secs())]
    Lease,
    /// The number of deployments is out of bounds.
    #[error("`deployments-max` is not from 1 to {DEPLOYMENTS_MAX}")]
    Deployments,
    /// A module that moves has more than one deployment.
    #[error("`move` takes `deployments-max = 1`: one node has the module")]
    Moves,
    /// The load at which it would be another node's turn is over the one at which it moves.
    #[error("`move`: `load-until` is over `load-over`")]
    Load,
    /// The number of looks is out of bounds.
    #[error("`move`: `looks` is not from 1 to {LOOKS_MAX}")]
    Looks,
    /// Nodes would be asked all the time, or never.
    #[error("`move`: `every-s` is not from 1 to {}", LOOK_EVERY_MAX.as_secs())]
    Every,
    /// The rest is out of bounds.
    #[error("`move`: `rest-s` is over {}", REST_MAX.as_secs())]
    Rest,
}
