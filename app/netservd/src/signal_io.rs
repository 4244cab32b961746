// SPDX-License-Identifier: Apache-2.0
//! Signaling on the wire: UDP port 270, intercepted Queries, TCP connections of messaging associations.
//!
//! Tasks read and write; what they read becomes a [`SignalInput`] for the control loop, which alone calls the engine.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_dataplane::PacketId;
use netserv_dataplane::signal::{
    Intercepted, Interceptor, LocalAddresses, Received, RouteMonitor, Routes, SignalSocket, UnreachableKind,
};
use netserv_gist::{AssociationId, Datagram, Disposition, Engine, InterfaceId, Transmit};
use netserv_model::Now;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use crate::event::{Event, OwnedDatagram, SignalInput};
use crate::readable::readable;

/// Writes waiting for one connection; a peer that reads too slowly for this many loses the connection.
pub const WRITES_MAX: usize = 256;
/// Bytes read from a connection at a time.
const READ_BYTES: usize = 64 * 1024;
/// Intercepted messages taken at a time, before other events have their turn.
const INTERCEPTED_BATCH: usize = 64;

/// The node's signaling sockets.
pub struct SignalIo {
    socket: Arc<SignalSocket>,
    interceptor: Option<Interceptor>,
    send_router_alert: bool,
    routes: Routes,
    addresses: LocalAddresses,
    monitor: RouteMonitor,
    connections: BTreeMap<AssociationId, mpsc::Sender<Write>>,
    events: mpsc::Sender<Event>,
}

enum Write {
    Bytes(Vec<u8>),
    Close,
}

impl SignalIo {
    /// Starts reading from the signaling socket, the interceptor and the TCP port.
    ///
    /// # Errors
    /// A port is taken, or the process may not use it.
    pub fn start(
        socket: SignalSocket,
        interceptor: Option<Interceptor>,
        tcp_port: u16,
        send_router_alert: bool,
        events: mpsc::Sender<Event>,
    ) -> Result<SignalIo> {
        let socket = Arc::new(socket);
        let fd = readable(&*socket)?;
        tokio::spawn(read_datagrams(fd, socket.clone(), events.clone()));
        if let Some(interceptor) = &interceptor {
            let fd = readable(interceptor)?;
            tokio::spawn(watch_interceptor(fd, events.clone()));
        }
        for address in [IpAddr::V4([0; 4].into()), IpAddr::V6([0; 16].into())] {
            let listener = listen(SocketAddr::new(address, tcp_port))
                .with_context(|| format!("cannot listen on TCP {}", SocketAddr::new(address, tcp_port)))?;
            tokio::spawn(accept(listener, events.clone()));
        }
        let routes = Routes::open().context("the routing table cannot be asked")?;
        let addresses = routes.addresses()?;
        let monitor = RouteMonitor::open()?;
        let connections = BTreeMap::new();
        Ok(SignalIo { socket, interceptor, send_router_alert, routes, addresses, monitor, connections, events })
    }

    /// Returns the node's own addresses if they may have changed since the last call.
    pub fn changed_addresses(&mut self) -> Option<Vec<IpAddr>> {
        if !self.monitor.changed() {
            return None;
        }
        self.addresses = self.routes.addresses().ok()?;
        Some(self.addresses())
    }

