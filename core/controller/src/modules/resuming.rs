// SPDX-License-Identifier: Apache-2.0
//! Suspended modules come back, or are forgotten.

use netserv_model::UserId;
use netserv_model::effect::InstalledRecord;

use crate::cx::Cx;
use crate::cx::jobs::{forget_record, store_record};
use crate::cx::request::Key;
use crate::modules::Modules;
use crate::modules::restoring::restore_records;

/// Brings modules back whose users have rights again, and forgets those whose users are not waited for any more.
pub(crate) fn settle_suspended(cx: &mut Cx, modules: &mut Modules) {
    let settled = modules.suspended.extract_if(.., |(user, _), _| !cx.authority.is_unknown(user));
    let mut settled: Vec<(Key, InstalledRecord)> = settled.collect();
    settled.sort_by_key(|(_, record)| record.order);
    for (key, record) in settled {
        if cx.may(&key.0).is_none() {
            forget_record(cx, &key);
        } else if modules.tenants.entry(&key).is_none() {
            resume(cx, modules, &key, InstalledRecord { suspended: None, ..record });
        }
    }
}

/// Likewise, before a request of a user's is looked at.
pub(crate) fn settle_before(cx: &mut Cx, modules: &mut Modules, user: &UserId) {
    if modules.suspended.keys().any(|(of, _)| of == user) {
        settle_suspended(cx, modules);
    }
}

fn resume(cx: &mut Cx, modules: &mut Modules, key: &Key, record: InstalledRecord) {
    let module = record.module.clone();
    store_record(cx, key, &record);
    restore_records(cx, modules, vec![record], Vec::new());
    if modules.tenants.active(key).is_some() {
        cx.say_resumed(&key.0, module);
    }
}
