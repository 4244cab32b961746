// SPDX-License-Identifier: Apache-2.0
//! Modules of users of whom the node has lost track who is behind their checklists, as when its relying party is late: they are gone, and come
//! back within their leases once the node knows again.

use std::collections::BTreeMap;

use netserv_model::effect::InstalledRecord;

use crate::cx::Cx;
use crate::cx::jobs::store_record;
use crate::cx::request::Key;

/// What is kept of them, by restarts too. It has what modules kept outlast these.
pub(crate) type Suspended = BTreeMap<Key, InstalledRecord>;

/// Keeps what is to be known of a module that is gone, until it comes back or its user is forgotten.
pub(crate) fn suspend(cx: &mut Cx, suspended: &mut Suspended, key: &Key, record: InstalledRecord) {
    let since = record.suspended.unwrap_or(cx.now.wall);
    let record = InstalledRecord { suspended: Some(since), ..record };
    store_record(cx, key, &record);
    suspended.insert(key.clone(), record);
}
