// SPDX-License-Identifier: Apache-2.0
//! Messaging associations on the wire: TCP connections with peers, with TLS or without.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use netserv_node::gist::{AssociationId, Channel};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsStream;
use tokio_rustls::rustls::pki_types::{ServerName, UnixTime};

use super::accepting;
use crate::event::{Connection, Event, Shown, SignalInput};
use crate::limits::TLS_HANDSHAKE_TIME_MAX;
use crate::tls::{HandshakeEnd, Side, Tls, Verifier, explain};

/// Writes waiting for one connection; a peer that reads too slowly for this many loses the connection.
pub const WRITES_MAX: usize = 256;
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
    writes: mpsc::Sender<Write>,
    /// Ends it at once, for a reason.
    cut: Option<oneshot::Sender<String>>,
    /// What the peer showed, if TLS is spoken.
    shown: Option<Box<Shown>>,
}

/// What a connection's task takes from the control loop.
struct Orders {
    queue: mpsc::Receiver<Write>,
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
        Ok(Associations { connections: BTreeMap::new(), events, secure })
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
        let (writes, queue) = mpsc::channel(WRITES_MAX);
        let (sender, cut) = oneshot::channel();
        self.connections.insert(association, Handle { peer, writes, cut: Some(sender), shown });
        Orders { queue, cut }
    }

    fn write(&mut self, association: AssociationId, write: Write) {
        let Some(connection) = self.connections.get(&association) else { return };
        if connection.writes.try_send(write).is_err() {
            // Dropping the sender ends the connection's task, which reports the end.
            tracing::debug!(association = association.0, "a peer reads too slowly; its connection is closed");
            self.connections.remove(&association);
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
) -> Result<(TlsStream<TcpStream>, Channel, Box<Shown>), String> {
    let trust = tls.trust();
    let verifier = Verifier::new(trust.clone(), peer);
    let handshake = async {
        let connector = verifier.connector().map_err(std::io::Error::other)?;
        connector.connect(ServerName::from(peer), stream).await
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
    // Triggers must not wait to be bundled (RFC 5971 §5.4.1).
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    let ended = carry(association, reader, writer, orders, &events).await;
    tell_end(association, ended.err().map(|error| error.to_string()), &events).await;
}

async fn carry_tls(
    association: AssociationId,
    peer: IpAddr,
    stream: TlsStream<TcpStream>,
    tls: Arc<Tls>,
    orders: Orders,
    events: mpsc::Sender<Event>,
) {
    let _ = stream.get_ref().0.set_nodelay(true);
    let (reader, writer) = tokio::io::split(stream);
    let ended = carry(association, reader, writer, orders, &events).await;
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
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    Orders { queue, cut }: Orders,
    events: &mpsc::Sender<Event>,
) -> std::io::Result<()> {
    let cut = async {
        match cut.await {
            Ok(why) => why,
            // Nobody can cut it any more; what is written still goes out.
            Err(_) => pending().await,
        }
    };
    let both = async {
        tokio::select! {
            ended = read_all(association, reader, events) => ended,
            ended = write_all(writer, queue) => ended,
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

async fn write_all(mut writer: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Write>) -> std::io::Result<()> {
    while let Some(write) = queue.recv().await {
        match write {
            Write::Bytes(bytes) => {
                writer.write_all(&bytes).await?;
                writer.flush().await?;
            }
            Write::Close => break,
        }
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netserv_node::gist::FlowScope;

    use super::*;
    use crate::config::tls::Credentials;

    /// Method: two ends over loopback; each end in turn gets a list that the other is not on.
    #[tokio::test]
    async fn a_peer_that_is_none_any_more_loses_its_connection_whoever_opened_it() {
        for side in [Side::Client, Side::Server] {
            let (mut client, mut server) = (End::start("n1"), End::start("n2"));
            let at = SocketAddr::new(HERE, server.port);
            client.associations.connect(AssociationId(1), HERE, at, true);
            let Event::Signal(SignalInput::Accepted { channel, connection, .. }) = server.next().await else {
                panic!()
            };
            assert_eq!(channel, Channel::Tls { peer: Some("n1.example.net".to_owned()), flows: FlowScope::default() });
            server.associations.attach(AssociationId(7), HERE, connection);
            let Event::Signal(SignalInput::Connected { channel, shown, .. }) = client.next().await else { panic!() };
            assert_eq!(channel, Channel::Tls { peer: Some("n2.example.net".to_owned()), flows: FlowScope::default() });
            client.associations.showed(AssociationId(1), shown.unwrap());
            client.associations.send(AssociationId(1), b"hello".to_vec());
            let Event::Signal(SignalInput::Bytes { bytes, .. }) = server.next().await else { panic!() };
            assert_eq!(bytes, b"hello");

            let (judge, association) =
                if side == Side::Client { (&mut server, AssociationId(7)) } else { (&mut client, AssociationId(1)) };
            judge.trust("n1", &["*.example.net"]);
            judge.associations.send(association, b"still there".to_vec());
            judge.trust("n1", &["n3.example.net"]);
            judge.associations.send(association, b"for its eyes only".to_vec());
            let ended = judge.next().await;
            let Event::Signal(SignalInput::Closed { error: Some(why), .. }) = ended else { panic!() };
            assert!(why.contains("signaling.tls.peers"), "{why}");
            let other = if side == Side::Client { &mut client } else { &mut server };
            // What was written before may still come.
            while let Event::Signal(SignalInput::Bytes { bytes, .. }) = other.next().await {
                assert_eq!(bytes, b"still there");
            }
        }
    }

    /// Goal: a handshake that was judged by credentials of before is judged again.
    #[tokio::test]
    async fn a_peer_that_connects_during_a_reload_is_checked_by_the_new_files() {
        let (mut client, mut server) = (End::start("n1"), End::start("n2"));
        client.associations.connect(AssociationId(1), HERE, SocketAddr::new(HERE, server.port), true);
        let Event::Signal(SignalInput::Accepted { connection, .. }) = server.next().await else { panic!() };
        server.trust("n2", &["n3.example.net"]);
        server.associations.attach(AssociationId(7), HERE, connection);
        let Event::Signal(SignalInput::Closed { error: Some(why), .. }) = server.next().await else { panic!() };
        assert!(why.contains("signaling.tls.peers"), "{why}");
    }

    /// Goal: no message waits for others to be bundled with (RFC 5971 §5.4.1), whoever opened the connection. Method: a second
    /// handle on each end's socket tells how the kernel sends; and each message is in a write of its own.
    #[tokio::test]
    async fn messages_do_not_wait_to_be_bundled() {
        let (mut client, mut server) = (Plain::start(), Plain::start());
        let (near, far) = tcp_pair().await;
        let sockets = [near.try_clone().unwrap(), far.try_clone().unwrap()];
        client.associations.attach(AssociationId(1), HERE, Connection::Plain(TcpStream::from_std(near).unwrap()));
        server.associations.attach(AssociationId(7), HERE, Connection::Plain(TcpStream::from_std(far).unwrap()));
        client.associations.send(AssociationId(1), b"one".to_vec());
        let Event::Signal(SignalInput::Bytes { bytes, .. }) = server.next().await else { panic!() };
        assert_eq!(bytes, b"one");
        server.associations.send(AssociationId(7), b"two".to_vec());
        let Event::Signal(SignalInput::Bytes { bytes, .. }) = client.next().await else { panic!() };
        assert_eq!(bytes, b"two", "it does not wait for more");
        assert_eq!(sockets.map(|socket| socket.nodelay().unwrap()), [true, true]);
    }

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    async fn tcp_pair() -> (std::net::TcpStream, std::net::TcpStream) {
        let listener = tokio::net::TcpListener::bind((HERE, 0)).await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        (near.into_std().unwrap(), far.into_std().unwrap())
    }

    /// An end without TLS that accepts nothing by itself.
    struct Plain {
        associations: Associations,
        inbox: mpsc::Receiver<Event>,
    }

    impl Plain {
        fn start() -> Plain {
            let (events, inbox) = mpsc::channel(16);
            let associations = Associations::listen(Ports { plain: None, tls: None }, events).unwrap();
            Plain { associations, inbox }
        }

        async fn next(&mut self) -> Event {
            tokio::time::timeout(Duration::from_secs(10), self.inbox.recv()).await.expect("something happens").unwrap()
        }
    }

    struct End {
        associations: Associations,
        inbox: mpsc::Receiver<Event>,
        port: u16,
    }

    impl End {
        fn start(certificate: &str) -> End {
            let (events, inbox) = mpsc::channel(16);
            let free = std::net::TcpListener::bind((HERE, 0)).unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let tls = Arc::new(Tls::new(Credentials::of_vectors(certificate, &[])).unwrap());
            let associations = Associations::listen(Ports { plain: None, tls: Some((port, tls)) }, events).unwrap();
            End { associations, inbox, port }
        }

        fn trust(&mut self, certificate: &str, peers: &[&str]) {
            self.associations.tls().unwrap().set(Credentials::of_vectors(certificate, peers)).unwrap();
            self.associations.check_all_again();
        }

        async fn next(&mut self) -> Event {
            tokio::time::timeout(Duration::from_secs(10), self.inbox.recv()).await.expect("something happens").unwrap()
        }
    }
}
