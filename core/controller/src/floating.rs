// SPDX-License-Identifier: Apache-2.0
//! Floating addresses: which of them this node leads to which module's container.
//!
//! An address leads here from before its module is in force until the module is gone, also while the module is down. It has
//! one owner in each epoch. A module that has it in an earlier one gives it up to another module of its user, or to another
//! node, which the requester names in a SETUP that passes this node by.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::IpAddr;

use netserv_model::effect::{Command, EffectId, FilterId, InstalledRecord, Job, Notice};
use netserv_model::floating::GivenUp;
use netserv_model::request::Setup;
use netserv_model::{Refusal, RefusalKind, UserId};

use crate::buffering::Buffers;
use crate::cx::Cx;
use crate::effects::Purpose;
use crate::filters;
use crate::lifecycle::{fail_operation, store_record};
use crate::modules::Modules;
use crate::restart::fail_filter;
use crate::rules::{rename_filters, swap_rules};
use crate::state::{Active, Entry, Key, Operation, Stage};
use crate::tenants::Tenants;

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
    let user = cx.user_policy(&key.0)?;
    filters::check_floating(&cx.policy, user, addresses)?;
    let taken = |address: &IpAddr, detail: &str| {
        Err(Refusal::new(RefusalKind::AddressTaken, format!("floating address {address} {detail}")))
    };
    let given_up = tenants.active_of(key).map(|active| &active.record.given_up[..]).unwrap_or_default();
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

/// Has the addresses of a module that is about to be in force lead to its container. Returns whether nothing is to be
/// waited for; if they cannot, the module does not come into force.
pub(crate) fn floats(cx: &mut Cx, m: &mut Modules, key: &Key) -> bool {
    let Some(operation) = m.tenants.operation(key) else { return false };
    let Stage::Settling(_, settling) = &mut operation.stage else { return false };
    if std::mem::replace(&mut settling.floats, true) {
        return settling.floating.is_none();
    }
    let (addresses, epoch) = (operation.setup.floating.clone(), operation.setup.epoch);
    if let Err(refusal) = check_floating(cx, &m.tenants, key, &addresses, epoch) {
        fail_operation(cx, m, key, refusal);
        return false;
    }
    let begun = hold_floating(cx, &mut m.tenants, &key.0);
    if let Some(Operation { stage: Stage::Settling(_, settling), .. }) = m.tenants.operation(key) {
        settling.floating = begun;
    }
    begun.is_none()
}

/// Has the addresses of an installed module that runs again lead to its container.
pub(crate) fn resume_floating(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    if let Some(active) = tenants.active(key) {
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

/// Floating addresses lead to a user's container, or those that were to `come` do not.
pub(crate) fn floating_changed(
    cx: &mut Cx,
    m: &mut Modules,
    user: &UserId,
    id: EffectId,
    come: &BTreeSet<IpAddr>,
    failure: Option<Refusal>,
) {
    let Some(tenant) = m.tenants.get_mut(user) else { return };
    tenant.floating_unknown |= failure.is_some();
    let mut waiting = None;
    for (module, entry) in &mut tenant.modules {
        if let Some(Stage::Settling(_, settling)) = entry.operation.as_mut().map(|operation| &mut operation.stage)
            && settling.floating.take_if(|waits| *waits == id).is_some()
        {
            waiting = Some((user.clone(), module.clone()));
        }
    }
    match (waiting, failure) {
        (Some(key), None) => swap_rules(cx, m, &key),
        (Some(key), Some(refusal)) => fail_operation(cx, m, &key, refusal),
        (None, None) => {}
        (None, Some(refusal)) => lose_floating(cx, &mut m.tenants, user, come, &refusal),
    }
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
            Some((_, epoch)) => record.given_up.push(GivenUp { address, epoch }),
            None => record.floating.push(address),
        }
    }
}

