// SPDX-License-Identifier: Apache-2.0
//! The agent's loop: events to the placement, its changes to the table, its wishes to the node.

mod reload;
mod sites;
mod status;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as StdInstant, SystemTime};

use anyhow::Result;
use netserv_api::AgentRule;
use netserv_model::Instant;
use netserv_model::control::ControlMessage;
use netserv_model::{ModuleName, NodeId, Topic};
use netserv_placement::{Change, DeploymentId, Health, Placement, Rule, RuleId};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::conditions::{Conditions, Turn};
use crate::config::{Config, Deploy};
use crate::event::{Event, FlowCount, Observation, Observations};
use crate::feedback::Feedbacks;
use crate::limits::{RELAY_REGIONS_MAX, REQUESTS_MAX, RESTART_TELL_AGAIN, RESTART_TELLS_MAX, RESTART_TELLS_UNHEARD};
use crate::names::Names;
use crate::node::NodeClient;
use crate::page_counts::{PageCounts, Shown};
use crate::relays::{Relay, RelayTables, Relays, keep_told};
use crate::requests::{self, Reach};
use crate::sensors::Sensors;
use crate::table::{Asked, Row, Table};

/// The agent at work. One per process.
pub struct Agent {
    /// The file that the configuration is read from.
    path: PathBuf,
    config: Arc<Config>,
    /// Tells of other configurations.
    configs: watch::Sender<Arc<Config>>,
    sensors: Sensors,
    placement: Placement,
    table: Table,
    conditions: Conditions,
    feedbacks: Feedbacks,
    /// How many flows there were when they were looked at last, by their name.
    flows: BTreeMap<String, FlowCount>,
    /// Nodes of deployments that are just being told something.
    telling: BTreeSet<(DeploymentId, NodeId)>,
    /// Names of the nodes that have modules.
    names: Names,
    relays: Relays,
    /// What modules count, for the page.
    page_counts: PageCounts,
    shown: Shown,
    /// What is to be removed for each deployment, also of rules that are gone.
    modules: BTreeMap<DeploymentId, Asked>,
    node: Arc<NodeClient>,
    turns: Arc<Semaphore>,
    answers: mpsc::UnboundedSender<Event>,
    observations: Observations,
    numbers: Numbers,
    begun: StdInstant,
}

