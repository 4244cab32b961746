// SPDX-License-Identifier: Apache-2.0
//! The operator changes the policy, or drains the node.

use std::net::IpAddr;

use netserv_authority::{may_pass, scope};
use netserv_model::effect::EffectId;
use netserv_model::evidence::Holder;
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::policy::UserPolicy;
use netserv_model::{Refusal, RefusalKind, UserId, WantedFilter};

use crate::cx::Cx;
use crate::cx::effects::Checking;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::modules::Modules;
use crate::modules::checks::check_maintenance;
use crate::modules::forbidden::end_forbidden;
use crate::modules::lifecycle::{advance, fail_operation, uninstall};
use crate::modules::resuming::settle_suspended;
use crate::modules::sessions::tell_requesters;
use crate::modules::suspending::suspend;
use crate::policy::package::{check_needs, check_server};
use crate::tenants::Tenants;
use crate::tenants::rule::ModuleRule;
use crate::tenants::tenant::Leave;
use crate::users::admission::Users;
use crate::users::proving::{check_again, nobody_found};
use crate::workers::draining::revoke_draining;
use crate::workers::release::revoke_prepared;

/// Removes and refuses what the policy does not allow.
pub(crate) fn apply_policy(cx: &mut Cx, modules: &mut Modules, users: &mut Users) {
    let keys: Vec<Key> = modules
        .tenants
        .iter()
        .flat_map(|(user, tenant)| tenant.modules.keys().map(|name| (user.clone(), name.clone())))
        .collect();
    for key in keys {
        apply_policy_to(cx, modules, &key);
    }
    revoke_draining(cx, &mut modules.tenants);
    let gone = modules.tenants.iter().filter(|(user, _)| cx.may(user).is_none());
    let gone: Vec<UserId> = gone.map(|(user, _)| user.clone()).collect();
    for user in gone {
        revoke_prepared(cx, &mut modules.tenants, &mut modules.buffers, &user);
    }
    forget_users(cx, modules, users);
    cx.watch_proofs();
}

/// Takes away what users have whose proofs have ended or were taken back, and forgets those who have nothing.
pub(crate) fn end_proofs(cx: &mut Cx, modules: &mut Modules, users: &mut Users) {
    if modules.tenants.iter().any(|(user, _)| cx.may(user).is_none()) {
        apply_policy(cx, modules, users);
    }
    let tenants = &modules.tenants;
    let gone = cx.authority.forget_ended(cx.now, |user| tenants.get(user).is_some());
    let changes = !gone.is_empty();
    settle_suspended(cx, modules);
    cx.forget_users(gone);
    if changes {
        cx.plan_addresses();
    }
    cx.watch_proofs();
}

/// Has checklists looked at again. One of which it is not found out in time who is behind it keeps no other from that.
pub(crate) fn look_at_checklists(cx: &mut Cx, modules: &mut Modules, users: &mut Users) {
    match &cx.checking {
        None => check_again(cx, None),
        Some(checking) if cx.now.instant < checking.until() => cx.timers.set(Timer::Checklists, checking.until()),
        Some(checking) => checked_again(cx, modules, users, checking.id, Err(nobody_found())),
    }
}

/// Takes over who is behind a user's checklist now, takes away what the user has lost by that, and has the next one looked at.
pub(crate) fn checked_again(
    cx: &mut Cx,
    modules: &mut Modules,
    users: &mut Users,
    id: EffectId,
    said: Result<Holder, Refusal>,
) {
    let found = cx.checking.take_if(|checking| checking.id == id);
    let Some(Checking { user, checklist, started, .. }) = found else { return };
    cx.timers.cancel(&Timer::Checklists);
    let took = cx.now.instant.since(started).as_millis();
    cx.counters.checklists_ms += u64::try_from(took).unwrap_or(u64::MAX);
    match &said {
        Ok(_) => cx.counters.checklists_confirmed += 1,
        Err(refusal) if may_pass(refusal) => cx.counters.checklists_unknown += 1,
        Err(_) => cx.counters.checklists_denied += 1,
    }
    let round = (cx.checked_from, cx.now.instant);
    if cx.authority.checked_again(&cx.policy, round, &user, &checklist, said) {
        apply_policy(cx, modules, users);
    }
    settle_suspended(cx, modules);
    check_again(cx, Some(&user));
}

