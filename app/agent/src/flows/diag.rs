// SPDX-License-Identifier: Apache-2.0
//! Sockets of this machine, as the kernel lists them to everybody (sock_diag(7)).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use netserv_netlink::message::{FLAG_DUMP, FLAG_REQUEST, TYPE_DONE, TYPE_ERROR, append, error_number, messages};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::config::{FlowPort, FlowProtocol};

/// A flow of a program of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Whether it goes on; else it has just ended.
    pub is_open: bool,
}

/// Returns the flows of a port over IPv4 and IPv6, at most so many, and whether there are more. It blocks, for the longer the more there
/// are.
///
/// # Errors
/// The kernel does not list such sockets.
pub fn list(protocol: FlowProtocol, port: FlowPort, most: usize) -> io::Result<(Vec<Flow>, bool)> {
    let mut flows = Vec::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        // Its own socket, so that nothing of an answer that was left is taken for another.
        let socket = open(SocketFlags::empty())?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIME_MAX))?;
        let mut request = Vec::new();
        append(&mut request, BY_FAMILY, FLAG_REQUEST | FLAG_DUMP, 1, &question(family, protocol, port), &[]);
        rustix::net::sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        if !hear(&socket, &mut flows, most)? {
            return Ok((flows, true));
        }
    }
    Ok((flows, false))
}

/// Hears of sockets that are closed, so that no flow is missed that is over soon.
pub struct Closed(AsyncFd<OwnedFd>);

impl Closed {
    /// Begins to hear.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn listen(protocol: FlowProtocol) -> io::Result<Closed> {
        let groups = match protocol {
            FlowProtocol::Tcp => TCP_DESTROY,
            FlowProtocol::Udp => UDP_DESTROY,
        };
        let socket = open(SocketFlags::NONBLOCK)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        #[allow(deprecated, reason = "the sound way is unsafe to call; an `OwnedFd` keeps what it asks for")]
        Ok(Closed(AsyncFd::with_interest(socket, Interest::READABLE)?))
    }

    /// Waits for flows of a port that are over, by one message of the kernel's.
    ///
    /// # Errors
    /// The kernel does not tell any more.
    pub async fn next(&self, port: FlowPort) -> io::Result<Vec<Flow>> {
        let mut buffer = vec![0; ANSWER_BYTES];
        loop {
            let mut ready = self.0.readable().await?;
            let received = ready
                .try_io(|socket| Ok(rustix::net::recv(socket.get_ref(), buffer.as_mut_slice(), RecvFlags::empty())?.0));
            let length = match received {
                Ok(Ok(length)) => length,
                // More were closed than there is room for: some are missed.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => continue,
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => continue,
            };
            let is_own = |flow: &Flow| match port {
                FlowPort::Remote(port) => flow.remote.port() == port,
                FlowPort::Local(port) => flow.local.port() == port,
            };
            let all = messages(&buffer[..length]).filter(|message| message.kind == BY_FAMILY);
            let flows: Vec<Flow> = all.filter_map(|message| flow(message.body)).filter(is_own).collect();
            if !flows.is_empty() {
                return Ok(flows.into_iter().map(|flow| Flow { is_open: false, ..flow }).collect());
            }
        }
    }
}

fn open(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?)
}

/// The groups `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`.
const TCP_DESTROY: u32 = 0b0101;
/// The groups `SKNLGRP_INET_UDP_DESTROY` and `SKNLGRP_INET6_UDP_DESTROY`.
const UDP_DESTROY: u32 = 0b1010;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
const ANSWER_BYTES: usize = 64 * 1024;
/// States of TCP (`TCP_ESTABLISHED` and so on), which the kernel uses for UDP, too.
const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const FIN_WAIT_1: u8 = 4;
const FIN_WAIT_2: u8 = 5;
const TIME_WAIT: u8 = 6;
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;
const CLOSING: u8 = 11;

/// Makes a `struct inet_diag_req_v2`. The kernel leaves out what has another port.
fn question(family: AddressFamily, protocol: FlowProtocol, port: FlowPort) -> Vec<u8> {
    let mask = |states: &[u8]| states.iter().fold(0_u32, |mask, state| mask | 1 << state);
    let established = mask(&[ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2, TIME_WAIT, CLOSE_WAIT, LAST_ACK, CLOSING]);
    let (number, states) = match (protocol, port) {
        (FlowProtocol::Tcp, FlowPort::Remote(_)) => (6, established | mask(&[SYN_SENT])),
        // Who only asks for a connection may have any address.
        (FlowProtocol::Tcp, FlowPort::Local(_)) => (6, established),
        (FlowProtocol::Udp, FlowPort::Remote(_) | FlowPort::Local(_)) => (17, mask(&[ESTABLISHED])),
    };
    let (local, remote) = match port {
        FlowPort::Remote(port) => (0, port),
        FlowPort::Local(port) => (port, 0),
    };
    let family = u8::try_from(family.as_raw()).unwrap_or_default();
    let mut question = vec![family, number, 0, 0];
    question.extend(states.to_ne_bytes());
    question.extend(local.to_be_bytes());
    question.extend(remote.to_be_bytes());
    // Addresses and interface: any. No cookie.
    question.extend([0; 36]);
    question.extend([0xff; 8]);
    question
}

