// SPDX-License-Identifier: Apache-2.0
//! Paths whose next node is checked, since routes changed.

use netserv_gist::ApiCall;
use netserv_model::Instant;
use netserv_model::route::RouteChange;
use netserv_wire::gist::Mri;

use super::lease::{Lease, LeaseId};
use super::leases::Leases;
use crate::cx::Cx;
use crate::limits::{CHECK_AGAIN_MIN, CHECK_INTERVAL, CHECKS_AT_ONCE_MAX, FLOWS_SCANNED_MAX};

/// The check of paths that is under way, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Checks(Option<Check>);

/// A check of paths after routes changed.
#[derive(Debug)]
struct Check {
    /// Which paths may lead elsewhere.
    change: RouteChange,
    /// When it began.
    begun: Instant,
    /// When it goes on.
    at: Instant,
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

impl Checks {
    /// Returns when the check goes on.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.0.as_ref().map(|check| check.at)
    }

    /// Takes that the node's routes changed: the paths that it concerns are checked, some at a time.
    pub(crate) fn routes_changed(&mut self, cx: &mut Cx<'_>, leases: &mut Leases, change: RouteChange) {
        match &mut self.0 {
            Some(Check { again: Some(again), .. }) => again.add(change),
            Some(check) => check.again = Some(change),
            None if leases.len() == 0 => {}
            None => self.0 = Some(Check::new(cx.now, change)),
        }
        self.go_on(cx, leases);
    }

    /// Has GIST check the next paths, if that is due.
    pub(crate) fn go_on(&mut self, cx: &mut Cx<'_>, leases: &mut Leases) {
        let now = cx.now;
        let Some(check) = self.0.take_if(|check| check.at <= now) else { return };
        let (flows, last) = concerned(leases, &check);
        let at = now + CHECK_INTERVAL;
        self.0 = match (last, check.again) {
            (last @ Some(_), again) => Some(Check { at, after: last, again, ..check }),
            // Routes that changed meanwhile are checked from the beginning.
            (None, Some(again)) => Some(Check::new(at.max(check.begun + CHECK_AGAIN_MIN), again)),
            (None, None) => None,
        };
        // GIST has nobody to check where nobody answered.
        let ended = |(_, lease): &(LeaseId, &Lease)| lease.is_partial && lease.downstream.is_none();
        let ended = flows.iter().flat_map(|mri| leases.of_flow(mri).filter(ended).map(|(id, _)| id));
        for id in ended.collect::<Vec<_>>() {
            leases.look_soon(now, id);
        }
        let nslp_id = Some(cx.config.nslp_id);
        for mri in flows {
            cx.out.call(ApiCall::InvalidateRoutingState { nslp_id, session: None, mri, bad: false, data: None });
        }
    }
}

/// Returns the next flows that a check concerns, and the one that was looked at last.
fn concerned(leases: &Leases, check: &Check) -> (Vec<Mri>, Option<Mri>) {
    let concerned = |mri: &Mri| mri.addresses().is_none_or(|(_, destination)| check.change.concerns(destination));
    let (mut flows, mut last) = (Vec::new(), None);
    for mri in leases.flows(check.after.as_ref()).take(FLOWS_SCANNED_MAX) {
        last = Some(mri);
        if concerned(mri) {
            flows.push(mri.clone());
        }
        if flows.len() == CHECKS_AT_ONCE_MAX {
            break;
        }
    }
    (flows, last.cloned())
}
