// SPDX-License-Identifier: Apache-2.0
//! Random interleavings of requests, answers, failures and time against a small model of the node around the
//! controller.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netserv_model::command::{Command, Event, FilterId, JobId, ModuleSlot};
use netserv_model::manifest::Manifest;
use netserv_model::policy::NodePolicy;
use netserv_model::request::{Body, Outcome, Remove, Request};
use netserv_model::{Flavour, ModuleName, ModuleRef, RefusalKind, UserId, WorkerId};
use proptest::prelude::*;

use super::script::{Node, START, manifest, name, packet, policy, refusal, setup, user, user_policy};

const USERS: [&str; 2] = ["jane", "john"];

#[derive(Clone, Debug)]
enum Step {
    /// A SETUP of module `module` at version `1.0.version`, with filters of its own or the manifest's.
    Setup { user: usize, module: u8, version: u8, own_filter: bool, property: bool, ttl_s: u64 },
    /// A REMOVE.
    Remove { user: usize, module: u8 },
    /// One of the answers that are due, good or bad; where it is a package, it is of one flavour or the other.
    Answer { which: usize, good: bool, osgi: bool },
    /// Time passes.
    Sleep { ms: u64 },
    /// A running module traps.
    Trap { which: usize },
    /// A worker dies, of a module or of nothing known.
    Die { which: usize, culprit: Option<usize> },
    /// A filter rule is lost.
    LoseFilter { which: usize },
    /// The operator takes a user out of the policy, or in again.
    Toggle { user: usize },
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_and_nothing_is_left(
        steps in prop::collection::vec(step(), 1..120),
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
    /// Whether failures of filters are told between two commands, as an executor does that learns of them at once.
    eager: bool,
    installed: u32,
    asked: u64,
    answered: BTreeSet<u64>,
    fetching: BTreeMap<JobId, Manifest>,
    workers: BTreeMap<WorkerId, Worker>,
    rules: BTreeMap<FilterId, (WorkerId, ModuleSlot)>,
    stored: BTreeMap<(UserId, ModuleName), ModuleRef>,
    /// What a fetch of a digest gives.
    packages: BTreeMap<netserv_model::Digest, Manifest>,
}

#[derive(Default)]
struct Worker {
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

/// An answer that the controller waits for.
enum Due {
    Fetch(JobId),
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
            installed: 0,
            asked: 0,
            answered: BTreeSet::new(),
            fetching: BTreeMap::new(),
            workers: BTreeMap::new(),
            rules: BTreeMap::new(),
            stored: BTreeMap::new(),
            packages: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Setup { user, module, version, own_filter, property, ttl_s } => {
                let mut setup = setup(&format!("m{module}@1.0.{version}"));
                let mut manifest = manifest(&setup);
                packet(&mut manifest).filters = vec!["tcp dst 10.2.0.0/24".parse().unwrap()];
                setup.digest.0[1] = *module;
                self.packages.insert(setup.digest, manifest);
                if !own_filter {
                    setup.filters.clear();
                }
                if *property {
                    setup.properties.insert("sample".to_owned(), "1".to_owned());
                }
                setup.ttl = Duration::from_secs(*ttl_s);
                self.send(USERS[*user], Body::Setup(setup));
            }
            Step::Remove { user, module } => {
                self.send(USERS[*user], Body::Remove(Remove { module: name(&format!("m{module}")) }));
            }
            Step::Answer { which, good, osgi } => self.answer(*which, *good, *osgi),
            Step::Sleep { ms } => self.sleep(Duration::from_millis(*ms)),
            Step::Trap { which } => self.trap(*which),
            Step::Die { which, culprit } => self.die(*which, *culprit),
            Step::LoseFilter { which } => {
                let ids: Vec<FilterId> = self.rules.keys().copied().collect();
                if !ids.is_empty() {
                    self.lose(ids[which % ids.len()]);
                }
            }
            Step::Toggle { user: index } => {
                let user = user(USERS[*index]);
                let current = &mut self.node.policy;
                if current.users.remove(&user).is_none() {
                    current.users.insert(user.clone(), self.policy.users[&user].clone());
                }
                let policy = current.clone();
                self.node.controller.set_policy(self.node.now, policy);
            }
        }
        self.carry_out();
    }

    fn send(&mut self, user: &str, body: Body) {
        let request: Request = self.node.request(user, body);
        self.node.send(request);
        self.asked += 1;
    }