/// Forgets what is remembered of users' requests, of users without rights.
pub(crate) fn forget_users(cx: &Cx, modules: &mut Modules, users: &mut Users) {
    let known = |user: &UserId| cx.may(user).is_some();
    modules.nonces.retain(cx.now.wall, known);
    users.retain(cx.now.wall, known);
}

fn apply_policy_to(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let gone = why_gone(cx, key);
    if let Some(refusal) = &gone {
        let waiting = modules.tenants.entry_mut(key).map(|entry| std::mem::take(&mut entry.waiting));
        for waiter in waiting.into_iter().flatten() {
            cx.refuse(waiter.ticket, refusal.clone());
        }
    }
    if gone.is_none() {
        end_forbidden(cx, &mut modules.tenants, key, None);
    }
    if let Some(refusal) = gone.clone().or_else(|| why_not_installed(cx, &modules.tenants, key)) {
        fail_operation(cx, modules, key, refusal);
    }
    if let Some(refusal) = gone.or_else(|| why_not_kept(cx, &modules.tenants, key)) {
        let record = modules.tenants.active(key).map(|active| active.record.clone());
        tell_requesters(cx, &modules.tenants, key, NotifyEvent::LeaseEnded, refusal.to_string());
        if let Some(record) = record.filter(|_| uninstall(cx, modules, key, Leave::AtOnce)) {
            cx.say_revoked(&key.0, record.module.clone(), refusal);
            if cx.authority.is_unknown(&key.0) {
                suspend(cx, &mut modules.suspended, key, record);
            }
        }
        advance(cx, modules, key);
    }
}

fn why_gone(cx: &Cx, key: &Key) -> Option<Refusal> {
    if cx.policy.host_only {
        return Some(Refusal::new(RefusalKind::NotANode, "the node has become a host"));
    }
    cx.rights(&key.0).err()
}

fn why_not_installed(cx: &Cx, tenants: &Tenants, key: &Key) -> Option<Refusal> {
    let operation = tenants.entry(key)?.operation.as_ref()?;
    let user = cx.may(&key.0)?;
    let own = operation.stage.candidate().map(|candidate| ModuleRule::shown(&candidate.rules));
    let filters = own.unwrap_or_else(|| operation.setup.filters.clone());
    let manifest = operation.stage.candidate().map(|candidate| &candidate.manifest);
    if let Err(refusal) = check_maintenance(cx, tenants, key, operation.setup.epoch) {
        return Some(refusal);
    }
    let floating = &operation.setup.floating;
    why_not_allowed(cx, user, &filters, floating, manifest)
}

fn why_not_kept(cx: &Cx, tenants: &Tenants, key: &Key) -> Option<Refusal> {
    let active = tenants.active(key)?;
    let (record, user) = (&active.record, cx.may(&key.0)?);
    let refusal = why_not_allowed(cx, user, &record.filters, &record.floating, active.manifest.as_ref())?;
    Some(cx.authority.explain(&key.0, refusal))
}

fn why_not_allowed(
    cx: &Cx,
    user: &UserPolicy,
    filters: &[WantedFilter],
    floating: &[IpAddr],
    manifest: Option<&Manifest>,
) -> Option<Refusal> {
    let server = || manifest.map_or(Ok(()), |manifest| check_server(&cx.policy, user, manifest));
    let needs = || manifest.map_or(Ok(()), |manifest| check_needs(&cx.policy, user, manifest));
    let checked = scope::check_of_sessions(&cx.policy, user, filters);
    checked
        .and_then(|()| scope::check_floating(&cx.policy, user, floating))
        .and_then(|()| server())
        .and_then(|()| needs())
        .err()
}

/// Tells whoever has modules here that they are to be moved.
pub(crate) fn say_maintenance(cx: &mut Cx, tenants: &Tenants) {
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
