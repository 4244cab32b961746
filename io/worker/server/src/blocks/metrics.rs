// SPDX-License-Identifier: Apache-2.0
//! `netserv:metrics/counters`.

use netserv_worker_base::error::HostError;
use wasmtime::component::{HasSelf, Linker};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-metrics",
        inline: "package netserv:host-metrics; world host { import netserv:metrics/counters@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::metrics::counters::{self as wit, Error};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn add(&mut self, name: String, amount: u64) -> wasmtime::Result<Result<(), Error>> {
        let mut counters = self.module.lock_counters();
        let number = counters.open(name.as_bytes(), self.module.limits.counters);
        Ok(number.and_then(|number| counters.add(number, amount)).map_err(Error::from))
    }

    fn set(&mut self, name: String, value: u64) -> wasmtime::Result<Result<(), Error>> {
        let mut counters = self.module.lock_counters();
        let number = counters.open(name.as_bytes(), self.module.limits.counters);
        Ok(number.and_then(|number| counters.set(number, value)).map_err(Error::from))
    }

    fn get(&mut self, name: String) -> wasmtime::Result<u64> {
        Ok(self.module.lock_counters().value(&name))
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        match error {
            HostError::Quota => Error::Quota,
            HostError::TooLarge | HostError::Invalid | HostError::NotFound | HostError::BadAddress => Error::Invalid,
        }
    }
}
