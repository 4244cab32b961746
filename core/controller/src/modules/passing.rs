// SPDX-License-Identifier: Apache-2.0
//! Requests that are for other nodes: this one lets go of what these have by them.

use std::cmp::Ordering;
use std::net::IpAddr;

use netserv_model::request::{Body, Outcome, Request, Setup};
use netserv_model::{Refusal, RefusalKind, UserId};

use crate::cx::Cx;
use crate::cx::request::Key;
use crate::modules::Modules;
use crate::modules::lifecycle::fail_operation;
use crate::modules::suspending::give_up_suspended;
use crate::moves::floating::give_up_floating;
use crate::moves::freezing::see_owner;

/// Returns what to answer to a proven request that is not for this node, and lets go of what another one has by it.
pub(crate) fn pass_by(
    cx: &mut Cx,
    modules: &mut Modules,
    user: &UserId,
    request: &Request,
    outcome: Outcome,
) -> Outcome {
    let Body::Setup(setup) = &request.body else { return outcome };
    if request.dry_run || !names_others(cx, request) {
        return outcome;
    }
    let key = (user.clone(), setup.module.name.clone());
    let said = [
        see_floating(cx, modules, &key, setup),
        see_owner(cx, &mut modules.tenants, &mut modules.buffers, &key, setup),
    ];
    let said = said.into_iter().flatten().collect::<Vec<_>>().join("; ");
    match (outcome, said.is_empty()) {
        (Outcome::NotTargeted { reason }, false) => Outcome::NotTargeted { reason: format!("{reason}; {said}") },
        (outcome, _) => outcome,
    }
}

/// Returns whether a request is for nodes by name, of which this is none.
fn names_others(cx: &Cx, request: &Request) -> bool {
    !request.nodes.is_empty() && !request.nodes.contains(&cx.policy.node)
}

/// Sees a SETUP that is for another node: from its epoch on, its floating addresses are not this node's.
///
/// Returns what there is to say of it.
fn see_floating(cx: &mut Cx, modules: &mut Modules, key: &Key, setup: &Setup) -> Option<String> {
    let common = |own: &[IpAddr]| own.iter().copied().find(|address| setup.floating.contains(address));
    let (entry, suspended) = (modules.tenants.entry(key), modules.suspended.get(key));
    if entry.is_none() && suspended.is_none() {
        // A SETUP of an earlier epoch may still come here.
        if !setup.floating.is_empty() {
            modules.epochs.note(key, setup.epoch.saturating_add(1), |user| cx.may(user).is_some());
        }
        return None;
    }
    let wanted = entry.and_then(|entry| entry.operation.as_ref()).map(|operation| &operation.setup);
    let wanted = wanted.and_then(|wanted| Some((common(&wanted.floating)?, wanted.epoch)));
    let active = entry.and_then(|entry| entry.active.as_ref()).map(|active| &active.record).or(suspended);
    let active = active.and_then(|record| Some((common(&record.floating)?, record.epoch)));
    if wanted.iter().chain(&active).any(|(_, epoch)| *epoch < setup.epoch) {
        // This node is not the owner in that epoch.
        modules.epochs.note(key, setup.epoch.saturating_add(1), |user| cx.may(user).is_some());
    }
    if let Some((address, _)) = wanted.filter(|(_, epoch)| *epoch < setup.epoch) {
        let detail = format!("another node has {address} in epoch {}", setup.epoch);
        fail_operation(cx, modules, key, Refusal::new(RefusalKind::OldEpoch, detail));
    }
    let (address, epoch) = active?;
    match epoch.cmp(&setup.epoch) {
        Ordering::Less => {
            give_up_floating(cx, &mut modules.tenants, &mut modules.buffers, key, &setup.floating, setup.epoch);
            give_up_suspended(cx, &mut modules.suspended, key, &setup.floating, setup.epoch);
            Some(format!("this node gives up {address}, which it had in epoch {epoch}"))
        }
        Ordering::Equal => Some(format!("this node has {address} in the same epoch {epoch}, and keeps it")),
        Ordering::Greater => None,
    }
}
