// SPDX-License-Identifier: Apache-2.0
//! Requests that are answered as they come.

use std::collections::VecDeque;

use netserv_model::request::Outcome;
use netserv_model::{Nonce, Refusal, RefusalKind};

use crate::cx::Cx;
use crate::cx::request::{Key, Origin, PendingAnswer, not_installed};
use crate::tenants::Tenants;
use crate::tenants::tenant::{Task, Waiter};
use crate::users::quota::Nonces;

/// Refuses a SETUP, and those that are the same one and wait for it: it may come by several ways.
pub(crate) fn refuse_setup(
    cx: &mut Cx,
    tenants: &mut Tenants,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    refusal: &Refusal,
) {
    let same = |waiter: &Waiter| matches!(waiter.task, Task::Repeat) && waiter.origin.nonce == origin.nonce;
    let waiting = tenants.entry_mut(key).map(|entry| std::mem::take(&mut entry.waiting)).unwrap_or_default();
    let (repeats, others): (VecDeque<_>, VecDeque<_>) = waiting.into_iter().partition(same);
    if !others.is_empty() {
        tenants.entry_or_new(key).waiting = others;
    }
    for ticket in std::iter::once(ticket).chain(repeats.into_iter().map(|waiter| waiter.ticket)) {
        cx.answer_when_done(&key.0, ticket, Outcome::Refused(refusal.clone()));
    }
}

/// Answers a request that came once more, as those do that a node sends again when the path changes.
pub(crate) fn repeat(cx: &mut Cx, tenants: &Tenants, key: &Key, ticket: PendingAnswer, origin: Origin) {
    let now = cx.now.instant;
    let active = origin.nonce.and_then(|nonce| Some((tenants.active(key)?, nonce)));
    let in_force = active.and_then(|(active, nonce)| active.session_by(nonce));
    match in_force.map(|session| session.lease_end.since(now).as_secs()) {
        Some(lease_s) => cx.answer_when_done(&key.0, ticket, Outcome::Refreshed { lease_s }),
        None => {
            let detail = "another request came after this one, or what it installed is gone";
            cx.refuse(ticket, Refusal::new(RefusalKind::Replayed, detail));
        }
    }
}

/// Answers a REMOVE that came once more, as it does by the second way of a round trip.
pub(crate) fn remove_again(cx: &mut Cx, nonces: &Nonces, key: &Key, ticket: PendingAnswer, nonce: Nonce) {
    match nonces.has_removed(&key.0, nonce) {
        true => cx.answer_when_done(&key.0, ticket, Outcome::Removed),
        false => cx.refuse(ticket, not_installed(key)),
    }
}

/// Remembers that a REMOVE took something away.
pub(crate) fn note_removed(nonces: &mut Nonces, key: &Key, origin: Origin) {
    if let Some(nonce) = origin.nonce {
        nonces.note_removed(&key.0, nonce);
    }
}
