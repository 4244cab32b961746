// SPDX-License-Identifier: Apache-2.0
//! Datagrams on their way: forwarding, interception, loss, and the ICMP errors of end systems.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_gist::{Disposition, IcmpError, IcmpKind, InterfaceId, Transmit};
use netserv_node::{Input, OwnedDatagram, Token};
use netserv_wire::gist::UDP_PORT;
use rand::RngExt;

use super::sim::{Happening, World};
use super::topology::{Kind, LinkId, VertexId};

const TTL: u8 = 64;

/// A packet of the world; all of them have to do with signaling.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    source: SocketAddr,
    destination: IpAddr,
    ttl: u8,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// UDP to port 270.
    Signal(Vec<u8>),
    /// ICMP: nobody listens where this payload went.
    Unreachable(Vec<u8>),
}

impl World {
    pub(super) fn transmit(&mut self, vertex: VertexId, transmit: Transmit) {
        match transmit {
            Transmit::QMode { local, destination, ttl, payload, .. } => {
                let source = SocketAddr::new(local, UDP_PORT);
                self.last_query = Some((vertex, payload.clone()));
                let packet = Packet { source, destination, ttl: ttl.unwrap_or(TTL), content: Content::Signal(payload) };
                self.route(vertex, packet);
            }
            Transmit::Datagram { local, peer, payload, .. } => {
                let (source, destination) = (SocketAddr::new(local, UDP_PORT), peer.ip());
                assert_eq!(peer.port(), UDP_PORT, "every station of the world uses port 270");
                self.route(vertex, Packet { source, destination, ttl: TTL, content: Content::Signal(payload) });
            }
            Transmit::Connect { association, local, peer, .. } => self.tcp_connect(vertex, association, local, peer),
            Transmit::Stream { association, bytes } => self.tcp_stream(vertex, association, &bytes),
            Transmit::Close { association } => self.tcp_close(vertex, association),
        }
    }

    pub(super) fn arrive(&mut self, vertex: VertexId, link: LinkId, packet: Packet) {
        let is_local = self.topology.owner(packet.destination) == Some(vertex);
        let kind = self.topology.kind(vertex);
        self.note("arrives", vertex, &packet);
        if !is_local && !kind.forwards() {
            return;
        }
        match (&packet.content, kind) {
            (Content::Signal(_), Kind::Node | Kind::NetServHost) => self.intercept(vertex, link, packet, is_local),
            (Content::Signal(payload), Kind::Host | Kind::Router) if is_local => {
                let (destination, content) = (packet.source.ip(), Content::Unreachable(payload.clone()));
                let source = SocketAddr::new(packet.destination, 0);
                self.route(vertex, Packet { source, destination, ttl: TTL, content });
            }
            (Content::Unreachable(quoted), Kind::Node | Kind::NetServHost) if is_local => {
                let (reporter, quoted) = (Some(packet.source.ip()), quoted.clone());
                self.input(vertex, Input::Icmp(Box::new(IcmpError { kind: IcmpKind::Port, reporter, quoted })));
            }
            (Content::Signal(_) | Content::Unreachable(_), _) if is_local => {}
            (Content::Signal(_) | Content::Unreachable(_), _) => self.forward(vertex, packet),
        }
    }

    /// Shows a signal to the node, which takes it or lets it go on.
    fn intercept(&mut self, vertex: VertexId, link: LinkId, packet: Packet, is_local: bool) {
        let Content::Signal(payload) = &packet.content else { return };
        let datagram = Box::new(OwnedDatagram {
            interface: InterfaceId(u32::try_from(link.0).expect("a world has fewer links") + 1),
            local: self.topology.address(vertex, link),
            source: packet.source,
            destination: packet.destination,
            ttl: packet.ttl,
            payload: payload.clone(),
        });
        if is_local {
            return self.input(vertex, Input::Datagram(datagram));
        }
        let token = Token(self.next_token);
        self.next_token += 1;
        self.held.insert(token, (vertex, packet));
        self.input(vertex, Input::Intercepted(token, datagram));
        assert!(!self.held.contains_key(&token), "{token:?} is never released");
    }

    /// Lets go of a datagram that a node has looked at.
    pub(super) fn release(&mut self, vertex: VertexId, token: Token, disposition: Disposition) {
        let (held_by, mut packet) = self.held.remove(&token).expect("a datagram is released once");
        assert_eq!(held_by, vertex);
        match disposition {
            Disposition::Consumed => {}
            Disposition::Held(query) => unreachable!("{query:?} of {vertex:?}: a node releases what is decided"),
            Disposition::Forward { payload } => {
                if let Some(payload) = payload {
                    packet.content = Content::Signal(payload);
                }
                self.forward(vertex, packet);
            }
        }
    }

    fn forward(&mut self, vertex: VertexId, mut packet: Packet) {
        packet.ttl = packet.ttl.saturating_sub(1);
        if packet.ttl > 0 {
            self.route(vertex, packet);
        }
    }

    /// Puts a packet on the link toward its destination; there it may get lost.
    fn route(&mut self, vertex: VertexId, packet: Packet) {
        let link = self.topology.owner(packet.destination).and_then(|owner| self.topology.next_link(vertex, owner));
        let Some(link) = link else { return self.note("has no route for", vertex, &packet) };
        let quality = self.topology.quality(link);
        if self.links_down.contains(&link) || self.rng.random_range(0..1000) < quality.loss_permille {
            return self.note("loses", vertex, &packet);
        }
        let time = quality.delay + self.rng.random_range(Duration::ZERO..=quality.jitter);
        self.schedule(time, Happening::Arrive(self.topology.across(vertex, link), link, packet));
    }

    fn note(&mut self, what: &str, vertex: VertexId, packet: &Packet) {
        let (kind, bytes) = match &packet.content {
            Content::Signal(bytes) => ("signal", &bytes[..]),
            Content::Unreachable(quoted) => ("unreachable", &quoted[..]),
        };
        let text = format!("{vertex:?} {what} {kind} {} > {}", packet.source, packet.destination);
        self.trace.note(self.now.instant, &text, bytes);
    }
}
