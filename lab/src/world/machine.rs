// SPDX-License-Identifier: Apache-2.0
//! A station's machine: carries effects out in virtual time, well or badly, and keeps the store over restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netserv_ledger::fake::{Metered, sums};
use netserv_model::effect::{
    Effect, EffectId, EffectOutcome, FilterChange, FilterId, InstalledRecord, InterceptJob, Job, Measured,
    ModuleCounts, ModuleSlot, News, PackageJob, StoreJob, Stored, WorkerJob, WorkerNews,
};
use netserv_model::request::{ModuleState, Outcome, PacketCounts};
use netserv_model::usage::{UsageKey, Used};
use netserv_model::{Flavour, ModuleName, ModuleRef, Now, Refusal, RefusalKind, UserId, WorkerId};
use netserv_node::{Input, Node};
use rand::RngExt;
use rand::rngs::StdRng;

use super::catalogue;

/// How machines carry effects out; chances are in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineQuality {
    /// An effect, the start of a worker and the load of a module each take up to so long.
    pub time_max: Duration,
    /// The same, for those that are slow.
    pub slow_time_max: Duration,
    /// Effects, starts and loads that are slow.
    pub slow_permille: u32,
    /// Effects that are refused, of those that can be.
    pub refused_permille: u32,
    /// Workers that never get ready.
    pub never_ready_permille: u32,
    /// Workers that die within [`LIFE_MAX`].
    pub dies_permille: u32,
    /// Modules that cannot be loaded or trap within [`LIFE_MAX`].
    pub traps_permille: u32,
}

impl MachineQuality {
    /// Nothing goes wrong.
    pub const GOOD: MachineQuality = MachineQuality {
        time_max: Duration::from_millis(10),
        slow_time_max: Duration::ZERO,
        slow_permille: 0,
        refused_permille: 0,
        never_ready_permille: 0,
        dies_permille: 0,
        traps_permille: 0,
    };
    /// Everything goes wrong at times.
    pub const BAD: MachineQuality = MachineQuality {
        slow_time_max: Duration::from_secs(9),
        slow_permille: 50,
        refused_permille: 100,
        never_ready_permille: 100,
        dies_permille: 300,
        traps_permille: 300,
        ..MachineQuality::GOOD
    };
}

/// How long a worker or a module lives that dies or traps.
pub const LIFE_MAX: Duration = Duration::from_secs(40);

/// A module on a node: its user and its name.
pub(super) type Key = (UserId, ModuleName);

/// A station's machine.
#[derive(Debug)]
pub(super) struct Machine {
    quality: MachineQuality,
    /// Effects under way.
    open: BTreeMap<EffectId, Effect>,
    workers: BTreeMap<WorkerId, Worker>,
    /// Whose each rule is.
    rules: BTreeMap<FilterId, Key>,
    store: BTreeMap<Key, InstalledRecord>,
    /// Modules whose last record could not be written.
    unwritten: BTreeSet<Key>,
    usage: BTreeMap<UsageKey, Used>,
    metered: Metered,
}

#[derive(Debug)]
struct Worker {
    generation: EffectId,
    ready: bool,
    modules: BTreeMap<ModuleSlot, Module>,
}

#[derive(Debug)]
struct Module {
    load: EffectId,
    module: ModuleRef,
    loaded: bool,
}

/// Something that a machine does when its time has come.
#[derive(Clone, Debug)]
pub(super) enum Due {
    /// An effect is carried out.
    Effect(EffectId),
    /// A worker of a generation gets ready.
    Ready(WorkerId, EffectId),
    /// A worker of a generation dies.
    Dies(WorkerId, EffectId),
    /// What an effect loads into a place is loaded, or cannot be.
    Loaded(WorkerId, EffectId, ModuleSlot, EffectId),
    /// What an effect loaded into a place traps.
    Traps(WorkerId, EffectId, ModuleSlot, EffectId),
}

/// What is left of modules on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineCounts {
    pub workers: usize,
    pub modules: usize,
    pub rules: usize,
    pub records: usize,
}

type Then = Vec<(Duration, Due)>;

impl Machine {
    pub(super) fn new(quality: MachineQuality) -> Machine {
        Machine {
            quality,
            open: BTreeMap::new(),
            workers: BTreeMap::new(),
            rules: BTreeMap::new(),
            store: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            usage: BTreeMap::new(),
            metered: Metered::default(),
        }
    }

