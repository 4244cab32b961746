// SPDX-License-Identifier: Apache-2.0
//! What modules are told of the load of the server that they stand before.

use std::collections::BTreeMap;

use netserv_placement::{Bounds, Regulator, RuleId, Said};

use crate::config::{Config, Deploy, MetricId};
use crate::event::Reading;
use crate::limits::FEEDBACK_VALID_MIN_MS;

/// The regulators of the rules that have one.
pub struct Feedbacks(BTreeMap<RuleId, Feedback>);

struct Feedback {
    backlog: MetricId,
    done: MetricId,
    bounds: Bounds,
    /// What was read last of the second one; nothing if it cannot be read.
    last_done: Option<f64>,
    regulator: Regulator,
    valid_ms: u64,
    /// What modules were told last, if it holds them back.
    told: Option<String>,
}

impl Feedbacks {
    /// Returns those of a configuration.
    pub fn new(config: &Config) -> Feedbacks {
        let of = |rule: &Deploy| {
            let feedback = rule.feedback.as_ref()?;
            let waits = config.metrics.iter().find(|metric| metric.name == feedback.backlog)?;
            let (backlog, done) = (waits.id, config.metric(&feedback.done)?);
            let bounds = Bounds { over: feedback.over, until: feedback.until() };
            // One that is lost or late is made good by the next ones.
            let every_ms = waits.every.as_millis();
            let valid_ms = u64::try_from(4 * every_ms).unwrap_or(u64::MAX).max(FEEDBACK_VALID_MIN_MS);
            let regulator = Regulator::new(bounds);
            Some((rule.id, Feedback { backlog, done, bounds, last_done: None, regulator, valid_ms, told: None }))
        };
        Feedbacks(config.rules.iter().filter_map(of).collect())
    }

    /// Returns those of no rule.
    pub fn none() -> Feedbacks {
        Feedbacks(BTreeMap::new())
    }

    /// Goes on from those of an earlier configuration: what looks at the same regulates on.
    pub fn follow(&mut self, mut before: Feedbacks) {
        for (rule, feedback) in &mut self.0 {
            let Some(old) = before.0.remove(rule) else { continue };
            let looks_at = |one: &Feedback| (one.backlog, one.done, one.bounds, one.valid_ms);
            if looks_at(&old) == looks_at(feedback) {
                *feedback = old;
            }
        }
    }

    /// Takes what was read of a metric, and how many deployments a rule has; returns the rules whose modules are to be told something, and what.
    pub fn note(
        &mut self,
        metric: MetricId,
        reading: &Reading,
        edges: impl Fn(RuleId) -> usize,
    ) -> Vec<(RuleId, String)> {
        let mut told = Vec::new();
        for (rule, feedback) in &mut self.0 {
            if metric == feedback.done {
                feedback.last_done = reading.as_ref().ok().copied();
            }
            // What cannot be read is no news: what was told last ends by itself.
            let (Ok(backlog), Some(done)) = (reading, feedback.last_done) else { continue };
            if metric != feedback.backlog {
                continue;
            }
            feedback.told = match feedback.regulator.note(*backlog, done, edges(*rule)) {
                Said::Nothing => continue,
                Said::Rate(rate) => Some(format!("rate={rate:.1} validity-ms={}", feedback.valid_ms)),
                Said::Off => None,
            };
            told.push((*rule, feedback.told.clone().unwrap_or_else(|| "off".to_owned())));
        }
        told
    }

    /// Returns what a rule's modules were told last, if it holds them back.
    pub fn told(&self, rule: RuleId) -> Option<String> {
        self.0.get(&rule)?.told.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_while_too_much_waits() {
        let text = format!(
            "user = \"janedoe\"\nkey = \"k\"\n\
             [[metric]]\nname = \"waits\"\nevery-s = 0.25\nudp-queue = [\"192.0.2.1:5060\"]\n\
             [[metric]]\nname = \"invites\"\nevery-s = 0.25\nrate = true\nkamailio = \"/k\"\nstatistic = \"core:rcv_requests_invite\"\n\
             [[rule]]\nname = \"sip\"\nmodule = \"example.org/m@1.0.0\"\nurl = \"http://192.0.2.9/m.nsm\"\ndigest = \"sha256:{:064}\"\n\
             feedback = {{ topic = \"overload\", backlog = \"waits\", over = 50000, done = \"invites\" }}\n",
            0
        );
        let config = Config::parse(&text).unwrap();
        let mut feedbacks = Feedbacks::new(&config);
        let mut note = |metric: usize, reading| feedbacks.note(config.metrics[metric].id, &reading, |_| 2);
        assert!(note(1, Ok(200.0)).is_empty() && note(0, Ok(50_000.0)).is_empty());
        assert!((0..2).all(|_| note(0, Ok(50_001.0)).is_empty()));
        let told = note(0, Ok(50_001.0));
        assert_eq!(told, [(RuleId(0), "rate=50.0 validity-ms=3000".to_owned())]);
        assert!(note(0, Err("away".to_owned())).is_empty());
        // After a reload it goes on, unless the rule has other bounds.
        let follows = |feedbacks: &mut Feedbacks, text: &str| {
            let mut other = Config::parse(text).unwrap();
            other.follow(&config).unwrap();
            let mut next = Feedbacks::new(&other);
            next.follow(std::mem::replace(feedbacks, Feedbacks::none()));
            next
        };
        feedbacks = follows(&mut feedbacks, &format!("{text}count = 7\n"));
        assert!(feedbacks.told(RuleId(0)).is_some());
        assert!(follows(&mut feedbacks, &text.replace("50000", "50001")).told(RuleId(0)).is_none());
        feedbacks = Feedbacks::new(&config);
        let mut note = |metric: usize, reading| feedbacks.note(config.metrics[metric].id, &reading, |_| 2);
        note(1, Ok(200.0));
        assert_eq!((0..3).map(|_| note(0, Ok(50_001.0)).len()).sum::<usize>(), 1);
        let last = (0..200).flat_map(|_| note(0, Ok(0.0))).last();
        assert_eq!(last, Some((RuleId(0), "off".to_owned())));
    }
}
