// SPDX-License-Identifier: Apache-2.0
//! `kv_get`, `kv_set`, `kv_delete`, `kv_next`, `kv_increment`, `kv_compare_and_set`.

use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::{KV_KEY_BYTES_MAX, KV_VALUE_BYTES_MAX};
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

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
    linker.func_wrap(
        MODULE,
        "kv_increment",
        |mut caller: Caller<'_, Host>, key: u32, key_length: u32, delta: i64, out: u32| {
            code(kv_increment(&mut caller, (key, key_length), delta, out))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "kv_compare_and_set",
        |mut caller: Caller<'_, Host>, key: u32, key_length: u32, old: u32, old_length: u32, new: u32, length: u32| {
            code(kv_compare_and_set(&mut caller, (key, key_length), (old, old_length), (new, length)))
        },
    )?;
    Ok(())
}

/// The length of a value that is not there.
const NO_VALUE: u32 = u32::MAX;

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

fn kv_increment(caller: &mut Caller<'_, Host>, key: (u32, u32), delta: i64, out: u32) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    // A place for the sum is looked for first: what cannot be told is not done.
    memory.read(out, 8, 0)?;
    let sum = host.kv.lock().increment(&memory.read(key.0, key.1, KV_KEY_BYTES_MAX)?, delta, &host.limits)?;
    memory.put(out, 8, &sum.to_le_bytes()).map(|_| 0)
}

fn kv_compare_and_set(
    caller: &mut Caller<'_, Host>,
    key: (u32, u32),
    old: (u32, u32),
    new: (u32, u32),
) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let value = |(address, length): (u32, u32)| match length {
        NO_VALUE => Ok(None),
        length => memory.read(address, length, KV_VALUE_BYTES_MAX).map(Some),
    };
    let (key, old, new) = (memory.read(key.0, key.1, KV_KEY_BYTES_MAX)?, value(old)?, value(new)?);
    host.kv.lock().compare_and_set(&key, old.as_deref(), new.as_deref(), &host.limits).map(i32::from)
}
