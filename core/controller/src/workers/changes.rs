// SPDX-License-Identifier: Apache-2.0
//! Changes of the policy on their way to running containers.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::effect::{Command, EffectId, Hold, Job, Late, PolicyChange};
use netserv_model::policy::NodePolicy;
use netserv_model::{Refusal, UserId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::tenants::Tenants;
use crate::tenants::tenant::Tenant;
use crate::tenants::worker::Worker;

/// Changes of the policy that are not in force everywhere, by name: a few, since an operator waits for each.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    open: BTreeMap<PolicyChange, OpenChange>,
}

impl Changes {
    /// Has running containers held to what the policy says otherwise than the one before, also those that are about to
    /// end.
    pub(crate) fn begin(&mut self, cx: &mut Cx, tenants: &Tenants, change: PolicyChange, before: &NodePolicy) {
        let mut open = BTreeSet::new();
        let plan = cx.policy.address_plan();
        if plan != before.address_plan() {
            let job = Job::Addresses(Box::new(plan));
            open.insert(cx.start_node_effect(job, Purpose::Policy(change, Hold::Addresses)));
        }
        let running = |tenant: &Tenant| tenant.workers.values().any(Worker::has_process);
        let running: Vec<UserId> =
            tenants.iter().filter(|(_, tenant)| running(tenant)).map(|(user, _)| user.clone()).collect();
        for user in running {
            let of = |policy: &NodePolicy| {
                let user = policy.users.get(&user);
                user.map(|user| (user.permits(), user.container)).unwrap_or_default()
            };
            let ((permits, limits), (permits_before, limits_before)) = (of(&cx.policy), of(before));
            if permits != permits_before {
                open.insert(cx.start_effect(
                    &user,
                    Job::Permit(Box::new(permits)),
                    Purpose::Policy(change, Hold::Permits(user.clone())),
                ));
            }
            if limits != limits_before && cx.policy.users.contains_key(&user) {
                open.insert(cx.start_effect(
                    &user,
                    Job::Limit(limits),
                    Purpose::Policy(change, Hold::Limits(user.clone())),
                ));
            }
        }
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
