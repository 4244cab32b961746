// SPDX-License-Identifier: Apache-2.0
//! Messaging associations on the wire: TCP connections with peers, with TLS or without.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use netserv_node::gist::limits::STREAM_REPORT_BYTES;
use netserv_node::gist::{AssociationId, Channel};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsStream;
use tokio_rustls::rustls::pki_types::{ServerName, UnixTime};

use super::accepting;
use crate::event::{Connection, Event, Shown, SignalInput};
use crate::limits::{STREAM_CLOSE_TIME_MAX, STREAM_SEND_BUFFER_BYTES, STREAM_STALL_TIME, TLS_HANDSHAKE_TIME_MAX};
use crate::metered::{Metered, Progress};
use crate::tls::{HandshakeEnd, Side, Tls, Verifier, explain};

/// Bytes read from a connection at a time.
const READ_BYTES: usize = 64 * 1024;

/// Where peers connect.
pub struct Ports {
    /// The port without TLS, if there is one.
    pub plain: Option<u16>,
    /// The port with TLS, if there is TLS.
    pub tls: Option<(u16, Arc<Tls>)>,
}

/// The connections of messaging associations.
pub struct Associations {
    connections: BTreeMap<AssociationId, Handle>,
    events: mpsc::Sender<Event>,
    secure: Option<Secure>,
    patience: Patience,
}

/// How long a connection may take.
#[derive(Clone, Copy)]
struct Patience {
    /// To take a byte.
    stall: Duration,
    /// To send the rest once it is to be closed.
    close: Duration,
}

/// TLS, and the thread that does its arithmetic: the control loop has no time for it.
struct Secure {
    tls: Arc<Tls>,
    /// Nothing once it is told to end.
    runtime: Option<Runtime>,
}

/// One connection as the control loop sees it.
struct Handle {
    peer: IpAddr,
    /// GIST bounds what is in it, by what [`SignalInput::Written`] tells.
    writes: mpsc::UnboundedSender<Write>,
    /// Ends it at once, for a reason.
    cut: Option<oneshot::Sender<String>>,
    /// What the peer showed, if TLS is spoken.
    shown: Option<Box<Shown>>,
}

/// What a connection's task takes from the control loop.
struct Orders {
    queue: mpsc::UnboundedReceiver<Write>,
    patience: Patience,
    cut: oneshot::Receiver<String>,
}

enum Write {
    Bytes(Vec<u8>),
    Close,
}

impl Associations {
    /// Starts to accept connections.
    ///
    /// # Errors
    /// A port is taken, or the process may not use it.
    pub fn listen(ports: Ports, events: mpsc::Sender<Event>) -> Result<Associations> {
        if let Some(port) = ports.plain {
            for listener in accepting::listen(port)? {
                tokio::spawn(accepting::accept(listener, events.clone()));
            }
        }
        let secure = ports.tls.map(|(port, tls)| Secure::start(port, tls, &events)).transpose()?;
        let patience = Patience { stall: STREAM_STALL_TIME, close: STREAM_CLOSE_TIME_MAX };
        Ok(Associations { connections: BTreeMap::new(), events, secure, patience })
    }

