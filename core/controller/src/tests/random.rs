// SPDX-License-Identifier: Apache-2.0
//! Random interleavings of requests, outcomes, failures and time against a small model of the node around the
//! controller, which carries out one ordered effect of a user at a time and each at any later time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use netserv_ledger::fake::{Metered, sums};
use netserv_model::effect::{
    Command, Effect, EffectId, EffectOutcome, FilterChange, FilterId, FilterRule, InstalledRecord, Job, ModuleSlot,
    News, PackageJob, StoreJob, Stored, WorkerJob, WorkerNews,
};
use netserv_model::manifest::Manifest;
use netserv_model::policy::{ContainerLimits, NodePolicy, Permits};
use netserv_model::request::{Body, ModuleState, NodeReport, Outcome, Remove, Request};
use netserv_model::usage::{UsageKey, Used};
use netserv_model::{Flavour, ModuleName, RefusalKind, SessionId, UserId, WorkerId};
use proptest::prelude::*;

use crate::cx::timers::Timer;

use super::promises::{Promises, STRANGER};
use super::script::{Node, START, manifest, name, packet, policy, refusal, setup, user, user_policy};

const USERS: [&str; 2] = ["jane", "john"];

#[derive(Clone, Debug)]
enum Step {
    /// A SETUP of a session for module `module` at version `1.0.version`, with a filter of its own or the manifest's.
    Setup { user: usize, session: u8, module: u8, version: u8, filter: u8, property: bool, ttl_s: u64 },
    /// A REMOVE of a session, or of all.
    Remove { user: usize, session: Option<u8>, module: u8 },
    /// A SETUP of before comes again, as when a path changed.
    Again { which: usize },
    /// A stranger sends a SETUP of before by a session of its own.
    Copy { which: usize },
    /// The path of a SETUP of before leads elsewhere.
    Withdraw { which: usize },
    /// One of the things that are due happens, well or badly; where it is a package, it is of one flavour or the other.
    Due { which: usize, good: bool, osgi: bool },
    /// Time passes.
    Sleep { ms: u64 },
    /// A running module traps.
    Trap { which: usize },
    /// A worker dies, of a module or of nothing known.
    Die { which: usize, culprit: Option<usize> },
    /// The operator takes a user out of the policy, or in again.
    Toggle { user: usize },
    /// The operator gives a user another rate and other limits.
    Tighten { user: usize, packets_per_second: u64 },
    /// The node stops, in order or not, and starts again.
    Restart { orderly: bool },
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_and_nothing_is_left(
        steps in prop::collection::vec(step(), 1..160),
        eager in any::<bool>(),
    ) {
        let mut world = World::new(eager);
        for step in &steps {
            world.take(step);
            world.check();
        }
        world.end();
    }
}

/// What the node around the controller holds, which follows from the commands and the events alone.
struct World {
    node: Node,
    policy: NodePolicy,
    /// Whether ordered effects are done at once and well, as the machine does in its good hours.
    eager: bool,
    asked: BTreeMap<u64, (UserId, ModuleName, Option<SessionId>)>,
    setups: Vec<Request>,
    promises: Promises,
    answered: BTreeSet<u64>,
    fetching: BTreeMap<EffectId, Manifest>,
    abandoned: BTreeSet<EffectId>,
    /// The effects of each user that are not done; the first one is under way.
    lanes: BTreeMap<UserId, VecDeque<Effect>>,
    workers: BTreeMap<WorkerId, Worker>,
    rules: BTreeMap<FilterId, Rule>,
    stored: BTreeMap<(UserId, ModuleName), InstalledRecord>,
    stored_usage: BTreeMap<UsageKey, Used>,
    /// The readings and writings of usage that are not done.
    node_open: VecDeque<Effect>,
    metered: Metered,
    settled: bool,
    /// What the containers of each user are held to.
    held: BTreeMap<UserId, (Permits, ContainerLimits)>,
    /// What a fetch of a digest gives.
    packages: BTreeMap<netserv_model::Digest, Manifest>,
}

/// Where the packets that a filter matches go.
#[derive(Debug)]
struct Rule {
    worker: WorkerId,
    slot: ModuleSlot,
    module: ModuleName,
    filter: String,
}

