// SPDX-License-Identifier: Apache-2.0
//! One request from its arrival to its answer: it starts, those further on settle, and it finishes.

use std::sync::Arc;
use std::time::Duration;

use netserv_gist::ApiCall;
use netserv_model::effect::RequestId;
use netserv_model::request::{NodeReport, Outcome, PathEnd};
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{Message, Response};

use super::ask::ask;
use super::state::Requests;
use crate::cx::{Cx, ExchangeKey};
use crate::exchanges::{
    Arrival, Beyond, Exchange, Own, Requester, Room, answer_exchange, budget_of, refused, result, room_for,
    send_request,
};
use crate::limits::PENDING_MAX;
use crate::off_path::{give_up_copies, spread};
use crate::round_trip::returned;
use crate::verbs;

/// Takes the controller's answer on this node; the signaling fills in the address.
pub(crate) fn on_report(cx: &mut Cx<'_>, requests: &mut Requests, request: RequestId, mut report: NodeReport) {
    let Some((key, exchange)) = requests.exchanges.reported(request) else {
        cx.out.counters.reports_late += 1;
        return;
    };
    if let (Outcome::Refused(refusal), Some(reason)) = (&report.outcome, &exchange.passed_by)
        && refusal.kind != RefusalKind::NotANode
    {
        // Whom it is not for need not know its user.
        exchange.is_vouched = false;
        report.outcome = Outcome::NotTargeted { reason: reason.clone() };
    }
    let not_a_node = report.outcome.is_refused_for(RefusalKind::NotANode);
    exchange.own = if cx.config.host_only && not_a_node && exchange.mri.is_some() {
        Own::LeftOut
    } else {
        report.address = exchange.address.unwrap_or(report.address);
        Own::Reported(Box::new(report))
    };
    begin_round_trip(cx, requests, key);
    finish_if_ready(cx, requests, key);
}

/// Makes room for a request, or says why there is none.
pub(super) fn make_room(
    cx: &mut Cx<'_>,
    requests: &mut Requests,
    message: &Message,
    is_local: bool,
) -> Result<(), Refusal> {
    match room_for(&requests.exchanges, message, is_local) {
        Room::Free => return Ok(()),
        Room::InPlaceOf(slowest) => {
            cx.out.counters.requests_displaced += 1;
            give_up(cx, requests, slowest);
            if requests.exchanges.pending() < PENDING_MAX {
                return Ok(());
            }
        }
        Room::Full => cx.out.counters.requests_over_limit += 1,
    }
    let detail = "the node works on as many requests already as it may";
    Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
}

/// Begins an exchange.
pub(super) fn start(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey, mut arrival: Arrival) {
    let exchanges = &mut requests.exchanges;
    let id = exchanges.name_request();
    let refusal = arrival.refusal.take();
    let beyond = beyond_of(cx, &arrival);
    let mut exchange = Exchange::new(cx.now, id, arrival, beyond);
    if let Some(refusal) = refusal {
        let report = refused(&cx.config.node, exchange.address, refusal, Duration::ZERO);
        exchange.own = Own::Reported(Box::new(report));
    }
    let path = exchange.goes_on.then(|| exchange.mri.clone()).flatten();
    exchanges.insert(key, exchange);
    ask(cx, requests, key);
    begin_round_trip(cx, requests, key);
    if let Some(mri) = path.map(Arc::new) {
        let Requests { exchanges, .. } = requests;
        let is_afresh = exchanges.get(key).is_some_and(|exchange| exchange.is_afresh);
        if is_afresh && exchanges.paths.has(key.0, &mri) {
            let (nslp_id, session, mri) = (Some(cx.config.nslp_id), Some(key.0), Mri::clone(&mri));
            cx.out.call(ApiCall::InvalidateRoutingState { nslp_id, session, mri, bad: true, data: None });
        }
        exchanges.paths.enter(key.0, &mri);
        send_request(cx, exchanges, key);
    }
    finish_if_ready(cx, requests, key);
}

