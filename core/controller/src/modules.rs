// SPDX-License-Identifier: Apache-2.0
//! What is known of the modules on the node, and of those that were there.

use std::collections::VecDeque;

use netserv_model::WorkerId;

use crate::buffering::Buffers;
use crate::control::ToldBefore;
use crate::moves::Epochs;
use crate::quota::{Nonces, Quarantine};
use crate::state::Key;
use crate::tenants::Tenants;

/// What the life of modules goes on with, one part each.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    pub(crate) tenants: Tenants,
    pub(crate) buffers: Buffers,
    pub(crate) epochs: Epochs,
    pub(crate) told_before: ToldBefore,
    pub(crate) quarantine: Quarantine,
    pub(crate) nonces: Nonces,
    pub(crate) later: Later,
}

/// What goes on once all commands so far are taken.
#[derive(Debug, Default)]
pub(crate) struct Later {
    /// Services without code of their own, which are to be put in force.
    pub(crate) swaps: VecDeque<Key>,
    /// Modules for which all is ready that was to be, and the workers that wait for them.
    pub(crate) prepared: VecDeque<(Key, Option<WorkerId>)>,
}

impl Later {
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.swaps.is_empty() && self.prepared.is_empty()
    }
}