struct Worker {
    generation: EffectId,
    ready: bool,
    modules: BTreeMap<ModuleSlot, Module>,
    /// Places whose load is still to be answered although they were unloaded.
    owed: BTreeSet<ModuleSlot>,
}

#[derive(Clone, Copy, PartialEq)]
enum Module {
    Loading,
    Loaded,
}

/// Something that will happen.
enum Due {
    Package(EffectId),
    Node,
    Lane(UserId),
    Start(WorkerId),
    Load(WorkerId, ModuleSlot),
}

impl World {
    fn new(eager: bool) -> World {
        let mut policy = policy();
        policy.users.insert(user("john"), user_policy("john", "10.2.0.0/16"));
        policy.users.values_mut().for_each(|user| user.modules_max = 3);
        World {
            node: Node::with(policy.clone()),
            policy,
            eager,
            asked: BTreeMap::new(),
            setups: Vec::new(),
            promises: Promises::default(),
            answered: BTreeSet::new(),
            fetching: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            lanes: BTreeMap::new(),
            workers: BTreeMap::new(),
            rules: BTreeMap::new(),
            stored: BTreeMap::new(),
            stored_usage: BTreeMap::new(),
            node_open: VecDeque::new(),
            metered: Metered::default(),
            settled: false,
            held: BTreeMap::new(),
            packages: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        self.metered.count();
        match step {
            Step::Restart { orderly } => self.restart(*orderly),
            Step::Setup { user, session, module, version, filter, property, ttl_s } => {
                let mut setup = setup(&format!("m{module}@1.0.{version}"));
                let mut manifest = manifest(&setup);
                packet(&mut manifest).filters = vec!["tcp dst 10.2.0.0/24".parse().unwrap()];
                setup.digest.0[1] = *module;
                self.packages.insert(setup.digest, manifest);
                setup.filters = match filter {
                    0 => Vec::new(),
                    n => vec![format!("udp dst 10.2.{n}.0/24").parse().unwrap()],
                };
                if *property {
                    setup.properties.insert("sample".to_owned(), "1".to_owned());
                }
                setup.ttl = Duration::from_secs(*ttl_s);
                setup.prepare = *ttl_s % 4 == 3;
                self.send(USERS[*user], Some(*session), setup.module.name.clone(), Body::from(setup));
            }
            Step::Remove { user, session, module } => {
                let module = name(&format!("m{module}"));
                let remove = Remove { module: module.clone(), force: false, all: session.is_none(), epoch: None };
                self.send(USERS[*user], *session, module, Body::Remove(remove));
            }
            Step::Again { which } | Step::Withdraw { which } | Step::Copy { which } => {
                let Some(mut request) = self.setups.get(which % self.setups.len().max(1)).cloned() else { return };
                let Body::Setup(setup) = &request.body else { unreachable!("only those are kept") };
                let (user, module) = (request.user.clone().unwrap(), setup.module.name.clone());
                if let Step::Withdraw { .. } = step {
                    self.node.controller.withdraw(self.node.now, &user, &module, request.nonce);
                } else {
                    if let Step::Copy { .. } = step {
                        request.session = STRANGER;
                    }
                    self.ask((user, module), Some(request.session), request);
                }
            }
            Step::Due { which, good, osgi } => self.happen(*which, *good, *osgi),
            Step::Sleep { ms } => self.sleep(Duration::from_millis(*ms)),
            Step::Trap { which } => self.trap(*which),
            Step::Die { which, culprit } => self.die(*which, *culprit),
            Step::Toggle { user: index } => {
                let user = user(USERS[*index]);
                let current = &mut self.node.policy;
                if current.users.remove(&user).is_none() {
                    current.users.insert(user.clone(), self.policy.users[&user].clone());
                }
                self.node.apply_policy();
            }
            Step::Tighten { user: index, packets_per_second } => {
                for policy in [&mut self.policy, &mut self.node.policy] {
                    if let Some(user) = policy.users.get_mut(&user(USERS[*index])) {
                        user.network.packets_per_second = *packets_per_second;
                        user.container.memory_bytes = 1 << 26 | *packets_per_second;
                    }
                }
                self.node.apply_policy();
            }
        }
        self.obey_all();
    }

    fn send(&mut self, by: &str, session: Option<u8>, module: ModuleName, body: Body) {
        let session = session.map(|session| SessionId([session; 16]));
        let mut request: Request = self.node.request(by, body);
        request.session = session.unwrap_or(request.session);
        // The node takes no note of what unknown users ask for.
        if let (Body::Setup(_), true) = (&request.body, self.node.policy.users.contains_key(&user(by))) {
            self.setups.push(request.clone());
        }
        self.ask((user(by), module), session, request);
    }

    fn ask(&mut self, (user, module): (UserId, ModuleName), session: Option<SessionId>, request: Request) {
        let id = self.node.send(request.clone());
        self.promises.asked(id, (&user, &module), session, request);
        self.asked.insert(id, (user, module, session));
    }

    fn due(&self) -> Vec<Due> {
        let mut due: Vec<Due> = self.fetching.keys().map(|id| Due::Package(*id)).collect();
        due.extend(self.abandoned.iter().map(|id| Due::Package(*id)));
        due.extend((!self.node_open.is_empty()).then_some(Due::Node));
        due.extend(self.lanes.iter().filter(|(_, lane)| !lane.is_empty()).map(|(user, _)| Due::Lane(user.clone())));
        for (id, worker) in &self.workers {
            if !worker.ready {
                due.push(Due::Start(id.clone()));
            }
            let loading = worker.modules.iter().filter(|(_, module)| **module == Module::Loading);
            due.extend(loading.map(|(slot, _)| Due::Load(id.clone(), *slot)));
            due.extend(worker.owed.iter().map(|slot| Due::Load(id.clone(), *slot)));
        }
        due
    }

    fn happen(&mut self, which: usize, good: bool, osgi: bool) {
        let mut due = self.due();
        if due.is_empty() {
            return;
        }
        match due.swap_remove(which % due.len()) {
            Due::Package(id) => {
                let fetched = self.fetching.remove(&id).filter(|_| good);
                self.abandoned.remove(&id);
                let outcome = match fetched.map(Box::new) {
                    Some(manifest) => {
                        EffectOutcome::Fetched { manifest, flavour: if osgi { Flavour::Osgi } else { Flavour::Wasm } }
                    }
                    None => EffectOutcome::Refused(refusal(RefusalKind::FetchFailed)),
                };
                self.node.controller.handle_outcome(self.node.now, id, outcome);
            }
            Due::Node => self.carry_out_of_node(good),
            Due::Lane(user) => self.carry_out(&user, good),
            Due::Start(worker) => {
                self.workers.get_mut(&worker).unwrap().ready = good;
                let refusal = refusal(RefusalKind::NodeFailed);
                self.tell(
                    &worker,
                    if good {
                        WorkerNews::Ready { addresses: Vec::new() }
                    } else {
                        WorkerNews::Died { refusal, culprit: None }
                    },
                );
                if !good {
                    self.lose(&worker);
                }
            }
            Due::Load(worker, slot) => {
                let inside = self.workers.get_mut(&worker).unwrap();
                if !inside.owed.remove(&slot) {
                    let module = good.then_some(Module::Loaded);
                    inside.modules.remove(&slot);
                    inside.modules.extend(module.map(|module| (slot, module)));
                    if !good {
                        self.metered.end_module(&worker, slot);
                    }
                }
                let refusal = refusal(RefusalKind::Trapped);
                let news = if good { WorkerNews::Loaded(slot) } else { WorkerNews::Failed { slot, refusal } };
                self.tell(&worker, news);
            }
        }
    }

    fn tell(&mut self, worker: &WorkerId, what: WorkerNews) {
        let generation = self.workers[worker].generation;
        self.node.controller.handle_news(self.node.now, News { worker: worker.clone(), generation, what });
    }

    /// Carries out the first effect of a user; `good` says how a change of rules ends, and the load of a module.
    fn carry_out(&mut self, user: &UserId, good: bool) {
        let lane = self.lanes.get_mut(user).unwrap();
        let Effect { id, job, .. } = lane.pop_front().unwrap();
        let done = match job {
            Job::Packages(_)
            | Job::Addresses(_)
            | Job::Measure
            | Job::ReadMeters
            | Job::Route(_)
            | Job::AskAddress { .. }
            | Job::FindHolder { .. }
            | Job::AskList { .. }
            | Job::Store(StoreJob::PutList(_))
            | Job::Store(StoreJob::ForgetUser { .. })
            | Job::Store(StoreJob::PutUsage(_) | StoreJob::PutMessage { .. }) => {
                unreachable!("they are in no lane")
            }
            Job::Permit(permits) => {
                self.held.entry(user.clone()).or_default().0 = *permits;
                true
            }
            Job::Floating(_) => unreachable!("no address floats here"),
            Job::Limit(limits) => {
                self.held.entry(user.clone()).or_default().1 = limits;
                true
            }
            Job::Workers(job) => self.order(id, job, good),
            Job::Filters(change) => (good || change.add.is_empty()) && self.change(change),
            Job::Intercepts(_) => unreachable!("no module here intercepts"),
            Job::Store(StoreJob::Put(record)) => {
                self.stored.insert((record.user.clone(), record.module.name.clone()), *record);
                true
            }
            Job::Store(StoreJob::Forget { user, module }) => {
                self.promises.forgotten(&(user.clone(), module.clone()));
                assert!(self.stored.remove(&(user, module)).is_some(), "forgotten, but never stored");
                true
            }
        };
        let refused = EffectOutcome::Refused(refusal(RefusalKind::NodeFailed));
        let outcome = if done { EffectOutcome::Done } else { refused };
        self.node.controller.handle_outcome(self.node.now, id, outcome);
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "what is not done here fails the test")]
    fn order(&mut self, generation: EffectId, job: WorkerJob, good: bool) -> bool {
        match job {
            WorkerJob::Start { worker, limits, permits } => {
                self.held.insert(worker.user.clone(), (*permits, limits));
                if good {
                    self.metered.begin_worker(&worker, generation);
                }
                let new = Worker { generation, ready: false, modules: BTreeMap::new(), owed: BTreeSet::new() };
                let before = if good { self.workers.insert(worker, new) } else { None };
                assert!(before.is_none(), "a worker is started twice");
                good
            }
            WorkerJob::Stop { worker } => {
                self.lose(&worker);
                true
            }
            WorkerJob::Load(load) => {
                // It may have died since.
                let Some(worker) = self.workers.get_mut(&load.worker).filter(|_| good) else { return false };
                assert!(!worker.owed.contains(&load.slot));
                self.metered.begin_module(&load, generation);
                let before = worker.modules.insert(load.slot, Module::Loading);
                assert!(before.is_none(), "place {:?} is taken", load.slot);
                true
            }
            WorkerJob::Unload { worker, slot } => {
                self.metered.end_module(&worker, slot);
                if let Some(worker) = self.workers.get_mut(&worker)
                    && worker.modules.remove(&slot) == Some(Module::Loading)
                {
                    worker.owed.insert(slot);
                }
                true
            }
            other => {
                unreachable!("no module here intercepts, is told anything, moves or is part of a service: {other:?}")
            }
        }
    }

