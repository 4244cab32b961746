// SPDX-License-Identifier: Apache-2.0
//! The configuration, read again while the agent runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use netserv_api::{AgentReload, AgentRuleChange};
use netserv_placement::RuleId;

use super::{Agent, numbered};
use crate::conditions::Conditions;
use crate::config::Config;
use crate::feedback::Feedbacks;
use crate::node::{Evidence, NodeClient};

impl Agent {
    /// Reads the configuration again. Returns what became of the rules.
    ///
    /// # Errors
    /// The file is wrong, or a socket cannot be made; all stays as it was.
    pub(super) fn reload(&mut self) -> Result<AgentReload> {
        let mut config = Config::read(&self.path)?;
        config.follow(&self.config)?;
        let node = NodeClient::new(&config.netservd, &config.user, &config.key)?.with_evidence(Evidence::of(&config));
        let mut conditions = Conditions::new(&config, &self.table.off()?);
        self.sensors.follow(&config)?;
        // From here on nothing fails.
        let changes = changes(&self.config, &config);
        let renewed: BTreeSet<RuleId> =
            config.rules.iter().filter(|rule| is_renewed(&self.config, rule)).map(|rule| rule.id).collect();
        let mut feedbacks = Feedbacks::new(&config);
        feedbacks.follow(std::mem::replace(&mut self.feedbacks, Feedbacks::none()));
        conditions.follow(&config, std::mem::replace(&mut self.conditions, Conditions::none()));
        let now = self.now();
        self.placement.reload(now, config.rules.iter().map(numbered), &renewed);
        (self.feedbacks, self.conditions, self.node) = (feedbacks, conditions, Arc::new(node));
        self.flows.retain(|name, _| config.flows.iter().any(|flows| flows.name == *name));
        self.names.go_to(config.names.clone());
        self.relays.go_to(config.relays.clone());
        self.config = Arc::new(config);
        self.set_gates();
        self.configs.send_replace(Arc::clone(&self.config));
        for AgentRuleChange { name, change } in changes.iter().filter(|one| one.change != "same") {
            tracing::info!(rule = name, change, "the configuration was read again");
        }
        Ok(AgentReload { rules: changes })
    }
}

/// Returns whether a rule that there was asks nodes for something else.
fn is_renewed(before: &Config, rule: &crate::config::Deploy) -> bool {
    before.get(rule.id).is_some_and(|old| !rule.asks_the_same(old))
}

fn changes(before: &Config, config: &Config) -> Vec<AgentRuleChange> {
    let change = |name: &str, change: &str| AgentRuleChange { name: name.to_owned(), change: change.to_owned() };
    let there = config.rules.iter().map(|rule| match before.get(rule.id) {
        None => change(&rule.name, "new"),
        Some(old) if rule.is_same(old) => change(&rule.name, "same"),
        Some(_) if is_renewed(before, rule) => change(&rule.name, "renewed"),
        Some(_) => change(&rule.name, "changed"),
    });
    let gone = before.rules.iter().filter(|rule| config.get(rule.id).is_none());
    there.chain(gone.map(|rule| change(&rule.name, "gone"))).collect()
}
