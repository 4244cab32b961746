// SPDX-License-Identifier: Apache-2.0
//! The only unsafe code here: compiled code is run as it is.
#![allow(unsafe_code, reason = "this call has no safe form")]

/// Loads compiled code.
///
/// # Errors
/// The code was compiled by or for another engine, or is damaged.
pub fn load_code(engine: &wasmtime::Engine, code: &[u8]) -> wasmtime::Result<wasmtime::Module> {
    // SAFETY: the node hands out only what its own `netserv-worker compile` wrote, from a directory that nobody else
    // can write, and the worker has no more rights than the code would take over. `code` is the worker's own copy, so
    // that nothing changes it after it was checked.
    unsafe { wasmtime::Module::deserialize(engine, code) }
}
