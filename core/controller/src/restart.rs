// SPDX-License-Identifier: Apache-2.0
//! Installed modules that failed, or that a restart of the node took down.

use std::collections::BTreeMap;
use std::time::Duration;

use netserv_model::control::ControlMessage;
use netserv_model::effect::{EffectId, InstalledRecord, StoredMessage};
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::request::Setup;
use netserv_model::{Digest, Flavour, Refusal, RefusalKind, Topic, WorkerId};

use crate::admission::{Asked, check_manifest};
use crate::buffering::Buffers;
use crate::control::Control;
use crate::cx::Cx;
use crate::expiry::Timer;
use crate::filters;
use crate::floating::{leave_to_owners, take_floating};
use crate::forbidden::{allowed_sessions, end_forbidden};
use crate::lifecycle::{advance, fetch, forget_record, store_record, uninstall, unload};
use crate::limits::{BACKOFF_MIN, MODULES_PER_USER_MAX, QUARANTINE_TIME};
use crate::modules::Modules;
use crate::operator::tell_requesters;
use crate::quota::Quarantine;
use crate::rules::{remove_rules, suspend_intercepts};
use crate::services::{check_services, compose_active};
use crate::sessions::{arm_lease, fit_rules, store_active};
use crate::state::{Active, Backoff, Key, Leave, ModuleRule, RuleKind, Run, Session};
use crate::tenants::Tenants;
use crate::workers::{pump_user, release_unused};

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
    let Some(active) = tenants.active(key).filter(|active| active.run.in_worker()) else {
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
pub(crate) fn fail_filter(cx: &mut Cx, tenants: &mut Tenants, key: &Key, refusal: Refusal) {
    let now = cx.now.instant;
    suspend_intercepts(cx, tenants, key);
    let Some(active) = tenants.active(key).filter(|active| active.run == Run::Running) else {
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
    let Some(active) = tenants.active(key).filter(|active| active.run == Run::Loading) else {
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

/// A module's wait is over.
pub(crate) fn restart_module(cx: &mut Cx, m: &mut Modules, key: &Key) {
    let Some(active) = m.tenants.active(key) else { return };
    match active.run {
        Run::BackingOff => {}
        Run::Quarantined => active.backoff = Backoff::default(),
        Run::Waiting => return pump_user(cx, m, &key.0),
        Run::Fetching(_) | Run::Loading | Run::Running => return,
    }
    active.restarts = active.restarts.saturating_add(1);
    active.run = Run::Waiting;
    if active.manifest.as_ref().is_some_and(|manifest| manifest.service.is_some()) {
        return compose_active(cx, m, key);
    }
    if active.manifest.is_none() {
        let (url, digest) = (active.record.url.clone(), active.record.digest);
        let job = fetch(cx, key, url, digest, None);
        m.tenants.set_run(key, Run::Fetching(job));
    }
    pump_user(cx, m, &key.0);
}

/// Takes over the modules of an earlier run, in install order, with the last messages to them.
pub(crate) fn restore_records(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    mut records: Vec<InstalledRecord>,
    messages: Vec<StoredMessage>,
) {
    records.sort_by_key(|record| record.order);
    let mut kept: BTreeMap<Key, BTreeMap<Topic, ControlMessage>> = BTreeMap::new();
    for StoredMessage { user, module, message } in messages {
        kept.entry((user, module)).or_default().insert(message.topic.clone(), message);
    }
    for mut record in records {
        tenants.order_after(record.order);
        let key = (record.user.clone(), record.module.name.clone());
        let known = tenants.get(&key.0).is_some_and(|tenant| tenant.modules.contains_key(&key.1));
        if known {
            continue;
        }
        if record.lease_until <= cx.now.wall {
            cx.counters.leases_expired += 1;
            forget_record(cx, &key);
            continue;
        }
        let sessions = allowed_sessions(cx, &key, &mut record);
        if may_stay(cx, tenants, &key, &record) && !sessions.is_empty() {
            let control = Control::with(kept.remove(&key).unwrap_or_default());
            restore_record(cx, tenants, buffers, &key, record, sessions, control);
        } else {
            cx.counters.revoked += 1;
            forget_record(cx, &key);
        }
    }
}

/// The package of an installed module is there again.
pub(crate) fn active_fetched(
    cx: &mut Cx,
    m: &mut Modules,
    key: &Key,
    job: EffectId,
    manifest: Manifest,
    flavour: Flavour,
) {
    if m.tenants.record_fetching(key, job).is_none() {
        return;
    }
    end_forbidden(cx, &mut m.tenants, key, Some(&manifest));
    let Some(record) = m.tenants.record_fetching(key, job) else { return };
    let (session, setup) = (record.session, as_setup(record));
    let (others, declared) = (m.tenants.others_than(key, session), manifest.intercept().to_vec());
    let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
    let user = cx.user_policy(&key.0);
    let checked = user.and_then(|user| check_manifest(&cx.policy, user, &setup, &others, manifest, flavour));
    let manifest = match checked {
        Ok((manifest, _)) => manifest,
        Err(refusal) => return give_up(cx, m, key, &refusal),
    };
    let service = manifest.service.is_some();
    change_flavour(cx, &mut m.tenants, key, if service { Flavour::Wasm } else { flavour });
    if let Some(active) = m.tenants.active(key) {
        // Connections are taken over as the manifest says, which a restarted node has only from here on.
        if manifest.packet.is_none() {
            active.rules.retain(|rule| rule.kind == RuleKind::Intercept);
        }
        if !active.rules.iter().any(|rule| rule.kind == RuleKind::Intercept) {
            active.rules.extend(ModuleRule::all_of(&[], Some(&manifest)));
        }
        (active.manifest, active.declared) = (Some(manifest), declared);
        active.run = Run::Waiting;
    }
    // Those of sessions that ended while it was not there.
    fit_rules(cx, &mut m.tenants, key);
    if service {
        return compose_active(cx, m, key);
    }
    pump_user(cx, m, &key.0);
    check_services(cx, m, &key.0);
    // The worker of the flavour that it had may have nothing left.
    release_unused(cx, &mut m.tenants, &key.0);
}

/// The package of an installed module could not be had again.
pub(crate) fn active_not_fetched(cx: &mut Cx, m: &mut Modules, key: &Key, job: EffectId, refusal: &Refusal) {
    if m.tenants.record_fetching(key, job).is_none() {
        return;
    }
    if !may_come_back(refusal.kind) {
        return give_up(cx, m, key, refusal);
    }
    let now = cx.now.instant;
    let Some(active) = m.tenants.active(key) else { return };
    active.last_failure = Some(refusal.clone());
    active.run = Run::BackingOff;
    let wait = active.backoff.retry(now).max(BACKOFF_MIN);
    cx.timers.set(Timer::Restart(key.clone()), now + wait);
}

fn back_off(cx: &mut Cx, tenants: &mut Tenants, quarantine: &mut Quarantine, key: &Key, now: netserv_model::Instant) {
    let Some(active) = tenants.active(key) else { return };
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

fn may_stay(cx: &Cx, tenants: &Tenants, key: &Key, record: &InstalledRecord) -> bool {
    let installed = tenants.get(&key.0).map_or(0, |tenant| tenant.modules.len());
    let user = cx.policy.users.get(&key.0).filter(|_| !cx.policy.host_only);
    installed < MODULES_PER_USER_MAX
        && user.is_some_and(|user| filters::check_floating(&cx.policy, user, &record.floating).is_ok())
}

fn restore_record(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    mut record: InstalledRecord,
    sessions: Vec<Session>,
    control: Control,
) {
    let have_some_ended = sessions.len() < record.sessions.len();
    let job = fetch(cx, key, record.url.clone(), record.digest, None);
    leave_to_owners(tenants, key, &mut record);
    let (floating, epoch) = (record.floating.clone(), record.epoch);
    let rules = ModuleRule::all_of(&record.filters, None);
    let is_frozen = record.moved_in.is_some();
    let mut active = Active {
        record,
        sessions: Vec::new(),
        lease_end: cx.now.instant,
        manifest: None,
        declared: Vec::new(),
        rules,
        slot: None,
        composition: None,
        run: Run::Fetching(job),
        backoff: Backoff::default(),
        restarts: 0,
        is_frozen,
        holds_floating: false,
        control,
        last_failure: None,
    };
    active.restore_sessions(sessions);
    tenants.entry_or_new(key).active = Some(active);
    if have_some_ended {
        store_active(cx, tenants, key);
    }
    arm_lease(cx, tenants, key);
    take_floating(cx, tenants, buffers, key, &floating, epoch);
    cx.counters.restored += 1;
}

/// Takes note of the flavour that an installed module has from here on; what it had of another one goes.
fn change_flavour(cx: &mut Cx, tenants: &mut Tenants, key: &Key, flavour: Flavour) {
    let Some(active) = tenants.active(key).filter(|active| active.record.flavour != Some(flavour)) else { return };
    let place = active.place();
    active.slot = None;
    active.record.flavour = Some(flavour);
    let record = active.record.clone();
    let unnamed: Vec<ModuleRule> = active
        .rules
        .iter()
        .map(|rule| ModuleRule { kind: rule.kind, filter: rule.filter.clone(), ids: Vec::new() })
        .collect();
    let rules = std::mem::replace(&mut active.rules, unnamed);
    remove_rules(cx, key, &rules);
    if let Some((before, slot)) = place {
        tenants.free_place(&WorkerId::new(key.0.clone(), before), slot);
    }
    store_record(cx, key, &record);
}

fn give_up(cx: &mut Cx, m: &mut Modules, key: &Key, refusal: &Refusal) {
    cx.counters.revoked += 1;
    tell_requesters(cx, &mut m.tenants, key, NotifyEvent::LeaseEnded, refusal.to_string());
    uninstall(cx, m, key, Leave::AtOnce);
    advance(cx, m, key);
}

/// Returns whether a fetch that failed so may succeed later.
fn may_come_back(kind: RefusalKind) -> bool {
    matches!(
        kind,
        RefusalKind::FetchFailed
            | RefusalKind::NodeFailed
            | RefusalKind::Timeout
            | RefusalKind::QuotaExceeded
            | RefusalKind::NoFlavour
    )
}

/// Returns the SETUP of the session that a module is from.
pub(crate) fn as_setup(record: &InstalledRecord) -> Setup {
    let own = record.sessions.iter().find(|session| session.session == record.session);
    let (filters, intercept) = own.map_or((&record.filters, &record.intercept), |own| (&own.filters, &own.intercept));
    Setup {
        prepare: false,
        buffer: None,
        module: record.module.clone(),
        url: record.url.clone(),
        digest: record.digest,
        filters: filters.clone(),
        intercept: intercept.clone(),
        properties: record.properties.clone(),
        dependencies: Vec::new(),
        ttl: Duration::ZERO,
        epoch: record.epoch,
        state: None,
        floating: record.floating.clone(),
    }
}
