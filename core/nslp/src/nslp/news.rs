// SPDX-License-Identifier: Apache-2.0
//! News for those who sent SETUPs: of nodes further on, of modules on this node, and that this node is going to stop.

use netserv_model::control::ModuleMessage;
use netserv_model::domain::Side;
use netserv_model::effect::ModuleNews;
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::request::{Body, NodeReport};
use netserv_model::{Instant, ModuleName, NodeId, Now, Refusal, RefusalKind, UserId};
use netserv_wire::nslp::{Message, emit_notify, notify_detail, parts};

use super::domain::anonymous;
use super::{Nslp, Received, Route, Sent};
use crate::exchange::{Exchange, Own, refused};
use crate::leases::{Lease, LeaseId};
use crate::limits::{ANSWER_SEND_TIME, FAREWELL_INTERVAL, FAREWELL_TIME_MAX, FAREWELLS_AT_ONCE_MAX};

impl Nslp {
    /// Takes what happened to a module on this node, and tells whoever sent a SETUP for it and the node's own clients. A
    /// lease that ended is not followed any more; what nodes further on have stays. Some of it
    /// is for the requester of one SETUP.
    pub fn handle_module_news(&mut self, now: Now, news: ModuleNews) {
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
        for id in self.leases.all_of_module(&user, &module) {
            let Some(lease) = self.leases.get(id).filter(|lease| lease.is_here && of_origin(lease)) else {
                continue;
            };
            is_told_here |= lease.is_local;
            self.tell_of(
                now.instant,
                id,
                News { event, nodes: Vec::new(), detail: &detail, message: message.as_ref() },
            );
            if has_ended {
                self.lose_lease(id);
            }
        }
        if has_ended && !is_for_one {
            self.take_back(&user, &module, &detail);
        }
        if let Some(nonce) = nonce.filter(|_| !is_told_here) {
            let (node, nodes) = (self.config.node.clone(), Vec::new());
            let (topic, body) = message.map(|message| (message.topic, message.body)).unzip();
            let body = body.unwrap_or_default();
            self.notifies.push_back(Notify { session, nonce, user, module, node, event, nodes, detail, topic, body });
        }
    }

    /// Takes that the node is going to stop in order: whoever sent a SETUP for what it has is told, some at a time.
    pub fn handle_stop(&mut self, now: Now) {
        let begins = || Farewell { at: Some(now.instant), after: None, until: now.instant + FAREWELL_TIME_MAX };
        self.farewell.get_or_insert_with(begins);
        self.farewell_due(now.instant);
    }

    /// Returns whether all are told that the node is going to stop, or the time for that is up.
    pub fn has_said_farewell(&self, now: Instant) -> bool {
        let under_way = || self.by_handle.values().any(|sent| matches!(sent, Sent::News));
        self.farewell.as_ref().is_some_and(|farewell| farewell.until <= now || (farewell.at.is_none() && !under_way()))
    }

    /// Tells the next ones that the node is going to stop, if that is due.
    pub(super) fn farewell_due(&mut self, now: Instant) {
        let Some(farewell) = self.farewell.as_mut().filter(|farewell| farewell.at.is_some_and(|at| at <= now)) else {
            return;
        };
        let ids: Vec<LeaseId> = self.leases.after(farewell.after).take(FAREWELLS_AT_ONCE_MAX).collect();
        farewell.after = ids.last().copied();
        let goes_on = ids.len() == FAREWELLS_AT_ONCE_MAX && now < farewell.until;
        farewell.at = goes_on.then(|| now + FAREWELL_INTERVAL);
        for id in ids {
            let detail = format!("{} is about to stop; what is installed starts with it again", self.config.node);
            self.tell(now, id, NotifyEvent::NodeDraining, Vec::new(), &detail);
        }
    }

    /// Takes news of nodes further on, which go on to whoever sent the SETUP: only of the peer that said it has the SETUP next.
    /// GIST vouches for the sender, but anybody can become a peer who knows session and flow.
    pub(super) fn handle_notify(&mut self, now: Instant, from: &Received, notify: &Notify, text: &[u8]) {
        let mri = from.mri.inverted();
        let key = (notify.session, notify.nonce);
        let found = self
            .lease_of(key, &mri)
            .filter(|(_, lease)| (&lease.installed.user, &lease.installed.module) == (&notify.user, &notify.module))
            .filter(|(_, lease)| lease.downstream.is_some_and(|next| next.is_node_of(from.asker.sii)));
        match found.map(|(id, _)| id).filter(|_| notify.session == from.session) {
            Some(id) => self.pass_on(now, id, notify, text),
            None => self.counters.news_dropped += 1,
        }
    }

