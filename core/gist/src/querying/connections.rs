// SPDX-License-Identifier: Apache-2.0
//! Connections that are opened and taken for rows, and what their end means for those.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_wire::gist::Nli;

use super::handshake::restart_within;
use crate::api::{AssociationId, Channel, Counter, FailReason, Notification, RouteId, SendStatus};
use crate::associations::stack::Stack;
use crate::associations::{Associations, Room};
use crate::cx::Cx;
use crate::limits;
use crate::routing::{self, Route, Routes};

/// Returns an association with the peer: one that is there or under way, with the stack or a better one, or a new one.
/// `None` if there is no room.
pub(super) fn share_or_open(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    local: IpAddr,
    nli: &Nli,
    (stack, port): (Stack, u16),
    hold_time: Duration,
) -> Option<AssociationId> {
    if let Some(id) = associations.find(nli, stack) {
        cx.out.count(Counter::AssociationsReused);
        return Some(id);
    }
    let room = associations.room_to_open(cx.config());
    if !make_room(cx, routes, associations, room) {
        cx.out.count(Counter::AssociationsRefused);
        return None;
    }
    Some(associations.open(cx, local, nli, (stack, port), hold_time))
}

/// Takes a connection from a peer, which has to prove itself soon.
pub(crate) fn accept(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    local: IpAddr,
    peer: SocketAddr,
    channel: Channel,
) -> AssociationId {
    let room = associations.room_to_accept(cx.config(), peer, &channel);
    if make_room(cx, routes, associations, room) {
        associations.accept(cx, local, peer, channel)
    } else {
        associations.refuse(cx)
    }
}

/// Makes room for one more connection, if there has to be; returns whether there is.
fn make_room(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, room: Room) -> bool {
    match room {
        Room::Free => true,
        Room::InPlaceOf(id) => {
            cx.out.count(Counter::AssociationsEvicted);
            end(cx, routes, associations, id, true);
            true
        }
        Room::Full => false,
    }
}

/// Ends the associations that lost bytes for want of room.
pub(crate) fn end_overrun(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations) {
    while let Some(id) = associations.take_overrun() {
        cx.out.count(Counter::AssociationsFailed);
        end(cx, routes, associations, id, true);
    }
}

/// Forgets an association, and tells the rows that used it. `close` if the connection is still there.
pub(crate) fn end(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: AssociationId,
    close: bool,
) {
    let Some(rows) = associations.end(cx, id, close) else { return };
    let spread = spread_of(rows.len());
    for row in rows {
        let Some(route) = routes.get_mut(row) else { continue };
        route.lose_association();
        let lost = route.take_reliable_sent();
        let querying = route.querier().is_some();
        if lost {
            routes.notify(cx.out, row, Notification::CommunicationFailure);
        }
        if querying {
            connection_lost(cx, routes, associations, row, spread);
        }
        routes.arm(cx.timers, row);
    }
}

/// Takes that the row's connection is gone: looks for the peer again, within a time, unless that happens too often.
fn connection_lost(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    spread: Duration,
) {
    let Some(querier) = routes.get_mut(id).and_then(Route::querier_mut) else { return };
    if querier.connection_lost() {
        routes.notify(cx.out, id, Notification::RouteDeletion);
        routing::remove(cx, routes, associations, id, SendStatus::Failed(FailReason::Association));
    } else {
        restart_within(cx, routes, id, spread);
    }
}

/// Returns within which time so many rows look for their peer again: few do at once, and many one after the other.
fn spread_of(rows: usize) -> Duration {
    let more = u32::try_from(rows.saturating_sub(limits::REHANDSHAKES_AT_ONCE_MAX)).unwrap_or(u32::MAX);
    Duration::from_secs(1) * more / limits::REHANDSHAKES_PER_SECOND
}
