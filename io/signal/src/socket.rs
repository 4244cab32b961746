// SPDX-License-Identifier: Apache-2.0
//! Datagrams of the node itself: GIST D-mode and Q-mode on UDP port 270.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use netserv_plane::{DriverError, InterfaceId, sockaddr, sys};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::control;
use super::unreachable::UnreachableKind;
use crate::limits;

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

/// UDP sockets for both versions of IP, in one descriptor to wait for.
///
/// Each [`SignalKind`] has sockets of its own to send by: what the kernel holds for neighbours that do not answer fills the
/// buffer of one kind. A datagram that finds it full waits for room, within [`limits::SEND_WAITING_MAX`] and
/// [`limits::SEND_WAITING_TIME_MAX`]. What arrives, ICMP errors for all kinds included, comes in by one of them.
///
/// The descriptor becomes readable for datagrams, for errors and for room alike; call [`SignalSocket::receive`] until it
/// returns `None`, and [`SignalSocket::send_waiting`] now and then meanwhile and at the end. It suits edge-triggered waiting,
/// such as tokio's `AsyncFd`.
#[derive(Debug)]
pub struct SignalSocket {
    port: u16,
    /// Those bound last come first: the kernel gives them what arrives.
    sockets: Vec<Socket>,
    /// Which one is asked first for what arrived: none keeps another waiting.
    turn: AtomicUsize,
    ready: OwnedFd,
    buffer: Mutex<Vec<u8>>,
    counters: Mutex<BTreeMap<SignalKind, SendCounters>>,
}

#[derive(Debug)]
struct Socket {
    kind: SignalKind,
    is_v6: bool,
    fd: OwnedFd,
    /// What found no room.
    waiting: Mutex<VecDeque<Waiting>>,
}

netserv_model::words! {
    /// What a datagram is sent for; what arrives comes in by the last.
    pub enum SignalKind {
        /// Finds out who is on the path to a flow's destination.
        Query = "query",
        /// Answers a Query, at an address that nobody has proven.
        Response = "response",
        /// Tells an error, at an address that nobody has proven.
        Error = "error",
        /// Goes to a peer that has proven its address.
        Peer = "peer",
    }
}

impl SignalKind {
    /// Returns whether its datagrams may come from an address that is not this node's: Errors about a NAT do, so that the NAT
    /// lets them in (RFC 5971 §7.2).
    fn may_forge(self) -> bool {
        match self {
            SignalKind::Error => true,
            SignalKind::Query | SignalKind::Response | SignalKind::Peer => false,
        }
    }
}

/// What the IP header of a datagram in Q-mode says besides the addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QModeHeader {
    /// The TTL or hop limit; `None` leaves it to the kernel.
    pub ttl: Option<u8>,
    /// The value of the router alert option; `None` leaves the option out.
    pub rao: Option<u16>,
    /// The DSCP, 6 bits.
    pub dscp: Option<u8>,
    /// The flow label of IPv6, 20 bits; `None` leaves it to the kernel.
    pub flow_label: Option<u32>,
}

netserv_model::counts! {
    sum
    /// What became of datagrams of one kind.
    pub struct SendCounters {
        /// Taken by the kernel, at once or later.
        sent = "sent",
        /// Waited for room; they are sent or lost in the end.
        delayed = "delayed",
        /// Lost, since there was no room in time.
        lost = "lost",
        /// Refused by the kernel, for want of a route, an address or a shorter length.
        failed = "failed",
    }
}

/// A datagram that waits for room.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    peer: SocketAddr,
    control: Vec<u8>,
    payload: Vec<u8>,
}

