// SPDX-License-Identifier: Apache-2.0
//! The rules of modules: which packets they see, and which connections they take over.
//!
//! A module that is loaded gets its rules of connections first. Then its rules of packets come and its predecessor's go
//! in one change, which puts it in force: before it everything is as it was, after it the predecessor is gone.

use std::net::IpAddr;

use netserv_model::effect::{
    EffectId, FilterChange, FilterId, FilterRule, InterceptJob, Interception, Job, ModuleSlot,
};
use netserv_model::manifest::Manifest;
use netserv_model::{Refusal, UserId, WorkerId};

use crate::buffering::Buffers;
use crate::cx::{Cx, RuleNames};
use crate::draining::can_drain;
use crate::effects::Purpose;
use crate::floating::floats;
use crate::freezing::Exports;
use crate::lifecycle::{fail_operation, finish_setup};
use crate::modules::Modules;
use crate::restart::fail_filter;
use crate::services::order_packets;
use crate::sessions::joining_changed;
use crate::state::{
    Active, Candidate, Entry, Failed, Key, ModuleRule, Operation, RuleKind, Run, Settling, Stage, Tenant,
};
use crate::tenants::Tenants;

/// Installs the rules of a module that has just been loaded, those of connections first.
pub(crate) fn settle_module(cx: &mut Cx, m: &mut Modules, key: &Key) {
    let Some(entry) = m.tenants.entry(key) else { return };
    let loading = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Loading(_)));
    let Some(Operation { ticket, origin, setup, stage: Stage::Loading(mut candidate) }) = loading else { return };
    let begun = candidate.place().map(|(flavour, slot)| {
        let worker = WorkerId::new(key.0.clone(), flavour);
        name_intercepts(&mut cx.names, (&worker, slot), &candidate.manifest, &mut candidate.rules)
    });
    let stage = Stage::Settling(candidate, Settling::default());
    entry.operation = Some(Operation { ticket, origin, setup, stage });
    // It is in its place before it sees packets.
    order_packets(cx, &mut m.tenants, &key.0);
    let begun = begin_intercepts(cx, key, begun.unwrap_or_default());
    if let Some((_, settling)) = m.tenants.settling(key) {
        settling.intercepts.extend(begun);
    }
    swap_rules(cx, m, key);
}

/// Has a module's rules of packets take the place of its predecessor's, once it has its rules of connections.
pub(crate) fn swap_rules(cx: &mut Cx, m: &mut Modules, key: &Key) {
    let waits = |settling: &Settling| !settling.intercepts.is_empty() || settling.change.is_some();
    if m.tenants.settling(key).is_none_or(|(_, settling)| waits(settling)) || !floats(cx, m, key) {
        return;
    }
    let Some(Tenant { modules, addresses, .. }) = m.tenants.get_mut(&key.0) else { return };
    let Some(entry) = modules.get_mut(&key.1) else { return };
    let Some(Operation { stage: Stage::Settling(candidate, _), setup, .. }) = &mut entry.operation else { return };
    let shown = entry.active.as_ref().map(|active| ids(&active.rules, RuleKind::Show)).unwrap_or_default();
    let addresses = [&addresses[..], &setup.floating].concat();
    let add = name_candidate_filters(&mut cx.names, key, candidate, &addresses);
    let change = change_filters(cx, key, add, [shown, m.buffers.ids(key)].concat());
    m.buffers.ends_by(cx, key, change);
    match m.tenants.settling(key) {
        Some((_, settling)) if change.is_some() => settling.change = change,
        Some(_) | None => finish_setup(cx, m, key),
    }
}

/// A change of rules of packets was made or refused.
pub(crate) fn filters_changed(
    cx: &mut Cx,
    m: &mut Modules,
    exports: &mut Exports,
    key: &Key,
    id: EffectId,
    rules: &[FilterId],
    failure: Option<Refusal>,
) {
    m.buffers.changed(cx, key, id, failure.is_none());
    if m.tenants.settling(key).is_some_and(|(_, settling)| settling.change == Some(id)) {
        return swapped(cx, m, key, failure);
    }
    if joining_changed(cx, m, key, id, failure.clone())
        || exports.hidden(cx, &mut m.tenants, &mut m.buffers, key, id, failure.is_none())
    {
        return;
    }
    if let Some(refusal) = failure {
        lose_rules(cx, &mut m.tenants, key, rules, refusal);
    }
}

