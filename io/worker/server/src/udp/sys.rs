// SPDX-License-Identifier: Apache-2.0
//! `recvmmsg` and `sendmmsg`, which have no safe form.
#![allow(unsafe_code, reason = "these calls have no safe form")]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::limits::{UDP_BATCH_MAX, UDP_DATAGRAM_BYTES_MAX};

/// Bytes of the room that [`receive`] wants.
pub const ROOM_BYTES: usize = UDP_BATCH_MAX * UDP_DATAGRAM_BYTES_MAX;

/// A datagram that came: whom from, and how many bytes of its part of the room.
pub type Received = (SocketAddr, usize);

/// Takes what has come, at most `most` datagrams, the n-th to `room[n * UDP_DATAGRAM_BYTES_MAX..]`. One from an address of no IP
/// version is left out, with an empty part.
///
/// # Errors
/// Those of the kernel; nothing has come for [`io::ErrorKind::WouldBlock`].
///
/// # Panics
/// The room has not [`ROOM_BYTES`].
pub fn receive(socket: BorrowedFd<'_>, room: &mut [u8], most: usize) -> io::Result<Vec<Option<Received>>> {
    assert_eq!(room.len(), ROOM_BYTES, "the room has a part for each datagram");
    let mut names = [EMPTY_NAME; UDP_BATCH_MAX];
    let mut parts: Vec<libc::iovec> = room
        .chunks_exact_mut(UDP_DATAGRAM_BYTES_MAX)
        .map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() })
        .collect();
    let mut heads: Vec<libc::mmsghdr> =
        names.iter_mut().zip(&mut parts).map(|(name, part)| head(name, NAME_BYTES, part)).collect();
    let most = u32::try_from(most.min(heads.len())).unwrap_or(0);
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: each of the `most` heads points to a name and a part that live longer than the call, with their lengths, and to
    // nothing else.
    let count = unsafe { libc::recvmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), most, flags, std::ptr::null_mut()) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let lengths = heads.iter().map(|head| usize::try_from(head.msg_len).unwrap_or(0)).collect::<Vec<_>>();
    let taken = names.iter().zip(lengths).take(count);
    Ok(taken.map(|(name, length)| address(name).map(|address| (address, length))).collect())
}

/// Sends datagrams, at most [`UDP_BATCH_MAX`]. Returns how many went.
///
/// # Errors
/// Those of the kernel about the first one.
pub fn send(socket: BorrowedFd<'_>, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
    let mut names: Vec<(libc::sockaddr_storage, libc::socklen_t)> =
        datagrams.iter().take(UDP_BATCH_MAX).map(|(remote, _)| name(*remote)).collect();
    let mut parts: Vec<libc::iovec> = datagrams
        .iter()
        .map(|(_, bytes)| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() })
        .collect();
    let mut heads: Vec<libc::mmsghdr> =
        names.iter_mut().zip(&mut parts).map(|((name, length), part)| head(name, *length, part)).collect();
    let count = u32::try_from(heads.len()).unwrap_or(0);
    // SAFETY: each head points to a name and to bytes that live longer than the call, with their lengths; the kernel only reads
    // them.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn head(name: &mut libc::sockaddr_storage, length: libc::socklen_t, part: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all of its fields are numbers and pointers, which may be zero.
    let mut head: libc::mmsghdr = unsafe { mem::zeroed() };
    head.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
    head.msg_hdr.msg_namelen = length;
    head.msg_hdr.msg_iov = std::ptr::from_mut(part);
    head.msg_hdr.msg_iovlen = 1;
    head
}

/// Returns the address in a name that the kernel wrote.
fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage is larger, aligned for every kind of name, and its bytes are numbers of whatever value.
            let name: libc::sockaddr_in = unsafe { *std::ptr::from_ref(name).cast() };
            let ip = Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let name: libc::sockaddr_in6 = unsafe { *std::ptr::from_ref(name).cast() };
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let port = u16::from_be(name.sin6_port);
            Some(SocketAddrV6::new(ip, port, name.sin6_flowinfo, name.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Returns the name of an address, and its length.
fn name(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    let mut storage = EMPTY_NAME;
    let place = std::ptr::from_mut(&mut storage);
    let length = match address {
        SocketAddr::V4(address) => {
            let name = libc::sockaddr_in {
                sin_family: family(libc::AF_INET),
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: address.ip().to_bits().to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is larger, and aligned for every kind of name.
            unsafe { place.cast::<libc::sockaddr_in>().write(name) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(address) => {
            let name = libc::sockaddr_in6 {
                sin6_family: family(libc::AF_INET6),
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(name) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, libc::socklen_t::try_from(length).unwrap_or(0))
}

fn family(number: i32) -> libc::sa_family_t {
    libc::sa_family_t::try_from(number).unwrap_or(0)
}

// SAFETY: all of its fields are numbers, which may be zero.
const EMPTY_NAME: libc::sockaddr_storage = unsafe { mem::zeroed() };
const NAME_BYTES: libc::socklen_t = 128;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn datagrams_go_and_come_in_batches_over_ipv4_and_ipv6() {
        assert_eq!(size_of::<libc::sockaddr_storage>(), NAME_BYTES as usize);
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let (one, other) = (UdpSocket::bind(at).unwrap(), UdpSocket::bind(at).unwrap());
            let to = other.local_addr().unwrap();
            let large = vec![7; 65_507];
            let wanted: [&[u8]; 3] = [b"first", b"", &large];
            assert_eq!(send(one.as_fd(), &wanted.map(|bytes| (to, bytes))).unwrap(), 3);
            let mut room = vec![0; ROOM_BYTES];
            let mut seen = 0;
            while seen < 3 {
                let received = receive(other.as_fd(), &mut room, 2).unwrap();
                assert!(received.len() <= 2);
                for (part, received) in room.chunks(UDP_DATAGRAM_BYTES_MAX).zip(received) {
                    let (from, length) = received.unwrap();
                    assert_eq!((from, &part[..length]), (one.local_addr().unwrap(), wanted[seen]));
                    seen += 1;
                }
            }
            assert_eq!(receive(other.as_fd(), &mut room, 9).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn more_than_a_batch_waits() {
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let many = vec![(other.local_addr().unwrap(), &b"x"[..]); UDP_BATCH_MAX + 1];
        assert_eq!(send(one.as_fd(), &many).unwrap(), UDP_BATCH_MAX);
        one.send_to(b"y", other.local_addr().unwrap()).unwrap();
        let mut room = vec![0; ROOM_BYTES];
        assert_eq!(receive(other.as_fd(), &mut room, usize::MAX).unwrap().len(), UDP_BATCH_MAX);
        assert_eq!(receive(other.as_fd(), &mut room, 9).unwrap().len(), 1);
        assert!(send(one.as_fd(), &[]).is_ok_and(|sent| sent == 0));
    }
}
