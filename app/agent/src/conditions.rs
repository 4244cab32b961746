// SPDX-License-Identifier: Apache-2.0
//! Which rules are in force: by their metrics, and by who switches them.

use std::collections::{BTreeMap, BTreeSet};

use netserv_api::{AgentMetric, AgentRule};
use netserv_placement::RuleId;

use crate::config::{Config, Deploy, Metric, MetricId};
use crate::event::Reading;
use crate::feedback::Feedbacks;
use crate::metric::{Presence, Threshold};

/// The conditions of all rules.
pub struct Conditions {
    rules: BTreeMap<RuleId, RuleCondition>,
    /// What was read last of each metric, if anything was.
    readings: BTreeMap<MetricId, Reading>,
    off: BTreeSet<RuleId>,
}

/// What a rule depends on; one without any of it is always open.
struct RuleCondition {
    /// A metric over its bound.
    condition: Option<(MetricId, Threshold)>,
    /// A metric that can be read.
    server: Option<(MetricId, Presence)>,
}

impl RuleCondition {
    fn is_open(&self) -> bool {
        let is_over = self.condition.as_ref().is_none_or(|(_, threshold)| threshold.is_open());
        is_over && self.server.as_ref().is_none_or(|(_, server)| server.is_there())
    }

    fn is_deserted(&self) -> bool {
        self.server.as_ref().is_some_and(|(_, server)| server.is_gone())
    }
}

/// What a reading has changed for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is in force.
    Open,
    /// It waits; what it has deployed stays while clients are seen.
    Shut,
    /// The server behind its modules is gone, so they are to go.
    Deserted,
}

impl Conditions {
    /// Returns those of a configuration, where some rules are switched off by name. Those by metrics are shut at first.
    pub fn new(config: &Config, off: &[String]) -> Conditions {
        let gate = |rule: &Deploy| {
            let condition = rule.condition.as_ref().and_then(|condition| {
                Some((config.metric(&condition.metric)?, Threshold::new(condition.over, condition.until())))
            });
            let server = rule.server.as_ref().and_then(|name| Some((config.metric(name)?, Presence::default())));
            (rule.id, RuleCondition { condition, server })
        };
        Conditions {
            rules: config.rules.iter().map(gate).collect(),
            readings: BTreeMap::new(),
            off: off.iter().filter_map(|name| config.rule(name)).collect(),
        }
    }

    /// Returns those of no rule.
    pub fn none() -> Conditions {
        Conditions { rules: BTreeMap::new(), readings: BTreeMap::new(), off: BTreeSet::new() }
    }

    /// Goes on from the conditions of an earlier configuration: what was open by the same condition is open, and other conditions look at
    /// what was read last.
    pub fn follow(&mut self, config: &Config, before: Conditions) {
        let known = |metric: &MetricId| config.metrics.iter().any(|one| one.id == *metric);
        self.readings = before.readings.into_iter().filter(|(metric, _)| known(metric)).collect();
        for (rule, gate) in &mut self.rules {
            let old = before.rules.get(rule);
            if let Some((metric, threshold)) = &mut gate.condition {
                let old = old.and_then(|gate| gate.condition.as_ref());
                match old.filter(|(by, old)| by == metric && old.has_bounds_of(threshold)) {
                    Some((_, old)) => *threshold = old.clone(),
                    None => {
                        if let Some(reading) = self.readings.get(metric) {
                            threshold.note(reading);
                        }
                    }
                }
            }
            if let Some((metric, server)) = &mut gate.server {
                let old = old.and_then(|gate| gate.server.as_ref());
                match old.filter(|(by, _)| by == metric) {
                    Some((_, old)) => *server = *old,
                    None => {
                        if let Some(reading) = self.readings.get(metric) {
                            server.note(reading);
                        }
                    }
                }
            }
        }
    }

    /// Returns whether a rule is in force.
    pub fn is_open(&self, rule: RuleId) -> bool {
        !self.off.contains(&rule) && self.rules.get(&rule).is_some_and(RuleCondition::is_open)
    }

    /// Returns the rules that are switched off.
    pub fn switched_off(&self) -> Vec<RuleId> {
        self.off.iter().copied().collect()
    }

    /// Switches a rule.
    pub fn switch(&mut self, rule: RuleId, on: bool) {
        let _ = if on { self.off.remove(&rule) } else { self.off.insert(rule) };
    }

