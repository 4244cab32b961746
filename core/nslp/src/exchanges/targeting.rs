// SPDX-License-Identifier: Apache-2.0
//! Whether a request is for this node: by its name and domain, and by its place on the path. Whether it is for that path.

use netserv_model::target::{Destinations, Scope, Target};
use netserv_model::{DomainName, NodeId, Refusal, RefusalKind};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Message;

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
    pub(crate) fn of(target: &Target, node: &NodeId, domain: Option<&DomainName>, is_first: bool) -> Place {
        if !target.nodes.is_empty() && !target.nodes.contains(node) {
            return Place::Passed("it is for other nodes by name");
        }
        if !target.domains.is_empty() && !domain.is_some_and(|domain| target.domains.contains(domain)) {
            return Place::Passed("it is for nodes of other domains");
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

/// Returns why a request is not taken that follows another flow than its user named, as a copy may; without a flow it is for this
/// node alone. Who says of a flow that it leads here shows it by a Query along it.
pub(crate) fn misdirected(message: &Message, mri: Option<&Mri>, along_flow: bool) -> Option<Refusal> {
    let destinations = message.destinations();
    if *destinations == Destinations::default() {
        return None;
    }
    let detail = match mri {
        Some(Mri::PathCoupled(flow)) if !destinations.cover(flow.destination(), flow.destination_prefix()) => {
            format!("it is for the path to {destinations}, and follows one to {}", flow.destination())
        }
        Some(Mri::PathCoupled(_)) if along_flow || destinations.are_any() => return None,
        Some(Mri::PathCoupled(_)) => {
            format!("it is for the path to {destinations}, and its Query was not sent there, or changed by a NAT")
        }
        Some(Mri::LooseEnd(_) | Mri::Other(_)) | None => {
            format!("it is for the path to {destinations}, and follows none")
        }
    };
    Some(Refusal::new(RefusalKind::NotForThisNode, detail))
}
