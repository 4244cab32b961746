// SPDX-License-Identifier: Apache-2.0
//! `counter_open`, `counter_add`, `counter_set`.

use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::COUNTER_NAME_BYTES_MAX;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "counter_open", |mut caller: Caller<'_, Host>, name: u32, length: u32| {
        code(counter_open(&mut caller, name, length))
    })?;
    linker.func_wrap(MODULE, "counter_add", |mut caller: Caller<'_, Host>, counter: u32, amount: u64| {
        code(caller.data_mut().counters.add(counter as usize, amount).map(|()| 0))
    })?;
    linker.func_wrap(MODULE, "counter_set", |mut caller: Caller<'_, Host>, counter: u32, value: u64| {
        code(caller.data_mut().counters.set(counter as usize, value).map(|()| 0))
    })?;
    Ok(())
}

fn counter_open(caller: &mut Caller<'_, Host>, name: u32, length: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let name = memory.read(name, length, COUNTER_NAME_BYTES_MAX)?;
    let number = host.counters.open(&name, host.limits.counters)?;
    i32::try_from(number).map_err(|_| HostError::Quota)
}
