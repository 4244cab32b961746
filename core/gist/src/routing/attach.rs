// SPDX-License-Identifier: Apache-2.0
//! Rows and the associations that they use.

use super::row::Pending;
use super::table::Routes;
use crate::api::{AssociationId, RouteId, SendStatus};
use crate::associations::Associations;
use crate::cx::Cx;

/// Points a row at an association, or at none; wakes or idles the associations concerned.
pub(crate) fn attach(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    new: Option<AssociationId>,
) {
    let Some(route) = routes.get_mut(id) else { return };
    let old = std::mem::replace(&mut route.association, new);
    if old == new {
        return;
    }
    route.reliable_sent = false;
    associations.attach(cx, id, old, new);
}

/// Removes a row; whatever waits on it gets the status.
pub(crate) fn remove(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    status: SendStatus,
) {
    routes.fail_pending(cx.out, id, status, |_| true);
    routes.set_peer(id, None);
    attach(cx, routes, associations, id, None);
    routes.set_timer(cx.timers, id, None);
    routes.remove(id);
}

/// Notes whether messages of a row wait for room on its connection; to be called after any went or came.
pub(crate) fn note_waiting(routes: &Routes, associations: &mut Associations, id: RouteId) {
    let Some(route) = routes.get(id) else { return };
    let Some(association) = route.association else { return };
    let first = route.pending.front().filter(|_| !associations.has_room(association));
    let waiting = first.map(|first| (first.priority, route.pending.iter().map(Pending::bytes).sum()));
    associations.note_waiting(association, id, waiting);
}
