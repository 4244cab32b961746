// SPDX-License-Identifier: Apache-2.0
//! The system calls that the probe tries, raw.
#![allow(unsafe_code, reason = "the probe tries what safe code cannot do")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
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

/// Sends one byte with a descriptor beside it, by either call that can.
pub(crate) fn send_descriptor(socket: RawFd, many: bool) -> std::io::Result<()> {
    let mut ancillary = [0_u64; 3];
    let (mut byte, level, kind) = ([1_u8], libc::SOL_SOCKET, libc::SCM_RIGHTS);
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: all fields are integers and pointers, for which zero is a value.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iov = &raw mut part;
    message.msg_hdr.msg_iovlen = 1;
    message.msg_hdr.msg_control = ancillary.as_mut_ptr().cast();
    message.msg_hdr.msg_controllen = size_of_val(&ancillary);
    let header = ancillary.as_mut_ptr().cast::<libc::cmsghdr>();
    // SAFETY: the ancillary data has room for a header of 16 bytes and what comes after it, and is aligned for both.
    unsafe {
        (*header).cmsg_len = 20;
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        header.add(1).cast::<RawFd>().write(0);
    }
    // SAFETY: everything that the message points to lives until the call returns.
    let result = unsafe {
        match many {
            true => i64::from(libc::sendmmsg(socket, &raw mut message, 1, 0)),
            false => i64::try_from(libc::sendmsg(socket, &raw const message.msg_hdr, 0)).expect("one byte or an error"),
        }
    };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Maps the first page of a file, for this access.
pub(crate) fn map(file: &File, access: usize) -> std::io::Result<()> {
    const PRIVATE: usize = 2;
    let descriptor = usize::try_from(file.as_raw_fd()).expect("descriptors are positive");
    // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
    let result = unsafe { libc::syscall(libc::SYS_mmap, 0_usize, 4096_usize, access, PRIVATE, descriptor, 0_usize) };
    if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
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

/// Starts a Java virtual machine with these options on the calling thread, and ends it again. Returns what
/// `JNI_CreateJavaVM` and `DestroyJavaVM` returned.
pub(crate) fn run_java(library: &CStr, options: &[CString]) -> Result<(i32, i32), String> {
    type Create = unsafe extern "C" fn(*mut *const *const Invoke, *mut *const c_void, *const Arguments) -> i32;
    const VERSION: i32 = 0x000a_0000;
    // SAFETY: the library is a Java installation's, whose constructors may run here.
    let library = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    // SAFETY: `library` is a handle or null, for which dlsym looks elsewhere and finds nothing.
    let create = unsafe { libc::dlsym(library, c"JNI_CreateJavaVM".as_ptr()) };
    if library.is_null() || create.is_null() {
        // SAFETY: one of the calls above failed, so that there is a text, which is copied at once.
        return Err(unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned());
    }
    // SAFETY: this is the type of the function in every version of Java.
    let create: Create = unsafe { std::mem::transmute(create) };
    let options: Vec<JavaOption> =
        options.iter().map(|text| JavaOption { text: text.as_ptr(), extra: std::ptr::null() }).collect();
    let count = i32::try_from(options.len()).expect("options are few");
    let arguments = Arguments { version: VERSION, count, options: options.as_ptr(), ignore_unknown: 0 };
    let (mut machine, mut environment) = (std::ptr::null(), std::ptr::null());
    // SAFETY: everything that the arguments point to lives until the call returns.
    let created = unsafe { create(&raw mut machine, &raw mut environment, &raw const arguments) };
    if created != 0 {
        return Ok((created, 0));
    }
    // SAFETY: after a success, `machine` points to a machine whose table has the call at this place.
    Ok((created, unsafe { ((**machine).destroy)(machine) }))
}

#[repr(C)]
struct Invoke {
    reserved: [*const c_void; 3],
    destroy: unsafe extern "C" fn(*const *const Invoke) -> i32,
}

#[repr(C)]
struct JavaOption {
    text: *const c_char,
    extra: *const c_void,
}

#[repr(C)]
struct Arguments {
    version: i32,
    count: i32,
    options: *const JavaOption,
    ignore_unknown: u8,
}