    /// Takes what was read of a metric; returns the rules for which that changes something.
    pub fn note(&mut self, metric: MetricId, reading: Reading) -> Vec<(RuleId, Turn)> {
        let mut changed = Vec::new();
        for (rule, gate) in &mut self.rules {
            let before = (gate.is_open(), gate.is_deserted());
            if let Some((_, threshold)) = gate.condition.as_mut().filter(|(by, _)| *by == metric) {
                threshold.note(&reading);
            }
            if let Some((_, server)) = gate.server.as_mut().filter(|(by, _)| *by == metric) {
                server.note(&reading);
            }
            if self.off.contains(rule) {
                continue;
            }
            match (gate.is_open(), gate.is_deserted()) {
                after if after == before => {}
                (_, true) if !before.1 => changed.push((*rule, Turn::Deserted)),
                (open, _) if open != before.0 => changed.push((*rule, if open { Turn::Open } else { Turn::Shut })),
                _ => {}
            }
        }
        self.readings.insert(metric, reading);
        changed
    }

    /// Returns what people see of a rule.
    pub fn rule(&self, rule: &Deploy, feedbacks: &Feedbacks) -> AgentRule {
        let state = match (self.off.contains(&rule.id), self.is_open(rule.id)) {
            (true, _) => "off",
            (false, true) => "on",
            (false, false) if self.rules.get(&rule.id).is_some_and(RuleCondition::is_deserted) => "no-server",
            (false, false) => "waiting",
        };
        AgentRule { name: rule.name.clone(), state: state.to_owned(), told: feedbacks.told(rule.id) }
    }

    /// Returns what people see of the rules.
    pub fn rules(&self, config: &Config, feedbacks: &Feedbacks) -> Vec<AgentRule> {
        config.rules.iter().map(|rule| self.rule(rule, feedbacks)).collect()
    }

