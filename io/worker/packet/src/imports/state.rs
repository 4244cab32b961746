// SPDX-License-Identifier: Apache-2.0
//! `state_write`, `state_read`.

use netserv_worker_base::error::HostError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

/// Bytes of one call's piece: a whole state.
const PIECE_BYTES_MAX: usize = 64 << 20;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "state_write", |mut caller: Caller<'_, Host>, bytes: u32, length: u32| {
        code(state_write(&mut caller, bytes, length))
    })?;
    linker.func_wrap(MODULE, "state_read", |mut caller: Caller<'_, Host>, out: u32, out_length: u32| {
        code(state_read(&mut caller, out, out_length))
    })?;
    Ok(())
}

fn state_write(caller: &mut Caller<'_, Host>, bytes: u32, length: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    host.carried.write(&memory.read(bytes, length, PIECE_BYTES_MAX)?)?;
    Ok(0)
}

fn state_read(caller: &mut Caller<'_, Host>, out: u32, out_length: u32) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let piece = host.carried.read(out_length)?;
    let length = memory.put(out, out_length, piece)?;
    host.carried.go_on(piece.len());
    Ok(length)
}
