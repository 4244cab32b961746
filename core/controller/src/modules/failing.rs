// SPDX-License-Identifier: Apache-2.0
//! Installed modules that failed are started again after a while, or kept out.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netserv_model::effect::FilterId;
use netserv_model::notify::NotifyEvent;
use netserv_model::{Digest, Refusal, UserId, WorkerId};

use crate::cx::Cx;
use crate::cx::jobs::unload;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::{BACKOFF_MIN, QUARANTINE_TIME};
use crate::modules::sessions::tell_requesters;
use crate::moves::floating::hold_floating;
use crate::rules::install::suspend_intercepts;
use crate::rules::names::forget;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::users::quota::Quarantine;

/// An installed module trapped or could not be loaded: it is started again after a while, or kept out.
pub(crate) fn fail_active(
    cx: &mut Cx,
    tenants: &mut Tenants,
    quarantine: &mut Quarantine,
    key: &Key,
    refusal: Refusal,
) {
    let now = cx.now.instant;
    suspend_intercepts(cx, tenants, key);
    let Some(active) = tenants.active_mut(key).filter(|active| active.run.in_worker()) else {
        cx.counters.stray_events += 1;
        return;
    };
    active.last_failure = Some(refusal);
    cx.counters.module_failures += 1;
    back_off(cx, tenants, quarantine, key, now);
}

/// A module is to blame for the end of its worker, which starts without it.
pub(crate) fn fail_culprit(
    cx: &mut Cx,
    tenants: &mut Tenants,
    quarantine: &mut Quarantine,
    key: &Key,
    refusal: Refusal,
) {
    fail_active(cx, tenants, quarantine, key, refusal);
    let later = cx.now.instant + BACKOFF_MIN;
    let backing_off = tenants.active(key).is_some_and(|active| active.run == Run::BackingOff);
    if backing_off {
        cx.timers.set_not_before(Timer::Restart(key.clone()), later);
    }
}

/// A running module lost a filter through no fault of its own: it starts afresh after a while.
fn fail_filter(cx: &mut Cx, tenants: &mut Tenants, key: &Key, refusal: Refusal) {
    let now = cx.now.instant;
    suspend_intercepts(cx, tenants, key);
    let Some(active) = tenants.active_mut(key).filter(|active| active.run == Run::Running) else {
        return;
    };
    active.last_failure = Some(refusal);
    active.run = Run::BackingOff;
    let (place, wait) = (active.place(), active.backoff.retry(now).max(BACKOFF_MIN));
    cx.counters.module_failures += 1;
    if let Some((flavour, slot)) = place {
        unload(cx, &WorkerId::new(key.0.clone(), flavour), slot);
    }
    cx.timers.set(Timer::Restart(key.clone()), now + wait);
}

/// The node could not load a module through no fault of the module: its package is had again after a while.
pub(crate) fn fail_load(cx: &mut Cx, tenants: &mut Tenants, key: &Key, refusal: Refusal) {
    let now = cx.now.instant;
    let Some(active) = tenants.active_mut(key).filter(|active| active.run == Run::Loading) else {
        cx.counters.stray_events += 1;
        return;
    };
    active.last_failure = Some(refusal);
    active.manifest = None;
    active.run = Run::BackingOff;
    let wait = active.backoff.retry(now).max(BACKOFF_MIN);
    cx.counters.module_failures += 1;
    cx.timers.set(Timer::Restart(key.clone()), now + wait);
}

fn back_off(cx: &mut Cx, tenants: &mut Tenants, quarantine: &mut Quarantine, key: &Key, now: netserv_model::Instant) {
    let Some(active) = tenants.active_mut(key) else { return };
    if let Some(wait) = active.backoff.fail(now) {
        active.run = Run::BackingOff;
        cx.timers.set(Timer::Restart(key.clone()), now + wait);
        return;
    }
    active.run = Run::Quarantined;
    let digest = active.record.digest;
    let why = active.last_failure.as_ref().map(|refusal| format!(": {refusal}")).unwrap_or_default();
    let detail = format!("failed too often, kept out for {} s{why}", QUARANTINE_TIME.as_secs());
    tell_requesters(cx, tenants, key, NotifyEvent::ModuleFailed, detail);
    keep_out(cx, quarantine, key, digest);
    cx.timers.set(Timer::Restart(key.clone()), now + QUARANTINE_TIME);
}

/// Puts code of a user's into quarantine.
pub(crate) fn keep_out(cx: &mut Cx, quarantine: &mut Quarantine, key: &Key, digest: Digest) {
    let now = cx.now.instant;
    cx.counters.quarantines += 1;
    quarantine.insert(now, key.0.clone(), digest, now + QUARANTINE_TIME);
}

/// A running module lost rules through no fault of its own.
pub(crate) fn lose_rules(cx: &mut Cx, tenants: &mut Tenants, key: &Key, lost: &[FilterId], refusal: Refusal) {
    let Some(active) = tenants.active_mut(key) else { return };
    if forget(&mut active.rules, lost) {
        fail_filter(cx, tenants, key, refusal);
    }
}

/// Addresses of running modules do not lead to their container, through no fault of theirs.
pub(crate) fn lose_floating(
    cx: &mut Cx,
    tenants: &mut Tenants,
    user: &UserId,
    lost: &BTreeSet<IpAddr>,
    refusal: &Refusal,
) {
    let Some(tenant) = tenants.get_mut(user) else { return };
    let mut keys = Vec::new();
    for (module, entry) in &mut tenant.modules {
        let has_lost = |active: &Active| active.record.floating.iter().any(|address| lost.contains(address));
        if let Some(active) = entry.active.as_mut().filter(|active| has_lost(active)) {
            active.holds_floating = false;
            keys.push((user.clone(), module.clone()));
        }
    }
    if keys.is_empty() {
        // Nobody waits for it: it is asked for again with the next change.
        return;
    }
    for key in keys {
        fail_filter(cx, tenants, &key, refusal.clone());
    }
    hold_floating(cx, tenants, user);
}
