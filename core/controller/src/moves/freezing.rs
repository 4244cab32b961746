// SPDX-License-Identifier: Apache-2.0
//! Modules that are paused while their state goes to another node, so that no packet is seen by both.
//!
//! Its rules go first. When the driver has none for it any more, it is asked for its state. It resumes where it was if its
//! requester sends its SETUP again, if the state was not written, or when its time is up; it does not, if a SETUP of a later
//! epoch passes by for another node.

use netserv_model::request::Setup;

use crate::cx::Cx;
use crate::cx::jobs::store_record;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::rules::buffering::Buffers;
use crate::rules::install::install_rules;
use crate::tenants::Tenants;
use crate::tenants::active::Active;

/// Resumes a paused module.
pub(crate) fn thaw(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
    cx.timers.cancel(&Timer::Thaw(key.clone()));
    let stands = |active: &&mut Active| active.is_frozen && active.record.moved_in.is_none();
    let Some(active) = tenants.active_mut(key).filter(stands) else { return };
    active.is_frozen = false;
    install_rules(cx, tenants, buffers, key);
    // Nothing takes their place while the module is down, or its successor comes.
    buffers.end(cx, key);
}

/// Sees a SETUP that is for another node: of a later epoch, it is that of the next owner.
///
/// Returns what there is to say of it.
pub(crate) fn see_owner(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    setup: &Setup,
) -> Option<String> {
    let active = tenants.active_mut(key).filter(|active| active.is_frozen && active.record.epoch < setup.epoch)?;
    let epoch = active.record.epoch;
    active.record.moved_in = Some(setup.epoch);
    let record = active.record.clone();
    store_record(cx, key, &record);
    cx.timers.cancel(&Timer::Thaw(key.clone()));
    buffers.end_soon(cx, key);
    Some(format!("{} of epoch {epoch} stands still here until it is removed", key.1))
}
