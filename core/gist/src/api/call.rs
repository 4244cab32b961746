// SPDX-License-Identifier: Apache-2.0
//! What an NSLP asks of the engine.

use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::Mri;

use super::ids::{MessageHandle, QueryId, SiiHandle};
use super::peering::{Peering, QueryDecision};

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
        /// The payload, at most [`limits::DATA_BYTES_MAX`](crate::limits::DATA_BYTES_MAX); it is padded with zeros to whole words on the wire.
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
        /// [`limits::HANDSHAKE_DATA_BYTES_MAX`](crate::limits::HANDSHAKE_DATA_BYTES_MAX): unprotected, and perhaps more than once.
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
        /// At most [`limits::PEER_RULES_MAX`](crate::limits::PEER_RULES_MAX) rules.
        peering: Peering,
    },
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