    fn change(&mut self, FilterChange { add, remove }: FilterChange) -> bool {
        for id in remove {
            self.rules.remove(&id);
        }
        for rule in add {
            let FilterRule { id, worker, slot, module, filter, .. } = rule;
            let rule = Rule { worker, slot, module: module.name, filter: filter.to_string() };
            let before = self.rules.insert(id, rule);
            assert!(before.is_none(), "a rule's name is used twice");
        }
        true
    }

    fn trap(&mut self, which: usize) {
        let running = |(id, worker): (&WorkerId, &Worker)| {
            let loaded = worker.modules.iter().filter(|(_, module)| **module == Module::Loaded);
            loaded.map(|(slot, _)| (id.clone(), *slot)).collect::<Vec<_>>()
        };
        let running: Vec<(WorkerId, ModuleSlot)> = self.workers.iter().flat_map(running).collect();
        if running.is_empty() {
            return;
        }
        let (worker, slot) = running[which % running.len()].clone();
        self.workers.get_mut(&worker).unwrap().modules.remove(&slot);
        self.metered.end_module(&worker, slot);
        self.tell(&worker, WorkerNews::Failed { slot, refusal: refusal(RefusalKind::Trapped) });
    }

    fn die(&mut self, which: usize, culprit: Option<usize>) {
        let workers: Vec<WorkerId> = self.workers.keys().cloned().collect();
        if workers.is_empty() {
            return;
        }
        let worker = workers[which % workers.len()].clone();
        let slots: Vec<ModuleSlot> = self.workers[&worker].modules.keys().copied().collect();
        let culprit = culprit.filter(|_| !slots.is_empty()).map(|n| slots[n % slots.len()]);
        self.tell(&worker, WorkerNews::Died { refusal: refusal(RefusalKind::Stalled), culprit });
        self.lose(&worker);
    }

