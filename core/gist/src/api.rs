// SPDX-License-Identifier: Apache-2.0
//! What goes into the engine and what comes out of it, besides events: calls, datagrams, transmits, configuration.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::Mri;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::peering::{Peering, QueryDecision, QueryId};

/// The NSLP's own name for one message, handed back in [`crate::Event::MessageStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageHandle(pub u64);

/// An opaque name for one signaling peer at one of its addresses (RFC 5971 §4.1.1, "SII-handle").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiiHandle(pub u64);

impl SiiHandle {
    /// Returns the handle of a node, numbered from 1 on, at one of its addresses; of node 0, the handle that names nobody.
    pub const fn new(node: u32, address: u32) -> SiiHandle {
        SiiHandle((node as u64) << 32 | address as u64)
    }

    /// Returns whether two handles are of one node, which is somebody.
    pub fn is_node_of(self, other: SiiHandle) -> bool {
        self.0 >> 32 == other.0 >> 32 && self.0 >> 32 != 0
    }
}

/// One messaging association (MA), so one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AssociationId(pub u64);

/// The kernel's index of a network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InterfaceId(pub u32);

/// Addresses of one IP version whose first bits are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// One of them.
    pub address: IpAddr,
    /// How many bits are the same: at most 32 of IPv4, 128 of IPv6.
    pub bits: u8,
}

impl Prefix {
    /// Returns whether all addresses that have the first bits of this one are in the prefix.
    pub fn covers(&self, address: IpAddr, bits: u8) -> bool {
        let (own, other, width) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (u128::from(own.to_bits()), u128::from(other.to_bits()), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        // Of 128 bits none is left to compare after a shift by all of them.
        let differing = (own ^ other).checked_shr(u32::from(width - self.bits.min(width))).unwrap_or(0);
        bits >= self.bits && differing == 0
    }
}

/// How a message is to be carried, or was carried (RFC 5971 §4.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferAttributes {
    /// Exactly once and in order, or not at all.
    pub reliable: bool,
    /// Protected on the way to the peer.
    pub secure: bool,
    /// To a peer inside of the operator's domain, or not at all.
    pub inside: bool,
}

/// Which routing state a message needs (RFC 5971 §4.3.3, §5.8.1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateUse {
    /// Downstream a Query makes it; upstream it is there already, since the peer made it.
    #[default]
    Needed,
    /// A Query makes it in either direction. Upstream that finds a peer only if none but a router without GIST is between,
    /// and gives way to state that a downstream Query makes.
    Queried,
    /// The sender wants none for the answer: without state a message that need be neither reliable nor secure and fits a
    /// datagram goes by itself in Q-mode, and nobody can say whether it arrived. Any other is treated as [`StateUse::Needed`].
    NotNeeded,
}

/// What an NSLP may ask of one message beside its attributes (RFC 5971 appendix B.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendOptions {
    /// The routing state that it needs.
    pub state: StateUse,
    /// Of messages that wait for one route or connection the greater priority goes first; equal ones go in order.
    pub priority: u8,
    /// The TTL of its datagrams, and of downstream Queries that it starts; without it, the system's. Not 0, and of no
    /// meaning over a connection.
    pub ip_ttl: Option<u8>,
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

/// About which flows a peer may speak: the first rule that a flow fits says so, and where there are rules, no other flow is
/// for it. Without rules, about all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowScope(pub Vec<FlowRule>);

/// One rule of a [`FlowScope`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRule {
    /// The peer may speak about them; otherwise it may not.
    pub allow: bool,
    /// The flows whose source or destination lies in one of these; all, if there are none.
    pub prefixes: Vec<Prefix>,
}

impl FlowScope {
    /// Returns whether the peer may speak about a flow, in either direction.
    pub fn allows(&self, mri: &Mri) -> bool {
        let rule = self.0.iter().find(|rule| rule.fits(mri));
        rule.map_or(self.0.is_empty(), |rule| rule.allow)
    }
}

impl FlowRule {
    fn fits(&self, mri: &Mri) -> bool {
        let ends = match mri {
            Mri::PathCoupled(flow) => {
                [(flow.source(), flow.source_prefix()), (flow.destination(), flow.destination_prefix())]
            }
            Mri::LooseEnd(flow) => [flow.source(), flow.destination()].map(|address| (address, u8::MAX)),
            Mri::Other(_) => return self.prefixes.is_empty(),
        };
        let lies_in = |prefix: &Prefix| ends.iter().any(|(address, bits)| prefix.covers(*address, *bits));
        self.prefixes.is_empty() || self.prefixes.iter().any(lies_in)
    }
}

