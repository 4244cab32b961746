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
    let fds: [RawFd; 4] = fds.map(|fd| fd.as_raw_fd());
    assert!(fds.iter().all(|fd| *fd > 6), "a descriptor would be overwritten before it is put in place: {fds:?}");
    // SAFETY: between fork and exec, only dup2 is called.
    unsafe {
        command.pre_exec(move || {
            for (fd, place) in fds.into_iter().zip(3..) {
                if libc::dup2(fd, place) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    command.spawn().unwrap()
}
