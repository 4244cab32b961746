// SPDX-License-Identifier: Apache-2.0
//! What the agent counts, for Prometheus.

use std::time::{Duration, SystemTime};

use netserv_api::{AgentFinding, AgentStatus};
use netserv_model::exposition::{Exposition, Kind};

/// Returns all metrics of an agent that runs for so long. `reached` is what it found when it looked last at what it reaches.
pub fn text(status: &AgentStatus, reached: &[AgentFinding], runs: Duration) -> String {
    let mut out = Exposition::default();
    out.family("agent_info", Kind::Gauge, "What runs here").sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(runs);
    out.family("agent_start_time_seconds", Kind::Gauge, "When the agent started").sample(&[], started.as_secs());
    counts(&mut out, status);
    rules(&mut out, status);
    let mut family = out.family("agent_reached", Kind::Gauge, "Whether what the configuration names was reached last");
    for finding in reached {
        family.sample(&[("what", &finding.what)], u8::from(finding.ok));
    }
    out.finish()
}

fn counts(out: &mut Exposition, status: &AgentStatus) {
    let AgentStatus { regions, observations, lost, no_node, failures, logs, .. } = status;
    out.family("agent_regions", Kind::Gauge, "Regions whose clients are counted").sample(&[], regions);
    out.family("agent_observations_total", Kind::Counter, "Observations of clients").sample(&[], observations);
    let help = "Observations that were not counted, since there were too many";
    out.family("agent_lost_observations_total", Kind::Counter, help).sample(&[], lost);
    out.family("agent_ways_without_node_total", Kind::Counter, "Ways that had no node").sample(&[], no_node);
    out.family("agent_failed_requests_total", Kind::Counter, "Requests that failed").sample(&[], failures);
    let mut family =
        out.family("agent_log_lines_total", Kind::Counter, "Lines of logs, by whether they have the pattern");
    for log in logs {
        family.sample(&[("log", &log.name), ("matched", "yes")], log.matched);
        family.sample(&[("log", &log.name), ("matched", "no")], log.lines.saturating_sub(log.matched));
    }
}

fn rules(out: &mut Exposition, status: &AgentStatus) {
    let mut family = out.family("agent_rule", Kind::Gauge, "1 for the state that a rule is in");
    for rule in &status.rules {
        family.sample(&[("rule", &rule.name), ("state", &rule.state)], 1);
    }
    let mut family = out.family("agent_deployments", Kind::Gauge, "Deployments of each rule, by their health");
    for rule in &status.rules {
        for health in HEALTHS {
            let is_it = |one: &&netserv_api::AgentDeployment| one.rule == rule.name && one.health == health;
            let count = status.deployments.iter().filter(is_it).count();
            family.sample(&[("rule", &rule.name), ("health", health)], count);
        }
    }
    let mut family = out.family("agent_metric", Kind::Gauge, "Metrics that could be read last, with their value");
    for metric in &status.metrics {
        if let Some(value) = metric.value {
            family.sample(&[("metric", &metric.name)], value);
        }
    }
    let mut family = out.family("agent_flows", Kind::Gauge, "Flows of this machine that could be listed last");
    for flows in &status.flows {
        if let Some(count) = flows.count {
            family.sample(&[("flows", &flows.name)], count);
        }
    }
}

const HEALTHS: [&str; 4] = ["new", "running", "ailing", "leaving"];

#[cfg(test)]
mod tests {
    use netserv_api::{AgentDeployment, AgentLog, AgentMetric, AgentRule};

    use super::*;

    #[test]
    fn everything_that_is_counted_is_a_sample() {
        let metric = |name: &str, value| AgentMetric { name: name.to_owned(), value, error: None };
        let status = AgentStatus {
            regions: 2,
            observations: 30,
            lost: 4,
            no_node: 5,
            failures: 6,
            rules: vec![AgentRule { name: "sip".to_owned(), state: "on".to_owned(), told: None }],
            metrics: vec![metric("waits", Some(7.5)), metric("done", None)],
            flows: Vec::new(),
            logs: vec![AgentLog { name: "kamailio".to_owned(), lines: 9, matched: 8 }],
            deployments: vec![AgentDeployment {
                rule: "sip".to_owned(),
                nodes: Vec::new(),
                health: "running".to_owned(),
                seen_s: 0,
            }],
            moves: Vec::new(),
        };
        let reached = AgentFinding {
            what: "metric done".to_owned(),
            at: "/run/kamailio/rpc.sock".to_owned(),
            ok: false,
            found: String::new(),
            fix: None,
        };
        let text = text(&status, &[reached], Duration::from_secs(1));
        for line in [
            "netserv_agent_regions 2",
            "netserv_agent_observations_total 30",
            "netserv_agent_lost_observations_total 4",
            "netserv_agent_ways_without_node_total 5",
            "netserv_agent_failed_requests_total 6",
            "netserv_agent_log_lines_total{log=\"kamailio\",matched=\"yes\"} 8",
            "netserv_agent_log_lines_total{log=\"kamailio\",matched=\"no\"} 1",
            "netserv_agent_rule{rule=\"sip\",state=\"on\"} 1",
            "netserv_agent_deployments{rule=\"sip\",health=\"running\"} 1",
            "netserv_agent_deployments{rule=\"sip\",health=\"ailing\"} 0",
            "netserv_agent_metric{metric=\"waits\"} 7.5",
            "netserv_agent_reached{what=\"metric done\"} 0",
        ] {
            assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
        }
        assert!(!text.contains("metric=\"done\""));
    }
}
