// SPDX-License-Identifier: Apache-2.0
//! `netserv:tcp/control`.

use wasmtime::component::{HasSelf, Linker};

use crate::server::state::ServerState;
use crate::server::tcp::wit::{Side, control as wit};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

type Answer = wasmtime::Result<Result<(), wit::Error>>;

impl wit::Host for ServerState {
    fn send(&mut self, id: u64, to: Side, bytes: Vec<u8>) -> Answer {
        Ok(self.tcp.send(id, to, bytes))
    }

    fn shutdown(&mut self, id: u64, to: Side) -> Answer {
        Ok(self.tcp.shutdown(id, to))
    }

    fn close(&mut self, id: u64) -> Answer {
        Ok(self.tcp.close(id))
    }

    fn set_timer(&mut self, id: u32, delay_ms: u64, period_ms: u64) -> Answer {
        Ok(self.tcp.set_timer(id, delay_ms, period_ms))
    }

    fn cancel_timer(&mut self, id: u32) -> wasmtime::Result<()> {
        self.tcp.cancel_timer(id);
        Ok(())
    }
}
