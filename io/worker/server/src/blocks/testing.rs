// SPDX-License-Identifier: Apache-2.0
//! An instance of no component, for tests of what blocks do.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use netserv_model::ModuleRef;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::ServerLoad;
use netserv_worker_base::wakeup::Wakeup;

use crate::egress::Egress;
use crate::module::{Module, Profile, Shared};
use crate::state::{ServerState, Sockets};

/// Returns the node's side of an instance whose module shares this.
pub(crate) fn state(shared: impl FnOnce(&ModuleRef) -> Shared) -> ServerState {
    let profile = Profile {
        slot: ModuleSlot(0),
        name: "example.org/a@1.0.0".parse().unwrap(),
        properties: BTreeMap::new(),
        limits: ModuleLimits::default(),
        blocks: BTreeSet::new(),
        network: ServerLoad::default(),
    };
    let shared = shared(&profile.name);
    let module = Arc::new(Module::new(profile, shared, Arc::new(Wakeup::new().unwrap())));
    ServerState::new(&module, Sockets::None, Egress::new(&module))
}

/// Returns the node's side of another instance of the same module.
pub(super) fn another(state: &ServerState) -> ServerState {
    ServerState::new(&state.module, Sockets::None, Egress::new(&state.module))
}

/// Runs a task as the server thread does.
pub(crate) fn run(task: impl Future<Output = ()>) {
    crate::thread::runtime().unwrap().block_on(task);
}
