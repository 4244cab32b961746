// SPDX-License-Identifier: Apache-2.0
//! Shapes of the HTTP API, shared by the node and its clients.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ModuleRef;
use crate::application::ApplicationInfo;
use crate::notify::Notify;
use crate::off_path::Off;
use crate::request::{ModuleStatus, NodeLoad, NodeReport, PathEnd, PolicyReport, ReturnStack, Withheld};
use crate::usage::{Traffic, Usage};
use crate::{ModuleName, NodeId, PublicKey, Refusal, SessionId, UnixTime, UserId};

/// `POST /v1/requests`: a signed request, for this node alone or for a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostRequest {
    /// The message as it goes over the wire, signed (design §6).
    pub message: String,
    /// Where to send it; nothing means this node alone.
    #[serde(default)]
    pub path: Option<PathSpec>,
    /// The session to go on with; nothing starts a new one.
    #[serde(default)]
    pub session: Option<SessionId>,
    /// How long to wait for the response stack, in milliseconds; 0 means the node's default.
    #[serde(default)]
    pub timeout_ms: u64,
}

/// The flow whose path a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// Where the flow goes.
    pub destination: IpAddr,
    /// Where the flow comes from; nothing means the address that this node would use.
    #[serde(default)]
    pub source: Option<IpAddr>,
}

/// The answer to a request: the whole response stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestResult {
    /// The session that the request belongs to.
    pub session: SessionId,
    /// One entry per node, nearest first.
    pub nodes: Vec<NodeReport>,
    /// Why the stack ends before the last node, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Refusal>,
    /// The nodes that are not in `nodes`, since their operators do not show them; nothing if there are none.
    #[serde(default, skip_serializing_if = "Withheld::is_empty")]
    pub withheld: Withheld,
    /// The nodes beside the path, if the request is for some.
    #[serde(default, skip_serializing_if = "Off::is_empty")]
    pub beside: Off,
    /// What proves that no node is missing at the far end; nothing if one may be, or if no path was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<PathEnd>,
    /// What the nodes on the way back said, if the request was to be sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<ReturnStack>,
    /// From posting to answer, in microseconds.
    pub took_us: u64,
}

/// `GET /v1/node`: what the node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeInfo {
    /// Its name.
    pub node: NodeId,
    /// `node` or `host`.
    pub role: String,
    /// The version of its software.
    pub version: String,
    /// The forwarding plane in use, and why that one.
    pub driver: String,
    /// How many packet threads serve it, each with receive queues of its own.
    #[serde(default = "one")]
    pub lanes: u32,
    /// When it started.
    pub started: UnixTime,
    /// How busy it is.
    pub load: NodeLoad,
    /// What became of packets that modules want.
    #[serde(default)]
    pub packets: PacketSums,
    /// What it cannot do on this machine, a line each.
    pub missing: Vec<String>,
    /// The devices that the forwarding plane serves, and how; empty where the plane serves none by itself.
    #[serde(default)]
    pub devices: Vec<DeviceInfo>,
    /// The forwarding planes that were looked at when the node started, the best first.
    #[serde(default)]
    pub planes: Vec<PlaneInfo>,
    /// Programs that are NSLPs on the node beside NetServ's own.
    #[serde(default)]
    pub applications: Vec<ApplicationInfo>,
    /// The operator's services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<OperatorServiceInfo>,
    /// Issuers whose revocation lists the node looks at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revocations: Vec<RevocationInfo>,
}

/// What a node knows of an issuer's revocation list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevocationInfo {
    /// What the operator calls the issuer.
    pub issuer: String,
    /// The newest list, whether it is still good or not; nothing if there was none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<RevocationListInfo>,
    /// Seconds since the server last gave a list that was good to take, or said that it has no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_s: Option<u64>,
    /// How often that failed since the node started.
    pub failures: u64,
    /// Why it failed last, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// An issuer's revocation list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevocationListInfo {
    /// Its number.
    pub number: u64,
    /// When it was made.
    pub made: UnixTime,
    /// Until when it is good here.
    pub until: UnixTime,
    /// Grants that it takes back.
    pub grants: usize,
    /// Keys that it takes back.
    pub keys: usize,
}

/// A module that the node runs by itself while one of its conditions holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorServiceInfo {
    /// What the operator calls it.
    pub name: String,
    /// The module.
    pub module: ModuleRef,
    /// Whether its package is there, fetched and compiled.
    pub ready: bool,
    /// Whether it is to run: a condition holds, or did a while ago.
    pub wanted: bool,
    /// Whether the module is installed.
    pub installed: bool,
    /// Why it is not, if the node refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Its conditions.
    pub conditions: Vec<ConditionInfo>,
}

/// A condition and its present value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionInfo {
    /// The condition, as in the configuration.
    pub when: String,
    /// What comes in a second, over the last 300 milliseconds.
    pub per_second: u64,
}

/// What nodes have that do not say it.
fn one() -> u32 {
    1
}

/// What became of packets since the node started, in packets. A quarter of a second old at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketSums {
    /// Packets that the forwarding plane handed to the node.
    pub received: u64,
    /// Packets that a container should have seen and did not, for instance since its ring was full, once for each container.
    pub unseen: u64,
    /// Packets that the forwarding plane let pass the node, since more came than the node took: no module saw them.
    pub bypassed: u64,
    /// Packets that the forwarding plane dropped, since more came than the node took.
    pub lost: u64,
}

