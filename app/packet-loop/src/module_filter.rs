// SPDX-License-Identifier: Apache-2.0
//! The filters of modules, as the packet loop has them.

use netserv_model::effect::ModuleSlot;
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, ModuleRef, WorkerId};

/// An installed filter, and the module that it shows packets to.
#[derive(Clone, Debug)]
pub struct ModuleFilter {
    /// The module's worker.
    pub worker: WorkerId,
    /// The module's place.
    pub slot: ModuleSlot,
    /// The module, for people who trace packets.
    pub module: Option<ModuleRef>,
    /// Which packets.
    pub filter: Filter,
    /// What happens to them while the module cannot say.
    pub on_failure: FailureMode,
}