    /// Returns what people see of the metrics.
    pub fn metrics(&self, config: &Config) -> Vec<AgentMetric> {
        let told = |metric: &Metric| {
            let reading = self.readings.get(&metric.id);
            AgentMetric {
                name: metric.name.clone(),
                value: reading.and_then(|reading| reading.clone().ok()).filter(|value| value.is_finite()),
                error: reading.and_then(|reading| reading.clone().err()),
            }
        };
        config.metrics.iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::METRIC_MISSES_MAX;

    #[test]
    fn a_rule_is_in_force_by_its_metric_unless_it_is_off() {
        let rule = |name: &str, more: &str| {
            format!(
                "[[rule]]\nname = \"{name}\"\nmodule = \"example.org/m@1.0.0\"\nurl = \"http://192.0.2.9/m.nsm\"\n{more}\n\
                 digest = \"sha256:{:064}\"\n",
                0
            )
        };
        let text = format!(
            "user = \"janedoe\"\nkey = \"k\"\n[[metric]]\nname = \"load\"\nkamailio = \"/k\"\nstatistic = \"core:rcv_requests\"\n{}{}",
            rule("plain", ""),
            rule("loaded", "while = { metric = \"load\", over = 10 }")
        );
        let config = Config::parse(&text).unwrap();
        let load = config.metrics[0].id;
        let [plain, loaded] = [RuleId(0), RuleId(1)];
        let mut conditions = Conditions::new(&config, &["plain".to_owned(), "gone".to_owned()]);
        assert!(!conditions.is_open(plain) && !conditions.is_open(loaded) && conditions.switched_off() == [plain]);
        conditions.switch(plain, true);
        assert!(conditions.is_open(plain) && conditions.note(load, Ok(10.0)).is_empty());
        assert_eq!(
            (conditions.note(load, Ok(11.0)), conditions.note(load, Ok(6.0))),
            (vec![(loaded, Turn::Open)], vec![])
        );
        assert!(conditions.is_open(loaded));
        conditions.switch(loaded, false);
        assert!(
            !conditions.is_open(loaded)
                && conditions.note(load, Ok(5.0)).is_empty()
                && conditions.note(load, Ok(11.0)).is_empty()
        );
        let states: Vec<String> =
            conditions.rules(&config, &Feedbacks::new(&config)).into_iter().map(|rule| rule.state).collect();
        assert_eq!(states, ["on", "off"]);
        conditions.switch(loaded, true);
        assert!(conditions.is_open(loaded));
        conditions.note(load, Err("away".to_owned()));
        assert_eq!(conditions.metrics(&config)[0].error.as_deref(), Some("away"));
    }

    /// Goal: without its server, a rule has its modules removed, once; it is in force again when the server is back. Before anything was read it
    /// waits.
    #[test]
    fn a_rule_without_its_server_is_deserted() {
        let text = format!(
            "user = \"janedoe\"\nkey = \"k\"\n[[metric]]\nname = \"done\"\nkamailio = \"/k\"\nstatistic = \"core:rcv_requests\"\n\
             [[rule]]\nname = \"sip\"\nmodule = \"example.org/m@1.0.0\"\nurl = \"http://192.0.2.9/m.nsm\"\n\
             digest = \"sha256:{:064}\"\nserver = \"done\"\n",
            0
        );
        assert!(Config::parse(&text.replace("server = \"done\"", "server = \"other\"")).is_err());
        let config = Config::parse(&text).unwrap();
        let (done, sip) = (config.metrics[0].id, RuleId(0));
        let mut conditions = Conditions::new(&config, &[]);
        let away = || Err("away".to_owned());
        let state = |conditions: &Conditions| conditions.rules(&config, &Feedbacks::new(&config))[0].state.clone();
        assert_eq!(state(&conditions), "waiting");
        assert_eq!(
            (conditions.note(done, Ok(0.0)), conditions.note(done, Ok(f64::NAN))),
            (vec![(sip, Turn::Open)], vec![])
        );
        for _ in 1..METRIC_MISSES_MAX {
            assert!(conditions.note(done, away()).is_empty());
        }
        assert!(conditions.note(done, Ok(1.0)).is_empty() && conditions.is_open(sip), "it is back in time");
        let turns: Vec<_> = (0..3 * METRIC_MISSES_MAX).flat_map(|_| conditions.note(done, away())).collect();
        assert_eq!((turns, state(&conditions)), (vec![(sip, Turn::Deserted)], "no-server".to_owned()));
        let mut next = Conditions::new(&config, &[]);
        next.follow(&config, conditions);
        assert_eq!(state(&next), "no-server", "a reload changes nothing");
        assert_eq!(next.note(done, Ok(0.0)), [(sip, Turn::Open)]);
        // After a restart of the agent without the server.
        let mut conditions = Conditions::new(&config, &[]);
        let turns: Vec<_> = (0..METRIC_MISSES_MAX).flat_map(|_| conditions.note(done, away())).collect();
        assert_eq!(turns, [(sip, Turn::Deserted)]);
    }

    /// Goal: a rule whose condition stays is as open as before, also between its two bounds, and other ones look at what was read last.
    #[test]
    fn gates_go_on_after_a_reload() {
        let text = |statistic: &str, over: u32| {
            format!(
                "user = \"janedoe\"\nkey = \"k\"\n[[metric]]\nname = \"load\"\nkamailio = \"/k\"\nstatistic = \"{statistic}\"\n\
                 [[rule]]\nname = \"edge\"\nmodule = \"example.org/m@1.0.0\"\nurl = \"http://192.0.2.9/m.nsm\"\n\
                 digest = \"sha256:{:064}\"\nwhile = {{ metric = \"load\", over = {over}, until = 5 }}\n",
                0
            )
        };
        let first = Config::parse(&text("a", 10)).unwrap();
        let after = |statistic: &str, over: u32| {
            let mut conditions = Conditions::new(&first, &[]);
            conditions.note(first.metrics[0].id, Ok(11.0));
            conditions.note(first.metrics[0].id, Ok(8.0));
            let mut config = Config::parse(&text(statistic, over)).unwrap();
            config.follow(&first).unwrap();
            let mut next = Conditions::new(&config, &[]);
            next.follow(&config, conditions);
            (next.is_open(config.rules[0].id), next.metrics(&config)[0].value)
        };
        assert_eq!(after("a", 10), (true, Some(8.0)));
        assert_eq!(after("a", 9), (false, Some(8.0)));
        assert_eq!(after("a", 7), (true, Some(8.0)));
        assert_eq!(after("b", 10), (false, None), "another metric is to be read first");
    }
}
