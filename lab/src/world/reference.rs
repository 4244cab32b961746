// SPDX-License-Identifier: Apache-2.0
//! The reference model: what a request must bring back where nothing is lost.

use std::net::IpAddr;

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
