// SPDX-License-Identifier: Apache-2.0
//! Sending whole IP packets, routed by the kernel like the node's own.
//!
//! The node is the sender of what a module makes or turns to another address, so such a packet that is longer than its way
//! allows goes in fragments, even if it says that it must not: that was the word of the one who sent it to the node.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::OwnedFd;

use netserv_wire::ip;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, sockopt};

use crate::destinations::Destinations;
use crate::{DriverError, limits, packet, sockaddr, sys};

/// Raw sockets for both versions and what is to be sent with the next flush.
pub struct Injector {
    v4: OwnedFd,
    /// `None` where the kernel has no IPv6.
    v6: Option<OwnedFd>,
    destinations: Destinations,
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
    identifications: Identifications,
}

struct Waiting {
    destination: IpAddr,
    range: Range<usize>,
    redirected: bool,
}

/// What became of the packets of one flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// New packets that went out.
    pub injected: u64,
    /// Received ones that went out on their new way.
    pub redirected: u64,
    /// Those that did not.
    pub failed: u64,
}

impl Sent {
    fn count(&mut self, one: &Waiting) {
        if one.redirected { self.redirected += 1 } else { self.injected += 1 }
    }
}

impl Injector {
    /// Opens the sockets; everything sent carries the mark.
    pub fn open(mark: u32) -> Result<Injector, DriverError> {
        let v4 = open(AddressFamily::INET, mark).map_err(|error| DriverError::system("opening a raw socket", error))?;
        let v6 = match open(AddressFamily::INET6, mark) {
            Ok(socket) => Some(socket),
            Err(rustix::io::Errno::AFNOSUPPORT) => None,
            Err(error) => return Err(DriverError::system("opening a raw IPv6 socket", error)),
        };
        let (destinations, identifications) = (Destinations::open(mark)?, Identifications::default());
        Ok(Injector { v4, v6, destinations, bytes: Vec::new(), waiting: Vec::new(), identifications })
    }

    /// Queues a new packet; false if too many wait.
    ///
    /// # Errors
    /// If it is no packet, or its destination may not receive it.
    pub fn inject(&mut self, bytes: &[u8]) -> Result<bool, DriverError> {
        let destination = self.destination(bytes)?;
        Ok(self.push(destination, bytes, false))
    }

