// SPDX-License-Identifier: Apache-2.0
//! Following paths: what was installed goes where they lead, and leaves where they led.

use std::sync::Arc;
use std::time::Duration;

use netserv_gist::{ApiCall, Notification, RouteStatus, SiiHandle};
use netserv_model::notify::NotifyEvent;
use netserv_model::request::{Body, NodeReport, Outcome, PathEnd};
use netserv_model::{Instant, ModuleName, NodeId, Nonce, Refusal, RefusalKind, SessionId, UserId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{Message, Response, Tear, parts};
use rand::Rng;

use super::removal::Done;
use super::{Nslp, Received, Route, Sent, Withdrawal};
use crate::exchange::{Arrival, Exchange, ExchangeKey, Requester, longest_lease};
use crate::leases::{Asker, Installed, Lease, LeaseId, Left, Text};
use crate::limits::{
    ANSWER_SEND_TIME, LOOK_AGAIN_MIN, LOOK_INTERVAL, LOOK_LOOPED_INTERVAL, PENDING_MAX, STATE_TIME_MORE,
};

impl Nslp {
    /// Takes note of what a request that is answered changed along its path.
    pub(super) fn note_lease(&mut self, now: Instant, key: ExchangeKey, answer: &Response) {
        let Some(exchange) = self.exchanges.get(&key).filter(|exchange| !exchange.message.is_dry_run()) else { return };
        if exchange.copy.is_some() {
            return self.brought.note_by(now, key.0, exchange);
        }
        let (Some(user), mri) = (exchange.message.user().cloned(), exchange.mri.clone()) else { return };
        match (exchange.message.body(), mri) {
            (Body::Setup(setup), Some(mri)) => {
                // A REMOVE for this node alone leaves the lease to the nodes further on.
                let is_of_others = self.lease_of(key, &mri).is_some_and(|(_, lease)| !lease.is_here);
                let of_others = longest_lease(answer).filter(|_| is_of_others);
                let of_others = of_others.map(|seconds| Duration::from_secs(seconds).min(setup.ttl));
                let time = exchange.lease_time(answer, setup.ttl, self.config.host_only).or(of_others);
                let wanted = Wanted { key, mri, user, module: setup.module.name.clone() };
                let was_here = exchange.is_passed_on().then(|| self.lease_in_force(key, &wanted.mri)).flatten();
                let installed = Arc::new(Installed { user: wanted.user.clone(), module: wanted.module.clone() });
                match time {
                    Some(time) => self.hold(now, wanted, time, answer),
                    None => self.drop_unheld(now, &wanted, answer),
                }
                if let Some(nonce) = was_here {
                    self.let_go(&installed, nonce);
                }
            }
            (Body::Remove(remove), mri) => {
                let installed = Installed { user, module: remove.module.clone() };
                let ends_all = (remove.all || remove.epoch.is_some()) && exchange.own.removed();
                if answer.entries.iter().any(|entry| entry.outcome == Outcome::Removed) {
                    let done = Done::of(exchange);
                    self.remove_leases(now, key.0, &installed, mri.as_ref(), (ends_all, &done));
                }
            }
            (Body::Setup(_), None) | (Body::Tell(_) | Body::Export(_) | Body::Probe(_), _) => {}
        }
    }

    /// Does what is due of the leases.
    pub(super) fn follow_due(&mut self, now: Instant) {
        while let Some(id) = self.leases.due(now) {
            let Some(lease) = self.leases.get(id) else { return };
            if lease.until <= now {
                self.end_lease(id);
            } else if lease.question_at().is_some_and(|at| at <= now) {
                self.question(now, id);
            } else {
                self.look(now, id);
            }
        }
    }

    /// Takes what GIST says of the next node along a path.
    pub(super) fn path_changed(&mut self, now: Instant, session: SessionId, mri: &Mri, kind: Notification) {
        let moved = |next: Option<SiiHandle>| match kind {
            Notification::StatusChange(RouteStatus::Good(sii)) => next != Some(sii),
            Notification::RouteDeletion | Notification::LastNode => next.is_some(),
            Notification::StatusChange(RouteStatus::Bad | RouteStatus::Tentative)
            | Notification::CommunicationFailure => false,
        };
        let of_session = (session, Nonce([0; 16]))..=(session, Nonce([0xff; 16]));
        if let Notification::StatusChange(RouteStatus::Good(sii)) = kind {
            let of_flow = |exchange: &Exchange| exchange.mri.as_ref() == Some(mri) && exchange.is_pending();
            let under_way = self.exchanges.range_mut(of_session).filter(|(_, exchange)| of_flow(exchange));
            let keys: Vec<ExchangeKey> = under_way
                .filter_map(|(key, exchange)| {
                    exchange.moved = Some(sii);
                    exchange.may_be_resent(now).then_some(*key)
                })
                .collect();
            // Whoever it went to may be off the path, and wait for this node.
            for key in keys {
                let known = self.lease_of(key, mri).and_then(|(_, lease)| lease.downstream);
                if known != Some(sii) {
                    self.resend_or_settle(now, key, true, String::new());
                }
            }
        }
        let concerned = |(_, lease): &(LeaseId, &Lease)| lease.session == session && moved(lease.downstream);
        let ids: Vec<LeaseId> = self.leases.of_flow(mri).filter(concerned).map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.look_soon(now, id));
    }

    /// Takes that the path of a SETUP does not lead here any more, if it comes from the peer that sent that.
    pub(super) fn handle_tear(&mut self, now: Instant, from: &Received, tear: &Tear) {
        let key = (tear.session, tear.nonce);
        let found = self.lease_of(key, &from.mri).filter(|_| tear.session == from.session);
        let of_it = |installed: &Installed| (&installed.user, &installed.module) == (&tear.user, &tear.module);
        let found = found.filter(|(_, lease)| of_it(&lease.installed));
        let found = found.map(|(id, lease)| (id, lease.told(tear.token)));
        let told = found.and_then(|(_, told)| told);
        let by = |asker: &Asker| asker.is(&from.asker) || told == Some(asker.sii);
        let is_of_it = |message: &Message| {
            tear.session == from.session
                && (message.user(), module_of(message.body())) == (Some(&tear.user), Some(&tear.module))
        };
        let of_path = |exchange: &&mut Exchange| {
            exchange.is_pending() && exchange.mri.as_ref() == Some(&from.mri) && is_of_it(&exchange.message)
        };
        let is_asked_for = match self.exchanges.get_mut(&key).filter(of_path) {
            Some(Exchange { requester: Requester::Upstream(peers), torn, .. }) => {
                peers.retain(|asker| !by(asker));
                *torn = peers.is_empty();
                !*torn
            }
            Some(Exchange { requester: Requester::Local(_), .. }) => true,
            Some(Exchange { requester: Requester::Nobody | Requester::Return(_), .. }) | None => false,
        };
        let Some((id, _)) = found else {
            self.counters.messages_unexpected += 1;
            return;
        };
        if !self.leases.get(id).is_some_and(|lease| lease.upstream.iter().any(by)) {
            // It may be of one that asked, and is not known by the address that this came from.
            self.counters.messages_unexpected += 1;
            return self.ask_again(now, id);
        }
        self.counters.tears_received += 1;
        let changed = self.leases.change(id, |lease| {
            let was_first = lease.is_first();
            lease.upstream.retain(|asker| !by(asker));
            let is_needed = is_asked_for || lease.is_local || lease.is_crowded || !lease.upstream.is_empty();
            (is_needed, lease.is_here && was_first && !lease.is_first())
        });
        match changed {
            Some((false, _)) => self.withdraw(now, id),
            Some((true, was_first)) => {
                if was_first {
                    // It may be for the first node only.
                    self.look_soon(now, id);
                }
                self.ask_again(now, id);
            }
            None => {}
        }
    }

    /// Ends a lease that no path leads to any more, here and further on.
    fn withdraw(&mut self, now: Instant, id: LeaseId) {
        self.leave(id);
        // The routing state may lead to another one already.
        let next = self.leases.get(id).and_then(|lease| lease.downstream.map(|next| (next, lease.nonce)));
        if let Some((next, nonce)) = next {
            self.tell_tear(id, next, nonce);
        }
        let Some(lease) = self.end_lease(id) else { return };
        self.forget_answer(&lease);
        if lease.is_here {
            self.let_go(&lease.installed, lease.nonce);
        }
        self.withdrawn.remember(now, &lease);
        self.leave_way_back(now, lease.session, lease.nonce, &lease.installed);
    }

    /// Forgets what a SETUP was answered: it is not so any more, and the path may come back.
    pub(super) fn forget_answer(&mut self, lease: &Lease) {
        self.forget_answered((lease.session, lease.nonce));
    }

    pub(super) fn forget_answered(&mut self, key: ExchangeKey) {
        if self.exchanges.get(&key).is_some_and(|exchange| !exchange.is_pending()) {
            self.forget(key);
        }
    }

    /// Ends what a SETUP brought that this node sent back, since it is not the last node of the way there any more.
    fn leave_way_back(&mut self, now: Instant, session: SessionId, nonce: Nonce, installed: &Installed) {
        let session = session.twin();
        // Those that others asked for on that way are theirs.
        let is_own =
            |lease: &Lease| lease.upstream.is_empty() && !lease.is_crowded && !lease.is_local && !lease.is_here;
        let is_back = |lease: &&Lease| (lease.session, lease.nonce) == (session, nonce) && is_own(lease);
        let ids = self.leases.all_of_module(&installed.user, &installed.module);
        if let Some(id) = ids.into_iter().find(|id| self.leases.get(*id).filter(is_back).is_some()) {
            self.withdraw(now, id);
        }
    }

    /// Has the node let go of what a SETUP holds, unless it came by another path, too, that still leads here.
    fn let_go(&mut self, installed: &Installed, nonce: Nonce) {
        let Installed { user, module } = installed;
        let is_of_it = |lease: &Lease| lease.is_here && lease.nonce == nonce;
        let mut leases = self.leases.all_of_module(user, module).into_iter().filter_map(|id| self.leases.get(id));
        if !leases.any(is_of_it) {
            self.withdrawals.push_back(Withdrawal { user: user.clone(), module: module.clone(), nonce });
        }
    }

    /// Returns the nonce of the SETUP by which the module of another one runs here, along the same path and not made later.
    pub(super) fn lease_in_force(&self, key: ExchangeKey, mri: &Mri) -> Option<Nonce> {
        let message = &self.exchanges.get(&key)?.message;
        let module = module_of(message.body())?;
        let in_force = |lease: &Lease| {
            let same = lease.session == key.0 && Some(&lease.installed.user) == message.user();
            let same = same && lease.installed.module == *module;
            same && lease.is_here && (lease.nonce == key.1 || lease.created < message.created())
        };
        self.leases.of_flow(mri).map(|(_, lease)| lease).find(|lease| in_force(lease)).map(|lease| lease.nonce)
    }

    /// Takes note of who sent a request again that is answered already.
    pub(super) fn note_upstream(&mut self, key: ExchangeKey, from: &Received) {
        if let Some(id) = self.lease_of(key, &from.mri).map(|(id, _)| id) {
            self.leases.change(id, |lease| {
                lease.asked_by(from.asker);
                lease.address = Some(from.local);
            });
        }
    }

    /// Takes an answer that nobody waits for: if the path leads elsewhere, whoever gave it is told.
    pub(super) fn answered_late(&mut self, from: &Received, key: ExchangeKey, response: &Response) {
        let has_it = response.entries.iter().any(|entry| entry.outcome.lease_s().is_some());
        let mri = from.mri.inverted();
        let elsewhere = |lease: &Lease| lease.downstream.is_some_and(|next| !next.is_node_of(from.asker.sii));
        if let Some((id, _)) = self.lease_of(key, &mri).filter(|(_, lease)| has_it && elsewhere(lease)) {
            self.counters.tears_sent += 1;
            self.tell_tear(id, from.asker.sii, key.1);
        }
    }

    /// Returns the lease that a SETUP led to.
    pub(super) fn lease_of(&self, (session, nonce): ExchangeKey, mri: &Mri) -> Option<(LeaseId, &Lease)> {
        self.leases.of_flow(mri).find(|(_, lease)| (lease.session, lease.nonce) == (session, nonce))
    }

    /// Takes note of a lease that runs for a time from now on, here or further on.
    fn hold(&mut self, now: Instant, wanted: Wanted, time: Duration, answer: &Response) {
        let Wanted { key, mri, user, module } = wanted;
        let (session, nonce) = key;
        let Some(exchange) = self.exchanges.get(&key) else { return };
        let downstream = exchange.downstream;
        let moved = exchange.moved.is_some_and(|sii| downstream != Some(sii));
        let looked = exchange.requester == Requester::Nobody;
        let (torn, is_local) = (exchange.torn, matches!(exchange.requester, Requester::Local(_)));
        let upstream = if let Requester::Upstream(peers) = &exchange.requester { peers.clone() } else { Vec::new() };
        let (mri, installed) = (self.shared(session, mri), Arc::new(Installed { user, module }));
        let of_it = |lease: &Lease| lease.session == session && lease.installed == installed;
        let before = self.leases.of_flow(&mri).find(|(_, lease)| of_it(lease));
        let newer = |lease: &Lease| lease.nonce != nonce && (looked || lease.created > exchange.message.created());
        if before.is_some_and(|(_, lease)| newer(lease)) {
            // What is in force came while this was under way.
            return;
        }
        let before = before.map(|(id, _)| id);
        let lease = Lease {
            session,
            mri: Arc::clone(&mri),
            installed: Arc::clone(&installed),
            nonce,
            created: exchange.message.created(),
            text: Text::new(exchange.message.as_str()),
            time: exchange.time,
            hops: exchange.hops,
            passed: exchange.passed,
            is_here: exchange.runs_here(),
            address: exchange.address,
            upstream,
            is_local,
            is_outside: exchange.is_outside,
            may_return: exchange.may_return,
            is_crowded: false,
            downstream,
            left: None,
            is_partial: answer.incomplete.is_some(),
            questions: None,
            until: now + time,
            look_at: None,
            looked_at: now,
            news: (now, 0),
            messages: (now, 0),
        };
        let (id, was) = match before {
            None => {
                let Some(id) = self.leases.insert(lease) else {
                    self.counters.leases_over_limit += 1;
                    return;
                };
                *self.paths.entry((session, Arc::clone(&mri))).or_default() += 1;
                if looked || torn {
                    // The path led elsewhere before the answer was there.
                    return self.withdraw(now, id);
                }
                (id, None)
            }
            Some(id) => {
                let is_next = |sii: SiiHandle| downstream.is_some_and(|next| next.is_node_of(sii));
                let was = self.leases.change(id, |held| {
                    let before = std::mem::replace(held, lease);
                    (held.mri, held.installed) = (before.mri, before.installed);
                    held.questions = before.questions;
                    // Who has it next from now on is not told to let it go.
                    let left = before.downstream.filter(|sii| !is_next(*sii));
                    let left = left.map(|sii| Box::new(Left { sii, nonce: before.nonce, since: now }));
                    (held.news, held.left) = (before.news, left.or(before.left).filter(|left| !is_next(left.sii)));
                    if before.nonce == nonce {
                        let askers = std::mem::replace(&mut held.upstream, before.upstream);
                        (held.is_local, held.is_crowded) = (before.is_local || held.is_local, before.is_crowded);
                        askers.into_iter().for_each(|asker| held.asked_by(asker));
                    }
                    if looked {
                        held.until = held.until.min(before.until);
                    }
                    before.downstream
                });
                (id, was)
            }
        };
        if was.is_some_and(|was| was.is_none()) && downstream.is_some() {
            self.leave_way_back(now, session, nonce, &installed);
        }
        let of_path = self.leases.of_flow(&mri).filter(|(_, lease)| lease.session == session);
        let until = of_path.map(|(_, lease)| lease.until).max().unwrap_or(now);
        let (nslp_id, lifetime) = (self.config.nslp_id, until.since(now) + STATE_TIME_MORE);
        let (session, mri) = (Some(session), Some(Mri::clone(&mri)));
        self.api_calls.push_back(ApiCall::SetStateLifetime { nslp_id, session, mri, lifetime });
        self.look_again(now, id, answer);
        if moved {
            self.look_soon(now, id);
        } else if answer.incomplete.is_none() {
            self.leave(id);
        }
        if looked {
            self.tell_moved(now, id, was.flatten(), answer);
        }
    }

    /// Drops the lease of a SETUP that nobody has any more; where the answer is not whole, somebody may.
    fn drop_unheld(&mut self, now: Instant, wanted: &Wanted, answer: &Response) {
        let Some(id) = self.lease_of(wanted.key, &wanted.mri).map(|(id, _)| id) else { return };
        if answer.incomplete.is_none() && !answer.entries.is_empty() {
            self.leave(id);
            self.end_lease(id);
            return;
        }
        let was = self.leases.change(id, |lease| {
            let was = lease.downstream.take();
            let left = was.map(|sii| Box::new(Left { sii, nonce: lease.nonce, since: now }));
            (lease.left, lease.is_partial) = (left.or(lease.left.take()), true);
            was
        });
        self.look_again(now, id, answer);
        self.tell_moved(now, id, was.flatten(), answer);
    }

    /// Says when the path is looked at again, if nobody says before that it changed.
    fn look_again(&mut self, now: Instant, id: LeaseId, answer: &Response) {
        let looped = answer.incomplete.as_ref().is_some_and(|refusal| refusal.kind == RefusalKind::Replayed);
        let hindered = looped || was_crowded(answer);
        // Who is to let go as soon as the new path is whole is not kept for long, nor is a gap asked about for ever.
        let moved = |lease: &&Lease| lease.downstream.is_some() && answer.incomplete.is_some();
        let left = self.leases.get(id).filter(moved).and_then(|lease| lease.left.as_ref());
        let left = left.map(|left| now.since(left.since).clamp(LOOK_LOOPED_INTERVAL, LOOK_INTERVAL));
        let interval = left.unwrap_or(if hindered { LOOK_LOOPED_INTERVAL } else { LOOK_INTERVAL });
        let wait = self.rng.random_range(interval / 2..=interval);
        self.leases.change(id, |lease| {
            let alone = lease.downstream.is_none() && answer.end != Some(PathEnd::Destination);
            lease.look_at = (alone || hindered || left.is_some()).then(|| now + wait);
        });
    }

    /// Looks at a path as soon as that may be.
    pub(super) fn look_soon(&mut self, now: Instant, id: LeaseId) {
        self.leases.change(id, |lease| lease.look_at = Some(now.max(lease.looked_at + LOOK_AGAIN_MIN)));
    }

    /// Sends a SETUP on once more, to see where its path leads.
    fn look(&mut self, now: Instant, id: LeaseId) {
        let Some(lease) = self.leases.get(id) else { return };
        let key = (lease.session, lease.nonce);
        let busy = self.exchanges.get(&key).is_some_and(|exchange| exchange.is_pending());
        // Half of the places are for what somebody waits for.
        let message = (!busy && self.pending < PENDING_MAX / 2).then(|| Message::parse(lease.text.whole().as_bytes()));
        let Some(Ok(message)) = message else {
            self.leases.change(id, |lease| lease.look_at = Some(now + LOOK_AGAIN_MIN));
            return;
        };
        let mri = Some(Mri::clone(&lease.mri));
        let (address, time, hops) = (lease.address, lease.time, lease.hops);
        let (is_outside, may_return) = (lease.is_outside, lease.may_return);
        let passed = if lease.is_first() { 0 } else { lease.passed.max(1) };
        self.leases.change(id, |lease| (lease.look_at, lease.looked_at) = (None, now));
        if self.exchanges.contains_key(&key) {
            self.forget(key);
        }
        self.counters.paths_looked_at += 1;
        let arrival = Arrival::own(message, Requester::Nobody, mri, address);
        self.start(now, key, Arrival { time, hops, passed, is_outside, may_return, ..arrival });
    }

    /// Tells who had a lease next that the path leads elsewhere.
    pub(super) fn leave(&mut self, id: LeaseId) {
        let left = self.leases.change(id, |lease| lease.left.take().map(|left| (left, lease.nonce))).flatten();
        if let Some((Left { sii, nonce, .. }, newest)) = left.map(|(left, newest)| (*left, newest)) {
            self.counters.tears_sent += 1;
            self.tell_tear(id, sii, nonce);
            if newest != nonce {
                // It may have got the newest request, too, and not have answered.
                self.tell_tear(id, sii, newest);
            }
        }
    }

    fn tell_tear(&mut self, id: LeaseId, peer: SiiHandle, nonce: Nonce) {
        let Some(lease) = self.leases.get(id) else { return };
        let (session, mri) = (lease.session, Arc::clone(&lease.mri));
        let Installed { user, module } = &*lease.installed;
        let tear = Tear { session, nonce, user: user.clone(), module: module.clone(), token: None };
        self.send_tear(&mri, peer, &tear);
    }

    /// Sends a TEAR, or the question that is one, past the path.
    pub(super) fn send_tear(&mut self, mri: &Mri, peer: SiiHandle, tear: &Tear) {
        let route = Route { session: tear.session, mri, sii: Some(peer), reliable: false, inside: false };
        self.send(Sent::News, route, parts(&tear.emit(), tear.nonce), ANSWER_SEND_TIME, None);
    }

    /// Tells whoever sent a SETUP that its path leads elsewhere, if it does.
    fn tell_moved(&mut self, now: Instant, id: LeaseId, was: Option<SiiHandle>, answer: &Response) {
        let Some(lease) = self.leases.get(id) else { return };
        let node = self.config.node.clone();
        let has_it = |entry: &&NodeReport| entry.outcome.lease_s().is_some() && entry.node != node;
        let nodes: Vec<NodeId> = answer.entries.iter().filter(has_it).map(|entry| entry.node.clone()).collect();
        let same = match (lease.downstream, was) {
            (Some(next), Some(before)) => next.is_node_of(before),
            (next, before) => next == before,
        };
        if same {
            return;
        }
        let (event, detail) = if lease.downstream.is_some() {
            self.counters.paths_moved += 1;
            let next = answer.entries.iter().map(|entry| &entry.node).find(|next| **next != node);
            (NotifyEvent::RouteMoved, next.map_or_else(String::new, |next| format!("{next} comes after {node} now")))
        } else {
            let why = answer.incomplete.as_ref().map(|refusal| format!(": {}", refusal.detail)).unwrap_or_default();
            (NotifyEvent::RouteLost, format!("no node after {node} is known any more{why}"))
        };
        self.tell(now, id, event, nodes, &detail);
    }

    /// Ends a lease, and with it GIST's state for it.
    pub(super) fn end_lease(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(id)?;
        self.leave_path((lease.session, Arc::clone(&lease.mri)));
        Some(lease)
    }
}

/// Returns whether the last node that answered worked on too many requests, as after its restart: it sent this one no further.
fn was_crowded(answer: &Response) -> bool {
    let is_quota = |refusal: &Refusal| refusal.kind == RefusalKind::QuotaExceeded;
    let refused = |entry: &NodeReport| matches!(&entry.outcome, Outcome::Refused(refusal) if is_quota(refusal));
    answer.incomplete.as_ref().is_some_and(is_quota) && answer.entries.last().is_some_and(refused)
}

/// Returns the module that a request is about.
fn module_of(body: &Body) -> Option<&ModuleName> {
    match body {
        Body::Setup(setup) => Some(&setup.module.name),
        Body::Remove(remove) => Some(&remove.module),
        Body::Tell(_) | Body::Export(_) | Body::Probe(_) => None,
    }
}

/// A SETUP that is answered.
struct Wanted {
    key: ExchangeKey,
    mri: Mri,
    user: UserId,
    module: ModuleName,
}
