// SPDX-License-Identifier: Apache-2.0
//! What continues once all commands so far are taken.

use std::collections::VecDeque;

use netserv_model::WorkerId;

use crate::cx::request::Key;

/// What continues once all commands so far are taken.
#[derive(Debug, Default)]
pub(crate) struct Later {
    /// Services without code of their own, which are to be put in force.
    swaps: VecDeque<Key>,
    /// Modules for which all is ready that was to be, and the workers that wait for them.
    prepared: VecDeque<(Key, Option<WorkerId>)>,
}

/// What continues next.
pub(crate) enum Next {
    /// A service is put in force.
    Swap(Key),
    /// All is ready for a module, and a worker waits for it, if it needs one.
    Prepared(Key, Option<WorkerId>),
}

impl Later {
    /// Has a service be put in force that has nothing to load.
    pub(crate) fn push_swap(&mut self, key: &Key) {
        self.swaps.push_back(key.clone());
    }

    /// Has the request be answered that made all ready for a module.
    pub(crate) fn push_prepared(&mut self, key: &Key, worker: Option<&WorkerId>) {
        self.prepared.push_back((key.clone(), worker.cloned()));
    }

    /// Returns what continues next; services wait for all others.
    pub(crate) fn pop(&mut self) -> Option<Next> {
        let prepared = self.prepared.pop_front().map(|(key, worker)| Next::Prepared(key, worker));
        prepared.or_else(|| self.swaps.pop_front().map(Next::Swap))
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.swaps.is_empty() && self.prepared.is_empty()
    }
}
