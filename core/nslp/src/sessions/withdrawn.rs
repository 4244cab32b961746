// SPDX-License-Identifier: Apache-2.0
//! Leases that ended, for nodes further on that ask.

use std::collections::VecDeque;
use std::sync::Arc;

use netserv_model::{Instant, SessionId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Tear;

use super::lease::{Installed, Lease};
use crate::limits::{WITHDRAWN_MAX, WITHDRAWN_TIME};

/// What was torn or removed a short while ago.
#[derive(Debug, Default)]
pub(crate) struct Withdrawn(VecDeque<(Instant, SessionId, Arc<Mri>, Arc<Installed>)>);

impl Withdrawn {
    /// Remembers a lease that ended; the oldest is forgotten if there are too many.
    pub(crate) fn remember(&mut self, now: Instant, lease: &Lease) {
        while self.0.front().is_some_and(|(at, ..)| *at + WITHDRAWN_TIME <= now) || self.0.len() >= WITHDRAWN_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, lease.session, Arc::clone(&lease.mri), Arc::clone(&lease.installed)));
    }

    pub(super) fn has(&self, now: Instant, mri: &Mri, tear: &Tear) -> bool {
        self.0.iter().any(|(at, session, of, installed)| {
            *at + WITHDRAWN_TIME > now
                && (session, &**of) == (&tear.session, mri)
                && (&installed.user, &installed.module) == (&tear.user, &tear.module)
        })
    }
}
