// SPDX-License-Identifier: Apache-2.0
//! What the controller counted, for metrics.

use std::collections::BTreeMap;

use netserv_model::request::Outcome;

/// Counts since the controller was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Answered requests by method (`SETUP`) and outcome (`installed`, or the kind of a refusal).
    pub requests: BTreeMap<(&'static str, &'static str), u64>,
    /// Failures of modules that had been installed.
    pub module_failures: u64,
    /// SETUPs refused while they waited for their packages, since others' had no room.
    pub displaced: u64,
    /// Modules put into quarantine.
    pub quarantines: u64,
    /// Workers that ended without being told to, or did not start.
    pub container_deaths: u64,
    /// Modules removed because their lease ended.
    pub leases_expired: u64,
    /// Modules removed because the path that they were installed along leads elsewhere.
    pub leases_withdrawn: u64,
    /// Modules taken over from before a restart.
    pub restored: u64,
    /// Modules removed because a changed policy no longer allows them.
    pub revoked: u64,
    /// Services removed because their parts are not what they need any more.
    pub dissolved: u64,
    /// Times that the store refused to remember or forget a module.
    pub store_failures: u64,
    /// Times that the store refused to remember what was used.
    pub usage_store_failures: u64,
    /// Times that meters could not be read.
    pub meter_failures: u64,
    /// Messages of modules that went to the requesters of their SETUPs.
    pub module_notifies: u64,
    /// Messages of modules that did not, since there were too many.
    pub module_notifies_dropped: u64,
    /// Outcomes and news that nothing waited for.
    pub stray_events: u64,
}

impl Counters {
    /// Counts one answer.
    pub(crate) fn answered(&mut self, method: &'static str, outcome: &Outcome) {
        *self.requests.entry((method, outcome_label(outcome))).or_default() += 1;
    }
}

fn outcome_label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Installed { .. } => "installed",
        Outcome::Refreshed { .. } => "refreshed",
        Outcome::Replaced { .. } => "replaced",
        Outcome::Removed => "removed",
        Outcome::Told => "told",
        Outcome::Exported { .. } => "exported",
        Outcome::Probed => "probed",
        Outcome::NotTargeted { .. } => "not-targeted",
        Outcome::WouldDo { .. } => "would-do",
        Outcome::Refused(refusal) => refusal.kind.as_str(),
    }
}
