// SPDX-License-Identifier: Apache-2.0
//! The only unsafe code here: descriptors a worker was born with, the packet rings' memory, here and in the memory of a module, pages of the
//! program, and random bytes.
#![allow(unsafe_code, reason = "these calls have no safe form")]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;

use netserv_wire::container::ring::{MAPPING_BYTES, MAPPING_WORDS, SLOTS_OFFSET};
use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of the smallest page there is.
const PAGE_BYTES_MIN: u64 = 4096;

/// Takes a descriptor that the process was started with.
///
/// # Errors
/// The descriptor is not open.
pub(crate) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the borrow only lives for the check that the descriptor is open.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: it is open, and only `serve` takes it, once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Maps a packet ring for the rest of the process's life.
///
/// # Errors
/// The descriptor is no memory of the ring's size.
pub(crate) fn map_ring(memory: &OwnedFd) -> io::Result<&'static [AtomicU64]> {
    if rustix::fs::fstat(memory)?.st_size != i64::try_from(MAPPING_BYTES).expect("a mapping fits an offset") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the ring's memory has another size"));
    }
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
    let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), MAPPING_BYTES, flags, MapFlags::SHARED, memory, 0)? };
    // SAFETY: the mapping has that many words, is page-aligned, is never unmapped, and is only touched by atomics.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), MAPPING_WORDS) })
}

/// Makes room of so many words in which slots can be mapped, for the rest of the process's life.
///
/// # Errors
/// The kernel maps no more.
pub(crate) fn room(words: usize) -> io::Result<&'static [AtomicU64]> {
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    let (bytes, kind) = (words * size_of::<AtomicU64>(), MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
    let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, flags, kind)? };
    // SAFETY: the mapping has that many words, is page-aligned, is never unmapped, and is only touched by atomics.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), words) })
}

/// Maps a ring's slots into a part of what [`room`] returned.
///
/// # Errors
/// The kernel refuses. The place then has its old words, or none that may be touched.
pub(crate) fn map_into_room(ring: &OwnedFd, place: &'static [AtomicU64]) -> io::Result<()> {
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    let offset = u64::try_from(SLOTS_OFFSET).expect("an offset fits 64 bits");
    let (start, length) = (place.as_ptr().cast_mut().cast(), size_of_val(place));
    // SAFETY: the place lies in a mapping of `room`'s, is never unmapped and stays readable and writable. It holds atomics,
    // which may change at any time.
    unsafe { rustix::mm::mmap(start, length, flags, MapFlags::FIXED | MapFlags::SHARED, ring, offset)? };
    Ok(())
}

/// Puts the ring's slots in the place of `place`, whole pages of a module's memory.
///
/// # Errors
/// The kernel refuses. The place then has its old bytes, or zeroes.
pub(crate) fn map_slots(ring: &OwnedFd, place: &mut [u8]) -> io::Result<()> {
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    let offset = u64::try_from(SLOTS_OFFSET).expect("an offset fits 64 bits");
    let (start, length) = (place.as_mut_ptr().cast(), place.len());
    // SAFETY: the caller holds these bytes alone. They lie in a mapping that Wasmtime made for this one memory and
    // unmaps as a whole with it, and stay readable and writable. The slots behind them are plain bytes, which other
    // mappings touch by atomics only, and this process touches these through compiled code and `GuestMemory` alone.
    let mapped = unsafe { rustix::mm::mmap(start, length, flags, MapFlags::FIXED | MapFlags::SHARED, ring, offset) };
    match mapped {
        Ok(_) => Ok(()),
        // Some kernels take the old pages away before they see that they cannot map the new ones.
        Err(error) => map_empty(place).and(Err(error.into())),
    }
}

/// Puts zeroed pages of nobody else's in the place of `place`, whole pages of a module's memory.
///
/// # Errors
/// The kernel refuses, and nothing is certain of the place.
pub fn map_empty(place: &mut [u8]) -> io::Result<()> {
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    let (start, length) = (place.as_mut_ptr().cast(), place.len());
    // SAFETY: as in `map_slots`; the pages are like those that Wasmtime had there.
    unsafe { rustix::mm::mmap_anonymous(start, length, flags, MapFlags::FIXED | MapFlags::PRIVATE)? };
    Ok(())
}

/// Gives back the pages of the program and its libraries. Those that are used again come back from the file, so after
/// work that is done once, what it needed of them is no longer counted as the process's.
pub fn give_back_program() {
    // SAFETY: the callback only looks at what it is given.
    unsafe { libc::dl_iterate_phdr(Some(give_back_object), std::ptr::null_mut()) };
}

unsafe extern "C" fn give_back_object(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader passes an object that stays loaded during the call, with that many headers.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let only_read = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0;
    for header in headers.iter().filter(only_read) {
        let start = (base + header.p_vaddr) & !(PAGE_BYTES_MIN - 1);
        let length = usize::try_from(base + header.p_vaddr + header.p_memsz - start).unwrap_or(0);
        let start = std::ptr::with_exposed_provenance_mut(usize::try_from(start).unwrap_or(0));
        // SAFETY: these pages are never written, so the file has what they have. Failing leaves them as they are, as it
        // does where pages are larger and the start is amid one.
        let _ = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxDontNeed) };
    }
    0
}

/// Fills `bytes` with random bytes of the kernel's.
pub fn random(bytes: &mut [u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the kernel writes at most `rest.len()` bytes to where `rest` points.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => rest = &mut rest[got..],
            Err(_) => assert_eq!(io::Error::last_os_error().kind(), io::ErrorKind::Interrupted, "getrandom works"),
        }
    }
}
