// SPDX-License-Identifier: Apache-2.0
//! Sessions that ask for what the policy does not allow any more, of modules that others hold.

use std::slice;

use netserv_authority::scope;
use netserv_model::effect::{InstalledRecord, SessionRecord};
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::{Refusal, WantedFilter};

use crate::cx::Cx;
use crate::cx::request::Key;
use crate::modules::sessions::{leave_module, store_active};
use crate::policy::asked::{Asked, asked_together};
use crate::rules::names::remove_rules;
use crate::tenants::Tenants;
use crate::tenants::session::{Session, sessions_of};

/// Ends the sessions of a module whose filters the policy does not allow. If these are all its sessions, it ends none: the caller
/// removes the module. `manifest` is the package's, if it has just arrived.
pub(crate) fn end_forbidden(cx: &mut Cx, tenants: &mut Tenants, key: &Key, manifest: Option<&Manifest>) {
    let Some(active) = tenants.active(key) else { return };
    let Some(user) = cx.may(&key.0) else { return };
    let known = active.whole_manifest();
    let manifest = manifest.or(known.as_ref());
    let why = |session: &Session| why_forbidden(&cx.policy, user, manifest, &session.record).err();
    let ended: Vec<_> = active.sessions.iter().filter_map(|session| Some((session.origin(), why(session)?))).collect();
    if ended.is_empty() || ended.len() == active.sessions.len() {
        return;
    }
    leave_module(cx, tenants, key, |held| ended.iter().any(|(origin, _)| held.origin() == *origin));
    drop_forbidden_rules(cx, tenants, key);
    for (origin, refusal) in ended {
        cx.tell_requester(key, origin, NotifyEvent::LeaseEnded, refusal.to_string(), None);
    }
}

/// Removes the rules of a module that the policy does not allow, if its package is missing: only the package tells which session
/// each rule is for.
fn drop_forbidden_rules(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let (policy, user) = (&cx.policy, cx.may(&key.0));
    let active = tenants.entry_mut(key).and_then(|entry| entry.active.as_mut());
    let Some((user, active)) = user.zip(active.filter(|active| active.manifest.is_none())) else { return };
    let is_allowed = |filter: &WantedFilter| scope::check_of_sessions(policy, user, slice::from_ref(filter)).is_ok();
    active.record.filters.retain(is_allowed);
    let (kept, gone): (Vec<_>, Vec<_>) =
        std::mem::take(&mut active.rules).into_iter().partition(|rule| is_allowed(&rule.filter));
    active.rules = kept;
    remove_rules(cx, key, &gone);
    store_active(cx, tenants, key);
}

/// Returns the sessions of a record whose leases run and that the policy allows as far as the record tells, and has the record
/// name no filters beyond these.
pub(crate) fn allowed_sessions(cx: &Cx, key: &Key, record: &mut InstalledRecord) -> Vec<Session> {
    let mut sessions = sessions_of(record, cx.now, cx.policy.ttl_max);
    let Some(user) = cx.may(&key.0) else { return Vec::new() };
    let some = !record.filters.is_empty();
    record.filters.retain(|filter| scope::check_of_sessions(&cx.policy, user, slice::from_ref(filter)).is_ok());
    if some && record.filters.is_empty() {
        return Vec::new();
    }
    sessions.retain(|session| why_forbidden(&cx.policy, user, None, &session.record).is_ok());
    sessions
}

/// Checks what a session asked for, of a module with this manifest if that is known.
fn why_forbidden(
    policy: &NodePolicy,
    user: &UserPolicy,
    manifest: Option<&Manifest>,
    session: &SessionRecord,
) -> Result<(), Refusal> {
    let (packets, connections) = match manifest {
        Some(manifest) => asked_together(manifest, &[Asked::of_record(session)]),
        None => (session.filters.clone(), session.intercept.clone()),
    };
    let connections: Vec<WantedFilter> = connections.into_iter().map(WantedFilter::from).collect();
    scope::check_of_sessions(policy, user, &packets)?;
    scope::check_of_sessions(policy, user, &connections)
}
