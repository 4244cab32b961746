// SPDX-License-Identifier: Apache-2.0
//! `kv_get`, `kv_set`, `kv_delete`, `kv_next`.

use wasmtime::{Caller, Linker};

use super::{MODULE, code, guest};
use crate::error::HostError;
use crate::host::Host;
use crate::limits::{KV_KEY_BYTES_MAX, KV_VALUE_BYTES_MAX};

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "kv_get",
        |mut caller: Caller<'_, Host>, key: u32, key_length: u32, out: u32, out_length: u32| {
            code(kv_get(&mut caller, (key, key_length), (out, out_length)))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "kv_set",
        |mut caller: Caller<'_, Host>, key: u32, key_length: u32, value: u32, value_length: u32| {
            code(kv_set(&mut caller, (key, key_length), (value, value_length)))
        },
    )?;
    linker.func_wrap(MODULE, "kv_delete", |mut caller: Caller<'_, Host>, key: u32, key_length: u32| {
        code(kv_delete(&mut caller, (key, key_length)))
    })?;
    linker.func_wrap(
        MODULE,
        "kv_next",
        |mut caller: Caller<'_, Host>, key: u32, key_length: u32, out: u32, out_length: u32| {
            code(kv_next(&mut caller, (key, key_length), (out, out_length)))
        },
    )?;
    Ok(())
}

fn kv_get(caller: &mut Caller<'_, Host>, key: (u32, u32), out: (u32, u32)) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let kv = host.kv.lock();
    let value = kv.value(&memory.read(key.0, key.1, KV_KEY_BYTES_MAX)?).ok_or(HostError::NotFound)?;
    memory.put(out.0, out.1, value)
}

fn kv_set(caller: &mut Caller<'_, Host>, key: (u32, u32), value: (u32, u32)) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let key = memory.read(key.0, key.1, KV_KEY_BYTES_MAX)?;
    let value = memory.read(value.0, value.1, KV_VALUE_BYTES_MAX)?;
    host.kv.lock().set(&key, &value, &host.limits)?;
    Ok(0)
}

fn kv_delete(caller: &mut Caller<'_, Host>, key: (u32, u32)) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    host.kv.lock().delete(&memory.read(key.0, key.1, KV_KEY_BYTES_MAX)?)?;
    Ok(0)
}

fn kv_next(caller: &mut Caller<'_, Host>, key: (u32, u32), out: (u32, u32)) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let kv = host.kv.lock();
    let next = kv.next(&memory.read(key.0, key.1, KV_KEY_BYTES_MAX)?).ok_or(HostError::NotFound)?;
    memory.put(out.0, out.1, next)
}
