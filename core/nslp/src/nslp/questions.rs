// SPDX-License-Identifier: Apache-2.0
//! Nodes that may be left behind ask those who asked them, whether their path still leads here.
//!
//! A TEAR counts from the connection or address that the SETUP came from. One that comes another way, or gets lost, leaves a
//! module behind. Silence proves nothing: a node that refuses a SETUP, or that was started anew, knows nothing of it. So only
//! who still follows the SETUP, or did a short while ago, says that its path leads elsewhere.

use std::collections::VecDeque;
use std::sync::Arc;

use netserv_model::{Instant, Nonce, SessionId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Tear;
use rand::Rng;

use super::{Nslp, Received};
use crate::leases::{Installed, Lease, LeaseId};
use crate::limits::{QUESTIONS_BURST_INTERVAL, WITHDRAWN_MAX, WITHDRAWN_TIME};

impl Nslp {
    /// Takes a sign that the path of a session's SETUPs does not lead here any more: nobody refreshes the state toward it.
    pub(super) fn doubt(&mut self, now: Instant, session: SessionId, mri: &Mri) {
        let of_session = |(_, lease): &(LeaseId, &Lease)| lease.session == session;
        let ids: Vec<LeaseId> = self.leases.of_flow(mri).filter(of_session).map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.ask_again(now, id));
    }

    /// Has those who asked for a lease asked soon, if it ends when they are gone.
    pub(super) fn ask_again(&mut self, now: Instant, id: LeaseId) {
        self.leases.change(id, |lease| {
            if !lease.is_local && !lease.is_crowded {
                lease.begin_questions(now);
            }
        });
    }

    /// Asks those who asked for a lease, or does so later if there are too many questions.
    pub(super) fn question(&mut self, now: Instant, id: LeaseId) {
        let askers = self.leases.get(id).map_or(0, |lease| lease.upstream.len());
        if !self.questions.take(now, askers) {
            self.counters.questions_over_limit += 1;
            self.leases.change(id, |lease| lease.put_off_questions(now + QUESTIONS_BURST_INTERVAL));
            return;
        }
        let rng = &mut self.rng;
        let asked = self.leases.change(id, |lease| lease.question(now, || Nonce(rng.random())));
        let Some(lease) = self.leases.get(id) else { return };
        let (mri, session, nonce) = (lease.mri.inverted(), lease.session, lease.nonce);
        let Installed { user, module } = &*Arc::clone(&lease.installed);
        for (sii, token) in asked.unwrap_or_default() {
            self.counters.questions_sent += 1;
            let tear = Tear { session, nonce, user: user.clone(), module: module.clone(), token: Some(token) };
            self.send_tear(&mri, sii, &tear);
        }
    }

    /// Answers a node further on that asks whether the path of a SETUP leads there, if it does not.
    pub(super) fn handle_question(&mut self, now: Instant, from: &Received, tear: &Tear) {
        let Some(peer) = from.claims.filter(|_| tear.token.is_some() && tear.session == from.session) else {
            self.counters.messages_unexpected += 1;
            return;
        };
        let mri = from.mri.inverted();
        // A newer SETUP may have gone another way already.
        let of_it = |lease: &Lease| {
            (lease.session, &lease.installed.user, &lease.installed.module) == (tear.session, &tear.user, &tear.module)
        };
        let is_gone = match self.leases.of_flow(&mri).find(|(_, lease)| of_it(lease)) {
            Some((_, lease)) => match lease.downstream {
                Some(next) => !next.is_node_of(peer),
                None => !lease.is_partial,
            },
            None => self.withdrawn.has(now, &mri, tear),
        };
        if is_gone {
            self.counters.tears_sent += 1;
            self.send_tear(&mri, peer, tear);
        }
    }
}

/// What was torn or removed a short while ago.
#[derive(Debug, Default)]
pub(super) struct Withdrawn(VecDeque<(Instant, SessionId, Arc<Mri>, Arc<Installed>)>);

impl Withdrawn {
    /// Remembers a lease that ended; the oldest is forgotten if there are too many.
    pub(super) fn remember(&mut self, now: Instant, lease: &Lease) {
        while self.0.front().is_some_and(|(at, ..)| *at + WITHDRAWN_TIME <= now) || self.0.len() >= WITHDRAWN_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, lease.session, Arc::clone(&lease.mri), Arc::clone(&lease.installed)));
    }

    fn has(&self, now: Instant, mri: &Mri, tear: &Tear) -> bool {
        self.0.iter().any(|(at, session, of, installed)| {
            *at + WITHDRAWN_TIME > now
                && (session, &**of) == (&tear.session, mri)
                && (&installed.user, &installed.module) == (&tear.user, &tear.module)
        })
    }
}
