// SPDX-License-Identifier: Apache-2.0
//! Modules that are loaded get their rules and addresses, and come in force.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netserv_model::effect::{EffectId, FilterId, InstalledRecord, Job, WorkerJob};
use netserv_model::request::{Outcome, Setup};
use netserv_model::{Refusal, UserId, WorkerId};

use crate::control::tells::tell_rest;
use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::request::{Key, Origin};
use crate::cx::timers::Timer;
use crate::modules::Modules;
use crate::modules::checks::granted_ttl;
use crate::modules::ending::retire;
use crate::modules::failing::{lose_floating, lose_rules};
use crate::modules::lifecycle::{advance, check_services, fail_operation};
use crate::modules::sessions::{arm_lease, fit_rules, joined, store_active, tell_replaced};
use crate::moves::exports::Exports;
use crate::moves::floating::{check_floating, hold_floating, leave_to_later, take_floating};
use crate::rules::install::{install_filters, swap_back};
use crate::rules::names::{
    begin_intercepts, change_filters, forget, ids, name_candidate_filters, name_intercepts, take_ids,
};
use crate::services::order::order_packets;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::backoff::Backoff;
use crate::tenants::inbox::Control;
use crate::tenants::operation::{Candidate, Failed, Operation, Settling, Stage};
use crate::tenants::rule::{ModuleRule, RuleKind};
use crate::tenants::tenant::Tenant;
use crate::tenants::worker::Role;
use crate::workers::draining::end_finishing;

/// Installs the rules of a module that has just been loaded, those of connections first.
pub(crate) fn settle_module(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let Some(entry) = modules.tenants.entry_mut(key) else { return };
    let loading = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Loading(_)));
    let Some(Operation { ticket, origin, setup, stage: Stage::Loading(mut candidate) }) = loading else { return };
    let begun = candidate.place().map(|(flavour, slot)| {
        let worker = WorkerId::new(key.0.clone(), flavour);
        name_intercepts(&mut cx.names, (&worker, slot), &candidate.manifest, &mut candidate.rules)
    });
    let stage = Stage::Settling(candidate, Settling::default());
    entry.operation = Some(Operation { ticket, origin, setup, stage });
    // It is in its place before it sees packets.
    order_packets(cx, &mut modules.tenants, &key.0);
    let begun = begin_intercepts(cx, key, begun.unwrap_or_default());
    if let Some((_, settling)) = modules.tenants.settling(key) {
        settling.intercepts.extend(begun);
    }
    swap_rules(cx, modules, key);
}

/// Has a module's rules of packets take the place of its predecessor's, once it has its rules of connections.
pub(crate) fn swap_rules(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let waits = |settling: &Settling| !settling.intercepts.is_empty() || settling.change.is_some();
    if modules.tenants.settling(key).is_none_or(|(_, settling)| waits(settling)) || !floats(cx, modules, key) {
        return;
    }
    let Some(Tenant { modules: entries, addresses, .. }) = modules.tenants.get_mut(&key.0) else { return };
    let Some(entry) = entries.get_mut(&key.1) else { return };
    let Some(Operation { stage: Stage::Settling(candidate, _), setup, .. }) = &mut entry.operation else { return };
    let shown = entry.active.as_ref().map(|active| ids(&active.rules, RuleKind::Show)).unwrap_or_default();
    let addresses = [&addresses[..], &setup.floating].concat();
    let add = name_candidate_filters(&mut cx.names, key, candidate, &addresses);
    let change = change_filters(cx, key, add, [shown, modules.buffers.ids(key)].concat());
    modules.buffers.ends_by(cx, key, change);
    match modules.tenants.settling(key) {
        Some((_, settling)) if change.is_some() => settling.change = change,
        Some(_) | None => finish_setup(cx, modules, key),
    }
}

/// A change of rules of packets was made or refused.
pub(crate) fn filters_changed(
    cx: &mut Cx,
    modules: &mut Modules,
    exports: &mut Exports,
    key: &Key,
    id: EffectId,
    rules: &[FilterId],
    failure: Option<Refusal>,
) {
    modules.buffers.changed(cx, key, id, failure.is_none());
    if modules.tenants.settling(key).is_some_and(|(_, settling)| settling.change == Some(id)) {
        return swapped(cx, modules, key, failure);
    }
    if joining_changed(cx, modules, key, id, failure.clone())
        || exports.hidden(cx, &mut modules.tenants, &mut modules.buffers, key, id, failure.is_none())
    {
        return;
    }
    if let Some(refusal) = failure {
        lose_rules(cx, &mut modules.tenants, key, rules, refusal);
    }
}

