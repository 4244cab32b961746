// SPDX-License-Identifier: Apache-2.0
//! What is where: vertices, links, addresses and shortest paths.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use netserv_model::Instant;
use rand::RngExt;
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
    /// The links of each vertex with what lies beyond.
    adjacent: Vec<Vec<(LinkId, VertexId)>>,
    /// Since when which routes have been in force, the last ones now.
    routings: Vec<(Instant, Routing)>,
}

/// The link that leads toward each vertex, from each vertex.
type Routing = Vec<Vec<Option<LinkId>>>;

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

    /// Returns a random tree with more links between inner vertices, so that there is more than one way.
    pub fn random_mesh(
        rng: &mut StdRng,
        inner: usize,
        leaves: usize,
        more: usize,
        quality: LinkQuality,
        ipv6: bool,
    ) -> Topology {
        let Topology { kinds, mut links, .. } = Topology::random_tree(rng, inner, leaves, quality, ipv6);
        for _ in 0..more {
            let one = rng.random_range(0..inner);
            let other = (one + rng.random_range(2..=5)) % inner;
            let ends = [VertexId(one), VertexId(other)];
            if one != other && !links.iter().any(|(there, _)| ends.iter().all(|end| there.contains(end))) {
                links.push((ends, quality));
            }
        }
        Topology::new(kinds, links, ipv6)
    }

    fn new(kinds: Vec<Kind>, links: Vec<([VertexId; 2], LinkQuality)>, ipv6: bool) -> Topology {
        let (owners, routings) = (BTreeMap::new(), Vec::new());
        let mut adjacent = vec![Vec::new(); kinds.len()];
        for (at, ([one, other], _)) in links.iter().enumerate() {
            adjacent[one.0].push((LinkId(at), *other));
            adjacent[other.0].push((LinkId(at), *one));
        }
        let mut topology = Topology { kinds, links, ipv6, owners, adjacent, routings };
        for (at, (ends, _)) in topology.links.iter().enumerate() {
            for end in *ends {
                topology.owners.insert(topology.address(end, LinkId(at)), end);
            }
        }
        topology.route_without(Instant::default(), &BTreeSet::new());
        topology
    }

    /// Has packets take the shortest paths without some links from now on.
    pub fn route_without(&mut self, now: Instant, avoided: &BTreeSet<LinkId>) {
        let routing = self.vertices().map(|to| self.links_toward(to, avoided)).collect();
        self.routings.push((now, routing));
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
        let (_, routing) = self.routings.last().expect("there are routes from the start");
        routing[to.0][from.0]
    }

    /// Returns the links that led from a vertex toward another within a time.
    pub fn next_links_within(&self, from: VertexId, to: VertexId, start: Instant, end: Instant) -> BTreeSet<LinkId> {
        let until = self.routings.iter().map(|(since, _)| *since).skip(1).chain([Instant::from_nanos(u64::MAX)]);
        let in_force = self.routings.iter().zip(until).filter(|((since, _), until)| *since <= end && *until >= start);
        in_force.filter_map(|((_, routing), _)| routing[to.0][from.0]).collect()
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
    fn links_toward(&self, to: VertexId, avoided: &BTreeSet<LinkId>) -> Vec<Option<LinkId>> {
        let mut toward = vec![None; self.kinds.len()];
        let mut queue = VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            if at != to && !self.kind(at).forwards() {
                continue;
            }
            for (link, far) in &self.adjacent[at.0] {
                if !avoided.contains(link) && *far != to && toward[far.0].is_none() {
                    toward[far.0] = Some(*link);
                    queue.push_back(*far);
                }
            }
        }
        toward
    }
}
