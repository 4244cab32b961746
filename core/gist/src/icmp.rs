// SPDX-License-Identifier: Apache-2.0
//! What ICMP says of this node's Queries.
//!
//! Anybody can send an ICMP error. One that brings back a Query's cookie comes from somebody who saw that Query; that the
//! flow's endpoint itself says so makes it known that the Query got there, and so that no node took it on its way.

use std::net::IpAddr;

use netserv_model::Instant;
use netserv_wire::gist::{Message, MessageType, strip_magic};
use serde::{Deserialize, Serialize};

use crate::counters::Counter;
use crate::engine::Engine;
use crate::event::NoPeerReason;
use crate::querier::{Phase, query_target};
use crate::routing::{Route, RouteId, RouteKey};

/// An ICMP error about a datagram that this node sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IcmpError {
    /// What it says.
    pub kind: IcmpKind,
    /// Who says it; `None` if the system does not tell.
    pub reporter: Option<IpAddr>,
    /// What the error brings back of the datagram's UDP payload.
    #[serde(with = "hex::serde")]
    pub quoted: Vec<u8>,
}

/// What an ICMP error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IcmpKind {
    /// The datagram reached a host where nobody listens.
    Port,
    /// The host has no UDP.
    Protocol,
    /// The last router does not reach the host.
    Host,
    /// A router has no route.
    Network,
    /// A firewall does not let it pass.
    Prohibited,
    /// It came to a router more often than its TTL allows.
    TimeExceeded,
}

impl IcmpKind {
    /// Returns what it says, in words that go on after the reporter's address.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            IcmpKind::Port => "says that nobody listens on the Query's port",
            IcmpKind::Protocol => "says that it has no UDP",
            IcmpKind::Host => "does not reach the flow's destination",
            IcmpKind::Network => "has no route to the flow's destination",
            IcmpKind::Prohibited => "does not let Queries pass",
            IcmpKind::TimeExceeded => "says that the Query's TTL ran out on the way",
        }
    }
}

impl Engine {
    /// Takes an ICMP error. That nobody listens at the flow's endpoint, which says so itself, ends the wait for an answer to
    /// the Query that it brings back, unless a peer has answered before. Whatever else one says is remembered in case that
    /// no answer comes. One that brings back no Query that waits, or only the start of one, is counted and says nothing.
    pub fn handle_icmp_error(&mut self, now: Instant, error: &IcmpError) {
        let Some((id, target)) = self.quoted_query(&error.quoted) else {
            self.out.count(Counter::IcmpUnmatched);
            return;
        };
        match error.reporter {
            Some(reporter) if error.kind == IcmpKind::Port && reporter == target => {
                self.path_ends(now, id, NoPeerReason::Unreachable);
            }
            Some(reporter) => {
                self.out.count(Counter::IcmpHindered);
                self.note_hindrance(id, NoPeerReason::Hindered { kind: error.kind, reporter });
            }
            None => self.out.count(Counter::IcmpHindered),
        }
    }

    fn note_hindrance(&mut self, id: RouteId, hindrance: NoPeerReason) {
        let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) else { return };
        if matches!(querier.silence, NoPeerReason::Timeout | NoPeerReason::Hindered { .. }) {
            querier.silence = hindrance;
        }
    }

    /// Returns the row whose handshake waits for the answer to this Query, and where the Query was going. The cookie decides:
    /// a node on the way may have changed the number of hops.
    fn quoted_query(&self, quoted: &[u8]) -> Option<(RouteId, IpAddr)> {
        let message = Message::parse(strip_magic(quoted)?).ok().filter(|message| message.kind == MessageType::Query)?;
        let key = RouteKey { session: message.session?, nslp_id: message.nslp_id, mri: message.mri? };
        let id = self.routes.find(&key)?;
        let querier = self.routes.get(id)?.querier()?;
        let waits = matches!(querier.phase, Phase::Asking | Phase::Refreshing);
        (waits && querier.asked_with(&message.query_cookie?)).then_some((id, query_target(&key.mri)?))
    }
}
