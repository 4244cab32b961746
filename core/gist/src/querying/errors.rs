// SPDX-License-Identifier: Apache-2.0
//! Errors of peers (RFC 5971 §4.4.6): what they tell, and who is believed.

use netserv_wire::gist::{ErrorObject, Header, Message, MessageType, NatTraversal};

use super::handshake::{path_ends, restart, start, turn_to_connection};
use crate::api::{Counter, FailReason, NoPeerReason, Notification, RouteId, SendStatus, TlsPolicy};
use crate::associations::Associations;
use crate::associations::stack::Stack;
use crate::cx::Cx;
use crate::messages::{Arrival, Via};
use crate::routing::{self, Phase, Querier, Route, RouteKey, Routes, query_target};

/// Does what a received Error asks for. The 128-bit session in it shows that its sender saw a message of ours; that the flow
/// ends with its sender only the flow's endpoint can say.
pub(crate) fn on_error(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    message: Message,
) {
    cx.out.count(Counter::ErrorsReceived);
    let Some(object) = message.error else { return };
    let Some((id, kind)) = offender(routes, &object, message.nat_traversal) else { return };
    let querying = routes.get(id).is_some_and(|route| route.querier().is_some());
    let tells_of_state = matches!(object.code, NO_ROUTING_STATE | INCORRECTLY_DELIVERED);
    if tells_of_state && !is_believed(cx, routes, associations, id, arrival) {
        cx.out.count(Counter::ErrorsDoubted);
        return;
    }
    match (object.code, kind) {
        (NO_ROUTING_STATE | INCORRECTLY_DELIVERED, kind) if querying => {
            restart(cx, routes, id);
            refused_data(cx, routes, id, kind);
        }
        (NO_ROUTING_STATE, _) => {
            routes.notify(cx.out, id, Notification::RouteDeletion);
            routing::remove(cx, routes, associations, id, SendStatus::Failed(FailReason::Cancelled));
        }
        (ENDPOINT_FOUND, MessageType::Query) if is_endpoint(routes, id, arrival) => {
            path_ends(cx, routes, associations, id, NoPeerReason::EndpointFound);
        }
        (HOP_LIMIT_EXCEEDED, MessageType::Query) => ask_further(cx, routes, associations, id, &object),
        (MESSAGE_TOO_LARGE, _) => turn_to_connection(cx, routes, id),
        (_, MessageType::Query) => refused(cx, routes, associations, id, &object),
        (_, _) => {}
    }
}

/// Returns the row whose message an Error is about, and the message's type. What NATs translated is known by the MRI that they
/// found in it (RFC 5971 §7.2).
fn offender(routes: &Routes, object: &ErrorObject, nats: Option<NatTraversal>) -> Option<(RouteId, MessageType)> {
    let header = Header::parse(&object.header).ok()?;
    let mri = nats.map(|nats| nats.mri).or_else(|| object.mri.clone())?;
    let key = RouteKey { session: object.session?, nslp_id: header.nslp_id, mri };
    Some((routes.find_meant(&key)?, header.kind))
}

/// Returns whether who says that it has no state for a row may be its peer: it has the peer's address or connection. Where the
/// two speak TLS, only over TLS (RFC 5971 §4.4.6).
fn is_believed(cx: &Cx<'_>, routes: &Routes, associations: &Associations, id: RouteId, arrival: &Arrival) -> bool {
    let (Some(route), Some(peer)) = (routes.get(id), routes.peer(id)) else { return false };
    let secure = |association| associations.has_stack(association, Stack::Tls);
    let needs_tls = route.association().is_some_and(secure) || cx.config().tls == TlsPolicy::Required;
    match arrival.via {
        Via::Datagram { source, .. } => !needs_tls && source.ip() == peer.address,
        Via::Association(id) => {
            let is_peer = associations.name(id).is_some_and(|(identity, _)| identity == peer.identity);
            is_peer && (!needs_tls || secure(id))
        }
    }
}

/// Returns whether a datagram comes from where the row's Queries go.
fn is_endpoint(routes: &Routes, id: RouteId, arrival: &Arrival) -> bool {
    let target = routes.get(id).and_then(|route| query_target(&route.key().mri));
    match arrival.via {
        Via::Datagram { source, .. } => target == Some(source.ip()),
        Via::Association(_) => false,
    }
}

/// Asks once more with as many hops as there are.
fn ask_further(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    object: &ErrorObject,
) {
    let Some(route) = routes.get_mut(id) else { return };
    if route.raise_hops() {
        refused(cx, routes, associations, id, object);
        return;
    }
    if let Some(phase) = route.querier().map(Querier::phase) {
        start(cx, routes, id, phase, cx.now);
    }
}

/// Tells the NSLP that the peer dropped a reliable message.
fn refused_data(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId, kind: MessageType) {
    let Some(route) = routes.get_mut(id).filter(|_| kind == MessageType::Data) else { return };
    if route.take_reliable_sent() {
        routes.notify(cx.out, id, Notification::CommunicationFailure);
    }
}

/// Ends a handshake that the peer refuses.
fn refused(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId, object: &ErrorObject) {
    let phase = routes.get(id).and_then(Route::querier).map(Querier::phase);
    if phase == Some(Phase::Asking) {
        let reason = FailReason::Rejected { code: object.code, subcode: object.subcode };
        routing::remove(cx, routes, associations, id, SendStatus::Failed(reason));
    }
}

/// Codes of received Errors that this node does something about (RFC 5971 A.4.4).
const HOP_LIMIT_EXCEEDED: u16 = 0x0002;
const INCORRECTLY_DELIVERED: u16 = 0x0004;
const NO_ROUTING_STATE: u16 = 0x0005;
const ENDPOINT_FOUND: u16 = 0x0007;
const MESSAGE_TOO_LARGE: u16 = 0x0008;