/// Returns what is known of those further on before a request is sent to them.
fn beyond_of(cx: &Cx<'_>, arrival: &Arrival) -> Beyond {
    let node = &cx.config.node;
    let Some((_, destination)) = arrival.mri.as_ref().and_then(Mri::addresses).filter(|_| arrival.copy.is_none())
    else {
        return Beyond::nobody(None);
    };
    if cx.config.own_addresses.contains(&destination) {
        Beyond::nobody(Some(PathEnd::Destination))
    } else if verbs::ends_here(&arrival.message, node) {
        Beyond::nobody(Some(PathEnd::Named))
    } else if arrival.hops == Some(0) {
        let detail = format!("the request has passed as many nodes as it may at {node}");
        Beyond::unknown(Refusal::new(RefusalKind::QuotaExceeded, detail))
    } else if budget_of(arrival.time).is_none() {
        let detail = format!("the request's time allows no node after {node}");
        Beyond::unknown(Refusal::new(RefusalKind::Timeout, detail))
    } else {
        Beyond::waiting()
    }
}

/// Sends a request back to its requester, if it is to be.
fn begin_round_trip(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey) {
    if let Some((back, arrival)) = requests.round_trips.begin(cx, &mut requests.exchanges, key) {
        start(cx, requests, back, arrival);
    }
}

/// Sends the request again if that may help and it may be, or else takes it that those further on are unknown.
pub(super) fn resend_or_settle(
    cx: &mut Cx<'_>,
    requests: &mut Requests,
    key: ExchangeKey,
    again: bool,
    detail: String,
) {
    let Some(exchange) = requests.exchanges.get_mut(key) else { return };
    let has_time = exchange.budget(cx.now).is_some();
    match &mut exchange.beyond {
        Beyond::Waiting { resends_left, sent } if again && has_time && *resends_left > 0 => {
            *resends_left -= 1;
            *sent = false;
            cx.out.counters.requests_resent += 1;
            send_request(cx, &requests.exchanges, key);
        }
        Beyond::Waiting { .. } => {
            settle(cx, requests, key, Beyond::unknown(Refusal::new(RefusalKind::Timeout, detail)));
        }
        Beyond::Known { .. } => {}
    }
}

/// Takes what is known of those further on, unless that was known before.
pub(super) fn settle(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey, beyond: Beyond) {
    if let Some(exchange) = requests.exchanges.get_mut(key)
        && matches!(exchange.beyond, Beyond::Waiting { .. })
    {
        exchange.beyond = beyond;
        requests.exchanges.retransmissions.end((key, None));
        ask(cx, requests, key);
        begin_round_trip(cx, requests, key);
        finish_if_ready(cx, requests, key);
    }
}

/// Answers a request with what is known of it.
pub(super) fn give_up(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey) {
    give_up_copies(cx, &mut requests.exchanges, key);
    if let Some(exchange) = requests.exchanges.get_mut(key) {
        exchange.give_up(cx.now, &cx.config.node);
    }
    finish_if_ready(cx, requests, key);
}

pub(super) fn finish_if_ready(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey) {
    let Requests { exchanges, off_path, .. } = requests;
    let is_ready = |exchange: &Exchange| exchange.is_pending() && exchange.is_ready();
    if !exchanges.get(key).is_some_and(is_ready) || spread(cx, exchanges, off_path, key) {
        return;
    }
    let Some(exchange) = exchanges.get(key) else { return };
    let answer = exchange.build_answer(key.0, cx.config.host_only);
    // What goes on off the path may come here as long as somebody waits for it.
    let is_beside = exchange.message.off_path().is_some();
    let retention = if is_beside { cx.config.answer_time_max } else { cx.config.retention };
    exchanges.finish(key, answer.clone(), cx.now + retention.max(cx.config.retention));
    answer_requester(cx, requests, key, &answer);
    let Requests { exchanges, sessions, off_path, .. } = requests;
    verbs::answered(cx, exchanges, sessions, off_path, key, &answer);
    exchanges.make_room(cx);
}

/// Gives the answer to whoever waits for it.
fn answer_requester(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey, answer: &Response) {
    let Requests { exchanges, .. } = requests;
    let Some(exchange) = exchanges.get_mut(key) else { return };
    let took = cx.now.since(exchange.started);
    match &mut exchange.requester {
        Requester::Local(waiters) => {
            for id in std::mem::take(waiters) {
                cx.out.result(id, result(answer.clone(), took));
            }
        }
        Requester::Upstream(peers) => {
            let peers = peers.clone();
            let mri = exchange.mri.clone().expect("a request of another node has a flow");
            // The routing state leads to one of them only.
            peers.iter().for_each(|asker| answer_exchange(cx, exchanges, key, &mri, answer, *asker));
        }
        Requester::Nobody => {}
        Requester::Return(there) => {
            let there = *there;
            if returned(exchanges, there, answer.clone()) {
                finish_if_ready(cx, requests, there);
            }
        }
    }
}
