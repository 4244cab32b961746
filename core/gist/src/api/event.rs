// SPDX-License-Identifier: Apache-2.0
//! What the engine tells the layer above.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::{DecodeError, Mri};

use super::call::TransferAttributes;
use super::icmp::IcmpKind;
use super::ids::{AssociationId, InterfaceId, MessageHandle, QueryId, SiiHandle};

/// Something that an NSLP or the operator wants to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A peer's NSLP message.
    RecvMessage {
        /// The NSLP that it is for.
        nslp_id: u16,
        /// The session.
        session: SessionId,
        /// The flow, and the direction in which the message travels: answers go to `mri.inverted()`.
        mri: Mri,
        /// The payload, padded by its sender to whole words.
        data: Vec<u8>,
        /// The peer that sent it.
        sii: SiiHandle,
        /// That peer's address.
        peer: IpAddr,
        /// The peer that it says it is from, if that is known: it has answered before, and need not have sent this.
        claims: Option<SiiHandle>,
        /// This node's address toward that peer.
        local: IpAddr,
        /// Where it arrived; zero for messages over a connection.
        interface: InterfaceId,
        /// IP hops to the peer, if known: 0 if no router lies between.
        ip_distance: Option<u8>,
        /// How it was carried.
        attributes: TransferAttributes,
        /// The sender has answered at its address, and is the peer that routing state names. An NSLP must not make
        /// state for a message of which this is false.
        validated: bool,
        /// The name in the sender's certificate, if it came over TLS and showed one.
        peer_name: Option<String>,
        /// The connection that it came over, if it came over one.
        association: Option<AssociationId>,
        /// GIST hops left.
        hops: u8,
        /// What else is known of its way here.
        provenance: Provenance,
        /// It is a Query, perhaps with empty data, and the NSLP has to say what becomes of it
        /// ([`ApiCall::AnswerQuery`](crate::ApiCall::AnswerQuery), RFC 5971's "routing state check").
        query: Option<QueryId>,
    },
    /// What became of a message that the NSLP sent. Each message has exactly one.
    MessageStatus {
        /// The NSLP that sent it.
        nslp_id: u16,
        /// The NSLP's name for the message.
        handle: MessageHandle,
        /// What became of it.
        status: SendStatus,
        /// How it was carried, if it was sent: at least as well as the NSLP asked for.
        carriage: Option<Carriage>,
    },
    /// Something about a route that has or had state.
    NetworkNotification {
        /// The NSLP of the route.
        nslp_id: u16,
        /// The session of the route.
        session: SessionId,
        /// The flow, and the direction toward the peer.
        mri: Mri,
        /// What happened.
        kind: Notification,
    },
    /// Bytes that are no GIST message. Also counted.
    Malformed {
        /// Who sent them, if known.
        from: Option<SocketAddr>,
        /// What is wrong with them.
        error: DecodeError,
    },
}

/// What is known of a message's way to this node (RFC 5971 appendix B.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The TTL or hop limit that it arrived with; nothing over a connection.
    pub ip_ttl: Option<u8>,
    /// Its sender routed it explicitly, past its routing state.
    pub explicit: bool,
    /// Its sender is the end of the flow that it comes from: the flow's source downstream, the destination upstream.
    pub from_flow_end: bool,
    /// The handshake's Query was on its way to the flow's destination, which shows that this node is on the flow's path. A downstream
    /// Query that was sent elsewhere, as to this node itself, shows nothing.
    pub along_flow: bool,
    /// There is routing state toward its sender, so that an answer needs no handshake.
    pub way_back: bool,
    /// How long the last Query to its sender and the Response took, that node's work included; nothing if this node did not
    /// query it. A copy of the Query that was lost does not count.
    pub rtt: Option<Duration>,
}

/// How a message was carried (RFC 5971 appendix B.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Carriage {
    /// The attributes that it had.
    pub attributes: TransferAttributes,
    /// The mode.
    pub mode: Mode,
}

