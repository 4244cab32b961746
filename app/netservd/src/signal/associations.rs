// SPDX-License-Identifier: Apache-2.0
//! Messaging associations on the wire: TCP connections with peers.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_node::Ends;
use netserv_node::gist::AssociationId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use crate::event::{Event, SignalInput};

/// Writes waiting for one connection; a peer that reads too slowly for this many loses the connection.
pub const WRITES_MAX: usize = 256;
/// Bytes read from a connection at a time.
const READ_BYTES: usize = 64 * 1024;
/// The connections of messaging associations.
pub struct Associations {
    connections: BTreeMap<AssociationId, mpsc::Sender<Write>>,
    events: mpsc::Sender<Event>,
}

enum Write {
    Bytes(Vec<u8>),
    Close,
}

impl Associations {
    /// Starts to accept connections.
    ///
    /// # Errors
    /// The port is taken, or the process may not use it.
    pub fn listen(tcp_port: u16, events: mpsc::Sender<Event>) -> Result<Associations> {
        for address in [IpAddr::V4([0; 4].into()), IpAddr::V6([0; 16].into())] {
            let listener = listen(SocketAddr::new(address, tcp_port))
                .with_context(|| format!("cannot listen on TCP {}", SocketAddr::new(address, tcp_port)))?;
            tokio::spawn(accept(listener, events.clone()));
        }
        Ok(Associations { connections: BTreeMap::new(), events })
    }

    /// Opens a connection for an association.
    pub fn connect(&mut self, association: AssociationId, local: IpAddr, peer: SocketAddr) {
        let (writes, queue) = mpsc::channel(WRITES_MAX);
        self.connections.insert(association, writes);
        tokio::spawn(connect(association, local, peer, queue, self.events.clone()));
    }

    /// Sends bytes to an association's peer.
    pub fn send(&mut self, association: AssociationId, bytes: Vec<u8>) {
        self.write(association, Write::Bytes(bytes));
    }

    /// Closes an association's connection once all is sent.
    pub fn close(&mut self, association: AssociationId) {
        self.write(association, Write::Close);
        self.connections.remove(&association);
    }

    /// Takes note that an association's connection ended.
    pub fn forget(&mut self, association: AssociationId) {
        self.connections.remove(&association);
    }

    /// Closes all connections.
    pub fn clear(&mut self) {
        self.connections.clear();
    }

    /// Carries an association over a connection that is open.
    pub fn attach(&mut self, association: AssociationId, stream: TcpStream) {
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
                if events
                    .send(Event::Signal(SignalInput::Accepted { ends: Ends { local, peer }, stream }))
                    .await
                    .is_err()
                {
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
