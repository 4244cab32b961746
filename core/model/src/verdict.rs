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

words! {
    serde
    /// Why a packet went no further, or went on unseen. Each has a counter.
    pub enum DropReason {
        /// A module said so.
        Module = "module",
        /// The container's ring was full and the module fails closed.
        RingFull = "ring-full",
        /// The container did not answer in time and the module fails closed.
        Stalled = "stalled",
        /// The container died while it held the packet and the module fails closed.
        ContainerGone = "container-gone",
        /// The module trapped on the packet and fails closed.
        Trapped = "trapped",
        /// The packet is longer than a ring slot and the module fails closed.
        TooLong = "too-long",
        /// The node cannot read the packet's headers, and a module that may want it fails closed.
        Unreadable = "unreadable",
        /// What came back is no valid IP packet, or its length changed beyond the slot.
        BadVerdict = "bad-verdict",
        /// A module changed or made a packet whose source address its user may not use.
        SourceRefused = "source-refused",
        /// A module changed or made a packet that names further addresses: a source route or a home address.
        RouteRefused = "route-refused",
        /// A module made a packet for a destination that no route leads to as to another machine.
        DestinationRefused = "destination-refused",
        /// A user's modules make more packets than they may, or make packets longer by more.
        TooMany = "too-many",
        /// The driver could not send the packet.
        SendFailed = "send-failed",
        /// The module stood still, since it moves, for longer than packets wait, or with more of them than wait, and fails closed.
        Frozen = "frozen",
        /// The fault wrapper dropped it on purpose.
        Fault = "fault",
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
