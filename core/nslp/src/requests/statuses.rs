// SPDX-License-Identifier: Apache-2.0
//! What became of messages that GIST was given to send.

use netserv_gist::{ApiError, FailReason, MessageHandle, NoPeerReason, SendStatus};
use netserv_model::request::PathEnd;
use netserv_model::{Refusal, RefusalKind};

use super::progress::{resend_or_settle, settle};
use super::responses::settle_copy;
use super::state::Requests;
use crate::cx::{Cx, ExchangeKey, Sent};
use crate::exchanges::{Beyond, turn_to_datagrams};
use crate::off_path::turn_copy_to_datagrams;

/// Takes GIST's refusal of a call: no status will follow for its message.
pub(crate) fn on_api_error(cx: &mut Cx<'_>, requests: &mut Requests, handle: MessageHandle, error: ApiError) {
    match cx.out.settled(handle) {
        None => {}
        Some(Sent::Answer) => cx.out.counters.responses_lost += 1,
        Some(Sent::News) => cx.out.counters.news_dropped += 1,
        Some(Sent::Copy(key, to)) => settle_copy(cx, requests, key, to, None),
        Some(Sent::Request(key)) if error == ApiError::OwnDestination => {
            settle(cx, requests, key, Beyond::nobody(Some(PathEnd::Destination)));
        }
        Some(Sent::Request(key)) => {
            let detail = format!("{} could not send the request on: {error}", cx.config.node);
            settle(cx, requests, key, Beyond::unknown(Refusal::new(RefusalKind::NodeFailed, detail)));
        }
    }
}

/// Takes what became of a message.
pub(crate) fn on_status(cx: &mut Cx<'_>, requests: &mut Requests, handle: MessageHandle, status: SendStatus) {
    let is_lost = match status {
        SendStatus::Sent => false,
        SendStatus::NoPeer(_) | SendStatus::Failed(_) => true,
    };
    match cx.out.settled(handle) {
        None => {}
        Some(Sent::Answer) => cx.out.counters.responses_lost += u64::from(is_lost),
        Some(Sent::News) => cx.out.counters.news_dropped += u64::from(is_lost),
        Some(Sent::Copy(key, to)) => {
            let goes_on = match status {
                SendStatus::Sent => true,
                SendStatus::Failed(FailReason::NoConnection) => {
                    turn_copy_to_datagrams(cx, &mut requests.exchanges, key, to)
                }
                // The next copy may go.
                SendStatus::Failed(FailReason::RateLimited) => requests.exchanges.retransmissions.has((key, Some(to))),
                SendStatus::NoPeer(_) | SendStatus::Failed(_) => false,
            };
            if !goes_on {
                settle_copy(cx, requests, key, to, None);
            }
        }
        Some(Sent::Request(key)) => match status {
            SendStatus::Sent => {
                if let Some(exchange) = requests.exchanges.get_mut(key)
                    && let Beyond::Waiting { sent, .. } = &mut exchange.beyond
                {
                    (*sent, exchange.has_next) = (true, true);
                }
            }
            SendStatus::NoPeer(reason) => on_no_peer(cx, requests, key, reason),
            SendStatus::Failed(reason) => on_failed(cx, requests, key, reason),
        },
    }
}

fn on_failed(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey, reason: FailReason) {
    let exchanges = &mut requests.exchanges;
    if reason == FailReason::Outside {
        let waits = exchanges.get(key).is_some_and(|exchange| matches!(exchange.beyond, Beyond::Waiting { .. }));
        cx.out.counters.requests_kept_inside += u64::from(waits);
        let detail = format!("{} lets the request not out of the domain", cx.config.node);
        return settle(cx, requests, key, Beyond::unknown(Refusal::new(RefusalKind::OutsideDomain, detail)));
    }
    if reason == FailReason::NoConnection && turn_to_datagrams(cx, exchanges, key) {
        return;
    }
    if reason == FailReason::RateLimited && exchanges.retransmissions.has((key, None)) {
        // The next copy may go.
        return;
    }
    let again = matches!(reason, FailReason::Association | FailReason::NoAssociation);
    let detail = format!("{} could not reach the next node, since {}", cx.config.node, reason.text());
    resend_or_settle(cx, requests, key, again, detail);
}

fn on_no_peer(cx: &mut Cx<'_>, requests: &mut Requests, key: ExchangeKey, reason: NoPeerReason) {
    let was_resent = requests.exchanges.get_mut(key).is_some_and(|exchange| {
        exchange.has_next = false;
        exchange.beyond.was_resent()
    });
    let said = match reason {
        NoPeerReason::Unreachable if !was_resent => {
            return settle(cx, requests, key, Beyond::nobody(Some(PathEnd::Unreachable)));
        }
        NoPeerReason::EndpointFound if !was_resent => {
            return settle(cx, requests, key, Beyond::nobody(Some(PathEnd::EndpointFound)));
        }
        NoPeerReason::Hindered { kind, reporter } => format!("; {reporter} {}", kind.text()),
        NoPeerReason::Timeout | NoPeerReason::Unreachable | NoPeerReason::EndpointFound => String::new(),
    };
    let detail = format!("nobody after {} answered{said}; there may be nodes further on", cx.config.node);
    settle(cx, requests, key, Beyond::unknown(Refusal::new(RefusalKind::Timeout, detail)));
}
