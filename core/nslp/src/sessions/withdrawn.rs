// SPDX-License-Identifier: Apache-2.0
//! Leases that ended, for nodes further on that ask.

use std::collections::VecDeque;
use std::sync::Arc;

use netserv_model::{Instant, SessionId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Tear;

use super::lease::{Installed, Lease};
use super::shares::Shares;
use crate::limits::{WITHDRAWN_MAX, WITHDRAWN_TIME};

/// What was torn or removed a short while ago.
#[derive(Debug, Default)]
pub(crate) struct Withdrawn {
    leases: VecDeque<(Instant, SessionId, Arc<Mri>, Arc<Installed>)>,
    shares: Shares,
}

impl Withdrawn {
    /// Remembers a lease that ended; the oldest of the user who has most is forgotten if there are too many.
    pub(crate) fn remember(&mut self, now: Instant, lease: &Lease) {
        while self.leases.front().is_some_and(|(at, ..)| *at + WITHDRAWN_TIME <= now) {
            self.forget(0);
        }
        self.shares.add(&lease.installed.user);
        self.leases.push_back((now, lease.session, Arc::clone(&lease.mri), Arc::clone(&lease.installed)));
        if self.leases.len() > WITHDRAWN_MAX {
            let most = self.shares.most();
            let first = self.leases.iter().position(|(.., of)| self.shares.of(&of.user) == most);
            self.forget(first.unwrap_or(0));
        }
    }

    fn forget(&mut self, index: usize) {
        if let Some((.., installed)) = self.leases.remove(index) {
            self.shares.remove(&installed.user);
        }
    }

    pub(super) fn has(&self, now: Instant, mri: &Mri, tear: &Tear) -> bool {
        self.leases.iter().any(|(at, session, of, installed)| {
            *at + WITHDRAWN_TIME > now
                && (session, &**of) == (&tear.session, mri)
                && (&installed.user, &installed.module) == (&tear.user, &tear.module)
        })
    }
}
