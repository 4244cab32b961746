// SPDX-License-Identifier: Apache-2.0
//! Paths whose next node is checked, since routes changed.

use netserv_gist::ApiCall;
use netserv_model::route::RouteChange;
use netserv_model::{Instant, Now};
use netserv_wire::gist::Mri;

use super::Nslp;
use crate::leases::{Lease, LeaseId};
use crate::limits::{CHECK_AGAIN_MIN, CHECK_INTERVAL, CHECKS_AT_ONCE_MAX, FLOWS_SCANNED_MAX};

/// A check of paths after routes changed, under way.
#[derive(Debug)]
pub(super) struct Check {
    /// Which paths may lead elsewhere.
    change: RouteChange,
    /// When it began.
    begun: Instant,
    /// When it goes on.
    pub(super) at: Instant,
    /// The flow that was looked at last.
    after: Option<Mri>,
    /// What changed since it began.
    again: Option<RouteChange>,
}

impl Check {
    fn new(at: Instant, change: RouteChange) -> Check {
        Check { change, begun: at, at, after: None, again: None }
    }
}

impl Nslp {
    /// Takes that the node's routes changed: the paths that it concerns are checked, some at a time.
    pub fn handle_routes(&mut self, now: Now, change: RouteChange) {
        match &mut self.check {
            Some(Check { again: Some(again), .. }) => again.add(change),
            Some(check) => check.again = Some(change),
            None if self.leases.len() == 0 => {}
            None => self.check = Some(Check::new(now.instant, change)),
        }
        self.check_due(now.instant);
    }

    /// Has GIST check the next paths, if that is due.
    pub(super) fn check_due(&mut self, now: Instant) {
        let Some(check) = self.check.take_if(|check| check.at <= now) else { return };
        let concerned = |mri: &Mri| mri.addresses().is_none_or(|(_, destination)| check.change.concerns(destination));
        let (mut flows, mut last) = (Vec::new(), None);
        for mri in self.leases.flows(check.after.as_ref()).take(FLOWS_SCANNED_MAX) {
            last = Some(mri);
            if concerned(mri) {
                flows.push(mri.clone());
            }
            if flows.len() == CHECKS_AT_ONCE_MAX {
                break;
            }
        }
        let at = now + CHECK_INTERVAL;
        self.check = match (last.cloned(), check.again) {
            (last @ Some(_), again) => Some(Check { at, after: last, again, ..check }),
            // Routes that changed meanwhile are checked from the beginning.
            (None, Some(again)) => Some(Check::new(at.max(check.begun + CHECK_AGAIN_MIN), again)),
            (None, None) => None,
        };
        let nslp_id = Some(self.config.nslp_id);
        // GIST has nobody to check where nobody answered.
        let ended = |(_, lease): &(LeaseId, &Lease)| lease.is_partial && lease.downstream.is_none();
        let ended = flows.iter().flat_map(|mri| self.leases.of_flow(mri).filter(ended).map(|(id, _)| id));
        for id in ended.collect::<Vec<_>>() {
            self.look_soon(now, id);
        }
        let check = |mri: Mri| ApiCall::InvalidateRoutingState { nslp_id, session: None, mri, bad: false, data: None };
        self.api_calls.extend(flows.into_iter().map(check));
    }
}
