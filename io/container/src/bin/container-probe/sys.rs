// SPDX-License-Identifier: Apache-2.0
//! The system calls that the probe tries, raw.
#![allow(unsafe_code, reason = "the probe tries what safe code cannot do")]

use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;

use netserv_wire::container::ring::{MAPPING_BYTES, MAPPING_WORDS};
use rustix::mm::{MapFlags, ProtFlags};

/// Makes a system call and returns its result, or the error number.
pub(crate) fn call(number: i64, arguments: [usize; 5]) -> Result<i64, i32> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: nothing makes these calls safe; the probe is a process of its own that exists to make them.
    let result = unsafe { libc::syscall(number, a, b, c, d, e) };
    if result >= 0 { Ok(result) } else { Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
}

/// Takes a descriptor that the process was started with.
pub(crate) fn inherited(number: RawFd) -> OwnedFd {
    // SAFETY: the launcher opened it, and the probe takes each number once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Maps the ring for the rest of the process's life.
pub(crate) fn map_ring(memory: &OwnedFd) -> &'static [AtomicU64] {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
    let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), MAPPING_BYTES, access, MapFlags::SHARED, memory, 0) };
    // SAFETY: the mapping has that many words, is never unmapped, and is only touched by atomics.
    unsafe { std::slice::from_raw_parts(start.expect("the ring maps").cast(), MAPPING_WORDS) }
}
