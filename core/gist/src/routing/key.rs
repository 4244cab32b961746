// SPDX-License-Identifier: Apache-2.0
//! What rows are looked up by.

use std::net::IpAddr;

use netserv_model::SessionId;
use netserv_wire::gist::{Direction, Message, MessageType, Mri};

/// What a row is looked up by; `mri` points toward the peer. The session leads, since it tells rows apart at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RouteKey {
    pub(crate) session: SessionId,
    pub(crate) nslp_id: u16,
    pub(crate) mri: Mri,
}

impl RouteKey {
    /// Returns a message with the row's MRI and session.
    pub(crate) fn message(self, kind: MessageType) -> Message {
        let RouteKey { session, nslp_id, mri } = self;
        let mut message = Message::new(kind, nslp_id);
        (message.mri, message.session) = (Some(mri), Some(session));
        message
    }
}

/// Returns where Queries for a path go: to the flow's end in their direction.
pub(crate) fn query_target(mri: &Mri) -> Option<IpAddr> {
    let (source, destination) = mri.addresses()?;
    Some(if mri.direction() == Some(Direction::Upstream) { source } else { destination })
}

/// Returns the TTL of a message in Q-mode about a flow, of which the NSLP may have named one.
pub(crate) fn q_mode_ttl(mri: &Mri, named: Option<u8>) -> u8 {
    match mri.direction() {
        Some(Direction::Upstream) => UPSTREAM_TTL,
        Some(Direction::Downstream) | None => named.unwrap_or(DOWNSTREAM_TTL),
    }
}

/// The TTL of downstream Queries, given in their NLI so that the peer can tell its distance.
const DOWNSTREAM_TTL: u8 = 64;
/// The TTL of upstream Queries, so that the receiver can tell that they come from next to it (RFC 5971 §5.8.1.3).
const UPSTREAM_TTL: u8 = 255;
