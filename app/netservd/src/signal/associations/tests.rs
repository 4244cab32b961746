// SPDX-License-Identifier: Apache-2.0
//! Connections over loopback: whom they end with, how they send, and what becomes of peers that read slowly.

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
        let Event::Signal(SignalInput::Accepted { channel, connection, .. }) = server.next().await else { panic!() };
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

/// Goal: a peer that reads slowly gets all there is, in order, and keeps its connection, however long that takes; it is told
/// what went. Method: its kernel and this one's hold far less than what is sent.
#[tokio::test]
async fn a_peer_that_reads_slowly_gets_all_and_keeps_its_connection() {
    const BYTES: usize = 4 << 20;
    let mut client = Plain::start();
    client.associations.patience.stall = Duration::from_millis(400);
    let (near, far) = small_pair().await;
    client.associations.attach(AssociationId(1), HERE, Connection::Plain(near));
    let sent: Vec<u8> = (0..BYTES).map(|n| u8::try_from(n / 7 % 251).unwrap()).collect();
    sent.chunks(16_000).for_each(|chunk| client.associations.send(AssociationId(1), chunk.to_vec()));
    let begun = std::time::Instant::now();
    let reader = tokio::spawn(async move {
        let (mut far, mut got) = (far, Vec::new());
        let mut buffer = vec![0; 128 * 1024];
        while got.len() < BYTES {
            tokio::time::sleep(Duration::from_millis(25)).await;
            let length = far.read(&mut buffer).await.unwrap();
            assert!(length > 0, "it is cut after {} bytes", got.len());
            got.extend_from_slice(&buffer[..length]);
        }
        (far, got)
    });
    let mut told = 0;
    while told + STREAM_REPORT_BYTES <= BYTES {
        let Event::Signal(SignalInput::Written { bytes, .. }) = client.next().await else { panic!("after {told}") };
        assert!((STREAM_REPORT_BYTES..STREAM_REPORT_BYTES + 16_000).contains(&bytes), "{bytes}");
        told += bytes;
    }
    let (_far, got) = reader.await.unwrap();
    assert!(got == sent, "the bytes are others");
    assert!(begun.elapsed() > Duration::from_millis(400), "the peer was not slow");
}

/// Goal: a peer that takes nothing for a time loses its connection, with the reason, and not before; also over TLS.
#[tokio::test]
async fn a_peer_that_never_reads_is_cut_after_the_time_and_not_before() {
    let mut client = Plain::start();
    client.associations.patience.stall = Duration::from_millis(400);
    let (near, _far) = small_pair().await;
    client.associations.attach(AssociationId(1), HERE, Connection::Plain(near));
    let begun = std::time::Instant::now();
    (0..300).for_each(|_| client.associations.send(AssociationId(1), vec![7; 16_000]));
    loop {
        let Event::Signal(input) = client.next().await else { panic!("it ended otherwise") };
        if let SignalInput::Closed { error: Some(why), .. } = &input {
            assert!(why.contains("took no byte for 400ms"), "{why}");
            break;
        }
        assert!(matches!(input, SignalInput::Written { .. }));
    }
    assert!(begun.elapsed() >= Duration::from_millis(400));

    let (mut client, mut server) = (End::start("n1"), End::start("n2"));
    for end in [&mut client, &mut server] {
        end.associations.patience.stall = Duration::from_millis(400);
    }
    client.trust("n1", &["n2.example.net"]);
    server.trust("n2", &["n1.example.net"]);
    client.associations.connect(AssociationId(1), HERE, SocketAddr::new(HERE, server.port), true);
    let Event::Signal(SignalInput::Accepted { connection, .. }) = server.next().await else { panic!() };
    let Event::Signal(SignalInput::Connected { .. }) = client.next().await else { panic!() };
    // Whoever holds the connection does not read.
    (0..1000).for_each(|_| client.associations.send(AssociationId(1), vec![7; 16_000]));
    let why = loop {
        if let Event::Signal(SignalInput::Closed { error, .. }) = client.next().await {
            break error.unwrap_or_default();
        }
    };
    assert!(why.contains("took no byte for 400ms"), "{why}");
    drop(connection);
}

/// Goal: a connection that is to be closed sends what is left, but not for ever.
#[tokio::test]
async fn a_connection_that_is_closed_does_not_linger() {
    let mut client = Plain::start();
    client.associations.patience = Patience { stall: Duration::from_secs(60), close: Duration::from_millis(300) };
    let (near, _far) = small_pair().await;
    client.associations.attach(AssociationId(1), HERE, Connection::Plain(near));
    (0..300).for_each(|_| client.associations.send(AssociationId(1), vec![7; 16_000]));
    client.associations.close(AssociationId(1));
    loop {
        if let Event::Signal(SignalInput::Closed { error: Some(why), .. }) = client.next().await {
            assert!(why.contains("took too long"), "{why}");
            break;
        }
    }
}

/// Returns both ends of a connection whose kernels hold little.
async fn small_pair() -> (TcpStream, TcpStream) {
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_recv_buffer_size(16 * 1024).unwrap();
    listener.bind((HERE, 0).into()).unwrap();
    let listener = listener.listen(1).unwrap();
    let near = TcpSocket::new_v4().unwrap();
    near.set_send_buffer_size(16 * 1024).unwrap();
    let near = near.connect(listener.local_addr().unwrap()).await.unwrap();
    (near, listener.accept().await.unwrap().0)
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
        tokio::time::timeout(Duration::from_secs(60), self.inbox.recv()).await.expect("something happens").unwrap()
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
        tokio::time::timeout(Duration::from_secs(60), self.inbox.recv()).await.expect("something happens").unwrap()
    }
}
