// SPDX-License-Identifier: Apache-2.0
//! The end of a handshake: the channel that it agreed on, its Confirm, and the messages that waited.

use std::cmp::Reverse;

use netserv_wire::gist::MessageType;

use super::connections::end;
use super::handshake::ask_for_connection;
use crate::api::{AssociationId, Channel, Counter, FailReason, RouteId, SendStatus};
use crate::associations::{Associations, Connected, stack};
use crate::cx::Cx;
use crate::messages::{flush, send_to_peer};
use crate::routing::{self, Echo, Pending, Querier, Route, Routes};

/// Takes that a connection is open, and what it leads to. If that is not what was agreed on, the association ends.
pub(crate) fn connected(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: AssociationId,
    channel: Channel,
) {
    match associations.connected(cx, id, channel) {
        Connected::Unknown => {}
        Connected::Mismatch => {
            cx.out.count(Counter::AssociationsFailed);
            end(cx, routes, associations, id, true);
        }
        Connected::Open(mut rows) => {
            let first = |id: &RouteId| routes.get(*id).and_then(|route| route.pending().front()).map(|m| m.priority);
            rows.sort_by_key(|id| Reverse(first(id)));
            for row in rows {
                connection_opened(cx, routes, associations, row);
            }
            associations.arm(cx, id);
        }
    }
}

/// Takes that the row's connection is open, and who is at its other end.
fn connection_opened(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId) {
    let association = routes.get(id).and_then(Route::association);
    if association.is_some_and(|association| !may_use(cx, routes, associations, association, id)) {
        complete(cx, routes, associations, id, None, FailReason::NoStack);
        routes.arm(cx.timers, id);
        return;
    }
    let Some(querier) = routes.get_mut(id).and_then(Route::querier_mut) else { return };
    if querier.connected() {
        confirm(cx, routes, associations, id);
    }
    flush(cx, routes, associations, id);
    ask_for_connection(cx, routes, associations, id);
    routes.arm(cx.timers, id);
}

/// Ends the handshake on the channel that it agreed on, or without one for this reason.
pub(super) fn complete(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    agreed: Option<AssociationId>,
    without: FailReason,
) {
    let association = agreed.filter(|association| may_use(cx, routes, associations, *association, id));
    let without = if agreed.is_some() { FailReason::NoStack } else { without };
    routing::attach(cx, routes, associations, id, association);
    let open = association.is_none_or(|association| associations.is_open(association));
    let Some(querier) = routes.get_mut(id).and_then(Route::querier_mut) else { return };
    querier.complete(association.is_some(), open);
    let stack = association.and_then(|id| associations.stack(id));
    let lacks =
        |message: &Pending| message.needs_association && stack.is_none_or(|stack| stack < message.least_stack());
    let secure = |message: &Pending| lacks(message) && message.attributes.secure;
    let reliable = |message: &Pending| lacks(message) && message.attributes.reliable;
    routes.fail_pending(cx.out, id, SendStatus::Failed(FailReason::NoStack), secure);
    routes.fail_pending(cx.out, id, SendStatus::Failed(without), reliable);
    routes.fail_pending(cx.out, id, SendStatus::Failed(FailReason::TooLong), lacks);
    if open {
        confirm(cx, routes, associations, id);
        flush(cx, routes, associations, id);
    }
}

/// Returns whether the peer of a connection may speak about the row's flow.
fn may_use(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &Associations,
    association: AssociationId,
    id: RouteId,
) -> bool {
    let may = routes.get(id).is_some_and(|route| associations.may_carry(association, &route.key().mri));
    if !may {
        cx.out.count(Counter::FlowsForbidden);
    }
    may
}

/// Sends the Confirm that the last Response asked for, over the connection if there is one.
fn confirm(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId) {
    let validity = routes.validity(cx.config());
    let Some(route) = routes.get_mut(id) else { return };
    let Some(echo) = route.querier_mut().and_then(Querier::take_echo) else { return };
    let (key, local, association) = (route.key().clone(), route.local(), route.association());
    let Echo { cookie, proposal } = echo;
    let (distance, passes_nat) = (route.distance(), route.passes_nat());
    let nli = cx.settings.nli_for(&key.mri, distance, local, validity);
    let mut confirm = key.message(MessageType::Confirm);
    confirm.nli = Some(nli);
    confirm.responder_cookie = cookie;
    match association {
        Some(association) => {
            confirm.stack_proposal = proposal;
            if confirm.stack_proposal.is_some() && associations.introduce(association) {
                confirm.stack_configuration = Some(stack::hold_only(cx.config().hold_time));
            }
            associations.send(cx, association, &confirm);
        }
        None => {
            confirm.source_is_signaller = !passes_nat;
            send_to_peer(cx, routes, id, None, &confirm);
        }
    }
}