/// A rule of connections was installed or refused.
pub(crate) fn intercepted(
    cx: &mut Cx,
    m: &mut Modules,
    key: &Key,
    id: EffectId,
    rule: FilterId,
    failure: Option<Refusal>,
) {
    let waits = m.tenants.settling(key).is_some_and(|(_, settling)| settling.intercepts.remove(&id));
    match failure {
        None if waits => swap_rules(cx, m, key),
        None => {}
        Some(refusal) if waits => {
            if let Some((candidate, _)) = m.tenants.settling(key) {
                forget(&mut candidate.rules, &[rule]);
            }
            fail_operation(cx, m, key, refusal);
        }
        Some(refusal) => lose_rules(cx, &mut m.tenants, key, &[rule], refusal),
    }
}

/// Installs the rules that a running module has not yet, and those of connections again, which were suspended.
pub(crate) fn install_rules(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
    install_filters(cx, tenants, buffers, key);
    let Some(active) = tenants.entry(key).and_then(|entry| entry.active.as_mut()) else { return };
    let Some((flavour, slot)) = active.place() else { return };
    let worker = WorkerId::new(key.0.clone(), flavour);
    let Active { manifest: Some(manifest), rules, is_frozen: false, .. } = active else { return };
    let begun = name_intercepts(&mut cx.names, (&worker, slot), manifest, rules);
    begin_intercepts(cx, key, begun);
}

/// Installs the rules of packets that a running module has not yet. While its successor's are on their way, only
/// their failure brings them.
fn install_filters(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
    if tenants.settling(key).is_some_and(|(_, settling)| settling.change.is_some()) {
        return;
    }
    let Some(Tenant { modules, addresses, .. }) = tenants.get_mut(&key.0) else { return };
    let Some(active) = modules.get_mut(&key.1).and_then(|entry| entry.active.as_mut()) else { return };
    let Some((flavour, slot)) = active.place().filter(|_| active.run == Run::Running) else { return };
    let worker = WorkerId::new(key.0.clone(), flavour);
    let addresses = active.addresses(addresses);
    let Active { manifest: Some(manifest), rules, is_frozen: false, .. } = active else { return };
    let add = name_filters(&mut cx.names, (&worker, slot), manifest, rules, &addresses);
    let change = change_filters(cx, key, add, buffers.ids(key));
    buffers.ends_by(cx, key, change);
}

/// Has a running module see what a session asks for that joins those which hold it.
pub(crate) fn add_joining_rules(cx: &mut Cx, tenants: &mut Tenants, key: &Key) -> Option<EffectId> {
    let Tenant { modules, addresses, .. } = tenants.get_mut(&key.0)?;
    let Entry { active: Some(active), operation: Some(operation), .. } = modules.get_mut(&key.1)? else {
        return None;
    };
    let Stage::Joining(joining) = &mut operation.stage else { return None };
    let (flavour, slot) = active.place()?;
    let worker = WorkerId::new(key.0.clone(), flavour);
    let addresses = active.addresses(addresses);
    let manifest = active.manifest.as_ref()?;
    let add = name_filters(&mut cx.names, (&worker, slot), manifest, &mut joining.rules, &addresses);
    change_filters(cx, key, add, Vec::new())
}

/// Takes rules away that were installed.
pub(crate) fn remove_rules(cx: &mut Cx, key: &Key, rules: &[ModuleRule]) {
    change_filters(cx, key, Vec::new(), ids(rules, RuleKind::Show));
    for id in ids(rules, RuleKind::Intercept) {
        cx.start_effect(&key.0, Job::Intercepts(InterceptJob::End(id)), Purpose::Nothing);
    }
}

/// Takes all rules of an installed module away, but for those of connections that go on when it goes: these take no others.
/// Returns those of packets, which are still to go.
pub(crate) fn hide_module(cx: &mut Cx, tenants: &mut Tenants, key: &Key) -> Vec<FilterId> {
    let Some(active) = tenants.active(key) else { return Vec::new() };
    let shown = take_ids(&mut active.rules, RuleKind::Show);
    let taken: Vec<InterceptJob> = if can_drain(active) {
        ids(&active.rules, RuleKind::Intercept).into_iter().map(InterceptJob::Drain).collect()
    } else {
        take_ids(&mut active.rules, RuleKind::Intercept).into_iter().map(InterceptJob::End).collect()
    };
    for job in taken {
        cx.start_effect(&key.0, Job::Intercepts(job), Purpose::Nothing);
    }
    shown
}

