// SPDX-License-Identifier: Apache-2.0
//! Traces: the way of single packets through a node, as the HTTP API tells of it.

mod text;

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verdict::FailureMode;
use crate::{DropReason, Filter, Flavour, Flow, ModuleRef, UserId, Verdict};

pub use text::{TraceFilterError, parse_filters};

/// `POST /v1/trace`: which packets to follow, and until when. The answer is a [`TraceLine`] in each line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// Packets that one of these filters matches; none means every packet.
    #[serde(default)]
    pub filters: Vec<Filter>,
    /// The trace ends after so many packets; 0 means any number.
    #[serde(default)]
    pub count: u64,
    /// The trace ends after so many milliseconds; 0, and more than the node allows, means the node's longest time.
    #[serde(default)]
    pub timeout_ms: u64,
    /// So many bytes from the start of each packet are wanted.
    #[serde(default)]
    pub bytes: u32,
}

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum TraceLine {
    /// The trace runs: packets that come from here on are in it. Always the first line.
    Started(TraceStart),
    /// A packet came to its end in this node.
    Packet(Box<TracePacket>),
    /// The trace is over. The last line, unless the client or the node goes away.
    Ended(TraceEnd),
}

/// What a trace looks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceStart {
    /// The filters; packets that match one of them are traced.
    pub filters: Vec<Filter>,
    /// The forwarding plane in use, and why that one.
    pub driver: String,
    /// When the trace ends at the latest, in milliseconds from its start.
    pub timeout_ms: u64,
}

/// How a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEnd {
    /// Why.
    pub reason: TraceEndReason,
    /// Packets that were told of.
    pub traced: u64,
    /// Packets that were followed and not told of, because the client did not read fast enough.
    pub lost: u64,
    /// Packets that matched and were not followed, because there were too many in one second.
    pub skipped: u64,
}

/// Why a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEndReason {
    /// As many packets were told of as were wanted.
    Count,
    /// Its time was up.
    Time,
    /// The node's packet path ended.
    Stopped,
}

/// The way of one packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracePacket {
    /// When it came, in microseconds since 1970-01-01T00:00:00Z.
    pub time_us: u64,
    /// Where it came from.
    pub origin: TraceOrigin,
    /// What filters look at; nothing if the node does not understand the packet.
    pub flow: Option<TraceFlow>,
    /// Its bytes, from the IP header on.
    pub length: usize,
    /// The first of its bytes in hexadecimal digits, as many as were wanted, as they came.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bytes: String,
    /// What happened to it, in order.
    pub steps: Vec<TraceStep>,
    /// Steps that found no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps_left_out: u64,
    /// What became of it in the end.
    pub verdict: Verdict,
    /// Why it was dropped, or was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DropReason>,
    /// What it was changed into, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<TraceChange>,
    /// Where it went; nothing if it was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<TraceEgress>,
    /// How many packets this trace has lost so far, because the client did not read fast enough.
    pub lost: u64,
    /// How many packets this trace has skipped so far, because there were too many in one second.
    pub skipped: u64,
}

/// Where a packet came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum TraceOrigin {
    /// From the network.
    Network {
        /// The kernel's number of the interface; 0 where the driver does not know.
        interface: u32,
        /// The interface's name, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A module made it.
    Module {
        /// Whose container.
        user: UserId,
        /// The module, if its container says which.
        module: Option<ModuleRef>,
    },
}

/// What a filter looks at in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFlow {
    /// IP source.
    pub source: IpAddr,
    /// IP destination.
    pub destination: IpAddr,
    /// Upper-layer protocol number.
    pub protocol: u8,
    /// Source port, if the packet shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port, if the packet shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
}

/// One thing that happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum TraceStep {
    /// A module's filter matched.
    Filter {
        /// Whose module.
        user: UserId,
        /// The module.
        module: Option<ModuleRef>,
        /// The filter.
        filter: Filter,
        /// What happens to the packet while the module cannot say.
        on_failure: FailureMode,
    },
    /// No module's filter matched.
    NoFilter,
    /// The packet was put into a user's container.
    Container {
        /// Whose container.
        user: UserId,
        /// The flavour of the worker in it that got the packet.
        #[serde(default = "wasm")]
        flavour: Flavour,
    },
    /// A module had its say, or not.
    Module {
        /// Whose module.
        user: UserId,
        /// The module, if it is known.
        module: Option<ModuleRef>,
        /// What it did.
        verdict: TraceVerdict,
    },
    /// A user's container or module could not say.
    Failure {
        /// The user.
        user: UserId,
        /// Why.
        reason: DropReason,
        /// What is done then: open lets the packet go on, closed drops it.
        on_failure: FailureMode,
    },
}

