// SPDX-License-Identifier: Apache-2.0
//! What modules are told of the load of the server that they stand before.

use netserv_placement::{Bounds, Regulator, RuleId, Said};

use crate::config::Config;
use crate::limits::FEEDBACK_VALID_MIN_MS;
use crate::metric::Reading;

/// The regulators of all rules, in their order.
pub struct Feedbacks(Vec<Option<Feedback>>);

struct Feedback {
    /// The places of the metrics.
    backlog: usize,
    done: usize,
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
        let place = |name: &str| config.metrics.iter().position(|metric| metric.name == name);
        let of = |rule: &crate::config::Deploy| {
            let feedback = rule.feedback.as_ref()?;
            let (backlog, done) = (place(&feedback.backlog)?, place(&feedback.done)?);
            let bounds = Bounds { over: feedback.over, until: feedback.until() };
            // One that is lost or late is made good by the next ones.
            let every_ms = config.metrics[backlog].every().as_millis();
            let valid_ms = u64::try_from(4 * every_ms).unwrap_or(u64::MAX).max(FEEDBACK_VALID_MIN_MS);
            Some(Feedback { backlog, done, last_done: None, regulator: Regulator::new(bounds), valid_ms, told: None })
        };
        Feedbacks(config.rules.iter().map(of).collect())
    }

    /// Takes what was read of a metric, and how many deployments a rule has; returns the rules whose modules are to be told something, and what.
    pub fn note(&mut self, metric: usize, reading: &Reading, edges: impl Fn(RuleId) -> usize) -> Vec<(RuleId, String)> {
        let mut told = Vec::new();
        for (place, feedback) in self.0.iter_mut().enumerate() {
            let Some(feedback) = feedback else { continue };
            if metric == feedback.done {
                feedback.last_done = reading.as_ref().ok().copied();
            }
            // What cannot be read is no news: what was told last ends by itself.
            let (Ok(backlog), Some(done)) = (reading, feedback.last_done) else { continue };
            if metric != feedback.backlog {
                continue;
            }
            feedback.told = match feedback.regulator.note(*backlog, done, edges(RuleId(place))) {
                Said::Nothing => continue,
                Said::Rate(rate) => Some(format!("rate={rate:.1} validity-ms={}", feedback.valid_ms)),
                Said::Off => None,
            };
            told.push((RuleId(place), feedback.told.clone().unwrap_or_else(|| "off".to_owned())));
        }
        told
    }

    /// Returns what a rule's modules were told last, if it holds them back.
    pub fn told(&self, rule: RuleId) -> Option<String> {
        self.0.get(rule.0)?.as_ref()?.told.clone()
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
        let mut feedbacks = Feedbacks::new(&Config::parse(&text).unwrap());
        let mut note = |metric, reading| feedbacks.note(metric, &reading, |_| 2);
        assert!(note(1, Ok(200.0)).is_empty() && note(0, Ok(50_000.0)).is_empty());
        assert!((0..2).all(|_| note(0, Ok(50_001.0)).is_empty()));
        let told = note(0, Ok(50_001.0));
        assert_eq!(told, [(RuleId(0), "rate=50.0 validity-ms=1000".to_owned())]);
        assert!(note(0, Err("away".to_owned())).is_empty());
        let last = (0..200).flat_map(|_| note(0, Ok(0.0))).last();
        assert_eq!(last, Some((RuleId(0), "off".to_owned())));
    }
}
