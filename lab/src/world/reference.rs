// SPDX-License-Identifier: Apache-2.0
//! The reference model: what a request must bring back where nothing is lost.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netserv_model::{Instant, RefusalKind};

use super::sim::Outcome;
use super::topology::{Kind, Topology, VertexId};

/// One entry that the response stack must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The node's name.
    pub node: String,
    /// The address by which the previous hop knows it.
    pub address: IpAddr,
}

/// Returns the entries of a request from `origin` along the path to `destination`: every node on it in order,
/// and, where `hosts_answer` (for a PROBE), the hosts at its ends that run NetServ.
pub fn expected_stack(
    topology: &Topology,
    origin: VertexId,
    destination: VertexId,
    hosts_answer: bool,
) -> Vec<Expected> {
    let first = topology.next_link(origin, destination).map(|link| (link, origin));
    let path = first.into_iter().chain(topology.path(origin, destination));
    let has_entry = |vertex: VertexId| match topology.kind(vertex) {
        Kind::Node => true,
        Kind::NetServHost => hosts_answer,
        Kind::Router | Kind::Host | Kind::SilentHost => false,
    };
    path.filter(|(_, vertex)| has_entry(*vertex))
        .map(|(link, vertex)| Expected { node: topology.name(vertex), address: topology.address(vertex, link) })
        .collect()
}

/// Returns what is wrong with a response stack, if anything, however routes changed while it was asked for: each entry is the
/// next node after the one before, and nobody lies between the last one and the destination if the stack is called whole.
pub fn fault_in_stack(
    topology: &Topology,
    origin: VertexId,
    destination: VertexId,
    outcome: &Outcome,
) -> Option<String> {
    let start = outcome.at - outcome.took;
    let beyond = |from| nearest_stations(topology, from, destination, start, outcome.at);
    let mut entries = outcome.nodes.iter().peekable();
    let own_name = topology.name(origin);
    let has_own = entries.next_if(|entry| entry.node.as_str() == own_name).is_some();
    if !has_own && topology.kind(origin) == Kind::Node {
        return Some(format!("{own_name} has no entry of its own"));
    }
    let mut last = origin;
    for entry in entries {
        let name = entry.node.as_str();
        // Where a request came by two ways, the address is that of the first.
        let is_it =
            |vertex: &VertexId| topology.name(*vertex) == name && topology.owner(entry.address) == Some(*vertex);
        let Some(vertex) = beyond(last).into_iter().find(is_it) else {
            return Some(format!("{name} at {} is not next to {}", entry.address, topology.name(last)));
        };
        last = vertex;
    }
    let whole = matches!(outcome.incomplete.as_ref().map(|refusal| refusal.kind), None | Some(RefusalKind::NoNode));
    if outcome.incomplete.is_none() != outcome.end.is_some() {
        return Some(format!("it is incomplete: {:?}, and ends: {:?}", outcome.incomplete, outcome.end));
    }
    let is_end = last == destination || beyond(last).contains(&destination);
    (whole && !is_end).then(|| format!("{} is not the last node", topology.name(last)))
}

/// Returns the first stations, or the destination, that packets may have got to from a vertex within a time.
fn nearest_stations(
    topology: &Topology,
    from: VertexId,
    destination: VertexId,
    start: Instant,
    end: Instant,
) -> BTreeSet<VertexId> {
    let (mut found, mut seen, mut at) = (BTreeSet::new(), BTreeSet::new(), vec![from]);
    while let Some(vertex) = at.pop() {
        for link in topology.next_links_within(vertex, destination, start, end) {
            let next = topology.across(vertex, link);
            if next == destination || topology.kind(next).signals() {
                found.insert(next);
            } else if seen.insert(next) {
                at.push(next);
            }
        }
    }
    found
}