    /// A worker is gone; what it counted is still to be read.
    fn lose(&mut self, worker: &WorkerId) {
        if self.workers.remove(worker).is_some() {
            self.metered.end_worker(worker);
        }
    }

    /// Carries out the node's first reading or writing of usage.
    fn carry_out_of_node(&mut self, good: bool) {
        let Effect { id, job, .. } = self.node_open.pop_front().unwrap();
        let outcome = if !good {
            EffectOutcome::Refused(refusal(RefusalKind::NodeFailed))
        } else if job == Job::ReadMeters {
            EffectOutcome::Metered(Box::new(self.metered.read()))
        } else {
            let Job::Store(StoreJob::PutUsage(change)) = job else { unreachable!("{job:?} is a user's") };
            self.stored_usage.retain(|key, _| !change.forget.contains(key));
            self.stored_usage.extend(change.put);
            EffectOutcome::Done
        };
        self.node.controller.handle_outcome(self.node.now, id, outcome);
    }

    /// Has the node start again with what is stored; requests under way are lost. What was used is stored before, if it
    /// stops in order.
    fn restart(&mut self, orderly: bool) {
        if orderly {
            self.node.controller.handle_stop(self.node.now);
            self.obey_all();
            while !self.settled {
                self.carry_out_of_node(true);
                self.obey_all();
            }
            assert_eq!(sums(&self.stored_usage), self.metered.sums(), "something used is not stored");
        }
        self.metered.restart(sums(&self.stored_usage));
        self.settled = false;
        self.asked.retain(|id, _| self.answered.contains(id));
        (self.fetching, self.abandoned, self.lanes) = Default::default();
        (self.workers, self.rules, self.node_open) = Default::default();
        self.node.changes.1 = self.node.changes.0;
        self.node.controller = crate::Controller::new(self.node.policy.clone());
        let installed = self.stored.values().cloned().collect();
        let usage = self.stored_usage.iter().map(|(key, used)| (key.clone(), *used)).collect();
        self.node.controller.restore(self.node.now, Stored { installed, usage, ..Stored::default() });
        // Those of this very second may be new, for all that the node knows.
        let fresh_from = self.node.controller.users.fresh_from(self.node.now);
        self.setups.retain(|request| request.created < fresh_from);
    }

