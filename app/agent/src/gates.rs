// SPDX-License-Identifier: Apache-2.0
//! Which rules are in force: by their metrics, and by who switches them.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::api::{AgentMetric, AgentRule};
use netserv_placement::RuleId;

use crate::config::{Config, Deploy, Metric, MetricId};
use crate::feedback::Feedbacks;
use crate::metric::{Reading, Threshold};

/// The gates of all rules.
pub struct Gates {
    rules: BTreeMap<RuleId, Gate>,
    /// What was read last of each metric, if anything was.
    readings: BTreeMap<MetricId, Reading>,
    off: BTreeSet<RuleId>,
}

/// The metric that a rule depends on; one without is always open.
struct Gate(Option<(MetricId, Threshold)>);

impl Gate {
    fn is_open(&self) -> bool {
        self.0.as_ref().is_none_or(|(_, threshold)| threshold.is_open())
    }
}

impl Gates {
    /// Returns those of a configuration, where some rules are switched off by name. Those by metrics are shut at first.
    pub fn new(config: &Config, off: &[String]) -> Gates {
        let gate = |rule: &Deploy| {
            let metric = rule.condition.as_ref().and_then(|condition| {
                Some((config.metric(&condition.metric)?, Threshold::new(condition.over, condition.until())))
            });
            (rule.id, Gate(metric))
        };
        Gates {
            rules: config.rules.iter().map(gate).collect(),
            readings: BTreeMap::new(),
            off: off.iter().filter_map(|name| config.rule(name)).collect(),
        }
    }

    /// Returns those of no rule.
    pub fn none() -> Gates {
        Gates { rules: BTreeMap::new(), readings: BTreeMap::new(), off: BTreeSet::new() }
    }

    /// Goes on from the gates of an earlier configuration: what was open by the same condition is open, and other conditions look at
    /// what was read last.
    pub fn follow(&mut self, config: &Config, before: Gates) {
        let known = |metric: &MetricId| config.metrics.iter().any(|one| one.id == *metric);
        self.readings = before.readings.into_iter().filter(|(metric, _)| known(metric)).collect();
        for (rule, gate) in &mut self.rules {
            let Gate(Some((metric, threshold))) = gate else { continue };
            let old = before.rules.get(rule).and_then(|gate| gate.0.as_ref());
            match old.filter(|(by, old)| by == metric && old.has_bounds_of(threshold)) {
                Some((_, old)) => *threshold = old.clone(),
                None => {
                    if let Some(reading) = self.readings.get(metric) {
                        threshold.note(reading);
                    }
                }
            }
        }
    }

    /// Returns whether a rule is in force.
    pub fn is_open(&self, rule: RuleId) -> bool {
        !self.off.contains(&rule) && self.rules.get(&rule).is_some_and(Gate::is_open)
    }

    /// Returns the rules that are switched off.
    pub fn switched_off(&self) -> Vec<RuleId> {
        self.off.iter().copied().collect()
    }

    /// Switches a rule.
    pub fn switch(&mut self, rule: RuleId, on: bool) {
        let _ = if on { self.off.remove(&rule) } else { self.off.insert(rule) };
    }

    /// Takes what was read of a metric; returns the rules that are in force by it, or no more, and were not before.
    pub fn note(&mut self, metric: MetricId, reading: Reading) -> Vec<RuleId> {
        let mut changed = Vec::new();
        for (rule, gate) in &mut self.rules {
            let Some((_, threshold)) = gate.0.as_mut().filter(|(by, _)| *by == metric) else { continue };
            let was_open = threshold.is_open();
            if threshold.note(&reading) != was_open && !self.off.contains(rule) {
                changed.push(*rule);
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
        let mut gates = Gates::new(&config, &["plain".to_owned(), "gone".to_owned()]);
        assert!(!gates.is_open(plain) && !gates.is_open(loaded) && gates.switched_off() == [plain]);
        gates.switch(plain, true);
        assert!(gates.is_open(plain) && gates.note(load, Ok(10.0)).is_empty());
        assert_eq!((gates.note(load, Ok(11.0)), gates.note(load, Ok(6.0))), (vec![loaded], vec![]));
        assert!(gates.is_open(loaded));
        gates.switch(loaded, false);
        assert!(
            !gates.is_open(loaded) && gates.note(load, Ok(5.0)).is_empty() && gates.note(load, Ok(11.0)).is_empty()
        );
        let states: Vec<String> =
            gates.rules(&config, &Feedbacks::new(&config)).into_iter().map(|rule| rule.state).collect();
        assert_eq!(states, ["on", "off"]);
        gates.switch(loaded, true);
        assert!(gates.is_open(loaded));
        gates.note(load, Err("away".to_owned()));
        assert_eq!(gates.metrics(&config)[0].error.as_deref(), Some("away"));
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
            let mut gates = Gates::new(&first, &[]);
            gates.note(first.metrics[0].id, Ok(11.0));
            gates.note(first.metrics[0].id, Ok(8.0));
            let mut config = Config::parse(&text(statistic, over)).unwrap();
            config.follow(&first).unwrap();
            let mut next = Gates::new(&config, &[]);
            next.follow(&config, gates);
            (next.is_open(config.rules[0].id), next.metrics(&config)[0].value)
        };
        assert_eq!(after("a", 10), (true, Some(8.0)));
        assert_eq!(after("a", 9), (false, Some(8.0)));
        assert_eq!(after("a", 7), (true, Some(8.0)));
        assert_eq!(after("b", 10), (false, None), "another metric is to be read first");
    }
}