/// Sees a SETUP that is for another node: from its epoch on, its floating addresses are not this node's.
///
/// Returns what there is to say of it.
pub(crate) fn see_floating(cx: &mut Cx, m: &mut Modules, key: &Key, setup: &Setup) -> Option<String> {
    let common = |own: &[IpAddr]| own.iter().copied().find(|address| setup.floating.contains(address));
    let Some(entry) = m.tenants.get(&key.0).and_then(|tenant| tenant.modules.get(&key.1)) else {
        // A SETUP of an earlier epoch may still come here.
        if !setup.floating.is_empty() {
            m.epochs.note(key, setup.epoch.saturating_add(1));
        }
        return None;
    };
    let wanted = entry.operation.as_ref().map(|operation| &operation.setup);
    let wanted = wanted.and_then(|wanted| Some((common(&wanted.floating)?, wanted.epoch)));
    let active = entry.active.as_ref().map(|active| &active.record);
    let active = active.and_then(|record| Some((common(&record.floating)?, record.epoch)));
    if wanted.iter().chain(&active).any(|(_, epoch)| *epoch < setup.epoch) {
        // This node is not the owner in that epoch.
        m.epochs.note(key, setup.epoch.saturating_add(1));
    }
    if let Some((address, _)) = wanted.filter(|(_, epoch)| *epoch < setup.epoch) {
        let detail = format!("another node has {address} in epoch {}", setup.epoch);
        fail_operation(cx, m, key, Refusal::new(RefusalKind::OldEpoch, detail));
    }
    let (address, epoch) = active?;
    match epoch.cmp(&setup.epoch) {
        Ordering::Less => {
            give_up_floating(cx, &mut m.tenants, &mut m.buffers, key, &setup.floating, setup.epoch);
            Some(format!("this node gives up {address}, which it had in epoch {epoch}"))
        }
        Ordering::Equal => Some(format!("this node has {address} in the same epoch {epoch}, and keeps it")),
        Ordering::Greater => None,
    }
}

/// Has an installed module without addresses go on that another one has from an epoch on.
fn give_up_floating(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key, gone: &[IpAddr], epoch: u64) {
    let Some(active) = tenants.active(key) else { return };
    let (addresses, kept): (Vec<IpAddr>, Vec<IpAddr>) =
        active.record.floating.iter().partition(|address| gone.contains(address));
    if addresses.is_empty() {
        return;
    }
    active.record.floating = kept;
    active.record.given_up.extend(addresses.iter().map(|address| GivenUp { address: *address, epoch }));
    let rules = active.rules.iter_mut().filter(|rule| rule.filter.names_container());
    let named: Vec<FilterId> = rules.flat_map(|rule| std::mem::take(&mut rule.ids)).collect();
    let record = active.record.clone();
    hold_floating(cx, tenants, &key.0);
    rename_filters(cx, tenants, buffers, key, named);
    store_record(cx, key, &record);
    let (user, module) = key.clone();
    cx.say(Command::Notify(Notice::GaveUp { user, module, addresses, epoch }));
}

/// Addresses of running modules do not lead to their container, through no fault of theirs.
fn lose_floating(cx: &mut Cx, tenants: &mut Tenants, user: &UserId, lost: &BTreeSet<IpAddr>, refusal: &Refusal) {
    let Some(tenant) = tenants.get_mut(user) else { return };
    let mut keys = Vec::new();
    for (module, entry) in &mut tenant.modules {
        let has_lost = |active: &Active| active.record.floating.iter().any(|address| lost.contains(address));
        if let Some(active) = entry.active.as_mut().filter(|active| has_lost(active)) {
            active.holds_floating = false;
            keys.push((user.clone(), module.clone()));
        }
    }
    if keys.is_empty() {
        // Nobody waits for it: it is asked for again with the next change.
        return;
    }
    for key in keys {
        fail_filter(cx, tenants, &key, refusal.clone());
    }
    hold_floating(cx, tenants, user);
}

/// Returns the addresses that lead to the container because of a module.
fn held(entry: &Entry) -> impl Iterator<Item = &IpAddr> {
    let active = entry.active.as_ref().filter(|active| active.holds_floating);
    let floats = |operation: &&Operation| matches!(&operation.stage, Stage::Settling(_, settling) if settling.floats);
    let coming = entry.operation.as_ref().filter(floats).map(|operation| &operation.setup.floating);
    active.map(|active| &active.record.floating).into_iter().chain(coming).flatten()
}

impl Active {
    /// Returns what `self` means to the module in a container with these addresses.
    pub(crate) fn addresses(&self, own: &[IpAddr]) -> Vec<IpAddr> {
        [own, &self.record.floating].concat()
    }

    /// Returns the least epoch in which the node takes the module once it is gone: none in which another one has an address of
    /// it.
    pub(crate) fn epoch_min(&self) -> u64 {
        let lost = self.record.given_up.iter().map(|lost| lost.epoch.saturating_add(1)).max();
        self.record.epoch.max(lost.unwrap_or(0))
    }
}
