// SPDX-License-Identifier: Apache-2.0
//! At the last node: a request that is sent back to its requester, by a flow of its own.

use std::net::IpAddr;

use netserv_model::request::{Outcome, PathEnd, ReturnStack};
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::gist::{Mri, PathCoupled};
use netserv_wire::nslp::Response;

use crate::cx::{Cx, ExchangeKey, SourceBursts};
use crate::exchanges::{Arrival, Beyond, Exchange, Exchanges, Own, Requester, Returning};
use crate::limits::{PENDING_MAX, RETURNS_BURST_MAX, RETURNS_INTERVAL, RETURNS_OF_ALL_MAX};

/// Requests that were sent back lately.
#[derive(Debug)]
pub(crate) struct RoundTrips(SourceBursts);

impl Default for RoundTrips {
    fn default() -> RoundTrips {
        RoundTrips(SourceBursts::new(RETURNS_BURST_MAX, RETURNS_OF_ALL_MAX, RETURNS_INTERVAL))
    }
}

impl RoundTrips {
    /// Returns the exchange that sends a request back to its requester, if it is to be, this is the last node, and nobody
    /// further on did.
    pub(crate) fn begin(
        &mut self,
        cx: &mut Cx<'_>,
        exchanges: &mut Exchanges,
        key: ExchangeKey,
    ) -> Option<(ExchangeKey, Arrival)> {
        let exchange = exchanges.get(key)?;
        let asked = exchange.may_return && exchange.message.wants_return();
        let by_peer = matches!(exchange.requester, Requester::Upstream(_));
        let is_open = matches!(exchange.returning, Returning::No) && exchange.is_pending();
        let is_named = matches!(exchange.beyond, Beyond::Known { end: Some(PathEnd::Named), .. });
        if !asked || !by_peer || !is_open || is_named || exchange.is_last() != Some(true) {
            return None;
        }
        let is_stranger = exchange.is_outside && exchange.stranger().is_some();
        if is_stranger && matches!(exchange.own, Own::Unasked | Own::Pending) {
            // Who asks the controller has still to say.
            return None;
        }
        let begun = if is_stranger {
            let detail = format!("{} sends nothing back for strangers outside of its domain", cx.config.node);
            Err(Refusal::new(RefusalKind::OutsideDomain, detail))
        } else {
            self.begin_return(cx, exchanges, key, exchange)
        };
        let (returning, started) = match begun {
            Ok(Return::Started(back, arrival)) => (Returning::Waiting, Some((back, *arrival))),
            Ok(Return::Answered(stack)) => (Returning::Known(stack), None),
            Err(refusal) => {
                (Returning::Known(ReturnStack { incomplete: Some(refusal), ..ReturnStack::default() }), None)
            }
        };
        exchanges.get_mut(key)?.returning = returning;
        started
    }

    fn begin_return(
        &mut self,
        cx: &mut Cx<'_>,
        exchanges: &Exchanges,
        key: ExchangeKey,
        exchange: &Exchange,
    ) -> Result<Return, Refusal> {
        let node = &cx.config.node;
        let refusal = |kind, why: &str| Refusal::new(kind, format!("{node} did not send the request back: {why}"));
        let back = (key.0.twin(), key.1);
        match exchanges.get(back).map(|exchange| exchange.answer.clone()) {
            Some(Some(answer)) => return Ok(Return::Answered(stack_of(answer))),
            Some(None) => return Err(refusal(RefusalKind::Replayed, "it does so already")),
            None => {}
        }
        let ends = exchange.mri.as_ref().and_then(Mri::addresses);
        let Some((source, time)) = ends.map(|(source, _)| source).zip(exchange.budget(cx.now)) else {
            return Err(refusal(RefusalKind::Timeout, "its time is up"));
        };
        let Some(own) = own_address_toward(&cx.config.own_addresses, exchange, source) else {
            return Err(refusal(RefusalKind::NodeFailed, "it has no address of that IP version"));
        };
        if exchanges.pending() >= PENDING_MAX || !self.0.take(cx.now, source) {
            cx.out.counters.returns_over_limit += 1;
            return Err(refusal(RefusalKind::QuotaExceeded, "it does so for too many"));
        }
        cx.out.counters.returns_sent += 1;
        let mri = PathCoupled::new(own, source).map(Mri::PathCoupled);
        let arrival = Arrival::own(exchange.message.clone(), Requester::Return(key), mri, Some(own));
        let (is_outside, is_afresh) = (exchange.is_outside, exchange.is_afresh);
        let arrival = Arrival { time, is_outside, is_afresh, is_back: true, ..arrival };
        Ok(Return::Started(back, Box::new(arrival)))
    }
}

/// A request on its return path.
enum Return {
    /// It begins here.
    Started(ExchangeKey, Box<Arrival>),
    /// It is over already.
    Answered(ReturnStack),
}

/// Takes the answer of those on the return path; returns whether this node waited for it.
pub(crate) fn returned(exchanges: &mut Exchanges, key: ExchangeKey, answer: Response) -> bool {
    let waits = |exchange: &&mut Exchange| matches!(exchange.returning, Returning::Waiting);
    let Some(exchange) = exchanges.get_mut(key).filter(waits) else { return false };
    exchange.returning = Returning::Known(stack_of(answer));
    true
}

/// Returns what this node said of the same request on its other path, if that was for it; what was not done in time may be
/// done by now.
pub(crate) fn said_on_the_other_way(exchanges: &Exchanges, key: ExchangeKey, exchange: &Exchange) -> Option<Own> {
    let other = exchanges.get((key.0.twin(), key.1))?;
    let same = exchange.message.wants_return() && other.message == exchange.message;
    match &other.own {
        Own::Reported(report) if same && is_final(&report.outcome) => {
            let address = exchange.address.unwrap_or(report.address);
            let mut report = report.clone();
            (report.address, report.took_us) = (address, 0);
            Some(Own::Reported(report))
        }
        Own::Reported(_) | Own::Unasked | Own::Pending | Own::LeftOut => None,
    }
}

fn own_address_toward(own: &[IpAddr], exchange: &Exchange, source: IpAddr) -> Option<IpAddr> {
    let destination = exchange.mri.as_ref().and_then(Mri::addresses).map(|(_, destination)| destination);
    let wanted = destination.into_iter().chain(exchange.address).find(|address| own.contains(address));
    wanted.into_iter().chain(own.iter().copied()).find(|address| address.is_ipv4() == source.is_ipv4())
}

fn is_final(outcome: &Outcome) -> bool {
    let late = [RefusalKind::Timeout, RefusalKind::InProgress];
    let is_late = matches!(outcome, Outcome::Refused(refusal) if late.contains(&refusal.kind));
    !is_late && !outcome.is_not_targeted()
}

fn stack_of(answer: Response) -> ReturnStack {
    let Response { entries: nodes, mut incomplete, end, withheld, .. } = answer;
    if incomplete.is_none() && withheld.nodes > 0 {
        let detail = format!("operators do not show {} nodes on the way back", withheld.nodes);
        incomplete = Some(Refusal::new(RefusalKind::OutsideDomain, detail));
    }
    let end = end.filter(|_| incomplete.is_none());
    ReturnStack { nodes, incomplete, end }
}
