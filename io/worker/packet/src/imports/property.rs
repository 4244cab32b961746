// SPDX-License-Identifier: Apache-2.0
//! `property_get`.

use netserv_model::limits::PROPERTY_BYTES_MAX;
use netserv_worker_base::error::HostError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "property_get",
        |mut caller: Caller<'_, Host>, key: u32, key_length: u32, out: u32, out_length: u32| {
            code(property_get(&mut caller, (key, key_length), (out, out_length)))
        },
    )?;
    Ok(())
}

fn property_get(caller: &mut Caller<'_, Host>, key: (u32, u32), out: (u32, u32)) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let key = memory.read(key.0, key.1, PROPERTY_BYTES_MAX)?;
    let key = std::str::from_utf8(&key).map_err(|_| HostError::NotFound)?;
    let value = host.properties.get(key).ok_or(HostError::NotFound)?;
    memory.put(out.0, out.1, value.as_bytes())
}
