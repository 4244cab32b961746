// SPDX-License-Identifier: Apache-2.0
//! What happens to modules on this node.

use std::time::Duration;

use netserv_model::effect::ModuleNews;
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::request::{Body, NodeReport};
use netserv_model::{ModuleName, Refusal, RefusalKind, UserId};
use netserv_wire::nslp::{Message, notify_detail};

use super::tell::{News, tell_of};
use crate::cx::Cx;
use crate::exchanges::{Exchange, Exchanges, Own, refused};
use crate::sessions::{Lease, Sessions, lose_lease};

/// Takes what happened to a module on this node, and tells whoever sent a SETUP for it and the node's own clients.
pub(crate) fn on_module_news(cx: &mut Cx<'_>, exchanges: &mut Exchanges, sessions: &mut Sessions, news: ModuleNews) {
    let ModuleNews { user, module, session, nonce, is_for_one, event, detail, message } = news;
    let of_origin = |lease: &Lease| !is_for_one || (lease.session == session && Some(lease.nonce) == nonce);
    let has_ended = match event {
        NotifyEvent::LeaseEnded => true,
        NotifyEvent::RouteMoved
        | NotifyEvent::RouteLost
        | NotifyEvent::ModuleReplaced
        | NotifyEvent::ModuleFailed
        | NotifyEvent::NodeDraining
        | NotifyEvent::NodeMaintenance
        | NotifyEvent::ModuleMessage => false,
    };
    let detail = notify_detail(&detail);
    let mut is_told_here = false;
    for id in sessions.leases.all_of_module(&user, &module) {
        let leases = &mut sessions.leases;
        let Some(lease) = leases.get(id).filter(|lease| lease.is_here && of_origin(lease)) else {
            continue;
        };
        is_told_here |= lease.is_local;
        tell_of(cx, leases, id, News { event, nodes: Vec::new(), detail: &detail, message: message.as_ref() });
        if has_ended {
            lose_lease(cx, exchanges, sessions, id);
        }
    }
    if has_ended && !is_for_one {
        take_back(exchanges, &user, &module, &detail);
    }
    if let Some(nonce) = nonce.filter(|_| !is_told_here) {
        let (node, nodes) = (cx.config.node.clone(), Vec::new());
        let (topic, body) = message.map(|message| (message.topic, message.body)).unzip();
        let body = body.unwrap_or_default();
        cx.out.notify(Notify { session, nonce, user, module, node, event, nodes, detail, topic, body });
    }
}

/// Has requests under way answer that a module is gone which this node had for them.
fn take_back(exchanges: &mut Exchanges, user: &UserId, module: &ModuleName, why: &str) {
    let of_it = |exchange: &&mut Exchange| exchange.is_pending() && installs(&exchange.message, user, module);
    for exchange in exchanges.iter_mut().filter(of_it) {
        if let Own::Reported(report) = &mut exchange.own
            && report.outcome.lease_s().is_some()
        {
            let refusal = Refusal::new(RefusalKind::NotInstalled, why);
            let NodeReport { node, address, .. } = &**report;
            **report = refused(node, Some(*address), refusal, Duration::from_micros(report.took_us));
        }
    }
}

/// Returns whether a request is to install a module.
fn installs(message: &Message, user: &UserId, module: &ModuleName) -> bool {
    let setup = matches!(message.body(), Body::Setup(setup) if setup.module.name == *module);
    setup && message.user() == Some(user) && !message.is_dry_run()
}