/// What a module did with a packet, as far as its container tells: that is the last module which dropped or changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceVerdict {
    /// It let it pass.
    Passed,
    /// It dropped it.
    Dropped,
    /// It changed it.
    Modified,
    /// It failed on it.
    Failed,
    /// It let it go on; whether it changed it is not told, since another module decided.
    WentOn,
    /// Another module had dropped it before.
    NotAsked,
    /// It is not loaded, so it was not shown the packet.
    NotLoaded,
    /// Nothing came back.
    Unanswered,
}

/// What a packet was changed into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceChange {
    /// What filters would look at.
    pub flow: Option<TraceFlow>,
    /// Its bytes, from the IP header on.
    pub length: usize,
    /// The first of its bytes in hexadecimal digits, as many as were wanted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bytes: String,
}

/// Where a packet went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum TraceEgress {
    /// The node sent it out by a device itself.
    Device {
        /// The device, or the VLAN on it.
        interface: String,
        /// The router or host that it went to next.
        next_hop: IpAddr,
        /// The Ethernet address of that.
        station: String,
        /// The tag that the frame got.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vlan: Option<u16>,
        /// Bytes of the longest packet on this way.
        mtu: usize,
    },
    /// The kernel forwards it as it does with its own.
    Kernel {
        /// Why, as the rest of a sentence that starts with "because".
        why: String,
    },
    /// The driver does not let it go.
    Refused {
        /// Why, as the rest of a sentence that starts with "because".
        why: String,
    },
    /// The driver sends it to where its destination address leads.
    Destination,
}

impl TracePacket {
    /// Returns a packet of which nothing is known but that it came: no steps, and that it passes.
    pub fn new(time_us: u64, origin: TraceOrigin, flow: Option<TraceFlow>, length: usize) -> TracePacket {
        TracePacket {
            time_us,
            origin,
            flow,
            length,
            bytes: String::new(),
            steps: Vec::new(),
            steps_left_out: 0,
            verdict: Verdict::Pass,
            reason: None,
            changed: None,
            egress: None,
            lost: 0,
            skipped: 0,
        }
    }
}

impl From<Flow> for TraceFlow {
    fn from(flow: Flow) -> TraceFlow {
        let Flow { source, destination, protocol, source_port, destination_port, opens: _ } = flow;
        TraceFlow { source, destination, protocol, source_port, destination_port }
    }
}

/// Returns a drop reason in words.
pub fn reason_text(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Module => "a module said so",
        DropReason::RingFull => "the container's ring was full",
        DropReason::Stalled => "the container did not answer in time",
        DropReason::ContainerGone => "the container is not there",
        DropReason::Trapped => "a module failed on it or is not loaded",
        DropReason::TooLong => "it is longer than a slot of the ring",
        DropReason::Unreadable => "the node cannot read its headers",
        DropReason::BadVerdict => "what came back is no whole IP packet",
        DropReason::SourceRefused => "its source address is not one that the user may use",
        DropReason::RouteRefused => "it has a source route or a home address, which modules may not send",
        DropReason::DestinationRefused => "no route leads to its destination as to another machine",
        DropReason::TooMany => "the user's modules make more packets than they may",
        DropReason::SendFailed => "the driver could not send it",
        DropReason::Frozen => "its module stands still, since it moves, and no more packets wait for it",
        DropReason::Fault => "the fault wrapper dropped it on purpose",
    }
}

/// What a node runs that does not say.
fn wasm() -> Flavour {
    Flavour::Wasm
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_words() {
        let words: std::collections::BTreeSet<&str> = DropReason::ALL.into_iter().map(reason_text).collect();
        assert_eq!(words.len(), DropReason::ALL.len());
    }
}
