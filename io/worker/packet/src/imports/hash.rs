// SPDX-License-Identifier: Apache-2.0
//! `hash`.

use netserv_worker_base::compute::hash::Algorithm;
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::HASH_BYTES_MAX;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "hash",
        |mut caller: Caller<'_, Host>, algorithm: i32, bytes: u32, length: u32, out: u32, out_length: u32| {
            code(hash(&mut caller, algorithm, (bytes, length), (out, out_length)))
        },
    )?;
    Ok(())
}

fn hash(caller: &mut Caller<'_, Host>, algorithm: i32, bytes: (u32, u32), out: (u32, u32)) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let bytes = memory.lend(bytes.0, bytes.1, HASH_BYTES_MAX, &mut host.work.scratch)?;
    let digest = Algorithm::of(algorithm)?.digest(bytes)?;
    memory.put(out.0, out.1, &digest)
}