    /// Forgets all but the store, which it returns.
    pub(super) fn restart(&mut self) -> Stored {
        self.open.clear();
        self.workers.clear();
        self.rules.clear();
        self.unwritten.clear();
        // What was not stored is lost.
        self.metered.restart(sums(&self.usage));
        let usage = self.usage.iter().map(|(key, used)| (key.clone(), *used)).collect();
        Stored { installed: self.store.values().cloned().collect(), usage, ..Stored::default() }
    }

    /// Begins an effect; returns when to carry it out.
    pub(super) fn begin(&mut self, effect: Effect, rng: &mut StdRng) -> (Duration, Due) {
        let alone = |other: &Effect| other.user != effect.user || !other.job.is_ordered();
        assert!(!effect.job.is_ordered() || self.open.values().all(alone), "two of a user at a time: {effect:?}");
        let id = effect.id;
        let before = self.open.insert(id, effect);
        assert!(before.is_none(), "{id:?} is begun twice");
        (self.time(rng), Due::Effect(id))
    }

    /// Does what is due; returns what the node is told, and what is due after it.
    pub(super) fn happen(&mut self, due: Due, rng: &mut StdRng) -> (Option<Input>, Then) {
        self.metered.count();
        match due {
            Due::Effect(id) => {
                let effect = self.open.remove(&id).expect("what is due was begun");
                let (outcome, then) = self.carry_out(id, effect.job, rng);
                (Some(Input::Done(id, outcome)), then)
            }
            Due::Ready(worker, generation) => {
                let Some(known) = self.worker(&worker, generation) else { return (None, Vec::new()) };
                known.ready = true;
                let dies = self.happens(self.quality.dies_permille, rng);
                let then = dies.then(|| (life(rng), Due::Dies(worker.clone(), generation))).into_iter().collect();
                (news(worker, generation, WorkerNews::Ready { addresses: Vec::new() }), then)
            }
            Due::Dies(worker, generation) => {
                let Some(known) = self.worker(&worker, generation) else { return (None, Vec::new()) };
                let slots: Vec<ModuleSlot> = known.modules.keys().copied().collect();
                let culprit = slots.get(rng.random_range(0..=slots.len())).copied();
                self.lose(&worker);
                let refusal = Refusal::new(RefusalKind::Stalled, "as the seed says");
                (news(worker, generation, WorkerNews::Died { refusal, culprit }), Vec::new())
            }
            Due::Loaded(worker, generation, slot, load) => self.load_ends(worker, generation, slot, load, rng),
            Due::Traps(worker, generation, slot, load) => {
                let there = |known: &&mut Worker| known.modules.get(&slot).is_some_and(|module| module.load == load);
                let Some(known) = self.worker(&worker, generation).filter(there) else { return (None, Vec::new()) };
                known.modules.remove(&slot);
                self.metered.end_module(&worker, slot);
                (news(worker, generation, failed(slot)), Vec::new())
            }
        }
    }

    pub(super) fn counts(&self) -> MachineCounts {
        MachineCounts {
            workers: self.workers.len(),
            modules: self.workers.values().map(|worker| worker.modules.len()).sum(),
            rules: self.rules.len(),
            records: self.store.len(),
        }
    }

    /// Checks that what a node says of a module is so when it says it.
    ///
    /// # Panics
    /// If it is not.
    pub(super) fn check_answer(&self, module: &Key, outcome: &Outcome) {
        let ruled = self.rules.values().any(|owner| owner == module);
        let stored = self.store.contains_key(module) || self.unwritten.contains(module);
        if let Outcome::Installed { .. } | Outcome::Replaced { .. } = outcome {
            assert!(ruled && stored, "{module:?} is said to be installed before it is");
        } else if let Outcome::Refreshed { .. } = outcome {
            assert!(stored, "{module:?} is said to be refreshed and is not stored");
        } else if *outcome == Outcome::Removed {
            assert!(!ruled && !self.store.contains_key(module), "something of {module:?} is left");
        }
    }

