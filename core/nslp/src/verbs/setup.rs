// SPDX-License-Identifier: Apache-2.0
//! SETUP: its lease follows the path, and nodes that the path leaves are told.

use std::sync::Arc;
use std::time::Duration;

use netserv_gist::SiiHandle;
use netserv_model::notify::NotifyEvent;
use netserv_model::request::{Body, NodeReport, Outcome, PathEnd};
use netserv_model::{Instant, NodeId, Refusal, RefusalKind, UserId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{Message, Response};
use rand::RngExt;

use crate::cx::{Cx, ExchangeKey};
use crate::exchanges::{Arrival, Exchange, Exchanges, Requester, longest_lease};
use crate::limits::{LOOK_AGAIN_MIN, LOOK_INTERVAL, LOOK_LOOPED_INTERVAL, PENDING_MAX, STATE_TIME_MORE};
use crate::notify::tell;
use crate::sessions::{
    Installed, Lease, LeaseId, Leases, Left, Sessions, Text, end_lease, leave, leave_return_path, let_go, withdraw,
};

/// Takes note of what a SETUP that is answered installed along its path.
pub(super) fn answered(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    sessions: &mut Sessions,
    key: ExchangeKey,
    user: &UserId,
    answer: &Response,
) {
    let Some(exchange) = exchanges.get(key) else { return };
    let (Body::Setup(setup), Some(mri)) = (exchange.message.body(), exchange.mri.clone()) else { return };
    let leases = &sessions.leases;
    // A REMOVE for this node alone leaves the lease to the nodes further on.
    let is_of_others = leases.of_setup(key, &mri).is_some_and(|(_, lease)| !lease.is_here);
    let of_others = longest_lease(answer).filter(|_| is_of_others);
    let of_others = of_others.map(|seconds| Duration::from_secs(seconds).min(setup.ttl));
    let time = exchange.lease_time(answer, setup.ttl, cx.config.host_only).or(of_others);
    let is_passed_on = exchange.is_passed_on();
    let was_here = is_passed_on.then(|| leases.in_force(key, &exchange.message, &mri)).flatten();
    let installed = Arc::new(Installed { user: user.clone(), module: setup.module.name.clone() });
    match time {
        Some(time) => {
            let wanted = Wanted { key, mri, installed: Arc::clone(&installed), time };
            hold(cx, exchanges, sessions, wanted, answer);
        }
        None => drop_unheld(cx, exchanges, &mut sessions.leases, (key, &mri), answer),
    }
    if let Some(nonce) = was_here {
        let_go(cx, &sessions.leases, &installed, nonce);
    }
}

/// A lease that a SETUP is answered with.
struct Wanted {
    key: ExchangeKey,
    mri: Mri,
    installed: Arc<Installed>,
    time: Duration,
}

/// Takes note of a lease that runs for a time from now on, here or further on.
fn hold(cx: &mut Cx<'_>, exchanges: &mut Exchanges, sessions: &mut Sessions, wanted: Wanted, answer: &Response) {
    let (now, leases) = (cx.now, &mut sessions.leases);
    let Wanted { key, mri, installed, time } = wanted;
    let (session, nonce) = key;
    let Some(exchange) = exchanges.get(key) else { return };
    let downstream = exchange.downstream;
    let has_moved = exchange.moved.is_some_and(|sii| downstream != Some(sii));
    let (is_look, torn) = (exchange.requester == Requester::Nobody, exchange.torn);
    let mri = exchanges.paths.shared(session, mri);
    let of_it = |lease: &Lease| lease.session == session && lease.installed == installed;
    let before = leases.of_flow(&mri).find(|(_, lease)| of_it(lease));
    let is_newer = |lease: &Lease| lease.nonce != nonce && (is_look || lease.created > exchange.message.created());
    if before.is_some_and(|(_, lease)| is_newer(lease)) {
        // What is in force came while this was under way.
        return;
    }
    let before = before.map(|(id, _)| id);
    let is_partial = answer.incomplete.is_some();
    let lease = Lease { is_partial, until: now + time, ..new_lease(now, exchange, key, &mri, &installed) };
    let (id, was) = match before {
        None => {
            let Some(id) = leases.insert(lease) else {
                cx.out.counters.leases_over_limit += 1;
                return;
            };
            exchanges.paths.enter(session, &mri);
            if is_look || torn {
                // The path led elsewhere before the answer was there.
                return withdraw(cx, exchanges, sessions, id);
            }
            (id, None)
        }
        Some(id) => (id, leases.change(id, |held| replace(now, held, lease, is_look))),
    };
    if was.is_some_and(|was| was.is_none()) && downstream.is_some() {
        leave_return_path(cx, exchanges, sessions, key, &installed);
    }
    let leases = &mut sessions.leases;
    let of_path = leases.of_flow(&mri).filter(|(_, lease)| lease.session == session);
    let until = of_path.map(|(_, lease)| lease.until).max().unwrap_or(now);
    cx.keep_state(session, Mri::clone(&mri), until.since(now) + STATE_TIME_MORE);
    look_again(cx, leases, id, answer);
    if has_moved {
        leases.look_soon(now, id);
    } else if answer.incomplete.is_none() {
        leave(cx, leases, id);
    }
    if is_look {
        tell_moved(cx, leases, id, was.flatten(), answer);
    }
}

/// Returns the lease of an exchange, which ends at once.
fn new_lease(
    now: Instant,
    exchange: &Exchange,
    (session, nonce): ExchangeKey,
    mri: &Arc<Mri>,
    installed: &Arc<Installed>,
) -> Lease {
    let upstream = if let Requester::Upstream(peers) = &exchange.requester { peers.clone() } else { Vec::new() };
    Lease {
        session,
        mri: Arc::clone(mri),
        installed: Arc::clone(installed),
        nonce,
        created: exchange.message.created(),
        text: Text::new(exchange.message.as_str()),
        time: exchange.time,
        hops: exchange.hops,
        passed: exchange.passed,
        is_here: exchange.runs_here(),
        address: exchange.address,
        upstream,
        is_local: matches!(exchange.requester, Requester::Local(_)),
        is_outside: exchange.is_outside,
        may_return: exchange.may_return,
        is_crowded: false,
        downstream: exchange.downstream,
        left: None,
        is_partial: false,
        questions: None,
        until: now,
        look_at: None,
        looked_at: now,
        news: (now, 0),
        messages: (now, 0),
    }
}

/// Puts a lease in the place of the one that the same module has along the same path; returns who had it next before.
fn replace(now: Instant, held: &mut Lease, lease: Lease, is_look: bool) -> Option<SiiHandle> {
    let (nonce, next) = (lease.nonce, lease.downstream);
    let is_next = |sii: SiiHandle| next.is_some_and(|next| next.is_node_of(sii));
    let before = std::mem::replace(held, lease);
    (held.mri, held.installed) = (before.mri, before.installed);
    held.questions = before.questions;
    // Who has it next from now on is not told to let it go.
    let left = before.downstream.filter(|sii| !is_next(*sii));
    let left = left.map(|sii| Box::new(Left { sii, nonce: before.nonce, since: now }));
    (held.news, held.left) = (before.news, left.or(before.left).filter(|left| !is_next(left.sii)));
    if before.nonce == nonce {
        let askers = std::mem::replace(&mut held.upstream, before.upstream);
        (held.is_local, held.is_crowded) = (before.is_local || held.is_local, before.is_crowded);
        askers.into_iter().for_each(|asker| held.asked_by(asker));
    }
    if is_look {
        held.until = held.until.min(before.until);
    }
    before.downstream
}

/// Drops the lease of a SETUP that nobody has any more; where the answer is not whole, somebody may.
fn drop_unheld(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    leases: &mut Leases,
    (key, mri): (ExchangeKey, &Mri),
    answer: &Response,
) {
    let Some(id) = leases.of_setup(key, mri).map(|(id, _)| id) else { return };
    if answer.incomplete.is_none() && !answer.entries.is_empty() {
        leave(cx, leases, id);
        end_lease(cx, exchanges, leases, id);
        return;
    }
    let was = leases.change(id, |lease| {
        let was = lease.downstream.take();
        let left = was.map(|sii| Box::new(Left { sii, nonce: lease.nonce, since: cx.now }));
        (lease.left, lease.is_partial) = (left.or(lease.left.take()), true);
        was
    });
    look_again(cx, leases, id, answer);
    tell_moved(cx, leases, id, was.flatten(), answer);
}

/// Says when the path is looked at again, if nobody says before that it changed.
fn look_again(cx: &mut Cx<'_>, leases: &mut Leases, id: LeaseId, answer: &Response) {
    let looped = answer.incomplete.as_ref().is_some_and(|refusal| refusal.kind == RefusalKind::Replayed);
    let hindered = looped || was_crowded(answer);
    // Who is to let go as soon as the new path is whole is not kept for long, nor is a gap asked about for ever.
    let moved = |lease: &&Lease| lease.downstream.is_some() && answer.incomplete.is_some();
    let left = leases.get(id).filter(moved).and_then(|lease| lease.left.as_ref());
    let left = left.map(|left| cx.now.since(left.since).clamp(LOOK_LOOPED_INTERVAL, LOOK_INTERVAL));
    let interval = left.unwrap_or(if hindered { LOOK_LOOPED_INTERVAL } else { LOOK_INTERVAL });
    let wait = cx.random.random_range(interval / 2..=interval);
    leases.change(id, |lease| {
        let alone = lease.downstream.is_none() && answer.end != Some(PathEnd::Destination);
        lease.look_at = (alone || hindered || left.is_some()).then(|| cx.now + wait);
    });
}

/// Returns the exchange that sends a SETUP on once more, to see where its path leads.
pub(crate) fn look(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    leases: &mut Leases,
    id: LeaseId,
) -> Option<(ExchangeKey, Arrival)> {
    let lease = leases.get(id)?;
    let key = (lease.session, lease.nonce);
    let is_busy = exchanges.get(key).is_some_and(Exchange::is_pending);
    // Half of the places are for what somebody waits for.
    let has_room = !is_busy && exchanges.pending() < PENDING_MAX / 2;
    let message = has_room.then(|| Message::parse(lease.text.whole().as_bytes()));
    let Some(Ok(message)) = message else {
        leases.change(id, |lease| lease.look_at = Some(cx.now + LOOK_AGAIN_MIN));
        return None;
    };
    let arrival = Arrival {
        time: lease.time,
        hops: lease.hops,
        passed: if lease.is_first() { 0 } else { lease.passed.max(1) },
        is_outside: lease.is_outside,
        may_return: lease.may_return,
        ..Arrival::own(message, Requester::Nobody, Some(Mri::clone(&lease.mri)), lease.address)
    };
    leases.change(id, |lease| (lease.look_at, lease.looked_at) = (None, cx.now));
    exchanges.forget(cx, key);
    cx.out.counters.paths_looked_at += 1;
    Some((key, arrival))
}

/// Tells whoever sent a SETUP that its path leads elsewhere, if it does.
fn tell_moved(cx: &mut Cx<'_>, leases: &mut Leases, id: LeaseId, was: Option<SiiHandle>, answer: &Response) {
    let Some(lease) = leases.get(id) else { return };
    let node = cx.config.node.clone();
    let has_it = |entry: &&NodeReport| entry.outcome.lease_s().is_some() && entry.node != node;
    let nodes: Vec<NodeId> = answer.entries.iter().filter(has_it).map(|entry| entry.node.clone()).collect();
    let same = match (lease.downstream, was) {
        (Some(next), Some(before)) => next.is_node_of(before),
        (next, before) => next == before,
    };
    if same {
        return;
    }
    let (event, detail) = if lease.downstream.is_some() {
        cx.out.counters.paths_moved += 1;
        let next = answer.entries.iter().map(|entry| &entry.node).find(|next| **next != node);
        (NotifyEvent::RouteMoved, next.map_or_else(String::new, |next| format!("{next} comes after {node} now")))
    } else {
        let why = answer.incomplete.as_ref().map(|refusal| format!(": {}", refusal.detail)).unwrap_or_default();
        (NotifyEvent::RouteLost, format!("no node after {node} is known any more{why}"))
    };
    tell(cx, leases, id, event, nodes, &detail);
}

/// Returns whether the last node that answered worked on too many requests, as after its restart: it sent this one no further.
fn was_crowded(answer: &Response) -> bool {
    let is_quota = |refusal: &Refusal| refusal.kind == RefusalKind::QuotaExceeded;
    let refused = |entry: &NodeReport| matches!(&entry.outcome, Outcome::Refused(refusal) if is_quota(refusal));
    answer.incomplete.as_ref().is_some_and(is_quota) && answer.entries.last().is_some_and(refused)
}
