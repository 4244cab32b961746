// SPDX-License-Identifier: Apache-2.0
//! What a module has outside of its entry goes with it.

use netserv_model::effect::ModuleSlot;
use netserv_model::{Flavour, Refusal, WorkerId};

use crate::cx::Cx;
use crate::cx::jobs::{drop_job, unload};
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::rules::names::remove_rules;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::operation::{Candidate, Failed};
use crate::tenants::rule::ModuleRule;
use crate::tenants::tenant::Entry;
use crate::workers::release::release_unused;

/// Removes everything that an installed module has outside of its entry.
pub(crate) fn retire(cx: &mut Cx, tenants: &mut Tenants, key: &Key, active: &Active) {
    cx.timers.cancel(&Timer::Lease(key.clone()));
    cx.timers.cancel(&Timer::Restart(key.clone()));
    if let Run::Fetching(job) = active.run {
        drop_job(cx, job);
    }
    let (place, run) = (active.place(), Some(active.run).filter(|run| run.in_worker()));
    drop_module(cx, tenants, key, &active.rules, place, run);
}

/// Removes everything that a module under way has outside of its entry.
pub(crate) fn drop_candidate(cx: &mut Cx, tenants: &mut Tenants, key: &Key, candidate: &Candidate, run: Option<Run>) {
    let place = candidate.place();
    drop_module(cx, tenants, key, &candidate.rules, place, run);
}

fn drop_module(
    cx: &mut Cx,
    tenants: &mut Tenants,
    key: &Key,
    rules: &[ModuleRule],
    place: Option<(Flavour, ModuleSlot)>,
    run: Option<Run>,
) {
    remove_rules(cx, key, rules);
    let Some((flavour, slot)) = place else { return };
    let worker = WorkerId::new(key.0.clone(), flavour);
    if run.is_some() {
        unload(cx, &worker, slot);
    }
    if run == Some(Run::Loading) {
        tenants.leave_place(&worker, slot);
    } else {
        tenants.free_place(&worker, slot);
    }
}

/// Drops what an entry no longer needs: itself, then its worker.
pub(crate) fn drop_unused(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(tenant) = tenants.get_mut(&key.0) else { return };
    if tenant.modules.get(&key.1).is_some_and(Entry::is_empty) {
        tenant.modules.remove(&key.1);
    }
    release_unused(cx, tenants, &key.0);
}

/// Takes note that a module which is about to be in force will not be. Returns whether that must wait for a change
/// of rules under way.
pub(crate) fn fail_swap(tenants: &mut Tenants, key: &Key, refusal: &Refusal, loaded: bool) -> bool {
    let Some((_, settling)) = tenants.settling(key).filter(|(_, settling)| settling.change.is_some()) else {
        return false;
    };
    let failed = settling.failed.get_or_insert_with(|| Failed { refusal: refusal.clone(), loaded });
    failed.loaded &= loaded;
    true
}
