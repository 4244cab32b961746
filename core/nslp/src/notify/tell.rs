// SPDX-License-Identifier: Apache-2.0
//! News on their way to whoever sent a SETUP.

use netserv_model::NodeId;
use netserv_model::control::ModuleMessage;
use netserv_model::domain::Side;
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_wire::nslp::{emit_notify, notify_detail, parts};

use crate::cx::{Cx, Received, Route, Sent};
use crate::exchanges::anonymous;
use crate::limits::ANSWER_SEND_TIME;
use crate::sessions::{Lease, LeaseId, Leases, Sessions};

/// What happened to a lease on this node, or what its module says.
pub(super) struct News<'a> {
    pub(super) event: NotifyEvent,
    pub(super) nodes: Vec<NodeId>,
    pub(super) detail: &'a str,
    pub(super) message: Option<&'a ModuleMessage>,
}

/// Takes news of nodes further on, which go on to whoever sent the SETUP: only of the peer that said it has the SETUP next.
/// GIST vouches for the sender, but anybody can become a peer who knows session and flow.
/// A node that lost its own module passes them on for a while.
pub(crate) fn on_notify(cx: &mut Cx<'_>, sessions: &mut Sessions, from: &Received, notify: &Notify, text: &[u8]) {
    let Sessions { leases, ended, .. } = sessions;
    let mri = from.mri.inverted();
    let key = (notify.session, notify.nonce);
    let may = |lease: &Lease| {
        notify.session == from.session
            && (&lease.installed.user, &lease.installed.module) == (&notify.user, &notify.module)
            && lease.downstream.is_some_and(|next| next.is_node_of(from.asker.sii))
    };
    let id = leases.of_setup(key, &mri).filter(|(_, lease)| may(lease)).map(|(id, _)| id);
    let passed_on = match id {
        Some(id) => leases.change(id, |lease| pass_on(cx, lease, notify, text)),
        None => ended.of_setup(key, &mri).filter(|lease| may(lease)).map(|lease| pass_on(cx, lease, notify, text)),
    };
    if passed_on.is_none() {
        cx.out.counters.news_dropped += 1;
    }
}

/// Tells whoever sent the SETUP of a lease what happened to it on this node.
pub(crate) fn tell(
    cx: &mut Cx<'_>,
    leases: &mut Leases,
    id: LeaseId,
    event: NotifyEvent,
    nodes: Vec<NodeId>,
    detail: &str,
) {
    tell_of(cx, leases, id, News { event, nodes, detail, message: None });
}

pub(super) fn tell_of(cx: &mut Cx<'_>, leases: &mut Leases, id: LeaseId, news: News<'_>) {
    let News { event, nodes, detail, message } = news;
    let Some(lease) = leases.get(id) else { return };
    let (session, nonce) = (lease.session, lease.nonce);
    let (user, module, node) = (lease.installed.user.clone(), lease.installed.module.clone(), cx.config.node.clone());
    let detail = notify_detail(detail);
    let (topic, body) = message.map(|message| (message.topic.clone(), message.body.clone())).unzip();
    let body = body.unwrap_or_default();
    let notify = Notify { session, nonce, user, module, node, event, nodes, detail, topic, body };
    let text = emit_notify(&notify);
    leases.change(id, |lease| pass_on(cx, lease, &notify, text.as_bytes()));
}

/// Passes news on: to the previous node, or to the node's own clients.
fn pass_on(cx: &mut Cx<'_>, lease: &mut Lease, notify: &Notify, text: &[u8]) {
    if !lease.take_news(cx.now, notify.event) {
        cx.out.counters.news_dropped += 1;
        return;
    }
    cx.out.counters.news_sent += 1;
    if lease.is_local {
        cx.out.notify(notify.clone());
    }
    if lease.is_local && lease.upstream.is_empty() && !lease.is_crowded {
        return;
    }
    let (session, mri) = (lease.session, &lease.mri.inverted());
    let reliable = !lease.upstream.iter().any(|asker| asker.by_datagram);
    let goes_out = lease.upstream.iter().any(|asker| asker.side == Side::Outside);
    let text = match goes_out && !cx.domain.names_nodes() {
        true => emit_notify(&anonymous(notify)),
        false => std::str::from_utf8(text).map(str::to_owned).unwrap_or_default(),
    };
    let route = Route { session, mri, sii: None, reliable, inside: false };
    cx.send(Sent::News, route, parts(&text, notify.nonce), ANSWER_SEND_TIME, None);
}
