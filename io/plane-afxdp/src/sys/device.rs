// SPDX-License-Identifier: Apache-2.0
//! The device through which packets are handed to the kernel.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::{Mode, OFlags};

/// Makes a TUN device of this name (at most 15 bytes), which is gone when the descriptor is closed.
pub fn open_tun(name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open("/dev/net/tun", flags, Mode::empty())?);
    attach_tun(&file, name)?;
    Ok(file)
}

/// Makes the device of a descriptor of [`open_tun`] again, which somebody removed.
pub fn attach_tun(file: &File, name: &str) -> io::Result<()> {
    let mut request = [0_u8; REQUEST_BYTES];
    let name = name.as_bytes();
    if name.is_empty() || name.len() >= NAME_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request[..name.len()].copy_from_slice(name);
    request[NAME_BYTES..NAME_BYTES + 2].copy_from_slice(&(FLAG_TUN | FLAG_NO_HEADER | FLAG_EXCLUSIVE).to_ne_bytes());
    // SAFETY: the request is a `struct ifreq`, as long as the kernel copies in and out, and ours alone.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `sizeof(struct ifreq)`.
const REQUEST_BYTES: usize = 40;
const NAME_BYTES: usize = 16;
const FLAG_TUN: u16 = 0x0001;
/// `IFF_NO_PI`: packets start with the IP header.
const FLAG_NO_HEADER: u16 = 0x1000;
/// `IFF_TUN_EXCL`: it must not exist.
const FLAG_EXCLUSIVE: u16 = 0x8000;
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
