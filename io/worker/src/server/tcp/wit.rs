// SPDX-License-Identifier: Apache-2.0
//! The interfaces of `netserv:tcp`.

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package netserv:host-tcp;
            world tcp-host { import netserv:tcp/control@1.0.0; export netserv:tcp/handler@1.0.0; }",
        imports: { default: trappable },
        exports: { default: async },
        require_store_data_send: true,
    });
}

pub(in crate::server) use bindings::netserv::tcp::control;
pub(in crate::server) use bindings::netserv::tcp::types::{Action, Address, Decision, Flow, Side};
pub(in crate::server) use bindings::{TcpHost, TcpHostPre};
