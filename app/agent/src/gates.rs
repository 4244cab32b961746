// SPDX-License-Identifier: Apache-2.0
//! Which rules are in force: by their metrics, and by who switches them.

use std::collections::BTreeSet;

use netserv_model::api::{AgentMetric, AgentRule};
use netserv_placement::RuleId;

use crate::config::Config;
use crate::feedback::Feedbacks;
use crate::metric::{Reading, Threshold};

/// The gates of all rules, in their order.
pub struct Gates {
    rules: Vec<Gate>,
    readings: Vec<Option<Reading>>,
    off: BTreeSet<RuleId>,
}

/// The metric that a rule depends on, by its place; one without is always open.
struct Gate(Option<(usize, Threshold)>);

impl Gate {
    fn is_open(&self) -> bool {
        self.0.as_ref().is_none_or(|(_, threshold)| threshold.is_open())
    }
}

impl Gates {
    /// Returns those of a configuration, where some rules are switched off by name. Those by metrics are shut at first.
    pub fn new(config: &Config, off: &[String]) -> Gates {
        let gate = |rule: &crate::config::Deploy| {
            let place = |name: &str| config.metrics.iter().position(|metric| metric.name == name);
            let metric = rule.condition.as_ref().and_then(|condition| {
                Some((place(&condition.metric)?, Threshold::new(condition.over, condition.until())))
            });
            Gate(metric)
        };
        Gates {
            rules: config.rules.iter().map(gate).collect(),
            readings: vec![None; config.metrics.len()],
            off: off.iter().filter_map(|name| config.rule(name)).collect(),
        }
    }

    /// Returns whether a rule is in force.
    pub fn is_open(&self, rule: RuleId) -> bool {
        !self.off.contains(&rule) && self.rules.get(rule.0).is_some_and(Gate::is_open)
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
    pub fn note(&mut self, metric: usize, reading: Reading) -> Vec<RuleId> {
        let mut changed = Vec::new();
        for (place, gate) in self.rules.iter_mut().enumerate() {
            let Some((_, threshold)) = gate.0.as_mut().filter(|(by, _)| *by == metric) else { continue };
            let was_open = threshold.is_open();
            if threshold.note(&reading) != was_open && !self.off.contains(&RuleId(place)) {
                changed.push(RuleId(place));
            }
        }
        if let Some(last) = self.readings.get_mut(metric) {
            *last = Some(reading);
        }
        changed
    }

    /// Returns what people see of a rule of the configuration.
    pub fn rule(&self, config: &Config, feedbacks: &Feedbacks, rule: RuleId) -> AgentRule {
        let state = match (self.off.contains(&rule), self.is_open(rule)) {
            (true, _) => "off",
            (false, true) => "on",
            (false, false) => "waiting",
        };
        AgentRule { name: config.rules[rule.0].name.clone(), state: state.to_owned(), told: feedbacks.told(rule) }
    }

    /// Returns what people see of the rules.
    pub fn rules(&self, config: &Config, feedbacks: &Feedbacks) -> Vec<AgentRule> {
        (0..config.rules.len()).map(|place| self.rule(config, feedbacks, RuleId(place))).collect()
    }

    /// Returns what people see of the metrics.
    pub fn metrics(&self, config: &Config) -> Vec<AgentMetric> {
        let told = |(metric, reading): (&crate::config::Metric, &Option<Reading>)| AgentMetric {
            name: metric.name.clone(),
            value: reading.as_ref().and_then(|reading| reading.clone().ok()).filter(|value| value.is_finite()),
            error: reading.as_ref().and_then(|reading| reading.clone().err()),
        };
        config.metrics.iter().zip(&self.readings).map(told).collect()
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
        let [plain, loaded] = [RuleId(0), RuleId(1)];
        let mut gates = Gates::new(&config, &["plain".to_owned(), "gone".to_owned()]);
        assert!(!gates.is_open(plain) && !gates.is_open(loaded) && gates.switched_off() == [plain]);
        gates.switch(plain, true);
        assert!(gates.is_open(plain) && gates.note(0, Ok(10.0)).is_empty());
        assert_eq!((gates.note(0, Ok(11.0)), gates.note(0, Ok(6.0))), (vec![loaded], vec![]));
        assert!(gates.is_open(loaded));
        gates.switch(loaded, false);
        assert!(!gates.is_open(loaded) && gates.note(0, Ok(5.0)).is_empty() && gates.note(0, Ok(11.0)).is_empty());
        let states: Vec<String> =
            gates.rules(&config, &Feedbacks::new(&config)).into_iter().map(|rule| rule.state).collect();
        assert_eq!(states, ["on", "off"]);
        gates.switch(loaded, true);
        assert!(gates.is_open(loaded));
        gates.note(0, Err("away".to_owned()));
        assert_eq!(gates.metrics(&config)[0].error.as_deref(), Some("away"));
    }
}
