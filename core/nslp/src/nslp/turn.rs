// SPDX-License-Identifier: Apache-2.0
//! At the last node: a request that is sent back to its requester, by a flow of its own.

use std::net::IpAddr;

use netserv_model::request::{Outcome, PathEnd, ReturnStack};
use netserv_model::{Instant, Refusal, RefusalKind};
use netserv_wire::gist::{Mri, PathCoupled};
use netserv_wire::nslp::Response;

use super::Nslp;
use crate::exchange::{Arrival, Beyond, Exchange, ExchangeKey, Own, Requester, Returning};
use crate::limits::PENDING_MAX;

impl Nslp {
    /// Sends a request back to its requester, if it is to be, this is the last node, and nobody further on did.
    pub(super) fn turn(&mut self, now: Instant, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(&key) else { return };
        let asked = exchange.may_return && exchange.message.wants_return();
        let by_peer = matches!(exchange.requester, Requester::Upstream(_));
        let is_open = matches!(exchange.returning, Returning::No) && exchange.is_pending();
        let is_named = matches!(exchange.beyond, Beyond::Known { end: Some(PathEnd::Named), .. });
        if !asked || !by_peer || !is_open || is_named || exchange.is_last() != Some(true) {
            return;
        }
        let is_stranger = exchange.is_outside && exchange.stranger().is_some();
        if is_stranger && matches!(exchange.own, Own::Unasked | Own::Pending) {
            // Who asks the controller has still to say.
            return;
        }
        let returning = if is_stranger {
            let detail = format!("{} sends nothing back for strangers outside of its domain", self.config.node);
            Err(Refusal::new(RefusalKind::OutsideDomain, detail))
        } else {
            self.start_return(now, key)
        };
        let returning = match returning {
            Ok(returning) => returning,
            Err(refusal) => Returning::Known(ReturnStack { incomplete: Some(refusal), ..ReturnStack::default() }),
        };
        if let Some(exchange) = self.exchanges.get_mut(&key)
            && matches!(exchange.returning, Returning::No)
        {
            exchange.returning = returning;
        }
    }

    fn start_return(&mut self, now: Instant, key: ExchangeKey) -> Result<Returning, Refusal> {
        let node = self.config.node.clone();
        let refusal = |kind, why: &str| Refusal::new(kind, format!("{node} did not send the request back: {why}"));
        let back = (key.0.twin(), key.1);
        match self.exchanges.get(&back).map(|exchange| exchange.answer.clone()) {
            Some(Some(answer)) => return Ok(Returning::Known(stack_of(answer))),
            Some(None) => return Err(refusal(RefusalKind::Replayed, "it does so already")),
            None => {}
        }
        let Some(exchange) = self.exchanges.get(&key) else { return Ok(Returning::No) };
        let ends = exchange.mri.as_ref().and_then(Mri::addresses);
        let Some((source, time)) = ends.map(|(source, _)| source).zip(exchange.budget(now)) else {
            return Err(refusal(RefusalKind::Timeout, "its time is up"));
        };
        let Some(own) = self.own_address_toward(exchange, source) else {
            return Err(refusal(RefusalKind::NodeFailed, "it has no address of that IP version"));
        };
        let mri = PathCoupled::new(own, source).map(Mri::PathCoupled);
        let message = exchange.message.clone();
        let (is_outside, is_afresh) = (exchange.is_outside, exchange.is_afresh);
        if self.pending >= PENDING_MAX || !self.returns.take(now, source) {
            self.counters.returns_over_limit += 1;
            return Err(refusal(RefusalKind::QuotaExceeded, "it does so for too many"));
        }
        self.counters.returns_sent += 1;
        let (requester, address) = (Requester::Return(key), Some(own));
        if let Some(exchange) = self.exchanges.get_mut(&key) {
            exchange.returning = Returning::Waiting;
        }
        let arrival =
            Arrival { time, is_outside, is_afresh, is_back: true, ..Arrival::own(message, requester, mri, address) };
        self.start(now, back, arrival);
        // It may be answered at once.
        Ok(Returning::Waiting)
    }

    /// Takes the answer of those on the way back.
    pub(super) fn returned(&mut self, now: Instant, key: ExchangeKey, answer: Response) {
        if let Some(exchange) = self.exchanges.get_mut(&key)
            && matches!(exchange.returning, Returning::Waiting)
        {
            exchange.returning = Returning::Known(stack_of(answer));
            self.finish_if_ready(now, key);
        }
    }

    /// Returns what this node said of the same request on its other way, if that was for it; what was not done in time may be
    /// done by now.
    pub(super) fn said_on_the_other_way(&self, key: ExchangeKey, exchange: &Exchange) -> Option<Own> {
        let other = self.exchanges.get(&(key.0.twin(), key.1))?;
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

    fn own_address_toward(&self, exchange: &Exchange, source: IpAddr) -> Option<IpAddr> {
        let destination = exchange.mri.as_ref().and_then(Mri::addresses).map(|(_, destination)| destination);
        let own = &self.config.own_addresses;
        let wanted = destination.into_iter().chain(exchange.address).find(|address| own.contains(address));
        wanted.into_iter().chain(own.iter().copied()).find(|address| address.is_ipv4() == source.is_ipv4())
    }
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
