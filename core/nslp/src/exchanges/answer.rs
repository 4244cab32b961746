// SPDX-License-Identifier: Apache-2.0
//! The answer to a request: this node's entry in front of those of the nodes further on.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::api::RequestResult;
use netserv_model::domain;
use netserv_model::limits::STACK_ENTRIES_MAX;
use netserv_model::off_path::Off;
use netserv_model::request::{Body, NodeReport, Outcome, Probe, ReturnStack, Withheld};
use netserv_model::{Instant, NodeId, Refusal, RefusalKind, SessionId};
use netserv_wire::nslp::Response;

use super::arrival::Requester;
use super::exchange::{Beyond, Exchange, Own, Returning};
use super::targeting::not_last;

impl Exchange {
    /// Builds the answer out of what is known: this node's entry in front of the others.
    ///
    /// Call it when the exchange is ready, or after [`Exchange::give_up`].
    pub(crate) fn build_answer(&self, session: SessionId, host_only: bool) -> Response {
        let (mut entries, mut incomplete, end, mut foreign, withheld, further) = match &self.beyond {
            Beyond::Waiting { .. } => (Vec::new(), None, None, 0, Withheld::default(), Off::default()),
            Beyond::Known { entries, incomplete, end, foreign, withheld, beside } => {
                (entries.clone(), incomplete.clone(), *end, *foreign, *withheld, beside.clone())
            }
        };
        let asked_a_path = self.mri.is_some() && matches!(self.requester, Requester::Local(_));
        if asked_a_path && host_only && entries.is_empty() && withheld.nodes == 0 && incomplete.is_none() {
            incomplete = Some(Refusal::new(RefusalKind::NoNode, "no NetServ node answered on the path"));
        }
        if let Own::Reported(report) = &self.own {
            entries.insert(0, (**report).clone());
        }
        if entries.len() > STACK_ENTRIES_MAX {
            let detail = format!("the response stack holds {STACK_ENTRIES_MAX} entries, the path has more nodes");
            foreign = foreign.saturating_sub(entries.len() - STACK_ENTRIES_MAX);
            entries.truncate(STACK_ENTRIES_MAX);
            incomplete = Some(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        let end = end.filter(|_| incomplete.is_none());
        let returned = if let Returning::Known(stack) = &self.returning { Some(stack.clone()) } else { None };
        let nonce = self.message.nonce();
        let beside = self.copies.said_with(further);
        Response { session, nonce, entries, incomplete, end, withheld, foreign, returned, beside, unknown: Vec::new() }
    }

    /// Returns whether the first entry of the answer is this node's own.
    pub(crate) fn has_own_entry(&self) -> bool {
        matches!(self.own, Own::Reported(_))
    }

    /// Returns what a stranger asked, if this node does not know who asks.
    pub(crate) fn stranger(&self) -> Option<Probe> {
        let own = if let Own::Reported(report) = &self.own { Some(&report.outcome) } else { None };
        domain::stranger(self.message.body(), self.is_signed() && self.is_vouched, own)
    }

    /// Returns whether somebody is named who signed it; a controller does not check one without the other.
    pub(crate) fn is_signed(&self) -> bool {
        self.message.user().is_some() && self.message.signature().is_some()
    }

    /// Settles for what is known when the time is up.
    pub(crate) fn give_up(&mut self, now: Instant, node: &NodeId) {
        let waited_ms = now.since(self.started).as_millis();
        if matches!(self.own, Own::Unasked) && self.has_next {
            let reason = not_last(self.message.target().scope).to_owned();
            let report = unreported(node, self.address, Outcome::NotTargeted { reason }, now.since(self.started));
            (self.own, self.is_vouched) = (Own::Reported(Box::new(report)), false);
        }
        if matches!(self.own, Own::Unasked | Own::Pending) {
            let refusal = match (&self.own, self.message.body()) {
                (Own::Pending, Body::Setup(_)) => Refusal::new(
                    RefusalKind::InProgress,
                    format!("accepted; not done after {waited_ms} ms, and goes on"),
                ),
                _ => Refusal::new(RefusalKind::Timeout, format!("not done after {waited_ms} ms; it may still be")),
            };
            self.own = Own::Reported(Box::new(refused(node, self.address, refusal, now.since(self.started))));
        }
        if matches!(self.returning, Returning::Waiting) {
            let detail = format!("nothing came back to {node} within {waited_ms} ms");
            let incomplete = Some(Refusal::new(RefusalKind::Timeout, detail));
            self.returning = Returning::Known(ReturnStack { incomplete, ..ReturnStack::default() });
        }
        if matches!(self.beyond, Beyond::Waiting { .. }) {
            let detail = format!("the node after {node} did not answer within {waited_ms} ms");
            self.beyond = Beyond::unknown(Refusal::new(RefusalKind::Timeout, detail));
        }
    }
}

/// Returns what a local client is told.
pub(crate) fn result(answer: Response, took: Duration) -> RequestResult {
    RequestResult {
        session: answer.session,
        nodes: answer.entries,
        incomplete: answer.incomplete,
        withheld: answer.withheld,
        returned: answer.returned,
        beside: answer.beside,
        end: answer.end,
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    }
}

/// Builds the entry of a node that did nothing.
pub(crate) fn refused(node: &NodeId, address: Option<IpAddr>, refusal: Refusal, took: Duration) -> NodeReport {
    unreported(node, address, Outcome::Refused(refusal), took)
}

/// Builds the entry of a node whose controller said nothing.
fn unreported(node: &NodeId, address: Option<IpAddr>, outcome: Outcome, took: Duration) -> NodeReport {
    NodeReport {
        node: node.clone(),
        address: address.unwrap_or(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)),
        outcome,
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        hop: None,
        load: None,
        modules: Vec::new(),
        blocks: Vec::new(),
        environments: Vec::new(),
        policy: None,
    }
}
