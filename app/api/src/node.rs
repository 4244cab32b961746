// SPDX-License-Identifier: Apache-2.0
//! Shapes of the API of `netservd`.

use netserv_model::api::{DeviceInfo, PacketSums, RevocationInfo, UserInfo};
use netserv_model::application::ApplicationInfo;
use netserv_model::notify::Notify;
use netserv_model::request::{ModuleStatus, NodeLoad};
use netserv_model::{ModuleRef, NodeId, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
