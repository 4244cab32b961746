// SPDX-License-Identifier: Apache-2.0
//! The interfaces of `netserv:tcp`: what 1.1.0 says is what the node works with, and 1.0.0 is translated.

mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../../wit/deps/wasi-io", "../../../wit/deps/netserv-tcp-1.1"],
        inline: "package netserv:host-tcp;
            world tcp-host { import netserv:tcp/control@1.1.0; export netserv:tcp/handler@1.1.0; }",
        imports: { default: trappable },
        exports: { default: async },
        require_store_data_send: true,
        with: { "wasi:io": wasmtime_wasi::p2::bindings::io },
    });
}

/// What modules export that hand connections over.
mod heirs {
    wasmtime::component::bindgen!({
        path: ["../../../wit/deps/wasi-io", "../../../wit/deps/netserv-tcp-1.1"],
        inline: "package netserv:host-tcp-heirs;
            world heirs { export netserv:tcp/hand-over@1.1.0; }",
        exports: { default: async },
        require_store_data_send: true,
        with: { "netserv:tcp/types@1.1.0": super::bindings::netserv::tcp::types },
    });
}

/// What modules use that were built before 1.1.0.
pub(crate) mod first {
    mod bindings {
        wasmtime::component::bindgen!({
            path: "../../../wit/deps/netserv-tcp",
            inline: "package netserv:host-tcp-first;
                world tcp-host { import netserv:tcp/control@1.0.0; export netserv:tcp/handler@1.0.0; }",
            imports: { default: trappable },
            exports: { default: async },
            require_store_data_send: true,
        });
    }

    pub(crate) use bindings::netserv::tcp::control;
    pub(crate) use bindings::netserv::tcp::types::{Action, Address, Decision, Flow, Side};
    pub(crate) use bindings::{TcpHost, TcpHostPre};
}

pub(crate) use bindings::netserv::tcp::control;
pub(crate) use bindings::netserv::tcp::types::{Action, Address, Decision, Flow, Side};
pub(crate) use bindings::{TcpHost, TcpHostPre};
pub(crate) use heirs::{Heirs, HeirsPre};

impl From<first::Decision> for Decision {
    fn from(decision: first::Decision) -> Decision {
        match decision {
            first::Decision::Accept => Decision::Accept,
            first::Decision::Splice => Decision::Splice,
            first::Decision::Refuse => Decision::Refuse,
        }
    }
}

impl From<first::Action> for Action {
    fn from(action: first::Action) -> Action {
        match action {
            first::Action::Pass => Action::Pass,
            first::Action::Replace(bytes) => Action::Replace(bytes),
            first::Action::Splice => Action::Splice,
            first::Action::Close => Action::Close,
        }
    }
}

impl From<first::Side> for Side {
    fn from(side: first::Side) -> Side {
        match side {
            first::Side::Client => Side::Client,
            first::Side::Server => Side::Server,
        }
    }
}

impl From<Side> for first::Side {
    fn from(side: Side) -> first::Side {
        match side {
            Side::Client => first::Side::Client,
            Side::Server => first::Side::Server,
        }
    }
}

impl From<&Flow> for first::Flow {
    fn from(flow: &Flow) -> first::Flow {
        let address = |of: &Address| first::Address { ip: of.ip.clone(), port: of.port };
        first::Flow { client: address(&flow.client), server: address(&flow.server), intercepted: flow.intercepted }
    }
}

impl From<control::Error> for first::control::Error {
    fn from(error: control::Error) -> first::control::Error {
        match error {
            control::Error::NotFound => first::control::Error::NotFound,
            control::Error::WouldBlock => first::control::Error::WouldBlock,
            control::Error::Quota | control::Error::NotPermitted | control::Error::Invalid => {
                first::control::Error::Quota
            }
        }
    }
}
