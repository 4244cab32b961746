// SPDX-License-Identifier: Apache-2.0
//! Rules as they are told the packet path, with their names.

use std::net::IpAddr;

use netserv_model::WorkerId;
use netserv_model::effect::{
    EffectId, FilterChange, FilterId, FilterRule, InterceptJob, Interception, Job, ModuleSlot,
};
use netserv_model::manifest::Manifest;

use crate::cx::effects::Purpose;
use crate::cx::request::Key;
use crate::cx::{Cx, RuleNames};
use crate::tenants::operation::Candidate;
use crate::tenants::rule::{ModuleRule, RuleKind};

/// Starts a change of rules of packets, if there is any.
pub(crate) fn change_filters(cx: &mut Cx, key: &Key, add: Vec<FilterRule>, remove: Vec<FilterId>) -> Option<EffectId> {
    if add.is_empty() && remove.is_empty() {
        return None;
    }
    if cx.authority.evidence(&key.0).is_some() {
        add.iter().for_each(|rule| cx.hearing.note(cx.now.instant, &rule.filter));
    }
    let purpose = Purpose::Filters(key.clone(), add.iter().map(|rule| rule.id).collect());
    Some(cx.start_effect(&key.0, Job::Filters(FilterChange { add, remove }), purpose))
}

/// Starts to install rules of connections; returns the effects.
pub(crate) fn begin_intercepts(cx: &mut Cx, key: &Key, intercepts: Vec<Interception>) -> Vec<EffectId> {
    let begin = |intercept: Interception| {
        let purpose = Purpose::Intercept(key.clone(), intercept.id);
        cx.start_effect(&key.0, Job::Intercepts(InterceptJob::Begin(intercept)), purpose)
    };
    intercepts.into_iter().map(begin).collect()
}

/// Takes rules away that were installed.
pub(crate) fn remove_rules(cx: &mut Cx, key: &Key, rules: &[ModuleRule]) {
    change_filters(cx, key, Vec::new(), ids(rules, RuleKind::Show));
    for id in ids(rules, RuleKind::Intercept) {
        cx.start_effect(&key.0, Job::Intercepts(InterceptJob::End(id)), Purpose::Nothing);
    }
}

/// Names the rules of packets of a module that is about to be in force.
pub(crate) fn name_candidate_filters(
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
pub(crate) fn name_filters(
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
pub(crate) fn name_intercepts(
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

/// Returns the names of the rules of a kind.
pub(crate) fn ids(rules: &[ModuleRule], kind: RuleKind) -> Vec<FilterId> {
    rules.iter().filter(|rule| rule.kind == kind).flat_map(|rule| rule.ids.iter().copied()).collect()
}

/// Takes the names of rules that are not there any more.
pub(crate) fn take_ids(rules: &mut [ModuleRule], kind: RuleKind) -> Vec<FilterId> {
    rules.iter_mut().filter(|rule| rule.kind == kind).flat_map(|rule| std::mem::take(&mut rule.ids)).collect()
}

/// Forgets the names of rules that are not there; returns whether there was one of them.
pub(crate) fn forget(rules: &mut [ModuleRule], gone: &[FilterId]) -> bool {
    let mut found = false;
    for rule in rules.iter_mut().filter(|rule| rule.ids.iter().any(|id| gone.contains(id))) {
        rule.ids.clear();
        found = true;
    }
    found
}
