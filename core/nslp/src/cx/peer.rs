// SPDX-License-Identifier: Apache-2.0
//! Peers, and what they sent.

use std::net::IpAddr;

use netserv_gist::{AssociationId, SiiHandle};
use netserv_model::SessionId;
use netserv_model::domain::Side;
use netserv_model::request::Hop;
use netserv_wire::gist::Mri;

use crate::limits::UPSTREAM_MAX;

/// A message of a peer, as GIST delivered it.
#[derive(Clone)]
pub(crate) struct Received {
    pub(crate) session: SessionId,
    pub(crate) mri: Mri,
    pub(crate) local: IpAddr,
    pub(crate) hops: u8,
    /// Who sent it.
    pub(crate) asker: Asker,
    /// Who it says that it is from, if that is a peer.
    pub(crate) claims: Option<SiiHandle>,
    /// The path to whoever sent it.
    pub(crate) hop: Hop,
    /// GIST's handshake showed that this node is on the flow's path.
    pub(crate) along_flow: bool,
}

/// Who asked for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The peer.
    pub(crate) sii: SiiHandle,
    /// Its address.
    pub(crate) address: IpAddr,
    /// The connection that it asked over.
    pub(crate) association: Option<AssociationId>,
    /// Where it is.
    pub(crate) side: Side,
    /// No node is between it and the requester, it says.
    pub(crate) is_first: bool,
    /// It asked by datagram, and may take no connection.
    pub(crate) by_datagram: bool,
}

impl Asker {
    /// Returns whether what came over a connection is of the same peer: a connection may lead to it by several addresses,
    /// and only by the one of its first message has GIST a name for it.
    pub(crate) fn is(&self, other: &Asker) -> bool {
        self.sii == other.sii || (self.association.is_some() && self.association == other.association)
    }
}

/// Takes note of who asked, in place of whoever had the address or the connection before; false if there are too many.
pub(crate) fn remember(askers: &mut Vec<Asker>, asker: Asker) -> bool {
    askers.retain(|other| other.address != asker.address && !other.is(&asker));
    let may = askers.len() < UPSTREAM_MAX;
    if may {
        askers.push(asker);
    }
    may
}
