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
use ipnet::IpNet;
use netserv_netlink::routes::LocalAddresses;
use netserv_node::gist::{AssociationId, Audience, Disposition, IcmpError, IcmpKind, InterfaceId, Transmit};
use netserv_node::{Input, OwnedDatagram, Token};
use netserv_plane::{DriverError, PacketId};
use netserv_signal::{
    Intercepted, Interceptor, InterceptorCounters, QModeHeader, SendCounters, SignalKind, SignalSocket,
};
use tokio::sync::mpsc;

use crate::config::tls::Credentials;
use crate::event::{Connection, Event, SignalInput};
use crate::inbox::SignalingWays;
use crate::readable::readable;
use crate::tls::{HandshakeEnd, Tls};
use associations::Associations;
pub use associations::Ports;
use interceptor::Passing;

/// Headers of IP and UDP without options.
const V4_HEADER_BYTES: usize = 28;
const V6_HEADER_BYTES: usize = 48;

/// Which Queries carry the Router Alert Option (RFC 5971 §5.3.2).
pub struct RouterAlert {
    /// Whether any do.
    pub is_on: bool,
    /// Those toward these addresses do not.
    pub except: Vec<IpNet>,
}

impl RouterAlert {
    fn goes_to(&self, destination: IpAddr) -> bool {
        self.is_on && !self.except.iter().any(|prefix| prefix.contains(&destination))
    }
}

/// The node's signaling sockets.
pub struct SignalIo {
    socket: Arc<SignalSocket>,
    router_alert: RouterAlert,
    passing: Passing,
    addresses: LocalAddresses,
    associations: Associations,
    datagrams: mpsc::Sender<Event>,
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
        router_alert: RouterAlert,
        addresses: LocalAddresses,
        ways: SignalingWays<Event>,
    ) -> Result<SignalIo> {
        let socket = Arc::new(socket);
        let fd = readable(&*socket)?;
        let SignalingWays { datagrams, connections: of_connections, intercepted } = ways;
        tokio::spawn(datagrams::read(fd, socket.clone(), datagrams.clone()));
        let passing = Passing::start(interceptor, intercepted)?;
        let associations = Associations::listen(ports, of_connections)?;
        let (connections, packets, next_token) = (BTreeMap::new(), BTreeMap::new(), 0);
        Ok(SignalIo {
            socket,
            router_alert,
            passing,
            addresses,
            associations,
            datagrams,
            connections,
            packets,
            next_token,
        })
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
            SignalInput::Written { association, bytes } => Input::Written(association, bytes),
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
                let rao = rao.filter(|_| self.router_alert.goes_to(destination));
                let header = QModeHeader { ttl, rao, dscp, flow_label };
                if let Err(error) = self.socket.send_q_mode(local, destination, header, &payload) {
                    self.tell_length(&error, destination, &payload);
                    tracing::debug!(%error, %destination, "a Query could not be sent");
                }
            }
            Transmit::Datagram { audience, local, peer, ttl, payload } => {
                let kind = match audience {
                    Audience::Peer => SignalKind::Peer,
                    Audience::Querier => SignalKind::Response,
                    Audience::Offender | Audience::BehindNat => SignalKind::Error,
                };
                let mut sent = self.socket.send_datagram_with_ttl(kind, local, peer, ttl, &payload);
                if sent.is_err() && audience == Audience::BehindNat {
                    // Without the right to another source than the node's, at least NATs that let all in let it in.
                    let own = if local.is_ipv4() { [0_u8; 4].into() } else { [0_u8; 16].into() };
                    sent = self.socket.send_datagram(kind, own, peer, &payload);
                }
                if let Err(error) = sent {
                    self.tell_length(&error, peer.ip(), &payload);
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

    /// Says that a datagram is longer than the kernel sends to its destination, if that is why it failed.
    fn tell_length(&self, error: &DriverError, destination: IpAddr, payload: &[u8]) {
        if !error.is_too_long() {
            return;
        }
        // The kernel says no more than that it is less than this.
        let headers = if destination.is_ipv4() { V4_HEADER_BYTES } else { V6_HEADER_BYTES };
        let mtu = u16::try_from(headers + payload.len() - 1).unwrap_or(u16::MAX);
        let error = IcmpError { kind: IcmpKind::TooBig { mtu }, reporter: None, quoted: payload.to_vec() };
        // Where there is no room, the next datagram says so again.
        let _ = self.datagrams.try_send(Event::Signal(SignalInput::Icmp(Box::new(error))));
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

    /// Returns how many datagrams for the node were lost, since more came than were read.
    pub fn unread(&self) -> u64 {
        self.socket.lost()
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
    fn reached_by(&self, interface: netserv_plane::InterfaceId, like: IpAddr) -> IpAddr {
        let found = self.addresses.reached_by(interface, like.is_ipv6());
        found.unwrap_or(if like.is_ipv4() { [0_u8; 4].into() } else { [0_u8; 16].into() })
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn router_alert_is_left_out_by_prefix_and_ip_version() {
        let check = |is_on: bool, except: &[&str], expected: [bool; 4]| {
            let alert = RouterAlert { is_on, except: except.iter().map(|prefix| prefix.parse().unwrap()).collect() };
            let to = |address: &str| alert.goes_to(address.parse().unwrap());
            assert_eq!(["10.0.0.1", "10.1.0.1", "fd00::1", "2001:db8::1"].map(to), expected, "{except:?}");
        };
        check(true, &[], [true; 4]);
        check(true, &["10.1.0.0/16", "fd00::/8"], [true, false, false, true]);
        check(true, &["0.0.0.0/0"], [false, false, true, true]);
        check(true, &["::/0"], [true, true, false, false]);
        check(false, &[], [false; 4]);
    }
}