    /// Checks that there is what the controller says, and nothing else, for every user of whom no effect is under way.
    ///
    /// # Panics
    /// If it is not so.
    pub(super) fn check(&self, node: &Node, now: Now) {
        let ordered = self.open.values().filter(|effect| effect.job.is_ordered());
        let busy: BTreeSet<&UserId> = ordered.filter_map(|effect| effect.user.as_ref()).collect();
        let controller = node.view().controller;
        let said = controller.modules(now);
        let known: BTreeSet<Key> =
            said.iter().map(|status| (status.user.clone(), status.module.name.clone())).collect();
        let is_quiet = |key: &&Key| !busy.contains(&key.0);
        for key in self.rules.values().chain(self.store.keys()).filter(is_quiet) {
            assert!(known.contains(key), "{key:?} is left on the machine");
        }
        for (id, worker) in self.workers.iter().filter(|(id, _)| !busy.contains(&id.user)) {
            for (slot, module) in &worker.modules {
                assert_eq!(controller.module_at(id, *slot), Some(&module.module.name), "{module:?} is left in {id:?}");
            }
        }
        self.metered.check(&controller.usage());
        for status in said.iter().filter(|status| !busy.contains(&status.user)) {
            let key = (status.user.clone(), status.module.name.clone());
            if status.state == ModuleState::Running && controller.place(&key.0, &key.1).is_some() {
                assert!(self.rules.values().any(|owner| *owner == key), "{key:?} runs and sees no packets");
                let record = self.store.get(&key).map(|record| &record.module);
                assert!(record == Some(&status.module) || self.unwritten.contains(&key), "{key:?} is not stored");
            }
        }
    }

