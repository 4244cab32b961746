// SPDX-License-Identifier: Apache-2.0
//! `netserv:log/log`.

use netserv_wire::container::frames::LogLevel;
use wasmtime::component::{HasSelf, Linker};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-log",
        inline: "package netserv:host-log; world host { import netserv:log/log@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::log::log::{self as wit, Level};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn log(&mut self, level: Level, line: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Error => LogLevel::Error,
            Level::Warn => LogLevel::Warn,
            Level::Info => LogLevel::Info,
            Level::Debug => LogLevel::Debug,
        };
        if level == LogLevel::Error {
            self.said.add_line(line.as_bytes());
        }
        self.module.log(level, line.as_bytes());
        Ok(())
    }
}