impl Agent {
    /// Returns an agent that goes on with what its table has. What came of its wishes comes by `answers`, and what configuration it has
    /// is told by `configs`.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn new(
        (path, configs): (PathBuf, watch::Sender<Arc<Config>>),
        sensors: Sensors,
        table: Table,
        node: NodeClient,
        answers: mpsc::UnboundedSender<Event>,
        observations: Observations,
    ) -> Result<Agent> {
        let config = Arc::clone(&configs.borrow());
        let kept = table.all()?;
        let modules = kept.iter().map(|(id, row)| (*id, row.asked())).collect();
        let (node, turns) = (Arc::new(node), Arc::new(Semaphore::new(REQUESTS_MAX)));
        let (placement, begun) = (Placement::new(config.rules.iter().map(numbered)), StdInstant::now());
        let conditions = Conditions::new(&config, &table.off()?);
        let feedbacks = Feedbacks::new(&config);
        let (telling, names) = (BTreeSet::new(), Names::new(config.names.clone()));
        let relays = Relays::new(config.relays.clone());
        let mut agent = Agent {
            path,
            config,
            configs,
            sensors,
            placement,
            table,
            conditions,
            feedbacks,
            flows: BTreeMap::new(),
            telling,
            names,
            relays,
            page_counts: PageCounts::default(),
            shown: Shown::default(),
            modules,
            node,
            turns,
            answers,
            observations,
            numbers: Numbers::default(),
            begun,
        };
        agent.set_gates();
        agent.placement.begin_epochs(unix_ms());
        let now = agent.now();
        let kept: Vec<_> = kept.iter().map(|(id, row)| (*id, row.deployment(&agent.config, now))).collect();
        agent.placement.restore(now, kept);
        for (id, deployment) in agent.placement.deployments() {
            agent.names.put(id, deployment);
        }
        // What was switched off just before goes.
        for rule in agent.conditions.switched_off() {
            agent.placement.stop(rule);
        }
        Ok(agent)
    }

    /// Works until there are no events any more.
    ///
    /// # Errors
    /// What is deployed cannot be kept.
    pub async fn run(
        mut self,
        mut events: mpsc::Receiver<Event>,
        mut seen: mpsc::Receiver<Vec<Observation>>,
        mut answers: mpsc::UnboundedReceiver<Event>,
    ) -> Result<()> {
        tokio::spawn(keep_told(self.relays.news()));
        loop {
            // First, since there may always be something else to do.
            self.placement.handle_timeout(self.now());
            self.settle()?;
            let due = self.placement.poll_timeout().map(|due| due.since(self.now()));
            // Who asks waits for one batch of observations at most.
            let event = tokio::select! {
                biased;
                answer = answers.recv() => answer,
                event = events.recv() => event,
                batch = seen.recv() => {
                    let Some(batch) = batch else { return Ok(()) };
                    let now = self.now();
                    batch.iter().for_each(|one| self.placement.observe(now, one.rule, one.client, one.count));
                    continue;
                }
                () = tokio::time::sleep(due.unwrap_or(LOOK_EVERY)) => continue,
            };
            let Some(event) = event else { return Ok(()) };
            self.handle(event)?;
        }
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        let now = self.now();
        match event {
            Event::Read(metric, reading) => {
                let edges = |rule: RuleId| self.placement.deployments_of(rule).count();
                for (rule, text) in self.feedbacks.note(metric, &reading, edges) {
                    self.tell(rule, &text);
                }
                for (rule, turn) in self.conditions.note(metric, reading) {
                    let name = self.name(rule);
                    match turn {
                        Turn::Open | Turn::Shut => {
                            tracing::info!(rule = name, ?turn, "a rule by its metric");
                            self.placement.gate(rule, turn == Turn::Open);
                        }
                        Turn::Deserted => {
                            tracing::warn!(rule = name, "the server of a rule does not answer: its modules go");
                            self.placement.stop(rule);
                        }
                    }
                }
            }
            Event::Began(metric) => {
                let rules =
                    self.config.rules.iter().filter(|rule| rule.server.is_some() && rule.restart_topic.is_some());
                let by =
                    |rule: &&Deploy| rule.server.as_ref().and_then(|name| self.config.metric(name)) == Some(metric);
                rules.filter(by).for_each(|rule| self.tell_of_restart(rule));
            }
            Event::Flows(name, count) => {
                let before = self.flows.insert(name.clone(), count.clone());
                if let Err(why) = count
                    && before.is_none_or(|before| before.is_ok())
                {
                    tracing::warn!(flows = name, "not all flows are seen: {why}");
                }
            }
            Event::Switch(rule, on, reply) => self.switch(&rule, on, reply)?,
            Event::Reload(reply) => {
                let reloaded = self.reload().map_err(|error| format!("{error:#}"));
                if let Err(why) = &reloaded {
                    tracing::error!("the configuration stays as it was: {why}");
                }
                // Whoever asks may have gone.
                let _ = reply.map(|reply| reply.send(reloaded));
            }
            Event::Told(deployment, node) => _ = self.telling.remove(&(deployment, node)),
            Event::Drained(module, node) => self.drained(&module, &node),
            Event::Answered(ticket, answer) => {
                self.placement.answered(now, ticket, answer);
                self.relays.look_again();
            }
            // Whoever asks may have gone.
            Event::Nearest(rule, client, reply) => drop(reply.send(self.placement.nearest(rule, client).cloned())),
            Event::Sites(reply) => drop(reply.send(self.sites())),
            Event::Looked(deployment, counted) => self.page_counts.told(StdInstant::now(), deployment, counted),
            Event::Status(reply) => drop(reply.send(self.status())),
        }
        Ok(())
    }

    fn switch(&mut self, rule: &str, on: bool, reply: oneshot::Sender<AgentRule>) -> Result<()> {
        // It may have gone since it was named.
        let Some(rule) = self.config.rules.iter().find(|one| one.name == rule) else { return Ok(()) };
        self.table.switch(&rule.name, on)?;
        self.conditions.switch(rule.id, on);
        match on {
            true => {
                // Its floating addresses may have had another owner meanwhile, by hand.
                self.placement.begin_epochs(unix_ms());
                self.placement.gate(rule.id, self.conditions.is_open(rule.id));
            }
            false => self.placement.stop(rule.id),
        }
        // Whoever asks may have gone.
        let _ = reply.send(self.conditions.rule(rule, &self.feedbacks));
        Ok(())
    }

    /// Has the deployments looked at that a drained node has.
    fn drained(&mut self, module: &ModuleName, node: &NodeId) {
        let now = self.now();
        let own = self.modules.iter().filter(|(_, asked)| asked.module == *module);
        own.for_each(|(id, _)| self.placement.drained(now, *id, node));
    }

    fn set_gates(&mut self) {
        for rule in &self.config.rules {
            self.placement.gate(rule.id, self.conditions.is_open(rule.id));
        }
    }

    /// Returns a rule's name; nothing if it is gone.
    fn name(&self, rule: RuleId) -> &str {
        self.config.get(rule).map_or("", |rule| &rule.name)
    }

    /// Keeps what changed, then carries out what is wished.
    fn settle(&mut self) -> Result<()> {
        while let Some(change) = self.placement.poll_change() {
            self.relays.look_again();
            match change {
                Change::Put(id, deployment) => {
                    self.names.put(id, &deployment);
                    if let Some(rule) = self.config.get(deployment.rule) {
                        let before = self.modules.get(&id).is_some_and(|asked| asked.both_ways);
                        // Whoever had it on the way back loses it with the others.
                        let both_ways = rule.both_ways || before;
                        let (rule, module) = (rule.name.clone(), rule.module.name.clone());
                        self.modules.insert(id, Asked { rule, module, both_ways });
                    }
                    if let Some(asked) = self.modules.get(&id) {
                        self.table.put(id, &Row::of(&deployment, asked))?;
                    }
                }
                Change::Forget(id) => {
                    self.modules.remove(&id);
                    self.names.forget(id);
                    self.table.forget(id)?;
                }
            }
        }
        // Who asks for the nearest node is answered after this.
        if let Err(error) = self.names.write(StdInstant::now()) {
            tracing::error!("{error:#}");
        }
        self.write_relays();
        while let Some(wish) = self.placement.poll_wish() {
            self.carry_out(wish);
        }
        Ok(())
    }

    /// Has Kamailio know of the relays, if they are others than it was told.
    fn write_relays(&mut self) {
        let now = StdInstant::now();
        let Some(tables) = self.relays.due(now).cloned() else { return };
        let relays = self.relays_of(&tables);
        if let Err(error) = self.relays.write(now, &relays) {
            tracing::error!("{error:#}");
        }
    }

    /// Returns the relays that run, with the regions that share each.
    fn relays_of(&self, tables: &RelayTables) -> Vec<Relay> {
        let Some(rule) = self.config.rules.iter().find(|rule| rule.name == tables.rule) else { return Vec::new() };
        let running: BTreeMap<_, _> = self
            .placement
            .deployments_of(rule.id)
            .filter_map(|(id, one)| {
                let own = &one.nearest()?.addresses;
                let address = rule.floating.first().or_else(|| own.iter().find(|one| one.is_ipv4())).or(own.first())?;
                Some((id, (*address, rule.rule().region(one.client))))
            })
            .collect();
        let mut shared = self.placement.regions_of(&running.keys().copied().collect(), RELAY_REGIONS_MAX);
        let relay = |(id, (address, first))| {
            // After a start, others are known once they come again.
            let (known, all) = shared.remove(&id).unwrap_or_default();
            let others = known.into_iter().filter(|region| *region != first);
            let regions = std::iter::once(first).chain(others).map(|region| (region.addr(), region.prefix_len()));
            let regions: Vec<_> = regions.collect();
            Relay { id, address, regions_all: all.max(regions.len()), regions }
        };
        running.into_iter().map(relay).collect()
    }

    /// Tells all modules of a rule something, each on its node. Those that did not take the last message yet are told the next one.
    fn tell(&mut self, rule: RuleId, text: &str) {
        let Some(Deploy { module, feedback: Some(feedback), both_ways, .. }) = self.config.get(rule) else { return };
        let is_there = |health: Health| matches!(health, Health::Running | Health::Ailing);
        let own = self.placement.deployments_of(rule).filter(|(_, one)| is_there(one.health));
        let nodes =
            own.flat_map(|(id, deployment)| deployment.nodes.iter().map(move |node| (id, deployment, &node.name)));
        for (id, deployment, name) in nodes {
            if !self.telling.insert((id, name.clone())) {
                continue;
            }
            let message = self.numbers.message(&feedback.topic, text);
            let (node, turns, answers) = (Arc::clone(&self.node), Arc::clone(&self.turns), self.answers.clone());
            let (module, both_ways, name) = (module.name.clone(), *both_ways, name.clone());
            let to = self.config.toward(rule, deployment.client).at(deployment.address);
            tokio::spawn(async move {
                let turn = turns.acquire().await;
                requests::tell(&node, (&module, both_ways), &message, (&to, Some(&name)), &[]).await;
                drop(turn);
                // An agent that ends wants no answers.
                let _ = answers.send(Event::Told(id, name));
            });
        }
    }

    /// Tells all modules of a rule that their server has begun anew, until all that are known have taken that, and those that answer: also on nodes
    /// that are not known yet to have it, since they were still compiling it.
    fn tell_of_restart(&self, rule: &Deploy) {
        let Some(topic) = &rule.restart_topic else { return };
        // A module that is to go may not: a REMOVE can fail, and clients that come again find the module.
        for (_, deployment) in self.placement.deployments_of(rule.id) {
            let to = self.config.toward(rule.id, deployment.client).at(deployment.address);
            tracing::info!(
                rule = rule.name,
                region = to.region,
                "the server of a rule has begun anew: modules are told"
            );
            let (node, turns, topic) = (Arc::clone(&self.node), Arc::clone(&self.turns), topic.clone());
            let numbers = self.numbers.clone();
            let (module, both_ways) = (rule.module.name.clone(), rule.both_ways);
            let known: Vec<NodeId> = deployment.nodes.iter().map(|node| node.name.clone()).collect();
            tokio::spawn(async move {
                let mut all_known = 0;
                for _ in 0..RESTART_TELLS_MAX {
                    let turn = turns.acquire().await;
                    // Its number is above those of what the module was told meanwhile.
                    let message = numbers.message(&topic, RESTARTED);
                    let reach = requests::tell(&node, (&module, both_ways), &message, (&to, None), &known).await;
                    drop(turn);
                    all_known += u32::from(reach == Reach::AllKnown);
                    if reach == Reach::All || all_known == RESTART_TELLS_UNHEARD {
                        break;
                    }
                    tokio::time::sleep(RESTART_TELL_AGAIN).await;
                }
            });
        }
    }

    fn now(&self) -> Instant {
        Instant::default() + self.begun.elapsed()
    }
}

