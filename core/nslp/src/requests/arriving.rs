// SPDX-License-Identifier: Apache-2.0
//! Requests of peers, and those that came before.

use std::time::Duration;

use netserv_model::domain::{Refused, Side};
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::nslp::{self, Envelope, Message};

use super::progress::{make_room, start};
use super::state::Requests;
use crate::cx::{Asker, Cx, ExchangeKey, Received, remember};
use crate::exchanges::{Arrival, Exchange, Exchanges, Requester, answer_exchange, answer_seen, misdirected, refuse};
use crate::sessions::Leases;

/// Takes a request of a peer.
pub(crate) fn on_request(
    cx: &mut Cx<'_>,
    requests: &mut Requests,
    from: &Received,
    envelope: &Envelope,
    message: Message,
) {
    let key = (from.session, message.nonce());
    let time = time_for(cx, envelope);
    let is_outside = from.asker.side == Side::Outside || envelope.is_outside;
    let refusal = is_outside.then(|| cx.domain.why_not_taken(message.body(), message.user())).flatten();
    // Who signed the request has to want it, or what it removes came by that path.
    let follows = requests.off_path.brought.is_by(key.0, &message, from.asker.address);
    let copy = envelope.copy.filter(|_| message.off_path().is_some() || follows);
    cx.out.counters.copies_received += u64::from(copy.is_some());
    // Off its path it has a flow of its own to each node.
    if let Some(refusal) = misdirected(&message, Some(&from.mri), from.along_flow).filter(|_| copy.is_none()) {
        cx.out.counters.requests_misdirected += 1;
        return refuse(cx, from, message.nonce(), refusal);
    }
    if let Some(refusal) = refusal.clone().filter(|_| cx.domain.refused == Refused::Stop) {
        cx.out.counters.requests_not_taken += 1;
        return refuse(cx, from, message.nonce(), refusal);
    }
    let passed = envelope.passed.unwrap_or(0);
    let from = Received { asker: Asker { is_first: passed == 0, ..from.asker }, ..from.clone() };
    let Requests { exchanges, sessions, .. } = requests;
    if is_first_now(exchanges, key, &message, passed) {
        sessions.leases.note_upstream(key, &from);
        exchanges.forget(cx, key);
    }
    if let Some(exchange) = exchanges.get(key) {
        let is_elsewhere = exchange.mri.as_ref() != Some(&from.mri);
        if let Some(copy) = copy.filter(|_| is_elsewhere) {
            cx.out.counters.requests_duplicate += 1;
            // What came by a detour does not reach as far, which whoever asked has to know.
            let reached = exchange.copy.map(|copy| copy.radius);
            let missing = u32::from(reached.is_some_and(|radius| radius < copy.radius));
            return answer_seen(cx, exchanges, key, &from, missing);
        }
        // Only one that came off its path, and is answered, comes along it anew.
        let was_beside = exchange.copy.is_some() && !exchange.is_pending() && is_elsewhere;
        if copy.is_some() || !was_beside {
            return on_duplicate(cx, exchanges, &mut sessions.leases, key, &from, (&message, time));
        }
        exchanges.forget(cx, key);
    }
    cx.out.counters.requests_not_taken += u64::from(refusal.is_some());
    cx.out.counters.requests_received += 1;
    if let Err(refusal) = make_room(cx, requests, &message, false) {
        return refuse(cx, &from, message.nonce(), refusal);
    }
    let arrival = Arrival {
        time,
        hops: Some(from.hops),
        passed,
        may_return: envelope.may_return && may_return(cx, &from, passed),
        refusal,
        is_outside,
        is_afresh: envelope.is_afresh,
        is_back: envelope.is_back,
        copy,
        ..Arrival::own(message, Requester::Upstream(vec![from.asker]), Some(from.mri.clone()), Some(from.local))
    };
    start(cx, requests, key, arrival);
}

/// Answers a text that is no request, if it says with which nonce; it goes no further.
pub(crate) fn on_bad(cx: &mut Cx<'_>, from: &Received, bytes: &[u8], refusal: Refusal) {
    cx.out.counters.messages_bad += 1;
    if let Some(nonce) = nslp::peek_nonce(bytes) {
        refuse(cx, from, nonce, refusal);
    }
}

/// Returns how long a request that came in an envelope may take here.
fn time_for(cx: &Cx<'_>, envelope: &Envelope) -> Duration {
    envelope.budget.unwrap_or(cx.config.timeout_default).min(cx.config.answer_time_max)
}

/// Returns whether a request may be sent back to its flow's source: the first node sees whether that is who asks, and inside of
/// the domain the nodes after it believe that. What outsiders say that others saw proves nothing.
fn may_return(cx: &mut Cx<'_>, from: &Received, passed: u32) -> bool {
    let source = from.mri.addresses().map(|(source, _)| source);
    let is_seen = source == Some(from.asker.address);
    let may = is_seen || (passed > 0 && from.asker.side == Side::Inside);
    cx.out.counters.returns_not_taken += u64::from(!may);
    may
}

/// Returns whether a request that was answered before comes from the requester's host now, which changes for whom it is.
fn is_first_now(exchanges: &Exchanges, key: ExchangeKey, message: &Message, passed: u32) -> bool {
    let answered = |exchange: &Exchange| {
        exchange.answer.is_some() && exchange.message == *message && exchange.passed > 0 && exchange.passed_by.is_some()
    };
    passed == 0 && message.target().scope.has_first() && exchanges.get(key).is_some_and(answered)
}

/// Answers a duplicate from what is known; one whose answer is on its way anyway waits for it.
fn on_duplicate(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    leases: &mut Leases,
    key: ExchangeKey,
    from: &Received,
    (message, time): (&Message, Duration),
) {
    cx.out.counters.requests_duplicate += 1;
    let is_local = leases.of_setup(key, &from.mri).is_some_and(|(_, lease)| lease.is_local);
    let Some(exchange) = exchanges.get_mut(key) else { return };
    if exchange.message.as_str() != message.as_str() {
        let detail = "another request of this session has the same nonce";
        return refuse(cx, from, message.nonce(), Refusal::new(RefusalKind::Replayed, detail));
    }
    if let Some(answer) = exchange.answer.clone() {
        leases.note_upstream(key, from);
        return answer_exchange(cx, exchanges, key, &from.mri, &answer, from.asker);
    }
    let same_path = exchange.mri.as_ref() == Some(&from.mri);
    match &mut exchange.requester {
        Requester::Upstream(peers) if same_path => {
            exchange.torn = false;
            remember(peers, from.asker);
        }
        // This node looked at its path when the nodes before it began to.
        requester @ Requester::Nobody if same_path && !is_local => {
            *requester = Requester::Upstream(vec![from.asker]);
            exchange.address = Some(from.local);
            // Whoever waits gives up by its own time.
            let timer = exchange.timer.min(cx.now + time);
            exchanges.set_timer(key, timer);
        }
        Requester::Upstream(_) | Requester::Nobody | Requester::Local(_) | Requester::Return(_) => {
            answer_seen(cx, exchanges, key, from, 0);
        }
    }
}
