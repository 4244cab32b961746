// SPDX-License-Identifier: Apache-2.0
//! `sip_parse`.

use netserv_wire::sip::limits::MESSAGE_BYTES_MAX;
use netserv_worker_base::compute::{Workplace, sip};
use netserv_worker_base::error::HostError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "sip_parse",
        |mut caller: Caller<'_, Host>, bytes: u32, length: u32, out: u32, out_length: u32| {
            code(sip_parse(&mut caller, (bytes, length), (out, out_length)))
        },
    )?;
    Ok(())
}

fn sip_parse(caller: &mut Caller<'_, Host>, bytes: (u32, u32), out: (u32, u32)) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let Workplace { scratch, headers, out: parts, .. } = &mut host.work;
    let bytes = memory.lend(bytes.0, bytes.1, MESSAGE_BYTES_MAX, scratch)?;
    let count = sip::encode(bytes, headers, parts, out.1 as usize)?;
    memory.put(out.0, out.1, parts)?;
    i32::try_from(count).map_err(|_| HostError::TooLarge)
}
