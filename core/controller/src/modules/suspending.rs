// SPDX-License-Identifier: Apache-2.0
//! Modules of users of whom the node has lost track who is behind their checklists, as when its relying party is late: they are gone, and come
//! back within their leases once the node knows again.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::effect::{Command, InstalledRecord, Notice};

use crate::cx::Cx;
use crate::cx::jobs::store_record;
use crate::cx::request::Key;
use crate::moves::floating::take_from;

/// What is kept of them, by restarts too. It has what modules kept outlast these.
pub(crate) type Suspended = BTreeMap<Key, InstalledRecord>;

/// Takes from a suspended module the addresses that another one has from an epoch on.
pub(crate) fn give_up_suspended(cx: &mut Cx, suspended: &mut Suspended, key: &Key, gone: &[IpAddr], epoch: u64) {
    let Some(record) = suspended.get_mut(key) else { return };
    let addresses = take_from(record, gone, epoch);
    if !addresses.is_empty() {
        store_record(cx, key, record);
        let (user, module) = key.clone();
        cx.say(Command::Notify(Notice::GaveUp { user, module, addresses, epoch }));
    }
}

/// Keeps what is to be known of a module that is gone, until it comes back or its user is forgotten.
pub(crate) fn suspend(cx: &mut Cx, suspended: &mut Suspended, key: &Key, record: InstalledRecord) {
    let since = record.suspended.unwrap_or(cx.now.wall);
    let record = InstalledRecord { suspended: Some(since), ..record };
    store_record(cx, key, &record);
    suspended.insert(key.clone(), record);
}
