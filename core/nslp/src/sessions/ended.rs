// SPDX-License-Identifier: Apache-2.0
//! Leases that ended here before their time, for news of nodes further on that still have theirs.

use std::collections::BTreeMap;

use netserv_model::Instant;
use netserv_wire::gist::Mri;

use super::lease::{Lease, LeaseId};
use super::shares::Shares;
use crate::cx::ExchangeKey;
use crate::limits::ENDED_MAX;

/// What ended here a short while ago, in the order in which it is forgotten. No path is followed for it.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    leases: BTreeMap<(Instant, LeaseId), Box<Lease>>,
    shares: Shares,
}

impl Ended {
    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Keeps one until a time; returns the one that makes room for it, if there are too many: the next to be forgotten of the user who has most.
    pub(super) fn keep(&mut self, id: LeaseId, until: Instant, lease: Lease) -> Option<Lease> {
        self.shares.add(&lease.installed.user);
        self.leases.insert((until, id), Box::new(lease));
        if self.leases.len() <= ENDED_MAX {
            return None;
        }
        let most = self.shares.most();
        let has_most = |lease: &Lease| self.shares.of(&lease.installed.user) == most;
        let first = self.leases.iter().find(|(_, lease)| has_most(lease)).map(|(key, _)| *key);
        first.and_then(|key| self.remove(key))
    }

    /// Returns the one that a SETUP led to.
    pub(crate) fn of_setup(&mut self, (session, nonce): ExchangeKey, mri: &Mri) -> Option<&mut Lease> {
        let is_its = |lease: &&mut Box<Lease>| (lease.session, lease.nonce) == (session, nonce) && *lease.mri == *mri;
        self.leases.values_mut().find(is_its).map(Box::as_mut)
    }

    /// Takes out the next one whose time is over.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Lease> {
        let (key, _) = self.leases.first_key_value()?;
        if key.0 <= now { self.remove(*key) } else { None }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.leases.first_key_value().map(|((until, _), _)| *until)
    }

    fn remove(&mut self, key: (Instant, LeaseId)) -> Option<Lease> {
        let lease = self.leases.remove(&key)?;
        self.shares.remove(&lease.installed.user);
        Some(*lease)
    }
}
