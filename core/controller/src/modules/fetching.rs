// SPDX-License-Identifier: Apache-2.0
//! Packages that are there or not, of what is to be installed and of what is.

use netserv_model::effect::EffectId;
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::{Flavour, Refusal, RefusalKind, WorkerId};

use crate::cx::Cx;
use crate::cx::jobs::{fetch, store_record};
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::{BACKOFF_MIN, FETCH_ANSWER_TIME_MAX};
use crate::modules::Modules;
use crate::modules::failing::keep_out;
use crate::modules::forbidden::end_forbidden;
use crate::modules::lifecycle::{
    advance, begin_setup, check_services, compose_active, fail_operation, load_all_waiting, try_candidate, uninstall,
};
use crate::modules::sessions::{fit_rules, tell_requesters};
use crate::policy::asked::Asked;
use crate::policy::package::check_manifest;
use crate::rules::names::remove_rules;
use crate::services::parts::resolve;
use crate::tenants::Tenants;
use crate::tenants::active::Run;
use crate::tenants::backoff::Backoff;
use crate::tenants::operation::{Operation, Stage};
use crate::tenants::rule::{ModuleRule, RuleKind};
use crate::tenants::session::as_setup;
use crate::tenants::tenant::Leave;
use crate::workers::release::release_unused;

/// A package is there.
pub(crate) fn package_fetched(
    cx: &mut Cx,
    modules: &mut Modules,
    key: &Key,
    id: EffectId,
    manifest: Manifest,
    flavour: Flavour,
) {
    cx.timers.cancel(&Timer::Fetch(id));
    if matches!(modules.tenants.stage(key), Some(Stage::Fetching(wanted)) if *wanted == id) {
        return operation_fetched(cx, modules, key, manifest, flavour);
    }
    active_fetched(cx, modules, key, id, manifest, flavour);
}

/// A package could not be fetched, or a service not be composed. What took too long to compile is not compiled again
/// for a while.
pub(crate) fn fetch_failed(cx: &mut Cx, modules: &mut Modules, key: &Key, id: EffectId, refusal: &Refusal) {
    cx.timers.cancel(&Timer::Fetch(id));
    let stage = modules.tenants.stage(key);
    let installing = matches!(stage, Some(Stage::Fetching(wanted) | Stage::Composing(wanted, _)) if *wanted == id);
    let digest = if installing {
        modules.tenants.operation_mut(key).map(|operation| operation.setup.digest)
    } else {
        modules.tenants.record_fetching(key, id).map(|record| record.digest)
    };
    if let (RefusalKind::CompileLimit, Some(digest)) = (refusal.kind, digest) {
        keep_out(cx, &mut modules.quarantine, key, digest);
    }
    if installing {
        return fail_operation(cx, modules, key, refusal.clone());
    }
    active_not_fetched(cx, modules, key, id, refusal);
}

/// A package was not fetched in time.
pub(crate) fn fetch_overdue(cx: &mut Cx, modules: &mut Modules, id: EffectId) {
    let Some(key) = cx.abandon_effect(id) else { return };
    let detail = format!(
        "accepted; fetching and compiling its package take longer than {} s, and go on",
        FETCH_ANSWER_TIME_MAX.as_secs()
    );
    fetch_failed(cx, modules, &key, id, &Refusal::new(RefusalKind::InProgress, detail));
}

fn operation_fetched(cx: &mut Cx, modules: &mut Modules, key: &Key, manifest: Manifest, flavour: Flavour) {
    let Some(operation) = modules.tenants.entry_mut(key).and_then(|entry| entry.operation.take()) else { return };
    let Operation { ticket: Some(ticket), origin, setup, stage: _ } = operation else { return };
    // The package of what is installed may have come meanwhile.
    let same = modules.tenants.active(key).filter(|active| active.manifest.is_some() && active.is_same_module(&setup));
    if same.is_some() && !setup.prepare && setup.state.is_none() {
        begin_setup(cx, modules, key, ticket, origin, setup);
        return advance(cx, modules, key);
    }
    try_candidate(cx, modules, key, ticket, origin, setup, (manifest, flavour));
    advance(cx, modules, key);
}

