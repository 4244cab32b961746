// SPDX-License-Identifier: Apache-2.0
//! A request on its way to the next node.

use netserv_wire::nslp::{self, Envelope};

use super::table::Exchanges;
use crate::cx::{Cx, ExchangeKey, Route, Sent};

pub(crate) fn send_request(cx: &mut Cx<'_>, exchanges: &Exchanges, key: ExchangeKey) {
    let Some(exchange) = exchanges.get(key) else { return };
    let Some(mri) = &exchange.mri else { return };
    let envelope = Envelope {
        budget: exchange.budget(cx.now),
        passed: Some(exchange.passed.saturating_add(u32::from(!cx.config.host_only))),
        may_return: exchange.may_return,
        is_outside: exchange.is_outside,
        is_afresh: exchange.is_afresh,
        is_back: exchange.is_back,
        ..Envelope::default()
    };
    let pieces = nslp::parts(&envelope.emit(&exchange.message), key.1);
    let inside = cx.stays_inside(&exchange.message);
    let reliable = !exchanges.retransmissions.has((key, None));
    let route = Route { session: key.0, mri, sii: None, reliable, inside };
    cx.send(Sent::Request(key), route, pieces, exchange.timer.since(cx.now), exchange.hops);
}
