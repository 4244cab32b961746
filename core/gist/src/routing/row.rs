// SPDX-License-Identifier: Apache-2.0
//! One row of the routing table: where it leads, which end of a handshake made it, and what waits on it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use netserv_model::Instant;
use netserv_wire::gist::Mri;

use super::key::RouteKey;
use super::querier::{Querier, Wants};
use crate::api::{AssociationId, InterfaceId, MessageHandle, SiiHandle, TransferAttributes};
use crate::associations::stack::Stack;
use crate::cx::{Deadline, earlier};

/// One row.
#[derive(Debug)]
pub(crate) struct Route {
    pub(super) key: Arc<RouteKey>,
    /// This node's address toward the peer.
    pub(super) local: IpAddr,
    /// The hop count for Queries.
    pub(super) hops: u8,
    /// The TTL for Queries downstream, if the NSLP named one.
    pub(super) ip_ttl: Option<u8>,
    pub(super) peer: Option<SiiHandle>,
    /// IP hops to the peer.
    pub(super) distance: Option<u8>,
    pub(super) association: Option<AssociationId>,
    /// A reliable message went over the association.
    pub(super) reliable_sent: bool,
    pub(super) pending: VecDeque<Pending>,
    pub(super) role: Role,
    /// When the row's timer fires.
    pub(super) timer: Option<Instant>,
    /// How a GIST-aware NAT between changes what both ends say.
    pub(super) nat: NatSide,
}

/// Where a row's peer is, as far as GIST-aware NATs are concerned (RFC 5971 §7.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NatSide {
    /// No NAT between said so.
    None,
    /// Beyond a NAT that translated this node's Query: its addresses are not those that the peer sees.
    Querier,
    /// Beyond a NAT that translated its Query. It calls the flow by this MRI, which points toward it.
    Responder(Box<Mri>),
}

/// Which end of the handshake made the row.
#[derive(Debug)]
pub(super) enum Role {
    Querier(Box<Querier>),
    Responder(Responder),
}

/// The responding end; it can only wait for refreshes.
#[derive(Debug, Default)]
pub(super) struct Responder {
    expires_at: Instant,
    /// Where the peer's Query arrived.
    interface: InterfaceId,
    /// It was sent to its flow's destination.
    along_flow: bool,
}

/// An NSLP message that waits for its route.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) handle: MessageHandle,
    pub(crate) data: Vec<u8>,
    pub(crate) attributes: TransferAttributes,
    pub(crate) needs_association: bool,
    pub(crate) hops: u8,
    pub(crate) priority: u8,
    pub(crate) ip_ttl: Option<u8>,
    pub(crate) deadline: Instant,
}

impl Pending {
    pub(crate) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Returns the least stack that the message may go over, if it goes over a connection.
    pub(crate) fn least_stack(&self) -> Stack {
        self.attributes.least_stack()
    }
}

impl Route {
    /// Returns a row that begins with this node's Query.
    pub(crate) fn querying(key: RouteKey, local: IpAddr, hops: u8, querier: Querier) -> Route {
        Route::new(key, local, hops, Role::Querier(Box::new(querier)))
    }

    /// Returns a row for a peer's Query.
    pub(crate) fn responding(key: RouteKey, local: IpAddr, hops: u8) -> Route {
        Route::new(key, local, hops, Role::Responder(Responder::default()))
    }

    fn new(key: RouteKey, local: IpAddr, hops: u8, role: Role) -> Route {
        Route {
            key: Arc::new(key),
            local,
            hops,
            ip_ttl: None,
            peer: None,
            distance: None,
            association: None,
            reliable_sent: false,
            pending: VecDeque::new(),
            role,
            timer: None,
            nat: NatSide::None,
        }
    }

    pub(crate) fn key(&self) -> &RouteKey {
        &self.key
    }

    /// Returns this node's address toward the peer.
    pub(crate) fn local(&self) -> IpAddr {
        self.local
    }

    /// Returns the hop count for Queries.
    pub(crate) fn hops(&self) -> u8 {
        self.hops
    }

    /// Returns the TTL for Queries downstream, if the NSLP named one.
    pub(crate) fn ip_ttl(&self) -> Option<u8> {
        self.ip_ttl
    }

    pub(crate) fn peer(&self) -> Option<SiiHandle> {
        self.peer
    }

    /// Returns IP hops to the peer.
    pub(crate) fn distance(&self) -> Option<u8> {
        self.distance
    }

    pub(crate) fn association(&self) -> Option<AssociationId> {
        self.association
    }

    /// Returns the messages that wait, in order.
    pub(crate) fn pending(&self) -> &VecDeque<Pending> {
        &self.pending
    }

