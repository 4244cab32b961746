// SPDX-License-Identifier: Apache-2.0
//! Neighbours that take no connections (RFC 5971 §4.1.2, §5.7.1): short requests go to them by datagram, again and again until
//! the answer comes, and answers that are too long for one are cut short.

use netserv_gist::limits::DATAGRAM_DATA_BYTES_MAX;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::nslp::Response;

use super::exchange::{Beyond, Exchange, budget_of};
use super::retransmissions::Target;
use super::sending::send_request;
use super::table::Exchanges;
use crate::cx::{Cx, ExchangeKey};

/// Sends a request by datagram from here on, since the next node takes no connections; returns false if it does already.
pub(crate) fn turn_to_datagrams(cx: &mut Cx<'_>, exchanges: &mut Exchanges, key: ExchangeKey) -> bool {
    let waits = |exchange: &Exchange| matches!(exchange.beyond, Beyond::Waiting { .. });
    if exchanges.retransmissions.has((key, None)) || !exchanges.get(key).is_some_and(waits) {
        return false;
    }
    exchanges.retransmissions.begin(cx.now, (key, None));
    send_request(cx, exchanges, key);
    true
}

/// Returns the next request of which a copy is due, and takes note that it is sent.
pub(crate) fn due_copy(cx: &mut Cx<'_>, exchanges: &mut Exchanges) -> Option<Target> {
    let now = cx.now;
    while let Some(target) = exchanges.retransmissions.due(now) {
        let (key, neighbour) = target;
        let goes_on = exchanges.get(key).is_some_and(|exchange| match neighbour {
            None => matches!(exchange.beyond, Beyond::Waiting { .. }) && exchange.budget(now).is_some(),
            Some(to) => exchange.copies.flow_to(to).is_some() && budget_of(exchange.timer.since(now)).is_some(),
        });
        if goes_on {
            exchanges.retransmissions.put_off(now, target);
            cx.out.counters.requests_retransmitted += 1;
            return Some(target);
        }
        exchanges.retransmissions.end(target);
    }
    None
}

/// Returns an answer as it fits a datagram: without what is farthest from whoever asked, and then it says so.
pub(super) fn cut_to_datagram(answer: Response) -> Response {
    let bytes = answer.emit().len();
    if bytes <= DATAGRAM_DATA_BYTES_MAX {
        return answer;
    }
    let detail =
        format!("the answer has {bytes} bytes, more than a datagram takes, and the node here takes no connection");
    let incomplete = Some(Refusal::new(RefusalKind::QuotaExceeded, detail));
    let Response { session, nonce, mut entries, mut withheld, .. } = answer;
    loop {
        let cut = Response {
            entries: entries.clone(),
            withheld,
            incomplete: incomplete.clone(),
            ..Response::empty(session, nonce)
        };
        if cut.emit().len() <= DATAGRAM_DATA_BYTES_MAX {
            return cut;
        }
        match entries.pop() {
            Some(entry) => withheld.add(&entry.outcome),
            None => return cut,
        }
    }
}
