// SPDX-License-Identifier: Apache-2.0
//! `node_info`.

use netserv_worker_base::error::HostError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

/// Bytes of the longest key: `fact.` and a name.
const KEY_BYTES_MAX: usize = "fact.".len() + netserv_model::node_info::FACT_NAME_CHARS_MAX;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "node_info",
        |mut caller: Caller<'_, Host>, key: u32, key_length: u32, out: u32, out_length: u32| {
            code(node_info(&mut caller, (key, key_length), (out, out_length)))
        },
    )?;
    Ok(())
}

fn node_info(caller: &mut Caller<'_, Host>, key: (u32, u32), out: (u32, u32)) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let key = memory.read(key.0, key.1, KEY_BYTES_MAX)?;
    let key = std::str::from_utf8(&key).map_err(|_| HostError::NotFound)?;
    let value = host.node.value(key).ok_or(HostError::NotFound)?;
    memory.put(out.0, out.1, value.as_bytes())
}
