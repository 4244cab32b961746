// SPDX-License-Identifier: Apache-2.0
//! The sums.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::api::{ModuleUsage, UsageReport, UserUsage};
use netserv_model::effect::EffectId;
use netserv_model::usage::{Held, Meters, Traffic, Usage, UsageChange, UsageKey, Used};
use netserv_model::{Instant, Now, UnixTime, UserId, WorkerId};

use crate::limits::{METERED_RUNS_MAX, USAGE_MODULES_PER_USER_MAX, USAGE_USERS_MAX};

/// The sums, and what they were last made of.
#[derive(Debug, Default)]
pub struct Ledger {
    sums: BTreeMap<UsageKey, Used>,
    /// Users with a sum, and how many modules of each have one.
    users: BTreeMap<UserId, usize>,
    /// What each run had counted when it was last read.
    runs: BTreeMap<Run, Count>,
    /// What each user held when it was last read.
    held: BTreeMap<UserId, Level>,
    /// Sums that are not stored as they are.
    unstored: BTreeSet<UsageKey>,
    /// Sums that are stored and should not be.
    folded: BTreeSet<UsageKey>,
}

/// What counts from zero on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Run {
    Module(EffectId),
    Worker(EffectId),
    Network(UserId, u64),
}

/// What a run had counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    traffic: Traffic,
    /// Time on a processor, or looks.
    time: u64,
}

impl Count {
    fn since(self, before: Count) -> Count {
        let time = if self.time < before.time { self.time } else { self.time - before.time };
        Count { traffic: self.traffic.since(before.traffic), time }
    }
}

/// What a user held at one moment, and what of the byte-seconds since is less than one, in bytes times milliseconds.
#[derive(Clone, Copy, Debug)]
struct Level {
    held: Held,
    at: Instant,
    rest: (u64, u64),
}

impl Ledger {
    /// Takes over sums of an earlier run.
    pub fn restore(&mut self, stored: Vec<(UsageKey, Used)>) {
        for (key, used) in stored {
            let Used { since, until, usage } = used;
            self.add(&key, since, &usage, &|_| false);
            if let Some(sum) = self.sums.get_mut(&key) {
                sum.until = sum.until.max(until);
            }
        }
        self.unstored.clear();
    }

    /// Adds what meters counted since they were last read. `keeps` says whether a user is to be told apart rather than
    /// others.
    pub fn take(&mut self, now: Now, meters: Meters, keeps: &dyn Fn(&UserId) -> bool) {
        let Meters { modules, workers, networks, held } = meters;
        let mut work: BTreeMap<WorkerId, Work> = BTreeMap::new();
        for meter in modules {
            let count = Count { traffic: meter.packets, time: meter.busy };
            let Some(more) = self.count(Run::Module(meter.load), count, meter.ended) else { continue };
            let (user, key) = (&meter.worker.user, UsageKey::of_module(&meter.worker.user, &meter.module));
            let usage = Usage { packets: more.traffic, ..Usage::default() };
            self.add(&UsageKey::of_user(user), now.wall, &usage, keeps);
            self.add(&key, now.wall, &usage, keeps);
            work.entry(meter.worker).or_default().modules.push((key, more.time));
        }
        for meter in workers {
            let count = Count { traffic: Traffic::default(), time: meter.cpu_ns };
            let Some(more) = self.count(Run::Worker(meter.generation), count, meter.ended) else { continue };
            let usage = Usage { cpu_ns: more.time, ..Usage::default() };
            self.add(&UsageKey::of_user(&meter.worker.user), now.wall, &usage, keeps);
            let work = work.entry(meter.worker).or_default();
            work.cpu_ns = work.cpu_ns.saturating_add(more.time);
        }
        for (key, cpu_ns) in work.into_values().flat_map(Work::shares) {
            self.add(&key, now.wall, &Usage { cpu_ns, ..Usage::default() }, keeps);
        }
        for meter in networks {
            let count = Count { traffic: meter.traffic, time: 0 };
            let Some(more) = self.count(Run::Network(meter.user.clone(), meter.made), count, meter.ended) else {
                continue;
            };
            let usage = Usage { network: more.traffic, ..Usage::default() };
            self.add(&UsageKey::of_user(&meter.user), now.wall, &usage, keeps);
        }
        self.take_held(now, held, keeps);
    }