    /// Opens a connection for an association.
    pub fn connect(&mut self, association: AssociationId, local: IpAddr, peer: SocketAddr, tls: bool) {
        let orders = self.insert(association, peer.ip(), None);
        let events = self.events.clone();
        let Some(secure) = self.secure.as_ref().filter(|_| tls) else {
            tokio::spawn(connect(association, local, peer, None, orders, events));
            return;
        };
        secure.spawn(connect(association, local, peer, Some(secure.tls.clone()), orders, events));
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
    pub fn attach(&mut self, association: AssociationId, peer: IpAddr, connection: Connection) {
        match connection {
            Connection::Plain(stream) => {
                let orders = self.insert(association, peer, None);
                tokio::spawn(carry_plain(association, stream, orders, self.events.clone()));
            }
            Connection::Tls(stream, shown) => {
                let orders = self.insert(association, peer, Some(shown));
                let Some(secure) = &self.secure else { return };
                secure.spawn(carry_tls(association, peer, *stream, secure.tls.clone(), orders, self.events.clone()));
                self.check_again(association);
            }
        }
    }

    /// Takes what the peer of an association showed that TLS was opened for.
    pub fn showed(&mut self, association: AssociationId, shown: Box<Shown>) {
        if let Some(handle) = self.connections.get_mut(&association) {
            handle.shown = Some(shown);
            self.check_again(association);
        }
    }

    /// Returns TLS, if there is.
    pub fn tls(&self) -> Option<&Tls> {
        self.secure.as_ref().map(|secure| &*secure.tls)
    }

    /// Checks all peers anew, by the credentials of this moment, and ends the connections of those that fail.
    pub fn check_all_again(&mut self) {
        let all: Vec<AssociationId> = self.connections.keys().copied().collect();
        all.into_iter().for_each(|association| self.check_again(association));
    }

    /// Checks a peer anew if the credentials changed since, and ends the connection if it fails.
    fn check_again(&mut self, association: AssociationId) {
        let Some(secure) = &self.secure else { return };
        let Some(handle) = self.connections.get_mut(&association) else { return };
        let Some(shown) = handle.shown.as_mut() else { return };
        let trust = secure.tls.trust();
        if Arc::ptr_eq(&trust, &shown.trust) || shown.chain.is_empty() {
            return;
        }
        let now = UnixTime::since_unix_epoch(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default());
        match trust.vouch(shown.side, &shown.chain, handle.peer, now) {
            Ok(found) if found.flows == shown.flows => shown.trust = trust,
            Ok(_) => {
                // It connects again, and is taken by the new rules.
                let why = "signaling.tls.peers has it for other flows than before".to_owned();
                let _ = handle.cut.take().map(|cut| cut.send(why));
            }
            Err(why) => {
                tracing::warn!(peer = %handle.peer, why, "a signaling peer is none any more; its connection is closed");
                // The connection may have ended.
                let _ = handle.cut.take().map(|cut| cut.send(why));
            }
        }
    }

    fn insert(&mut self, association: AssociationId, peer: IpAddr, shown: Option<Box<Shown>>) -> Orders {
        let (writes, queue) = mpsc::unbounded_channel();
        let (sender, cut) = oneshot::channel();
        self.connections.insert(association, Handle { peer, writes, cut: Some(sender), shown });
        Orders { queue, cut, patience: self.patience }
    }

    fn write(&mut self, association: AssociationId, write: Write) {
        if let Some(connection) = self.connections.get(&association) {
            // A connection that has ended says so by itself.
            let _ = connection.writes.send(write);
        }
    }
}

impl Secure {
    fn start(port: u16, tls: Arc<Tls>, events: &mpsc::Sender<Event>) -> Result<Secure> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("signal-tls").enable_all().build();
        let runtime = runtime.context("thread for TLS with signaling peers")?;
        let listeners = {
            let _inside = runtime.enter();
            accepting::listen(port)?
        };
        for listener in listeners {
            runtime.spawn(accepting::accept_tls(listener, tls.clone(), events.clone()));
        }
        Ok(Secure { tls, runtime: Some(runtime) })
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }
}

impl Drop for Secure {
    /// A runtime must not be waited for inside another.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn connect(
    association: AssociationId,
    local: IpAddr,
    peer: SocketAddr,
    tls: Option<Arc<Tls>>,
    orders: Orders,
    events: mpsc::Sender<Event>,
) {
    let opened = async {
        let socket = if peer.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_send_buffer_size(STREAM_SEND_BUFFER_BYTES)?;
        socket.bind(SocketAddr::new(local, 0))?;
        socket.connect(peer).await
    };
    let failed = |error: String| SignalInput::Closed { association, error: Some(error) };
    let input = match (opened.await, tls) {
        (Ok(stream), None) => {
            let connected = SignalInput::Connected { association, channel: Channel::Plain, shown: None };
            if events.send(Event::Signal(connected)).await.is_ok() {
                carry_plain(association, stream, orders, events).await;
            }
            return;
        }
        (Ok(stream), Some(tls)) => match greet(stream, peer.ip(), &tls).await {
            Ok((stream, channel, shown)) => {
                let connected = SignalInput::Connected { association, channel, shown: Some(shown) };
                if events.send(Event::Signal(connected)).await.is_ok() {
                    carry_tls(association, peer.ip(), stream, tls, orders, events).await;
                }
                return;
            }
            Err(error) => failed(error),
        },
        (Err(error), _) => failed(error.to_string()),
    };
    // The control loop may have ended.
    let _ = events.send(Event::Signal(input)).await;
}