    /// Returns the node's own addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.all().iter().map(|local| local.address).collect()
    }

    /// Returns the node's address toward a destination.
    pub fn source_for(&self, destination: IpAddr) -> Option<IpAddr> {
        self.routes.source_for(destination).ok().flatten().map(|(local, _)| local)
    }

    /// Takes what was intercepted since the last call, in order of arrival.
    pub fn intercepted(&mut self) -> Vec<Intercepted> {
        let mut packets = Vec::new();
        let Some(interceptor) = &mut self.interceptor else { return packets };
        loop {
            match interceptor.receive(&mut packets) {
                Ok(0) => return packets,
                Ok(_) if packets.len() >= INTERCEPTED_BATCH => {
                    // There may be more; a full queue of events means that the loop comes by anyway.
                    let _ = self.events.try_send(Event::Intercepted);
                    return packets;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "the interceptor failed; Queries pass unseen");
                    return packets;
                }
            }
        }
    }

    /// Gives one input to the engine and does what it says of intercepted datagrams.
    pub fn handle(&mut self, now: Now, input: SignalInput, engine: &mut Engine) {
        let now = now.instant;
        match input {
            SignalInput::Intercepted(packet) => {
                let local = self.address_on(packet.interface.0, packet.destination);
                let disposition = engine.handle_datagram(now, view_of_intercepted(&packet, local));
                self.release(packet.id, disposition);
            }
            SignalInput::Datagram(datagram) => {
                // A datagram for the node itself is never forwarded.
                engine.handle_datagram(now, view_of_datagram(&datagram));
            }
            SignalInput::Unreachable { destination } => engine.handle_unreachable(now, destination),
            SignalInput::Accepted { local, peer, stream } => {
                let association = engine.handle_accepted(now, local, peer);
                self.attach(association, stream);
            }
            SignalInput::Connected { association } => engine.handle_connected(now, association),
            SignalInput::Bytes { association, bytes } => engine.handle_stream(now, association, &bytes),
            SignalInput::Closed { association, error } => {
                self.connections.remove(&association);
                engine.handle_closed(now, association, error);
            }
        }
    }

    /// Carries out what the engine wants to be sent.
    pub fn transmit(&mut self, transmit: Transmit) {
        match transmit {
            Transmit::QMode { local, destination, ttl, rao, payload } => {
                let rao = rao.filter(|_| self.send_router_alert);
                if let Err(error) = self.socket.send_q_mode(local, destination, ttl, rao, &payload) {
                    tracing::debug!(%error, %destination, "a Query could not be sent");
                }
            }
            Transmit::Datagram { local, peer, payload } => {
                if let Err(error) = self.socket.send_datagram(local, peer, &payload) {
                    tracing::debug!(%error, %peer, "a datagram could not be sent");
                }
            }
            Transmit::Connect { association, local, peer } => {
                let (writes, queue) = mpsc::channel(WRITES_MAX);
                self.connections.insert(association, writes);
                tokio::spawn(connect(association, local, peer, queue, self.events.clone()));
            }
            Transmit::Stream { association, bytes } => self.write(association, Write::Bytes(bytes)),
            Transmit::Close { association } => {
                self.write(association, Write::Close);
                self.connections.remove(&association);
            }
        }
    }

    /// Takes the interception rule away.
    pub fn stop(&mut self) {
        self.interceptor = None;
        self.connections.clear();
    }

    /// Returns the node's address on an interface, of the version of `like`.
    fn address_on(&self, interface: u32, like: IpAddr) -> IpAddr {
        let found = self.addresses.on(netserv_dataplane::InterfaceId(interface), like.is_ipv6());
        found.unwrap_or(if like.is_ipv4() { [0_u8; 4].into() } else { [0_u8; 16].into() })
    }

    fn attach(&mut self, association: AssociationId, stream: TcpStream) {
        let (writes, queue) = mpsc::channel(WRITES_MAX);
        self.connections.insert(association, writes);
        tokio::spawn(carry(association, stream, queue, self.events.clone()));
    }

    fn write(&mut self, association: AssociationId, write: Write) {
        let Some(connection) = self.connections.get(&association) else { return };
        if connection.try_send(write).is_err() {
            // Dropping the sender ends the connection's task, which reports the end.
            tracing::debug!(association = association.0, "a peer reads too slowly; its connection is closed");
            self.connections.remove(&association);
        }
    }

    fn release(&mut self, packet: PacketId, disposition: Disposition) {
        let Some(interceptor) = &mut self.interceptor else { return };
        let result = match disposition {
            Disposition::Consumed => interceptor.drop(packet),
            Disposition::Forward { payload: None } => interceptor.accept(packet),
            Disposition::Forward { payload: Some(payload) } => interceptor.accept_modified(packet, &payload),
        };
        if let Err(error) = result {
            tracing::debug!(%error, "an intercepted datagram could not be released");
        }
    }
}

fn view_of_intercepted(packet: &Intercepted, local: IpAddr) -> Datagram<'_> {
    Datagram {
        interface: InterfaceId(packet.interface.0),
        local,
        source: packet.source,
        destination: packet.destination,
        destination_is_local: false,
        ttl: packet.ttl,
        q_mode_interceptable: true,
        payload: packet.payload(),
    }
}

