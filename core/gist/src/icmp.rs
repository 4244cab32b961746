// SPDX-License-Identifier: Apache-2.0
//! What ICMP says of this node's Queries.
//!
//! Anybody can send an ICMP error. One that brings back a Query's cookie comes from somebody who saw that Query; if it comes
//! from the flow's endpoint, the Query got there, and no node took it on its way. Who sees Queries and answers in the
//! endpoint's name, as a bridge that rejects or a NAT before the endpoint does, cannot be told from it.
//!
//! Hosts send few ICMP errors a second (Linux six, then one a second to each sender), so that one serves all rows that were
//! asking along the same path when its Query was sent.

use std::net::IpAddr;

use netserv_model::Instant;
use netserv_wire::gist::{Message, MessageType, strip_magic};

use crate::api::{Counter, IcmpError, IcmpKind, NoPeerReason, RouteId};
use crate::engine::Engine;
use crate::querier::{Phase, query_target};
use crate::routing::{Route, RouteKey};

impl Engine {
    /// Takes an ICMP error. One of the flow's endpoint that refuses the Query which it brings back ends the wait for an
    /// answer, unless the row has a peer; so for rows that were asking along the same path when that Query was sent. Whatever
    /// else one says is remembered in case that no answer comes; of a length that is too great, the next datagrams heed it. One that brings back no Query that waits, or only the start
    /// of one, is counted and says nothing.
    pub fn handle_icmp_error(&mut self, now: Instant, error: &IcmpError) {
        if let IcmpKind::TooBig { mtu } = error.kind {
            self.on_too_big(now, mtu, error);
            return;
        }
        let Some(Quoted { id, target, sent_at }) = self.quoted_query(&error.quoted) else {
            self.out.count(Counter::IcmpUnmatched);
            return;
        };
        match error.reporter {
            Some(reporter) if error.kind.is_refusal() && reporter == target => {
                for id in self.asking_alike(id, sent_at).into_iter().chain([id]) {
                    self.path_ends(now, id, NoPeerReason::Unreachable);
                }
            }
            Some(reporter) => {
                self.out.count(Counter::IcmpHindered);
                self.note_hindrance(id, NoPeerReason::Hindered { kind: error.kind, reporter });
            }
            None => self.out.count(Counter::IcmpHindered),
        }
    }

    /// Takes that a datagram of this node is too long for its path. What shows that its sender saw it, the cookie of a Query or
    /// the session of a row, makes it count; the next messages keep to the length or go over a connection. What a peer's Error says of a length is
    /// about its row alone: a peer must not keep others' messages from passing here.
    pub(crate) fn on_too_big(&mut self, now: Instant, mtu: u16, error: &IcmpError) {
        let Some(message) = strip_magic(&error.quoted).and_then(|bytes| Message::parse(bytes).ok()) else {
            self.out.count(Counter::IcmpUnmatched);
            return;
        };
        if message.kind == MessageType::Query {
            let Some((id, target)) = self.waiting_query(&error.quoted) else {
                self.out.count(Counter::IcmpUnmatched);
                return;
            };
            self.out.count(Counter::IcmpHindered);
            self.out.path_mtus.learn(now, target, mtu);
            if let Some(reporter) = error.reporter {
                self.note_hindrance(id, NoPeerReason::Hindered { kind: IcmpKind::TooBig { mtu }, reporter });
            }
            return;
        }
        let key = message.session.zip(message.mri);
        let key = key.map(|(session, mri)| RouteKey { session, nslp_id: message.nslp_id, mri });
        let id = key.and_then(|key| self.routes.find_meant(&key));
        let route = id.and_then(|id| self.routes.get(id));
        let peer = route.and_then(|route| route.peer).and_then(|sii| self.peers.get(sii));
        let (Some(id), Some(address)) = (id, peer.map(|peer| peer.address)) else {
            self.out.count(Counter::IcmpUnmatched);
            return;
        };
        self.out.count(Counter::IcmpHindered);
        self.out.path_mtus.learn(now, address, mtu);
        self.ask_for_association(now, id);
    }

    /// Returns the row whose Query an error brings back, and where it went, if it waits for its answer.
    pub(crate) fn waiting_query(&self, quoted: &[u8]) -> Option<(RouteId, IpAddr)> {
        self.quoted_query(quoted).map(|Quoted { id, target, .. }| (id, target))
    }

    pub(crate) fn note_hindrance(&mut self, id: RouteId, hindrance: NoPeerReason) {
        let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) else { return };
        if matches!(querier.silence, NoPeerReason::Timeout | NoPeerReason::Hindered { .. }) {
            querier.silence = hindrance;
        }
    }

    /// Returns the other rows without a peer whose Queries took the same path as those of this one at a time.
    fn asking_alike(&self, id: RouteId, at: Instant) -> Vec<RouteId> {
        let Some(Route { key, local, .. }) = self.routes.get(id) else { return Vec::new() };
        let Some(target) = query_target(&key.mri) else { return Vec::new() };
        let is_alike = |other: &Route| {
            other.peer.is_none()
                && other.local == *local
                && other.key.nslp_id == key.nslp_id
                && other.querier().is_some_and(|querier| querier.was_asking(at))
        };
        self.routes
            .asking(target)
            .filter(|other| *other != id)
            .filter(|other| self.routes.get(*other).is_some_and(is_alike))
            .collect()
    }

    /// Returns the Query that an error brings back, if a handshake waits for its answer. The cookie decides: a node on the way
    /// may have changed the number of hops.
    fn quoted_query(&self, quoted: &[u8]) -> Option<Quoted> {
        let message = Message::parse(strip_magic(quoted)?).ok().filter(|message| message.kind == MessageType::Query)?;
        let key = RouteKey { session: message.session?, nslp_id: message.nslp_id, mri: message.mri? };
        let id = self.routes.find(&key)?;
        let querier = self.routes.get(id)?.querier()?;
        let waits = matches!(querier.phase, Phase::Asking | Phase::Refreshing);
        let sent_at = querier.asked_with(&message.query_cookie?).filter(|_| waits)?;
        Some(Quoted { id, target: query_target(&key.mri)?, sent_at })
    }
}

/// A Query that waits for its answer.
struct Quoted {
    id: RouteId,
    target: IpAddr,
    sent_at: Instant,
}
