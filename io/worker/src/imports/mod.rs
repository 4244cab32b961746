// SPDX-License-Identifier: Apache-2.0
//! Host calls: what a module may ask of the node (`wit/packet-abi.md`).

mod clock;
mod counter;
mod inject;
mod kv;
mod log;
mod property;
mod random;
mod timer;

use wasmtime::{Caller, Linker};

use crate::error::HostError;
use crate::host::Host;

/// The name of the import module.
pub const MODULE: &str = "netserv";

/// Defines all host calls.
///
/// # Errors
/// A name is defined twice.
pub fn add_to_linker(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    log::add(linker)?;
    clock::add(linker)?;
    random::add(linker)?;
    property::add(linker)?;
    counter::add(linker)?;
    kv::add(linker)?;
    timer::add(linker)?;
    inject::add(linker)
}

/// Returns the module's memory and the state behind its host calls.
fn guest<'a>(caller: &'a mut Caller<'_, Host>) -> Result<(&'a mut [u8], &'a mut Host), HostError> {
    let memory = caller.data().memory.ok_or(HostError::BadAddress)?;
    Ok(memory.data_and_store_mut(caller))
}

/// Returns the bytes that the module means.
fn bytes(memory: &[u8], address: u32, length: u32) -> Result<&[u8], HostError> {
    let rest = memory.get(address as usize..).ok_or(HostError::BadAddress)?;
    rest.get(..length as usize).ok_or(HostError::BadAddress)
}

fn bytes_mut(memory: &mut [u8], address: u32, length: u32) -> Result<&mut [u8], HostError> {
    let rest = memory.get_mut(address as usize..).ok_or(HostError::BadAddress)?;
    rest.get_mut(..length as usize).ok_or(HostError::BadAddress)
}

/// Writes `value` where the module wants it if it fits there, and returns its length.
fn put(memory: &mut [u8], address: u32, length: u32, value: &[u8]) -> Result<i32, HostError> {
    let place = bytes_mut(memory, address, length)?;
    if let Some(place) = place.get_mut(..value.len()) {
        place.copy_from_slice(value);
    }
    i32::try_from(value.len()).map_err(|_| HostError::TooLarge)
}

/// Returns a call's result as the module sees it.
fn code(result: Result<i32, HostError>) -> i32 {
    result.unwrap_or_else(HostError::code)
}
