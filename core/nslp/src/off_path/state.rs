// SPDX-License-Identifier: Apache-2.0
//! All that is known of nodes off the path.

use super::brought::Brought;
use super::neighbourhood::Neighbourhood;
use crate::cx::Burst;
use crate::limits::{COPIES_BURST_MAX, COPIES_INTERVAL};

/// What this node knows of the nodes off its paths.
#[derive(Debug)]
pub(crate) struct OffPath {
    pub(crate) neighbourhood: Neighbourhood,
    pub(crate) brought: Brought,
    /// Messages to nodes off paths.
    pub(crate) copies: Burst,
}

impl Default for OffPath {
    fn default() -> OffPath {
        OffPath {
            neighbourhood: Neighbourhood::default(),
            brought: Brought::default(),
            copies: Burst::new(COPIES_BURST_MAX, COPIES_INTERVAL),
        }
    }
}
