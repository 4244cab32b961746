// SPDX-License-Identifier: Apache-2.0
//! All requests on this node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use netserv_model::effect::RequestId;
use netserv_model::{Instant, Nonce, SessionId};
use netserv_wire::nslp::Response;

use super::arrival::Requester;
use super::exchange::Exchange;
use super::paths::Paths;
use super::retransmissions::Retransmissions;
use crate::cx::{Cx, ExchangeKey};
use crate::limits::FINISHED_MAX;

/// All exchanges, by key.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    by_key: BTreeMap<ExchangeKey, Exchange>,
    pending: usize,
    timers: BTreeSet<(Instant, ExchangeKey)>,
    /// Those that the controller was asked about.
    by_request: BTreeMap<RequestId, ExchangeKey>,
    last_request: u64,
    pub(crate) paths: Paths,
    pub(crate) retransmissions: Retransmissions,
}

impl Exchanges {
    /// Returns a new name of a request.
    pub(crate) fn name_request(&mut self) -> RequestId {
        self.last_request += 1;
        RequestId(self.last_request)
    }

    /// Adds a pending exchange.
    pub(crate) fn insert(&mut self, key: ExchangeKey, exchange: Exchange) {
        self.timers.insert((exchange.timer, key));
        self.by_key.insert(key, exchange);
        self.pending += 1;
    }

    pub(crate) fn contains(&self, key: ExchangeKey) -> bool {
        self.by_key.contains_key(&key)
    }

    pub(crate) fn get(&self, key: ExchangeKey) -> Option<&Exchange> {
        self.by_key.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: ExchangeKey) -> Option<&mut Exchange> {
        self.by_key.get_mut(&key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ExchangeKey, &Exchange)> {
        self.by_key.iter().map(|(key, exchange)| (*key, exchange))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Exchange> {
        self.by_key.values_mut()
    }

    /// Returns the exchanges of a session.
    pub(crate) fn of_session(&mut self, session: SessionId) -> impl Iterator<Item = (ExchangeKey, &mut Exchange)> {
        let of_session = (session, Nonce([0; 16]))..=(session, Nonce([0xff; 16]));
        self.by_key.range_mut(of_session).map(|(key, exchange)| (*key, exchange))
    }

    /// Returns how many are not answered.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Returns how many are kept for duplicates.
    pub(crate) fn finished(&self) -> usize {
        self.by_key.len() - self.pending
    }

    /// Returns how many sessions have an exchange.
    pub(crate) fn sessions(&self) -> usize {
        self.by_key.keys().map(|(session, _)| *session).collect::<BTreeSet<SessionId>>().len()
    }

    /// Returns the peer that a request came from last; nothing if it is this node's own.
    pub(crate) fn peer_of(&self, exchange: &Exchange) -> Option<IpAddr> {
        match &exchange.requester {
            Requester::Upstream(askers) => askers.last().map(|asker| asker.address),
            // It came by the path, of which this node is the last.
            Requester::Return(forth) => {
                let forth = self.get(*forth).map(|exchange| &exchange.requester);
                if let Some(Requester::Upstream(askers)) = forth {
                    askers.last().map(|asker| asker.address)
                } else {
                    None
                }
            }
            Requester::Nobody | Requester::Local(_) => None,
        }
    }

    /// Takes that the controller is asked about an exchange.
    pub(crate) fn ask(&mut self, id: RequestId, key: ExchangeKey) {
        self.by_request.insert(id, key);
    }

    /// Takes that the controller has found a request to be of the user whom it names. Nothing that is signed names the session, so
    /// those by further sessions may be anybody's copies.
    pub(crate) fn set_proven(&mut self, id: RequestId) {
        let Some(&key @ (session, nonce)) = self.by_request.get(&id) else { return };
        let user = self.get(key).and_then(|exchange| exchange.message.user());
        let is_first = |((other, of), exchange): (ExchangeKey, &Exchange)| {
            exchange.is_proven
                && of == nonce
                && other.either_way() != session.either_way()
                && exchange.message.user() == user
        };
        let is_copy = self.iter().any(is_first);
        if let Some(exchange) = self.by_key.get_mut(&key).filter(|_| !is_copy) {
            exchange.is_proven = true;
        }
    }

    /// Takes that the controller has answered.
    pub(crate) fn reported(&mut self, id: RequestId) -> Option<(ExchangeKey, &mut Exchange)> {
        let key = self.by_request.remove(&id)?;
        Some((key, self.by_key.get_mut(&key).expect("every request named in by_request has its exchange")))
    }

    /// Sets when an exchange is given up or forgotten.
    pub(crate) fn set_timer(&mut self, key: ExchangeKey, at: Instant) {
        if let Some(exchange) = self.by_key.get_mut(&key) {
            self.timers.remove(&(std::mem::replace(&mut exchange.timer, at), key));
            self.timers.insert((at, key));
        }
    }

    /// Notes an exchange's answer, and keeps that until a time.
    pub(crate) fn finish(&mut self, key: ExchangeKey, answer: Response, until: Instant) {
        if let Some(exchange) = self.by_key.get_mut(&key) {
            self.by_request.remove(&exchange.request);
            exchange.answer = Some(answer);
            self.pending -= 1;
        }
        self.set_timer(key, until);
    }

    /// Returns the first that is due, and whether it is pending.
    pub(crate) fn due(&self, now: Instant) -> Option<(ExchangeKey, bool)> {
        let (_, key) = self.timers.first().filter(|(at, _)| *at <= now)?;
        Some((*key, self.by_key.get(key).expect("every timer has its exchange").is_pending()))
    }

    /// Returns when the first is due, and for what.
    pub(crate) fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.first().map(|(due, key)| {
            let pending = self.by_key.get(key).is_some_and(Exchange::is_pending);
            (*due, if pending { "nslp answer" } else { "nslp retention" })
        })
    }

    /// Forgets the finished exchange that ends first if there are too many.
    pub(crate) fn make_room(&mut self, cx: &mut Cx<'_>) {
        if self.finished() > FINISHED_MAX {
            let is_finished = |key: &ExchangeKey| !self.by_key[key].is_pending();
            let first = self.timers.iter().map(|(_, key)| *key).find(is_finished);
            self.forget(cx, first.expect("there are more than none"));
        }
    }

    /// Forgets an exchange, if it exists.
    pub(crate) fn forget(&mut self, cx: &mut Cx<'_>, key: ExchangeKey) {
        let Some(exchange) = self.by_key.remove(&key) else { return };
        self.timers.remove(&(exchange.timer, key));
        if let (true, Some(mri)) = (exchange.goes_on, exchange.mri) {
            self.paths.leave(cx, key.0, Arc::new(mri));
        }
    }

    /// Forgets what a request was answered, which does not hold any more.
    pub(crate) fn forget_answer(&mut self, cx: &mut Cx<'_>, key: ExchangeKey) {
        if self.by_key.get(&key).is_some_and(|exchange| !exchange.is_pending()) {
            self.forget(cx, key);
        }
    }
}
