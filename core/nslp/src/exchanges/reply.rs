// SPDX-License-Identifier: Apache-2.0
//! Answers to peers: what goes out of the domain says no more than its operator shows.

use std::time::Duration;

use netserv_model::domain::{DomainPolicy, Side, Stack};
use netserv_model::notify::Notify;
use netserv_model::off_path::Off;
use netserv_model::request::{Probe, ReturnStack};
use netserv_model::{Nonce, Refusal, RefusalKind};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{self, Response};

use super::answer::refused;
use super::datagrams::cut_to_datagram;
use super::exchange::Exchange;
use super::table::Exchanges;
use crate::cx::{Asker, Cx, ExchangeKey, Received, Route, Sent};
use crate::limits::ANSWER_SEND_TIME;

/// Answers one of those who asked for what an exchange was about.
pub(crate) fn answer_exchange(
    cx: &mut Cx<'_>,
    exchanges: &Exchanges,
    key: ExchangeKey,
    requested: &Mri,
    answer: &Response,
    asker: Asker,
) {
    let shown = exchanges
        .get(key)
        .map_or_else(Shown::default, |exchange| Shown { own: exchange.has_own_entry(), stranger: exchange.stranger() });
    send_answer(cx, requested, answer, asker, &shown);
}

/// Says that this node has the request from elsewhere, and so did not ask so many nodes off the path.
pub(crate) fn answer_seen(cx: &mut Cx<'_>, exchanges: &Exchanges, key: ExchangeKey, from: &Received, missing: u32) {
    let detail = format!("{} works on this request already; the path may be a loop", cx.config.node);
    let incomplete = Some(Refusal::new(RefusalKind::Replayed, detail));
    let (session, nonce) = key;
    let beside = Off { missing, ..Off::default() };
    let answer = Response { incomplete, beside, ..Response::empty(session, nonce) };
    let stranger = exchanges.get(key).and_then(Exchange::stranger);
    send_answer(cx, &from.mri, &answer, from.asker, &Shown { own: false, stranger });
}

/// Answers for this node alone and keeps nothing; the request goes no further.
pub(crate) fn refuse(cx: &mut Cx<'_>, from: &Received, nonce: Nonce, refusal: Refusal) {
    let detail = format!("{} sent the request no further", cx.config.node);
    let incomplete = Some(Refusal::new(refusal.kind, detail));
    let entries = vec![refused(&cx.config.node, Some(from.local), refusal, Duration::ZERO)];
    let answer = Response { entries, incomplete, ..Response::empty(from.session, nonce) };
    // Nobody has proven anything.
    let shown = Shown { own: true, stranger: Some(Probe::default()) };
    send_answer(cx, &from.mri, &answer, from.asker, &shown);
}

/// What an answer is that goes out.
#[derive(Clone, Default)]
struct Shown {
    /// The first entry is this node's own.
    own: bool,
    /// What a stranger asked, if it is one who asks.
    stranger: Option<Probe>,
}

/// Answers whoever asked, as far as it may know.
fn send_answer(cx: &mut Cx<'_>, requested: &Mri, answer: &Response, asker: Asker, shown: &Shown) {
    let shown = match asker.side {
        Side::Inside => answer.clone(),
        Side::Outside => outside_view(cx.domain, answer.clone(), shown),
    };
    let shown = if asker.by_datagram { cut_to_datagram(shown) } else { shown };
    let pieces = nslp::parts(&shown.emit(), answer.nonce);
    let (sii, reliable) = (Some(asker.sii), !asker.by_datagram);
    let route = Route { session: answer.session, mri: &requested.inverted(), sii, reliable, inside: false };
    cx.send(Sent::Answer, route, pieces, ANSWER_SEND_TIME, None);
}

fn outside_view(policy: &DomainPolicy, answer: Response, shown: &Shown) -> Response {
    let Response { session, nonce, entries, incomplete, end, mut withheld, foreign, returned, mut beside, unknown } =
        answer;
    if !policy.names_nodes_beside(shown.stranger.as_ref()) {
        beside.nodes.drain(..).for_each(|beside| withheld.add(&beside.report.outcome));
    }
    let stack = Stack { entries, foreign, withheld, incomplete, end };
    let Stack { entries, foreign, withheld, incomplete, end } =
        policy.shown_outside(stack, shown.own, shown.stranger.as_ref());
    // Whose nodes the return path has is not told apart.
    let returned = returned.map(|_| {
        let detail = "the operator of a domain on the path does not show the way back";
        let incomplete = Some(Refusal::new(RefusalKind::OutsideDomain, detail));
        ReturnStack { incomplete, ..ReturnStack::default() }
    });
    Response { session, nonce, entries, incomplete, end, withheld, foreign, returned, beside, unknown }
}

/// Returns news as they go out where nodes are not named.
pub(crate) fn anonymous(notify: &Notify) -> Notify {
    let detail = "the operator of a domain on the path does not show where".to_owned();
    let node = WITHHELD.parse().expect("it is a node name");
    Notify { node, nodes: Vec::new(), detail, ..notify.clone() }
}

/// Stands for nodes that are not named.
const WITHHELD: &str = "withheld";
