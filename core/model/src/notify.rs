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

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyEvent {
    /// The path leads to other nodes after this one, and they have the module now.
    RouteMoved,
    /// No node after this one is known any more; it goes on looking for one.
    RouteLost,
    /// The module's lease ended on this node before its time.
    LeaseEnded,
    /// Another session's SETUP has put another version of the module, or other properties, in its place.
    ModuleReplaced,
    /// The module failed too often on this node, and does not run for a while.
    ModuleFailed,
    /// The node is about to stop in order; what is installed starts with it again.
    NodeDraining,
    /// The operator drains the node: the module goes on until it is moved or its lease ends, which no SETUP puts off.
    NodeMaintenance,
    /// The module says something of its own.
    ModuleMessage,
}

impl NotifyEvent {
    /// Every event.
    pub const ALL: [NotifyEvent; 8] = [
        NotifyEvent::RouteMoved,
        NotifyEvent::RouteLost,
        NotifyEvent::LeaseEnded,
        NotifyEvent::ModuleReplaced,
        NotifyEvent::ModuleFailed,
        NotifyEvent::NodeDraining,
        NotifyEvent::NodeMaintenance,
        NotifyEvent::ModuleMessage,
    ];

    /// Returns its name in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NotifyEvent::RouteMoved => "route-moved",
            NotifyEvent::RouteLost => "route-lost",
            NotifyEvent::LeaseEnded => "lease-ended",
            NotifyEvent::ModuleReplaced => "module-replaced",
            NotifyEvent::ModuleFailed => "module-failed",
            NotifyEvent::NodeDraining => "node-draining",
            NotifyEvent::NodeMaintenance => "node-maintenance",
            NotifyEvent::ModuleMessage => "module-message",
        }
    }

    /// Returns the event of this name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<NotifyEvent> {
        NotifyEvent::ALL.into_iter().find(|event| event.as_str() == word)
    }
}