    /// Returns what is to be stored, which is taken for stored from here on.
    pub fn take_change(&mut self) -> Option<UsageChange> {
        let unstored = std::mem::take(&mut self.unstored);
        let put: BTreeMap<UsageKey, Used> =
            unstored.into_iter().filter_map(|key| self.sums.get(&key).map(|used| (key, *used))).collect();
        let forget: Vec<UsageKey> = std::mem::take(&mut self.folded).into_iter().collect();
        (!put.is_empty() || !forget.is_empty()).then_some(UsageChange { put, forget })
    }

    /// Takes note that a change is not stored.
    pub fn not_stored(&mut self, change: UsageChange) {
        for key in change.put.into_keys().chain(change.forget) {
            if self.sums.contains_key(&key) {
                self.unstored.insert(key);
            } else {
                self.folded.insert(key);
            }
        }
    }

    /// Returns the sums.
    pub fn report(&self) -> UsageReport {
        let mut report = UsageReport::default();
        for (key, Used { since, until, usage }) in &self.sums {
            let (since, until, usage) = (*since, *until, *usage);
            match (&key.user, &key.module) {
                (None, _) => report.others = Some(usage),
                (Some(user), None) => {
                    report.users.push(UserUsage { user: user.clone(), since, until, usage, modules: Vec::new() });
                }
                // A user's own sum comes before those of the user's modules.
                (Some(_), Some(module)) => {
                    let (module, packets, cpu_ns) = (module.clone(), usage.packets, usage.cpu_ns);
                    let of_module = ModuleUsage { module, since, until, packets, cpu_ns };
                    report.users.last_mut().into_iter().for_each(|user| user.modules.push(of_module.clone()));
                }
            }
        }
        report
    }

    /// Returns each user's sum.
    pub fn users(&self) -> impl Iterator<Item = (&UserId, &Usage)> {
        let of_user = |(key, used): (_, _)| {
            let (UsageKey { user, module }, Used { usage, .. }): (&UsageKey, &Used) = (key, used);
            user.as_ref().filter(|_| module.is_none()).map(|user| (user, usage))
        };
        self.sums.iter().filter_map(of_user)
    }

    /// Returns what a run counted since it was last read; nothing of one that is remembered only at its end.
    fn count(&mut self, run: Run, count: Count, ended: bool) -> Option<Count> {
        if ended {
            return Some(count.since(self.runs.remove(&run).unwrap_or_default()));
        }
        if self.runs.len() >= METERED_RUNS_MAX && !self.runs.contains_key(&run) {
            return None;
        }
        let before = self.runs.insert(run, count).unwrap_or_default();
        Some(count.since(before))
    }

    /// Adds what users held between two readings: the mean of both, for those that both know. What came or went between
    /// them was there for an unknown part of it and costs nothing.
    fn take_held(&mut self, now: Now, held: BTreeMap<UserId, Held>, keeps: &dyn Fn(&UserId) -> bool) {
        let before = std::mem::take(&mut self.held);
        for (user, held) in held {
            let mut level = Level { held, at: now.instant, rest: (0, 0) };
            if let Some(before) = before.get(&user) {
                let ms = now.instant.since(before.at).as_millis();
                let over = |one: u64, other: u64, rest: u64| {
                    let all = (u128::from(one) + u128::from(other)) * ms / 2 + u128::from(rest);
                    let rest = u64::try_from(all % 1000).unwrap_or(0);
                    (u64::try_from(all / 1000).unwrap_or(u64::MAX), rest)
                };
                let (memory, rest_memory) = over(before.held.memory_bytes, held.memory_bytes, before.rest.0);
                let (disk, rest_disk) = over(before.held.disk_bytes, held.disk_bytes, before.rest.1);
                level.rest = (rest_memory, rest_disk);
                let usage = Usage { memory_byte_seconds: memory, disk_byte_seconds: disk, ..Usage::default() };
                self.add(&UsageKey::of_user(&user), now.wall, &usage, keeps);
            }
            self.held.insert(user, level);
        }
    }

