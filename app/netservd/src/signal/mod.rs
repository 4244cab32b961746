// SPDX-License-Identifier: Apache-2.0
//! Signaling on the wire: UDP port 270, intercepted Queries, TCP connections of messaging associations.
//!
//! Tasks read and write; what they read becomes an input of the node, which says what to send. Connections and
//! intercepted datagrams that the node has not decided about are held here under a token.

mod accepting;
mod associations;
mod datagrams;
mod interceptor;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use netserv_dataplane::PacketId;
use netserv_dataplane::signal::{
    Intercepted, Interceptor, InterceptorCounters, LocalAddresses, QModeHeader, SendCounters, SignalKind, SignalSocket,
};
use netserv_node::gist::{AssociationId, Audience, Disposition, InterfaceId, Transmit};
use netserv_node::{Input, OwnedDatagram, Token};
use tokio::sync::mpsc;

use crate::config::tls::Credentials;
use crate::event::{Connection, Event, SignalInput};
use crate::readable::readable;
use crate::tls::{HandshakeEnd, Tls};
use associations::Associations;
pub use associations::Ports;
use interceptor::Passing;

/// The node's signaling sockets.
pub struct SignalIo {
    socket: Arc<SignalSocket>,
    send_router_alert: bool,
    passing: Passing,
    addresses: LocalAddresses,
    associations: Associations,
    /// What the node decides about as soon as it has the input.
    connections: BTreeMap<Token, (IpAddr, Connection)>,
    packets: BTreeMap<Token, PacketId>,
    next_token: u64,
}

impl SignalIo {
    /// Starts reading from the signaling socket, the interceptor and the TCP port.
    ///
    /// # Errors
    /// A port is taken, or the process may not use it.
    pub fn start(
        socket: SignalSocket,
        interceptor: Option<Interceptor>,
        ports: Ports,
        send_router_alert: bool,
        addresses: LocalAddresses,
        events: mpsc::Sender<Event>,
    ) -> Result<SignalIo> {
        let socket = Arc::new(socket);
        let fd = readable(&*socket)?;
        tokio::spawn(datagrams::read(fd, socket.clone(), events.clone()));
        let passing = Passing::start(interceptor, events.clone())?;
        let associations = Associations::listen(ports, events)?;
        let (connections, packets, next_token) = (BTreeMap::new(), BTreeMap::new(), 0);
        Ok(SignalIo { socket, send_router_alert, passing, addresses, associations, connections, packets, next_token })
    }

    /// Returns the node's own addresses.
    pub fn addresses(&self) -> &LocalAddresses {
        &self.addresses
    }

    /// Takes the node's own addresses after a change.
    pub fn set_addresses(&mut self, addresses: LocalAddresses) {
        self.addresses = addresses;
    }

    /// Takes what was intercepted since the last call, in order of arrival.
    pub fn intercepted(&mut self) -> Vec<Intercepted> {
        self.passing.take()
    }

    /// Returns what arrived as an input of the node, and holds what cannot be in one.
    pub fn input(&mut self, input: SignalInput) -> Input {
        match input {
            SignalInput::Intercepted(packet) => {
                let token = self.token();
                self.packets.insert(token, packet.id);
                Input::Intercepted(token, Box::new(self.datagram(&packet)))
            }
            SignalInput::Datagram(datagram) => Input::Datagram(datagram),
            SignalInput::Icmp(error) => Input::Icmp(error),
            SignalInput::Accepted { ends, channel, connection } => {
                let token = self.token();
                self.connections.insert(token, (ends.peer.ip(), connection));
                Input::Accepted(token, ends, channel)
            }
            SignalInput::Connected { association, channel, shown } => {
                if let Some(shown) = shown {
                    self.associations.showed(association, shown);
                }
                Input::Connected(association, channel)
            }
            SignalInput::Bytes { association, bytes } => Input::Bytes(association, bytes),
            SignalInput::Closed { association, error } => {
                self.associations.forget(association);
                Input::Closed(association, error)
            }
        }
    }

    /// Carries out what the node wants to be sent.
    pub fn transmit(&mut self, transmit: Transmit) {
        match transmit {
            Transmit::QMode { local, destination, ttl, rao, dscp, flow_label, payload } => {
                let rao = rao.filter(|_| self.send_router_alert);
                let header = QModeHeader { ttl, rao, dscp, flow_label };
                if let Err(error) = self.socket.send_q_mode(local, destination, header, &payload) {
                    tracing::debug!(%error, %destination, "a Query could not be sent");
                }
            }
            Transmit::Datagram { audience, local, peer, payload } => {
                let kind = match audience {
                    Audience::Peer => SignalKind::Peer,
                    Audience::Querier => SignalKind::Response,
                    Audience::Offender => SignalKind::Error,
                };
                if let Err(error) = self.socket.send_datagram(kind, local, peer, &payload) {
                    tracing::debug!(%error, %peer, "a datagram could not be sent");
                }
            }
            Transmit::Connect { association, local, peer, tls } => {
                self.associations.connect(association, local, peer, tls);
            }
            Transmit::Stream { association, bytes } => self.associations.send(association, bytes),
            Transmit::Close { association } => self.associations.close(association),
        }
    }

    /// Carries an association over the connection that is held under a token.
    pub fn attach(&mut self, token: Token, association: AssociationId) {
        if let Some((peer, connection)) = self.connections.remove(&token) {
            self.associations.attach(association, peer, connection);
        }
    }

    /// Does with the datagram that is held under a token what the node says.
    pub fn release(&mut self, token: Token, disposition: Disposition) {
        if let Some(packet) = self.packets.remove(&token) {
            self.passing.release(packet, disposition);
        }
    }

    /// Returns what became of the node's own datagrams.
    pub fn send_counters(&self) -> BTreeMap<SignalKind, SendCounters> {
        self.socket.send_counters()
    }

    /// Returns what became of TLS handshakes with peers; nothing without TLS.
    pub fn handshakes(&self) -> Vec<(HandshakeEnd, u64)> {
        self.associations.tls().into_iter().flat_map(Tls::ends).collect()
    }

    /// Takes other credentials for TLS, if there is TLS, and ends the connections of peers that are none by them.
    ///
    /// # Errors
    /// They are of no use; all stays as it was.
    pub fn set_credentials(&mut self, credentials: Credentials) -> Result<()> {
        if let Some(tls) = self.associations.tls() {
            tls.set(credentials)?;
            tls.warn_of_own();
            self.associations.check_all_again();
        }
        Ok(())
    }

    /// Returns what became of datagrams for others.
    pub fn interceptor_counters(&self) -> InterceptorCounters {
        self.passing.counters()
    }

    /// Takes the interception rule away.
    pub fn stop(&mut self) {
        self.passing.stop();
        self.associations.clear();
    }

    fn datagram(&self, packet: &Intercepted) -> OwnedDatagram {
        OwnedDatagram {
            interface: InterfaceId(packet.interface.0),
            local: self.reached_by(packet.interface, packet.destination),
            source: packet.source,
            destination: packet.destination,
            ttl: packet.ttl,
            payload: packet.payload().to_vec(),
        }
    }

    /// Returns an address by which somebody beyond an interface reaches the node, of the version of `like`; unspecified if
    /// there is none.
    fn reached_by(&self, interface: netserv_dataplane::InterfaceId, like: IpAddr) -> IpAddr {
        let found = self.addresses.reached_by(interface, like.is_ipv6());
        found.unwrap_or(if like.is_ipv4() { [0_u8; 4].into() } else { [0_u8; 16].into() })
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }
}
