// SPDX-License-Identifier: Apache-2.0
//! What is where: vertices, links, addresses and shortest paths.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

/// Names a router, node or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VertexId(pub usize);

/// Names a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub usize);

/// What a vertex is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A router that knows nothing of signaling.
    Router,
    /// An end system without NetServ; it answers signals with ICMP port unreachable.
    Host,
    /// An end system without NetServ that answers nothing.
    SilentHost,
    /// A NetServ node.
    Node,
    /// An end system that sends requests and runs no modules.
    NetServHost,
}

impl Kind {
    /// Returns whether packets of others pass through.
    pub fn forwards(self) -> bool {
        matches!(self, Kind::Router | Kind::Node)
    }

    /// Returns whether the engines run here.
    pub fn signals(self) -> bool {
        matches!(self, Kind::Node | Kind::NetServHost)
    }
}

/// How a link treats packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkQuality {
    /// The time that every packet takes.
    pub delay: Duration,
    /// Up to so much more, by chance: packets overtake each other.
    pub jitter: Duration,
    /// Packets lost, in thousandths.
    pub loss_permille: u32,
}

/// A network.
#[derive(Clone, Debug)]
pub struct Topology {
    kinds: Vec<Kind>,
    links: Vec<([VertexId; 2], LinkQuality)>,
    ipv6: bool,
    owners: BTreeMap<IpAddr, VertexId>,
    next_links: Vec<Vec<Option<LinkId>>>,
}

impl Topology {
    /// Returns a chain of vertices.
    pub fn chain(kinds: &[Kind], quality: LinkQuality, ipv6: bool) -> Topology {
        let links = (1..kinds.len()).map(|at| ([VertexId(at - 1), VertexId(at)], quality)).collect();
        Topology::new(kinds.to_vec(), links, ipv6)
    }

    /// Returns a random tree: nodes and plain routers inside, end systems of all kinds at the leaves.
    pub fn random_tree(rng: &mut StdRng, inner: usize, leaves: usize, quality: LinkQuality, ipv6: bool) -> Topology {
        let mut kinds = Vec::new();
        let mut links = Vec::new();
        for at in 0..inner {
            kinds.push(if rng.random_ratio(2, 3) { Kind::Node } else { Kind::Router });
            if at > 0 {
                // A near predecessor makes the tree deep, so that paths are long.
                links.push(([VertexId(rng.random_range(at.saturating_sub(3)..at)), VertexId(at)], quality));
            }
        }
        for at in inner..inner + leaves {
            let kind = [Kind::Host, Kind::NetServHost, Kind::Node, Kind::SilentHost][rng.random_range(0..4)];
            kinds.push(kind);
            links.push(([VertexId(rng.random_range(0..inner)), VertexId(at)], quality));
        }
        Topology::new(kinds, links, ipv6)
    }

    fn new(kinds: Vec<Kind>, links: Vec<([VertexId; 2], LinkQuality)>, ipv6: bool) -> Topology {
        let mut topology = Topology { kinds, links, ipv6, owners: BTreeMap::new(), next_links: Vec::new() };
        for (at, (ends, _)) in topology.links.iter().enumerate() {
            for end in *ends {
                topology.owners.insert(topology.address(end, LinkId(at)), end);
            }
        }
        topology.next_links = topology.vertices().map(|to| topology.links_toward(to)).collect();
        topology
    }

    /// Returns every vertex.
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> + use<> {
        (0..self.kinds.len()).map(VertexId)
    }

    /// Returns the vertices of some kinds.
    pub fn of_kind(&self, kinds: &[Kind]) -> Vec<VertexId> {
        self.vertices().filter(|vertex| kinds.contains(&self.kind(*vertex))).collect()
    }

    /// Returns every link.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len()).map(LinkId)
    }

    /// Returns what a vertex is.
    pub fn kind(&self, vertex: VertexId) -> Kind {
        self.kinds[vertex.0]
    }

    /// Returns the name of a vertex as it stands in response stacks.
    pub fn name(&self, vertex: VertexId) -> String {
        format!("v{}", vertex.0)
    }

    /// Returns how a link treats packets.
    pub fn quality(&self, link: LinkId) -> LinkQuality {
        self.links[link.0].1
    }

    /// Returns the address of a vertex on one of its links.
    pub fn address(&self, vertex: VertexId, link: LinkId) -> IpAddr {
        let end = if self.links[link.0].0[0] == vertex { 1 } else { 2 };
        let number = u16::try_from(link.0).expect("a world has fewer links");
        let [high, low] = number.to_be_bytes();
        if self.ipv6 {
            IpAddr::V6(Ipv6Addr::new(0xfd00, number, 0, 0, 0, 0, 0, end))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, high, low, if end == 1 { 1 } else { 2 }))
        }
    }

    /// Returns all addresses of a vertex.
    pub fn addresses(&self, vertex: VertexId) -> Vec<IpAddr> {
        let of_vertex = |link: &LinkId| self.links[link.0].0.contains(&vertex);
        self.links().filter(of_vertex).map(|link| self.address(vertex, link)).collect()
    }

    /// Returns whose address it is.
    pub fn owner(&self, address: IpAddr) -> Option<VertexId> {
        self.owners.get(&address).copied()
    }

    /// Returns the link that leads from a vertex toward another.
    pub fn next_link(&self, from: VertexId, to: VertexId) -> Option<LinkId> {
        self.next_links[to.0][from.0]
    }

    /// Returns the vertex at the other end of a link.
    pub fn across(&self, from: VertexId, link: LinkId) -> VertexId {
        let [one, other] = self.links[link.0].0;
        if one == from { other } else { one }
    }

    /// Returns the path as steps: the link taken and the vertex it leads to.
    pub fn path(&self, from: VertexId, to: VertexId) -> Vec<(LinkId, VertexId)> {
        let mut steps = Vec::new();
        let mut at = from;
        while let Some(link) = self.next_link(at, to) {
            at = self.across(at, link);
            steps.push((link, at));
        }
        steps
    }

    /// Breadth first from `to`; end systems do not forward.
    fn links_toward(&self, to: VertexId) -> Vec<Option<LinkId>> {
        let mut toward = vec![None; self.kinds.len()];
        let mut queue = VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            if at != to && !self.kind(at).forwards() {
                continue;
            }
            for (link, (ends, _)) in self.links.iter().enumerate() {
                let far = if ends[0] == at { ends[1] } else { ends[0] };
                if ends.contains(&at) && far != to && toward[far.0].is_none() {
                    toward[far.0] = Some(LinkId(link));
                    queue.push_back(far);
                }
            }
        }
        toward
    }
}
