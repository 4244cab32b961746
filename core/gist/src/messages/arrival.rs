// SPDX-License-Identifier: Apache-2.0
//! How a message got here.

use std::net::{IpAddr, SocketAddr};

use netserv_wire::gist::{Direction, HEADER_BYTES, Message, MessageType, Mri, Nli};

use crate::api::{AssociationId, Counter, Datagram, InterfaceId};
use crate::associations::Associations;
use crate::cx::Outbox;

/// How a message got here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) via: Via,
    /// The common header as it came, if there was one.
    pub(crate) header: Option<[u8; HEADER_BYTES]>,
    /// This node's address on the way to the sender.
    pub(crate) local: IpAddr,
    /// The IP destination of a datagram, which need not be this node's.
    pub(crate) destination: IpAddr,
}

/// The two modes of carriage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    Datagram { source: SocketAddr, interface: InterfaceId, ttl: u8 },
    Association(AssociationId),
}

impl Arrival {
    /// Returns how a datagram got here, of which `bytes` are the message.
    pub(crate) fn by_datagram(rx: &Datagram<'_>, bytes: &[u8]) -> Arrival {
        let via = Via::Datagram { source: rx.source, interface: rx.interface, ttl: rx.ttl };
        let local = if rx.destination_is_local { rx.destination } else { rx.local };
        let header = bytes.first_chunk().copied();
        Arrival { via, header, local, destination: rx.destination }
    }

    /// Returns how a message got here that came over an association to this node's address.
    pub(crate) fn by_association(id: AssociationId, header: Option<[u8; HEADER_BYTES]>, local: IpAddr) -> Arrival {
        Arrival { via: Via::Association(id), header, local, destination: local }
    }

    pub(crate) fn association(&self) -> Option<AssociationId> {
        match self.via {
            Via::Datagram { .. } => None,
            Via::Association(association) => Some(association),
        }
    }

    pub(crate) fn is_datagram(&self) -> bool {
        self.association().is_none()
    }

    pub(crate) fn ttl(&self) -> Option<u8> {
        match self.via {
            Via::Datagram { ttl, .. } => Some(ttl),
            Via::Association(_) => None,
        }
    }

    /// RFC 5971 §5.1: which messages travel in which mode.
    pub(crate) fn encapsulation_fits(&self, message: &Message) -> bool {
        match (message.kind, self.via) {
            (MessageType::Query, Via::Datagram { .. }) => true,
            (MessageType::Query, Via::Association(_)) | (MessageType::MaHello, Via::Datagram { .. }) => false,
            (MessageType::Data, Via::Association(_)) => !message.context_free,
            (MessageType::Response | MessageType::Confirm | MessageType::Data | MessageType::Error, _)
            | (MessageType::MaHello, Via::Association(_)) => true,
        }
    }

    /// Returns how many IP hops away a message's sender is, if it says something of that (RFC 5971 A.3.3): downstream it tells
    /// the TTL that its datagram left with, upstream the distance itself.
    pub(crate) fn hop_distance(&self, mri: &Mri, nli: &Nli) -> Option<u8> {
        let told = Some(nli.ip_ttl).filter(|told| *told != 0)?;
        match (mri.direction()?, self.via) {
            (Direction::Upstream, _) => Some(told),
            (Direction::Downstream, Via::Datagram { ttl, .. }) => told.checked_sub(ttl),
            (Direction::Downstream, Via::Association(_)) => None,
        }
    }

    /// Returns how many IP hops away the sender of a Response is. It repeats what it counted on the way of the Query, which named
    /// its TTL, so that 0 is a count, too.
    pub(crate) fn response_distance(&self, mri: &Mri, nli: &Nli) -> Option<u8> {
        match mri.direction()? {
            Direction::Upstream => Some(nli.ip_ttl),
            Direction::Downstream => self.hop_distance(mri, nli),
        }
    }
}

/// RFC 5971 §5.3.1: a datagram that does not come from the address that it names met a NAT, or a liar. A connection may carry
/// what a node says of its other interfaces.
pub(crate) fn source_fits(out: &mut Outbox, associations: &Associations, arrival: &Arrival, nli: &Nli) -> bool {
    let fits = match arrival.via {
        Via::Datagram { source, .. } => source.ip() == nli.address,
        Via::Association(id) => associations.name(id).is_none_or(|(identity, _)| identity == nli.peer_identity),
    };
    if !fits {
        out.count(Counter::SourceMismatch);
    }
    fits
}

/// The lowest TTL of an upstream message from a neighbour, which sent it with 255 (RFC 5971 §5.8.1.3).
pub(crate) const UPSTREAM_TTL_MIN: u8 = 254;
