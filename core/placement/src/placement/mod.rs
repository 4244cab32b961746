// SPDX-License-Identifier: Apache-2.0
//! Decides what is deployed where.

mod crowd;
mod moving;
mod regions;
mod reload;
mod sweep;
mod wanted;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use netserv_model::{Instant, ModuleName, NodeId, SessionId};

use crate::RuleId;
use crate::around::Around;
use crate::deployment::{Deployment, DeploymentId, Health, Node};
use crate::limits::{
    DEPLOYMENTS_MAX, NODES_MAX, REFRESH_MIN, REMOVE_AGAIN, REMOVES_MAX, RULES_MAX, SWEEP_REST, WAY_TIME,
};
use crate::moves::{Ended, MoveEnd, MoveRecord};
use crate::region::{Moment, Region, Stage, wait_after};
use crate::rule::Rule;
use crate::wish::{Answer, Change, Ticket, Wish};
use crowd::Crowd;
use wanted::Wanted;

/// What happened, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Observations.
    pub observations: u64,
    /// Observations of regions that are not counted, since there are too many others.
    pub uncounted: u64,
    /// Ways without a node.
    pub no_node: u64,
    /// Regions that could get no deployment, since there are as many as there may be.
    pub full: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Answers to nothing that was asked.
    pub stray: u64,
}

/// Decides what is deployed where. One per agent.
#[derive(Debug)]
pub struct Placement {
    rules: BTreeMap<RuleId, Rule>,
    /// What rules deployed that are gone, as long as something of theirs is.
    gone: BTreeMap<RuleId, ModuleName>,
    /// Rules whose gates are shut.
    shut: BTreeSet<RuleId>,
    regions: BTreeMap<(RuleId, IpNet), Region>,
    crowd: Crowd,
    /// The region that a sweep has come to.
    swept: Option<(RuleId, IpNet)>,
    is_swept: bool,
    deployments: BTreeMap<DeploymentId, Deployment>,
    due: BTreeSet<(Instant, Due)>,
    /// When a deployment is looked at next.
    next_look: BTreeMap<DeploymentId, Instant>,
    asked: BTreeMap<Ticket, Asked>,
    /// Regions that wait to be asked for.
    wanted: Wanted,
    /// What is known of the nodes around deployments that may move.
    around: BTreeMap<DeploymentId, Around>,
    /// The last moves.
    moves: VecDeque<(DeploymentId, MoveRecord)>,
    /// Deployments whose SETUP under way says what their rule said before; another one follows it.
    again: BTreeSet<DeploymentId>,
    wishes: VecDeque<Wish>,
    changes: VecDeque<Change>,
    next_number: u64,
    next_epoch: u64,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Regions may be forgotten.
    Sweep,
    /// A deployment is to be refreshed, or removed.
    Deployment(DeploymentId),
    /// The nodes around it are to be asked.
    Around(DeploymentId),
}

#[derive(Clone, Copy, Debug)]
enum Asked {
    /// The way to a client of that region.
    Probe(RuleId, IpNet, IpAddr),
    /// The nodes on the way to a client.
    Look(DeploymentId, IpAddr),
    Setup(DeploymentId),
    Move(DeploymentId),
    Remove(DeploymentId),
}

impl Placement {
    /// Returns one that knows nothing yet. Rules beyond [`RULES_MAX`] are left out.
    pub fn new(rules: impl IntoIterator<Item = (RuleId, Rule)>) -> Placement {
        Placement {
            rules: rules.into_iter().take(RULES_MAX).collect(),
            gone: BTreeMap::new(),
            shut: BTreeSet::new(),
            regions: BTreeMap::new(),
            crowd: Crowd::default(),
            swept: None,
            is_swept: false,
            deployments: BTreeMap::new(),
            due: BTreeSet::new(),
            next_look: BTreeMap::new(),
            asked: BTreeMap::new(),
            wanted: Wanted::default(),
            around: BTreeMap::new(),
            moves: VecDeque::new(),
            again: BTreeSet::new(),
            wishes: VecDeque::new(),
            changes: VecDeque::new(),
            next_number: 0,
            next_epoch: 1,
            counters: Counters::default(),
        }
    }

    /// Has epochs begin there, unless later ones were given out already. Who lost what was kept gives the time, which is later than what was.
    pub fn begin_epochs(&mut self, at: u64) {
        self.next_epoch = self.next_epoch.max(at);
    }