/// Speaks TLS with a peer that accepted a connection; returns who it is.
async fn greet(
    stream: TcpStream,
    peer: IpAddr,
    tls: &Tls,
) -> Result<(TlsStream<Metered>, Channel, Box<Shown>), String> {
    let trust = tls.trust();
    let verifier = Verifier::new(trust.clone(), peer);
    let handshake = async {
        let connector = verifier.connector().map_err(std::io::Error::other)?;
        connector.connect(ServerName::from(peer), Metered::new(stream)).await
    };
    let failed = match tokio::time::timeout(TLS_HANDSHAKE_TIME_MAX, handshake).await {
        Ok(Ok(stream)) => {
            tls.count(HandshakeEnd::Done, peer, "");
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
            let shown = Shown { side: Side::Server, chain, trust, flows: verifier.flows() };
            return Ok((TlsStream::from(stream), verifier.channel(), Box::new(shown)));
        }
        Ok(Err(error)) => verifier.explain(&error),
        Err(_) => (HandshakeEnd::TimedOut, "the handshake took too long".to_owned()),
    };
    let (end, why) = failed;
    tls.count(end, peer, &why);
    Err(why)
}

async fn carry_plain(association: AssociationId, stream: TcpStream, orders: Orders, events: mpsc::Sender<Event>) {
    let stream = Metered::new(stream);
    stream.set_nodelay();
    let progress = stream.progress();
    let ended = carry(association, stream, progress, orders, &events).await;
    tell_end(association, ended.err().map(|error| error.to_string()), &events).await;
}

async fn carry_tls(
    association: AssociationId,
    peer: IpAddr,
    stream: TlsStream<Metered>,
    tls: Arc<Tls>,
    orders: Orders,
    events: mpsc::Sender<Event>,
) {
    stream.get_ref().0.set_nodelay();
    let progress = stream.get_ref().0.progress();
    let ended = carry(association, stream, progress, orders, &events).await;
    let error = ended.err().map(|error| {
        // In TLS 1.3, who connected hears only after the handshake whether it is believed.
        let (end, why) = explain(&error);
        if end == HandshakeEnd::RefusedByPeer {
            tls.count(end, peer, &why);
        }
        why
    });
    tell_end(association, error, &events).await;
}

async fn tell_end(association: AssociationId, error: Option<String>, events: &mpsc::Sender<Event>) {
    // The control loop may have ended.
    let _ = events.send(Event::Signal(SignalInput::Closed { association, error })).await;
}

/// Reads and writes one connection until either side ends it.
async fn carry(
    association: AssociationId,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    progress: Progress,
    Orders { queue, patience, cut }: Orders,
    events: &mpsc::Sender<Event>,
) -> std::io::Result<()> {
    let cut = async {
        match cut.await {
            Ok(why) => why,
            // Nobody can cut it any more; what is written still goes out.
            Err(_) => {
                tokio::time::sleep(patience.close).await;
                "what was left to be sent took too long".to_owned()
            }
        }
    };
    let (reader, writer) = tokio::io::split(stream);
    let outgoing = Outgoing { association, events, progress, stall: patience.stall };
    let both = async {
        tokio::select! {
            ended = read_all(association, reader, events) => ended,
            ended = outgoing.write_all(writer, queue) => ended,
        }
    };
    tokio::select! {
        biased;
        why = cut => Err(std::io::Error::other(why)),
        ended = both => ended,
    }
}

async fn read_all(
    association: AssociationId,
    mut reader: impl AsyncRead + Unpin,
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

/// The way out of one connection.
struct Outgoing<'a> {
    association: AssociationId,
    events: &'a mpsc::Sender<Event>,
    progress: Progress,
    stall: Duration,
}

impl Outgoing<'_> {
    async fn write_all(
        &self,
        mut writer: impl AsyncWrite + Unpin,
        mut queue: mpsc::UnboundedReceiver<Write>,
    ) -> std::io::Result<()> {
        let mut untold = 0;
        while let Some(Write::Bytes(bytes)) = queue.recv().await {
            let write = async {
                writer.write_all(&bytes).await?;
                writer.flush().await
            };
            tokio::select! {
                biased;
                written = write => written?,
                () = self.progress.stalled(self.stall) => {
                    let why = format!("the peer took no byte for {:?}", self.stall);
                    tracing::warn!(association = self.association.0, why, "a signaling connection is cut");
                    return Err(std::io::Error::other(why));
                }
            }
            untold += bytes.len();
            if untold >= STREAM_REPORT_BYTES {
                let written = SignalInput::Written { association: self.association, bytes: untold };
                if self.events.send(Event::Signal(written)).await.is_err() {
                    return Ok(());
                }
                untold = 0;
            }
        }
        writer.shutdown().await
    }
}

#[cfg(test)]
mod tests;