    /// Tells whoever sent the SETUP of a lease what happened to it on this node.
    pub(super) fn tell(&mut self, now: Instant, id: LeaseId, event: NotifyEvent, nodes: Vec<NodeId>, detail: &str) {
        self.tell_of(now, id, News { event, nodes, detail, message: None });
    }

    fn tell_of(&mut self, now: Instant, id: LeaseId, news: News<'_>) {
        let News { event, nodes, detail, message } = news;
        let Some(lease) = self.leases.get(id) else { return };
        let (session, nonce) = (lease.session, lease.nonce);
        let (user, module, node) =
            (lease.installed.user.clone(), lease.installed.module.clone(), self.config.node.clone());
        let detail = notify_detail(detail);
        let (topic, body) = message.map(|message| (message.topic.clone(), message.body.clone())).unzip();
        let body = body.unwrap_or_default();
        let notify = Notify { session, nonce, user, module, node, event, nodes, detail, topic, body };
        let text = emit_notify(&notify);
        self.pass_on(now, id, &notify, text.as_bytes());
    }

    /// Ends a lease whose module is gone on this node.
    pub(super) fn lose_lease(&mut self, id: LeaseId) {
        self.leave(id);
        let Some(lease) = self.end_lease(id) else { return };
        let key = (lease.session, lease.nonce);
        if self.exchanges.get(&key).is_some_and(|exchange| !exchange.is_pending()) {
            // What it answered is not so any more.
            self.forget(key);
        }
    }

    /// Has requests under way answer that a module is gone which this node had for them.
    fn take_back(&mut self, user: &UserId, module: &ModuleName, why: &str) {
        let of_it = |exchange: &&mut Exchange| exchange.is_pending() && installs(&exchange.message, user, module);
        for exchange in self.exchanges.values_mut().filter(of_it) {
            if let Own::Reported(report) = &mut exchange.own
                && report.outcome.lease_s().is_some()
            {
                let refusal = Refusal::new(RefusalKind::NotInstalled, why);
                let NodeReport { node, address, .. } = &**report;
                **report = refused(node, Some(*address), refusal, std::time::Duration::from_micros(report.took_us));
            }
        }
    }

    /// Passes news on: to the previous node, or to the node's own clients.
    fn pass_on(&mut self, now: Instant, id: LeaseId, notify: &Notify, text: &[u8]) {
        let may = self.leases.change(id, |lease| lease.take_news(now, notify.event)).unwrap_or(false);
        let Some(lease) = self.leases.get(id).filter(|_| may) else {
            self.counters.news_dropped += 1;
            return;
        };
        self.counters.news_sent += 1;
        if lease.is_local {
            self.notifies.push_back(notify.clone());
        }
        if lease.is_local && lease.upstream.is_empty() && !lease.is_crowded {
            return;
        }
        let (session, mri) = (lease.session, lease.mri.inverted());
        let reliable = !lease.upstream.iter().any(|asker| asker.by_datagram);
        let goes_out = lease.upstream.iter().any(|asker| asker.side == Side::Outside);
        let text = match goes_out && !self.domain.names_nodes() {
            true => emit_notify(&anonymous(notify)),
            false => std::str::from_utf8(text).map(str::to_owned).unwrap_or_default(),
        };
        self.send(
            Sent::News,
            Route { session, mri: &mri, sii: None, reliable, inside: false },
            parts(&text, notify.nonce),
            ANSWER_SEND_TIME,
            None,
        );
    }
}

/// What happened to a lease on this node, or what its module says.
struct News<'a> {
    event: NotifyEvent,
    nodes: Vec<NodeId>,
    detail: &'a str,
    message: Option<&'a ModuleMessage>,
}

/// How far a node that is going to stop is with telling that.
#[derive(Debug)]
pub(super) struct Farewell {
    /// When the next ones are told; nothing once all are.
    at: Option<Instant>,
    /// The lease of which was told last.
    after: Option<LeaseId>,
    /// When it ends at the latest.
    until: Instant,
}

impl Farewell {
    /// Returns when something is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }
}

/// Returns whether a request is to install a module.
fn installs(message: &Message, user: &UserId, module: &ModuleName) -> bool {
    let setup = matches!(message.body(), Body::Setup(setup) if setup.module.name == *module);
    setup && message.user() == Some(user) && !message.is_dry_run()
}
