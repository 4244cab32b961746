// SPDX-License-Identifier: Apache-2.0
//! Rules of installed modules: they come and go with what the modules do.

use std::net::IpAddr;

use netserv_model::effect::{EffectId, FilterId, InterceptJob, Job};
use netserv_model::{UserId, WorkerId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::request::Key;
use crate::rules::buffering::Buffers;
use crate::rules::names::{begin_intercepts, change_filters, ids, name_filters, name_intercepts, take_ids};
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run, can_drain};
use crate::tenants::operation::{Operation, Stage};
use crate::tenants::rule::RuleKind;
use crate::tenants::tenant::{Entry, Tenant};

/// Installs the rules that a running module has not yet, and those of connections again, which were suspended.
pub(crate) fn install_rules(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
    install_filters(cx, tenants, buffers, key);
    let Some(active) = tenants.entry_mut(key).and_then(|entry| entry.active.as_mut()) else { return };
    let Some((flavour, slot)) = active.place() else { return };
    let worker = WorkerId::new(key.0.clone(), flavour);
    let Active { manifest: Some(manifest), rules, is_frozen: false, .. } = active else { return };
    let begun = name_intercepts(&mut cx.names, (&worker, slot), manifest, rules);
    begin_intercepts(cx, key, begun);
}

/// Installs the rules of packets that a running module has not yet. While its successor's are on their way, only
/// their failure brings them.
pub(crate) fn install_filters(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
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

/// Takes all rules of an installed module away, but for those of connections that go on when it goes: these take no others.
/// Returns those of packets, which are still to go.
pub(crate) fn hide_module(cx: &mut Cx, tenants: &mut Tenants, key: &Key) -> Vec<FilterId> {
    let Some(active) = tenants.active_mut(key) else { return Vec::new() };
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
pub(crate) fn suspend_intercepts(cx: &mut Cx, tenants: &Tenants, key: &Key) {
    let Some(active) = tenants.active(key).filter(|active| active.run == Run::Running) else { return };
    for id in ids(&active.rules, RuleKind::Intercept) {
        cx.start_effect(&key.0, Job::Intercepts(InterceptJob::Suspend(id)), Purpose::Nothing);
    }
}

/// Has the predecessor's rules of packets take their place again.
pub(crate) fn swap_back(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
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
