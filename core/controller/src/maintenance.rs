// SPDX-License-Identifier: Apache-2.0
//! A node that its operator drains: it takes nothing new and renews no lease, and tells whoever has modules there.
//!
//! It moves nothing by itself: modules belong to users, who sign for what is done with them.

use std::time::Duration;

use netserv_model::notify::NotifyEvent;
use netserv_model::request::ModuleStatus;
use netserv_model::{Now, Refusal, RefusalKind, UserId};

use crate::Controller;
use crate::report::modules_of;
use crate::state::Key;

impl Controller {
    /// Returns the modules of users that are left on the node.
    pub fn user_modules(&self, now: Now) -> Vec<ModuleStatus> {
        let users = self.tenants.iter().filter(|(user, _)| !self.is_operator(user));
        users.flat_map(|(user, tenant)| modules_of(user, tenant, now.instant)).collect()
    }

    /// Checks that a SETUP brings nothing new to a node that is being drained: a later epoch would make it the next owner.
    pub(crate) fn check_maintenance(&self, key: &Key, epoch: u64) -> Result<(), Refusal> {
        let active = || self.tenants.get(&key.0)?.modules.get(&key.1)?.active.as_ref();
        if !self.is_drained_for(&key.0) || active().is_some_and(|active| epoch <= active.record.epoch) {
            return Ok(());
        }
        let detail = format!("the operator drains {}, which takes nothing new", self.policy.node);
        Err(Refusal::new(RefusalKind::Maintenance, detail))
    }

    /// Returns the lease that a SETUP gets: no longer than the one in force, if the node is being drained.
    pub(crate) fn granted_ttl(&mut self, key: &Key, ttl: Duration) -> Duration {
        if !self.is_drained_for(&key.0) {
            return ttl;
        }
        let now = self.now.instant;
        self.active(key).map_or(ttl, |active| ttl.min(active.lease_end.since(now)))
    }

    /// Tells whoever has modules here that they are to be moved.
    pub(crate) fn say_maintenance(&mut self) {
        let keys = self.tenants.iter().filter(|(user, _)| !self.is_operator(user));
        let keys = keys.flat_map(|(user, tenant)| tenant.modules.keys().map(|name| (user.clone(), name.clone())));
        for key in keys.collect::<Vec<Key>>() {
            let left = self.active(&key).map(|active| active.lease_end).unwrap_or_default().since(self.now.instant);
            let detail = format!(
                "the operator drains {}; {} goes on for {} s unless it is moved before",
                self.policy.node,
                key.1,
                left.as_secs()
            );
            self.tell_requesters(&key, NotifyEvent::NodeMaintenance, detail);
        }
    }

    fn is_drained_for(&self, user: &UserId) -> bool {
        self.policy.maintenance && !self.is_operator(user)
    }

    fn is_operator(&self, user: &UserId) -> bool {
        self.policy.operator.as_ref().is_some_and(|operator| operator.user == *user)
    }
}
