// SPDX-License-Identifier: Apache-2.0
//! `inject`.

use netserv_model::limits::PACKET_BYTES_MAX;
use netserv_worker_base::error::HostError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "inject", |mut caller: Caller<'_, Host>, packet: u32, length: u32| {
        code(inject(&mut caller, packet, length))
    })?;
    Ok(())
}

fn inject(caller: &mut Caller<'_, Host>, packet: u32, length: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    host.injected.push(&memory.read(packet, length, PACKET_BYTES_MAX)?)?;
    Ok(0)
}
