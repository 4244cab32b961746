// SPDX-License-Identifier: Apache-2.0
//! `monotonic_ns`, `wall_ns`.

use wasmtime::{Caller, Linker};

use super::call::MODULE;
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "monotonic_ns", |caller: Caller<'_, Host>| caller.data().clock.instant().as_nanos())?;
    linker.func_wrap(MODULE, "wall_ns", |caller: Caller<'_, Host>| caller.data().clock.wall_ns())?;
    Ok(())
}
