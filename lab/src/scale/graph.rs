// SPDX-License-Identifier: Apache-2.0
//! Networks that grow as the Internet does, and the shortest paths through them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Links that a new vertex comes with.
const LINKS_EACH: usize = 2;

/// A network in which each new vertex is linked to two that are there, the likelier the more links those have (Barabási and
/// Albert): few have very many links, most have two.
#[derive(Debug)]
pub struct Graph {
    neighbours: Vec<Vec<u32>>,
    avoided: BTreeSet<(u32, u32)>,
    seed: u64,
    /// For each destination that was asked for, where each vertex sends packets for it.
    toward: BTreeMap<u32, Vec<u32>>,
}

impl Graph {
    /// Returns the network of a seed; `size` is at least 3.
    pub fn grow(size: u32, seed: u64) -> Graph {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); size as usize];
        // Every vertex as often as it has links.
        let mut ends: Vec<u32> = Vec::new();
        let mut link = |one: u32, other: u32, ends: &mut Vec<u32>| {
            neighbours[one as usize].push(other);
            neighbours[other as usize].push(one);
            ends.extend([one, other]);
        };
        link(0, 1, &mut ends);
        link(1, 2, &mut ends);
        link(2, 0, &mut ends);
        for new in 3..size {
            let mut chosen = BTreeSet::new();
            while chosen.len() < LINKS_EACH {
                chosen.insert(ends[rng.random_range(0..ends.len())]);
            }
            chosen.into_iter().for_each(|old| link(new, old, &mut ends));
        }
        Graph { neighbours, avoided: BTreeSet::new(), seed, toward: BTreeMap::new() }
    }

    /// Returns vertices in a row.
    pub fn chain(size: u32) -> Graph {
        let beside = |at: u32| at.checked_sub(1).into_iter().chain((at + 1 < size).then_some(at + 1)).collect();
        Graph {
            neighbours: (0..size).map(beside).collect(),
            avoided: BTreeSet::new(),
            seed: 0,
            toward: BTreeMap::new(),
        }
    }

    /// Returns the number of vertices.
    pub fn size(&self) -> u32 {
        u32::try_from(self.neighbours.len()).expect("it was made of a u32")
    }

    /// Returns the vertices at the edge: those with as few links as a vertex can have.
    pub fn edge(&self) -> Vec<u32> {
        (0..self.size()).filter(|vertex| self.degree(*vertex) == LINKS_EACH).collect()
    }

    /// Returns how many links a vertex has.
    pub fn degree(&self, vertex: u32) -> usize {
        self.neighbours[vertex as usize].len()
    }

    /// Returns where a vertex sends packets for another; nothing at that one itself.
    pub fn next(&mut self, from: u32, to: u32) -> Option<u32> {
        if !self.toward.contains_key(&to) {
            let tree = self.tree(to);
            self.toward.insert(to, tree);
        }
        let next = self.toward[&to][from as usize];
        (next != NOWHERE).then_some(next)
    }

    /// Returns the vertices of a path, both ends among them.
    pub fn path(&mut self, from: u32, to: u32) -> Vec<u32> {
        let mut path = vec![from];
        while let Some(next) = path.last().and_then(|at| self.next(*at, to)) {
            path.push(next);
        }
        path
    }

    /// Returns how many links lie between two vertices.
    pub fn distance(&mut self, from: u32, to: u32) -> u32 {
        u32::try_from(self.path(from, to).len() - 1).expect("paths are short")
    }

    /// Has paths avoid a link, or use it again; returns the vertices that send packets elsewhere than before, each with the
    /// destinations of those packets.
    pub fn avoid(&mut self, (one, other): (u32, u32), avoid: bool) -> BTreeMap<u32, Vec<u32>> {
        let link = (one.min(other), one.max(other));
        if avoid {
            self.avoided.insert(link);
        } else {
            self.avoided.remove(&link);
        }
        let destinations: Vec<u32> = self.toward.keys().copied().collect();
        let mut changed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for to in destinations {
            let tree = self.tree(to);
            let old = self.toward.insert(to, tree).unwrap_or_default();
            let differs = (0..).zip(self.toward[&to].iter().zip(&old)).filter(|(_, (new, old))| new != old);
            differs.for_each(|(vertex, _): (u32, _)| changed.entry(vertex).or_default().push(to));
        }
        changed
    }

    /// Breadth first from the destination. Of several neighbours that are as near, one is taken that is the same each time and
    /// differs from vertex to vertex.
    fn tree(&self, to: u32) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.neighbours.len()];
        distances[to as usize] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            for far in self.usable(at) {
                if distances[far as usize] == u32::MAX {
                    distances[far as usize] = distances[at as usize] + 1;
                    queue.push_back(far);
                }
            }
        }
        let next = |at: u32| {
            let rank = |far: &u32| (distances[*far as usize], mix(self.seed ^ u64::from(at) << 32 ^ u64::from(*far)));
            self.usable(at).min_by_key(rank).filter(|far| at != to && distances[*far as usize] != u32::MAX)
        };
        (0..self.size()).map(|at| next(at).unwrap_or(NOWHERE)).collect()
    }

    fn usable(&self, at: u32) -> impl Iterator<Item = u32> + '_ {
        let neighbours = self.neighbours[at as usize].iter().copied();
        neighbours.filter(move |far| !self.avoided.contains(&(at.min(*far), at.max(*far))))
    }
}

/// Returns a number that looks random, of another one.
pub(super) fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

const NOWHERE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_vertices_have_many_links_and_all_are_connected() {
        let mut graph = Graph::grow(1000, 7);
        let mut degrees: Vec<usize> = (0..1000).map(|vertex| graph.degree(vertex)).collect();
        degrees.sort_unstable();
        assert_eq!((degrees[0], degrees.iter().sum::<usize>()), (2, 2 * (3 + 997 * 2)));
        assert!(degrees[999] > 40 && degrees[500] < 4, "{degrees:?}");
        let edge = graph.edge();
        assert!(edge.len() > 400);
        let lengths: Vec<u32> = edge.windows(2).map(|ends| graph.distance(ends[0], ends[1])).collect();
        assert!(lengths.iter().all(|length| (1..=10).contains(length)), "{lengths:?}");
    }

    #[test]
    fn paths_lead_around_a_link_that_is_avoided_and_back() {
        let mut graph = Graph::grow(200, 1);
        let edge = graph.edge();
        let (from, to) = (edge[0], edge[edge.len() - 1]);
        let before = graph.path(from, to);
        let link = (before[1], before[2]);
        assert!(!graph.avoid(link, true).is_empty());
        let around = graph.path(from, to);
        assert!(around.windows(2).all(|step| step != [link.0, link.1]), "{around:?}");
        assert!(around.len() >= before.len());
        assert!(!graph.avoid(link, false).is_empty());
        assert_eq!(graph.path(from, to), before);
    }
}
