// SPDX-License-Identifier: Apache-2.0
//! What all host calls have alike.

use netserv_worker_base::error::HostError;
use wasmtime::Caller;

use crate::guest::GuestMemory;
use crate::host::Host;

/// The name of the import module.
pub(super) const MODULE: &str = "netserv";

/// Returns the module's memory and the state behind its host calls.
pub(super) fn guest<'a>(caller: &'a mut Caller<'_, Host>) -> Result<(GuestMemory<'a>, &'a mut Host), HostError> {
    let memory = caller.data().memory.ok_or(HostError::BadAddress)?;
    let (bytes, host) = memory.data_and_store_mut(caller);
    Ok((GuestMemory::new(bytes, host.slots), host))
}

/// Returns a call's result as the module sees it.
pub(super) fn code(result: Result<i32, HostError>) -> i32 {
    result.unwrap_or_else(HostError::code)
}
