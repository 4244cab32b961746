// SPDX-License-Identifier: Apache-2.0
//! Paths that lead elsewhere, as GIST says.

use netserv_gist::{Notification, RouteStatus, SiiHandle};
use netserv_model::SessionId;
use netserv_wire::gist::{Direction, Mri};

use super::progress::resend_or_settle;
use super::state::Requests;
use crate::cx::{Cx, ExchangeKey};
use crate::exchanges::{Beyond, Exchange};
use crate::sessions::{Lease, LeaseId, doubt};

/// Takes what GIST says of a path.
pub(crate) fn on_notification(
    cx: &mut Cx<'_>,
    requests: &mut Requests,
    session: SessionId,
    mri: &Mri,
    kind: Notification,
) {
    match kind {
        Notification::CommunicationFailure | Notification::RouteDeletion | Notification::LastNode => {
            next_lost(cx, requests, session, mri);
        }
        // The answer still comes by the old path, unless one of the above says that it does not.
        Notification::StatusChange(_) => {}
    }
    if let Notification::StatusChange(RouteStatus::Good(sii)) = kind {
        next_is(cx, requests, session, mri, sii);
    }
    let moved = |next: Option<SiiHandle>| match kind {
        Notification::StatusChange(RouteStatus::Good(sii)) => next != Some(sii),
        Notification::RouteDeletion | Notification::LastNode => next.is_some(),
        Notification::StatusChange(RouteStatus::Bad | RouteStatus::Tentative) | Notification::CommunicationFailure => {
            false
        }
    };
    let leases = &mut requests.sessions.leases;
    let concerned = |(_, lease): &(LeaseId, &Lease)| lease.session == session && moved(lease.downstream);
    let ids: Vec<LeaseId> = leases.of_flow(mri).filter(concerned).map(|(id, _)| id).collect();
    ids.into_iter().for_each(|id| leases.look_soon(cx.now, id));
    if kind == Notification::RouteDeletion && mri.direction() == Some(Direction::Upstream) {
        doubt(cx, leases, session, &mri.inverted());
    }
}

/// Sends requests again that wait for an answer of the next node.
fn next_lost(cx: &mut Cx<'_>, requests: &mut Requests, session: SessionId, mri: &Mri) {
    let waits = |exchange: &Exchange| {
        exchange.mri.as_ref() == Some(mri) && matches!(exchange.beyond, Beyond::Waiting { sent: true, .. })
    };
    let waiting = requests.exchanges.of_session(session).filter(|(_, exchange)| waits(exchange));
    let keys: Vec<ExchangeKey> = waiting.map(|(key, _)| key).collect();
    for key in keys {
        let detail = format!("{} lost the next node before its answer came", cx.config.node);
        resend_or_settle(cx, requests, key, true, detail);
    }
}

/// Sends requests again that went to another node than the next one.
fn next_is(cx: &mut Cx<'_>, requests: &mut Requests, session: SessionId, mri: &Mri, sii: SiiHandle) {
    let of_flow = |exchange: &Exchange| exchange.mri.as_ref() == Some(mri) && exchange.is_pending();
    let under_way = requests.exchanges.of_session(session).filter(|(_, exchange)| of_flow(exchange));
    let keys: Vec<ExchangeKey> = under_way
        .filter_map(|(key, exchange)| {
            exchange.moved = Some(sii);
            exchange.may_be_resent(cx.now).then_some(key)
        })
        .collect();
    // Whoever it went to may be off the path, and wait for this node.
    for key in keys {
        let known = requests.sessions.leases.of_setup(key, mri).and_then(|(_, lease)| lease.downstream);
        if known != Some(sii) {
            resend_or_settle(cx, requests, key, true, String::new());
        }
    }
}
