// SPDX-License-Identifier: Apache-2.0
//! `random`.

use wasmtime::{Caller, Linker};

use super::{MODULE, bytes_mut, code, guest};
use crate::error::HostError;
use crate::host::Host;
use crate::limits;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "random", |mut caller: Caller<'_, Host>, into: u32, length: u32| {
        code(random(&mut caller, into, length))
    })?;
    Ok(())
}

fn random(caller: &mut Caller<'_, Host>, into: u32, length: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let into = bytes_mut(memory, into, length)?;
    if into.len() > limits::RANDOM_BYTES_MAX {
        return Err(HostError::TooLarge);
    }
    host.entropy.fill(into);
    Ok(0)
}
