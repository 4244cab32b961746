// SPDX-License-Identifier: Apache-2.0
//! Nodes beside the path: a request that is for them goes to neighbours, on flows of its own, and no further than its user
//! signed.

use std::net::IpAddr;

use netserv_gist::{ApiCall, SiiHandle};
use netserv_model::limits::BESIDE_MAX;
use netserv_model::off_path::{Beside, Off, Shape};
use netserv_model::request::Body;
use netserv_model::{Instant, SessionId};
use netserv_wire::gist::{Mri, PathCoupled};
use netserv_wire::nslp::{self, Envelope, Response, Spread};

use super::{Nslp, Received, Route, Sent};
use crate::exchange::{Beyond, Exchange, ExchangeKey, Own, Requester, Spreading, budget_of};
use crate::limits::{COPIES_MAX, FANOUT_MAX};

impl Nslp {
    /// Sends a request to nodes beside the path once: to those within its shape, and a REMOVE to those that got its SETUP. Returns
    /// whether this node waits for their answers.
    ///
    /// By then the path's own nodes have the request, so that none of them gets it from beside first.
    pub(super) fn spread_if_due(&mut self, now: Instant, key: ExchangeKey) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return false };
        if exchange.spreading != Spreading::NotYet {
            return false;
        }
        exchange.spreading = Spreading::Done;
        // Who asked spreads it, too, after this node has answered.
        let time = exchange.timer.since(now) / 2;
        if budget_of(time).is_none() {
            return false;
        }
        let mut ways = self.brought.followed(now, key.0, exchange);
        let spread = exchange.spreads(self.config.host_only);
        if let Some(spread) = spread {
            let except = exchange.next_on_path();
            let (named, own) = (&self.config.beside, &self.config.own_addresses);
            let mut others = self.neighbourhood.others(now, named, own, &except);
            others.retain(|neighbour| !ways.iter().any(|(followed, _)| *followed == neighbour.address));
            let most = others.len().min(FANOUT_MAX).min(usize::from(spread.copies));
            exchange.beside.missing = u32::try_from(others.len() - most).unwrap_or(u32::MAX);
            ways.extend(others.into_iter().take(most).map(|neighbour| (neighbour.address, neighbour.local)));
        }
        let wanted = ways.len();
        ways.truncate(self.copies.take_up_to(now, wanted));
        let over = wanted - ways.len();
        self.counters.copies_over_limit += u64::try_from(over).unwrap_or(u64::MAX);
        exchange.beside.missing += u32::try_from(over).unwrap_or(u32::MAX);
        exchange.share = Some(spread.map_or(Spread { radius: 0, copies: 0 }, |spread| Spread {
            radius: spread.radius - 1,
            copies: share_of(spread.copies, ways.len()),
        }));
        ways.retain(|(neighbour, own)| {
            let flow = PathCoupled::new(*own, *neighbour).map(Mri::PathCoupled);
            exchange.beside.missing += u32::from(flow.is_none());
            flow.map(|mri| exchange.copies.insert(*neighbour, mri)).is_some()
        });
        self.brought.note_to(now, key.0, &exchange.message, &ways);
        if ways.is_empty() {
            return false;
        }
        exchange.spreading = Spreading::Waiting;
        self.timers.remove(&(exchange.timer, key));
        exchange.timer = now + time;
        self.timers.insert((exchange.timer, key));
        for (address, _) in ways {
            self.counters.copies_sent += 1;
            self.send_copy(now, key, address, true);
        }
        true
    }

    /// Sends a request to a neighbour that has not answered.
    pub(super) fn send_copy(&mut self, now: Instant, key: ExchangeKey, to: IpAddr, reliable: bool) {
        let Some(exchange) = self.exchanges.get(&key) else { return };
        let Some(mri) = exchange.copies.get(&to).cloned() else { return };
        let time = exchange.timer.since(now);
        let passed = Some(exchange.passed.saturating_add(1));
        let (is_outside, copy) = (exchange.is_outside, exchange.share);
        let envelope = Envelope { budget: budget_of(time), passed, copy, is_outside, ..Envelope::default() };
        let pieces = nslp::parts(&envelope.emit(&exchange.message), key.1);
        let inside = !self.domain.let_out.have(exchange.message.body(), exchange.message.user());
        let route = Route { session: key.0, mri: &mri, sii: None, reliable, inside };
        self.send(Sent::Copy(key, to), route, pieces, time, None);
    }

    /// Returns whether a request is a REMOVE from the neighbour that sent the module's SETUP here. This node is meant by it then,
    /// whichever nodes of the path it names.
    pub(super) fn follows(&self, session: SessionId, exchange: &Exchange) -> bool {
        let Requester::Upstream(peers) = &exchange.requester else { return false };
        let by = |address| self.brought.is_by(session, &exchange.message, address);
        exchange.copy.is_some() && peers.iter().any(|asker| by(asker.address))
    }

    /// Takes the answer of a neighbour, if this is one; otherwise gives it back.
    pub(super) fn answered_beside(&mut self, now: Instant, from: &Received, response: Response) -> Option<Response> {
        let key = (response.session, response.nonce);
        let mri = from.mri.inverted();
        let address = mri.addresses().map(|(_, destination)| destination);
        let waits = |exchange: &&Exchange| address.is_some_and(|to| exchange.copies.get(&to) == Some(&mri));
        let is_waited_for = from.session == key.0 && self.exchanges.get(&key).filter(waits).is_some();
        match address.filter(|_| is_waited_for) {
            Some(address) => {
                self.settle_copy(now, key, address, Some(response));
                None
            }
            None => Some(response),
        }
    }

    /// Takes what a neighbour said, or that it said nothing.
    pub(super) fn settle_copy(&mut self, now: Instant, key: ExchangeKey, to: IpAddr, answer: Option<Response>) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let Some(mri) = exchange.copies.remove(&to) else { return };
        self.retransmissions.end((key, Some(to)));
        exchange.beside.add(answer.map_or_else(nobody, off_of), BESIDE_MAX);
        let is_last = exchange.copies.is_empty();
        if is_last {
            exchange.spreading = Spreading::Done;
        }
        self.give_up_copy(key.0, mri);
        if is_last {
            self.finish_if_ready(now, key);
        }
    }

    /// Waits for no neighbour any more.
    pub(super) fn give_up_copies(&mut self, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let copies = std::mem::take(&mut exchange.copies);
        for (to, mri) in copies {
            self.retransmissions.end((key, Some(to)));
            if let Some(exchange) = self.exchanges.get_mut(&key) {
                exchange.beside.add(nobody(), BESIDE_MAX);
                exchange.spreading = Spreading::Done;
            }
            self.give_up_copy(key.0, mri);
        }
    }

    fn give_up_copy(&mut self, session: SessionId, mri: Mri) {
        let (nslp_id, lifetime) = (self.config.nslp_id, std::time::Duration::ZERO);
        let (session, mri) = (Some(session), Some(mri));
        self.api_calls.push_back(ApiCall::SetStateLifetime { nslp_id, session, mri, lifetime });
    }
}

