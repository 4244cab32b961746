// SPDX-License-Identifier: Apache-2.0
//! Connections as pipes: in order and whole, late where packets get lost, or broken.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_gist::{AssociationId, Channel};
use netserv_model::Instant;
use netserv_node::{Ends, Input, Token};
use rand::RngExt;

use super::sim::{Happening, World};
use super::topology::VertexId;

/// What the first retransmission costs; it doubles with each.
const RETRANSMISSION: Duration = Duration::from_millis(300);
/// How long a connection lives on over a link that is down.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Names a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(u64);

/// One end of a connection: who opened it, or who accepted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Opener,
    Acceptor,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Opener => Side::Acceptor,
            Side::Acceptor => Side::Opener,
        }
    }
}

/// A connection, as long as one end knows it.
#[derive(Debug)]
pub(super) struct Connection {
    opener: End,
    acceptor: End,
}

#[derive(Debug)]
struct End {
    vertex: VertexId,
    address: SocketAddr,
    /// The engine's name for it, while the engine knows it.
    association: Option<AssociationId>,
    /// When what was sent to this end last arrives; nothing overtakes it.
    arrives: Instant,
}

/// Something that gets to an end of a connection.
#[derive(Debug)]
pub(super) enum Segment {
    Syn,
    SynAck,
    Refused,
    Bytes(Side, Vec<u8>),
    Fin(Side),
    Break,
}

impl Connection {
    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Opener => &mut self.opener,
            Side::Acceptor => &mut self.acceptor,
        }
    }
}

impl World {
    pub(super) fn tcp_connect(
        &mut self,
        vertex: VertexId,
        association: AssociationId,
        local: IpAddr,
        peer: SocketAddr,
    ) {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let port = u16::try_from(id.0 % 20_000).expect("below 20,000") + 40_000;
        let owner = self.topology.owner(peer.ip());
        let listens = owner.is_some_and(|owner| self.stations.contains_key(&owner)) && peer.port() == self.tcp_port;
        let end = |vertex, address, association| End { vertex, address, association, arrives: Instant::default() };
        let opener = end(vertex, SocketAddr::new(local, port), Some(association));
        let acceptor = end(owner.unwrap_or(vertex), peer, None);
        self.connections.insert(id, Connection { opener, acceptor });
        self.ends.insert((vertex, association), (id, Side::Opener));
        if listens {
            self.tcp_send(id, Side::Acceptor, Segment::Syn);
        } else {
            self.tcp_send(id, Side::Opener, Segment::Refused);
        }
    }

    pub(super) fn tcp_stream(&mut self, vertex: VertexId, association: AssociationId, bytes: &[u8]) {
        let (id, side) = self.ends[&(vertex, association)];
        // Streams keep no boundaries: what is sent at once arrives in pieces.
        let cut = self.rng.random_range(0..=bytes.len());
        for piece in [&bytes[..cut], &bytes[cut..]].into_iter().filter(|piece| !piece.is_empty()) {
            self.tcp_send(id, side.other(), Segment::Bytes(side.other(), piece.to_vec()));
        }
    }

    pub(super) fn tcp_close(&mut self, vertex: VertexId, association: AssociationId) {
        let (id, side) = self.ends.remove(&(vertex, association)).expect("an engine closes what it opened or accepted");
        let connection = self.connections.get_mut(&id).expect("ends have connections");
        connection.end(side).association = None;
        let other_knows = connection.end(side.other()).association.is_some();
        if other_knows {
            self.tcp_send(id, side.other(), Segment::Fin(side.other()));
        } else {
            self.connections.remove(&id);
        }
    }

