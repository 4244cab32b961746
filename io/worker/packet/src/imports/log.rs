// SPDX-License-Identifier: Apache-2.0
//! `log`.

use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::LOG_LINE_BYTES_MAX;
use netserv_worker_base::shared::log::level_from_number;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "log", |mut caller: Caller<'_, Host>, level: i32, text: u32, length: u32| {
        code(log(&mut caller, level, text, length))
    })?;
    Ok(())
}

fn log(caller: &mut Caller<'_, Host>, level: i32, text: u32, length: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let text = memory.read(text, length, LOG_LINE_BYTES_MAX)?;
    let level = level_from_number(level).ok_or(HostError::Invalid)?;
    host.log.push(host.clock.instant(), level, &text)?;
    Ok(0)
}
