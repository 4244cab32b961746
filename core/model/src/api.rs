// SPDX-License-Identifier: Apache-2.0
//! Shapes of the HTTP API that the node's parts make or take themselves. The others are in `netserv-api`.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::off_path::Off;
use crate::request::{NodeReport, PathEnd, PolicyReport, ReturnStack, Withheld};
use crate::usage::{Traffic, Usage};
use crate::{ModuleName, ModuleRef, PublicKey, Refusal, SessionId, UnixTime, UserId};

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
