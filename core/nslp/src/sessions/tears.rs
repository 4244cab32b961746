// SPDX-License-Identifier: Apache-2.0
//! TEARs, and what ends a lease: nodes that the path has left let go of what they have.

use std::sync::Arc;

use netserv_gist::SiiHandle;
use netserv_model::{Nonce, SessionId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{Message, Response, Tear, parts};

use super::lease::{Installed, Lease, LeaseId, Left, Text};
use super::leases::Leases;
use super::state::Sessions;
use crate::cx::{Asker, Cx, ExchangeKey, Received, Route, Sent, Withdrawal, module_of};
use crate::exchanges::{Exchange, Exchanges, Requester};
use crate::limits::{ANSWER_SEND_TIME, ENDED_TIME};

/// Takes that the path of a SETUP does not lead here any more, if it comes from the peer that sent that.
pub(crate) fn on_tear(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    sessions: &mut Sessions,
    from: &Received,
    tear: &Tear,
) {
    let leases = &mut sessions.leases;
    let key = (tear.session, tear.nonce);
    let found = leases.of_setup(key, &from.mri).filter(|_| tear.session == from.session);
    let of_it = |installed: &Installed| (&installed.user, &installed.module) == (&tear.user, &tear.module);
    let found = found.filter(|(_, lease)| of_it(&lease.installed));
    let found = found.map(|(id, lease)| (id, lease.told(tear.token)));
    let told = found.and_then(|(_, told)| told);
    let by = |asker: &Asker| asker.is(&from.asker) || told == Some(asker.sii);
    let is_asked_for = is_asked_for(exchanges, from, tear, by);
    let Some((id, _)) = found else {
        cx.out.counters.messages_unexpected += 1;
        return;
    };
    if !leases.get(id).is_some_and(|lease| lease.upstream.iter().any(by)) {
        // It may be of one that asked, and is not known by the address that this came from.
        cx.out.counters.messages_unexpected += 1;
        return leases.ask_again(cx.now, id);
    }
    cx.out.counters.tears_received += 1;
    let changed = leases.change(id, |lease| {
        let was_first = lease.is_first();
        lease.upstream.retain(|asker| !by(asker));
        let is_needed = is_asked_for || lease.is_local || lease.is_crowded || !lease.upstream.is_empty();
        (is_needed, lease.is_here && was_first && !lease.is_first())
    });
    match changed {
        Some((false, _)) => withdraw(cx, exchanges, sessions, id),
        Some((true, was_first)) => {
            if was_first {
                // It may be for the first node only.
                leases.look_soon(cx.now, id);
            }
            leases.ask_again(cx.now, id);
        }
        None => {}
    }
}

/// Takes the asker of a TEAR from those who wait for the SETUP's answer; returns whether somebody else does.
fn is_asked_for(exchanges: &mut Exchanges, from: &Received, tear: &Tear, by: impl Fn(&Asker) -> bool) -> bool {
    let is_of_it = |message: &Message| {
        tear.session == from.session
            && (message.user(), module_of(message.body())) == (Some(&tear.user), Some(&tear.module))
    };
    let of_path = |exchange: &&mut Exchange| {
        exchange.is_pending() && exchange.mri.as_ref() == Some(&from.mri) && is_of_it(&exchange.message)
    };
    match exchanges.get_mut((tear.session, tear.nonce)).filter(of_path) {
        Some(Exchange { requester: Requester::Upstream(peers), torn, .. }) => {
            peers.retain(|asker| !by(asker));
            *torn = peers.is_empty();
            !*torn
        }
        Some(Exchange { requester: Requester::Local(_), .. }) => true,
        Some(Exchange { requester: Requester::Nobody | Requester::Return(_), .. }) | None => false,
    }
}

/// Ends a lease that no path leads to any more, here and further on.
pub(crate) fn withdraw(cx: &mut Cx<'_>, exchanges: &mut Exchanges, sessions: &mut Sessions, id: LeaseId) {
    let leases = &mut sessions.leases;
    leave(cx, leases, id);
    // The routing state may lead to another one already.
    let next = leases.get(id).and_then(|lease| lease.downstream.map(|next| (next, lease.nonce)));
    if let Some((next, nonce)) = next {
        tell_tear(cx, leases, id, next, nonce);
    }
    let Some(lease) = end_lease(cx, exchanges, leases, id) else { return };
    exchanges.forget_answer(cx, (lease.session, lease.nonce));
    if lease.is_here {
        let_go(cx, leases, &lease.installed, lease.nonce);
    }
    sessions.withdrawn.remember(cx.now, &lease);
    leave_return_path(cx, exchanges, sessions, (lease.session, lease.nonce), &lease.installed);
}

/// Ends what a SETUP brought that this node sent back, since it is not the last node of the path there any more.
pub(crate) fn leave_return_path(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    sessions: &mut Sessions,
    (session, nonce): ExchangeKey,
    Installed { user, module }: &Installed,
) {
    let session: SessionId = session.twin();
    // Those that others asked for on that path are theirs.
    let is_own = |lease: &Lease| lease.upstream.is_empty() && !lease.is_crowded && !lease.is_local && !lease.is_here;
    let is_back = |lease: &&Lease| (lease.session, lease.nonce) == (session, nonce) && is_own(lease);
    let ids = sessions.leases.all_of_module(user, module);
    if let Some(id) = ids.into_iter().find(|id| sessions.leases.get(*id).filter(is_back).is_some()) {
        withdraw(cx, exchanges, sessions, id);
    }
}

/// Has the node let go of what a SETUP holds, unless it came by another path, too, that still leads here.
pub(crate) fn let_go(cx: &mut Cx<'_>, leases: &Leases, Installed { user, module }: &Installed, nonce: Nonce) {
    let is_of_it = |lease: &Lease| lease.is_here && lease.nonce == nonce;
    if !leases.all_of_module(user, module).into_iter().filter_map(|id| leases.get(id)).any(is_of_it) {
        cx.out.withdraw(Withdrawal { user: user.clone(), module: module.clone(), nonce });
    }
}

/// Ends a lease whose module is gone on this node. What it answered does not hold any more. Nodes further on may have the module for a while,
/// and their news reach the requester.
pub(crate) fn lose_lease(cx: &mut Cx<'_>, exchanges: &mut Exchanges, sessions: &mut Sessions, id: LeaseId) {
    leave(cx, &mut sessions.leases, id);
    let Some(mut lease) = sessions.leases.remove(id) else { return };
    let key = (lease.session, lease.nonce);
    let over = if lease.downstream.is_some() {
        lease.text = Text::new("");
        let until = lease.until.min(cx.now + ENDED_TIME);
        let displaced = sessions.ended.keep(id, until, lease);
        cx.out.counters.ended_over_limit += u64::from(displaced.is_some());
        displaced
    } else {
        Some(lease)
    };
    exchanges.forget_answer(cx, key);
    if let Some(over) = over {
        exchanges.paths.leave(cx, over.session, over.mri);
    }
}

/// Ends a lease, and with it GIST's state for it.
pub(crate) fn end_lease(cx: &mut Cx<'_>, exchanges: &mut Exchanges, leases: &mut Leases, id: LeaseId) -> Option<Lease> {
    let lease = leases.remove(id)?;
    exchanges.paths.leave(cx, lease.session, Arc::clone(&lease.mri));
    Some(lease)
}

/// Takes an answer that nobody waits for: if the path leads elsewhere, whoever gave it is told.
pub(crate) fn answered_late(cx: &mut Cx<'_>, leases: &Leases, from: &Received, key: ExchangeKey, response: &Response) {
    let has_it = response.entries.iter().any(|entry| entry.outcome.lease_s().is_some());
    let mri = from.mri.inverted();
    let elsewhere = |lease: &Lease| lease.downstream.is_some_and(|next| !next.is_node_of(from.asker.sii));
    if let Some((id, _)) = leases.of_setup(key, &mri).filter(|(_, lease)| has_it && elsewhere(lease)) {
        cx.out.counters.tears_sent += 1;
        tell_tear(cx, leases, id, from.asker.sii, key.1);
    }
}

/// Tells who had a lease next that the path leads elsewhere.
pub(crate) fn leave(cx: &mut Cx<'_>, leases: &mut Leases, id: LeaseId) {
    let left = leases.change(id, |lease| lease.left.take().map(|left| (left, lease.nonce))).flatten();
    if let Some((Left { sii, nonce, .. }, newest)) = left.map(|(left, newest)| (*left, newest)) {
        cx.out.counters.tears_sent += 1;
        tell_tear(cx, leases, id, sii, nonce);
        if newest != nonce {
            // It may have got the newest request, too, and not have answered.
            tell_tear(cx, leases, id, sii, newest);
        }
    }
}

fn tell_tear(cx: &mut Cx<'_>, leases: &Leases, id: LeaseId, peer: SiiHandle, nonce: Nonce) {
    let Some(lease) = leases.get(id) else { return };
    let Installed { user, module } = &*lease.installed;
    let tear = Tear { session: lease.session, nonce, user: user.clone(), module: module.clone(), token: None };
    send_tear(cx, &lease.mri, peer, &tear);
}

/// Sends a TEAR, or the question that is one, past the path.
pub(super) fn send_tear(cx: &mut Cx<'_>, mri: &Mri, peer: SiiHandle, tear: &Tear) {
    let route = Route { session: tear.session, mri, sii: Some(peer), reliable: false, inside: false };
    cx.send(Sent::News, route, parts(&tear.emit(), tear.nonce), ANSWER_SEND_TIME, None);
}
