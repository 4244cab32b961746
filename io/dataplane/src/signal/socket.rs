// SPDX-License-Identifier: Apache-2.0
//! Datagrams of the node itself: GIST D-mode and Q-mode on UDP port 270.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::control;
use crate::{DriverError, InterfaceId, limits, sockaddr, sys};

/// What the signaling socket has to know to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalConfig {
    /// The port to send from and to receive on; GIST's is 270.
    pub port: u16,
    /// The mark (`SO_MARK`) on all that is sent.
    pub mark: u32,
}

/// What the signaling socket has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A datagram for one of the node's own addresses.
    Datagram {
        /// Where it came in.
        interface: InterfaceId,
        /// The node's address on that interface; for unicast the same as `destination`.
        local: IpAddr,
        /// Who sent it.
        source: SocketAddr,
        /// The destination in the packet.
        destination: IpAddr,
        /// What was left of the TTL or hop limit; 0 if the kernel did not say.
        ttl: u8,
        /// What it carries, magic number included.
        payload: Vec<u8>,
    },
    /// A datagram of ours did not arrive, says an ICMP message.
    Unreachable {
        /// Where the datagram was sent to: for a Query, the flow's destination.
        destination: SocketAddr,
        /// What the ICMP message says.
        kind: UnreachableKind,
        /// Who sent the ICMP message.
        reporter: Option<IpAddr>,
        /// As much of the datagram's content as the ICMP message brought back.
        payload: Vec<u8>,
    },
}

/// Why a datagram did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreachableKind {
    /// There is no route to its network.
    Network,
    /// Its host does not answer.
    Host,
    /// The host does not speak UDP.
    Protocol,
    /// Nobody listens on its port: the host is there, and is no NetServ node.
    Port,
    /// It is longer than the path allows.
    TooBig,
    /// A filter on the way forbids it.
    Prohibited,
    /// Its TTL ran out.
    TimeExceeded,
    /// Something else.
    Other,
}

/// UDP sockets for both versions of IP, in one descriptor to wait for.
///
/// The descriptor becomes readable for datagrams and for errors alike; call [`SignalSocket::receive`] until it returns
/// `None`. It suits edge-triggered waiting, such as tokio's `AsyncFd`.
#[derive(Debug)]
pub struct SignalSocket {
    port: u16,
    v4: OwnedFd,
    /// `None` where the kernel has no IPv6.
    v6: Option<OwnedFd>,
    ready: OwnedFd,
    buffer: Mutex<Vec<u8>>,
}

impl SignalSocket {
    /// Opens both sockets on all addresses of the node.
    ///
    /// # Errors
    /// If the port is taken or the process lacks the rights.
    pub fn open(config: SignalConfig) -> Result<SignalSocket, DriverError> {
        let failed = |error: io::Error| DriverError::system("opening the signaling socket", error);
        let v4 = open_v4(config).map_err(failed)?;
        let v6 = match open_v6(config) {
            Ok(socket) => Some(socket),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(error) => return Err(failed(error)),
        };
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        for socket in [Some(&v4), v6.as_ref()].into_iter().flatten() {
            epoll::add(&ready, socket, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ERR)
                .map_err(|error| failed(error.into()))?;
        }
        Ok(SignalSocket { port: config.port, v4, v6, ready, buffer: Mutex::new(vec![0; limits::SLOT_BYTES]) })
    }

    /// Returns what came in next, or `None` if there is nothing more for the moment.
    ///
    /// # Errors
    /// If a socket is broken. An ICMP error does not break it.
    pub fn receive(&self) -> Result<Option<Received>, DriverError> {
        for socket in [Some(&self.v4), self.v6.as_ref()].into_iter().flatten() {
            if let Some(received) = self.receive_from(socket)? {
                return Ok(Some(received));
            }
        }
        Ok(None)
    }

    /// Sends a datagram in normal D-mode (RFC 5971 §5.3.1).
    ///
    /// # Errors
    /// If there is no route, the datagram is too long for the path, or `local` is not the node's address.
    pub fn send_datagram(&self, local: IpAddr, peer: SocketAddr, payload: &[u8]) -> Result<(), DriverError> {
        self.send(local, peer, None, None, payload)
    }

    /// Sends a datagram in Q-mode (RFC 5971 §5.3.2): toward the flow's destination, to be caught on its way.
    ///
    /// `rao` is the value of the router alert option; `None` leaves the option out. Like everything from this socket
    /// the datagram is never fragmented.
    ///
    /// # Errors
    /// As [`SignalSocket::send_datagram`].
    pub fn send_q_mode(
        &self,
        local: IpAddr,
        destination: IpAddr,
        ttl: Option<u8>,
        rao: Option<u16>,
        payload: &[u8],
    ) -> Result<(), DriverError> {
        self.send(local, SocketAddr::new(destination, self.port), ttl, rao, payload)
    }

