// SPDX-License-Identifier: Apache-2.0
//! The stops of a packet's path: the containers that it is shown to.

use netserv_model::effect::FilterId;
use netserv_model::verdict::FailureMode;

use crate::module_filter::{ModuleFilter, bit};
use crate::workers::WorkerSlot;

/// One stop on a packet's way through containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) worker: WorkerSlot,
    /// The bits of the modules that are to see the packet.
    pub(crate) modules: u64,
    /// The bits of those that fail closed.
    pub(crate) closed: u64,
    /// The filter by which packets wait here, if they do.
    pub(crate) wait: Option<FilterId>,
}

impl Stop {
    /// Returns the stop that a filter leads to.
    pub(crate) fn new(worker: WorkerSlot, id: FilterId, filter: &ModuleFilter) -> Stop {
        let bit = bit(filter.slot);
        let closed = if filter.on_failure == FailureMode::Closed { bit } else { 0 };
        let (modules, wait) = if filter.buffers.is_some() { (0, Some(id)) } else { (bit, None) };
        Stop { worker, modules, closed, wait }
    }

    /// Returns what happens to the packet while its modules cannot say.
    pub(crate) fn on_failure(&self) -> FailureMode {
        let asked = if self.wait.is_some() { self.closed } else { self.modules & self.closed };
        if asked == 0 { FailureMode::Open } else { FailureMode::Closed }
    }
}
