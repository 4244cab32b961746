// SPDX-License-Identifier: Apache-2.0
//! Connections of peers: accepted, and with TLS spoken on them where the port is for that, before the node hears of them.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_model::share;
use netserv_node::Ends;
use netserv_node::gist::Channel;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_rustls::TlsStream;

use crate::event::{Connection, Event, Shown, SignalInput};
use crate::limits::{
    STREAM_SEND_BUFFER_BYTES, TLS_HANDSHAKE_TIME_MAX, TLS_HANDSHAKES_MAX, TLS_HANDSHAKES_PER_PEER_MAX,
};
use crate::metered::Metered;
use crate::tls::{HandshakeEnd, Side, Tls, Verifier};

/// Opens a port for both versions of IP.
///
/// # Errors
/// The port is taken, or the process may not use it.
pub fn listen(port: u16) -> Result<[TcpListener; 2]> {
    let open = |address: IpAddr| {
        let address = SocketAddr::new(address, port);
        listen_at(address).with_context(|| format!("cannot listen on TCP {address}"))
    };
    Ok([open([0_u8; 4].into())?, open([0_u8; 16].into())?])
}

fn listen_at(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Accepted connections have it from here.
    socket.set_send_buffer_size(STREAM_SEND_BUFFER_BYTES)?;
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
    }
    socket.bind(address)?;
    socket.listen(1024)
}

/// Hands over connections as they come.
pub async fn accept(listener: TcpListener, events: mpsc::Sender<Event>) {
    loop {
        let Some((stream, ends)) = next(&listener).await else { continue };
        let accepted = SignalInput::Accepted { ends, channel: Channel::Plain, connection: Connection::Plain(stream) };
        if events.send(Event::Signal(accepted)).await.is_err() {
            return;
        }
    }
}

/// Hands over connections once TLS is spoken on them.
pub async fn accept_tls(listener: TcpListener, tls: Arc<Tls>, events: mpsc::Sender<Event>) {
    let mut handshakes = Handshakes::default();
    while !events.is_closed() {
        let Some((stream, ends)) = next(&listener).await else { continue };
        if let Some(ended) = handshakes.make_room(ends.peer.ip()) {
            tls.count(HandshakeEnd::Crowded, ended, "too many handshakes are under way");
        }
        let task = tokio::spawn(greet(stream, ends, tls.clone(), events.clone()));
        handshakes.add(ends.peer.ip(), task.abort_handle());
    }
}

async fn next(listener: &TcpListener) -> Option<(TcpStream, Ends)> {
    match listener.accept().await {
        Ok((stream, peer)) => {
            let local = stream.local_addr().ok()?.ip();
            Some((stream, Ends { local, peer }))
        }
        Err(error) => {
            // Out of descriptors, most likely: others must end first.
            tracing::warn!(%error, "a signaling connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Speaks TLS with a peer that connected, and hands its connection over.
async fn greet(stream: TcpStream, ends: Ends, tls: Arc<Tls>, events: mpsc::Sender<Event>) {
    let peer = ends.peer.ip();
    let trust = tls.trust();
    let verifier = Verifier::new(trust.clone(), peer);
    let handshake = async {
        let acceptor = verifier.acceptor().map_err(std::io::Error::other)?;
        acceptor.accept(Metered::new(stream)).await
    };
    let stream = match tokio::time::timeout(TLS_HANDSHAKE_TIME_MAX, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            let (end, why) = verifier.explain(&error);
            return tls.count(end, peer, &why);
        }
        Err(_) => return tls.count(HandshakeEnd::TimedOut, peer, "the handshake took too long"),
    };
    tls.count(HandshakeEnd::Done, peer, "");
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let chain = chain.iter().map(|c| c.clone().into_owned()).collect();
    let shown = Shown { side: Side::Client, chain, trust, flows: verifier.flows() };
    let connection = Connection::Tls(Box::new(TlsStream::from(stream)), Box::new(shown));
    let accepted = SignalInput::Accepted { ends, channel: verifier.channel(), connection };
    // The control loop may have ended.
    let _ = events.send(Event::Signal(accepted)).await;
}

/// Handshakes under way, oldest first, by whose they are.
#[derive(Default)]
struct Handshakes(VecDeque<(IpAddr, AbortHandle)>);

/// Returns what a peer's handshakes are counted under: whoever has one address of an IPv6 network has all 2⁶⁴ of it.
fn whose(peer: IpAddr) -> IpAddr {
    share::network(peer, 32, 64)
}

impl Handshakes {
    /// Ends the oldest handshake if there is no room for one more: of the same peer if it has its share, else of all.
    /// Returns whose it was.
    fn make_room(&mut self, peer: IpAddr) -> Option<IpAddr> {
        let peer = whose(peer);
        self.0.retain(|(_, task)| !task.is_finished());
        let of_peer = || self.0.iter().enumerate().filter(|(_, (other, _))| *other == peer).map(|(index, _)| index);
        let index = if of_peer().count() >= TLS_HANDSHAKES_PER_PEER_MAX {
            of_peer().next()
        } else {
            (self.0.len() >= TLS_HANDSHAKES_MAX).then_some(0)
        };
        let (ended, task) = self.0.remove(index?)?;
        task.abort();
        Some(ended)
    }

    fn add(&mut self, peer: IpAddr, task: AbortHandle) {
        self.0.push_back((whose(peer), task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn handshakes_are_bounded_for_each_peer_and_in_all() {
        let mut handshakes = Handshakes::default();
        let peer = |n: usize| IpAddr::from([10, 0, n.to_be_bytes()[6], n.to_be_bytes()[7]]);
        let begin = |handshakes: &mut Handshakes, peer| {
            let ended = handshakes.make_room(peer);
            handshakes.add(peer, tokio::spawn(std::future::pending::<()>()).abort_handle());
            ended
        };
        for _ in 0..TLS_HANDSHAKES_PER_PEER_MAX {
            assert_eq!(begin(&mut handshakes, peer(0)), None);
        }
        assert_eq!(begin(&mut handshakes, peer(0)), Some(peer(0)), "it has its share");
        for n in TLS_HANDSHAKES_PER_PEER_MAX..TLS_HANDSHAKES_MAX {
            assert_eq!(begin(&mut handshakes, peer(n)), None);
        }
        assert_eq!(handshakes.0.len(), TLS_HANDSHAKES_MAX);
        assert_eq!(begin(&mut handshakes, peer(7777)), Some(peer(0)), "the oldest goes");
        for (_, task) in &handshakes.0 {
            task.abort();
        }
        while handshakes.0.iter().any(|(_, task)| !task.is_finished()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(begin(&mut handshakes, peer(0)), None);
        assert_eq!(handshakes.0.len(), 1, "what has ended takes no room");
    }
}