/// A rule of connections was installed or refused.
pub(crate) fn intercepted(
    cx: &mut Cx,
    modules: &mut Modules,
    key: &Key,
    id: EffectId,
    rule: FilterId,
    failure: Option<Refusal>,
) {
    let waits = modules.tenants.settling(key).is_some_and(|(_, settling)| settling.intercepts.remove(&id));
    match failure {
        None if waits => swap_rules(cx, modules, key),
        None => {}
        Some(refusal) if waits => {
            if let Some((candidate, _)) = modules.tenants.settling(key) {
                forget(&mut candidate.rules, &[rule]);
            }
            fail_operation(cx, modules, key, refusal);
        }
        Some(refusal) => lose_rules(cx, &mut modules.tenants, key, &[rule], refusal),
    }
}

fn swapped(cx: &mut Cx, modules: &mut Modules, key: &Key, failure: Option<Refusal>) {
    let Some((candidate, settling)) = modules.tenants.settling(key) else { return };
    settling.change = None;
    let failed = settling.failed.take();
    if let Some(refusal) = failure {
        take_ids(&mut candidate.rules, RuleKind::Show);
        install_filters(cx, &mut modules.tenants, &mut modules.buffers, key);
        let Failed { refusal, loaded } = failed.unwrap_or(Failed { refusal, loaded: true });
        return end_settling(cx, modules, key, refusal, loaded);
    }
    if let Some(active) = modules.tenants.active_mut(key) {
        take_ids(&mut active.rules, RuleKind::Show);
    }
    match failed {
        None => finish_setup(cx, modules, key),
        Some(Failed { refusal, loaded }) => {
            swap_back(cx, &mut modules.tenants, key);
            end_settling(cx, modules, key, refusal, loaded);
        }
    }
}

fn end_settling(cx: &mut Cx, modules: &mut Modules, key: &Key, refusal: Refusal, loaded: bool) {
    if !loaded {
        modules.tenants.candidate_gone(key);
    }
    fail_operation(cx, modules, key, refusal);
}

/// Has the addresses of a module that is about to be in force lead to its container. Returns whether nothing is to be
/// waited for; if they cannot, the module does not come into force.
pub(crate) fn floats(cx: &mut Cx, modules: &mut Modules, key: &Key) -> bool {
    let Some(operation) = modules.tenants.operation_mut(key) else { return false };
    let Stage::Settling(_, settling) = &mut operation.stage else { return false };
    if std::mem::replace(&mut settling.floats, true) {
        return settling.floating.is_none();
    }
    let (addresses, epoch) = (operation.setup.floating.clone(), operation.setup.epoch);
    if let Err(refusal) = check_floating(cx, &modules.tenants, key, &addresses, epoch) {
        fail_operation(cx, modules, key, refusal);
        return false;
    }
    let begun = hold_floating(cx, &mut modules.tenants, &key.0);
    if let Some(Operation { stage: Stage::Settling(_, settling), .. }) = modules.tenants.operation_mut(key) {
        settling.floating = begun;
    }
    begun.is_none()
}

/// Floating addresses lead to a user's container, or those that were to `come` do not.
pub(crate) fn floating_changed(
    cx: &mut Cx,
    modules: &mut Modules,
    user: &UserId,
    id: EffectId,
    come: &BTreeSet<IpAddr>,
    failure: Option<Refusal>,
) {
    let Some(tenant) = modules.tenants.get_mut(user) else { return };
    tenant.floating_unknown |= failure.is_some();
    let mut waiting = None;
    for (module, entry) in &mut tenant.modules {
        if let Some(Stage::Settling(_, settling)) = entry.operation.as_mut().map(|operation| &mut operation.stage)
            && settling.floating.take_if(|waits| *waits == id).is_some()
        {
            waiting = Some((user.clone(), module.clone()));
        }
    }
    match (waiting, failure) {
        (Some(key), None) => swap_rules(cx, modules, &key),
        (Some(key), Some(refusal)) => fail_operation(cx, modules, &key, refusal),
        (None, None) => {}
        (None, Some(refusal)) => lose_floating(cx, &mut modules.tenants, user, come, &refusal),
    }
}

/// The filters of a session that joins were installed or refused. Returns whether it was about such.
fn joining_changed(cx: &mut Cx, modules: &mut Modules, key: &Key, id: EffectId, failure: Option<Refusal>) -> bool {
    let Some(joining) = modules.tenants.joining(key).filter(|joining| joining.effect == Some(id)) else { return false };
    joining.effect = None;
    match failure {
        None => {
            joined(cx, &mut modules.tenants, &mut modules.buffers, key);
            advance(cx, modules, key);
        }
        Some(refusal) => {
            joining.rules.iter_mut().for_each(|rule| rule.ids.clear());
            fail_operation(cx, modules, key, refusal);
        }
    }
    true
}