/// How the forwarding plane serves one network device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceInfo {
    /// The device's name.
    pub name: String,
    /// How packets are taken off it, such as `native` or `generic`.
    pub mode: String,
    /// Whether packets lie where the device put them; otherwise they are copied once.
    pub zero_copy: bool,
    /// Receive queues that are served.
    pub queues: u32,
    /// Why the kernel forwards what comes in here and no module wants; nothing if that is done in XDP.
    #[serde(default)]
    pub left_to_kernel: Option<String>,
}

/// Whether a forwarding plane works on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaneInfo {
    /// Its name in the configuration.
    pub name: String,
    /// Why it does not work here; nothing if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// `GET /v1/modules`: what is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleList {
    /// The modules, by user and install order.
    pub modules: Vec<ModuleStatus>,
}

/// `GET /v1/users`: who may do what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserList {
    /// The users whom the configuration names and those who have proven their rights, by name.
    pub users: Vec<UserInfo>,
}

/// What one user may do on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserInfo {
    /// The user.
    pub user: UserId,
    /// Keys that it signs with.
    pub keys: Vec<PublicKey>,
    /// What its rights come from, as `configured` or `grant of house sha256:…`.
    pub proof: String,
    /// When that ends; nothing if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixTime>,
    /// What it may do; nothing if its proof does not hold now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<PolicyReport>,
    /// Why it may do nothing now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Its modules, also those that are being installed.
    pub modules: Vec<ModuleRef>,
}

/// `POST /v1/drain`: whether the node is to take nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// True before maintenance, false once it is over.
    pub maintenance: bool,
}

/// `GET` and `POST /v1/drain`: how far the node is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainReport {
    /// Whether the node takes nothing new, also after a restart.
    pub maintenance: bool,
    /// Modules of users that it still has; those of the operator stay.
    pub left: Vec<ModuleStatus>,
}

/// `GET /v1/usage`: what was used since the node first ran, over restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// The users, by name.
    pub users: Vec<UserUsage>,
    /// What users used who are gone so long that they are not told apart any more; nothing if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Usage>,
}

/// What one user used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserUsage {
    /// The user.
    pub user: UserId,
    /// From when.
    pub since: UnixTime,
    /// When it was last measured.
    pub until: UnixTime,
    /// All that the user used, also with modules that are not among `modules` any more.
    pub usage: Usage,
    /// The user's modules, by name.
    pub modules: Vec<ModuleUsage>,
}

/// What one module used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleUsage {
    /// Its name, whatever its version.
    pub module: ModuleName,
    /// From when.
    pub since: UnixTime,
    /// When it was last measured.
    pub until: UnixTime,
    /// Packets that it was shown (in), and that it made and the node sent (out).
    pub packets: Traffic,
    /// Its share of the time that its worker was on a processor, in nanoseconds, by how often it was found at work.
    pub cpu_ns: u64,
}

/// `POST /v1/reload`: what reading the configuration again changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// The keys whose values are other ones than those in force before, in order.
    pub changes: Vec<ConfigChange>,
}

/// One changed key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigChange {
    /// The key with that of its table, as `dataplane.driver`; a key of a user with `user` and the name before it.
    pub key: String,
    /// From when it holds.
    pub from: InForceFrom,
    /// Why it does not hold at once, where that is not always so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// From when a changed key of the configuration holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InForceFrom {
    /// From now on, also for what runs.
    Now,
    /// From the next load of each module.
    ModuleLoad,
    /// From the next start of the user's container.
    ContainerStart,
    /// From the next start of netservd.
    NodeStart,
}

impl std::fmt::Display for InForceFrom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            InForceFrom::Now => "now",
            InForceFrom::ModuleLoad => "the next load of each module",
            InForceFrom::ContainerStart => "the next start of the container",
            InForceFrom::NodeStart => "the next start of netservd",
        })
    }
}

/// One line of `GET /v1/logs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Counts up by one per line since the node started.
    pub sequence: u64,
    /// When.
    pub time: UnixTime,
    /// `error`, `warn`, `info` or `debug`.
    pub level: String,
    /// Who wrote it: `netservd`, or `user/module`.
    pub source: String,
    /// The text, one line.
    pub text: String,
}

/// One line of `GET /v1/events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum EventLine {
    /// News of what a SETUP installed.
    News(Box<EventRecord>),
    /// News before this line are not kept any more.
    Missed(MissedEvents),
}

/// News of what a SETUP installed, as a node got or made them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventRecord {
    /// Counts up by one, from the time at which the node started in milliseconds, so that numbers of one run are told from
    /// those of another.
    pub sequence: u64,
    /// When the node got or made them.
    pub time: UnixTime,
    /// What happened.
    #[serde(flatten)]
    pub notify: Notify,
}

/// Tells that news are not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissedEvents {
    /// How many; nothing if the node was started anew since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The sequence number of the first that comes after this line.
    pub sequence: u64,
}

/// Any failure of the HTTP API itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// What is wrong, in one line.
    pub error: String,
    /// What to do about it, in one line.
    pub fix: String,
}

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