fn view_of_datagram(datagram: &OwnedDatagram) -> Datagram<'_> {
    Datagram {
        interface: datagram.interface,
        local: datagram.local,
        source: datagram.source,
        destination: datagram.destination,
        destination_is_local: true,
        ttl: datagram.ttl,
        q_mode_interceptable: true,
        payload: &datagram.payload,
    }
}

async fn read_datagrams(fd: AsyncFd<OwnedFd>, socket: Arc<SignalSocket>, events: mpsc::Sender<Event>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        ready.clear_ready();
        loop {
            let input = match socket.receive() {
                Ok(Some(received)) => input(received),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the signaling socket failed");
                    break;
                }
            };
            let Some(input) = input else { continue };
            if events.send(Event::Signal(input)).await.is_err() {
                return;
            }
        }
    }
}

fn input(received: Received) -> Option<SignalInput> {
    match received {
        Received::Datagram { interface, local, source, destination, ttl, payload } => {
            let interface = InterfaceId(interface.0);
            let datagram = OwnedDatagram { interface, local, source, destination, ttl, payload };
            Some(SignalInput::Datagram(Box::new(datagram)))
        }
        Received::Unreachable { destination, kind, reporter, .. } => match kind {
            UnreachableKind::Port
            | UnreachableKind::Protocol
            | UnreachableKind::Host
            | UnreachableKind::Network
            | UnreachableKind::Prohibited => Some(SignalInput::Unreachable { destination: destination.ip() }),
            UnreachableKind::TooBig | UnreachableKind::TimeExceeded | UnreachableKind::Other => {
                tracing::debug!(%destination, ?kind, ?reporter, "an ICMP error that says nothing about the last node");
                None
            }
        },
    }
}

async fn watch_interceptor(fd: AsyncFd<OwnedFd>, events: mpsc::Sender<Event>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        ready.clear_ready();
        if events.send(Event::Intercepted).await.is_err() {
            return;
        }
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
    }
    socket.bind(address)?;
    socket.listen(1024)
}

async fn accept(listener: TcpListener, events: mpsc::Sender<Event>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Ok(local) = stream.local_addr().map(|local| local.ip()) else { continue };
                if events.send(Event::Signal(SignalInput::Accepted { local, peer, stream })).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // Out of descriptors, most likely: others must end first.
                tracing::warn!(%error, "a signaling connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connect(
    association: AssociationId,
    local: IpAddr,
    peer: SocketAddr,
    queue: mpsc::Receiver<Write>,
    events: mpsc::Sender<Event>,
) {
    let opened = async {
        let socket = if peer.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.bind(SocketAddr::new(local, 0))?;
        socket.connect(peer).await
    };
    let input = match opened.await {
        Ok(stream) => {
            let connected = Event::Signal(SignalInput::Connected { association });
            if events.send(connected).await.is_ok() {
                carry(association, stream, queue, events).await;
            }
            return;
        }
        Err(error) => SignalInput::Closed { association, error: Some(error.to_string()) },
    };
    // The control loop may have ended.
    let _ = events.send(Event::Signal(input)).await;
}

/// Reads and writes one connection until either side ends it.
async fn carry(
    association: AssociationId,
    stream: TcpStream,
    queue: mpsc::Receiver<Write>,
    events: mpsc::Sender<Event>,
) {
    // Triggers must not wait to be bundled (RFC 5971 §5.4.1).
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    let ended = tokio::select! {
        ended = read_all(association, reader, &events) => ended,
        ended = write_all(writer, queue) => ended,
    };
    let error = ended.err().map(|error| error.to_string());
    // The control loop may have ended.
    let _ = events.send(Event::Signal(SignalInput::Closed { association, error })).await;
}

async fn read_all(
    association: AssociationId,
    mut reader: OwnedReadHalf,
    events: &mpsc::Sender<Event>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let bytes = buffer[..length].to_vec();
        if events.send(Event::Signal(SignalInput::Bytes { association, bytes })).await.is_err() {
            return Ok(());
        }
    }
}

async fn write_all(mut writer: OwnedWriteHalf, mut queue: mpsc::Receiver<Write>) -> std::io::Result<()> {
    while let Some(write) = queue.recv().await {
        match write {
            Write::Bytes(bytes) => writer.write_all(&bytes).await?,
            Write::Close => break,
        }
    }
    writer.shutdown().await
}