/// Puts a loaded and filtered module in force; the one before it goes.
fn finish_setup(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let Some(entry) = modules.tenants.entry_mut(key) else { return };
    let settling = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Settling(..)));
    let Some(Operation { ticket, origin, mut setup, stage: Stage::Settling(candidate, _) }) = settling else {
        return;
    };
    // It may have been drained meanwhile.
    setup.ttl = granted_ttl(cx, &modules.tenants, key, setup.ttl);
    let mut old = modules.tenants.entry_or_new(key).active.take();
    let control = old.as_mut().map(|old| std::mem::take(&mut old.control)).unwrap_or_default();
    let before = old.as_ref().map(|old| (old.record.clone(), old.sessions.clone()));
    let is_other = old.as_ref().is_some_and(|old| !old.is_same_module(&setup));
    let lease_s = setup.ttl.as_secs();
    let outcome = if old.is_some() { Outcome::Replaced { lease_s } } else { Outcome::Installed { lease_s } };
    if let Some(old) = old {
        cx.timers.cancel(&Timer::Thaw(key.clone()));
        modules.buffers.end(cx, key);
        retire(cx, &mut modules.tenants, key, &old);
    }
    if let Some((flavour, slot)) = candidate.place().filter(|_| setup.state.is_some()) {
        let job = WorkerJob::Confirm { worker: WorkerId::new(key.0.clone(), flavour), slot };
        cx.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
    }
    let mut active = activate(cx, &mut modules.tenants, key, origin, &setup, candidate);
    active.control = control;
    if let Some((before, sessions)) = before {
        // Nobody asked: it is composed anew.
        let is_same_request = ticket.is_none();
        match is_same_request {
            true => {
                active.record.order = before.order;
                active.restore_sessions(sessions);
            }
            false => active.take_over_sessions(sessions),
        }
        if is_other {
            tell_replaced(cx, key, &active.sessions[..active.sessions.len() - 1], &setup);
        } else {
            active.record.wish = before.wish;
            active.share_wish(origin);
        }
        let record = &mut active.record;
        if record.epoch == before.epoch {
            record.state = record.state.or(before.state);
        }
        let lost = before.given_up.into_iter().filter(|lost| is_same_request || lost.epoch >= record.epoch);
        record.given_up.extend(lost);
    }
    leave_to_later(&modules.tenants, key, &mut active.record);
    let (floating, epoch) = (active.record.floating.clone(), active.record.epoch);
    modules.tenants.entry_or_new(key).active = Some(active);
    // Others may have left meanwhile.
    fit_rules(cx, &mut modules.tenants, key);
    store_active(cx, &modules.tenants, key);
    arm_lease(cx, &modules.tenants, key);
    end_finishing(cx, &mut modules.tenants, key);
    take_floating(cx, &mut modules.tenants, &mut modules.buffers, key, &floating, epoch);
    hold_floating(cx, &mut modules.tenants, &key.0);
    tell_rest(cx, &mut modules.tenants, key);
    order_packets(cx, &mut modules.tenants, &key.0);
    if let Some(ticket) = ticket {
        cx.answer_when_done(&key.0, ticket, outcome);
    }
    check_services(cx, modules, &key.0);
    advance(cx, modules, key);
}

fn activate(cx: &Cx, tenants: &mut Tenants, key: &Key, origin: Origin, setup: &Setup, candidate: Candidate) -> Active {
    if let Some(tenant) = tenants.get_mut(&key.0)
        && let Some(slot) = candidate.slot
        && let Some(worker) = tenant.workers.get_mut(&candidate.flavour)
        && let Some(place) = worker.places.get_mut(&slot)
    {
        place.role = Role::Active;
    }
    let sees_packets = candidate.manifest.packet.is_some();
    let state = setup.state.as_ref().map(|state| state.digest);
    let record = InstalledRecord {
        // It is filled in when the record is stored.
        evidence: None,
        suspended: None,
        user: key.0.clone(),
        module: setup.module.clone(),
        url: setup.url.clone(),
        digest: setup.digest,
        session: origin.session,
        nonce: origin.nonce,
        filters: if sees_packets { ModuleRule::shown(&candidate.rules) } else { setup.filters.clone() },
        intercept: setup.intercept.clone(),
        properties: setup.properties.clone(),
        lease_until: cx.now.wall + setup.ttl,
        sessions: Vec::new(),
        wish: origin.wish,
        order: tenants.take_order(),
        flavour: Some(candidate.flavour),
        epoch: setup.epoch,
        floating: setup.floating.clone(),
        given_up: Vec::new(),
        state,
        moved_in: None,
    };
    let mut active = Active {
        record,
        sessions: Vec::new(),
        lease_end: cx.now.instant + setup.ttl,
        manifest: Some(candidate.manifest),
        declared: candidate.declared,
        rules: candidate.rules,
        slot: candidate.slot,
        composition: candidate.composition,
        run: Run::Running,
        backoff: Backoff::default(),
        restarts: 0,
        is_frozen: false,
        holds_floating: true,
        control: Control::default(),
        last_failure: None,
    };
    active.take_session(cx.now, origin, setup);
    active
}
