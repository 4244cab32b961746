// SPDX-License-Identifier: Apache-2.0
//! `netserv:node/info`.

use wasmtime::component::{HasSelf, Linker};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-node",
        inline: "package netserv:host-node; world host { import netserv:node/info@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::node::info as wit;

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn id(&mut self) -> wasmtime::Result<String> {
        Ok(self.module.node.id.clone())
    }

    fn place(&mut self) -> wasmtime::Result<String> {
        Ok(self.module.node.place.clone())
    }

    fn fact(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self.module.node.facts.get(&name).cloned())
    }

    fn facts(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(self.module.node.facts.clone().into_iter().collect())
    }

    fn addresses(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.module.node.addresses.iter().map(ToString::to_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use netserv_model::node_info::NodeInfo;
    use wit::Host as _;

    use super::*;
    use crate::blocks::testing::state;
    use crate::module::Shared;

    #[test]
    fn a_module_reads_what_the_operator_wrote() {
        let info = NodeInfo {
            id: "n1".to_owned(),
            place: "berlin".to_owned(),
            facts: [("uplink".to_owned(), "10G".to_owned())].into(),
            addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        };
        let mut state = state(|module| Shared { node: Arc::new(info.clone()), ..Shared::for_tests(module) });
        assert_eq!((state.id().unwrap(), state.place().unwrap()), ("n1".to_owned(), "berlin".to_owned()));
        assert_eq!(state.fact("uplink".to_owned()).unwrap().as_deref(), Some("10G"));
        assert_eq!(state.fact("tariff".to_owned()).unwrap(), None);
        assert_eq!(state.facts().unwrap(), [("uplink".to_owned(), "10G".to_owned())]);
        assert_eq!(state.addresses().unwrap(), ["192.0.2.1", "2001:db8::1"]);
    }
}
