// SPDX-License-Identifier: Apache-2.0
//! `inject`.

use wasmtime::{Caller, Linker};

use super::{MODULE, bytes, code, guest};
use crate::error::HostError;
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "inject", |mut caller: Caller<'_, Host>, packet: u32, length: u32| {
        code(inject(&mut caller, packet, length))
    })?;
    Ok(())
}

fn inject(caller: &mut Caller<'_, Host>, packet: u32, length: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    host.injected.push(bytes(memory, packet, length)?)?;
    Ok(0)
}
