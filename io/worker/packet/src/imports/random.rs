// SPDX-License-Identifier: Apache-2.0
//! `random`.

use netserv_worker_base::error::HostError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;
use crate::limits;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "random", |mut caller: Caller<'_, Host>, into: u32, length: u32| {
        code(random(&mut caller, into, length))
    })?;
    Ok(())
}

fn random(caller: &mut Caller<'_, Host>, into: u32, length: u32) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    memory.read(into, length, 0)?;
    let mut bytes = [0; limits::RANDOM_BYTES_MAX];
    let bytes = bytes.get_mut(..length as usize).ok_or(HostError::TooLarge)?;
    host.entropy.fill(bytes);
    memory.put(into, length, bytes)?;
    Ok(0)
}