/// Whether associations are protected by TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsPolicy {
    /// Never; what asks for protection is refused.
    #[default]
    Off,
    /// With peers that offer it, and with no others where a message asks for it.
    Offered,
    /// Always: no message goes another way, and none that came another way counts as validated.
    Required,
}

/// What an NSLP asks of GIST (RFC 5971 appendix B).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiCall {
    /// Sends one NSLP message to the next peer in the direction of the MRI.
    SendMessage {
        /// Named in the message's status.
        handle: MessageHandle,
        /// The sending NSLP.
        nslp_id: u16,
        /// The session.
        session: SessionId,
        /// The flow and the direction. Upstream needs routing state that the peer made before.
        mri: Mri,
        /// What is wanted at least.
        attributes: TransferAttributes,
        /// A certain peer, which need not be the next one any more. A message that need not be reliable goes there past the
        /// routing state also if it is the next one.
        sii: Option<SiiHandle>,
        /// How long the message may wait for a handshake or a connection.
        timeout: Duration,
        /// The payload, at most [`limits::DATA_BYTES_MAX`]; it is padded with zeros to whole words on the wire.
        data: Vec<u8>,
        /// GIST hops that the message may still travel; an NSLP that relays passes on what it received.
        hops: Option<u8>,
        /// What else is asked of it.
        options: SendOptions,
    },
    /// Takes a message back that still waits for a handshake, a connection or its turn; its status is then
    /// [`FailReason::Cancelled`](crate::FailReason::Cancelled). What can go at once goes within `SendMessage` and cannot be
    /// taken back.
    AbortMessage {
        /// The NSLP that sent it.
        nslp_id: u16,
        /// The session of the message.
        session: SessionId,
        /// The flow and direction of the message.
        mri: Mri,
        /// The message.
        handle: MessageHandle,
    },
    /// Says how long routing state shall live without messages; zero gives it up.
    SetStateLifetime {
        /// The calling NSLP.
        nslp_id: u16,
        /// The session; `None` for all.
        session: Option<SessionId>,
        /// The flow and the direction; `None` for all.
        mri: Option<Mri>,
        /// The lifetime; zero gives the state up at once.
        lifetime: Duration,
    },
    /// Says that the peer in the direction of the MRI may be the wrong one.
    InvalidateRoutingState {
        /// The NSLP whose messages go there; `None` for all.
        nslp_id: Option<u16>,
        /// The session; `None` for all.
        session: Option<SessionId>,
        /// The flow and the direction.
        mri: Mri,
        /// The state must not be used before a new handshake; otherwise it is only checked.
        bad: bool,
        /// What the Queries of the next handshake say to the NSLP that they find, at most
        /// [`limits::HANDSHAKE_DATA_BYTES_MAX`]: unprotected, and perhaps more than once.
        data: Option<Vec<u8>>,
    },
    /// Says what becomes of a Query that [`Event::RecvMessage`](crate::Event::RecvMessage) asked about (RFC 5971 B.2).
    AnswerQuery {
        /// The NSLP that was asked.
        nslp_id: u16,
        /// The Query.
        query: QueryId,
        /// What becomes of it.
        decision: QueryDecision,
    },
    /// Says which Queries the node becomes the peer of, from here on.
    SetPeering {
        /// The NSLP that decides.
        nslp_id: u16,
        /// At most [`limits::PEER_RULES_MAX`] rules.
        peering: Peering,
    },
}

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
    /// [`limits::DECISION_TIME`].
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

/// What a responding node does with a Query (RFC 5971 §6.4; `gist-digest` §15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ResponderPolicy {
    /// Keeps nothing until a Confirm brings a valid responder cookie.
    #[default]
    Delayed,
    /// Keeps state for a Query that wants no connection, without any Confirm. Only for walled gardens: a forged Query
    /// then makes state.
    Immediate,
}

/// A token bucket's size and speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Tokens per second.
    pub per_second: u32,
    /// Tokens that can be saved up.
    pub burst: u32,
}

