// SPDX-License-Identifier: Apache-2.0
//! What nodes tell a requester later on, without being asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::base64_text;
use crate::{ModuleName, NodeId, Nonce, SessionId, Topic, UserId};

/// One thing that happened to what a SETUP installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notify {
    /// The session of the SETUP.
    pub session: SessionId,
    /// The nonce of the SETUP.
    pub nonce: Nonce,
    /// Whose module it is.
    pub user: UserId,
    /// The module.
    pub module: ModuleName,
    /// The node that says so.
    pub node: NodeId,
    /// What happened.
    pub event: NotifyEvent,
    /// The nodes that have the module further on, nearest to the requester first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeId>,
    /// More about it for people, in one line.
    pub detail: String,
    /// What a module's own message is about; only with the event `module-message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// A module's own message, in base64, at most 1,024 bytes; only with the event `module-message`.
    #[serde(default, with = "base64_text", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "String")]
    pub body: Vec<u8>,
}

words! {
    serde
    /// What happened.
    pub enum NotifyEvent {
        /// The path leads to other nodes after this one, and they have the module now.
        RouteMoved = "route-moved",
        /// No node after this one is known any more; it goes on looking for one.
        RouteLost = "route-lost",
        /// The module's lease ended on this node before its time.
        LeaseEnded = "lease-ended",
        /// Another session's SETUP has put another version of the module, or other properties, in its place.
        ModuleReplaced = "module-replaced",
        /// The module failed too often on this node, and does not run for a while.
        ModuleFailed = "module-failed",
        /// The node is about to stop in order; what is installed starts with it again.
        NodeDraining = "node-draining",
        /// The operator drains the node: the module goes on until it is moved or its lease ends, which no SETUP puts off.
        NodeMaintenance = "node-maintenance",
        /// The module says something of its own.
        ModuleMessage = "module-message",
    }
}