    /// Takes back what was kept before a restart. Each deployment is refreshed at once: what was under way may not have come
    /// to its end, and clients have [`Rule::idle`] to be seen again. Those that were being removed, or whose rules are gone, are
    /// removed.
    pub fn restore(&mut self, now: Instant, kept: impl IntoIterator<Item = (DeploymentId, Deployment)>) {
        for (id, deployment) in kept.into_iter().take(DEPLOYMENTS_MAX) {
            self.next_number = self.next_number.max(id.0 + 1);
            let later = if deployment.moving.is_some() { 2 } else { 1 };
            self.next_epoch = self.next_epoch.max(deployment.epoch.saturating_add(later));
            self.record(now, id, &deployment);
            let stays = deployment.health != Health::Leaving && self.rules.contains_key(&deployment.rule);
            let health = if deployment.health == Health::New { Health::New } else { Health::Ailing };
            let lease = self.lease_of(deployment.rule);
            self.deployments
                .insert(id, Deployment { health, seen: now, lease_until: now + lease, lease, ..deployment });
            if stays {
                self.watch(now, id);
                self.setup(id);
            } else {
                self.remove(id);
            }
        }
    }

    /// Opens or shuts a rule's gate, which is open at first. While it is shut, nobody counts as seen, so that its modules go
    /// after [`Rule::idle`] and no further ones come.
    pub fn gate(&mut self, rule: RuleId, open: bool) {
        let _ = if open { self.shut.remove(&rule) } else { self.shut.insert(rule) };
    }

    /// Shuts a rule's gate and removes all of its modules at once.
    pub fn stop(&mut self, rule: RuleId) {
        self.gate(rule, false);
        let stays = |deployment: &Deployment| deployment.rule == rule && deployment.health != Health::Leaving;
        let own = self.deployments.iter().filter(|(_, deployment)| stays(deployment));
        for id in own.map(|(id, _)| *id).collect::<Vec<DeploymentId>>() {
            self.remove(id);
        }
    }

    /// Takes note that a client was seen `count` times.
    pub fn observe(&mut self, now: Instant, rule: RuleId, client: IpAddr, count: u32) {
        self.counters.observations += u64::from(count);
        let Some(known) = self.rules.get(&rule).filter(|_| !self.shut.contains(&rule)) else { return };
        let (key, enough) = ((rule, known.region(client)), (known.count, known.window));
        if !self.regions.contains_key(&key) {
            if !self.add_region(key, Region::new(now)) {
                self.counters.uncounted += u64::from(count);
                return;
            }
            if !std::mem::replace(&mut self.is_swept, true) {
                self.due.insert((now + SWEEP_REST, Due::Sweep));
            }
        }
        let Some(region) = self.regions.get_mut(&key) else { return };
        let is_wanted = region.count(now, count, enough);
        let is_there = |id: &DeploymentId| self.deployments.get(id).is_some_and(|one| one.health != Health::Leaving);
        if matches!(region.stage, Stage::Served(id, _) if !is_there(&id)) {
            region.stage = Stage::Counting;
        }
        match region.stage {
            Stage::Asking => {}
            Stage::Counting if is_wanted => self.ask(key, client),
            Stage::Counting => {}
            Stage::Resting(until) if is_wanted && until.instant() <= now => self.ask(key, client),
            Stage::Resting(_) => {}
            Stage::Served(id, until) => {
                if let Some(deployment) = self.deployments.get_mut(&id) {
                    deployment.seen = now;
                }
                self.note_client(now, id, key.1, client);
                if until.instant() <= now && is_wanted {
                    self.ask(key, client);
                }
            }
        }
    }

    /// Takes what came of a wish.
    pub fn answered(&mut self, now: Instant, ticket: Ticket, answer: Answer) {
        self.take_answer(now, ticket, answer);
        self.ask_next();
    }

