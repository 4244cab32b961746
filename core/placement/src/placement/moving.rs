// SPDX-License-Identifier: Apache-2.0
//! Modules that go to another node by rule.
//!
//! A move is kept before it begins, and until it is known which of the two nodes has the module: so long, no SETUP renews a lease,
//! which would have the old node go on beside the new one. Nodes know what came of it; a move that is given again goes on where it was.

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::{Instant, NodeId};

use super::{Asked, Due, Placement};
use crate::around::Around;
use crate::candidates::Candidate;
use crate::deployment::{Deployment, DeploymentId, Health, Node};
use crate::limits::{ASKED_MAX, MOVES_KEPT};
use crate::moves::{Ended, MoveEnd, MoveRecord, Moves, Moving};
use crate::wish::Wish;

impl Placement {
    /// Takes note that the node of a deployment tells that it is drained. Others are found to be when nodes are asked next.
    pub fn drained(&mut self, now: Instant, id: DeploymentId, node: &NodeId) {
        if self.deployments.get(&id).is_none_or(|deployment| deployment.edge != *node) {
            return;
        }
        let Some(around) = self.around.get_mut(&id) else { return };
        around.is_drained = true;
        if around.next.is_some() {
            self.look_around_at(id, now);
        }
    }

    /// Returns the last moves, the latest last.
    pub fn moves(&self) -> impl Iterator<Item = &MoveRecord> {
        self.moves.iter().map(|(_, record)| record)
    }

    /// Takes note of a client of a deployment.
    pub(super) fn note_client(&mut self, now: Instant, id: DeploymentId, region: IpNet, client: IpAddr) {
        if let Some(around) = self.around.get_mut(&id) {
            around.note(now, region, client);
        }
    }

    /// Begins to look around a deployment whose rule lets it move.
    pub(super) fn watch(&mut self, now: Instant, id: DeploymentId) {
        let (Some(every), Some(deployment)) = (self.moves_of(id).map(|moves| moves.every), self.deployments.get(&id))
        else {
            return;
        };
        if self.around.contains_key(&id) {
            return;
        }
        let (rule, client) = (deployment.rule, deployment.client);
        let Some(region) = self.rules.get(&rule).map(|rule| rule.region(client)) else { return };
        let mut around = Around::new(now);
        around.note(now, region, client);
        self.around.insert(id, around);
        self.look_around_at(id, now + every);
    }

    /// Asks the nodes around a deployment, if it is not being set up or moved.
    pub(super) fn look_around(&mut self, now: Instant, id: DeploymentId) {
        let moves = self.moves_of(id).filter(|_| !self.is_leaving(id)).cloned();
        let (Some(moves), false) = (moves, self.is_unsettled(id) || self.asked.len() >= ASKED_MAX) else {
            return self.look_around_later(now, id);
        };
        let rule = self.deployments.get(&id).map(|deployment| deployment.rule);
        let (Some(around), Some(rule)) = (self.around.get_mut(&id), rule) else { return };
        around.next = None;
        let Some(client) = around.client(now, &moves) else { return };
        let ticket = self.ticket(Asked::Look(id, client));
        self.wishes.push_back(Wish::Look { ticket, rule, client });
    }

    /// Takes what nodes on the way to a client said; nothing if they did not.
    pub(super) fn looked(&mut self, now: Instant, id: DeploymentId, client: IpAddr, candidates: &[Candidate]) {
        self.look_around_later(now, id);
        // A SETUP that began meanwhile has its turn first.
        let Some(moves) = self.moves_of(id).filter(|_| !self.is_unsettled(id)).cloned() else { return };
        let (Some(around), Some(deployment)) = (self.around.get_mut(&id), self.deployments.get(&id)) else { return };
        let mut deployment = deployment.clone();
        let moving = around.decide(now, &moves, &deployment, client, candidates);
        let current = candidates.iter().find(|one| one.node == deployment.edge).map(|one| one.address);
        if moving.is_none() && (current.is_none() || current == deployment.address) {
            return;
        }
        deployment.address = current.or(deployment.address);
        deployment.moving = moving;
        let (is_moving, epoch) = (deployment.moving.is_some(), deployment.epoch);
        self.record(now, id, &deployment);
        self.put(id, deployment);
        if is_moving {
            // What comes after a move that nobody knows the end of is of a later epoch.
            self.next_epoch = self.next_epoch.max(epoch.saturating_add(2));
            self.look_no_more(id);
            self.setup(id);
        }
    }

    /// Sends the move that began, or was under way before a restart; returns whether there is one.
    pub(super) fn send_move(&mut self, id: DeploymentId) -> bool {
        let Some(mut deployment) = self.deployments.get(&id).cloned() else { return false };
        let Some(moving) = deployment.moving.clone() else { return false };
        if !moving.tried {
            deployment.moving = Some(Moving { tried: true, ..moving.clone() });
            self.put(id, deployment.clone());
        }
        let Deployment { rule, client, edge: from, address: from_address, .. } = deployment;
        let ticket = self.ticket(Asked::Move(id));
        self.wishes.push_back(Wish::Move { ticket, deployment: id, rule, client, from, from_address, moving });
        true
    }