    /// Breaks every connection of a vertex at both ends, with what is on its way.
    pub(super) fn break_connections(&mut self, vertex: VertexId) {
        let of_vertex =
            |connection: &Connection| [connection.opener.vertex, connection.acceptor.vertex].contains(&vertex);
        let ids: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, connection)| of_vertex(connection)).map(|(id, _)| *id).collect();
        for id in ids {
            self.tcp(id, Segment::Break);
        }
    }

    pub(super) fn tcp(&mut self, id: ConnectionId, segment: Segment) {
        let now = self.now.instant;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let bytes = if let Segment::Bytes(_, bytes) = &segment { &bytes[..] } else { &[] };
        let what = std::mem::discriminant(&segment);
        self.trace.note(now, &format!("{id:?} {what:?} {:?}", connection.acceptor.address), bytes);
        match segment {
            Segment::Syn => {
                let ends = Ends { local: connection.acceptor.address.ip(), peer: connection.opener.address };
                let vertex = connection.acceptor.vertex;
                self.input(vertex, Input::Accepted(Token(id.0), ends, Channel::Plain));
            }
            Segment::SynAck => {
                let Some(association) = connection.opener.association else { return };
                let vertex = connection.opener.vertex;
                self.input(vertex, Input::Connected(association, Channel::Plain));
            }
            Segment::Bytes(side, bytes) => {
                let sender = connection.end(side.other());
                if let (Some(association), vertex) = (sender.association, sender.vertex) {
                    self.input(vertex, Input::Written(association, bytes.len()));
                }
                let Some(connection) = self.connections.get_mut(&id) else { return };
                let end = connection.end(side);
                let (Some(association), vertex) = (end.association, end.vertex) else { return };
                self.input(vertex, Input::Bytes(association, bytes));
            }
            Segment::Refused => self.tcp_end(id, Side::Opener, Some("connection refused")),
            Segment::Fin(side) => self.tcp_end(id, side, None),
            Segment::Break => {
                self.tcp_end(id, Side::Opener, Some("connection reset"));
                self.tcp_end(id, Side::Acceptor, Some("connection reset"));
            }
        }
    }

    /// Takes the association that a connection was accepted for.
    pub(super) fn tcp_attach(&mut self, vertex: VertexId, token: Token, association: AssociationId) {
        let id = ConnectionId(token.0);
        let connection = self.connections.get_mut(&id).expect("it was offered just before");
        connection.acceptor.association = Some(association);
        self.ends.insert((vertex, association), (id, Side::Acceptor));
        self.tcp_send(id, Side::Opener, Segment::SynAck);
    }

    /// Tells one end that the connection is over, if it does not know yet.
    fn tcp_end(&mut self, id: ConnectionId, side: Side, error: Option<&str>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let other_knows = connection.end(side.other()).association.is_some();
        let end = connection.end(side);
        let (association, vertex) = (end.association.take(), end.vertex);
        if !other_knows {
            self.connections.remove(&id);
        }
        // A vertex that was restarted has forgotten its ends.
        let Some(association) = association.filter(|association| self.ends.remove(&(vertex, *association)).is_some())
        else {
            return;
        };
        self.input(vertex, Input::Closed(association, error.map(str::to_owned)));
    }

    fn tcp_send(&mut self, id: ConnectionId, to: Side, segment: Segment) {
        let Some(time) = self.tcp_time(id, to) else {
            return self.schedule(GIVE_UP, Happening::Tcp(id, Segment::Break));
        };
        let now = self.now.instant;
        let end = self.connections.get_mut(&id).expect("the caller has it").end(to);
        end.arrives = end.arrives.max(now + time);
        let after = end.arrives.since(now);
        self.schedule(after, Happening::Tcp(id, segment));
    }

    /// How long a segment takes, with its retransmissions; `None` over a link that is down.
    fn tcp_time(&mut self, id: ConnectionId, to: Side) -> Option<Duration> {
        let connection = self.connections.get_mut(&id).expect("the caller has it");
        let (from, to) = (connection.end(to.other()).vertex, connection.end(to).vertex);
        let mut time = Duration::ZERO;
        let mut again = RETRANSMISSION;
        for (link, _) in self.topology.path(from, to) {
            if self.links_down.contains(&link) {
                return None;
            }
            let quality = self.topology.quality(link);
            while self.rng.random_range(0..1000) < quality.loss_permille {
                time += again;
                again *= 2;
            }
            time += quality.delay + self.rng.random_range(Duration::ZERO..=quality.jitter);
        }
        Some(time)
    }
}
