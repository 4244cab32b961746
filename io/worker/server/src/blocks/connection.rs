// SPDX-License-Identifier: Apache-2.0
//! `netserv:connection/flow`.

use std::net::SocketAddr;

use wasmtime::component::{HasSelf, Linker};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-connection",
        inline: "package netserv:host-connection; world host { import netserv:connection/flow@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::connection::flow as wit;

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn request(&mut self) -> wasmtime::Result<Option<wit::Ends>> {
        Ok(self.flow.map(|flow| wit::Ends {
            client: address(flow.client),
            server: address(flow.server),
            intercepted: flow.is_intercepted,
            tls: flow.is_secure,
        }))
    }
}

/// An address of IPv4 within IPv6 is said as IPv4.
fn address(socket: SocketAddr) -> wit::Address {
    wit::Address { ip: socket.ip().to_canonical().to_string(), port: socket.port() }
}
