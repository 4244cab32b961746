// SPDX-License-Identifier: Apache-2.0
//! Changes of the policy on their way to running containers.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::effect::{Command, EffectId, Hold, Job, Late, PolicyChange};
use netserv_model::policy::{AddressPlan, ContainerLimits, Permits};
use netserv_model::{Refusal, UserId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::tenants::Tenants;
use crate::tenants::tenant::Tenant;
use crate::tenants::worker::Worker;

/// What running containers are held to, and of what they get addresses.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) plan: AddressPlan,
    by_user: BTreeMap<UserId, (Permits, ContainerLimits)>,
}

impl Held {
    /// Returns what holds now.
    pub(crate) fn now(cx: &Cx, tenants: &Tenants) -> Held {
        let by_user = running(tenants).map(|user| (user.clone(), held_of(cx, user))).collect();
        Held { plan: cx.address_plan(), by_user }
    }
}

/// Has running containers held to what their users' rights say otherwise than before; returns what is begun.
pub(crate) fn hold(
    cx: &mut Cx,
    tenants: &Tenants,
    before: &Held,
    purpose: impl Fn(Hold) -> Purpose,
) -> BTreeSet<EffectId> {
    let mut begun = BTreeSet::new();
    for user in running(tenants) {
        let before = before.by_user.get(user).cloned().unwrap_or_default();
        begun.extend(hold_user(cx, user, before, &purpose));
    }
    begun
}

/// Has the running container of a user held to rights that came with a request, if they are others than before.
pub(crate) fn hold_to_proof(cx: &mut Cx, tenants: &Tenants, user: &UserId, before: (Permits, ContainerLimits)) {
    if tenants.get(user).is_some_and(is_running) {
        hold_user(cx, user, before, &|_| Purpose::Nothing);
    }
}

fn hold_user(
    cx: &mut Cx,
    user: &UserId,
    (permits_before, limits_before): (Permits, ContainerLimits),
    purpose: &impl Fn(Hold) -> Purpose,
) -> Vec<EffectId> {
    let (permits, limits) = held_of(cx, user);
    let mut begun = Vec::new();
    if permits != permits_before {
        let purpose = purpose(Hold::Permits(user.clone()));
        begun.push(cx.start_effect(user, Job::Permit(Box::new(permits)), purpose));
    }
    if limits != limits_before && cx.may(user).is_some() {
        begun.push(cx.start_effect(user, Job::Limit(limits), purpose(Hold::Limits(user.clone()))));
    }
    begun
}

fn running(tenants: &Tenants) -> impl Iterator<Item = &UserId> {
    tenants.iter().filter(|(_, tenant)| is_running(tenant)).map(|(user, _)| user)
}

fn is_running(tenant: &Tenant) -> bool {
    tenant.workers.values().any(Worker::has_process)
}

/// Returns what the container of a user is held to now.
pub(crate) fn held_of(cx: &Cx, user: &UserId) -> (Permits, ContainerLimits) {
    cx.may(user).map(|user| (user.permits(), user.container)).unwrap_or_default()
}

/// Changes of the policy that are not in force everywhere, by name: a few, since an operator waits for each.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    open: BTreeMap<PolicyChange, OpenChange>,
}

impl Changes {
    /// Has running containers held to what the policy says otherwise than before, also those that are about to end.
    pub(crate) fn begin(&mut self, cx: &mut Cx, tenants: &Tenants, change: PolicyChange, before: &Held) {
        let mut open = BTreeSet::new();
        let plan = cx.address_plan();
        if plan != before.plan {
            let job = Job::Addresses(Box::new(plan));
            open.insert(cx.start_node_effect(job, Purpose::Policy(change, Hold::Addresses)));
        }
        open.extend(hold(cx, tenants, before, |hold| Purpose::Policy(change, hold)));
        if open.is_empty() {
            return cx.say(Command::InForce(change, Vec::new()));
        }
        self.open.insert(change, OpenChange { open, late: Vec::new() });
    }

    /// Takes note that containers are held to a part of a changed policy, or why not.
    pub(crate) fn applied(
        &mut self,
        cx: &mut Cx,
        change: PolicyChange,
        hold: Hold,
        id: EffectId,
        failed: Option<Refusal>,
    ) {
        let Some(waiting) = self.open.get_mut(&change) else { return };
        waiting.open.remove(&id);
        waiting.late.extend(failed.map(|refusal| Late { hold, refusal }));
        if waiting.open.is_empty() {
            let late = self.open.remove(&change).map(|change| change.late).unwrap_or_default();
            cx.say(Command::InForce(change, late));
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// A change of the policy on its way to running containers.
#[derive(Debug)]
struct OpenChange {
    /// What is being done for it.
    open: BTreeSet<EffectId>,
    late: Vec<Late>,
}
