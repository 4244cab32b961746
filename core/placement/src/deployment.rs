// SPDX-License-Identifier: Apache-2.0
//! A module on the way to some clients.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{Instant, NodeId, SessionId};

use crate::RuleId;
use crate::moves::Moving;

/// A deployment; no other one has or had its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeploymentId(pub u64);

/// How far a node is from the provider, as the nodes on the way saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// IP hops: 1 if no router lies between.
    pub ip_hops: u16,
    /// The round trips from node to node, together, in microseconds.
    pub rtt_us: u64,
}

/// The HTTP requests that a module answered since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// All of them.
    pub requests: u64,
    /// Those answered with a status of 500 or above.
    pub errors: u64,
}

/// A node that has the module, as it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: NodeId,
    /// Where the module answers there, if it takes connections; none if it only sees packets.
    pub addresses: Vec<IpAddr>,
    /// How far it is from the provider, if that is known.
    pub distance: Option<Distance>,
    /// How much the module has had to do there since it was loaded: packets, connections and requests.
    pub activity: u64,
    /// What it answered there.
    pub served: Served,
    /// Every request between the last two answers of the node failed. Clients are not sent there until the next one.
    pub is_failing: bool,
}

impl Node {
    /// Returns a node of which nothing but this is known.
    pub fn new(name: NodeId, addresses: Vec<IpAddr>) -> Node {
        Node { name, addresses, distance: None, activity: 0, served: Served::default(), is_failing: false }
    }

    /// Judges how it serves, by what these nodes were before.
    pub(crate) fn judge(&mut self, before: &[Node]) {
        let before = before.iter().find(|node| node.name == self.name).map_or_else(Served::default, |node| node.served);
        // It was loaded anew.
        let before = if self.served.requests < before.requests { Served::default() } else { before };
        let requests = self.served.requests - before.requests;
        self.is_failing = requests > 0 && self.served.errors.saturating_sub(before.errors) >= requests;
    }
}

/// How a deployment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Its first SETUP is under way.
    New,
    /// Its nodes have the module.
    Running,
    /// Its last refresh failed; the lease goes on.
    Ailing,
    /// It is being removed.
    Leaving,
}

/// A module on the way to some clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Why it is there.
    pub rule: RuleId,
    /// The client whose path was taken.
    pub client: IpAddr,
    /// The signaling session, once there is one.
    pub session: Option<SessionId>,
    /// The nodes with the module, nearest to the provider first.
    pub nodes: Vec<Node>,
    /// How it is.
    pub health: Health,
    /// When a client was seen last.
    pub seen: Instant,
    /// When the lease ends,
    pub lease_until: Instant,
    /// and how long it was at first: nodes may grant less than is asked for.
    pub lease: Duration,
    /// The last node of the path, by which regions are known to share it.
    /// The only node that has it, if its rule lets it move.
    pub edge: NodeId,
    /// The address of that only node, by which it is found wherever clients are, if it is known.
    pub address: Option<IpAddr>,
    /// Which of the owners in turn of its rule's floating addresses it is: later than all before it.
    pub epoch: u64,
    /// Failures of refreshes since the last success.
    pub failures: u32,
    /// A move that began, until it is known what came of it.
    pub moving: Option<Moving>,
}

impl Deployment {
    /// Returns where it is: the last node of its path, also before it is there, and all that have it.
    pub(crate) fn places(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.iter().map(|node| &node.name).chain([&self.edge])
    }

    /// Returns toward which address requests for it go.
    pub fn reached_by(&self) -> IpAddr {
        self.address.unwrap_or(self.client)
    }

    /// Returns the node that is nearest to the clients, if the module runs there and serves them.
    pub fn nearest(&self) -> Option<&Node> {
        self.nodes.last().filter(|node| matches!(self.health, Health::Running | Health::Ailing) && !node.is_failing)
    }
}
