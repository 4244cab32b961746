// SPDX-License-Identifier: Apache-2.0
//! At the domain's border: what goes out to whoever asked.

use netserv_model::domain::{DomainPolicy, Side, Stack};
use netserv_model::notify::Notify;
use netserv_model::request::{Probe, ReturnStack};
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{self, Response};

use super::datagrams::cut_to_datagram;
use super::{Nslp, Route, Sent};
use crate::exchange::ExchangeKey;
use crate::leases::Asker;
use crate::limits::ANSWER_SEND_TIME;

/// What an answer is that goes out.
#[derive(Clone, Default)]
pub(super) struct Shown {
    /// The first entry is this node's own.
    pub(super) own: bool,
    /// What a stranger asked, if it is one who asks.
    pub(super) stranger: Option<Probe>,
}

impl Nslp {
    /// Answers one of those who asked for what an exchange was about.
    pub(super) fn answer_exchange(&mut self, key: ExchangeKey, requested: &Mri, answer: &Response, asker: Asker) {
        let shown = self.exchanges.get(&key).map_or_else(Shown::default, |exchange| Shown {
            own: exchange.has_own_entry(),
            stranger: exchange.stranger(),
        });
        self.send_answer(requested, answer, asker, &shown);
    }

    /// Answers whoever asked, as far as it may know.
    pub(super) fn send_answer(&mut self, requested: &Mri, answer: &Response, asker: Asker, shown: &Shown) {
        let shown = match asker.side {
            Side::Inside => answer.clone(),
            Side::Outside => outside_view(&self.domain, answer.clone(), shown),
        };
        let shown = if asker.by_datagram { cut_to_datagram(shown) } else { shown };
        let pieces = nslp::parts(&shown.emit(), answer.nonce);
        let sii = Some(asker.sii);
        let route = Route {
            session: answer.session,
            mri: &requested.inverted(),
            sii,
            reliable: !asker.by_datagram,
            inside: false,
        };
        self.send(Sent::Answer, route, pieces, ANSWER_SEND_TIME, None);
    }
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
    // Whose nodes the way back has is not told apart.
    let returned = returned.map(|_| {
        let detail = "the operator of a domain on the path does not show the way back";
        let incomplete = Some(Refusal::new(RefusalKind::OutsideDomain, detail));
        ReturnStack { incomplete, ..ReturnStack::default() }
    });
    Response { session, nonce, entries, incomplete, end, withheld, foreign, returned, beside, unknown }
}

/// Returns news as they go out where nodes are not named.
pub(super) fn anonymous(notify: &Notify) -> Notify {
    let detail = "the operator of a domain on the path does not show where".to_owned();
    let node = WITHHELD.parse().expect("it is a node name");
    Notify { node, nodes: Vec::new(), detail, ..notify.clone() }
}

/// Stands for nodes that are not named.
const WITHHELD: &str = "withheld";
