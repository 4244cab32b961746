// SPDX-License-Identifier: Apache-2.0
//! All that JNI needs to be unsafe for: starting a JVM, calling `Bridge`, and being called by it.
#![allow(unsafe_code, reason = "JNI is a table of C functions")]

mod bridge;
pub mod cache;
mod call;
mod compression;
pub mod compute;
pub mod control;
mod env;
pub mod kv;
mod media_natives;
mod natives;
mod search;
pub mod state;
mod vm;

use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags};

pub use bridge::{Bridge, Buffers, BundleLoad, bind};
pub use env::Thrown;
pub use vm::{End, Handler, leave, packet_thread, replace_program};

/// Returns so many words of zeroed memory, for the rest of the process's life, at the start of a page.
///
/// # Errors
/// There is no memory left.
pub fn words(count: usize) -> std::io::Result<&'static [AtomicU64]> {
    let (flags, length) = (ProtFlags::READ | ProtFlags::WRITE, count * size_of::<AtomicU64>());
    // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
    let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, flags, MapFlags::PRIVATE)? };
    // SAFETY: the mapping has that many zeroed words, is page-aligned and never unmapped. Java reads and writes it as
    // plain memory, which other code of this process touches by atomics only.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), count) })
}
