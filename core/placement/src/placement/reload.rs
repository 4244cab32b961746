// SPDX-License-Identifier: Apache-2.0
//! Other rules in place of those that are there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use netserv_model::Instant;

use super::Placement;
use crate::RuleId;
use crate::deployment::{DeploymentId, Health};
use crate::limits::RULES_MAX;
use crate::rule::Rule;

impl Placement {
    /// Takes other rules in place of those that are there; those of the same number go on.
    ///
    /// Deployments of rules that go on stay. Those of the rules in `renewed`, whose requests say something else from here on, are
    /// set up at once: a node replaces what it has without a gap. Deployments of rules that are gone, or beyond
    /// what their rules may have, are removed.
    pub fn reload(
        &mut self,
        now: Instant,
        rules: impl IntoIterator<Item = (RuleId, Rule)>,
        renewed: &BTreeSet<RuleId>,
    ) {
        let rules: BTreeMap<RuleId, Rule> = rules.into_iter().take(RULES_MAX).collect();
        let before = std::mem::replace(&mut self.rules, rules);
        self.gone.extend(before.iter().map(|(id, rule)| (*id, rule.module.clone())));
        let is_left = |rule: &RuleId| self.deployments.values().any(|one| one.rule == *rule);
        self.gone.retain(|rule, _| !self.rules.contains_key(rule) && is_left(rule));
        let counts_on = |id: &RuleId| before.get(id).zip(self.rules.get(id)).is_some_and(|(a, b)| a.has_regions_of(b));
        let counts_on: BTreeSet<RuleId> = before.keys().copied().filter(counts_on).collect();
        let gone: Vec<_> = self.regions.keys().filter(|(rule, _)| !counts_on.contains(rule)).copied().collect();
        gone.into_iter().for_each(|key| self.remove_region(key));
        self.shut.retain(|rule| self.rules.contains_key(rule));
        let too_many = self.too_many();
        for (id, rule) in self.deployments.iter().map(|(id, one)| (*id, one.rule)).collect::<Vec<_>>() {
            let Some(deployment) = self.deployments.get_mut(&id).filter(|one| one.health != Health::Leaving) else {
                continue;
            };
            if !self.rules.contains_key(&rule) || too_many.contains(&id) {
                self.remove(id);
                continue;
            }
            if !counts_on.contains(&rule) {
                // Its clients are counted anew, and have the idle time for it.
                deployment.seen = now;
            }
            if renewed.contains(&rule) {
                self.set_up_again(id);
            } else if before.get(&rule) != self.rules.get(&rule) && self.next_look.contains_key(&id) {
                self.look_later(id, now);
            }
        }
    }

    /// Returns the deployments beyond what their rules may have: those whose clients were not seen for the longest time.
    fn too_many(&self) -> BTreeSet<DeploymentId> {
        let beyond = |(rule, known): (&RuleId, &Rule)| {
            let own = self.deployments_of(*rule).filter(|(_, one)| one.health != Health::Leaving);
            let mut own: Vec<_> = own.map(|(id, one)| (Reverse(one.seen), id)).collect();
            own.sort();
            own.into_iter().skip(known.deployments_max).map(|(_, id)| id)
        };
        self.rules.iter().flat_map(beyond).collect()
    }

    /// Sends a SETUP for a deployment, after the one that is under way.
    pub(super) fn set_up_again(&mut self, id: DeploymentId) {
        if self.is_being_set_up(id) {
            self.again.insert(id);
        } else {
            self.look_no_more(id);
            self.setup(id);
        }
    }
}