    fn send(
        &self,
        local: IpAddr,
        peer: SocketAddr,
        ttl: Option<u8>,
        rao: Option<u16>,
        payload: &[u8],
    ) -> Result<(), DriverError> {
        let failed = |error: io::Error| DriverError::system("sending a signaling message", error);
        let socket = if peer.is_ipv6() { self.v6.as_ref() } else { Some(&self.v4) };
        let socket = socket.ok_or_else(|| failed(Errno::AFNOSUPPORT.into()))?;
        let mut control = Vec::new();
        if !local.is_unspecified() {
            control::append_source(&mut control, local);
        }
        if let Some(ttl) = ttl {
            control::append_ttl(&mut control, peer.is_ipv6(), ttl);
        }
        if let Some(value) = rao {
            control::append_router_alert(&mut control, peer.is_ipv6(), value);
        }
        let outgoing = sys::Outgoing { address: &sockaddr::encode(peer), control: &control, payload };
        let mut tries = 0;
        loop {
            match sys::send_many(socket, &[outgoing]) {
                Ok(_) => return Ok(()),
                // The first error may be of an earlier datagram; `receive` tells of it.
                Err(error) if tries < STALE_ERRORS_MAX && !is_would_block(&error) => {
                    tries += 1;
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn receive_from(&self, socket: &OwnedFd) -> Result<Option<Received>, DriverError> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tries = 0;
        loop {
            if let Some(failure) = take_failure(socket, &mut buffer) {
                return Ok(Some(failure));
            }
            match take_datagram(socket, &mut buffer) {
                Ok(Some(datagram)) => return Ok(Some(datagram)),
                Ok(None) => {}
                Err(error) if is_would_block(&error) => return Ok(None),
                // The socket's pending error; its story is in the error queue.
                Err(_) if tries < STALE_ERRORS_MAX => tries += 1,
                Err(error) => return Err(DriverError::system("receiving signaling messages", error)),
            }
        }
    }
}

impl AsFd for SignalSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// How many errors in a row may be old ones: more than ICMP messages arrive during a call.
const STALE_ERRORS_MAX: usize = 64;
/// Room for an address, a TTL, an interface and an ICMP error.
const CONTROL_BYTES: usize = 512;
/// Missing in the `libc` crate for IPv6; `include/uapi/linux/in6.h`.
const IPV6_DONTFRAG: i32 = 62;

/// Returns the next ICMP error; what else stands in the error queue is thrown away.
fn take_failure(socket: &OwnedFd, buffer: &mut [u8]) -> Option<Received> {
    let (mut address, mut control_bytes) = ([0; sockaddr::BYTES_MAX], [0; CONTROL_BYTES]);
    loop {
        let filled = sys::receive(socket, &mut address, &mut control_bytes, buffer, libc::MSG_ERRQUEUE).ok()?;
        let failure = control::failure(&control_bytes[..filled.control]);
        if let Some((failure, destination)) = failure.zip(sockaddr::decode(&address[..filled.address])) {
            let payload = buffer[..filled.payload].to_vec();
            let control::Failure { kind, reporter } = failure;
            return Some(Received::Unreachable { destination, kind, reporter, payload });
        }
    }
}

fn take_datagram(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<Received>> {
    let (mut address, mut control_bytes) = ([0; sockaddr::BYTES_MAX], [0; CONTROL_BYTES]);
    let filled = sys::receive(socket, &mut address, &mut control_bytes, buffer, 0)?;
    let arrival = control::arrival(&control_bytes[..filled.control]);
    let source = sockaddr::decode(&address[..filled.address]);
    let (Some(source), Some(local), Some(destination)) = (source, arrival.local, arrival.destination) else {
        return Ok(None);
    };
    Ok(Some(Received::Datagram {
        interface: InterfaceId(arrival.interface),
        local,
        source,
        destination,
        ttl: arrival.ttl.unwrap_or(0),
        payload: buffer[..filled.payload].to_vec(),
    }))
}

fn open_v4(config: SignalConfig) -> io::Result<OwnedFd> {
    let socket = open(AddressFamily::INET, config)?;
    sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::DO)?;
    for name in [libc::IP_PKTINFO, libc::IP_RECVTTL, libc::IP_RECVERR] {
        sys::set_option(&socket, libc::IPPROTO_IP, name, 1)?;
    }
    rustix::net::bind(&socket, &SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), config.port))?;
    Ok(socket)
}

fn open_v6(config: SignalConfig) -> io::Result<OwnedFd> {
    let socket = open(AddressFamily::INET6, config)?;
    sockopt::set_ipv6_v6only(&socket, true)?;
    sockopt::set_ipv6_mtu_discover(&socket, sockopt::Ipv6PathMtuDiscovery::DO)?;
    for name in [libc::IPV6_RECVPKTINFO, libc::IPV6_RECVHOPLIMIT, libc::IPV6_RECVERR, IPV6_DONTFRAG] {
        sys::set_option(&socket, libc::IPPROTO_IPV6, name, 1)?;
    }
    rustix::net::bind(&socket, &SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), config.port))?;
    Ok(socket)
}

fn open(family: AddressFamily, config: SignalConfig) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_MARK, config.mark.cast_signed())?;
    sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER_BYTES)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES))?;
    Ok(socket)
}

const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