/// The numbers of control messages, from the clock, so that they grow over restarts. If the clock is set back they grow all the same: nodes refuse
/// a message whose number is not above the last one.
#[derive(Clone, Debug, Default)]
struct Numbers(Arc<AtomicU64>);

impl Numbers {
    fn message(&self, topic: &Topic, text: &str) -> ControlMessage {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seq = self.next(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX));
        ControlMessage { topic: topic.clone(), seq, body: text.as_bytes().to_vec() }
    }

    fn next(&self, clock: u64) -> u64 {
        let after = |last: u64| clock.max(last.saturating_add(1));
        let last = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        after(last.unwrap_or_else(|last| last))
    }
}

fn unix_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

fn numbered(rule: &Deploy) -> (RuleId, Rule) {
    (rule.id, rule.rule())
}

/// What modules are told when their server has begun anew.
const RESTARTED: &str = "restarted";
/// How long the loop sleeps when nothing is due.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: nodes take what the agent tells them next, also after its clock was set back.
    #[test]
    fn numbers_of_messages_grow_whatever_the_clock_does() {
        let numbers = Numbers::default();
        let shared = numbers.clone();
        let found = [numbers.next(100), shared.next(40), numbers.next(40), numbers.next(200), shared.next(200)];
        assert_eq!(found, [100, 101, 102, 200, 201]);
    }
}
