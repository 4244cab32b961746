// SPDX-License-Identifier: Apache-2.0
//! Shapes of the API of `netserv-agent`.

use std::net::IpAddr;

use netserv_model::NodeId;
use serde::{Deserialize, Serialize};

/// `GET /v1/status` of an agent: what it has deployed, and what happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Regions whose clients are counted.
    pub regions: usize,
    /// Observations so far.
    pub observations: u64,
    /// Those that were not counted, since there were too many.
    pub lost: u64,
    /// Ways that had no node.
    pub no_node: u64,
    /// Requests that failed.
    pub failures: u64,
    /// The rules.
    pub rules: Vec<AgentRule>,
    /// What rules look at.
    pub metrics: Vec<AgentMetric>,
    /// Flows of the agent's machine that rules count.
    #[serde(default)]
    pub flows: Vec<AgentFlows>,
    /// Logs that rules count.
    #[serde(default)]
    pub logs: Vec<AgentLog>,
    /// What is deployed.
    pub deployments: Vec<AgentDeployment>,
    /// The last moves of modules, the latest last.
    #[serde(default)]
    pub moves: Vec<AgentMove>,
}

/// One rule of an agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRule {
    /// Its name.
    pub name: String,
    /// `on`, `waiting` for its metric, or switched `off`.
    pub state: String,
    /// What its modules were told last of the server's load, if it holds them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

/// One metric of an agent's, as it was read last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentMetric {
    /// Its name.
    pub name: String,
    /// What it was, if it could be read and is finite.
    pub value: Option<f64>,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// Some flows of an agent's machine, as they were looked at last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFlows {
    /// Their name.
    pub name: String,
    /// How many there are, if they could be listed.
    pub count: Option<usize>,
    /// Why they are not known, or not all.
    pub error: Option<String>,
}

/// A log of an agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLog {
    /// Its name.
    pub name: String,
    /// Lines that came since it was opened.
    pub lines: u64,
    /// Those that have the log's pattern, with a client.
    pub matched: u64,
}

/// `GET /v1/check` of an agent: whether it reaches what its configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCheck {
    /// One for each thing that it names.
    pub checks: Vec<AgentFinding>,
}

/// What an agent found of one thing that its configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFinding {
    /// The thing, such as `metric done`.
    pub what: String,
    /// Its path, address or URL.
    pub at: String,
    /// Whether it is as the agent needs it.
    pub ok: bool,
    /// What was found, in one line.
    pub found: String,
    /// What to do about it, in one line, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// One node of a deployment of an agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentNode {
    /// Its name.
    pub node: NodeId,
    /// Where the module takes connections there.
    pub addresses: Vec<IpAddr>,
    /// IP hops from the provider, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_hops: Option<u16>,
    /// The round trips from node to node on the way there, together, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
    /// HTTP requests that the module answered there, as of the last refresh,
    #[serde(default)]
    pub requests: u64,
    /// and those answered with a status of 500 or above.
    #[serde(default)]
    pub errors: u64,
    /// Whether all requests of late failed; no client is sent there until the next refresh.
    #[serde(default)]
    pub failing: bool,
}

/// One deployment of an agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDeployment {
    /// Its rule's name; empty if that is gone.
    pub rule: String,
    /// The nodes that have the module, nearest to the provider first.
    pub nodes: Vec<AgentNode>,
    /// `new`, `running`, `ailing` or `leaving`.
    pub health: String,
    /// Seconds since a client was seen.
    pub seen_s: u64,
}

/// A module that an agent moved, or moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMove {
    /// Its rule's name; empty if that is gone.
    pub rule: String,
    /// The node that had it.
    pub from: NodeId,
    /// The node that was to have it.
    pub to: NodeId,
    /// `drain`, `load` or `clients`.
    pub why: String,
    /// `under-way`, `moved`, `stayed` or `lost`.
    pub state: String,
    /// Seconds since it began, or went on after a restart of the agent.
    pub ago_s: u64,
}

/// `POST /v1/reload` of an agent: what became of its rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReload {
    /// The rules that there are, and those that are gone.
    pub rules: Vec<AgentRuleChange>,
}

/// What became of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRuleChange {
    /// Its name.
    pub name: String,
    /// `same`, `changed`, `renewed` if its modules are set up anew, `new` or `gone`.
    pub change: String,
}

/// `GET /v1/nearest` of an agent: the node that is nearest to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentNearest {
    /// Its name; empty if none is known.
    pub node: String,
    /// Where the module takes connections there.
    pub addresses: Vec<IpAddr>,
}
