// SPDX-License-Identifier: Apache-2.0
//! Leases that ended here before their time, for news of nodes further on that still have theirs.

use std::collections::BTreeMap;

use netserv_model::Instant;
use netserv_wire::gist::Mri;

use super::lease::{Lease, LeaseId};
use crate::cx::ExchangeKey;
use crate::limits::ENDED_MAX;

/// What ended here a short while ago, in the order in which it is forgotten. No path is followed for it.
#[derive(Debug, Default)]
pub(crate) struct Ended(BTreeMap<(Instant, LeaseId), Box<Lease>>);

impl Ended {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps one until a time; returns the one that makes room for it, if there are too many.
    pub(super) fn keep(&mut self, id: LeaseId, until: Instant, lease: Lease) -> Option<Lease> {
        self.0.insert((until, id), Box::new(lease));
        if self.0.len() > ENDED_MAX { self.pop() } else { None }
    }

    /// Returns the one that a SETUP led to.
    pub(crate) fn of_setup(&mut self, (session, nonce): ExchangeKey, mri: &Mri) -> Option<&mut Lease> {
        let is_its = |lease: &&mut Box<Lease>| (lease.session, lease.nonce) == (session, nonce) && *lease.mri == *mri;
        self.0.values_mut().find(is_its).map(Box::as_mut)
    }

    /// Takes out the next one whose time is over.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Lease> {
        if self.poll_timeout()? <= now { self.pop() } else { None }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.0.first_key_value().map(|((until, _), _)| *until)
    }

    fn pop(&mut self) -> Option<Lease> {
        self.0.pop_first().map(|(_, lease)| *lease)
    }
}
