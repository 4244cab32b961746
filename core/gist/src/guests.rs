// SPDX-License-Identifier: Apache-2.0
//! NSLPs that come and go while the node runs, beside those that the configuration names.

use std::collections::BTreeSet;

use netserv_model::Instant;

use crate::api::{FailReason, HostError, SendStatus};
use crate::engine::Engine;
use crate::limits;

impl Engine {
    /// Hosts one more NSLP from here on, with its value of the Router Alert Option, until [`Engine::unhost`].
    ///
    /// # Errors
    /// The NSLP is hosted already, or as many as [`limits::GUESTS_MAX`] were added.
    pub fn host(&mut self, nslp_id: u16, router_alert: u16) -> Result<(), HostError> {
        if self.settings.hosts(nslp_id) {
            return Err(HostError::Taken(nslp_id));
        }
        if self.routes.guests.len() >= limits::GUESTS_MAX {
            return Err(HostError::Full);
        }
        self.routes.guests.insert(nslp_id, BTreeSet::new());
        self.settings.host(nslp_id, router_alert);
        Ok(())
    }

    /// Hosts an NSLP no more that [`Engine::host`] added: its waiting messages end as cancelled, its routing state is given
    /// up, and Queries for it go on to the next node. Of others nothing changes.
    pub fn unhost(&mut self, now: Instant, nslp_id: u16) {
        if !self.routes.guests.contains_key(&nslp_id) {
            return;
        }
        self.settings.unhost(nslp_id);
        self.forget_peering(now, nslp_id);
        for id in self.routes.matching_of(nslp_id, |_| true) {
            self.remove_route(now, id, SendStatus::Failed(FailReason::Cancelled));
        }
        self.routes.guests.remove(&nslp_id);
    }

    /// Returns whether an NSLP is a guest with as many rows as it may have.
    pub(crate) fn guest_is_full(&self, nslp_id: u16) -> bool {
        let rows_max = (self.settings.config().routes_max / limits::GUEST_ROUTES_PART).min(limits::GUEST_ROUTES_MAX);
        self.routes.guests.get(&nslp_id).is_some_and(|rows| rows.len() >= rows_max)
    }
}
