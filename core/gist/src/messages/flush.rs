// SPDX-License-Identifier: Apache-2.0
//! NSLP messages that wait on rows: sent as the row allows, or given up.

use std::net::SocketAddr;

use netserv_model::domain::Side;
use netserv_wire::gist::{Message, MessageType};

use crate::api::{
    AssociationId, Audience, Carriage, Counter, Event, FailReason, MessageHandle, Mode, NoPeerReason, RouteId,
    SendStatus, TransferAttributes,
};
use crate::associations::Associations;
use crate::associations::stack::Stack;
use crate::cx::{Cx, Outbox};
use crate::routing::{self, Pending, Route, RouteKey, Routes};

/// Sends what waits on the row and can go, in order.
pub(crate) fn flush(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId) {
    while front_can_go(routes, associations, id) {
        let Some(nslp_id) = routes.get(id).map(|route| route.key().nslp_id) else { return };
        let Some(message) = routes.pop_pending(id) else { return };
        let handle = message.handle;
        let sent = send_data(cx, routes, associations, id, message);
        tell_status(cx.out, nslp_id, handle, sent);
    }
    routing::note_waiting(routes, associations, id);
}

/// Takes that a connection has taken so many bytes more, for which rows may have waited.
pub(crate) fn written(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: AssociationId,
    bytes: usize,
) {
    if associations.written(id, bytes) {
        while let Some(row) = associations.next_waiting(id) {
            flush(cx, routes, associations, row);
            routes.arm(cx.timers, row);
        }
    }
}

/// Tells the NSLP how a message went, or why it did not.
pub(super) fn tell_status(out: &mut Outbox, nslp_id: u16, handle: MessageHandle, sent: Result<Carriage, FailReason>) {
    let (status, carriage) = match sent {
        Ok(carriage) => (SendStatus::Sent, Some(carriage)),
        Err(reason) => (SendStatus::Failed(reason), None),
    };
    out.event(Event::MessageStatus { nslp_id, handle, status, carriage });
}

fn front_can_go(routes: &Routes, associations: &Associations, id: RouteId) -> bool {
    let Some(route) = routes.get(id) else { return false };
    let Some(message) = route.pending().front() else { return false };
    let channel_fits = match route.association() {
        Some(association) => {
            associations.is_open(association)
                && associations.has_room(association)
                && associations.has_stack(association, message.least_stack())
        }
        None => !message.needs_association,
    };
    route.is_ready() && channel_fits
}

fn send_data(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    message: Pending,
) -> Result<Carriage, FailReason> {
    if message.attributes.inside && side_of(cx, routes, associations, id) == Side::Outside {
        cx.out.count(Counter::DataKeptInside);
        return Err(FailReason::Outside);
    }
    let validity = routes.validity(cx.config());
    let Some(route) = routes.get_mut(id) else { return Err(FailReason::Cancelled) };
    let key = RouteKey { mri: route.mri_for_peer().clone(), ..route.key().clone() };
    let (local, association, distance) = (route.local(), route.association(), route.distance());
    let passes_nat = route.passes_nat();
    route.note_sent(cx.now, message.attributes.reliable);
    let nli = cx.settings.nli_for(&key.mri, distance, local, validity);
    let mut data = key.message(MessageType::Data);
    data.hops = message.hops;
    data.nslp_data = Some(message.data);
    let sent = match association {
        Some(association) => send_data_on(cx, associations, association, &data),
        None => {
            data.nli = Some(nli);
            data.source_is_signaller = !passes_nat;
            send_to_peer(cx, routes, id, message.ip_ttl, &data).then_some(DATAGRAM).ok_or(FailReason::RateLimited)
        }
    };
    if sent.is_ok() {
        cx.out.count(Counter::DataSent);
    }
    sent
}

/// Returns on which side of the domain's border the row's peer is.
fn side_of(cx: &Cx<'_>, routes: &Routes, associations: &Associations, id: RouteId) -> Side {
    let Some(peer) = routes.peer(id) else { return Side::Outside };
    let association = routes.get(id).and_then(Route::association);
    let name = association.and_then(|id| associations.certified(id));
    cx.settings.side(peer.address, name)
}

pub(super) fn send_data_on(
    cx: &mut Cx<'_>,
    associations: &mut Associations,
    association: AssociationId,
    data: &Message,
) -> Result<Carriage, FailReason> {
    if !associations.send(cx, association, data) {
        return Err(FailReason::Association);
    }
    let secure = associations.has_stack(association, Stack::Tls);
    let attributes = TransferAttributes { reliable: true, secure, inside: false };
    Ok(Carriage { attributes, mode: Mode::Connection })
}

/// Sends a message to the row's peer in normal D-mode.
pub(crate) fn send_to_peer(cx: &mut Cx<'_>, routes: &Routes, id: RouteId, ttl: Option<u8>, message: &Message) -> bool {
    let (Some(route), Some(peer)) = (routes.get(id), routes.peer(id)) else { return false };
    let ends = (route.local(), SocketAddr::new(peer.address, peer.port));
    cx.out.send_to(cx.now, Audience::Peer, ends, ttl, message)
}

/// Gives up messages whose time is over, and with them a Query that nobody waits for.
pub(crate) fn expire_pending(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId) {
    let Some(route) = routes.get(id) else { return };
    if route.pending().iter().all(|message| message.deadline > cx.now) {
        return;
    }
    let unanswered = route.peer().is_none();
    let status = match (unanswered, route.querier()) {
        (true, Some(querier)) => SendStatus::NoPeer(querier.silence()),
        (true, None) => SendStatus::NoPeer(NoPeerReason::Timeout),
        (false, Some(_)) => SendStatus::Failed(FailReason::Timeout),
        (false, None) if route.association().is_some() => SendStatus::Failed(FailReason::Timeout),
        (false, None) => SendStatus::Failed(FailReason::NoAssociation),
    };
    let now = cx.now;
    routes.fail_pending(cx.out, id, status, |message| message.deadline <= now);
    routing::note_waiting(routes, associations, id);
    let idle = routes.get(id).is_some_and(|route| route.pending().is_empty());
    if unanswered && idle {
        cx.out.count(Counter::QueriesUnanswered);
        routing::remove(cx, routes, associations, id, status);
    }
}

/// How a message in a datagram went.
pub(super) const DATAGRAM: Carriage =
    Carriage { attributes: TransferAttributes { reliable: false, secure: false, inside: false }, mode: Mode::Datagram };