    /// Returns the MRI by which the peer knows the flow.
    pub(crate) fn mri_for_peer(&self) -> &Mri {
        match &self.nat {
            NatSide::None | NatSide::Querier => &self.key.mri,
            NatSide::Responder(mri) => mri,
        }
    }

    /// Returns whether what goes between this node and the peer passes a GIST-aware NAT.
    pub(crate) fn passes_nat(&self) -> bool {
        match self.nat {
            NatSide::None => false,
            NatSide::Querier | NatSide::Responder(_) => true,
        }
    }

    pub(super) fn alias(&self) -> Option<RouteKey> {
        match &self.nat {
            NatSide::None | NatSide::Querier => None,
            NatSide::Responder(mri) => Some(RouteKey { mri: Mri::clone(mri), ..RouteKey::clone(&self.key) }),
        }
    }

    pub(crate) fn querier(&self) -> Option<&Querier> {
        match &self.role {
            Role::Querier(querier) => Some(querier),
            Role::Responder(_) => None,
        }
    }

    pub(crate) fn querier_mut(&mut self) -> Option<&mut Querier> {
        match &mut self.role {
            Role::Querier(querier) => Some(querier),
            Role::Responder(_) => None,
        }
    }

    /// Returns when a row for a peer's Query ends, unless that is refreshed.
    pub(crate) fn expires_at(&self) -> Option<Instant> {
        match &self.role {
            Role::Querier(_) => None,
            Role::Responder(responder) => Some(responder.expires_at),
        }
    }

    /// Returns whether messages can go to the peer, as far as the handshake is concerned.
    pub(crate) fn is_ready(&self) -> bool {
        self.querier().is_none_or(Querier::is_ready) && self.peer.is_some()
    }

    /// Takes where the peer is, as a message told.
    pub(crate) fn set_distance(&mut self, distance: Option<u8>) {
        self.distance = distance;
    }

    /// Takes this node's address toward the peer.
    pub(crate) fn set_local(&mut self, local: IpAddr) {
        self.local = local;
    }

    /// Takes that the NSLP sends a message: the next Queries go as that says.
    pub(crate) fn note_message(&mut self, now: Instant, local: IpAddr, hops: u8, ip_ttl: Option<u8>) {
        if let Role::Querier(querier) = &mut self.role {
            querier.note_activity(now);
            (self.local, self.hops, self.ip_ttl) = (local, hops, ip_ttl);
        }
    }

    /// Takes that Queries need more hops, and returns whether they had as many as there are.
    pub(crate) fn raise_hops(&mut self) -> bool {
        std::mem::replace(&mut self.hops, u8::MAX) == u8::MAX
    }

    /// Takes a Confirm, which came where an interface leads. Returns whether the last one came by another; nothing if the row is
    /// of this node's Queries.
    pub(crate) fn confirmed(&mut self, expires_at: Instant, interface: InterfaceId, along_flow: bool) -> Option<bool> {
        let Role::Responder(responder) = &mut self.role else { return None };
        let moved = responder.interface != interface && self.peer.is_some();
        *responder = Responder { expires_at, interface, along_flow };
        Some(moved)
    }

    /// Returns whether the peer's last Query was sent to its flow's destination.
    pub(crate) fn is_along_flow(&self) -> bool {
        matches!(&self.role, Role::Responder(responder) if responder.along_flow)
    }

    /// Takes that a message goes out, which may be lost with the association if it is a reliable one.
    pub(crate) fn note_sent(&mut self, now: Instant, reliable: bool) {
        if let Role::Querier(querier) = &mut self.role {
            querier.note_activity(now);
        }
        self.reliable_sent |= reliable;
    }

    /// Returns whether a reliable message may be lost, once.
    pub(crate) fn take_reliable_sent(&mut self) -> bool {
        std::mem::take(&mut self.reliable_sent)
    }

    /// Takes that the association is gone.
    pub(crate) fn lose_association(&mut self) {
        self.association = None;
    }

    /// Returns what the row's messages want of a handshake.
    pub(crate) fn wants(&self) -> Wants {
        let association = self.association.is_some() || self.pending.iter().any(|message| message.needs_association);
        let least = self.pending.iter().map(Pending::least_stack).max().unwrap_or(Stack::Plain);
        Wants { association, least, known: self.peer.is_some() }
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let messages = self.pending.iter().map(|message| message.deadline).min();
        let messages = messages.map(|at| (at, "message timeout"));
        let role = match &self.role {
            Role::Querier(querier) => Some(querier.deadline()),
            Role::Responder(responder) => Some((responder.expires_at, "route expiry")),
        };
        earlier(messages, role)
    }
}
