// SPDX-License-Identifier: Apache-2.0
//! An option of sockets, and compiled code: what has no safe form.
#![allow(unsafe_code, reason = "these calls have no safe form")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// The socket option of that name.
const TCP_NOTSENT_LOWAT: libc::c_int = 25;

/// Has a socket take no more while it holds so many bytes that were not sent (tcp(7), `TCP_NOTSENT_LOWAT`).
///
/// # Errors
/// The kernel does not know the option.
pub fn limit_unsent(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(&bytes)).expect("the size of a number fits");
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads as many bytes of a number that lives for the call.
    let set = unsafe {
        libc::setsockopt(socket, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, std::ptr::from_ref(&bytes).cast(), length)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Loads the compiled code of a component.
///
/// # Errors
/// The code was compiled by or for another engine, or is damaged.
pub fn load_component(engine: &wasmtime::Engine, code: &[u8]) -> wasmtime::Result<wasmtime::component::Component> {
    // SAFETY: the node hands out only what its own `netserv-worker compile` wrote, from a directory that nobody else
    // can write, and the worker has no more rights than the code would take over. `code` is the worker's own copy, so
    // that nothing changes it after it was checked.
    unsafe { wasmtime::component::Component::deserialize(engine, code) }
}