    fn due(&self) -> Vec<Due> {
        let mut due: Vec<Due> = self.fetching.keys().map(|job| Due::Fetch(*job)).collect();
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

    fn answer(&mut self, which: usize, good: bool, osgi: bool) {
        let mut due = self.due();
        if due.is_empty() {
            return;
        }
        let event = match (due.swap_remove(which % due.len()), good) {
            (Due::Fetch(job), true) => {
                let manifest = Box::new(self.fetching.remove(&job).unwrap());
                Event::Fetched { job, manifest, flavour: if osgi { Flavour::Osgi } else { Flavour::Wasm } }
            }
            (Due::Fetch(job), false) => {
                self.fetching.remove(&job);
                Event::FetchFailed { job, refusal: refusal(RefusalKind::FetchFailed) }
            }
            (Due::Start(worker), true) => {
                self.workers.get_mut(&worker).unwrap().ready = true;
                Event::WorkerReady { worker }
            }
            (Due::Start(worker), false) => {
                self.workers.remove(&worker);
                Event::WorkerDied { worker, refusal: refusal(RefusalKind::NodeFailed), culprit: None }
            }
            (Due::Load(worker, slot), good) => {
                let inside = self.workers.get_mut(&worker).unwrap();
                if !inside.owed.remove(&slot) {
                    let module = good.then_some(Module::Loaded);
                    inside.modules.remove(&slot);
                    inside.modules.extend(module.map(|module| (slot, module)));
                }
                let refusal = refusal(RefusalKind::Trapped);
                if good { Event::Loaded { worker, slot } } else { Event::ModuleFailed { worker, slot, refusal } }
            }
        };
        self.node.event(event);
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
        self.node.event(Event::ModuleFailed { worker, slot, refusal: refusal(RefusalKind::Trapped) });
    }

    fn die(&mut self, which: usize, culprit: Option<usize>) {
        let workers: Vec<WorkerId> = self.workers.keys().cloned().collect();
        if workers.is_empty() {
            return;
        }
        let worker = workers[which % workers.len()].clone();
        let died = self.workers.remove(&worker).unwrap();
        let slots: Vec<ModuleSlot> = died.modules.keys().copied().collect();
        let culprit = culprit.filter(|_| !slots.is_empty()).map(|n| slots[n % slots.len()]);
        self.node.event(Event::WorkerDied { worker, refusal: refusal(RefusalKind::Stalled), culprit });
    }

    fn lose(&mut self, id: FilterId) {
        self.rules.remove(&id);
        self.node.event(Event::FilterFailed { id, refusal: refusal(RefusalKind::NodeFailed) });
    }

    /// Lets time pass, carrying commands out at each timer.
    fn sleep(&mut self, time: Duration) {
        let end = self.node.now + time;
        loop {
            let next = self.node.controller.poll_timeout().map(|(at, _)| at).filter(|at| *at <= end.instant);
            let left = next.unwrap_or(end.instant).since(self.node.now.instant);
            self.node.sleep(left);
            self.carry_out();
            self.check();
            if next.is_none() {
                return;
            }
        }
    }

    /// Carries out what there is to do. Every fifth filter fails at once, every fifth one command later.
    fn carry_out(&mut self) {
        let mut late = None;
        while let Some(command) = self.node.controller.poll_command() {
            let installing = if let Command::InstallFilter { id, .. } = &command { Some(*id) } else { None };
            self.obey(command);
            let failing = late.take().filter(|id| self.rules.contains_key(id));
            failing.into_iter().for_each(|id| self.lose(id));
            if let Some(id) = installing.filter(|_| self.eager) {
                self.installed += 1;
                match self.installed % 5 {
                    4 => self.lose(id),
                    2 => late = Some(id),
                    _ => {}
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Fetch { job, digest, .. } => {
                let before = self.fetching.insert(job, self.packages[&digest].clone());
                assert!(before.is_none(), "{job:?} is used twice");
            }
            Command::StartWorker { worker, .. } => {
                let before = self.workers.insert(worker, Worker::default());
                assert!(before.is_none(), "a worker is started twice");
            }
            Command::StopWorker { worker } => {
                assert!(self.workers.remove(&worker).is_some(), "no worker to stop");
            }
            Command::Load(load) => {
                let worker = self.workers.get_mut(&load.worker).expect("loaded into a worker");
                assert!(worker.ready && !worker.owed.contains(&load.slot));
                let before = worker.modules.insert(load.slot, Module::Loading);
                assert!(before.is_none(), "place {:?} is taken", load.slot);
            }
            Command::Unload { worker, slot } => {
                let worker = self.workers.get_mut(&worker).expect("unloaded from a worker");
                if worker.modules.remove(&slot) == Some(Module::Loading) {
                    worker.owed.insert(slot);
                }
            }
            Command::InstallFilter { id, worker, slot, .. } => {
                let loaded = self.workers.get(&worker).and_then(|worker| worker.modules.get(&slot));
                assert!(loaded == Some(&Module::Loaded), "a filter for what does not run");
                assert!(self.rules.insert(id, (worker, slot)).is_none());
            }
            Command::RemoveFilter { id } => assert!(self.rules.remove(&id).is_some(), "no filter {id:?}"),
            Command::Intercept { .. } | Command::SuspendIntercept { .. } | Command::EndIntercept { .. } => {
                unreachable!("no module here intercepts")
            }
            Command::Compose { .. } | Command::Order { .. } | Command::Dissolved { .. } => {
                unreachable!("there is no service here")
            }
            Command::Store(record) => {
                let key = (record.user.clone(), record.module.name.clone());
                self.stored.insert(key, record.module);
            }
            Command::Forget { user, module } => {
                assert!(self.stored.remove(&(user, module)).is_some(), "forgotten, but never stored");
            }
            Command::Answer { request, report } => {
                assert!(request.0 < self.asked, "an answer nobody asked for");
                assert!(self.answered.insert(request.0), "answered twice");
                assert!(!matches!(report.outcome, Outcome::Probed | Outcome::WouldDo { .. }));
            }
        }
    }

    /// What must hold after each step.
    fn check(&self) {
        let controller = &self.node.controller;
        for (worker, slot) in self.rules.values() {
            assert!(controller.module_at(worker, *slot).is_some(), "a filter without a module");
        }
        let stored: BTreeSet<(UserId, ModuleRef)> =
            self.stored.iter().map(|((user, _), module)| (user.clone(), module.clone())).collect();
        let installed = controller.modules(self.node.now).into_iter();
        let installed = installed
            .filter(|status| status.lease_s > 0 || controller.place(&status.user, &status.module.name).is_some());
        let installed: BTreeSet<(UserId, ModuleRef)> = installed.map(|status| (status.user, status.module)).collect();
        assert_eq!(installed, stored);
        let unanswered = usize::try_from(self.asked).unwrap() - self.answered.len();
        assert_eq!(controller.in_flight, unanswered);
        for id in self.workers.keys() {
            let tenant = controller.tenants.get(&id.user);
            let known = tenant.is_some_and(|tenant| tenant.workers.contains_key(&id.flavour));
            assert!(known, "a worker that nobody knows of");
            let idle = tenant.is_some_and(|tenant| !tenant.needs(id.flavour));
            let starting = !self.workers[id].ready;
            let leaves = controller.timers.runs(&crate::expiry::Timer::StopIdle(id.clone()));
            assert!(!idle || starting || leaves, "a worker that nobody needs stays");
        }
    }

    /// Answers everything, lets every lease and quarantine end: nothing may be left.
    fn end(&mut self) {
        for _ in 0..10_000 {
            if self.due().is_empty() {
                break;
            }
            self.answer(0, true, true);
            self.carry_out();
            self.check();
        }
        self.sleep(Duration::from_secs(100));
        for _ in 0..1000 {
            self.answer(0, true, true);
            self.carry_out();
            self.sleep(Duration::from_millis(if self.due().is_empty() { 10_000 } else { 0 }));
            if self.due().is_empty() && self.node.controller.poll_timeout().is_none() {
                break;
            }
        }
        assert_eq!(self.answered.len(), usize::try_from(self.asked).unwrap(), "not every request is answered");
        assert!(self.rules.is_empty() && self.stored.is_empty() && self.workers.is_empty());
        self.node.assert_empty();
        assert!(self.node.now.instant > START.instant);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0usize..8;
    let setup =
        (0usize..2, 0u8..4, 0u8..3, any::<bool>(), prop::bool::weighted(0.2), prop::sample::select(vec![1, 5, 60]))
            .prop_map(|(user, module, version, own_filter, property, ttl_s)| Step::Setup {
                user,
                module,
                version,
                own_filter,
                property,
                ttl_s,
            });
    prop_oneof![
        6 => setup,
        2 => (0usize..2, 0u8..4).prop_map(|(user, module)| Step::Remove { user, module }),
        12 => (which.clone(), prop::bool::weighted(0.85), any::<bool>())
            .prop_map(|(which, good, osgi)| Step::Answer { which, good, osgi }),
        4 => prop::sample::select(vec![0, 1, 99, 100, 1000, 4000, 9999, 10_000, 61_000])
            .prop_map(|ms| Step::Sleep { ms }),
        2 => which.clone().prop_map(|which| Step::Trap { which }),
        1 => (which.clone(), prop::option::of(0usize..4)).prop_map(|(which, culprit)| Step::Die { which, culprit }),
        1 => which.prop_map(|which| Step::LoseFilter { which }),
        1 => (0usize..2).prop_map(|user| Step::Toggle { user }),
    ]
}
