// SPDX-License-Identifier: Apache-2.0
//! A node's side of the ring's memory, and a worker with its descriptors in place.
#![allow(unsafe_code, reason = "these calls have no safe form")]

use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;

use netserv_wire::container::ring::{MAPPING_BYTES, MAPPING_WORDS};
use rustix::mm::{MapFlags, ProtFlags};

/// Returns the memory of a ring, mapped for the rest of the test's life.
pub(crate) fn ring() -> (OwnedFd, &'static [AtomicU64]) {
    let memory = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&memory, MAPPING_BYTES as u64).unwrap();
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
    let start =
        unsafe { rustix::mm::mmap(std::ptr::null_mut(), MAPPING_BYTES, flags, MapFlags::SHARED, &memory, 0).unwrap() };
    // SAFETY: the mapping has that many words, is page-aligned, is never unmapped, and is only touched by atomics.
    let words = unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), MAPPING_WORDS) };
    (memory, words)
}

/// Starts a worker that has these descriptors as 3, 4, 5 and 6.
pub(crate) fn spawn(mut command: Command, fds: [&OwnedFd; 4]) -> Child {
    // None is overwritten before it is put in place.
    let fds = fds.map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 7).unwrap());
    let raw: [RawFd; 4] = [0, 1, 2, 3].map(|place| fds[place].as_raw_fd());
    // SAFETY: between fork and exec, only dup2 is called.
    unsafe {
        command.pre_exec(move || {
            for (fd, place) in raw.into_iter().zip(3..) {
                if libc::dup2(fd, place) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    command.spawn().unwrap()
}
