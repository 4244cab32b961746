// SPDX-License-Identifier: Apache-2.0
//! The meters of a machine that is not there: each counts something in each step, and what it counts is noted beside it.

use std::collections::BTreeMap;

use netserv_model::api::{ModuleUsage, UsageReport, UserUsage};
use netserv_model::effect::{EffectId, ModuleLoad, ModuleSlot};
use netserv_model::usage::{Meters, ModuleMeter, Traffic, Usage, UsageKey, Used, WorkerMeter};
use netserv_model::{UserId, WorkerId};

/// Packets and bytes, or nanoseconds, of each user and module.
pub type Sums = BTreeMap<UsageKey, (Traffic, u64)>;

/// The meters, and what they counted in all.
#[derive(Debug, Default)]
pub struct Metered {
    meters: Meters,
    /// In which place each module is that counts.
    places: BTreeMap<EffectId, (WorkerId, ModuleSlot)>,
    sums: Sums,
}

impl Metered {
    /// A worker has begun, and counts.
    pub fn begin_worker(&mut self, worker: &WorkerId, generation: EffectId) {
        self.meters.workers.push(WorkerMeter { worker: worker.clone(), generation, cpu_ns: 0, ended: false });
    }

    /// A module has begun in its place, and counts.
    pub fn begin_module(&mut self, load: &ModuleLoad, id: EffectId) {
        let (worker, module) = (load.worker.clone(), load.module.name.clone());
        self.places.insert(id, (worker.clone(), load.slot));
        let packets = Traffic::default();
        self.meters.modules.push(ModuleMeter { load: id, worker, module, packets, busy: 0, ended: false });
    }

    /// The module in a place has ended.
    pub fn end_module(&mut self, worker: &WorkerId, slot: ModuleSlot) {
        self.end_modules(|place| *place == (worker.clone(), slot));
    }

    /// A worker has ended, with its modules.
    pub fn end_worker(&mut self, worker: &WorkerId) {
        self.end_modules(|(inside, _)| inside == worker);
        self.meters.workers.iter_mut().filter(|meter| meter.worker == *worker).for_each(|meter| meter.ended = true);
    }

    /// Has every meter count that has not ended.
    pub fn count(&mut self) {
        for meter in self.meters.modules.iter_mut().filter(|meter| !meter.ended) {
            let n = meter.load.0 % 5;
            let more = Traffic { packets_in: n, bytes_in: n * 100, packets_out: 1, bytes_out: 60 };
            meter.packets.add(more);
            let user = &meter.worker.user;
            add(&mut self.sums, UsageKey::of_module(user, &meter.module), more, 0);
            add(&mut self.sums, UsageKey::of_user(user), more, 0);
        }
        for meter in self.meters.workers.iter_mut().filter(|meter| !meter.ended) {
            meter.cpu_ns += 7;
            add(&mut self.sums, of_user(&meter.worker), Traffic::default(), 7);
        }
    }

    /// Returns what the meters say; those that ended are forgotten.
    pub fn read(&mut self) -> Meters {
        let meters = self.meters.clone();
        self.meters.end();
        meters
    }

    /// The machine forgets all meters; what was counted is taken to be this.
    pub fn restart(&mut self, sums: Sums) {
        *self = Metered { sums, ..Metered::default() };
    }

    /// Returns what was counted in all.
    pub fn sums(&self) -> Sums {
        self.sums.iter().filter(|(_, sum)| **sum != Default::default()).map(|(key, sum)| (key.clone(), *sum)).collect()
    }

    /// Returns whether nothing is left to be read.
    pub fn is_read(&self) -> bool {
        self.meters == Meters::default()
    }

    /// Checks that a node knows of nothing that was not counted, and of everything that was read.
    ///
    /// # Panics
    /// If it is not so.
    pub fn check(&self, report: &UsageReport) {
        let mut known = Sums::new();
        for UserUsage { user, usage, modules, .. } in &report.users {
            known.insert(UsageKey::of_user(user), (usage.packets, usage.cpu_ns));
            let of_module = |module: &ModuleUsage| (module.packets, module.cpu_ns);
            known.extend(modules.iter().map(|module| (UsageKey::of_module(user, &module.module), of_module(module))));
        }
        for (key, (packets, cpu_ns)) in &known {
            let counted = self.sums.get(key).copied().unwrap_or_default();
            assert!(packets.bytes_in <= counted.0.bytes_in && *cpu_ns <= counted.1, "{key:?} counted twice");
            assert!(packets.packets_out <= counted.0.packets_out, "{key:?} counted twice");
        }
        if self.is_read() {
            known.retain(|_, sum| *sum != Default::default());
            assert_eq!(known, self.sums());
        }
    }

    fn end_modules(&mut self, which: impl Fn(&(WorkerId, ModuleSlot)) -> bool) {
        let meters = &mut self.meters.modules;
        self.places.retain(|load, place| {
            let ends = which(place);
            meters.iter_mut().filter(|meter| ends && meter.load == *load).for_each(|meter| meter.ended = true);
            !ends
        });
    }
}

/// Returns the same of sums that were stored.
pub fn sums(stored: &BTreeMap<UsageKey, Used>) -> Sums {
    let sum = |usage: &Usage| (usage.packets, usage.cpu_ns);
    let sums = stored.iter().map(|(key, used)| (key.clone(), sum(&used.usage)));
    sums.filter(|(_, sum)| *sum != Default::default()).collect()
}

fn add(sums: &mut Sums, key: UsageKey, traffic: Traffic, ns: u64) {
    let sum = sums.entry(key).or_default();
    sum.0.add(traffic);
    sum.1 += ns;
}

fn of_user(worker: &WorkerId) -> UsageKey {
    let user: &UserId = &worker.user;
    UsageKey::of_user(user)
}