/// Has the new connections that a running module takes over treated as its failure mode says, since it goes down.
pub(crate) fn suspend_intercepts(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(active) = tenants.active(key).filter(|active| active.run == Run::Running) else { return };
    for id in ids(&active.rules, RuleKind::Intercept) {
        cx.start_effect(&key.0, Job::Intercepts(InterceptJob::Suspend(id)), Purpose::Nothing);
    }
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

fn swapped(cx: &mut Cx, m: &mut Modules, key: &Key, failure: Option<Refusal>) {
    let Some((candidate, settling)) = m.tenants.settling(key) else { return };
    settling.change = None;
    let failed = settling.failed.take();
    if let Some(refusal) = failure {
        take_ids(&mut candidate.rules, RuleKind::Show);
        install_filters(cx, &mut m.tenants, &mut m.buffers, key);
        let Failed { refusal, loaded } = failed.unwrap_or(Failed { refusal, loaded: true });
        return end_settling(cx, m, key, refusal, loaded);
    }
    if let Some(active) = m.tenants.active(key) {
        take_ids(&mut active.rules, RuleKind::Show);
    }
    match failed {
        None => finish_setup(cx, m, key),
        Some(Failed { refusal, loaded }) => {
            swap_back(cx, &mut m.tenants, key);
            end_settling(cx, m, key, refusal, loaded);
        }
    }
}

/// Has the predecessor's rules of packets take their place again.
fn swap_back(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(Tenant { modules, addresses, .. }) = tenants.get_mut(&key.0) else { return };
    let Some(entry) = modules.get_mut(&key.1) else { return };
    let Some(Operation { stage: Stage::Settling(candidate, _), .. }) = &mut entry.operation else { return };
    let remove = take_ids(&mut candidate.rules, RuleKind::Show);
    let add = entry.active.as_mut().and_then(|active| {
        let (flavour, slot) = active.place().filter(|_| !active.is_frozen)?;
        let worker = WorkerId::new(key.0.clone(), flavour);
        let addresses = active.addresses(addresses);
        let manifest = active.manifest.as_ref()?;
        Some(name_filters(&mut cx.names, (&worker, slot), manifest, &mut active.rules, &addresses))
    });
    // Apart, since what only takes rules away is never refused.
    change_filters(cx, key, Vec::new(), remove);
    change_filters(cx, key, add.unwrap_or_default(), Vec::new());
}

/// Takes note of the addresses that a user's container has. Filters that name it by others go, until their module is
/// loaded again.
pub(crate) fn readdress(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    user: &UserId,
    addresses: Vec<IpAddr>,
) {
    let Some(tenant) = tenants.get_mut(user).filter(|tenant| tenant.addresses != addresses) else { return };
    tenant.addresses = addresses;
    let mut gone: Vec<(Key, Vec<FilterId>)> = Vec::new();
    for (module, entry) in &mut tenant.modules {
        let rules = entry.active.iter_mut().flat_map(|active| active.rules.iter_mut());
        let named = rules.filter(|rule| rule.filter.names_container());
        gone.push(((user.clone(), module.clone()), named.flat_map(|rule| std::mem::take(&mut rule.ids)).collect()));
    }
    for (key, ids) in gone {
        rename_filters(cx, tenants, buffers, &key, ids);
    }
}

/// Has filters that name an installed module's container name it by the addresses that it has by now.
pub(crate) fn rename_filters(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    named: Vec<FilterId>,
) {
    change_filters(cx, key, Vec::new(), named);
    install_filters(cx, tenants, buffers, key);
}

fn end_settling(cx: &mut Cx, m: &mut Modules, key: &Key, refusal: Refusal, loaded: bool) {
    if !loaded {
        m.tenants.candidate_gone(key);
    }
    fail_operation(cx, m, key, refusal);
}

/// A running module lost rules through no fault of its own.
fn lose_rules(cx: &mut Cx, tenants: &mut Tenants, key: &Key, lost: &[FilterId], refusal: Refusal) {
    let Some(active) = tenants.active(key) else { return };
    if forget(&mut active.rules, lost) {
        fail_filter(cx, tenants, key, refusal);
    }
}

/// Starts a change of rules of packets, if there is any.
pub(crate) fn change_filters(cx: &mut Cx, key: &Key, add: Vec<FilterRule>, remove: Vec<FilterId>) -> Option<EffectId> {
    if add.is_empty() && remove.is_empty() {
        return None;
    }
    let purpose = Purpose::Filters(key.clone(), add.iter().map(|rule| rule.id).collect());
    Some(cx.start_effect(&key.0, Job::Filters(FilterChange { add, remove }), purpose))
}

fn begin_intercepts(cx: &mut Cx, key: &Key, intercepts: Vec<Interception>) -> Vec<EffectId> {
    let begin = |intercept: Interception| {
        let purpose = Purpose::Intercept(key.clone(), intercept.id);
        cx.start_effect(&key.0, Job::Intercepts(InterceptJob::Begin(intercept)), purpose)
    };
    intercepts.into_iter().map(begin).collect()
}

fn name_candidate_filters(
    names: &mut RuleNames,
    key: &Key,
    candidate: &mut Candidate,
    addresses: &[IpAddr],
) -> Vec<FilterRule> {
    let Some((flavour, slot)) = candidate.place() else { return Vec::new() };
    let worker = WorkerId::new(key.0.clone(), flavour);
    name_filters(names, (&worker, slot), &candidate.manifest, &mut candidate.rules, addresses)
}

/// Names the rules of packets that have no name yet, and returns them. The container has these `addresses`.
fn name_filters(
    names: &mut RuleNames,
    (worker, slot): (&WorkerId, ModuleSlot),
    manifest: &Manifest,
    rules: &mut [ModuleRule],
    addresses: &[IpAddr],
) -> Vec<FilterRule> {
    let mut named = Vec::new();
    for rule in rules.iter_mut().filter(|rule| rule.kind == RuleKind::Show && rule.ids.is_empty()) {
        for filter in rule.filter.on(addresses) {
            let (id, worker, module) = (names.take(), worker.clone(), manifest.module());
            rule.ids.push(id);
            let on_failure = manifest.on_failure();
            named.push(FilterRule { id, worker, slot, module, filter, on_failure, buffering: None });
        }
    }
    named
}

/// Returns the rules of connections, with names.
fn name_intercepts(
    names: &mut RuleNames,
    (worker, slot): (&WorkerId, ModuleSlot),
    manifest: &Manifest,
    rules: &mut [ModuleRule],
) -> Vec<Interception> {
    let on_failure = manifest.server.as_ref().map(|server| server.on_failure).unwrap_or_default();
    let intercepts = rules.iter_mut().filter(|rule| rule.kind == RuleKind::Intercept);
    let name = |rule: &mut ModuleRule| {
        if rule.ids.is_empty() {
            rule.ids.push(names.take());
        }
        let named = rule.filter.everywhere().zip(rule.ids.first());
        named.map(|(filter, id)| Interception {
            id: *id,
            worker: worker.clone(),
            slot,
            filter: filter.clone(),
            on_failure,
        })
    };
    intercepts.filter_map(name).collect()
}

fn ids(rules: &[ModuleRule], kind: RuleKind) -> Vec<FilterId> {
    rules.iter().filter(|rule| rule.kind == kind).flat_map(|rule| rule.ids.iter().copied()).collect()
}

/// Takes the names of rules that are not there any more.
fn take_ids(rules: &mut [ModuleRule], kind: RuleKind) -> Vec<FilterId> {
    rules.iter_mut().filter(|rule| rule.kind == kind).flat_map(|rule| std::mem::take(&mut rule.ids)).collect()
}

/// Forgets the names of rules that are not there; returns whether there was one of them.
fn forget(rules: &mut [ModuleRule], gone: &[FilterId]) -> bool {
    let mut found = false;
    for rule in rules.iter_mut().filter(|rule| rule.ids.iter().any(|id| gone.contains(id))) {
        rule.ids.clear();
        found = true;
    }
    found
}