    /// Lets time pass, obeying at each timer.
    fn sleep(&mut self, time: Duration) {
        let end = self.node.now + time;
        loop {
            let next = self.node.controller.poll_timeout().map(|(at, _)| at).filter(|at| *at <= end.instant);
            let left = next.unwrap_or(end.instant).since(self.node.now.instant);
            self.node.sleep(left);
            self.obey_all();
            self.check();
            if next.is_none() {
                return;
            }
        }
    }

    fn obey_all(&mut self) {
        while let Some(command) = self.node.controller.poll_command() {
            self.obey(command);
            while self.eager && !self.node_open.is_empty() {
                self.carry_out_of_node(true);
            }
            while self.eager && self.lanes.values().any(|lane| !lane.is_empty()) {
                let users: Vec<UserId> = self.lanes.keys().cloned().collect();
                let open = users.into_iter().find(|user| !self.lanes[user].is_empty()).unwrap();
                self.carry_out(&open, true);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Do(Effect { id, job: Job::Packages(PackageJob::Fetch { digest, .. }), .. }) => {
                let before = self.fetching.insert(id, self.packages[&digest].clone());
                assert!(before.is_none(), "{id:?} is used twice");
            }
            Command::Do(Effect { job: Job::Packages(PackageJob::Compose { .. }), .. }) => {
                unreachable!("there is no service here")
            }
            Command::Do(effect) if effect.user.is_none() => self.node_open.push_back(effect),
            Command::Do(effect) => {
                let user = effect.user.clone().expect("the effects of modules are a user's");
                self.lanes.entry(user).or_default().push_back(effect);
            }
            Command::Abandon(id) => {
                assert!(self.fetching.remove(&id).is_some(), "abandoned, but not under way");
                self.abandoned.insert(id);
            }
            Command::Answer { request, report, proven: _ } => self.take_answer(request.0, &report),
            Command::Notify(_) | Command::TellRequesters(_) | Command::Proven(_) => {}
            Command::Settled => self.settled = true,
            Command::InForce(_, late) => {
                assert!(late.is_empty());
                self.node.changes.1 += 1;
            }
        }
    }

    /// An answer says what is so.
    #[allow(clippy::wildcard_enum_match_arm, reason = "what nobody asks for fails the test")]
    fn take_answer(&mut self, request: u64, report: &NodeReport) {
        let (user, module, session) = &self.asked[&request];
        assert!(self.answered.insert(request), "answered twice");
        let ruled = self.rules.values().any(|rule| rule.worker.user == *user && rule.module == *module);
        let record = self.stored.get(&(user.clone(), module.clone()));
        self.promises.answered(request, &report.outcome, record);
        let (stored, sessions) = (record.is_some(), record.map(|record| &record.sessions[..]).unwrap_or_default());
        match &report.outcome {
            Outcome::Installed { .. } | Outcome::Replaced { .. } => assert!(ruled && stored, "said before it is so"),
            Outcome::Refreshed { .. } => assert!(stored),
            Outcome::Removed if sessions.is_empty() => assert!(!ruled && !stored, "something of it is left"),
            Outcome::Removed => {
                assert!(!sessions.iter().any(|held| Some(held.session) == *session), "its session is left");
                assert!(session.is_some(), "others are left");
            }
            Outcome::Refused(_) => {}
            other => unreachable!("nobody asks for that: {other:?}"),
        }
    }

    /// What must hold after each step.
    fn check(&self) {
        let controller = &self.node.controller;
        let unanswered = self.asked.len() - self.answered.len();
        assert_eq!(controller.cx.in_flight(), unanswered);
        let mut places: BTreeMap<(&UserId, &ModuleName), BTreeSet<(&WorkerId, ModuleSlot)>> = BTreeMap::new();
        let mut filters: BTreeMap<(&UserId, &ModuleName), BTreeSet<&str>> = BTreeMap::new();
        for Rule { worker, slot, module, filter } in self.rules.values() {
            places.entry((&worker.user, module)).or_default().insert((worker, *slot));
            filters.entry((&worker.user, module)).or_default().insert(filter);
        }
        assert!(places.values().all(|places| places.len() == 1), "two versions see packets: {places:?}");
        for status in controller.modules(self.node.now) {
            let key = (status.user.clone(), status.module.name.clone());
            let quiet = self.lanes.get(&key.0).is_none_or(VecDeque::is_empty);
            let installed = controller.place(&key.0, &key.1).is_some();
            if quiet && installed {
                assert_eq!(self.stored.get(&key).map(|record| &record.module), Some(&status.module));
            }
            if quiet && installed && status.state == ModuleState::Running {
                assert!(places.contains_key(&(&key.0, &key.1)), "{} runs and sees no packets", status.module);
                let wanted: Vec<String> = status.filters.iter().map(ToString::to_string).collect();
                let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
                assert_eq!(filters[&(&key.0, &key.1)], wanted, "{}", status.module);
                let asked = self.stored[&key].sessions.iter().map(|session| session.filters.first());
                let asked = asked.map(|filter| filter.map_or("tcp dst 10.2.0.0/24".to_owned(), ToString::to_string));
                let asked: Vec<String> = asked.collect();
                assert_eq!(wanted, asked.iter().map(String::as_str).collect(), "{}", status.module);
            }
        }
        for (id, worker) in &self.workers {
            let quiet = self.lanes.get(&id.user).is_none_or(VecDeque::is_empty);
            let tenant = controller.modules.tenants.get(&id.user);
            let known = tenant.is_some_and(|tenant| tenant.workers.contains_key(&id.flavour));
            assert!(known || !quiet, "a worker that nobody knows of");
            let granted = self.node.policy.users.get(&id.user).map(|user| (user.permits(), user.container));
            let (permits, limits) = &self.held[&id.user];
            let held = match granted {
                Some(granted) => (permits, limits) == (&granted.0, &granted.1),
                None => *permits == Permits::default(),
            };
            assert!(!quiet || held, "a container is held to an old policy");
            let idle = tenant.is_some_and(|tenant| !tenant.needs(id.flavour));
            let leaves = [Timer::StopIdle(id.clone()), Timer::Prepared(id.clone())]
                .iter()
                .any(|timer| controller.cx.timers.runs(timer));
            assert!(!idle || !worker.ready || leaves || !quiet, "a worker that nobody needs stays");
        }
    }

    /// Has all go well that is due, and lets every lease and quarantine end: nothing may be left.
    fn end(&mut self) {
        for _ in 0..10_000 {
            if self.due().is_empty() {
                break;
            }
            self.happen(0, true, true);
            self.obey_all();
            self.check();
        }
        self.sleep(Duration::from_secs(100));
        for _ in 0..1000 {
            self.happen(0, true, true);
            self.obey_all();
            self.sleep(Duration::from_millis(if self.due().is_empty() { 10_000 } else { 0 }));
            if self.due().is_empty() && self.node.controller.poll_timeout().is_none() {
                break;
            }
        }
        assert_eq!(self.answered.len(), self.asked.len(), "not every request is answered");
        assert!(self.rules.is_empty(), "{:?}", self.rules);
        assert!(self.stored.is_empty(), "{:?}", self.stored);
        assert!(self.workers.is_empty(), "{:?}", self.workers.keys());
        self.node.assert_empty();
        assert!(self.metered.is_read());
        assert_eq!(sums(&self.stored_usage), self.metered.sums());
        assert!(self.node.now.instant > START.instant);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0usize..8;
    let setup = (
        0usize..2,
        1u8..4,
        0u8..4,
        0u8..3,
        0u8..3,
        prop::bool::weighted(0.2),
        prop::sample::select(vec![1, 5, 60, 900]),
    )
        .prop_map(|(user, session, module, version, filter, property, ttl_s)| Step::Setup {
            user,
            session,
            module,
            version,
            filter,
            property,
            ttl_s,
        });
    prop_oneof![
        6 => setup,
        2 => (0usize..2, prop::option::weighted(0.8, 1u8..4), 0u8..4)
            .prop_map(|(user, session, module)| Step::Remove { user, session, module }),
        2 => (0usize..16).prop_map(|which| Step::Again { which }),
        2 => (0usize..16).prop_map(|which| Step::Copy { which }),
        1 => (0usize..16).prop_map(|which| Step::Withdraw { which }),
        24 => (which.clone(), prop::bool::weighted(0.88), any::<bool>())
            .prop_map(|(which, good, osgi)| Step::Due { which, good, osgi }),
        4 => prop::sample::select(vec![0, 1, 99, 100, 1000, 4000, 9999, 10_000, 61_000, 301_000])
            .prop_map(|ms| Step::Sleep { ms }),
        2 => which.clone().prop_map(|which| Step::Trap { which }),
        1 => (which, prop::option::of(0usize..4)).prop_map(|(which, culprit)| Step::Die { which, culprit }),
        1 => (0usize..2).prop_map(|user| Step::Toggle { user }),
        1 => any::<bool>().prop_map(|orderly| Step::Restart { orderly }),
        1 => (0usize..2, 1u64..3).prop_map(|(user, packets_per_second)| Step::Tighten { user, packets_per_second }),
    ]
}
