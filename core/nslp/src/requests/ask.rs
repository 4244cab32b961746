// SPDX-License-Identifier: Apache-2.0
//! Asking the controller.

use netserv_model::request::Request;
use netserv_model::target::Target;
use netserv_wire::gist::Mri;

use super::state::Requests;
use crate::cx::{Cx, ExchangeKey};
use crate::exchanges::{Exchange, Own, Place, not_last};
use crate::off_path::follows;
use crate::round_trip::said_on_the_other_way;

/// Asks the controller, as soon as it is known whether the request is for this node.
pub(super) fn ask(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey) {
    let unasked = |exchange: &&Exchange| matches!(exchange.own, Own::Unasked);
    let Some(exchange) = requests.exchanges.get(key).filter(unasked) else { return };
    let is_path = exchange.mri.is_some();
    if cx.config.host_only && is_path && *exchange.message.target() != Target::default() {
        return says(requests, key, Own::LeftOut);
    }
    let Some(passed_by) = passed_by(cx, requests, key, exchange) else { return };
    let passed_by = passed_by.map(str::to_owned);
    let said = match passed_by {
        None => said_on_the_other_way(&requests.exchanges, key, exchange),
        Some(_) => None,
    };
    if let Some(said) = said {
        return says(requests, key, said);
    }
    let from = requests.exchanges.peer_of(exchange);
    let request = exchange.message.request(key.0);
    // Nodes beside the path take a copy whatever path it names.
    let is_beside = exchange.copy.is_some() && !follows(&requests.off_path.brought, key.0, exchange);
    let target = exchange.message.target();
    let is_named = !target.nodes.is_empty() || !target.domains.is_empty();
    let is_bound = if is_beside { is_named } else { request.is_bound || !is_path };
    let request = Request { passed_by: passed_by.clone(), from, is_bound, ..request };
    let id = exchange.request;
    if let Some(exchange) = requests.exchanges.get_mut(key) {
        (exchange.own, exchange.passed_by) = (Own::Pending, passed_by);
    }
    requests.exchanges.ask(id, key);
    cx.out.request(id, request);
}

fn says(requests: &mut Requests, key: ExchangeKey, own: Own) {
    if let Some(exchange) = requests.exchanges.get_mut(key) {
        exchange.own = own;
    }
}

/// Returns why a request is not for this node, or that it is; nothing as long as that is not known.
fn passed_by(
    cx: &Cx<'_>,
    Requests { sessions, off_path, .. }: &Requests,
    key: ExchangeKey,
    exchange: &Exchange,
) -> Option<Option<&'static str>> {
    let (leases, target) = (&sessions.leases, exchange.message.target());
    let in_force = |mri: &Mri| leases.in_force(key, &exchange.message, mri).is_some();
    // Whoever was the previous node says by TEAR that it is not any more.
    let was_first = |mri: &Mri| leases.of_setup(key, mri).is_some_and(|(_, lease)| lease.is_here && lease.is_first());
    let is_first = exchange.passed == 0 || exchange.mri.as_ref().is_some_and(was_first);
    let is_on_way_there = exchange.message.is_for_way_back() && !exchange.is_back && exchange.mri.is_some();
    let place = if cx.config.host_only || follows(&off_path.brought, key.0, exchange) {
        Place::Meant
    } else if is_on_way_there {
        Place::Passed("the request is for the nodes on the way back")
    } else {
        Place::of(target, &cx.config.node, cx.domain.name.as_ref(), is_first)
    };
    match place {
        Place::Meant => Some(None),
        Place::Passed(reason) => Some(Some(reason)),
        Place::IfLast => match exchange.is_last()? {
            true => Some(None),
            // Until another one has it.
            false if !exchange.is_done_beyond() && exchange.mri.as_ref().is_some_and(in_force) => Some(None),
            false => Some(Some(not_last(target.scope))),
        },
    }
}