    fn take_answer(&mut self, now: Instant, ticket: Ticket, answer: Answer) {
        let Some(asked) = self.asked.remove(&ticket) else {
            self.counters.stray += 1;
            return;
        };
        match asked {
            Asked::Probe(rule, region, client) => {
                let Answer::Way(nodes) = answer else {
                    self.counters.failures += 1;
                    return self.rest(now, (rule, region));
                };
                self.found(now, (rule, region), client, nodes.last());
            }
            Asked::Look(id, client) => {
                let Answer::Around(candidates) = answer else { return self.looked(now, id, client, &[]) };
                self.looked(now, id, client, &candidates);
            }
            // It is not wanted any more, which could not be said before it was there.
            Asked::Setup(id) | Asked::Move(id) if self.is_leaving(id) => {
                // Also one that failed may be in force somewhere.
                self.lease_begins(now, id);
                if let (Answer::Done { session, nodes, .. }, Some(deployment)) = (answer, self.deployments.get_mut(&id))
                {
                    deployment.session = Some(session);
                    deployment.nodes = nearest_to_clients(nodes);
                }
                self.send_remove(id);
            }
            Asked::Setup(id) => {
                let Answer::Done { session, nodes, edge, address, lease } = answer else {
                    return self.not_set_up(now, id);
                };
                if nodes.is_empty() {
                    return self.not_set_up(now, id);
                }
                self.deployed(now, id, (session, lease), (nodes, edge, address));
            }
            Asked::Move(id) => {
                let unknown = MoveEnd::Unknown { renewed: false };
                self.move_ended(now, id, if let Answer::Move(end) = answer { end } else { unknown });
            }
            Asked::Remove(id) => {
                self.set_up_beside(id);
                if answer == Answer::Failed {
                    self.counters.failures += 1;
                    self.not_removed(now, id);
                } else {
                    self.forget(id);
                }
            }
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, due)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.pop_first();
            match due {
                Due::Sweep => self.sweep(now),
                Due::Deployment(id) => self.look_at(now, id),
                Due::Around(id) => self.look_around(now, id),
            }
        }
    }

    /// Returns when [`Placement::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the next change that is to be kept. Those that are there come before the next wish.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Returns the next wish.
    pub fn poll_wish(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    /// Returns the node with a rule's module that is nearest to a client.
    pub fn nearest(&self, rule: RuleId, client: IpAddr) -> Option<&Node> {
        let region = self.regions.get(&(rule, self.rules.get(&rule)?.region(client)))?;
        match region.stage {
            Stage::Served(id, _) => self.deployments.get(&id)?.nearest(),
            Stage::Counting | Stage::Asking | Stage::Resting(_) => None,
        }
    }

    /// Returns all deployments.
    pub fn deployments(&self) -> impl Iterator<Item = (DeploymentId, &Deployment)> {
        self.deployments.iter().map(|(id, deployment)| (*id, deployment))
    }

    /// Returns one deployment; nothing if it is gone.
    pub fn deployment(&self, id: DeploymentId) -> Option<&Deployment> {
        self.deployments.get(&id)
    }

    /// Returns how many deployments there are.
    pub fn deployment_count(&self) -> usize {
        self.deployments.len()
    }

    /// Returns the deployments of a rule.
    pub fn deployments_of(&self, rule: RuleId) -> impl Iterator<Item = (DeploymentId, &Deployment)> {
        self.deployments().filter(move |(_, one)| one.rule == rule)
    }

    /// Returns regions that share each of these deployments, so many of each at most, and how many there are in all.
    pub fn regions_of(&self, ids: &BTreeSet<DeploymentId>, most: usize) -> BTreeMap<DeploymentId, (Vec<IpNet>, usize)> {
        let mut shared = BTreeMap::<DeploymentId, (Vec<IpNet>, usize)>::new();
        for ((_, net), region) in &self.regions {
            let Stage::Served(id, _) = region.stage else { continue };
            if ids.contains(&id) {
                let (some, all) = shared.entry(id).or_default();
                some.extend((*all < most).then_some(*net));
                *all += 1;
            }
        }
        shared
    }

    /// Returns how many rules there are.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// Returns how many regions are counted.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Returns what happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The way to a client of a region is known, with its last node.
    fn found(&mut self, now: Instant, key: (RuleId, IpNet), client: IpAddr, edge: Option<&NodeId>) {
        if self.shut.contains(&key.0) {
            return self.rest(now, key);
        }
        let Some(edge) = edge else {
            self.counters.no_node += 1;
            return self.rest(now, key);
        };
        if !self.regions.contains_key(&key) {
            return;
        }
        // One that moves serves all clients, wherever it is.
        let moves = self.rules.get(&key.0).is_some_and(|rule| rule.moves.is_some());
        let shares = |deployment: &Deployment| {
            let is_there = moves || deployment.edge == *edge;
            deployment.rule == key.0 && is_there && deployment.health != Health::Leaving
        };
        let shared = self.deployments.iter_mut().find(|(_, deployment)| shares(deployment));
        let id = match shared {
            Some((id, deployment)) => {
                deployment.seen = now;
                Some(*id)
            }
            None => self.deploy(now, key.0, client, edge.clone()),
        };
        if let Some(id) = id {
            self.note_client(now, id, key.1, client);
        }
        match (id, self.regions.get_mut(&key)) {
            (Some(id), Some(region)) => region.succeed(Stage::Served(id, Moment::of(now + WAY_TIME))),
            (None, _) => {
                self.counters.full += 1;
                self.rest(now, key);
            }
            (Some(_), None) => {}
        }
    }

    fn deploy(&mut self, now: Instant, rule: RuleId, client: IpAddr, edge: NodeId) -> Option<DeploymentId> {
        let most = self.rules.get(&rule)?.deployments_max;
        let own = self.deployments.values().filter(|deployment| deployment.rule == rule).count();
        // The REMOVE of a rule that is gone may be for the same module, which it would take from this one.
        let is_leaving =
            |one: &Deployment| one.health == Health::Leaving && one.edge == edge && !self.rules.contains_key(&one.rule);
        if own >= most || self.deployments.len() >= DEPLOYMENTS_MAX || self.deployments.values().any(is_leaving) {
            return None;
        }
        let id = DeploymentId(self.next_number);
        self.next_number += 1;
        let deployment = Deployment {
            rule,
            client,
            session: None,
            nodes: Vec::new(),
            health: Health::New,
            seen: now,
            lease_until: now,
            lease: Duration::ZERO,
            edge,
            address: None,
            epoch: self.next_epoch,
            failures: 0,
            moving: None,
        };
        self.next_epoch = self.next_epoch.saturating_add(1);
        self.put(id, deployment);
        self.setup(id);
        Some(id)
    }

    fn deployed(
        &mut self,
        now: Instant,
        id: DeploymentId,
        (session, granted): (SessionId, Duration),
        (nodes, edge, address): (Vec<Node>, Option<NodeId>, Option<IpAddr>),
    ) {
        let Some(mut deployment) = self.deployments.get(&id).cloned() else { return };
        let Some(rule) = self.rules.get(&deployment.rule) else { return };
        let (lease, idle) = (granted.min(rule.lease), rule.idle);
        // By which others are known to share it: by the way, and not by who takes the module. One that moves is where it is.
        deployment.edge = edge.filter(|_| rule.moves.is_none()).unwrap_or(deployment.edge);
        let mut nodes = nearest_to_clients(nodes);
        nodes.iter_mut().for_each(|node| node.judge(&deployment.nodes));
        // Whom the module answers itself, the provider's server does not see any more.
        let busy = |nodes: &[Node]| nodes.iter().map(|node| node.activity).sum::<u64>();
        if busy(&nodes) > busy(&deployment.nodes) && !self.shut.contains(&deployment.rule) {
            deployment.seen = now;
        }
        // The way to its node is another one than that to the client, whose session stays.
        deployment.session = if deployment.address.is_none() { Some(session) } else { deployment.session };
        deployment.address = address.filter(|_| rule.moves.is_some()).or(deployment.address);
        deployment.nodes = nodes;
        (deployment.health, deployment.failures) = (Health::Running, 0);
        (deployment.lease, deployment.lease_until) = (lease, now + lease);
        let look = (now + (lease / 2).max(REFRESH_MIN)).min(deployment.seen + idle);
        self.put(id, deployment);
        match self.again.remove(&id) {
            true => self.setup(id),
            false => self.look_later(id, look),
        }
        self.watch(now, id);
        self.merge(id);
    }

    /// Leaves one deployment behind the last node of this one, which may be on another way since: the latest owner, whom nodes do not
    /// refuse. The other ones are not removed, which would take the module from it: what they have elsewhere goes with its lease. One whose
    /// SETUP is under way is looked at when that is answered.
    fn merge(&mut self, id: DeploymentId) {
        let Some(deployment) = self.deployments.get(&id) else { return };
        let is_beside = |one: &Deployment| {
            one.rule == deployment.rule && one.edge == deployment.edge && one.health != Health::Leaving
        };
        let beside = self.deployments().filter(|(id, one)| is_beside(one) && !self.is_being_set_up(*id));
        let mut beside: Vec<_> = beside.map(|(id, one)| (one.epoch, id, one.seen)).collect();
        beside.sort_unstable();
        let seen = beside.iter().map(|(_, _, seen)| *seen).max();
        let Some((_, stays, _)) = beside.pop() else { return };
        for (_, gone, _) in beside {
            let served = self.regions.values_mut().filter_map(|region| region.served_by(gone));
            served.for_each(|by| *by = stays);
            self.forget(gone);
        }
        if let (Some(deployment), Some(seen)) = (self.deployments.get_mut(&stays), seen) {
            deployment.seen = seen;
        }
    }

    fn not_set_up(&mut self, now: Instant, id: DeploymentId) {
        self.counters.failures += 1;
        self.not_deployed(now, id);
    }

    fn not_deployed(&mut self, now: Instant, id: DeploymentId) {
        // The next try says what its rule says then.
        self.again.remove(&id);
        let Some(deployment) = self.deployments.get_mut(&id) else { return };
        let again = now + wait_after(deployment.failures);
        if deployment.health == Health::New || again >= deployment.lease_until {
            self.rest_served(now, id);
            return self.forget(id);
        }
        deployment.health = Health::Ailing;
        deployment.failures += 1;
        let deployment = deployment.clone();
        self.put(id, deployment);
        self.look_later(id, again);
    }

    /// Refreshes a deployment whose clients are seen, and removes others.
    fn look_at(&mut self, now: Instant, id: DeploymentId) {
        self.next_look.remove(&id);
        if self.is_leaving(id) {
            // It would take the module from another one that has come since.
            return if self.beside(id).is_empty() { self.send_remove(id) } else { self.forget(id) };
        }
        let Some(deployment) = self.deployments.get(&id) else { return };
        let Some(rule) = self.rules.get(&deployment.rule) else { return };
        let (idle_at, refresh_at) = (deployment.seen + rule.idle, deployment.lease_until - deployment.lease / 2);
        if idle_at <= now && self.may_share_a_node(id) {
            // A REMOVE would take the module from the others, too. What only this one has goes with its lease.
            self.forget(id);
        } else if idle_at <= now {
            self.remove(id);
        } else if refresh_at <= now || deployment.health == Health::Ailing {
            self.setup(id);
        } else {
            self.look_later(id, idle_at.min(refresh_at));
        }
    }

    fn setup(&mut self, id: DeploymentId) {
        if self.send_move(id) {
            return;
        }
        let Some(Deployment { rule, client, address, session, edge, epoch, .. }) = self.deployments.get(&id).cloned()
        else {
            return;
        };
        let session = session.filter(|_| address.is_none());
        let ticket = self.ticket(Asked::Setup(id));
        self.wishes.push_back(Wish::Setup { ticket, deployment: id, rule, client, address, session, edge, epoch });
    }

    fn remove(&mut self, id: DeploymentId) {
        let Some(mut deployment) = self.deployments.get(&id).cloned() else { return };
        (deployment.health, deployment.failures) = (Health::Leaving, 0);
        self.put(id, deployment);
        self.look_no_more(id);
        // One that overtakes a SETUP removes nothing.
        if !self.is_being_set_up(id) {
            self.send_remove(id);
        }
    }

    fn is_being_set_up(&self, id: DeploymentId) -> bool {
        self.asked.values().any(|asked| matches!(asked, Asked::Setup(other) | Asked::Move(other) if *other == id))
    }

    /// Returns how long leases of a rule are; nothing of one that is gone.
    fn lease_of(&self, rule: RuleId) -> Duration {
        self.rules.get(&rule).map(|rule| rule.lease).unwrap_or_default()
    }

    /// Takes note that nodes may have a new lease from here on.
    fn lease_begins(&mut self, now: Instant, id: DeploymentId) {
        let Some(rule) = self.deployments.get(&id).map(|deployment| deployment.rule) else { return };
        let lease_until = now + self.lease_of(rule);
        if let Some(deployment) = self.deployments.get_mut(&id) {
            deployment.lease_until = lease_until;
        }
    }

    fn is_leaving(&self, id: DeploymentId) -> bool {
        self.deployments.get(&id).is_some_and(|deployment| deployment.health == Health::Leaving)
    }

    /// Has nodes asked again for what a REMOVE has taken from others.
    fn set_up_beside(&mut self, id: DeploymentId) {
        self.beside(id).into_iter().for_each(|beside| self.set_up_again(beside));
    }

    /// Returns the deployments that stay, of whichever rule, with the same module on a node of this one.
    fn beside(&self, id: DeploymentId) -> Vec<DeploymentId> {
        let Some(own) = self.deployments.get(&id) else { return Vec::new() };
        let is_beside = |other: DeploymentId, one: &Deployment| {
            other != id
                && one.health != Health::Leaving
                && self.have_one_module(one.rule, own.rule)
                && one.places().any(|place| own.places().any(|own| own == place))
        };
        self.deployments().filter(|(other, one)| is_beside(*other, one)).map(|(other, _)| other).collect()
    }

    /// Returns whether another deployment that stays has, or may soon have, the same module on a node of this one.
    fn may_share_a_node(&self, id: DeploymentId) -> bool {
        let Some(own) = self.deployments.get(&id) else { return false };
        // Where a new one will be is not known yet.
        let is_new = |one: &Deployment| one.health == Health::New && self.have_one_module(one.rule, own.rule);
        !self.beside(id).is_empty() || self.deployments.values().any(is_new)
    }

    /// Returns whether rules deploy the same module, which one may that is not known any more.
    fn have_one_module(&self, one: RuleId, other: RuleId) -> bool {
        let module = |rule: RuleId| self.rules.get(&rule).map(|rule| &rule.module).or(self.gone.get(&rule));
        one == other || module(one).zip(module(other)).is_none_or(|(one, other)| one == other)
    }

    fn send_remove(&mut self, id: DeploymentId) {
        let Some(Deployment { rule, client, address, session, moving, .. }) = self.deployments.get(&id).cloned() else {
            return;
        };
        let addresses = address.into_iter().chain(moving.map(|moving| moving.address)).collect();
        let ticket = self.ticket(Asked::Remove(id));
        self.wishes.push_back(Wish::Remove { ticket, deployment: id, rule, client, addresses, session });
    }

    /// Has nodes asked again that may still have the module, as long as its lease may be in force; what is left goes with that.
    fn not_removed(&mut self, now: Instant, id: DeploymentId) {
        let Some(deployment) = self.deployments.get_mut(&id) else { return };
        deployment.failures += 1;
        let again = now + REMOVE_AGAIN;
        if deployment.failures >= REMOVES_MAX || deployment.lease_until <= again {
            return self.forget(id);
        }
        self.look_later(id, again);
    }

    fn forget(&mut self, id: DeploymentId) {
        self.look_no_more(id);
        self.again.remove(&id);
        self.watch_no_more(id);
        self.close_record(id, Ended::Lost);
        if self.deployments.remove(&id).is_some() {
            self.changes.push_back(Change::Forget(id));
        }
    }

    /// Leaves the regions alone that a deployment was to serve.
    fn rest_served(&mut self, now: Instant, id: DeploymentId) {
        let served = |region: &&mut Region| matches!(region.stage, Stage::Served(by, _) if by == id);
        self.regions.values_mut().filter(served).for_each(|region| region.rest(now));
    }

    fn rest(&mut self, now: Instant, key: (RuleId, IpNet)) {
        if let Some(region) = self.regions.get_mut(&key) {
            region.rest(now);
        }
    }

    fn put(&mut self, id: DeploymentId, deployment: Deployment) {
        self.changes.push_back(Change::Put(id, Box::new(deployment.clone())));
        self.deployments.insert(id, deployment);
    }

    fn look_later(&mut self, id: DeploymentId, at: Instant) {
        self.look_no_more(id);
        self.next_look.insert(id, at);
        self.due.insert((at, Due::Deployment(id)));
    }

    fn look_no_more(&mut self, id: DeploymentId) {
        if let Some(at) = self.next_look.remove(&id) {
            self.due.remove(&(at, Due::Deployment(id)));
        }
    }

    fn ticket(&mut self, asked: Asked) -> Ticket {
        let ticket = Ticket(self.next_number);
        self.next_number += 1;
        self.asked.insert(ticket, asked);
        ticket
    }
}

/// Leaves as many nodes as are known of a deployment.
fn nearest_to_clients(mut nodes: Vec<Node>) -> Vec<Node> {
    nodes.drain(..nodes.len().saturating_sub(NODES_MAX));
    nodes
}
