// SPDX-License-Identifier: Apache-2.0
//! Datagrams and connections: what arrives, what becomes of it, and what is to be sent.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::flows::FlowScope;
use super::ids::{AssociationId, InterfaceId, QueryId};

/// One UDP datagram that arrived at the signaling port or was intercepted.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Where it arrived.
    pub interface: InterfaceId,
    /// The node's own address for those beyond that interface; unspecified if it has none that they reach.
    pub local: IpAddr,
    /// Its source.
    pub source: SocketAddr,
    /// Its IP destination.
    pub destination: IpAddr,
    /// The destination is an address of this node.
    pub destination_is_local: bool,
    /// The TTL or hop limit that it arrived with.
    pub ttl: u8,
    /// It went to UDP port 270, so it may be in Q-mode.
    pub q_mode_interceptable: bool,
    /// The UDP payload, magic number included.
    pub payload: &'a [u8],
}

/// What becomes of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The engine took it, or dropped it with a counter.
    Consumed,
    /// It goes on toward its destination; never said of a datagram for the node itself.
    Forward {
        /// The UDP payload to send on in place of the old one; `None` leaves it as it is.
        payload: Option<Vec<u8>>,
    },
    /// The NSLP was asked. [`Engine::poll_release`](crate::Engine::poll_release) says which of the above it is, within
    /// [`limits::DECISION_TIME`](crate::limits::DECISION_TIME).
    Held(QueryId),
}

/// What the engine wants to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// A datagram that any node on the path may take (RFC 5971 §5.3.2), from UDP port 270 to UDP port 270.
    QMode {
        /// The IP source.
        local: IpAddr,
        /// The IP destination, which the MRI gives.
        destination: IpAddr,
        /// The TTL to send with, if it matters.
        ttl: Option<u8>,
        /// The value of the Router Alert Option, if one is sent.
        rao: Option<u16>,
        /// The DSCP, if it matters; 6 bits.
        dscp: Option<u8>,
        /// The flow label of IPv6, if it matters; 20 bits.
        flow_label: Option<u32>,
        /// The UDP payload, magic number included.
        payload: Vec<u8>,
    },
    /// A datagram in normal D-mode (RFC 5971 §5.3.1), from UDP port 270.
    Datagram {
        /// Whom it is for: what is sent to some must not keep others from being served.
        audience: Audience,
        /// The IP source.
        local: IpAddr,
        /// The peer.
        peer: SocketAddr,
        /// The TTL to send with, if it matters.
        ttl: Option<u8>,
        /// The UDP payload, magic number included.
        payload: Vec<u8>,
    },
    /// Opens a TCP connection; answered by `handle_connected` or `handle_closed`.
    Connect {
        /// The association that the connection is for.
        association: AssociationId,
        /// The address to connect from.
        local: IpAddr,
        /// The peer.
        peer: SocketAddr,
        /// TLS is spoken over it, with this node as the client, before it counts as open.
        tls: bool,
    },
    /// Appends bytes to a connection.
    Stream {
        /// The association.
        association: AssociationId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Closes a connection after what was appended has been sent. The engine has forgotten the association already.
    Close {
        /// The association.
        association: AssociationId,
    },
}

/// Whom a datagram in normal D-mode is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// A peer that has proven its address.
    Peer,
    /// Who sent a Query, at the address that it names; nobody need be there.
    Querier,
    /// Who sent something wrong, at the address that it names or came from; nobody need be there.
    Offender,
    /// Who sent a Query through a NAT that does not know GIST, at the address that it came from; nobody need be there. The IP
    /// source is not this node's: it is where the Query went (RFC 5971 §7.2).
    BehindNat,
}

/// How a connection is carried, and whom it was shown to lead to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// TCP as it is: anybody may be at the other end.
    Plain,
    /// TLS over TCP (RFC 5971 §5.7.3).
    Tls {
        /// The name in the peer's certificate by which it is authorised; nothing if it showed no certificate, which only
        /// who connects may leave out.
        peer: Option<String>,
        /// What flows the peer may speak about.
        flows: FlowScope,
    },
}
