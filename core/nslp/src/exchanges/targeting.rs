// SPDX-License-Identifier: Apache-2.0
//! Whether a request is for this node: by its name, and by its place on the path.

use netserv_model::NodeId;
use netserv_model::target::{Scope, Target};

/// Whether a request is for a node, as far as its name and place go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is.
    Meant,
    /// It is if no node comes after this one.
    IfLast,
    /// It is for others, for this reason.
    Passed(&'static str),
}

pub(crate) const NOT_LAST: &str = "it is for the last node only";
const NOT_EDGE: &str = "it is for the first and the last node only";

impl Place {
    /// Returns what a request's target says of a node; a first node has no other between it and the requester.
    pub(crate) fn of(target: &Target, node: &NodeId, is_first: bool) -> Place {
        if !target.nodes.is_empty() && !target.nodes.contains(node) {
            return Place::Passed("it is for other nodes by name");
        }
        match target.scope {
            Scope::All => Place::Meant,
            Scope::First | Scope::Edge if is_first => Place::Meant,
            Scope::First => Place::Passed("it is for the first node only"),
            Scope::Last | Scope::Edge => Place::IfLast,
        }
    }
}

/// Returns why a request is not for a node that others come after.
pub(crate) fn not_last(scope: Scope) -> &'static str {
    match scope {
        Scope::Edge => NOT_EDGE,
        Scope::All | Scope::First | Scope::Last => NOT_LAST,
    }
}