    /// Queues a received packet on its new way, one hop on; false if too many wait.
    ///
    /// # Errors
    /// If it is no packet, its destination may not receive it, or its TTL runs out here.
    pub fn redirect(&mut self, bytes: &[u8]) -> Result<bool, DriverError> {
        let destination = self.destination(bytes)?;
        let queued = self.push(destination, bytes, true);
        if queued && !self.last_mut().is_some_and(|bytes| ip::decrement_ttl(bytes).is_ok_and(|left| left > 0)) {
            self.waiting.pop();
            return Err(DriverError::BadPacket { why: "its TTL runs out".to_owned() });
        }
        Ok(queued)
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> Sent {
        let mut sent = Sent::default();
        for v6 in [false, true] {
            let waiting: Vec<&Waiting> = self.waiting.iter().filter(|one| one.destination.is_ipv6() == v6).collect();
            let socket = if v6 { self.v6.as_ref() } else { Some(&self.v4) };
            match socket {
                Some(socket) => send(socket, &self.bytes, &waiting, &mut self.identifications, &mut sent),
                None => sent.failed += u64::try_from(waiting.len()).expect("the queue is bounded"),
            }
        }
        self.waiting.clear();
        self.bytes.clear();
        sent
    }

    /// Returns whether a packet of a module may be sent to an address.
    pub fn may_send_to(&mut self, destination: IpAddr) -> bool {
        if self.waiting.is_empty() {
            self.destinations.look();
        }
        self.destinations.may_receive(destination)
    }

    fn destination(&mut self, bytes: &[u8]) -> Result<IpAddr, DriverError> {
        let destination = packet::whole(bytes)?.destination();
        if self.may_send_to(destination) { Ok(destination) } else { Err(DriverError::NoMachine(destination)) }
    }

    fn push(&mut self, destination: IpAddr, bytes: &[u8], redirected: bool) -> bool {
        if self.waiting.len() >= limits::INJECTED_WAITING_MAX {
            return false;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.waiting.push(Waiting { destination, range: start..self.bytes.len(), redirected });
        true
    }

    fn last_mut(&mut self) -> Option<&mut [u8]> {
        self.waiting.last().map(|last| &mut self.bytes[last.range.clone()])
    }
}

/// Sends in as few calls as possible; a packet that the kernel refuses does not hold up the others.
fn send(
    socket: &OwnedFd,
    bytes: &[u8],
    mut waiting: &[&Waiting],
    identifications: &mut Identifications,
    sent: &mut Sent,
) {
    while !waiting.is_empty() {
        let chunk = &waiting[..waiting.len().min(limits::BATCH_PACKETS_MAX)];
        // A raw socket takes its protocol from the packet and must not be given a port.
        let addresses: Vec<_> = chunk.iter().map(|one| sockaddr::encode(SocketAddr::new(one.destination, 0))).collect();
        let outgoing: Vec<_> = chunk
            .iter()
            .zip(&addresses)
            .map(|(one, address)| sys::Outgoing { address, control: &[], payload: &bytes[one.range.clone()] })
            .collect();
        let done = match sys::send_many(socket, &outgoing) {
            Ok(count) => {
                chunk[..count].iter().for_each(|one| sent.count(one));
                count
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
            Err(error) => {
                let to = chunk[0].destination;
                if is_too_long(&error) && send_cut(socket, outgoing[0], to, identifications) {
                    sent.count(chunk[0]);
                } else {
                    tracing::trace!(%error, destination = %to, "a packet could not be sent");
                    sent.failed += 1;
                }
                1
            }
        };
        waiting = &waiting[done..];
    }
}

/// Sends one packet in fragments; false if not all went out.
fn send_cut(socket: &OwnedFd, whole: sys::Outgoing<'_>, to: IpAddr, identifications: &mut Identifications) -> bool {
    let identification = identifications.next(whole.payload);
    let floor = if to.is_ipv6() { MTU_FLOOR_V6 } else { MTU_FLOOR_V4 };
    // The way's own may be told too large, as where IPsec takes some of it.
    let mtus = mtu(socket, to).into_iter().chain([floor]).filter(|mtu| *mtu < whole.payload.len());
    for mtu in mtus {
        let Ok(fragments) = ip::cut(whole.payload, mtu, identification) else { return false };
        let outgoing: Vec<_> = fragments.iter().map(|payload| sys::Outgoing { payload, ..whole }).collect();
        match sys::send_many(socket, &outgoing) {
            Err(error) if is_too_long(&error) => {}
            sent => return sent.is_ok_and(|count| count == outgoing.len()),
        }
    }
    false
}

fn is_too_long(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Asks for the MTU of the way to an address, of which the kernel tells connected sockets.
fn mtu(socket: &OwnedFd, to: IpAddr) -> Option<usize> {
    rustix::net::connect(socket, &SocketAddr::new(to, 0)).ok()?;
    let mtu = if to.is_ipv6() { sockopt::ipv6_mtu(socket) } else { sockopt::ip_mtu(socket) };
    rustix::net::connect_unspec(socket).ok()?;
    usize::try_from(mtu.ok()?).ok()
}

/// Numbers for packets that are cut: those between two addresses count up, from where no stranger can tell (RFC 7739 §5.3).
#[derive(Default)]
struct Identifications {
    keyed: RandomState,
    count: u32,
}

impl Identifications {
    fn next(&mut self, packet: &[u8]) -> u32 {
        self.count = self.count.wrapping_add(1);
        let [a, b, c, d, ..] = self.keyed.hash_one(ip::addresses(packet)).to_be_bytes();
        u32::from_be_bytes([a, b, c, d]).wrapping_add(self.count)
    }
}

fn open(family: AddressFamily, mark: u32) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = Protocol::from_raw(IPPROTO_RAW.try_into().expect("255 is not zero"));
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, Some(protocol))?;
    let option = |level, name, value| {
        sys::set_option(&socket, level, name, value)
            .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
    };
    let (level, name) = match family {
        AddressFamily::INET6 => (libc::IPPROTO_IPV6, IPV6_HDRINCL),
        _ => (libc::IPPROTO_IP, libc::IP_HDRINCL),
    };
    option(level, name, 1)?;
    option(libc::SOL_SOCKET, libc::SO_MARK, mark.cast_signed())?;
    sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES)
        .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES))?;
    Ok(socket)
}

const IPPROTO_RAW: u32 = 255;
/// Missing in the `libc` crate; `include/uapi/linux/in6.h`.
const IPV6_HDRINCL: i32 = 36;
/// What each link of IPv6 carries (RFC 8200 §5), and what each host takes in by IPv4 (RFC 791 §3.2).
const MTU_FLOOR_V6: usize = 1280;
const MTU_FLOOR_V4: usize = 576;
const SEND_BUFFER_BYTES: usize = 1024 * 1024;
