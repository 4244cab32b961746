// SPDX-License-Identifier: Apache-2.0
//! What is due: answers, copies of requests by datagram, and what leases wait for.

use super::progress::{give_up, start};
use super::state::Requests;
use crate::cx::Cx;
use crate::exchanges::{due_copy, send_request};
use crate::off_path::send_copy;
use crate::sessions::{end_lease, question};
use crate::verbs;

/// Answers requests whose time is up, and forgets those that were answered long ago.
pub(crate) fn answers_due(cx: &mut Cx<'_>, requests: &mut Requests) {
    while let Some((key, is_pending)) = requests.exchanges.due(cx.now) {
        if is_pending {
            give_up(cx, requests, key);
            cx.out.counters.requests_timed_out += 1;
        } else {
            requests.exchanges.forget(cx, key);
        }
    }
}

/// Sends the copies by datagram that are due.
pub(crate) fn copies_due(cx: &mut Cx<'_>, requests: &mut Requests) {
    let exchanges = &mut requests.exchanges;
    while let Some((key, neighbour)) = due_copy(cx, exchanges) {
        match neighbour {
            None => send_request(cx, exchanges, key),
            Some(to) => send_copy(cx, exchanges, key, to, false),
        }
    }
}

/// Ends leases, asks those who asked for them, or looks at their paths.
pub(crate) fn leases_due(cx: &mut Cx<'_>, requests: &mut Requests) {
    while let Some(over) = requests.sessions.ended.due(cx.now) {
        requests.exchanges.paths.leave(cx, over.session, over.mri);
    }
    loop {
        let Requests { exchanges, sessions, .. } = requests;
        let leases = &mut sessions.leases;
        let Some((id, lease)) = leases.due(cx.now).and_then(|id| Some((id, leases.get(id)?))) else { return };
        if lease.until <= cx.now {
            end_lease(cx, exchanges, leases, id);
        } else if lease.question_at().is_some_and(|at| at <= cx.now) {
            question(cx, leases, &mut sessions.questions, id);
        } else if let Some((key, arrival)) = verbs::look(cx, exchanges, leases, id) {
            start(cx, requests, key, arrival);
        }
    }
}
