// SPDX-License-Identifier: Apache-2.0
//! `timer_set`, `timer_cancel`.

use std::time::Duration;

use netserv_worker_base::error::HostError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "timer_set", |mut caller: Caller<'_, Host>, id: i32, delay: u64, period: u64| {
        code(timer_set(caller.data_mut(), id, delay, period))
    })?;
    linker.func_wrap(MODULE, "timer_cancel", |mut caller: Caller<'_, Host>, id: i32| {
        code(caller.data_mut().timers.cancel(id).map(|()| 0))
    })?;
    Ok(())
}

fn timer_set(host: &mut Host, id: i32, delay_ns: u64, period_ns: u64) -> Result<i32, HostError> {
    if !host.has_timer {
        return Err(HostError::Invalid);
    }
    let period = (period_ns > 0).then_some(Duration::from_nanos(period_ns));
    host.timers.set(host.clock.instant(), id, Duration::from_nanos(delay_ns), period, host.limits.timers)?;
    Ok(0)
}
