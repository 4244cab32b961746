// SPDX-License-Identifier: Apache-2.0
//! Datagrams of programs, in batches.

mod calls;
mod sys;

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::OwnedSemaphorePermit;

use super::module::{Module, Transport};
use crate::limits::{UDP_BATCH_MAX, UDP_DATAGRAM_BYTES_MAX, UDP_PAYLOAD_BYTES_MAX};

/// Why nothing was done with datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UdpError {
    /// The module may not do that.
    #[error("not permitted")]
    NotPermitted,
    /// Somebody has the port.
    #[error("the port is taken")]
    Taken,
    /// An address or lengths that cannot be.
    #[error("an address or lengths that cannot be")]
    Invalid,
    /// A datagram is longer than any.
    #[error("a datagram is longer than {UDP_PAYLOAD_BYTES_MAX} bytes")]
    TooLarge,
    /// There are no more sockets.
    #[error("there are no more sockets")]
    Quota,
}

/// Datagrams that came, and the bytes of all.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Whom each came from, and its length.
    pub datagrams: Vec<(SocketAddr, usize)>,
    /// Their bytes, one after the other.
    pub bytes: Vec<u8>,
}

/// A socket of a program.
pub struct Socket {
    module: Arc<Module>,
    socket: UdpSocket,
    local: SocketAddr,
    _place: OwnedSemaphorePermit,
}

thread_local! {
    /// Where datagrams come before they are packed. A worker has one thread for servers; pages that no datagram reached take no
    /// memory.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Socket {
    /// Takes a port.
    ///
    /// # Errors
    /// The module may not, somebody has it, or the module has as many sockets as it may.
    pub fn open(module: &Arc<Module>, local: SocketAddr) -> Result<Socket, UdpError> {
        if !Socket::may_open(module, local) {
            return Err(UdpError::NotPermitted);
        }
        let place = Arc::clone(&module.udp_sockets).try_acquire_owned().map_err(|_| UdpError::Quota)?;
        let open = || {
            let socket = UdpSocket::from_std(calls::open(local)?.into())?;
            let local = socket.local_addr()?;
            Ok::<_, io::Error>(Socket { module: Arc::clone(module), socket, local, _place: place })
        };
        open().map_err(|error| {
            let is = |kind: io::ErrorKind| error.kind() == kind;
            if is(io::ErrorKind::AddrInUse) {
                UdpError::Taken
            } else if is(io::ErrorKind::PermissionDenied) {
                UdpError::NotPermitted
            } else if is(io::ErrorKind::AddrNotAvailable) {
                UdpError::Invalid
            } else {
                UdpError::Quota
            }
        })
    }

    /// Returns whether a module may take a port; it may always take one of the system's choice.
    pub fn may_open(module: &Module, local: SocketAddr) -> bool {
        // Floating addresses come and go: the kernel knows which ones are there.
        let anywhere = if local.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let floats = || module.may_listen(Transport::Udp, SocketAddr::new(anywhere, local.port()));
        local.port() == 0
            || module.may_listen(Transport::Udp, local)
            || !local.ip().to_canonical().is_loopback() && floats()
    }

    /// Returns the address that it has.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Takes what has come, at most `most` datagrams.
    pub fn receive(&self, most: usize) -> Batch {
        let most = most.min(UDP_BATCH_MAX);
        if most == 0 {
            return Batch::default();
        }
        let batch = ROOM.with_borrow_mut(|room| {
            // Pages of it that no datagram needs are never touched, as the ones are not that the kernel gives.
            if room.is_empty() {
                *room = vec![0; sys::ROOM_BYTES];
            }
            // What the kernel tells of datagrams that went before is no reason to give up those that came.
            let received = self.attempt(Interest::READABLE, || calls::receive(self.socket.as_fd(), room, most));
            pack(room, received.unwrap_or_default())
        });
        self.module.counts.bytes_in(batch.bytes.len());
        batch
    }

    /// Sends datagrams whose bytes follow each other. Returns how many went: fewer if the kernel takes no more for the moment.
    ///
    /// # Errors
    /// One of them may not go, or cannot be; none has gone then.
    pub fn send(&self, datagrams: &[(SocketAddr, usize)], mut bytes: &[u8]) -> Result<usize, UdpError> {
        let answers = self.module.listens_to_datagrams();
        let mut parts = Vec::with_capacity(datagrams.len().min(UDP_BATCH_MAX));
        for (remote, length) in datagrams {
            let (part, rest) = bytes.split_at_checked(*length).ok_or(UdpError::Invalid)?;
            if part.len() > UDP_PAYLOAD_BYTES_MAX {
                return Err(UdpError::TooLarge);
            }
            if remote.is_ipv4() != self.local.is_ipv4() || remote.port() == 0 {
                return Err(UdpError::Invalid);
            }
            // A server answers whoever asked it, of whom only the kernel knows.
            if !answers && !self.module.may_connect(Transport::Udp, *remote) {
                return Err(UdpError::NotPermitted);
            }
            bytes = rest;
            parts.push((*remote, part));
        }
        if !bytes.is_empty() {
            return Err(UdpError::Invalid);
        }
        parts.truncate(UDP_BATCH_MAX);
        let sent = self.send_parts(&parts);
        let length: usize = parts[..sent].iter().map(|(_, part)| part.len()).sum();
        self.module.counts.bytes_out(length);
        Ok(sent)
    }

    fn send_parts(&self, parts: &[(SocketAddr, &[u8])]) -> usize {
        let mut sent = 0;
        while sent < parts.len() {
            match self.attempt(Interest::WRITABLE, || calls::send(self.socket.as_fd(), &parts[sent..])) {
                Ok(count) => sent += count.max(1),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // There is no way, or the kernel's rules are against it: it is lost, as datagrams are.
                Err(_) => {
                    self.module.counts.failed();
                    sent += 1;
                }
            }
        }
        sent
    }

    /// Makes a call, and a second time if there was nothing to do, so that the runtime knows that it is to wait for the kernel's
    /// word. It is not asked before the first one, since it knows nothing of a new socket.
    fn attempt<T>(&self, interest: Interest, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket.try_io(interest, call),
            done => done,
        }
    }

    /// Waits until something may have come.
    pub async fn wait_to_receive(&self) {
        // An error is told by whoever receives.
        let _ = self.socket.readable().await;
    }

    /// Waits until the kernel may take more.
    pub async fn wait_to_send(&self) {
        // An error is told by whoever sends.
        let _ = self.socket.writable().await;
    }
}