    /// Takes what came of a move.
    pub(super) fn move_ended(&mut self, now: Instant, id: DeploymentId, end: MoveEnd) {
        match end {
            MoveEnd::Moved { epoch } => self.moved(now, id, epoch),
            MoveEnd::Stays => self.stays(now, id),
            MoveEnd::Gone => {
                self.counters.failures += 1;
                // Clients bring it up again.
                self.rest_served(now, id);
                self.forget(id);
            }
            MoveEnd::Unknown { renewed } => {
                self.counters.failures += 1;
                if renewed {
                    self.lease_begins(now, id);
                }
                self.not_deployed(now, id);
            }
        }
    }

    /// The other node has the module.
    fn moved(&mut self, now: Instant, id: DeploymentId, epoch: u64) {
        self.close_record(id, Ended::Moved);
        let rest = self.moves_of(id).map(|moves| moves.rest).unwrap_or_default();
        let Some(mut deployment) = self.deployments.get(&id).cloned() else { return };
        let lease = self.lease_of(deployment.rule);
        let Some(moving) = deployment.moving.take() else { return };
        (deployment.edge, deployment.client, deployment.epoch) = (moving.to.clone(), moving.client, epoch);
        deployment.nodes = vec![Node::new(moving.to, Vec::new())];
        (deployment.address, deployment.session, deployment.failures) = (Some(moving.address), None, 0);
        (deployment.health, deployment.lease_until) = (Health::Running, now + lease);
        self.next_epoch = self.next_epoch.max(epoch.saturating_add(1));
        self.put(id, deployment);
        self.watch(now, id);
        if let Some(around) = self.around.get_mut(&id) {
            around.moved(now, rest);
        }
        // Where it takes connections is known by the answer.
        self.setup(id);
    }

    /// The module is where it was, and may stand still there.
    fn stays(&mut self, now: Instant, id: DeploymentId) {
        self.close_record(id, Ended::Stayed);
        self.counters.failures += 1;
        let Some(mut deployment) = self.deployments.get(&id).cloned() else { return };
        let Some(moving) = deployment.moving.take() else { return };
        self.put(id, deployment);
        self.watch(now, id);
        if let Some(around) = self.around.get_mut(&id) {
            around.avoid(now, moving.to);
        }
        self.setup(id);
    }

    /// Keeps in mind for people that a move began, or goes on.
    pub(super) fn record(&mut self, now: Instant, id: DeploymentId, deployment: &Deployment) {
        let Some(moving) = &deployment.moving else { return };
        if self.moves.len() >= MOVES_KEPT {
            self.moves.pop_front();
        }
        let (rule, from, to) = (deployment.rule, deployment.edge.clone(), moving.to.clone());
        self.moves.push_back((id, MoveRecord { rule, from, to, why: moving.why, begun: now, ended: None }));
    }

    pub(super) fn close_record(&mut self, id: DeploymentId, end: Ended) {
        let open = self.moves.iter_mut().find(|(of, record)| *of == id && record.ended.is_none());
        if let Some((_, record)) = open {
            record.ended = Some(end);
        }
    }

    /// Looks around no more.
    pub(super) fn watch_no_more(&mut self, id: DeploymentId) {
        if let Some(Around { next: Some(at), .. }) = self.around.remove(&id) {
            self.due.remove(&(at, Due::Around(id)));
        }
    }

    /// Looks around again after a while, as long as its rule lets it move.
    fn look_around_later(&mut self, now: Instant, id: DeploymentId) {
        match self.moves_of(id).filter(|_| !self.is_leaving(id)).map(|moves| moves.every) {
            Some(every) => self.look_around_at(id, now + every),
            None => self.watch_no_more(id),
        }
    }

    fn look_around_at(&mut self, id: DeploymentId, at: Instant) {
        let Some(around) = self.around.get_mut(&id) else { return };
        if let Some(before) = around.next.replace(at) {
            self.due.remove(&(before, Due::Around(id)));
        }
        self.due.insert((at, Due::Around(id)));
    }

    /// Returns whether something is under way with it, or it is not there.
    fn is_unsettled(&self, id: DeploymentId) -> bool {
        let is_there = |one: &Deployment| {
            let is_there = matches!(one.health, Health::Running | Health::Ailing);
            one.moving.is_none() && is_there
        };
        !self.deployments.get(&id).is_some_and(is_there) || self.is_being_set_up(id)
    }

    fn moves_of(&self, id: DeploymentId) -> Option<&Moves> {
        self.rules.get(&self.deployments.get(&id)?.rule)?.moves.as_ref()
    }
}
