// SPDX-License-Identifier: Apache-2.0
//! Packet sockets, for which there is no safe interface.
#![allow(unsafe_code, reason = "AF_PACKET sockets are not covered by rustix")]
#![allow(clippy::cast_possible_truncation, reason = "constants of the C library and sizes of its structures are small")]

use std::ffi::CString;
use std::io::{Error, ErrorKind, Result};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A raw packet socket on one interface, non-blocking; it sees arriving frames only.
pub struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens a packet socket on an interface of the current namespace.
    ///
    /// # Errors
    /// There is no such interface, or the process may not.
    pub fn open(interface: &str) -> Result<PacketSocket> {
        let name = CString::new(interface).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        // SAFETY: `name` is a C string that outlives the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(Error::last_os_error());
        }
        let every_protocol = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: plain system call without pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(every_protocol)) };
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all-zero bytes are a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = every_protocol;
        address.sll_ifindex = i32::try_from(index).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `address` is a sockaddr_ll of the given length and outlives the call.
        let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
        if bound < 0 { Err(Error::last_os_error()) } else { Ok(PacketSocket { fd }) }
    }

    /// Reads one arriving frame into `frame`; returns its length, or `None` if there is none.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&self, frame: &mut [u8]) -> Result<Option<usize>> {
        loop {
            // SAFETY: all-zero bytes are a valid sockaddr_ll.
            let mut from: libc::sockaddr_ll = unsafe { mem::zeroed() };
            let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            // SAFETY: the buffer and the address are writable for the lengths given, for the time of the call.
            let received = unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    frame.as_mut_ptr().cast(),
                    frame.len(),
                    0,
                    (&raw mut from).cast(),
                    &raw mut length,
                )
            };
            if received < 0 {
                let error = Error::last_os_error();
                return if error.kind() == ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
            }
            // What we sent ourselves comes back marked as outgoing.
            if from.sll_pkttype != libc::PACKET_OUTGOING {
                return Ok(usize::try_from(received).ok());
            }
        }
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// The interface is down or its queue is full.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        // SAFETY: `frame` is readable for its length, for the time of the call.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the bytes that the allocator has given out and not got back, with its headers and rounding.
pub(crate) fn allocated_bytes() -> usize {
    // SAFETY: the call only reads the allocator's own counts.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}
