// SPDX-License-Identifier: Apache-2.0
//! `find`, `patterns_open`, `patterns_find`, `patterns_close`.

use netserv_worker_base::compute::Workplace;
use netserv_worker_base::compute::search::{self, Hit, Patterns};
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::{HITS_MAX, PATTERNS_BYTES_MAX, PATTERNS_MAX, SEARCH_BYTES_MAX};
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "find",
        |mut caller: Caller<'_, Host>, bytes: u32, length: u32, needle: u32, needle_length: u32| {
            code(find(&mut caller, (bytes, length), (needle, needle_length)))
        },
    )?;
    linker.func_wrap(MODULE, "patterns_open", |mut caller: Caller<'_, Host>, list: u32, length: u32, flags: u32| {
        code(patterns_open(&mut caller, (list, length), flags))
    })?;
    linker.func_wrap(
        MODULE,
        "patterns_find",
        |mut caller: Caller<'_, Host>, set: u32, bytes: u32, length: u32, out: u32, out_length: u32| {
            code(patterns_find(&mut caller, set, (bytes, length), (out, out_length)))
        },
    )?;
    linker.func_wrap(MODULE, "patterns_close", |mut caller: Caller<'_, Host>, set: u32| {
        code(caller.data_mut().work.patterns.remove(set as usize).map(|()| 0))
    })?;
    Ok(())
}

fn find(caller: &mut Caller<'_, Host>, bytes: (u32, u32), needle: (u32, u32)) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let needle = memory.read(needle.0, needle.1, SEARCH_BYTES_MAX)?;
    let bytes = memory.lend(bytes.0, bytes.1, SEARCH_BYTES_MAX, &mut host.work.scratch)?;
    number(search::find(bytes, &needle)?)
}

fn patterns_open(caller: &mut Caller<'_, Host>, list: (u32, u32), flags: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let list = memory.lend(list.0, list.1, LIST_BYTES_MAX, &mut host.work.scratch)?;
    if flags & !IGNORE_ASCII_CASE != 0 {
        return Err(HostError::Invalid);
    }
    let patterns = Patterns::from_list(list, flags & IGNORE_ASCII_CASE != 0)?;
    number(host.work.patterns.insert(patterns)?)
}

fn patterns_find(
    caller: &mut Caller<'_, Host>,
    set: u32,
    bytes: (u32, u32),
    out: (u32, u32),
) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let Workplace { patterns, scratch, out: hits, .. } = &mut host.work;
    let bytes = memory.lend(bytes.0, bytes.1, SEARCH_BYTES_MAX, scratch)?;
    let patterns = patterns.set(set as usize)?;
    let room = (out.1 as usize / HIT_BYTES).min(HITS_MAX);
    if room == 0 {
        return Ok(i32::from(patterns.is_match(bytes)?));
    }
    hits.clear();
    for Hit { pattern, start, end } in patterns.find(bytes)?.take(room) {
        hits.extend([pattern, start, end].iter().flat_map(|field| field.to_le_bytes()));
    }
    memory.put(out.0, out.1, hits)?;
    number(hits.len() / HIT_BYTES)
}

fn number(number: usize) -> Result<i32, HostError> {
    i32::try_from(number).map_err(|_| HostError::TooLarge)
}

const IGNORE_ASCII_CASE: u32 = 1;
const HIT_BYTES: usize = 12;
/// Each pattern has two bytes for its length in front.
const LIST_BYTES_MAX: usize = PATTERNS_BYTES_MAX + 2 * PATTERNS_MAX;