impl SignalSocket {
    /// Opens both sockets on all addresses of the node.
    ///
    /// # Errors
    /// If the port is taken or the process lacks the rights.
    pub fn open(config: SignalConfig) -> Result<SignalSocket, DriverError> {
        let failed = |error: io::Error| DriverError::system("opening the signaling socket", error);
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let mut sockets = Vec::new();
        for kind in SignalKind::ALL {
            let socket = |is_v6, fd| Socket { kind, is_v6, fd, waiting: Mutex::default() };
            sockets.push(socket(false, open_v4(kind, config).map_err(failed)?));
            match open_v6(kind, config) {
                Ok(fd) => sockets.push(socket(true, fd)),
                // The kernel has no IPv6.
                Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        sockets.reverse();
        for socket in &sockets {
            epoll::add(&ready, &socket.fd, epoll::EventData::new_u64(0), READABLE)
                .map_err(|error| failed(error.into()))?;
        }
        Ok(SignalSocket {
            port: config.port,
            sockets,
            turn: AtomicUsize::new(0),
            ready,
            buffer: Mutex::new(vec![0; limits::SLOT_BYTES]),
            counters: Mutex::default(),
        })
    }

    /// Returns what came in next, or `None` if there is nothing more for the moment.
    ///
    /// # Errors
    /// If a socket is broken. An ICMP error does not break it.
    pub fn receive(&self) -> Result<Option<Received>, DriverError> {
        let first = self.turn.load(Ordering::Relaxed);
        for step in 0..self.sockets.len() {
            let turn = (first + step) % self.sockets.len();
            if let Some(received) = self.receive_from(&self.sockets[turn].fd)? {
                self.turn.store(turn + 1, Ordering::Relaxed);
                return Ok(Some(received));
            }
        }
        Ok(None)
    }

    /// Sends a datagram in normal D-mode (RFC 5971 §5.3.1). Only an Error may come from another address than the node's.
    ///
    /// # Errors
    /// If there is no route, the datagram is too long for the path, or `local` is not the node's address.
    pub fn send_datagram(
        &self,
        kind: SignalKind,
        local: IpAddr,
        peer: SocketAddr,
        payload: &[u8],
    ) -> Result<(), DriverError> {
        self.send_datagram_with_ttl(kind, local, peer, None, payload)
    }

    /// Sends a datagram in normal D-mode with a TTL or hop limit; without one, with the system's.
    ///
    /// # Errors
    /// As [`SignalSocket::send_datagram`].
    pub fn send_datagram_with_ttl(
        &self,
        kind: SignalKind,
        local: IpAddr,
        peer: SocketAddr,
        ttl: Option<u8>,
        payload: &[u8],
    ) -> Result<(), DriverError> {
        let header = QModeHeader { ttl, ..QModeHeader::default() };
        self.send(kind, peer, control_data(local, peer, header), payload)
    }

    /// Sends a datagram in Q-mode (RFC 5971 §5.3.2): toward the flow's destination, to be caught on its way.
    ///
    /// Like everything from this socket the datagram is never fragmented.
    ///
    /// # Errors
    /// As [`SignalSocket::send_datagram`].
    pub fn send_q_mode(
        &self,
        local: IpAddr,
        destination: IpAddr,
        header: QModeHeader,
        payload: &[u8],
    ) -> Result<(), DriverError> {
        let peer = SocketAddr::new(destination, self.port);
        self.send(SignalKind::Query, peer, control_data(local, peer, header), payload)
    }

    /// Sends what waits and has room now; what has waited for too long is lost.
    pub fn send_waiting(&self) {
        for socket in &self.sockets {
            let mut waiting = socket.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.is_empty() {
                continue;
            }
            while let Some(next) = waiting.front() {
                let counted = if next.since.elapsed() > limits::SEND_WAITING_TIME_MAX {
                    SendCounters { lost: 1, ..SendCounters::default() }
                } else {
                    match socket.try_send(next.peer, &next.control, &next.payload) {
                        Ok(()) => SendCounters { sent: 1, ..SendCounters::default() },
                        Err(error) if is_would_block(&error) => break,
                        Err(_) => SendCounters { failed: 1, ..SendCounters::default() },
                    }
                };
                self.count(socket.kind, counted);
                waiting.pop_front();
            }
            if waiting.is_empty() {
                self.watch_for_room(socket, false);
            }
        }
    }

    /// Returns what became of the datagrams of each kind so far.
    pub fn send_counters(&self) -> BTreeMap<SignalKind, SendCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many datagrams were lost, since more arrived than were received.
    pub fn lost(&self) -> u64 {
        self.sockets.iter().filter_map(|socket| sys::socket_drops(&socket.fd).ok()).map(u64::from).sum()
    }

    fn send(&self, kind: SignalKind, peer: SocketAddr, control: Vec<u8>, payload: &[u8]) -> Result<(), DriverError> {
        let is_it = |socket: &&Socket| socket.kind == kind && socket.is_v6 == peer.is_ipv6();
        let failed = |error| DriverError::system("sending a signaling message", error);
        let socket = self.sockets.iter().find(is_it).ok_or_else(|| failed(Errno::AFNOSUPPORT.into()))?;
        match socket.try_send(peer, &control, payload) {
            Ok(()) => {
                self.count(kind, SendCounters { sent: 1, ..SendCounters::default() });
                Ok(())
            }
            Err(error) if is_would_block(&error) => {
                self.wait_for_room(socket, Waiting { since: Instant::now(), peer, control, payload: payload.to_vec() });
                Ok(())
            }
            Err(error) => {
                self.count(kind, SendCounters { failed: 1, ..SendCounters::default() });
                Err(failed(error))
            }
        }
    }

    /// Keeps a datagram until there is room; if too many wait, the oldest is lost.
    fn wait_for_room(&self, socket: &Socket, datagram: Waiting) {
        let mut waiting = socket.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = u64::from(waiting.len() >= limits::SEND_WAITING_MAX);
        if lost > 0 {
            waiting.pop_front();
        }
        waiting.push_back(datagram);
        self.count(socket.kind, SendCounters { delayed: 1, lost, ..SendCounters::default() });
        self.watch_for_room(socket, true);
    }

    fn watch_for_room(&self, socket: &Socket, watch: bool) {
        let events = if watch { READABLE | epoll::EventFlags::OUT } else { READABLE };
        // It can only fail if the socket is not there.
        let _ = epoll::modify(&self.ready, &socket.fd, epoll::EventData::new_u64(0), events);
    }

    fn count(&self, kind: SignalKind, more: SendCounters) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.entry(kind).or_default() += more;
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

impl Socket {
    fn try_send(&self, peer: SocketAddr, control: &[u8], payload: &[u8]) -> io::Result<()> {
        let outgoing = sys::Outgoing { address: &sockaddr::encode(peer), control, payload };
        let mut tries = 0;
        loop {
            match sys::send_many(&self.fd, &[outgoing]) {
                Ok(_) => return Ok(()),
                // The first errors may be of earlier datagrams; `receive` tells of those.
                Err(error) if tries < SEND_ERRORS_MAX && !is_would_block(&error) => {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for SignalSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// Returns what the kernel has to know besides address and payload.
fn control_data(local: IpAddr, peer: SocketAddr, header: QModeHeader) -> Vec<u8> {
    let QModeHeader { ttl, rao, dscp, flow_label } = header;
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
    if let Some(dscp) = dscp {
        control::append_dscp(&mut control, peer.is_ipv6(), dscp);
    }
    if let Some(label) = flow_label.filter(|_| peer.is_ipv6()) {
        control::append_flow_label(&mut control, label);
    }
    control
}

const READABLE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ERR);
/// How many errors in a row may be old ones when a datagram is sent: the kernel keeps one at a time.
const SEND_ERRORS_MAX: usize = 4;
/// How many may be when one is received: more than ICMP messages arrive during a call.
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

fn open_v4(kind: SignalKind, config: SignalConfig) -> io::Result<OwnedFd> {
    let socket = open(AddressFamily::INET, config)?;
    sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::DO)?;
    for name in [libc::IP_PKTINFO, libc::IP_RECVTTL, libc::IP_RECVERR] {
        sys::set_option(&socket, libc::IPPROTO_IP, name, 1)?;
    }
    if kind.may_forge() {
        // Without the right to it, such Errors are not sent.
        let _ = sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1);
    }
    // Signaling is unicast; a multicast would come to each socket.
    sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
    rustix::net::bind(&socket, &SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), config.port))?;
    Ok(socket)
}

fn open_v6(kind: SignalKind, config: SignalConfig) -> io::Result<OwnedFd> {
    let socket = open(AddressFamily::INET6, config)?;
    sockopt::set_ipv6_v6only(&socket, true)?;
    sockopt::set_ipv6_mtu_discover(&socket, sockopt::Ipv6PathMtuDiscovery::DO)?;
    for name in [libc::IPV6_RECVPKTINFO, libc::IPV6_RECVHOPLIMIT, libc::IPV6_RECVERR, IPV6_DONTFRAG] {
        sys::set_option(&socket, libc::IPPROTO_IPV6, name, 1)?;
    }
    if kind.may_forge() {
        let _ = sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1);
    }
    sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, 0)?;
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
    sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES)
        .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES))?;
    Ok(socket)
}

const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Room for some thousand datagrams that the kernel holds, for three seconds each, until a neighbour answers.
const SEND_BUFFER_BYTES: usize = 4 * 1024 * 1024;

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
