// SPDX-License-Identifier: Apache-2.0
//! Suspended modules come back, or are forgotten.

use std::mem;

use netserv_model::UserId;
use netserv_model::effect::InstalledRecord;

use crate::cx::Cx;
use crate::cx::jobs::forget_record;
use crate::cx::request::Key;
use crate::modules::Modules;
use crate::modules::restoring::restore_records;

/// Brings modules back whose users have rights again, and forgets those whose users are not waited for any more.
pub(crate) fn settle_suspended(cx: &mut Cx, modules: &mut Modules) {
    cx.has_forgotten = false;
    let Modules { suspended, tenants, .. } = modules;
    // One for which a SETUP is under way comes back when that has failed.
    let is_free = |key: &Key| tenants.entry(key).is_none_or(|entry| entry.operation.is_none());
    let settled = suspended.extract_if(.., |key, _| !cx.authority.is_unknown(&key.0) && is_free(key));
    let mut settled: Vec<(Key, InstalledRecord)> = settled.collect();
    settled.sort_by_key(|(_, record)| record.order);
    for (key, record) in settled {
        settle(cx, modules, &key, record);
    }
}

/// Likewise, before a request of a user's is looked at, and if others were forgotten for it.
pub(crate) fn settle_before(cx: &mut Cx, modules: &mut Modules, user: &UserId) {
    if mem::take(&mut cx.has_forgotten) || modules.suspended.keys().any(|(of, _)| of == user) {
        settle_suspended(cx, modules);
    }
}

/// Likewise, of one module for which no SETUP is under way any more.
pub(crate) fn settle_module(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let is_under_way = modules.tenants.entry(key).is_some_and(|entry| entry.operation.is_some());
    if is_under_way || cx.authority.is_unknown(&key.0) {
        return;
    }
    if let Some(record) = modules.suspended.remove(key) {
        settle(cx, modules, key, record);
    }
}

fn settle(cx: &mut Cx, modules: &mut Modules, key: &Key, record: InstalledRecord) {
    // What a SETUP has installed meanwhile counts.
    if modules.tenants.active(key).is_some() {
        return;
    }
    if cx.may(&key.0).is_none() {
        return forget_record(cx, key);
    }
    let module = record.module.clone();
    restore_records(cx, modules, vec![record], Vec::new());
    if modules.tenants.active(key).is_some() {
        cx.say_resumed(&key.0, module);
    }
}
