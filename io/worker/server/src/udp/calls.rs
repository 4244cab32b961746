// SPDX-License-Identifier: Apache-2.0
//! The calls of the kernel for datagrams: many with each where that is allowed, else one.
//!
//! The sandbox of a Wasm worker has no `sendmmsg` and `recvmmsg`, by which descriptors could be passed.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::sys;
use crate::limits::{UDP_BATCH_MAX, UDP_DATAGRAM_BYTES_MAX};

/// Takes a port. The socket never waits, also where the sandbox lets nobody say so later.
///
/// # Errors
/// Those of the kernel.
pub fn open(local: SocketAddr) -> io::Result<OwnedFd> {
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket =
        rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    rustix::net::bind(&socket, &local)?;
    Ok(socket)
}

/// Takes what has come, as [`sys::receive`] does.
///
/// # Errors
/// Those of the kernel; nothing has come for [`io::ErrorKind::WouldBlock`].
///
/// # Panics
/// The room has not [`sys::ROOM_BYTES`].
pub fn receive(socket: BorrowedFd<'_>, room: &mut [u8], most: usize) -> io::Result<Vec<Option<sys::Received>>> {
    if TAKES_MANY.load(Ordering::Relaxed) {
        match sys::receive(socket, room, most) {
            Err(error) if is_forbidden(&error) => TAKES_MANY.store(false, Ordering::Relaxed),
            done => return done,
        }
    }
    receive_each(socket, room, most)
}

/// Sends datagrams, at most [`UDP_BATCH_MAX`], as [`sys::send`] does.
///
/// # Errors
/// Those of the kernel about the first one.
pub fn send(socket: BorrowedFd<'_>, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
    if TAKES_MANY.load(Ordering::Relaxed) {
        match sys::send(socket, datagrams) {
            // The firewall may say so, too; then the next call does as well.
            Err(error) if is_forbidden(&error) => {}
            done => return done,
        }
    }
    send_each(socket, datagrams)
}

fn receive_each(socket: BorrowedFd<'_>, room: &mut [u8], most: usize) -> io::Result<Vec<Option<sys::Received>>> {
    let mut received = Vec::new();
    for part in room.chunks_exact_mut(UDP_DATAGRAM_BYTES_MAX).take(most.min(UDP_BATCH_MAX)) {
        match rustix::net::recvfrom(socket, part, RecvFlags::DONTWAIT) {
            Ok((length, _, from)) => {
                let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                received.push(from.map(|from| (from, length)));
            }
            // What came before counts; the error, if it is one, comes again.
            Err(error) if received.is_empty() => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(received)
}

fn send_each(socket: BorrowedFd<'_>, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
    let mut sent = 0;
    for (to, bytes) in datagrams.iter().take(UDP_BATCH_MAX) {
        match rustix::net::sendto(socket, bytes, SendFlags::DONTWAIT, to) {
            Ok(_) => sent += 1,
            Err(error) if sent == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(sent)
}

fn is_forbidden(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::PERM.raw_os_error())
}

/// Whether the sandbox has calls for many datagrams, as far as is known.
static TAKES_MANY: AtomicBool = AtomicBool::new(true);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn datagrams_go_and_come_one_by_one_as_they_do_in_batches() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let (one, other) = (UdpSocket::bind(at).unwrap(), UdpSocket::from(open(at.parse().unwrap()).unwrap()));
            let to = other.local_addr().unwrap();
            let wanted: [&[u8]; 3] = [b"first", b"", b"last"];
            assert_eq!(send_each(one.as_fd(), &wanted.map(|bytes| (to, bytes))).unwrap(), 3);
            let mut room = vec![0; sys::ROOM_BYTES];
            let received = receive_each(other.as_fd(), &mut room, 2).unwrap();
            assert_eq!(received, [Some((one.local_addr().unwrap(), 5)), Some((one.local_addr().unwrap(), 0))]);
            assert_eq!(room[..5], *b"first");
            assert_eq!(receive_each(other.as_fd(), &mut room, 2).unwrap().len(), 1);
            for error in [receive_each(other.as_fd(), &mut room, 2), receive(other.as_fd(), &mut room, 2)] {
                assert_eq!(error.unwrap_err().kind(), io::ErrorKind::WouldBlock);
            }
        }
        let one = open("127.0.0.1:0".parse().unwrap()).unwrap();
        let six = "[::1]:9".parse().unwrap();
        assert!(send_each(one.as_fd(), &[(six, b"x")]).is_err());
        let many = vec![("127.0.0.1:9".parse().unwrap(), &b""[..]); UDP_BATCH_MAX + 1];
        assert_eq!(send_each(one.as_fd(), &many).unwrap_or(UDP_BATCH_MAX), UDP_BATCH_MAX);
    }
}