/// A mode of carriage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// A connection to the peer (C-mode).
    Connection,
    /// A datagram to the peer (normal D-mode).
    Datagram,
    /// A datagram along the flow, to whoever takes it (Q-mode).
    QMode,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SendStatus {
    /// It is on its way to the peer.
    Sent,
    /// There is no next peer: this node is the last one on the path.
    NoPeer(NoPeerReason),
    /// There may be a peer, but the message did not go there.
    Failed(FailReason),
}

/// How the node knows that it is the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoPeerReason {
    /// No node answered the Query, so that there may be some.
    Timeout,
    /// No node answered, and somebody says what hinders Queries, so that there may be nodes further on.
    Hindered {
        /// What is said.
        kind: IcmpKind,
        /// By whom.
        reporter: IpAddr,
    },
    /// The Query reached the flow's endpoint, which answered with an ICMP error that brings it back.
    Unreachable,
    /// The Query reached the flow's endpoint, which speaks GIST but not this NSLP.
    EndpointFound,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailReason {
    /// The NSLP's timeout ran out while the message waited for a connection or for its turn.
    Timeout,
    /// The connection could not be opened, or broke.
    Association,
    /// The message needs a connection, and the peer offers no stack that will do.
    NoStack,
    /// The message needs a connection, and there can be none: the peer takes none, or this node has as many as it may have.
    NoConnection,
    /// The message need not be reliable, is too long for a datagram, and the peer takes no connection.
    TooLong,
    /// The message needs a connection, which only the peer could open, and it has not.
    NoAssociation,
    /// The message needs a connection, and the one that there is has too much to write already.
    Congested,
    /// The node sent too many datagrams lately.
    RateLimited,
    /// The peer refused the handshake with this GIST error.
    Rejected {
        /// The error's code (RFC 5971 appendix A.4.4).
        code: u16,
        /// The error's subcode.
        subcode: u8,
    },
    /// The peer is outside of the domain, and the message is not to leave it.
    Outside,
    /// The NSLP gave the message or its route up while it waited.
    Cancelled,
}

impl FailReason {
    /// Returns it for people, to follow on "since".
    pub fn text(self) -> String {
        match self {
            FailReason::Timeout => "its time ran out".to_owned(),
            FailReason::Association => "the connection could not be opened, or broke".to_owned(),
            FailReason::NoStack => {
                "the next node offers no connection that will do; one of the two may want TLS that the other lacks"
                    .to_owned()
            }
            FailReason::NoConnection => {
                "the next node takes no connections, or this one has as many as it may have".to_owned()
            }
            FailReason::TooLong => {
                "the next node takes no connections, and the message is too long for a datagram".to_owned()
            }
            FailReason::NoAssociation => "the next node has not opened the connection that it takes".to_owned(),
            FailReason::Congested => "the next node reads too slowly".to_owned(),
            FailReason::RateLimited => "this node has sent too many datagrams lately".to_owned(),
            FailReason::Rejected { code: 9, subcode: 4 } => {
                "a NAT that does not know GIST lies between them (GIST error 9/4)".to_owned()
            }
            FailReason::Rejected { code, subcode } => {
                format!("the next node refused it with GIST error {code}/{subcode}")
            }
            FailReason::Outside => "the next node is outside of the domain".to_owned(),
            FailReason::Cancelled => "the route was given up meanwhile".to_owned(),
        }
    }
}

/// What happened to a route (RFC 5971 appendix B.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notification {
    /// This node is the last one on the path of the flow.
    LastNode,
    /// The peer changed, or may have.
    StatusChange(RouteStatus),
    /// The state is gone; the old peer may still be reached by its handle.
    RouteDeletion,
    /// Reliable messages may have been lost with their connection.
    CommunicationFailure,
}

/// What is known of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteStatus {
    /// The peer is not to be used.
    Bad,
    /// The peer can be used while it is checked.
    Tentative,
    /// The peer is this one: newly, or again after a doubt.
    Good(SiiHandle),
}
