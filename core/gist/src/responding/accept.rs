// SPDX-License-Identifier: Apache-2.0
//! Rows toward peers that queried this node (RFC 5971 §6.3): made and refreshed by Confirms, until those stop.

use std::net::IpAddr;
use std::time::Duration;

use netserv_wire::gist::{Direction, Mri, Nli};

use crate::api::{AssociationId, Counter, FailReason, InterfaceId, Notification, RouteId, RouteStatus, SendStatus};
use crate::associations::Associations;
use crate::cx::Cx;
use crate::routing::{self, NatSide, NewPeer, Route, RouteKey, Routes};

/// What a valid Confirm, or a Query that needs none, says of its sender.
pub(super) struct Seen<'a> {
    pub(super) nli: &'a Nli,
    pub(super) port: Option<u16>,
    /// This node's address toward it.
    pub(super) local: IpAddr,
    pub(super) interface: InterfaceId,
    pub(super) association: Option<AssociationId>,
    /// How long the peer keeps the association, if it says.
    pub(super) hold_time: Option<Duration>,
    pub(super) distance: Option<u8>,
    /// Its Query was sent to its flow's destination.
    pub(super) along_flow: bool,
    /// The MRI of a peer beyond NATs, toward it.
    pub(super) inside: Option<Mri>,
}

/// Makes or refreshes the row toward a peer that has proven its address.
pub(super) fn accept(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    key: RouteKey,
    seen: &Seen<'_>,
) -> Option<RouteId> {
    let id = match routes.find(&key) {
        Some(id) => id,
        None => new_responder(cx, routes, key, seen)?,
    };
    let outdone = give_way(cx, routes, id, seen.nli.address);
    let expires_at = cx.now + routes.validity(cx.config());
    let route = routes.get_mut(id)?;
    let Some(moved) = route.confirmed(expires_at, seen.interface, seen.along_flow) else {
        cx.out.count(Counter::RoutesRefused);
        return None;
    };
    route.set_local(seen.local);
    route.set_distance(seen.distance);
    routes.set_nat(id, seen.inside.clone().map_or(NatSide::None, |mri| NatSide::Responder(Box::new(mri))));
    let changed = routes.set_peer(id, Some(NewPeer { nli: seen.nli, port: seen.port, local: seen.local }));
    if let Some(association) = seen.association {
        associations.prove(cx, association, seen.nli, seen.hold_time);
    }
    routing::attach(cx, routes, associations, id, seen.association);
    if changed || moved || outdone {
        let sii = routes.get(id)?.peer()?;
        routes.notify(cx.out, id, Notification::StatusChange(RouteStatus::Good(sii)));
    }
    routes.arm(cx.timers, id);
    Some(id)
}

/// Gives a row that this node's upstream Query made to whoever queried downstream, who wins (RFC 5971 §5.8.1.3). Returns whether
/// the row led somewhere before.
fn give_way(cx: &Cx<'_>, routes: &mut Routes, id: RouteId, peer: IpAddr) -> bool {
    let Some(route) = routes.get(id).filter(|route| route.querier().is_some()) else { return false };
    let upstream = route.key().mri.direction() == Some(Direction::Upstream);
    if !upstream || routes.responding_to(peer) >= cx.config().routes_per_site_max {
        return false;
    }
    let led = route.peer().is_some();
    routes.set_peer(id, None);
    routes.make_responding(id);
    led
}

fn new_responder(cx: &mut Cx<'_>, routes: &mut Routes, key: RouteKey, seen: &Seen<'_>) -> Option<RouteId> {
    let of_site = routes.responding_to(seen.nli.address);
    if routes.is_full(cx.config(), key.nslp_id) || of_site >= cx.config().routes_per_site_max {
        cx.out.count(Counter::RoutesRefused);
        return None;
    }
    Some(routes.insert(Route::responding(key, seen.local, cx.config().hops)))
}

/// Ends a row that its peer does not refresh, if its time is over.
pub(crate) fn timeout(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId) {
    let expires_at = routes.get(id).and_then(Route::expires_at);
    if expires_at.is_some_and(|at| cx.now >= at) {
        cx.out.count(Counter::RoutesExpired);
        routes.notify(cx.out, id, Notification::RouteDeletion);
        routing::remove(cx, routes, associations, id, SendStatus::Failed(FailReason::Timeout));
    }
}
