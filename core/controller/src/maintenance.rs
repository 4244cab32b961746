// SPDX-License-Identifier: Apache-2.0
//! A node that its operator drains: it takes nothing new and renews no lease, and tells whoever has modules there.
//!
//! It moves nothing by itself: modules belong to users, who sign for what is done with them.

use std::time::Duration;

use netserv_model::notify::NotifyEvent;
use netserv_model::{Refusal, RefusalKind};

use crate::cx::Cx;
use crate::operator::tell_requesters;
use crate::state::Key;
use crate::tenants::Tenants;

/// Checks that a SETUP brings nothing new to a node that is being drained: a later epoch would make it the next owner.
pub(crate) fn check_maintenance(cx: &Cx, tenants: &Tenants, key: &Key, epoch: u64) -> Result<(), Refusal> {
    let active = || tenants.get(&key.0)?.modules.get(&key.1)?.active.as_ref();
    if !cx.is_drained_for(&key.0) || active().is_some_and(|active| epoch <= active.record.epoch) {
        return Ok(());
    }
    let detail = format!("the operator drains {}, which takes nothing new", cx.policy.node);
    Err(Refusal::new(RefusalKind::Maintenance, detail))
}

/// Returns the lease that a SETUP gets: no longer than the one in force, if the node is being drained.
pub(crate) fn granted_ttl(cx: &Cx, tenants: &mut Tenants, key: &Key, ttl: Duration) -> Duration {
    if !cx.is_drained_for(&key.0) {
        return ttl;
    }
    let now = cx.now.instant;
    tenants.active(key).map_or(ttl, |active| ttl.min(active.lease_end.since(now)))
}

/// Tells whoever has modules here that they are to be moved.
pub(crate) fn say_maintenance(cx: &mut Cx, tenants: &mut Tenants) {
    let keys = tenants.iter().filter(|(user, _)| !cx.is_operator(user));
    let keys = keys.flat_map(|(user, tenant)| tenant.modules.keys().map(|name| (user.clone(), name.clone())));
    for key in keys.collect::<Vec<Key>>() {
        let left = tenants.active(&key).map(|active| active.lease_end).unwrap_or_default().since(cx.now.instant);
        let detail = format!(
            "the operator drains {}; {} goes on for {} s unless it is moved before",
            cx.policy.node,
            key.1,
            left.as_secs()
        );
        tell_requesters(cx, tenants, &key, NotifyEvent::NodeMaintenance, detail);
    }
}
