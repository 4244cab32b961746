// SPDX-License-Identifier: Apache-2.0
//! Datagrams in batches, for programs.
//!
//! ```no_run
//! use netserv_server_sdk::udp::Socket;
//!
//! let socket = Socket::bind("0.0.0.0:7".parse().unwrap()).expect("the port is published");
//! loop {
//!     let batch = socket.receive();
//!     // Whoever asked gets it back.
//!     socket.send(&batch).expect("the module answers");
//! }
//! ```

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::bindings::imports::netserv::udp::sockets;
pub use crate::bindings::imports::netserv::udp::sockets::Error;
use crate::bindings::imports::wasi::io::poll::Pollable;
use crate::bindings::imports::wasi::sockets::network::{IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress};

/// Datagrams that go with one call at most.
pub const BATCH_MAX: usize = 32;

/// A socket.
pub struct Socket(sockets::Socket);

/// Datagrams with their other ends.
#[derive(Default)]
pub struct Batch {
    datagrams: Vec<sockets::Datagram>,
    bytes: Vec<u8>,
}

impl Socket {
    /// Takes a port, one of the system's choice for 0.
    ///
    /// # Errors
    /// The module may not, somebody has it, or the module has as many sockets as it may.
    pub fn bind(local: SocketAddr) -> Result<Socket, Error> {
        sockets::Socket::open(to_wasi(local)).map(Socket)
    }

    /// Returns the address that it has.
    pub fn local(&self) -> SocketAddr {
        from_wasi(self.0.local())
    }

    /// Waits until something has come, and takes it: at most [`BATCH_MAX`] datagrams.
    pub fn receive(&self) -> Batch {
        loop {
            let batch = self.try_receive();
            if !batch.is_empty() {
                return batch;
            }
            self.0.subscribe().block();
        }
    }

    /// Takes what has come, nothing perhaps.
    pub fn try_receive(&self) -> Batch {
        let most = u32::try_from(BATCH_MAX).unwrap_or(u32::MAX);
        // It fails for no socket that there is.
        let taken = self.0.receive(most);
        taken.map(|batch| Batch { datagrams: batch.datagrams, bytes: batch.bytes }).unwrap_or_default()
    }

    /// Returns what is ready when something may have come, to wait for it among other things.
    pub fn subscribe(&self) -> Pollable {
        self.0.subscribe()
    }

    /// Sends a batch, and waits while the kernel takes no more.
    ///
    /// # Errors
    /// A datagram may not go, or is too large; those before it, in steps of [`BATCH_MAX`], have gone.
    pub fn send(&self, batch: &Batch) -> Result<(), Error> {
        let (mut datagrams, mut bytes) = (&batch.datagrams[..], &batch.bytes[..]);
        while !datagrams.is_empty() {
            let some = &datagrams[..datagrams.len().min(BATCH_MAX)];
            let sent = self.0.send(some, &bytes[..length(some)])? as usize;
            bytes = &bytes[length(&datagrams[..sent])..];
            datagrams = &datagrams[sent..];
            if !datagrams.is_empty() && sent < some.len() {
                self.0.subscribe_to_send().block();
            }
        }
        Ok(())
    }
}

impl Batch {
    /// Adds a datagram.
    pub fn push(&mut self, remote: SocketAddr, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.datagrams.push(sockets::Datagram { remote: to_wasi(remote), length });
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the datagrams with their other ends.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let mut rest = &self.bytes[..];
        self.datagrams.iter().map(move |datagram| {
            let (bytes, after) = rest.split_at((datagram.length as usize).min(rest.len()));
            rest = after;
            (from_wasi(datagram.remote), bytes)
        })
    }

    /// Returns how many datagrams there are.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }
}

fn length(datagrams: &[sockets::Datagram]) -> usize {
    datagrams.iter().map(|datagram| datagram.length as usize).sum()
}

fn to_wasi(address: SocketAddr) -> IpSocketAddress {
    match address {
        SocketAddr::V4(v4) => {
            let [a, b, c, d] = v4.ip().octets();
            IpSocketAddress::Ipv4(Ipv4SocketAddress { port: v4.port(), address: (a, b, c, d) })
        }
        SocketAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.ip().segments();
            IpSocketAddress::Ipv6(Ipv6SocketAddress {
                port: v6.port(),
                flow_info: v6.flowinfo(),
                address: (a, b, c, d, e, f, g, h),
                scope_id: v6.scope_id(),
            })
        }
    }
}

fn from_wasi(address: IpSocketAddress) -> SocketAddr {
    match address {
        IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (a, b, c, d) }) => {
            SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port).into()
        }
        IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info, address, scope_id }) => {
            let (a, b, c, d, e, f, g, h) = address;
            SocketAddrV6::new(Ipv6Addr::new(a, b, c, d, e, f, g, h), port, flow_info, scope_id).into()
        }
    }
}