    /// Adds to a sum, and makes it if there is none; usage from `wall` on.
    fn add(&mut self, key: &UsageKey, wall: UnixTime, usage: &Usage, keeps: &dyn Fn(&UserId) -> bool) {
        if !self.sums.contains_key(key) {
            if let (Some(user), Some(_)) = (&key.user, &key.module) {
                // Each module's usage is in its user's, so that there is one.
                self.add(&UsageKey::of_user(user), wall, &Usage::default(), keeps);
            }
            self.make_room(key, keeps);
            self.sums.insert(key.clone(), Used { since: wall, until: wall, usage: Usage::default() });
            self.folded.remove(key);
            self.unstored.insert(key.clone());
            if let Some(user) = &key.user {
                *self.users.entry(user.clone()).or_default() += usize::from(key.module.is_some());
            }
        }
        let Some(used) = self.sums.get_mut(key) else { return };
        used.since = used.since.min(wall);
        used.until = used.until.max(wall);
        if *usage != Usage::default() {
            used.usage.add(usage);
            self.unstored.insert(key.clone());
        }
    }

    /// Has another sum make room for a new one, if there are too many of its kind.
    fn make_room(&mut self, key: &UsageKey, keeps: &dyn Fn(&UserId) -> bool) {
        let Some(user) = &key.user else { return };
        if key.module.is_some() {
            if self.users.get(user).is_some_and(|modules| *modules >= USAGE_MODULES_PER_USER_MAX) {
                let modules = self.of(user).filter(|(key, _)| key.module.is_some());
                let oldest = modules.min_by_key(|(_, used)| used.until).map(|(key, _)| key.clone());
                oldest.into_iter().for_each(|oldest| self.remove(&oldest));
            }
        } else if self.users.len() >= USAGE_USERS_MAX && !self.users.contains_key(user) {
            let until = |user: &UserId| self.sums.get(&UsageKey::of_user(user)).map(|used| used.until);
            let oldest = self.users.keys().min_by_key(|user| (keeps(user), until(user))).cloned();
            oldest.into_iter().for_each(|oldest| self.fold(&oldest));
        }
    }

    /// Adds a user's sum to that of the others, and forgets it.
    fn fold(&mut self, user: &UserId) {
        let keys: Vec<UsageKey> = self.of(user).map(|(key, _)| key.clone()).collect();
        if let Some(Used { since, until, usage }) = self.sums.get(&UsageKey::of_user(user)).copied() {
            let others = UsageKey::default();
            self.add(&others, since, &usage, &|_| false);
            self.add(&others, until, &Usage::default(), &|_| false);
        }
        keys.iter().for_each(|key| self.remove(key));
        self.users.remove(user);
    }

    fn remove(&mut self, key: &UsageKey) {
        self.sums.remove(key);
        self.unstored.remove(key);
        self.folded.insert(key.clone());
        if let (Some(user), Some(_)) = (&key.user, &key.module)
            && let Some(modules) = self.users.get_mut(user)
        {
            *modules -= 1;
        }
    }

    /// Returns a user's sums, the one of all first.
    fn of(&self, user: &UserId) -> impl Iterator<Item = (&UsageKey, &Used)> {
        let from = UsageKey::of_user(user);
        self.sums.range(from.clone()..).take_while(move |(key, _)| key.user == from.user)
    }
}

/// What the modules of one worker did between two readings, and how long it was on a processor.
#[derive(Default)]
struct Work {
    cpu_ns: u64,
    /// How often each was found at work.
    modules: Vec<(UsageKey, u64)>,
}

impl Work {
    /// Shares the time out among the modules.
    fn shares(self) -> Vec<(UsageKey, u64)> {
        let all: u128 = self.modules.iter().map(|(_, busy)| u128::from(*busy)).sum();
        let share = |busy: u64| (u128::from(self.cpu_ns) * u128::from(busy)).checked_div(all).unwrap_or(0);
        let shares = self.modules.into_iter().map(|(key, busy)| (key, u64::try_from(share(busy)).unwrap_or(u64::MAX)));
        shares.filter(|(_, share)| *share > 0).collect()
    }
}
