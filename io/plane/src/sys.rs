// SPDX-License-Identifier: Apache-2.0
//! The system calls that no safe library offers.
#![allow(unsafe_code, reason = "recvmmsg, sendmmsg, recvmsg with any control message, and socket options")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use crate::limits;

/// One datagram to be sent: an address as `sockaddr` bytes, control messages, content.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Whom it is for, as `sockaddr`.
    pub address: &'a [u8],
    /// Control messages.
    pub control: &'a [u8],
    /// Its content.
    pub payload: &'a [u8],
}

/// How much of each buffer one received datagram filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Bytes of the address.
    pub address: usize,
    /// Bytes of control messages.
    pub control: usize,
    /// Bytes of the content.
    pub payload: usize,
    /// Whether content or control messages were cut off.
    pub truncated: bool,
}

/// Receives datagrams without waiting, each to the start of a slot of [`limits::SLOT_BYTES`]; returns how many.
///
/// `lengths` says afterwards how long each one is; one that was cut off counts as 0 bytes. As many are taken as
/// `lengths` and `storage` have room for, at most [`limits::BATCH_PACKETS_MAX`].
pub fn receive_many(fd: impl AsFd, storage: &mut [u8], lengths: &mut [usize]) -> io::Result<usize> {
    // SAFETY: all-zero is a valid value of these C structs: null pointers and zero lengths.
    let (mut vectors, mut headers): (
        [libc::iovec; limits::BATCH_PACKETS_MAX],
        [libc::mmsghdr; limits::BATCH_PACKETS_MAX],
    ) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let slots = storage.chunks_exact_mut(limits::SLOT_BYTES);
    let mut count = 0;
    for ((vector, header), slot) in vectors.iter_mut().zip(&mut headers).zip(slots).take(lengths.len()) {
        *vector = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: `headers` and the vectors and slots that they point to live across the call; no slot is in two vectors;
    // `count` of them are set.
    let received = unsafe {
        libc::recvmmsg(fd.as_fd().as_raw_fd(), headers.as_mut_ptr(), count, libc::MSG_DONTWAIT, ptr::null_mut())
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for (length, header) in lengths.iter_mut().zip(&headers[..received]) {
        let whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        *length = if whole { usize::try_from(header.msg_len).expect("32 bits fit in usize") } else { 0 };
    }
    Ok(received)
}

/// Sends datagrams without waiting; returns how many went out. An error is that of the first one.
pub fn send_many(fd: impl AsFd, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
    let mut vectors: Vec<libc::iovec> = datagrams
        .iter()
        .map(|datagram| libc::iovec {
            iov_base: datagram.payload.as_ptr().cast_mut().cast(),
            iov_len: datagram.payload.len(),
        })
        .collect();
    let mut headers = Vec::with_capacity(datagrams.len());
    for (datagram, vector) in datagrams.iter().zip(&mut vectors) {
        // SAFETY: all-zero is a valid value of this C struct: null pointers and zero lengths.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        header.msg_hdr.msg_name = datagram.address.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_namelen = u32::try_from(datagram.address.len()).expect("an address is short");
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        if !datagram.control.is_empty() {
            header.msg_hdr.msg_control = datagram.control.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_controllen = datagram.control.len();
        }
        headers.push(header);
    }
    let count = u32::try_from(headers.len()).expect("batches are small");
    // SAFETY: `headers` and all that they point to live across the call. The kernel only reads names, vectors, control
    // messages and contents when sending, so pointers made from shared references are not written through.
    let sent = unsafe { libc::sendmmsg(fd.as_fd().as_raw_fd(), headers.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives one datagram without waiting, or with `flags` containing `MSG_ERRQUEUE` one error.
pub fn receive(
    fd: impl AsFd,
    address: &mut [u8],
    control: &mut [u8],
    payload: &mut [u8],
    flags: i32,
) -> io::Result<Filled> {
    let mut vector = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
    // SAFETY: all-zero is a valid value of this C struct: null pointers and zero lengths.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = address.as_mut_ptr().cast();
    header.msg_namelen = u32::try_from(address.len()).expect("an address is short");
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control.len();
    // SAFETY: `header` and the vector and the three buffers that it points to live across the call and are ours alone.
    let received = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut header, flags | libc::MSG_DONTWAIT) };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok(Filled {
        address: usize::try_from(header.msg_namelen).expect("32 bits fit in usize").min(address.len()),
        control: header.msg_controllen.min(control.len()),
        payload: received,
        truncated: header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
    })
}

/// Sets a socket option that is an `int`.
pub fn set_option(fd: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<i32>()).expect("4 fits");
    // SAFETY: the pointer and length are those of `value`, which lives across the call and is only read.
    let result = unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns how many packets the kernel could not give to a socket since it was opened, for lack of room in its buffer; the
/// number wraps. Linux 4.12 and later know it.
pub fn socket_drops(fd: impl AsFd) -> io::Result<u32> {
    let mut values = [0_u32; SK_MEMINFO_VARS];
    let mut length = libc::socklen_t::try_from(size_of_val(&values)).expect("36 fits");
    // SAFETY: the pointer and length are those of `values`, which lives across the call; the kernel writes no more than that.
    let result = unsafe {
        let (to, length) = (values.as_mut_ptr().cast(), &raw mut length);
        libc::getsockopt(fd.as_fd().as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, to, length)
    };
    if result == 0 { Ok(values[SK_MEMINFO_DROPS]) } else { Err(io::Error::last_os_error()) }
}

/// From `linux/sock_diag.h`.
const SK_MEMINFO_DROPS: usize = 8;
const SK_MEMINFO_VARS: usize = 9;

/// Returns how many bytes of the machine's memory can be had without others losing theirs, if the system tells.
pub fn memory_available() -> Option<usize> {
    memory_available_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn memory_available_in(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