/// Puts the bytes of datagrams, each in its part of the room, one behind the other.
fn pack(room: &[u8], received: Vec<Option<sys::Received>>) -> Batch {
    let all = received.iter().flatten().map(|(_, length)| length).sum();
    let mut batch = Batch { datagrams: Vec::with_capacity(received.len()), bytes: Vec::with_capacity(all) };
    for (part, datagram) in room.chunks_exact(UDP_DATAGRAM_BYTES_MAX).zip(received) {
        let Some((remote, length)) = datagram else { continue };
        batch.datagrams.push((remote, length));
        batch.bytes.extend_from_slice(&part[..length]);
    }
    batch
}

#[cfg(test)]
mod tests {
    use netserv_model::effect::ModuleSlot;
    use netserv_model::manifest::ModuleLimits;
    use netserv_wire::container::frames::ServerLoad;
    use netserv_worker_base::wakeup::Wakeup;

    use super::*;
    use crate::blocks::testing::run;
    use crate::limits::UDP_SOCKETS_MAX;
    use crate::module::{Profile, Shared};

    fn module(listen: &[&str], connect: &[&str]) -> Arc<Module> {
        let filters = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let addresses = ["127.0.0.1", "::1"].map(|address| address.parse().unwrap()).to_vec();
        let network =
            ServerLoad { listen: filters(listen), connect: filters(connect), addresses, ..ServerLoad::default() };
        let profile = Profile {
            slot: ModuleSlot(0),
            name: "example.org/a@1.0.0".parse().unwrap(),
            properties: [].into(),
            limits: ModuleLimits::default(),
            blocks: [].into(),
            network,
        };
        Arc::new(Module::new(profile, Shared::default(), Arc::new(Wakeup::new().unwrap())))
    }