impl Exchange {
    /// Returns how far the request goes beside the path from here, if it does: only a node that took the request of a proven
    /// user sends it to others.
    fn spreads(&self, host_only: bool) -> Option<Spread> {
        let off_path = self.message.off_path()?;
        let is_proven = self.is_signed() || !matches!(self.message.body(), Body::Probe(_));
        let took = matches!(&self.own, Own::Reported(report) if report.outcome.is_ok()) && self.is_vouched;
        if self.mri.is_none() || self.requester == Requester::Nobody || host_only || !is_proven || !took {
            return None;
        }
        if let Some(Spread { radius, copies }) = self.copy {
            let radius = radius.min(off_path.radius - 1);
            return Some(Spread { radius, copies: copies.min(COPIES_MAX) }).filter(|_| radius > 0);
        }
        let is_centre = match off_path.shape {
            Shape::Bubble => self.passed == 0,
            Shape::Balloon => self.is_last_known(),
            Shape::Hose => true,
        };
        is_centre.then_some(Spread { radius: off_path.radius, copies: COPIES_MAX })
    }

    /// Returns whether no node further on answered.
    fn is_last_known(&self) -> bool {
        match &self.beyond {
            Beyond::Waiting { .. } => false,
            Beyond::Known { entries, withheld, .. } => entries.is_empty() && withheld.nodes == 0,
        }
    }

    /// Returns the previous nodes and the next one, which have the request.
    fn next_on_path(&self) -> Vec<(IpAddr, Option<SiiHandle>)> {
        let destination = self.mri.as_ref().and_then(Mri::addresses);
        let previous = match &self.requester {
            Requester::Upstream(peers) => peers.iter().map(|peer| (peer.address, Some(peer.sii))).collect(),
            Requester::Local(_) | Requester::Nobody | Requester::Return(_) => Vec::new(),
        };
        let ends = destination.into_iter().flat_map(|(source, destination)| [source, destination]);
        let ends = ends.map(|address| (address, self.downstream));
        previous.into_iter().chain(ends).collect()
    }
}

/// Returns how many messages each of so many receivers may send on, so that all together are no more than there may be.
fn share_of(copies: u16, count: usize) -> u16 {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    copies.saturating_sub(count).checked_div(count).unwrap_or(0)
}

/// Returns what a neighbour's answer tells; one that has the request already tells nothing.
fn off_of(response: Response) -> Off {
    let Response { entries, beside, .. } = response;
    let own = entries.into_iter().take(1).map(|report| Beside { hops: 1, report });
    let further =
        beside.nodes.into_iter().map(|Beside { hops, report }| Beside { hops: hops.saturating_add(1), report });
    Off { nodes: own.chain(further).collect(), missing: beside.missing }
}

fn nobody() -> Off {
    Off { nodes: Vec::new(), missing: 1 }
}
