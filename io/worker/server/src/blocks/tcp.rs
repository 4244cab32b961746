// SPDX-License-Identifier: Apache-2.0
//! `netserv:tcp/control`.

use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::io::poll::HostPollable as _;

use crate::state::ServerState;
use crate::tcp::wit::{Address, Side, control as wit, first};

/// Adds both versions of the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    first::control::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

type Answer<T = ()> = wasmtime::Result<Result<T, wit::Error>>;
type FirstAnswer = wasmtime::Result<Result<(), first::control::Error>>;

impl wit::Host for ServerState {
    fn send(&mut self, id: u64, to: Side, bytes: Vec<u8>) -> Answer {
        let sent = self.tcp.send(id, to, &bytes);
        Ok(sent.map(|sent| self.module.counts.bytes_out(sent)))
    }

    fn queued(&mut self, id: u64, to: Side) -> Answer<u64> {
        Ok(self.tcp.queued(id, to))
    }

    fn pause(&mut self, id: u64, source: Side) -> Answer {
        Ok(self.tcp.pause(id, source, true))
    }

    fn resume(&mut self, id: u64, source: Side) -> Answer {
        Ok(self.tcp.pause(id, source, false))
    }

    fn shutdown(&mut self, id: u64, to: Side) -> Answer {
        Ok(self.tcp.shutdown(id, to))
    }

    fn close(&mut self, id: u64) -> Answer {
        Ok(self.tcp.close(id))
    }

    fn open(&mut self, remote: Address) -> Answer<u64> {
        // While it is made, an instance has no connections.
        Ok(self.tcp.open_to(&remote))
    }

    fn set_timer(&mut self, id: u32, delay_ms: u64, period_ms: u64) -> Answer {
        Ok(self.tcp.set_timer(id, delay_ms, period_ms))
    }

    fn cancel_timer(&mut self, id: u32) -> wasmtime::Result<()> {
        self.tcp.cancel_timer(id);
        Ok(())
    }

    fn watch(&mut self, what: Resource<DynPollable>, token: u32) -> Answer {
        match self.tcp.watch(token, what.rep()) {
            Ok(replaced) => self.forget(replaced).map(Ok),
            Err(error) => self.table.drop(what).map(|()| Err(error)),
        }
    }

    fn unwatch(&mut self, token: u32) -> wasmtime::Result<()> {
        let watched = self.tcp.unwatch(token);
        self.forget(watched)
    }
}

impl ServerState {
    fn forget(&mut self, pollable: Option<u32>) -> wasmtime::Result<()> {
        pollable.map_or(Ok(()), |pollable| self.table.drop(Resource::<DynPollable>::new_own(pollable)))
    }
}

impl first::control::Host for ServerState {
    fn send(&mut self, id: u64, to: first::Side, bytes: Vec<u8>) -> FirstAnswer {
        as_first(wit::Host::send(self, id, to.into(), bytes))
    }

    fn shutdown(&mut self, id: u64, to: first::Side) -> FirstAnswer {
        as_first(wit::Host::shutdown(self, id, to.into()))
    }

    fn close(&mut self, id: u64) -> FirstAnswer {
        as_first(wit::Host::close(self, id))
    }

    fn set_timer(&mut self, id: u32, delay_ms: u64, period_ms: u64) -> FirstAnswer {
        as_first(wit::Host::set_timer(self, id, delay_ms, period_ms))
    }

    fn cancel_timer(&mut self, id: u32) -> wasmtime::Result<()> {
        wit::Host::cancel_timer(self, id)
    }
}

fn as_first(answer: Answer) -> FirstAnswer {
    answer.map(|answer| answer.map_err(first::control::Error::from))
}
