// SPDX-License-Identifier: Apache-2.0
//! Modules of an earlier run of the node.

use std::collections::BTreeMap;

use netserv_authority::scope;
use netserv_model::control::ControlMessage;
use netserv_model::effect::{InstalledRecord, StoredMessage};
use netserv_model::limits::CONTAINERS_MAX;
use netserv_model::{Refusal, RefusalKind, Topic};

use crate::cx::Cx;
use crate::cx::jobs::{fetch, forget_record};
use crate::cx::request::Key;
use crate::limits::MODULES_PER_USER_MAX;
use crate::modules::Modules;
use crate::modules::forbidden::allowed_sessions;
use crate::modules::sessions::{arm_lease, store_active};
use crate::modules::suspending::suspend;
use crate::moves::floating::{leave_to_owners, take_floating};
use crate::rules::buffering::Buffers;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::backoff::Backoff;
use crate::tenants::inbox::Control;
use crate::tenants::rule::ModuleRule;
use crate::tenants::session::Session;

/// Takes over the modules of an earlier run, in install order, with the last messages to them.
pub(crate) fn restore_records(
    cx: &mut Cx,
    modules: &mut Modules,
    mut records: Vec<InstalledRecord>,
    messages: Vec<StoredMessage>,
) {
    let Modules { tenants, buffers, suspended, .. } = modules;
    records.sort_by_key(|record| record.order);
    let mut kept: BTreeMap<Key, BTreeMap<Topic, ControlMessage>> = BTreeMap::new();
    for StoredMessage { user, module, message } in messages {
        kept.entry((user, module)).or_default().insert(message.topic.clone(), message);
    }
    for mut record in records {
        tenants.order_after(record.order);
        let key = (record.user.clone(), record.module.name.clone());
        if tenants.entry(&key).is_some_and(|entry| entry.active.is_some() || entry.operation.is_some()) {
            continue;
        }
        if cx.authority.is_unknown(&key.0) {
            suspend(cx, suspended, &key, record);
            continue;
        }
        if record.lease_until <= cx.now.wall {
            cx.counters.leases_expired += 1;
            cx.say_expired(&key.0, record.module);
            forget_record(cx, &key);
            continue;
        }
        let why = why_gone(cx, &key, &record);
        let sessions = allowed_sessions(cx, &key, &mut record);
        if may_stay(cx, tenants, &key, &record) && !sessions.is_empty() {
            let control = Control::with(kept.remove(&key).unwrap_or_default());
            restore_record(cx, tenants, buffers, &key, record, sessions, control);
        } else {
            cx.say_revoked(&key.0, record.module, why);
            forget_record(cx, &key);
        }
    }
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
    let is_changed = sessions.len() < record.sessions.len() || record.suspended.is_some();
    record.suspended = None;
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
    if is_changed {
        store_active(cx, tenants, key);
    }
    arm_lease(cx, tenants, key);
    take_floating(cx, tenants, buffers, key, &floating, epoch);
    cx.counters.restored += 1;
}

/// Returns why a module does not stay, if it does not.
fn why_gone(cx: &Cx, key: &Key, record: &InstalledRecord) -> Refusal {
    let check = |user| {
        scope::check_of_sessions(&cx.policy, user, &record.filters)?;
        scope::check_floating(&cx.policy, user, &record.floating)
    };
    let other = || Refusal::new(RefusalKind::NotPermitted, "the node does not take it over from its earlier run");
    cx.rights(&key.0).and_then(check).err().unwrap_or_else(other)
}

fn may_stay(cx: &Cx, tenants: &Tenants, key: &Key, record: &InstalledRecord) -> bool {
    let installed = tenants.get(&key.0).map_or(0, |tenant| tenant.modules.len());
    let has_container = installed > 0 || tenants.len() < CONTAINERS_MAX;
    let user = cx.may(&key.0).filter(|_| !cx.policy.host_only);
    has_container
        && installed < MODULES_PER_USER_MAX
        && user.is_some_and(|user| scope::check_floating(&cx.policy, user, &record.floating).is_ok())
}
