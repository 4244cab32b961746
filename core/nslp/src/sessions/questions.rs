// SPDX-License-Identifier: Apache-2.0
//! Nodes that may be left behind ask those who asked them, whether their path still leads here.
//!
//! A TEAR counts from the connection or address that the SETUP came from. One that comes by another path, or gets lost, leaves a
//! module behind. Silence proves nothing: a node that refuses a SETUP, or that was started anew, knows nothing of it. So only
//! who still follows the SETUP, or did a short while ago, says that its path leads elsewhere.

use netserv_model::{Nonce, SessionId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Tear;
use rand::RngExt;

use super::lease::{Installed, Lease, LeaseId};
use super::leases::Leases;
use super::tears::send_tear;
use super::withdrawn::Withdrawn;
use crate::cx::{Burst, Cx, Received};
use crate::limits::QUESTIONS_BURST_INTERVAL;

/// Takes a sign that the path of a session's SETUPs does not lead here any more: nobody refreshes the state toward it.
pub(crate) fn doubt(cx: &Cx<'_>, leases: &mut Leases, session: SessionId, mri: &Mri) {
    let of_session = |(_, lease): &(LeaseId, &Lease)| lease.session == session;
    let ids: Vec<LeaseId> = leases.of_flow(mri).filter(of_session).map(|(id, _)| id).collect();
    ids.into_iter().for_each(|id| leases.ask_again(cx.now, id));
}

/// Asks those who asked for a lease, or does so later if there are too many questions.
pub(crate) fn question(cx: &mut Cx<'_>, leases: &mut Leases, questions: &mut Burst, id: LeaseId) {
    let now = cx.now;
    let askers = leases.get(id).map_or(0, |lease| lease.upstream.len());
    if !questions.take(now, askers) {
        cx.out.counters.questions_over_limit += 1;
        leases.change(id, |lease| lease.put_off_questions(now + QUESTIONS_BURST_INTERVAL));
        return;
    }
    let asked = leases.change(id, |lease| lease.question(now, || Nonce(cx.random.random())));
    let Some(lease) = leases.get(id) else { return };
    let (mri, session, nonce) = (lease.mri.inverted(), lease.session, lease.nonce);
    let Installed { user, module } = &*lease.installed;
    for (sii, token) in asked.unwrap_or_default() {
        cx.out.counters.questions_sent += 1;
        let tear = Tear { session, nonce, user: user.clone(), module: module.clone(), token: Some(token) };
        send_tear(cx, &mri, sii, &tear);
    }
}

/// Answers a node further on that asks whether the path of a SETUP leads there, if it does not.
pub(crate) fn on_question(cx: &mut Cx<'_>, leases: &Leases, withdrawn: &Withdrawn, from: &Received, tear: &Tear) {
    let Some(peer) = from.claims.filter(|_| tear.token.is_some() && tear.session == from.session) else {
        cx.out.counters.messages_unexpected += 1;
        return;
    };
    let mri = from.mri.inverted();
    // A newer SETUP may have gone by another path already.
    let of_it = |lease: &Lease| {
        (lease.session, &lease.installed.user, &lease.installed.module) == (tear.session, &tear.user, &tear.module)
    };
    let is_gone = match leases.of_flow(&mri).find(|(_, lease)| of_it(lease)) {
        Some((_, lease)) => match lease.downstream {
            Some(next) => !next.is_node_of(peer),
            None => !lease.is_partial,
        },
        None => withdrawn.has(cx.now, &mri, tear),
    };
    if is_gone {
        cx.out.counters.tears_sent += 1;
        send_tear(cx, &mri, peer, tear);
    }
}
