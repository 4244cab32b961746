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

use super::handshake::{path_ends, turn_to_connection};
use crate::api::{Counter, IcmpError, IcmpKind, NoPeerReason, RouteId};
use crate::associations::Associations;
use crate::cx::Cx;
use crate::routing::{Route, RouteKey, Routes, query_target};

/// Takes an ICMP error. One of the flow's endpoint that refuses the Query which it brings back ends the wait for an answer,
/// unless the row has a peer; so for rows that were asking along the same path when that Query was sent. Whatever else one
/// says is remembered in case that no answer comes.
pub(crate) fn on_icmp_error(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, error: &IcmpError) {
    if let IcmpKind::TooBig { mtu } = error.kind {
        on_too_big(cx, routes, mtu, error);
        return;
    }
    let Some(Quoted { id, target, sent_at }) = quoted_query(routes, &error.quoted) else {
        cx.out.count(Counter::IcmpUnmatched);
        return;
    };
    match error.reporter {
        Some(reporter) if error.kind.is_refusal() && reporter == target => {
            for id in asking_alike(routes, id, sent_at).into_iter().chain([id]) {
                path_ends(cx, routes, associations, id, NoPeerReason::Unreachable);
            }
        }
        Some(reporter) => {
            cx.out.count(Counter::IcmpHindered);
            note_hindrance(routes, id, NoPeerReason::Hindered { kind: error.kind, reporter });
        }
        None => cx.out.count(Counter::IcmpHindered),
    }
}

/// Takes that a datagram of this node is too long for its path. What shows that its sender saw it, the cookie of a Query or the
/// session of a row, makes it count; the next messages keep to the length or go over a connection. What a peer's Error says of
/// a length is about its row alone: a peer must not keep others' messages from passing here.
fn on_too_big(cx: &mut Cx<'_>, routes: &mut Routes, mtu: u16, error: &IcmpError) {
    let Some(message) = strip_magic(&error.quoted).and_then(|bytes| Message::parse(bytes).ok()) else {
        cx.out.count(Counter::IcmpUnmatched);
        return;
    };
    if message.kind == MessageType::Query {
        let Some(Quoted { id, target, .. }) = quoted_query(routes, &error.quoted) else {
            cx.out.count(Counter::IcmpUnmatched);
            return;
        };
        cx.out.count(Counter::IcmpHindered);
        cx.out.path_mtus.learn(cx.now, target, mtu);
        if let Some(reporter) = error.reporter {
            note_hindrance(routes, id, NoPeerReason::Hindered { kind: IcmpKind::TooBig { mtu }, reporter });
        }
        return;
    }
    let key = message.session.zip(message.mri);
    let key = key.map(|(session, mri)| RouteKey { session, nslp_id: message.nslp_id, mri });
    let id = key.and_then(|key| routes.find_meant(&key));
    let address = id.and_then(|id| routes.peer(id)).map(|peer| peer.address);
    let (Some(id), Some(address)) = (id, address) else {
        cx.out.count(Counter::IcmpUnmatched);
        return;
    };
    cx.out.count(Counter::IcmpHindered);
    cx.out.path_mtus.learn(cx.now, address, mtu);
    turn_to_connection(cx, routes, id);
}

fn note_hindrance(routes: &mut Routes, id: RouteId, hindrance: NoPeerReason) {
    if let Some(querier) = routes.get_mut(id).and_then(Route::querier_mut) {
        querier.note_hindrance(hindrance);
    }
}

/// Returns the other rows without a peer whose Queries took the same path as those of this one at a time.
fn asking_alike(routes: &Routes, id: RouteId, at: Instant) -> Vec<RouteId> {
    let Some(route) = routes.get(id) else { return Vec::new() };
    let Some(target) = query_target(&route.key().mri) else { return Vec::new() };
    let is_alike = |other: &Route| {
        other.peer().is_none()
            && other.local() == route.local()
            && other.key().nslp_id == route.key().nslp_id
            && other.querier().is_some_and(|querier| querier.was_asking(at))
    };
    let others = routes.asking(target).filter(|other| *other != id);
    others.filter(|other| routes.get(*other).is_some_and(is_alike)).collect()
}

/// Returns the Query that an error brings back, if a handshake waits for its answer. The cookie decides: a node on the way may
/// have changed the number of hops.
fn quoted_query(routes: &Routes, quoted: &[u8]) -> Option<Quoted> {
    let message = Message::parse(strip_magic(quoted)?).ok().filter(|message| message.kind == MessageType::Query)?;
    let key = RouteKey { session: message.session?, nslp_id: message.nslp_id, mri: message.mri? };
    let id = routes.find(&key)?;
    let querier = routes.get(id)?.querier().filter(|querier| querier.is_waiting())?;
    let sent_at = querier.asked_with(&message.query_cookie?)?;
    Some(Quoted { id, target: query_target(&key.mri)?, sent_at })
}

/// A Query that waits for its answer.
struct Quoted {
    id: RouteId,
    target: IpAddr,
    sent_at: Instant,
}