/// How an engine behaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The node's identity toward its peers: opaque, the same on all interfaces, new at each start.
    /// 1 to [`limits::PEER_IDENTITY_BYTES_MAX`] bytes.
    pub peer_identity: Vec<u8>,
    /// The NSLPs on this node, each with its value of the Router Alert Option.
    pub hosted: BTreeMap<u16, u16>,
    /// Which Queries the node becomes the peer of, for NSLPs that do not want all of theirs.
    #[serde(default)]
    pub peering: BTreeMap<u16, Peering>,
    /// The TCP port where the node accepts connections of peers.
    pub tcp_port: u16,
    /// Whether associations are protected. Fixed, so that the echo in a Confirm can be checked without keeping anything.
    pub tls: TlsPolicy,
    /// The TCP port where the node accepts connections of peers that speak TLS; of use unless `tls` is off.
    pub tls_port: u16,
    /// What becomes of a Query.
    pub policy: ResponderPolicy,
    /// The GIST hop count of messages whose NSLP gives none.
    pub hops: u8,
    /// Time to the first retransmission of a Query, T1; it doubles with each.
    pub retry_initial: Duration,
    /// How long a Query that never had an answer is retransmitted until the node counts as the last one.
    pub query_budget: Duration,
    /// How long a Query is retransmitted toward a peer that has answered before.
    pub refresh_budget: Duration,
    /// How long routing state toward this node is valid without a refresh at least, RS-validity-time.
    pub validity: Duration,
    /// Queries a second that refresh all of it: the validity grows with the rows, so that there are not more
    /// (RFC 5971 §4.4.4).
    pub refreshes_per_second: u32,
    /// How long this node keeps a connection on which it hears nothing, MA-Hold-Time.
    pub hold_time: Duration,
    /// How long the querying side keeps state without NSLP messages.
    pub inactivity: Duration,
    /// How long a connection may take to open, and an accepted one to show a valid first message.
    pub connect_timeout: Duration,
    /// How long the answer to a requested MA-Hello may take.
    pub hello_timeout: Duration,
    /// How long one secret of the responder cookie is used; it is accepted for as long again.
    pub secret_lifetime: Duration,
    /// The longest GIST message in D-mode.
    pub datagram_bytes_max: usize,
    /// Bounds datagrams that this node makes.
    pub send_rate: RateLimit,
    /// Bounds Queries that this node answers.
    pub query_rate: RateLimit,
    /// Bounds datagrams to addresses in one network (24 bits of IPv4, 64 of IPv6) that nobody has proven: those without a
    /// host keep the kernel waiting for neighbours, of which it has a bounded number.
    pub unproven_rate: RateLimit,
    /// Bounds Errors that this node sends by datagram, to addresses that anybody may have made up.
    pub error_rate: RateLimit,
    /// Whether peers are told of their errors.
    pub send_errors: bool,
    /// Rows in the routing table.
    pub routes_max: usize,
    /// Rows in the routing table that the Confirms of one site's peers can make: 24 bits of IPv4, 56 of IPv6.
    pub routes_per_site_max: usize,
    /// Messaging associations.
    pub associations_max: usize,
    /// Messaging associations that one peer can open.
    pub associations_per_peer_max: usize,
}

impl Config {
    /// Returns the defaults for a node of this identity: no NSLP, no TCP port of use.
    pub fn new(peer_identity: Vec<u8>) -> Config {
        Config {
            peer_identity,
            hosted: BTreeMap::new(),
            peering: BTreeMap::new(),
            tcp_port: limits::TCP_PORT_DEFAULT,
            tls: TlsPolicy::Off,
            tls_port: limits::TLS_PORT_DEFAULT,
            policy: ResponderPolicy::Delayed,
            hops: 32,
            retry_initial: Duration::from_millis(500),
            query_budget: Duration::from_secs(2),
            refresh_budget: Duration::from_millis(7500),
            validity: Duration::from_secs(30),
            refreshes_per_second: limits::REFRESHES_PER_SECOND,
            hold_time: Duration::from_secs(30),
            inactivity: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(5),
            hello_timeout: Duration::from_secs(5),
            secret_lifetime: Duration::from_secs(300),
            datagram_bytes_max: 512,
            send_rate: RateLimit { per_second: 100_000, burst: 20_000 },
            query_rate: RateLimit { per_second: 50_000, burst: 10_000 },
            unproven_rate: RateLimit { per_second: 100, burst: 200 },
            error_rate: RateLimit { per_second: 100, burst: 100 },
            send_errors: true,
            routes_max: limits::ROUTES_MAX,
            routes_per_site_max: limits::ROUTES_MAX / 2,
            associations_max: limits::ASSOCIATIONS_MAX,
            associations_per_peer_max: limits::ASSOCIATIONS_PER_PEER_MAX,
        }
    }
}
