// SPDX-License-Identifier: Apache-2.0
//! A request that goes to neighbours off the path, on flows of its own.

use std::net::IpAddr;
use std::time::Duration;

use netserv_gist::SiiHandle;
use netserv_model::SessionId;
use netserv_model::off_path::{Beside, Off, Shape};
use netserv_model::request::Body;
use netserv_wire::gist::{Mri, PathCoupled};
use netserv_wire::nslp::{self, Envelope, Response, Spread};

use super::brought::{Brought, Receiver};
use super::state::OffPath;
use crate::cx::{Cx, ExchangeKey, Received, Route, Sent};
use crate::exchanges::{Beyond, Exchange, Exchanges, Own, Requester, budget_of};
use crate::limits::{COPIES_MAX, FANOUT_MAX};

/// Sends a request to nodes off the path once: to those within its shape, and a REMOVE to those that got its SETUP. Returns
/// whether this node waits for their answers.
///
/// By then the path's own nodes have the request, so that none of them gets it off the path first.
pub(crate) fn spread(cx: &mut Cx<'_>, exchanges: &mut Exchanges, off_path: &mut OffPath, key: ExchangeKey) -> bool {
    let Some(exchange) = exchanges.get_mut(key) else { return false };
    if !exchange.copies.begin() {
        return false;
    }
    // Who asked spreads it, too, after this node has answered.
    let time = exchange.timer.since(cx.now) / 2;
    if budget_of(time).is_none() {
        return false;
    }
    let receivers = choose(cx, off_path, key.0, exchange);
    if receivers.is_empty() {
        return false;
    }
    exchanges.set_timer(key, cx.now + time);
    for (address, _) in receivers {
        cx.out.counters.copies_sent += 1;
        send_copy(cx, exchanges, key, address, true);
    }
    true
}

/// Chooses the neighbours that a request goes to, and takes note of them.
fn choose(cx: &mut Cx<'_>, off_path: &mut OffPath, session: SessionId, exchange: &mut Exchange) -> Vec<Receiver> {
    let mut receivers = off_path.brought.followed(cx.now, session, exchange);
    let spread = exchange.spreads(cx.config.host_only);
    if let Some(spread) = spread {
        let except = exchange.next_on_path();
        let (named, own) = (&cx.config.beside, &cx.config.own_addresses);
        let mut others = off_path.neighbourhood.others(cx.now, named, own, &except);
        others.retain(|neighbour| !receivers.iter().any(|(followed, _)| *followed == neighbour.address));
        let most = others.len().min(FANOUT_MAX).min(usize::from(spread.copies));
        exchange.copies.leave_out(others.len() - most);
        receivers.extend(others.into_iter().take(most).map(|neighbour| (neighbour.address, neighbour.local)));
    }
    let wanted = receivers.len();
    receivers.truncate(off_path.copies.take_up_to(cx.now, wanted));
    let over = wanted - receivers.len();
    cx.out.counters.copies_over_limit += u64::try_from(over).unwrap_or(u64::MAX);
    exchange.copies.leave_out(over);
    exchange.copies.set_share(spread.map_or(Spread { radius: 0, copies: 0 }, |spread| Spread {
        radius: spread.radius - 1,
        copies: share_of(spread.copies, receivers.len()),
    }));
    receivers.retain(|(neighbour, own)| {
        let flow = PathCoupled::new(*own, *neighbour).map(Mri::PathCoupled);
        exchange.copies.leave_out(usize::from(flow.is_none()));
        flow.map(|mri| exchange.copies.add(*neighbour, mri)).is_some()
    });
    off_path.brought.note_to(cx.now, session, &exchange.message, &receivers);
    receivers
}

/// Sends a request to a neighbour that has not answered.
pub(crate) fn send_copy(cx: &mut Cx<'_>, exchanges: &Exchanges, key: ExchangeKey, to: IpAddr, reliable: bool) {
    let Some(exchange) = exchanges.get(key) else { return };
    let Some(mri) = exchange.copies.flow_to(to) else { return };
    let time = exchange.timer.since(cx.now);
    let passed = Some(exchange.passed.saturating_add(1));
    let (is_outside, copy) = (exchange.is_outside, exchange.copies.share());
    let envelope = Envelope { budget: budget_of(time), passed, copy, is_outside, ..Envelope::default() };
    let pieces = nslp::parts(&envelope.emit(&exchange.message), key.1);
    let inside = cx.stays_inside(&exchange.message);
    cx.send(Sent::Copy(key, to), Route { session: key.0, mri, sii: None, reliable, inside }, pieces, time, None);
}

/// Sends a request to a neighbour by datagram from here on, since that takes no connections; returns false if it does already.
pub(crate) fn turn_copy_to_datagrams(cx: &mut Cx<'_>, exchanges: &mut Exchanges, key: ExchangeKey, to: IpAddr) -> bool {
    let waits = exchanges.get(key).is_some_and(|exchange| exchange.copies.flow_to(to).is_some());
    if !waits || exchanges.retransmissions.has((key, Some(to))) {
        return false;
    }
    exchanges.retransmissions.begin(cx.now, (key, Some(to)));
    send_copy(cx, exchanges, key, to, false);
    true
}

/// Returns whether a request is a REMOVE from the neighbour that sent the module's SETUP here. This node is meant by it then,
/// whichever nodes of the path it names.
pub(crate) fn follows(brought: &Brought, session: SessionId, exchange: &Exchange) -> bool {
    let Requester::Upstream(peers) = &exchange.requester else { return false };
    let by = |address| brought.is_by(session, &exchange.message, address);
    exchange.copy.is_some() && peers.iter().any(|asker| by(asker.address))
}

/// Returns the neighbour that an answer is from, if this node waits for it.
pub(crate) fn answering_neighbour(exchanges: &Exchanges, from: &Received, response: &Response) -> Option<IpAddr> {
    let mri = from.mri.inverted();
    let (_, address) = mri.addresses()?;
    let exchange = exchanges.get((response.session, response.nonce))?;
    let waits = exchange.copies.flow_to(address) == Some(&mri);
    Some(address).filter(|_| waits && from.session == response.session)
}

/// Takes what a neighbour said, or that it said nothing. Returns whether it was the last one that this node waited for.
pub(crate) fn settle_copy(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    key: ExchangeKey,
    to: IpAddr,
    answer: Option<Response>,
) -> bool {
    let Some(exchange) = exchanges.get_mut(key) else { return false };
    let Some(mri) = exchange.copies.settle(to, answer.map(off_of)) else { return false };
    let is_last = !exchange.copies.are_waited_for();
    exchanges.retransmissions.end((key, Some(to)));
    cx.keep_state(key.0, mri, Duration::ZERO);
    is_last
}

/// Waits for no neighbour any more.
pub(crate) fn give_up_copies(cx: &mut Cx<'_>, exchanges: &mut Exchanges, key: ExchangeKey) {
    let Some(exchange) = exchanges.get_mut(key) else { return };
    for (to, mri) in exchange.copies.give_up() {
        exchanges.retransmissions.end((key, Some(to)));
        cx.keep_state(key.0, mri, Duration::ZERO);
    }
}

impl Exchange {
    /// Returns how far the request goes off the path from here, if it does: only a node that took the request of a proven
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