/// Reads an answer; returns whether all of it was taken.
fn hear(socket: &OwnedFd, flows: &mut Vec<Flow>, most: usize) -> io::Result<bool> {
    let mut buffer = vec![0; ANSWER_BYTES];
    loop {
        let length = match rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty()) {
            Ok((length, _)) => length,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for message in messages(&buffer[..length]) {
            match message.kind {
                TYPE_DONE => return Ok(true),
                TYPE_ERROR => {
                    let number = error_number(message.body).unwrap_or(0);
                    return Err(io::Error::from_raw_os_error(number));
                }
                BY_FAMILY if flows.len() >= most => return Ok(false),
                BY_FAMILY => flows.extend(flow(message.body)),
                _ => {}
            }
        }
    }
}

/// Reads a `struct inet_diag_msg`.
fn flow(body: &[u8]) -> Option<Flow> {
    let (family, state) = (*body.first()?, *body.get(1)?);
    let port = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
    let address = |at: usize| {
        let octets: &[u8; 16] = body.get(at..)?.first_chunk()?;
        match AddressFamily::from_raw(family.into()) {
            AddressFamily::INET => Some(IpAddr::V4(Ipv4Addr::from(*octets.first_chunk()?))),
            // A socket of IPv6 may have a peer of IPv4.
            AddressFamily::INET6 => Some(IpAddr::V6(Ipv6Addr::from(*octets)).to_canonical()),
            _ => None,
        }
    };
    let local = SocketAddr::new(address(8)?, port(4)?);
    let remote = SocketAddr::new(address(24)?, port(6)?);
    Some(Flow { local, remote, is_open: [ESTABLISHED, SYN_SENT, CLOSE_WAIT].contains(&state) })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    const MOST: usize = 1000;

    /// Goal: connections are found by the port of either end, over both versions of IP, as long as they are open and just after.
    #[test]
    fn connections_of_this_machine_are_listed() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(local).unwrap();
            let server = listener.local_addr().unwrap();
            let list = |port| list(FlowProtocol::Tcp, port, MOST).unwrap().0;
            assert_eq!(list(FlowPort::Remote(server.port())), [], "one that listens is no flow");
            let client = TcpStream::connect(server).unwrap();
            let (own, _) = (client.local_addr().unwrap(), listener.accept().unwrap());
            let there = |flow: &Flow| (flow.local, flow.remote) == (own, server);
            assert!(list(FlowPort::Remote(server.port())).iter().any(|flow| there(flow) && flow.is_open));
            let other_end = |flow: &Flow| (flow.remote, flow.local) == (own, server);
            assert!(list(FlowPort::Local(server.port())).iter().any(other_end));
            drop(client);
            assert!(list(FlowPort::Remote(server.port())).iter().all(|flow| there(flow) && !flow.is_open));
        }
    }

    /// Goal: a flow that is over at once is heard of. Method: the server closes first, so that nothing is left of the client's socket; and a
    /// socket of UDP.
    #[tokio::test]
    async fn flows_that_are_over_soon_are_heard_of() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(local).unwrap();
            let server = listener.local_addr().unwrap();
            let closed = Closed::listen(FlowProtocol::Tcp).unwrap();
            let client = TcpStream::connect(server).unwrap();
            let own = client.local_addr().unwrap();
            drop(listener.accept().unwrap());
            drop(client);
            let wait = tokio::time::timeout(Duration::from_secs(20), closed.next(FlowPort::Remote(server.port())));
            assert_eq!(wait.await.unwrap().unwrap(), [Flow { local: own, remote: server, is_open: false }]);

            let closed = Closed::listen(FlowProtocol::Udp).unwrap();
            let server = UdpSocket::bind(local).unwrap().local_addr().unwrap();
            let client = UdpSocket::bind(local).unwrap();
            client.connect(server).unwrap();
            let own = client.local_addr().unwrap();
            drop(client);
            let wait = tokio::time::timeout(Duration::from_secs(20), closed.next(FlowPort::Remote(server.port())));
            assert_eq!(wait.await.unwrap().unwrap(), [Flow { local: own, remote: server, is_open: false }]);
        }
    }

    #[test]
    fn a_peer_of_ipv4_has_an_address_of_ipv4() {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let accepted = listener.accept().unwrap();
        let found = list(FlowProtocol::Tcp, FlowPort::Local(port), MOST).unwrap().0;
        assert!(found.iter().any(|flow| flow.remote == client.local_addr().unwrap()), "{found:?}, {accepted:?}");
    }

    #[test]
    fn connected_sockets_of_udp_are_listed_and_bounds_are_kept() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let list = |most| list(FlowProtocol::Udp, FlowPort::Remote(port), most).unwrap();
        assert_eq!(list(MOST), (vec![], false));
        let sockets: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        sockets.iter().for_each(|socket| socket.connect(("127.0.0.1", port)).unwrap());
        assert_eq!((list(MOST).0.len(), list(MOST).1), (3, false));
        assert_eq!((list(2).0.len(), list(2).1), (2, true));
    }

    #[test]
    fn what_the_kernel_never_says_is_no_flow() {
        for length in 0..40 {
            assert_eq!(flow(&vec![2; length]), None);
        }
        assert_eq!(flow(&[1; 72]), None, "another family");
    }
}
