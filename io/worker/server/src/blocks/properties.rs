// SPDX-License-Identifier: Apache-2.0
//! `netserv:properties/properties`.

use wasmtime::component::{HasSelf, Linker};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-properties",
        inline: "package netserv:host-properties; world host { import netserv:properties/properties@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::properties::properties as wit;

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.module.properties.get(&key).cloned())
    }

    fn all(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(self.module.properties.clone().into_iter().collect())
    }
}
