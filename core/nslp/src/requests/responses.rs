// SPDX-License-Identifier: Apache-2.0
//! Responses of peers: of the next node, and of neighbours off the path.

use std::net::IpAddr;

use netserv_model::domain::Side;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::nslp::Response;

use super::progress::{finish_if_ready, settle};
use super::state::Requests;
use crate::cx::{Cx, ExchangeKey, Received, note_hop};
use crate::exchanges::{Beyond, Exchange, Returning};
use crate::off_path;
use crate::sessions::answered_late;

/// Takes a response of a peer.
pub(crate) fn on_response(cx: &mut Cx<'_>, requests: &mut Requests, from: &Received, mut response: Response) {
    note_hop(&mut response.entries, from.asker.address, &from.hop);
    let key = (from.session, response.nonce);
    if let Some(neighbour) = off_path::answering_neighbour(&requests.exchanges, from, &response) {
        return settle_copy(cx, requests, key, neighbour, Some(response));
    }
    let waits = |exchange: &Exchange| {
        exchange.mri.as_ref() == Some(&from.mri.inverted()) && matches!(exchange.beyond, Beyond::Waiting { .. })
    };
    if !requests.exchanges.get(key).is_some_and(waits) || response.session != from.session {
        cx.out.counters.responses_late += 1;
        return answered_late(cx, &requests.sessions.leases, from, key, &response);
    }
    cx.out.counters.responses_received += 1;
    let Response { entries, mut incomplete, end, withheld, foreign, returned, beside, .. } = response;
    let foreign = match from.asker.side {
        Side::Inside => foreign,
        Side::Outside => entries.len(),
    };
    if incomplete.is_none() && end.is_none() {
        let detail = "the last node that answered does not say how it knows that it is the last";
        incomplete = Some(Refusal::new(RefusalKind::BadRequest, detail));
    }
    if let Some(exchange) = requests.exchanges.get_mut(key) {
        (exchange.downstream, exchange.has_next) = (Some(from.asker.sii), true);
        if let Some(stack) = returned.filter(|_| exchange.message.wants_return()) {
            exchange.returning = Returning::Known(stack);
        }
    }
    settle(cx, requests, key, Beyond::Known { entries, incomplete, end, foreign, withheld, beside });
}

/// Takes what a neighbour off the path said, or that it said nothing.
pub(super) fn settle_copy(
    cx: &mut Cx<'_>,
    requests: &mut Requests,
    key: ExchangeKey,
    to: IpAddr,
    answer: Option<Response>,
) {
    if off_path::settle_copy(cx, &mut requests.exchanges, key, to, answer) {
        finish_if_ready(cx, requests, key);
    }
}