    fn carry_out(&mut self, id: EffectId, job: Job, rng: &mut StdRng) -> (EffectOutcome, Then) {
        let refuses = self.happens(self.quality.refused_permille, rng);
        let refused = |kind| EffectOutcome::Refused(Refusal::new(kind, "as the seed says"));
        let mut then = Vec::new();
        let done = match job {
            Job::Packages(_) if refuses => return (refused(RefusalKind::FetchFailed), then),
            Job::Packages(PackageJob::Fetch { digest, .. }) => match catalogue::package(&digest) {
                Some(manifest) => {
                    return (EffectOutcome::Fetched { manifest: Box::new(manifest), flavour: Flavour::Wasm }, then);
                }
                None => return (refused(RefusalKind::FetchFailed), then),
            },
            Job::Packages(PackageJob::Compose { .. }) => unreachable!("there are no services in the world"),
            Job::Workers(job) => self.work(id, job, refuses, rng, &mut then),
            Job::Filters(change) => (!refuses || change.add.is_empty()) && self.change(change),
            Job::Intercepts(
                InterceptJob::Begin(_) | InterceptJob::Suspend(_) | InterceptJob::Drain(_) | InterceptJob::End(_),
            ) => unreachable!("no module of the world takes connections"),
            // No operator of the world changes a policy, and no container has a network.
            Job::Permit(_) | Job::Limit(_) | Job::Addresses(_) => unreachable!("the policy stays"),
            Job::Floating(_) => unreachable!("no address of the world floats"),
            Job::Store(job) => self.write(job, refuses),
            Job::Measure => return (EffectOutcome::Measured(Box::new(self.measure())), then),
            Job::ReadMeters if refuses => false,
            Job::ReadMeters => return (EffectOutcome::Metered(Box::new(self.metered.read())), then),
            Job::AskAddress { .. } | Job::FindHolder { .. } | Job::AskList { .. } => false,
            Job::Route(_) => unreachable!("the world answers that"),
        };
        (if done { EffectOutcome::Done } else { refused(RefusalKind::NodeFailed) }, then)
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "what is not done in the world fails its test")]
    fn work(&mut self, id: EffectId, job: WorkerJob, refuses: bool, rng: &mut StdRng, then: &mut Then) -> bool {
        match job {
            WorkerJob::Start { .. } | WorkerJob::Load(_) if refuses => return false,
            WorkerJob::Start { worker, .. } => {
                if !self.happens(self.quality.never_ready_permille, rng) {
                    then.push((self.time(rng), Due::Ready(worker.clone(), id)));
                }
                self.metered.begin_worker(&worker, id);
                let new = Worker { generation: id, ready: false, modules: BTreeMap::new() };
                let before = self.workers.insert(worker, new);
                assert!(before.is_none(), "a worker is started beside another");
            }
            WorkerJob::Stop { worker } => self.lose(&worker),
            WorkerJob::Load(load) => {
                let time = self.time(rng);
                // It may have died since.
                let Some(worker) = self.workers.get_mut(&load.worker) else { return false };
                assert!(worker.ready, "a module is loaded into a worker that is not ready");
                self.metered.begin_module(&load, id);
                then.push((time, Due::Loaded(load.worker, worker.generation, load.slot, id)));
                let before = worker.modules.insert(load.slot, Module { load: id, module: load.module, loaded: false });
                assert!(before.is_none(), "place {:?} is taken by {before:?}", load.slot);
            }
            WorkerJob::Unload { worker, slot } => {
                self.metered.end_module(&worker, slot);
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.modules.remove(&slot);
                }
            }
            other => {
                unreachable!(
                    "no module of the world intercepts, is told anything, moves or is part of a service: {other:?}"
                )
            }
        }
        true
    }

    fn load_ends(
        &mut self,
        worker: WorkerId,
        generation: EffectId,
        slot: ModuleSlot,
        load: EffectId,
        rng: &mut StdRng,
    ) -> (Option<Input>, Then) {
        let traps = self.happens(self.quality.traps_permille, rng);
        let traps_later = traps && rng.random();
        let Some(known) = self.worker(&worker, generation) else { return (None, Vec::new()) };
        // One that was unloaded meanwhile is answered, too.
        let module = known.modules.get_mut(&slot).filter(|module| module.load == load);
        if traps && !traps_later {
            if module.is_some() {
                known.modules.remove(&slot);
                self.metered.end_module(&worker, slot);
            }
            return (news(worker, generation, failed(slot)), Vec::new());
        }
        if let Some(module) = module {
            module.loaded = true;
        }
        let due = traps_later.then(|| (life(rng), Due::Traps(worker.clone(), generation, slot, load)));
        (news(worker, generation, WorkerNews::Loaded(slot)), due.into_iter().collect())
    }

    fn change(&mut self, FilterChange { add, remove }: FilterChange) -> bool {
        for id in remove {
            self.rules.remove(&id);
        }
        for rule in add {
            let before = self.rules.insert(rule.id, (rule.worker.user, rule.module.name));
            assert!(before.is_none(), "a rule's name is used twice");
        }
        true
    }

    fn write(&mut self, job: StoreJob, refuses: bool) -> bool {
        match job {
            StoreJob::Put(record) => {
                let key = (record.user.clone(), record.module.name.clone());
                if refuses {
                    self.unwritten.insert(key);
                    return false;
                }
                self.unwritten.remove(&key);
                self.store.insert(key, *record);
            }
            StoreJob::PutMessage { .. } => unreachable!("nobody in the world tells modules anything"),
            // A record that cannot be taken away stays until its lease ends and the node starts again.
            StoreJob::Forget { user, module } => {
                self.unwritten.remove(&(user.clone(), module.clone()));
                self.store.remove(&(user, module));
            }
            StoreJob::ForgetUser { .. } | StoreJob::PutList(_) => {}
            StoreJob::PutUsage(_) if refuses => return false,
            StoreJob::PutUsage(change) => {
                self.usage.retain(|key, _| !change.forget.contains(key));
                self.usage.extend(change.put);
            }
        }
        true
    }

    /// A worker is gone; what it counted is still to be read.
    fn lose(&mut self, worker: &WorkerId) {
        if self.workers.remove(worker).is_some() {
            self.metered.end_worker(worker);
        }
    }

    fn measure(&self) -> Measured {
        let counts = |(worker, inside): (&WorkerId, &Worker)| {
            let module = |slot: &ModuleSlot| ModuleCounts {
                worker: worker.clone(),
                slot: *slot,
                packets: PacketCounts { seen: 1, passed: 1, ..PacketCounts::default() },
                counters: BTreeMap::new(),
                server: None,
            };
            let loaded = inside.modules.iter().filter(|(_, module)| module.loaded);
            loaded.map(|(slot, _)| module(slot)).collect::<Vec<_>>()
        };
        Measured { modules: self.workers.iter().flat_map(counts).collect(), ..Measured::default() }
    }

    fn worker(&mut self, worker: &WorkerId, generation: EffectId) -> Option<&mut Worker> {
        self.workers.get_mut(worker).filter(|known| known.generation == generation)
    }

    fn happens(&self, permille: u32, rng: &mut StdRng) -> bool {
        rng.random_range(0..1000) < permille
    }

    fn time(&self, rng: &mut StdRng) -> Duration {
        let slow = self.happens(self.quality.slow_permille, rng);
        rng.random_range(Duration::ZERO..=if slow { self.quality.slow_time_max } else { self.quality.time_max })
    }
}

fn life(rng: &mut StdRng) -> Duration {
    rng.random_range(Duration::ZERO..=LIFE_MAX)
}

fn news(worker: WorkerId, generation: EffectId, what: WorkerNews) -> Option<Input> {
    Some(Input::News(News { worker, generation, what }))
}

fn failed(slot: ModuleSlot) -> WorkerNews {
    WorkerNews::Failed { slot, refusal: Refusal::new(RefusalKind::Trapped, "as the seed says") }
}
