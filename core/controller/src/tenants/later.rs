// SPDX-License-Identifier: Apache-2.0
//! What goes on once all commands so far are taken.

use std::collections::VecDeque;

use netserv_model::WorkerId;

use crate::cx::request::Key;

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