/// The package of an installed module is there again.
fn active_fetched(cx: &mut Cx, modules: &mut Modules, key: &Key, job: EffectId, manifest: Manifest, flavour: Flavour) {
    if modules.tenants.record_fetching(key, job).is_none() {
        return;
    }
    end_forbidden(cx, &mut modules.tenants, key, Some(&manifest));
    let Some(record) = modules.tenants.record_fetching(key, job) else { return };
    let (session, setup) = (record.session, as_setup(record));
    let (others, declared) = (modules.tenants.others_than(key, session), manifest.intercept().to_vec());
    let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
    let user = cx.rights(&key.0);
    let checked = user.and_then(|user| check_manifest(&cx.policy, user, &setup, &others, manifest, flavour));
    let manifest = match checked {
        Ok((manifest, _)) => manifest,
        Err(refusal) => return give_up(cx, modules, key, &refusal),
    };
    let service = manifest.service.is_some();
    change_flavour(cx, &mut modules.tenants, key, if service { Flavour::Wasm } else { flavour });
    if let Some(active) = modules.tenants.active_mut(key) {
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
    fit_rules(cx, &mut modules.tenants, key);
    if service {
        return compose_active(cx, modules, key);
    }
    load_all_waiting(cx, modules, &key.0);
    check_services(cx, modules, &key.0);
    // The worker of the flavour that it had may have nothing left.
    release_unused(cx, &mut modules.tenants, &key.0);
}

/// The package of an installed module could not be had again.
fn active_not_fetched(cx: &mut Cx, modules: &mut Modules, key: &Key, job: EffectId, refusal: &Refusal) {
    if modules.tenants.record_fetching(key, job).is_none() {
        return;
    }
    if !may_come_back(refusal.kind) {
        return give_up(cx, modules, key, refusal);
    }
    let now = cx.now.instant;
    let Some(active) = modules.tenants.active_mut(key) else { return };
    active.last_failure = Some(refusal.clone());
    active.run = Run::BackingOff;
    let wait = active.backoff.retry(now).max(BACKOFF_MIN);
    cx.timers.set(Timer::Restart(key.clone()), now + wait);
}

/// Takes note of the flavour that an installed module has from here on; what it had of another one goes.
fn change_flavour(cx: &mut Cx, tenants: &mut Tenants, key: &Key, flavour: Flavour) {
    let Some(active) = tenants.active_mut(key).filter(|active| active.record.flavour != Some(flavour)) else { return };
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

fn give_up(cx: &mut Cx, modules: &mut Modules, key: &Key, refusal: &Refusal) {
    let module = modules.tenants.active(key).map(|active| active.record.module.clone());
    tell_requesters(cx, &modules.tenants, key, NotifyEvent::LeaseEnded, refusal.to_string());
    module.into_iter().for_each(|module| cx.say_revoked(&key.0, module, refusal.clone()));
    uninstall(cx, modules, key, Leave::AtOnce);
    advance(cx, modules, key);
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

/// A module's wait is over.
pub(crate) fn restart_module(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let Some(active) = modules.tenants.active_mut(key) else { return };
    match active.run {
        Run::BackingOff => {}
        Run::Quarantined => active.backoff = Backoff::default(),
        Run::Waiting => return load_all_waiting(cx, modules, &key.0),
        Run::Fetching(_) | Run::Loading | Run::Running => return,
    }
    active.restarts = active.restarts.saturating_add(1);
    active.run = Run::Waiting;
    if active.manifest.as_ref().is_some_and(|manifest| manifest.service.is_some()) {
        return compose_active(cx, modules, key);
    }
    if active.manifest.is_none() {
        let (url, digest) = (active.record.url.clone(), active.record.digest);
        let job = fetch(cx, key, url, digest, None);
        modules.tenants.set_run(key, Run::Fetching(job));
    }
    load_all_waiting(cx, modules, &key.0);
}

/// A composition is ready to be loaded.
pub(crate) fn service_composed(cx: &mut Cx, modules: &mut Modules, key: &Key, job: EffectId) {
    cx.timers.cancel(&Timer::Fetch(job));
    if !matches!(modules.tenants.stage(key), Some(Stage::Composing(wanted, _)) if *wanted == job) {
        return active_composed(cx, modules, key, job);
    }
    let Some(entry) = modules.tenants.entry_mut(key) else { return };
    if let Some(Operation { ticket, origin, setup, stage: Stage::Composing(_, candidate) }) = entry.operation.take() {
        entry.operation = Some(Operation { ticket, origin, setup, stage: Stage::Waiting(candidate) });
    }
    load_all_waiting(cx, modules, &key.0);
}

fn active_composed(cx: &mut Cx, modules: &mut Modules, key: &Key, job: EffectId) {
    let Some(active) = modules.tenants.active_mut(key).filter(|active| active.run == Run::Fetching(job)) else {
        return;
    };
    let (manifest, known) = (active.manifest.clone(), active.composition.clone());
    active.run = Run::Waiting;
    let Some(manifest) = manifest else { return };
    // Its parts may have changed meanwhile.
    match resolve(&modules.tenants, key, &manifest) {
        Ok(composition) if Some(&composition) == known.as_ref() => load_all_waiting(cx, modules, &key.0),
        Ok(_) | Err(_) => compose_active(cx, modules, key),
    }
}
