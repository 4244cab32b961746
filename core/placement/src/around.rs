// SPDX-License-Identifier: Apache-2.0
//! What is known of the nodes around a deployment, and where its module goes by that. It is not kept over restarts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use netserv_model::{Instant, NodeId};

use crate::candidates::{Candidate, Place};
use crate::deployment::Deployment;
use crate::limits::{AVOID_MAX, AVOID_TIME_MAX, CLIENTS_MAX};
use crate::moves::{Moves, Moving, Why};
use crate::region::wait_after;

/// What is known of the nodes around a deployment.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    /// When nodes are asked next; nothing while they are.
    pub(crate) next: Option<Instant>,
    /// Whether its node said that it is drained.
    pub(crate) is_drained: bool,
    clients: Clients,
    /// Looks in a row at which the node had too much to do,
    busy: u32,
    /// and at which it was not on the way.
    away: u32,
    /// No move but for a drain until then.
    rest_until: Instant,
    /// Nodes that did not take it: how often, and until when they are not asked again.
    avoid: BTreeMap<NodeId, (u32, Instant)>,
}

impl Around {
    pub(crate) fn new(now: Instant) -> Around {
        Around {
            next: None,
            is_drained: false,
            clients: Clients::default(),
            busy: 0,
            away: 0,
            rest_until: now,
            avoid: BTreeMap::new(),
        }
    }

    /// Takes note that a client was seen.
    pub(crate) fn note(&mut self, now: Instant, region: IpNet, client: IpAddr) {
        self.clients.note(now, region, client);
    }

    /// Returns whose way is to be looked at.
    pub(crate) fn client(&mut self, now: Instant, moves: &Moves) -> Option<IpAddr> {
        self.clients.next(now, moves.every.saturating_mul(moves.looks.saturating_add(1)))
    }

    /// Takes note that a node did not take the module: it is left alone for a while, the longer the more often.
    pub(crate) fn avoid(&mut self, now: Instant, node: NodeId) {
        let before = self.avoid.get(&node).map_or(0, |(failures, _)| *failures);
        if before == 0 && self.avoid.len() >= AVOID_MAX {
            let soonest = self.avoid.iter().min_by_key(|(_, (_, until))| *until);
            let soonest = soonest.map(|(node, _)| node.clone());
            soonest.and_then(|node| self.avoid.remove(&node));
        }
        self.avoid.insert(node, (before.saturating_add(1), now + wait_after(before).min(AVOID_TIME_MAX)));
    }

    /// Takes note that the module is on another node.
    pub(crate) fn moved(&mut self, now: Instant, rest: Duration) {
        (self.busy, self.away, self.rest_until, self.is_drained) = (0, 0, now + rest, false);
        self.avoid.clear();
    }

    /// Returns where the module goes, by what nodes on the way to a client say, the best first; nothing if it stays.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        moves: &Moves,
        deployment: &Deployment,
        client: IpAddr,
        candidates: &[Candidate],
    ) -> Option<Moving> {
        // Who does not answer says nothing.
        candidates.first()?;
        let current = candidates.iter().find(|one| one.node == deployment.edge);
        self.count(moves, current);
        let why = self.why(now, moves, current.is_some() || deployment.address.is_some())?;
        let is_idle = |one: &Candidate| one.load_permille.is_some_and(|load| load <= moves.load_until);
        let is_free = |one: &Candidate| self.avoid.get(&one.node).is_none_or(|(_, until)| *until <= now);
        let can = |one: &&Candidate| {
            let is_on_path = matches!(one.place, Place::Path { .. });
            let is_other = one.node != deployment.edge && is_free(one);
            one.score.is_some() && is_on_path && is_other && (why != Why::Load || is_idle(one))
        };
        let to = candidates.iter().find(can)?;
        Some(Moving { to: to.node.clone(), address: to.address, client, why, tried: false })
    }

    fn count(&mut self, moves: &Moves, current: Option<&Candidate>) {
        let Some(current) = current else {
            self.away = self.away.saturating_add(1);
            return;
        };
        (self.away, self.is_drained) = (0, current.maintenance);
        self.busy = match (current.load_permille, moves.load_over) {
            (Some(load), Some(over)) if load > over => self.busy.saturating_add(1),
            (Some(load), Some(_)) if load > moves.load_until => self.busy,
            (_, _) => 0,
        };
    }

    /// Returns why the module is to move. One whose node cannot be found does not.
    fn why(&self, now: Instant, moves: &Moves, is_found: bool) -> Option<Why> {
        let is_rested = self.rest_until <= now;
        // Of several clients, no way leads by it.
        let is_away = self.away >= moves.looks.max(self.clients.count());
        if !is_found {
            None
        } else if self.is_drained {
            Some(Why::Drain)
        } else if moves.follow && is_away && is_rested {
            Some(Why::Clients)
        } else if self.busy >= moves.looks && is_rested {
            Some(Why::Load)
        } else {
            None
        }
    }
}

/// The clients that were seen last, one of each region.
#[derive(Clone, Debug, Default)]
struct Clients {
    seen: Vec<(IpNet, IpAddr, Instant)>,
    turn: usize,
}

impl Clients {
    fn note(&mut self, now: Instant, region: IpNet, client: IpAddr) {
        if let Some(known) = self.seen.iter_mut().find(|(known, ..)| *known == region) {
            (known.1, known.2) = (client.to_canonical(), now);
            return;
        }
        if self.seen.len() >= CLIENTS_MAX {
            let oldest = (0..self.seen.len()).min_by_key(|place| self.seen[*place].2);
            oldest.map(|place| self.seen.remove(place));
        }
        self.seen.push((region, client.to_canonical(), now));
    }

    /// Returns each in turn; those that were not seen for a while are forgotten, but for the last one.
    fn next(&mut self, now: Instant, keep: Duration) -> Option<IpAddr> {
        let last = self.seen.iter().map(|(.., at)| *at).max()?;
        self.seen.retain(|(.., at)| *at == last || now.since(*at) <= keep);
        self.turn = (self.turn + 1) % self.seen.len();
        Some(self.seen[self.turn].1)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.seen.len()).unwrap_or(u32::MAX)
    }
}
