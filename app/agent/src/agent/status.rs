// SPDX-License-Identifier: Apache-2.0
//! How things are, for people.

use netserv_api::{AgentDeployment, AgentFlows, AgentMove, AgentNode, AgentStatus};
use netserv_placement::{Deployment, Ended, Health, MoveRecord, Node};

use super::Agent;

impl Agent {
    pub(super) fn status(&self) -> AgentStatus {
        let now = self.now();
        let counters = self.placement.counters();
        let deployed = |deployment: &Deployment| AgentDeployment {
            rule: self.name(deployment.rule).to_owned(),
            nodes: deployment.nodes.iter().map(shown).collect(),
            health: health(deployment.health).to_owned(),
            seen_s: now.since(deployment.seen).as_secs(),
        };
        let moved = |record: &MoveRecord| AgentMove {
            rule: self.name(record.rule).to_owned(),
            from: record.from.clone(),
            to: record.to.clone(),
            why: record.why.as_str().to_owned(),
            state: record.ended.map_or("under-way", Ended::as_str).to_owned(),
            ago_s: now.since(record.begun).as_secs(),
        };
        AgentStatus {
            regions: self.placement.regions(),
            observations: counters.observations,
            lost: counters.uncounted + self.observations.lost(),
            no_node: counters.no_node,
            failures: counters.failures,
            rules: self.conditions.rules(&self.config, &self.feedbacks),
            metrics: self.conditions.metrics(&self.config),
            flows: self.config.flows.iter().map(|flows| self.flows_told(&flows.name)).collect(),
            logs: self.sensors.logs(),
            deployments: self.placement.deployments().map(|(_, deployment)| deployed(deployment)).collect(),
            moves: self.placement.moves().map(moved).collect(),
        }
    }

    fn flows_told(&self, name: &str) -> AgentFlows {
        let told = self.flows.get(name);
        AgentFlows {
            name: name.to_owned(),
            count: told.and_then(|told| told.clone().ok()),
            error: told.and_then(|told| told.clone().err()),
        }
    }
}

pub(super) fn health(health: Health) -> &'static str {
    match health {
        Health::New => "new",
        Health::Running => "running",
        Health::Ailing => "ailing",
        Health::Leaving => "leaving",
    }
}

pub(super) fn shown(node: &Node) -> AgentNode {
    AgentNode {
        node: node.name.clone(),
        addresses: node.addresses.clone(),
        ip_hops: node.distance.map(|distance| distance.ip_hops),
        rtt_us: node.distance.map(|distance| distance.rtt_us),
        requests: node.served.requests,
        errors: node.served.errors,
        failing: node.is_failing,
    }
}
