// SPDX-License-Identifier: Apache-2.0
//! What is checked of a SETUP beside what its user may have: whether the node has room for it, as it is.

use std::time::Duration;

use netserv_authority::scope;
use netserv_model::limits::{CONTAINERS_MAX, TTL_MIN};
use netserv_model::manifest::Manifest;
use netserv_model::policy::UserPolicy;
use netserv_model::request::Setup;
use netserv_model::{Filter, Refusal, RefusalKind};

use crate::cx::Cx;
use crate::cx::request::Key;
use crate::limits::MODULES_PER_USER_MAX;
use crate::modules::Modules;
use crate::moves::floating::check_floating;
use crate::policy::filters;
use crate::policy::package::{check_dependencies, check_properties};
use crate::tenants::Tenants;
use crate::tenants::tenant::Entry;
use crate::users::quota::Quarantine;

/// Checks everything about a SETUP that can be known before its package is there.
pub(crate) fn check_setup(cx: &Cx, modules: &Modules, key: &Key, setup: &Setup) -> Result<(), Refusal> {
    let user = cx.rights(&key.0)?;
    if setup.ttl < TTL_MIN || setup.ttl > cx.policy.ttl_max {
        let (asked, longest) = (setup.ttl.as_secs_f64(), cx.policy.ttl_max.as_secs());
        let detail = format!("{asked} s asked for, {} to {longest} s granted", TTL_MIN.as_secs());
        return Err(Refusal::new(RefusalKind::BadTtl, detail));
    }
    check_maintenance(cx, &modules.tenants, key, setup.epoch)?;
    check_properties(&setup.properties, RefusalKind::BadRequest)?;
    modules.epochs.check(&modules.tenants, key, setup.epoch)?;
    modules.epochs.check_state(&modules.tenants, key, setup)?;
    let explained = |refusal| cx.authority.explain(&key.0, refusal);
    check_floating(cx, &modules.tenants, key, &setup.floating, setup.epoch).map_err(explained)?;
    check_quota(&modules.tenants, key, user)?;
    scope::check(&cx.policy, user, &setup.filters).map_err(explained)?;
    check_dependencies(&cx.policy, &setup.dependencies)?;
    check_quarantine(cx, &modules.quarantine, key, setup)
}

fn check_quota(tenants: &Tenants, key: &Key, user: &UserPolicy) -> Result<(), Refusal> {
    let Some(tenant) = tenants.get(&key.0) else {
        if tenants.len() >= CONTAINERS_MAX {
            let detail = format!("the node has {CONTAINERS_MAX} containers");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        return check_modules(0, user);
    };
    let taken = |entry: &Entry| entry.active.is_some() || entry.operation.is_some();
    if tenant.modules.get(&key.1).is_some_and(taken) {
        return Ok(());
    }
    check_modules(tenant.modules.values().filter(|entry| taken(entry)).count(), user)
}

fn check_quarantine(cx: &Cx, quarantine: &Quarantine, key: &Key, setup: &Setup) -> Result<(), Refusal> {
    let Some(left) = quarantine.remaining(cx.now.instant, &key.0, setup.digest) else { return Ok(()) };
    let detail = format!(
        "{} failed too often or took too long to compile, kept out for another {} s",
        setup.digest,
        left.as_secs() + 1
    );
    Err(Refusal::new(RefusalKind::Quarantined, detail))
}

fn check_modules(installed: usize, user: &UserPolicy) -> Result<(), Refusal> {
    let granted = usize::try_from(user.modules_max).unwrap_or(usize::MAX).min(MODULES_PER_USER_MAX);
    let refusal = || Refusal::new(RefusalKind::QuotaExceeded, format!("{installed} modules of at most {granted}"));
    if installed < granted { Ok(()) } else { Err(refusal()) }
}

/// Checks that no other module of the user's takes connections where a module would: they share a container.
pub(crate) fn check_ports(tenants: &Tenants, key: &Key, manifest: &Manifest) -> Result<(), Refusal> {
    let Some(tenant) = tenants.get(&key.0) else { return Ok(()) };
    for (name, entry) in tenant.modules.iter().filter(|(name, _)| **name != key.1) {
        let candidate = entry.operation.as_ref().and_then(|operation| operation.stage.candidate());
        let active = entry.active.as_ref().and_then(|active| active.manifest.as_ref());
        for other in active.into_iter().chain(candidate.map(|candidate| &candidate.manifest)) {
            if let Some((wanted, theirs)) = pair(manifest.listen(), other.listen(), filters::share_port) {
                let detail = format!("server.listen `{wanted}` meets `{theirs}` of {name}, another module of the user");
                return Err(Refusal::new(RefusalKind::PortTaken, detail));
            }
        }
    }
    Ok(())
}

/// Returns the first two filters of two lists of which something is true.
fn pair<'a>(
    one: &'a [Filter],
    other: &'a [Filter],
    is: impl Fn(&Filter, &Filter) -> bool,
) -> Option<(&'a Filter, &'a Filter)> {
    let is = &is;
    one.iter().find_map(|own| other.iter().find(|theirs| is(own, theirs)).map(|theirs| (own, theirs)))
}

/// Checks that a SETUP brings nothing new to a node that is being drained: a later epoch would make it the next owner.
pub(crate) fn check_maintenance(cx: &Cx, tenants: &Tenants, key: &Key, epoch: u64) -> Result<(), Refusal> {
    let active = || tenants.active(key);
    if !cx.is_drained_for(&key.0) || active().is_some_and(|active| epoch <= active.record.epoch) {
        return Ok(());
    }
    let detail = format!("the operator drains {}, which takes nothing new", cx.policy.node);
    Err(Refusal::new(RefusalKind::Maintenance, detail))
}

/// Returns the lease that a SETUP gets: no longer than its user's proof holds, and than the one in force if the node is being drained.
pub(crate) fn granted_ttl(cx: &Cx, tenants: &Tenants, key: &Key, ttl: Duration) -> Duration {
    let ttl = cx.authority.lease_max(&key.0, cx.now.wall).map_or(ttl, |most| ttl.min(most));
    if !cx.is_drained_for(&key.0) {
        return ttl;
    }
    let now = cx.now.instant;
    tenants.active(key).map_or(ttl, |active| ttl.min(active.lease_end.since(now)))
}
