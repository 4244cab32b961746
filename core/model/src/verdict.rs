// SPDX-License-Identifier: Apache-2.0
//! What becomes of a packet, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a module says of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Goes on as it came.
    Pass,
    /// Goes no further.
    Drop,
    /// Goes on with the bytes that the module left in the slot.
    Modified,
}

/// Why a packet went no further, or went on unseen. Each has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// A module said so.
    Module,
    /// The container's ring was full and the module fails closed.
    RingFull,
    /// The container did not answer in time and the module fails closed.
    Stalled,
    /// The container died while it held the packet and the module fails closed.
    ContainerGone,
    /// The module trapped on the packet and fails closed.
    Trapped,
    /// The packet is longer than a ring slot and the module fails closed.
    TooLong,
    /// What came back is no valid IP packet, or its length changed beyond the slot.
    BadVerdict,
    /// A module changed or made a packet whose source address its user may not use.
    SourceRefused,
    /// A module changed or made a packet that names further addresses: a source route or a home address.
    RouteRefused,
    /// A module made a packet for a destination that no route leads to as to another machine.
    DestinationRefused,
    /// A user's modules make more packets than they may, or make packets longer by more.
    TooMany,
    /// The driver could not send the packet.
    SendFailed,
    /// The module stood still, since it moves, for longer than packets wait, or with more of them than wait, and fails closed.
    Frozen,
    /// The fault wrapper dropped it on purpose.
    Fault,
}

impl DropReason {
    /// Every reason, in the order of their counters.
    pub const ALL: [DropReason; 14] = [
        DropReason::Module,
        DropReason::RingFull,
        DropReason::Stalled,
        DropReason::ContainerGone,
        DropReason::Trapped,
        DropReason::TooLong,
        DropReason::BadVerdict,
        DropReason::SourceRefused,
        DropReason::RouteRefused,
        DropReason::DestinationRefused,
        DropReason::TooMany,
        DropReason::SendFailed,
        DropReason::Frozen,
        DropReason::Fault,
    ];

    /// Returns the label of the reason's counter.
    pub fn as_str(self) -> &'static str {
        match self {
            DropReason::Module => "module",
            DropReason::RingFull => "ring-full",
            DropReason::Stalled => "stalled",
            DropReason::ContainerGone => "container-gone",
            DropReason::Trapped => "trapped",
            DropReason::TooLong => "too-long",
            DropReason::BadVerdict => "bad-verdict",
            DropReason::SourceRefused => "source-refused",
            DropReason::RouteRefused => "route-refused",
            DropReason::DestinationRefused => "destination-refused",
            DropReason::TooMany => "too-many",
            DropReason::SendFailed => "send-failed",
            DropReason::Frozen => "frozen",
            DropReason::Fault => "fault",
        }
    }
}

/// What happens to a module's packets, or to new connections, while the module cannot say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureMode {
    /// Packets pass unseen, connections go to whom they are for. It may also be written `pass`.
    #[default]
    #[serde(alias = "pass")]
    Open,
    /// Packets are dropped, connections refused. It may also be written `drop`.
    #[serde(alias = "drop")]
    Closed,
}
