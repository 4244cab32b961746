// SPDX-License-Identifier: Apache-2.0
//! Floating addresses: which of them this node leads to which module's container.
//!
//! An address leads here from before its module is in force until the module is gone, also while the module is down. It has
//! one owner in each epoch. A module that has it in an earlier one gives it up to another module of its user, or to another
//! node, which the requester names in a SETUP that passes this node by.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netserv_authority::scope;
use netserv_model::effect::{Command, EffectId, FilterId, InstalledRecord, Job, Notice};
use netserv_model::floating::GivenUp;
use netserv_model::{Refusal, RefusalKind, UserId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::jobs::store_record;
use crate::cx::request::Key;
use crate::rules::buffering::Buffers;
use crate::rules::install::rename_filters;
use crate::tenants::Tenants;
use crate::tenants::operation::{Operation, Stage};
use crate::tenants::tenant::Entry;

/// Checks that a module may have floating addresses: its user owns them, and nobody else has them, but for modules of the
/// same user in an earlier epoch.
pub(crate) fn check_floating(
    cx: &Cx,
    tenants: &Tenants,
    key: &Key,
    addresses: &[IpAddr],
    epoch: u64,
) -> Result<(), Refusal> {
    if addresses.is_empty() {
        return Ok(());
    }
    let user = cx.rights(&key.0)?;
    scope::check_floating(&cx.policy, user, addresses)?;
    let taken = |address: &IpAddr, detail: &str| {
        Err(Refusal::new(RefusalKind::AddressTaken, format!("floating address {address} {detail}")))
    };
    let given_up = tenants.active(key).map(|active| &active.record.given_up[..]).unwrap_or_default();
    if let Some(GivenUp { address, epoch: since }) =
        given_up.iter().find(|lost| addresses.contains(&lost.address) && epoch <= lost.epoch)
    {
        let detail = format!("floating address {address} has another owner since epoch {since}, this is epoch {epoch}");
        return Err(Refusal::new(RefusalKind::OldEpoch, detail));
    }
    for address in addresses {
        if cx.policy.users.values().any(|user| user.addresses.contains(address)) {
            return taken(address, "is that of a container");
        }
        for (other, theirs) in tenants.owners_of(*address).filter(|(other, _)| other != key) {
            if other.0 != key.0 {
                return taken(address, "leads to a module of another user");
            }
            if theirs >= epoch {
                return taken(address, &format!("leads to {} in epoch {theirs}, this is epoch {epoch}", other.1));
            }
        }
    }
    Ok(())
}

/// Has the addresses of an installed module that runs again lead to its container.
pub(crate) fn resume_floating(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    if let Some(active) = tenants.active_mut(key) {
        active.holds_floating = true;
        hold_floating(cx, tenants, &key.0);
    }
}

/// Has all floating addresses of a user lead to its container, and no others, unless it is so. Returns what is begun.
pub(crate) fn hold_floating(cx: &mut Cx, tenants: &mut Tenants, user: &UserId) -> Option<EffectId> {
    let tenant = tenants.get_mut(user)?;
    let wanted: BTreeSet<IpAddr> = tenant.modules.values().flat_map(held).copied().collect();
    if tenant.floating == wanted && !tenant.floating_unknown {
        return None;
    }
    let come = wanted.difference(&tenant.floating).copied().collect();
    (tenant.floating, tenant.floating_unknown) = (wanted.clone(), false);
    Some(cx.start_effect(user, Job::Floating(wanted), Purpose::Floating(user.clone(), come)))
}

/// Takes from a module that comes into force the addresses that another one of its user has in a later epoch, which
/// came while this one was about to.
pub(crate) fn leave_to_later(tenants: &Tenants, key: &Key, record: &mut InstalledRecord) {
    let tenant = tenants.get(&key.0);
    let others = tenant.into_iter().flat_map(|tenant| &tenant.modules).filter(|(module, _)| **module != key.1);
    for theirs in others.filter_map(|(_, entry)| Some(&entry.active.as_ref()?.record)) {
        let is_lost = |address: &IpAddr| theirs.epoch > record.epoch && theirs.floating.contains(address);
        let (lost, kept): (Vec<IpAddr>, Vec<IpAddr>) = record.floating.iter().partition(|address| is_lost(address));
        record.floating = kept;
        record.given_up.extend(lost.into_iter().map(|address| GivenUp { address, epoch: theirs.epoch }));
    }
}

/// Has other modules of a user give up the addresses that one which comes into force has.
pub(crate) fn take_floating(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    addresses: &[IpAddr],
    epoch: u64,
) {
    for address in addresses {
        let owners: Vec<Key> = tenants.owners_of(*address).map(|(owner, _)| owner).collect();
        for other in owners.iter().filter(|other| *other != key) {
            give_up_floating(cx, tenants, buffers, other, &[*address], epoch);
        }
    }
}

/// Takes from what is remembered of a module the addresses that others are the owners of, as a crash may leave it.
pub(crate) fn leave_to_owners(tenants: &Tenants, key: &Key, record: &mut InstalledRecord) {
    for address in std::mem::take(&mut record.floating) {
        let mut others = tenants.owners_of(address).filter(|(other, _)| other != key);
        match others.find(|(other, epoch)| other.0 != key.0 || *epoch >= record.epoch) {
            // Another user counts its own owners.
            Some((other, _)) if other.0 != key.0 => record.given_up.push(GivenUp { address, epoch: record.epoch }),
            Some((_, epoch)) => record.given_up.push(GivenUp { address, epoch }),
            None => record.floating.push(address),
        }
    }
}

/// Takes from an installed module the addresses that another one has from an epoch on.
pub(crate) fn give_up_floating(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    gone: &[IpAddr],
    epoch: u64,
) {
    let Some(active) = tenants.active_mut(key) else { return };
    let addresses = take_from(&mut active.record, gone, epoch);
    if addresses.is_empty() {
        return;
    }
    let rules = active.rules.iter_mut().filter(|rule| rule.filter.names_container());
    let named: Vec<FilterId> = rules.flat_map(|rule| std::mem::take(&mut rule.ids)).collect();
    let record = active.record.clone();
    hold_floating(cx, tenants, &key.0);
    rename_filters(cx, tenants, buffers, key, named);
    store_record(cx, key, &record);
    let (user, module) = key.clone();
    cx.say(Command::Notify(Notice::GaveUp { user, module, addresses, epoch }));
}

/// Takes addresses from what is kept of a module, as another one has them from an epoch on; returns those that it had.
pub(crate) fn take_from(record: &mut InstalledRecord, gone: &[IpAddr], epoch: u64) -> Vec<IpAddr> {
    let (lost, kept): (Vec<IpAddr>, Vec<IpAddr>) = record.floating.iter().partition(|address| gone.contains(address));
    record.floating = kept;
    record.given_up.extend(lost.iter().map(|address| GivenUp { address: *address, epoch }));
    lost
}

/// Returns the addresses that lead to the container because of a module.
fn held(entry: &Entry) -> impl Iterator<Item = &IpAddr> {
    let active = entry.active.as_ref().filter(|active| active.holds_floating);
    let floats = |operation: &&Operation| matches!(&operation.stage, Stage::Settling(_, settling) if settling.floats);
    let coming = entry.operation.as_ref().filter(floats).map(|operation| &operation.setup.floating);
    active.map(|active| &active.record.floating).into_iter().chain(coming).flatten()
}
