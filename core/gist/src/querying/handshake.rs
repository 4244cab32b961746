// SPDX-License-Identifier: Apache-2.0
//! Handshakes: their Queries, and what becomes of rows that nobody answers.

use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{Cookie, MessageType, Nli};
use rand::RngExt;

use crate::api::{Counter, FailReason, NoPeerReason, Notification, RouteId, SendStatus};
use crate::associations::{Associations, stack};
use crate::cx::Cx;
use crate::messages::Needs;
use crate::routing::{self, Due, Pending, Phase, Querier, Route, Routes, q_mode_ttl, query_cookie, query_target};

/// Does what a message needs that was taken.
pub(crate) fn proceed(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, needs: Needs) {
    match needs {
        Needs::Nothing => {}
        Needs::Handshake(id) => start(cx, routes, id, Phase::Asking, cx.now),
        Needs::Row(id) => {
            ask_for_connection(cx, routes, associations, id);
            hasten(cx, routes, id);
            routes.arm(cx.timers, id);
        }
    }
}

/// Starts a handshake at `at`: right away, or when the row's timer fires.
pub(super) fn start(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId, phase: Phase, at: Instant) {
    let Some(route) = routes.get_mut(id) else { return };
    let wants = route.wants();
    let Some(querier) = route.querier_mut() else { return };
    querier.start(phase, at, wants, cx.config());
    if at <= cx.now {
        send_query(cx, routes, id);
    }
    routes.arm(cx.timers, id);
}

/// Starts a handshake because something went wrong with the row, but not too often.
pub(super) fn restart(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId) {
    restart_within(cx, routes, id, Duration::ZERO);
}

/// The same for one of many rows, at random within a time; at once if a message waits.
pub(super) fn restart_within(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId, spread: Duration) {
    let Some(route) = routes.get_mut(id) else { return };
    let waits = !route.pending().is_empty();
    let Some(at) = route.querier_mut().and_then(|querier| querier.restart_at(cx.now)) else { return };
    let at_once = waits || spread.is_zero();
    let later = if at_once { Duration::ZERO } else { cx.random.random_range(Duration::ZERO..=spread) };
    start(cx, routes, id, Phase::Asking, at + later);
}

/// Begins a handshake that was put off to spread those of many rows, since a message waits for it.
fn hasten(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId) {
    let querier = routes.get(id).and_then(Route::querier);
    if let Some(begins_at) = querier.and_then(|querier| querier.hastened(cx.now)) {
        start(cx, routes, id, Phase::Asking, begins_at);
    }
}

/// Starts a handshake if a message waits for a connection, or for a better one, that nothing else brings about.
pub(super) fn ask_for_connection(cx: &mut Cx<'_>, routes: &mut Routes, associations: &Associations, id: RouteId) {
    let Some(route) = routes.get(id) else { return };
    let lacks = |message: &&Pending| match route.association() {
        Some(association) => !associations.has_stack(association, message.least_stack()),
        None => message.needs_association,
    };
    let Some(least) = route.pending().iter().filter(lacks).map(Pending::least_stack).max() else { return };
    if let Some(phase) = route.querier().and_then(|querier| querier.restart_for(least)) {
        start(cx, routes, id, phase, cx.now);
    }
}

/// Turns to a connection, since datagrams are too large for the path.
pub(super) fn turn_to_connection(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId) {
    let querier = routes.get_mut(id).and_then(Route::querier_mut);
    if querier.is_some_and(Querier::want_association) {
        restart(cx, routes, id);
    }
}

/// Sends one copy of the Query, with a cookie of its own.
fn send_query(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId) {
    let cookie = query_cookie(cx.random);
    let validity = routes.validity(cx.config());
    let Some(route) = routes.get_mut(id) else { return };
    let (key, local, hops) = (route.key().clone(), route.local(), route.hops());
    let Some(destination) = query_target(&key.mri) else { return };
    let ttl = q_mode_ttl(&key.mri, route.ip_ttl());
    let Some(querier) = route.querier_mut() else { return };
    querier.sent(cx.now, cookie);
    let mut query = key.message(MessageType::Query);
    query.hops = hops;
    query.nli = Some(Nli { ip_ttl: ttl, ..cx.settings.nli(local, validity) });
    query.query_cookie = Some(Cookie(cookie.to_vec()));
    query.nslp_data = querier.payload().cloned();
    if let Some(least) = querier.proposes() {
        let stacks = stack::at_least(least, cx.config().tls);
        query.stack_proposal = Some(stack::proposal(stacks));
        query.stack_configuration = Some(stack::configuration(stacks, cx.config().hold_time, None));
    }
    cx.out.count(Counter::QueriesSent);
    let rao = cx.settings.router_alert(query.nslp_id);
    cx.out.send_along_flow(cx.now, (local, destination), ttl, rao, &query);
}

/// Does what is due to a row of this node's Queries.
pub(crate) fn timeout(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId) {
    let Some(querier) = routes.get_mut(id).and_then(Route::querier_mut) else { return };
    match querier.due(cx.now) {
        Due::Nothing => {}
        Due::Query => send_query(cx, routes, id),
        Due::Refresh => {
            querier.reset_failures();
            start(cx, routes, id, Phase::Refreshing, cx.now);
        }
        Due::GiveUp(reason) => give_up(cx, routes, associations, id, reason),
        Due::Expiry => {
            cx.out.count(Counter::RoutesExpired);
            routing::remove(cx, routes, associations, id, SendStatus::Failed(FailReason::Timeout));
        }
    }
}

/// Takes a proof that a Query got to the flow's endpoint. If the row has a peer, another copy may still reach it.
pub(super) fn path_ends(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    proof: NoPeerReason,
) {
    let Some(route) = routes.get_mut(id) else { return };
    let known = route.peer().is_some();
    let Some(querier) = route.querier_mut() else { return };
    querier.set_silence(proof);
    if !known {
        give_up(cx, routes, associations, id, proof);
    }
}

/// Ends a row whose Query found nobody.
fn give_up(cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations, id: RouteId, reason: NoPeerReason) {
    let Some(route) = routes.get(id) else { return };
    cx.out.count(Counter::QueriesUnanswered);
    let doubted = route.querier().is_some_and(Querier::is_doubted);
    let (known, waiting) = (route.peer().is_some() || doubted, !route.pending().is_empty());
    match reason {
        NoPeerReason::Timeout | NoPeerReason::Hindered { .. } if known => {
            routes.notify(cx.out, id, Notification::RouteDeletion);
        }
        NoPeerReason::Timeout
        | NoPeerReason::Hindered { .. }
        | NoPeerReason::Unreachable
        | NoPeerReason::EndpointFound => {
            if known || !waiting {
                routes.notify(cx.out, id, Notification::LastNode);
            }
        }
    }
    routing::remove(cx, routes, associations, id, SendStatus::NoPeer(reason));
}
