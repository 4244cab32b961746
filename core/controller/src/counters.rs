// SPDX-License-Identifier: Apache-2.0
//! What the controller counted, for metrics.

use std::collections::BTreeMap;

use netserv_model::request::Outcome;

netserv_model::counts! {
    /// Counts since the controller was made.
    pub struct Counters {
        /// Failures of modules that had been installed.
        module_failures = "module-failure",
        /// SETUPs refused while they waited for their packages, since others' had no room.
        displaced = "displaced",
        /// Modules put into quarantine.
        quarantines = "quarantine",
        /// Workers that ended without being told to, or did not start.
        container_deaths = "container-death",
        /// Modules removed because their lease ended.
        leases_expired = "lease-expired",
        /// Modules removed because the path that they were installed along leads elsewhere.
        leases_withdrawn = "lease-withdrawn",
        /// Modules taken over from before a restart.
        restored = "restored",
        /// Modules removed because a changed policy no longer allows them.
        revoked = "revoked",
        /// Services removed because their parts are not what they need any more.
        dissolved = "dissolved",
        /// Times that the store refused to remember or forget a module.
        store_failures = "store-failure",
        /// Times that the store refused to remember what was used.
        usage_store_failures = "usage-store-failure",
        /// Times that meters could not be read.
        meter_failures = "meter-failure",
        /// Messages of modules that went to the requesters of their SETUPs.
        module_notifies = "module-notify",
        /// Messages of modules that did not, since there were too many.
        module_notifies_dropped = "module-notify-dropped",
        /// Outcomes and news that nothing waited for.
        stray_events = "stray-event",
        /// Checklists looked at again whose holder still vouches.
        checklists_confirmed,
        /// Checklists looked at again that nobody vouches by any more.
        checklists_denied,
        /// Checklists looked at again of which that was not found out.
        checklists_unknown,
        /// Milliseconds that looking at checklists again took in all.
        checklists_ms,
    } with {
        /// Answered requests by method (`SETUP`) and outcome (`installed`, or the kind of a refusal).
        requests: BTreeMap<(&'static str, &'static str), u64>
    }
}

impl Counters {
    /// Counts one answer.
    pub(crate) fn answered(&mut self, method: &'static str, outcome: &Outcome) {
        let label = if let Outcome::Refused(refusal) = outcome { refusal.kind.as_str() } else { outcome.word() };
        *self.requests.entry((method, label)).or_default() += 1;
    }
}