    #[test]
    fn a_module_has_so_many_sockets() {
        run(async {
            let module = module(&[], &[]);
            let open = || Socket::open(&module, "127.0.0.1:0".parse().unwrap());
            let mut all: Vec<Socket> = (0..UDP_SOCKETS_MAX).map(|_| open().unwrap()).collect();
            assert_eq!(open().err(), Some(UdpError::Quota));
            all.pop();
            assert!(open().is_ok());
            for (local, error) in [
                ("127.0.0.1:9", UdpError::NotPermitted),
                ("192.0.2.1:9", UdpError::NotPermitted),
                ("192.0.2.1:0", UdpError::Invalid),
            ] {
                assert_eq!(Socket::open(&module, local.parse().unwrap()).err(), Some(error), "{local}");
            }
        });
    }

    #[test]
    fn an_address_that_is_not_here_is_the_kernels_to_refuse() {
        run(async {
            let module = module(&["udp port 7"], &[]);
            for local in ["192.0.2.1:7", "[2001:db8::1]:7"] {
                assert_eq!(Socket::open(&module, local.parse().unwrap()).err(), Some(UdpError::Invalid), "{local}");
            }
            for local in ["127.0.0.2:7", "[::ffff:127.0.0.2]:7", "192.0.2.1:8"] {
                let opened = Socket::open(&module, local.parse().unwrap());
                assert_eq!(opened.err(), Some(UdpError::NotPermitted), "{local}");
            }
        });
    }

    #[test]
    fn what_cannot_go_leaves_nothing_sent() {
        run(async {
            let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            peer.set_nonblocking(true).unwrap();
            let to = peer.local_addr().unwrap();
            let module = module(&[], &[&format!("udp dst 127.0.0.1 port {}", to.port())]);
            let socket = Socket::open(&module, "127.0.0.1:0".parse().unwrap()).unwrap();
            let six = "[::1]:9".parse().unwrap();
            let large = vec![0; UDP_PAYLOAD_BYTES_MAX + 2];
            for (datagrams, bytes, error) in [
                (vec![(to, 1), (to, 2)], &b"ab"[..], UdpError::Invalid),
                (vec![(to, 1)], b"ab", UdpError::Invalid),
                (vec![(to, usize::MAX)], b"ab", UdpError::Invalid),
                (vec![(to, 1), (six, 1)], b"ab", UdpError::Invalid),
                (vec![(to, 1), ("127.0.0.1:0".parse().unwrap(), 1)], b"ab", UdpError::Invalid),
                (vec![(to, 1), ("127.0.0.2:9".parse().unwrap(), 1)], b"ab", UdpError::NotPermitted),
                (vec![(to, 1), (to, UDP_PAYLOAD_BYTES_MAX + 1)], &large, UdpError::TooLarge),
            ] {
                assert_eq!(socket.send(&datagrams, bytes), Err(error), "{datagrams:?}");
            }
            assert!(peer.recv(&mut [0; 9]).is_err(), "nothing went");
            assert_eq!(socket.send(&vec![(to, 0); UDP_BATCH_MAX + 1], b""), Ok(UDP_BATCH_MAX));
            assert_eq!(socket.send(&[], b""), Ok(0));
            assert_eq!(socket.receive(9), Batch::default());
            assert_eq!(socket.receive(0), Batch::default());
        });
    }

    /// Whoever answers may send anywhere, and what finds no way costs nobody else.
    #[test]
    fn one_datagram_that_finds_no_way_holds_up_no_other() {
        run(async {
            let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = peer.local_addr().unwrap();
            let module = module(&["udp port 1-65535"], &[]);
            let socket = Socket::open(&module, "127.0.0.1:0".parse().unwrap()).unwrap();
            let nowhere = "255.255.255.255:9".parse().unwrap();
            assert_eq!(socket.send(&[(nowhere, 1), (to, 1), (nowhere, 1), (to, 1)], b"abcd"), Ok(4));
            let mut byte = [0];
            assert_eq!((peer.recv(&mut byte).unwrap(), byte), (1, *b"b"));
            assert_eq!((peer.recv(&mut byte).unwrap(), byte), (1, *b"d"));
            assert_eq!(module.counts.all().failed, 2);
        });
    }
}
