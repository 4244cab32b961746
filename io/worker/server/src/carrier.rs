// SPDX-License-Identifier: Apache-2.0
//! What a server part carries from one node to another: `wit/deps/netserv-state/state.wit`.

use netserv_model::limits::STATE_BYTES_MAX;
use netserv_model::{Refusal, RefusalKind};
use netserv_worker_base::failure;
use tokio::time::timeout;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::component::failed;
use super::engine::ServerEngine;
use super::state::ServerState;
use crate::limits;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-state",
        inline: "package netserv:host-state; world carriers { export netserv:state/carrier@1.0.0; }",
        exports: { default: async },
        require_store_data_send: true,
    });
}

use bindings::{Carriers, CarriersPre};

/// Whether instances of a component carry state, and how.
#[derive(Clone)]
pub struct CarrierPre(Option<CarriersPre<ServerState>>);

/// What carries the state of one instance.
pub struct Carrier(Option<Carriers>);

impl CarrierPre {
    /// Looks at what a component exports.
    pub fn new(pre: InstancePre<ServerState>) -> CarrierPre {
        CarrierPre(CarriersPre::new(pre).ok())
    }

    /// Returns whether instances carry state.
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Returns what carries the state of an instance.
    ///
    /// # Errors
    /// The instance is of another component.
    pub fn of(&self, store: &mut Store<ServerState>, instance: &Instance) -> wasmtime::Result<Carrier> {
        self.0.as_ref().map(|_| Carriers::new(store, instance)).transpose().map(Carrier)
    }
}

impl Carrier {
    /// Returns what the instance says; nothing if it carries no state. After a refusal of the kind
    /// [`RefusalKind::Trapped`] or [`RefusalKind::Stalled`], the instance is used up.
    ///
    /// # Errors
    /// It traps, does not come back, refuses, or says too much.
    pub async fn export(
        &self,
        engine: &ServerEngine,
        store: &mut Store<ServerState>,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(carriers) = &self.0 else { return Ok(None) };
        store.data_mut().cap.denied = None;
        let called = engine.pace(carriers.netserv_state_carrier().call_export_state(&mut *store));
        let state = match timeout(limits::STATE_CALL_TIME_MAX, called).await {
            Ok(Ok(state)) => state.map_err(|why| refused("did not say its state", &why))?,
            Ok(Err(error)) => return Err(failed(&error, store.data())),
            Err(_) => return Err(stalled("export-state")),
        };
        if state.len() as u64 > STATE_BYTES_MAX {
            let detail = format!("the module said {} bytes of state, at most {STATE_BYTES_MAX} may move", state.len());
            return Err(Refusal::new(RefusalKind::StateRefused, detail));
        }
        Ok((!state.is_empty()).then_some(state))
    }

    /// Has the instance take what another one said. After a refusal the instance is not to be used.
    ///
    /// # Errors
    /// It carries no state, traps, does not come back, or refuses.
    pub async fn import(
        &self,
        engine: &ServerEngine,
        store: &mut Store<ServerState>,
        state: &[u8],
    ) -> Result<(), Refusal> {
        let Some(carriers) = &self.0 else { return Err(failure::no_carrier("server")) };
        let called = engine.pace(carriers.netserv_state_carrier().call_import_state(&mut *store, state));
        match timeout(limits::STATE_CALL_TIME_MAX, called).await {
            Ok(Ok(taken)) => taken.map_err(|why| refused("did not take the state", &why)),
            Ok(Err(error)) => Err(failed(&error, store.data())),
            Err(_) => Err(stalled("import-state")),
        }
    }
}

fn refused(what: &str, why: &str) -> Refusal {
    let why: String = why.chars().take(limits::STATE_WORDS_CHARS_MAX).collect();
    Refusal::new(RefusalKind::StateRefused, format!("the module {what}: {}", why.escape_debug()))
}

fn stalled(call: &str) -> Refusal {
    Refusal::new(RefusalKind::Stalled, format!("the module did not come back from {call}"))
}
