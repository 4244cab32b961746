// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeMap;

use netserv_model::effect::EffectId;
use netserv_model::usage::{Held, Meters, ModuleMeter, NetworkMeter, Traffic, UsageKey, WorkerMeter};
use netserv_model::{Flavour, Instant, ModuleName, Now, UnixTime, UserId, WorkerId};

use crate::Ledger;
use crate::limits::{METERED_RUNS_MAX, USAGE_MODULES_PER_USER_MAX, USAGE_USERS_MAX};

#[test]
fn what_is_held_costs_the_mean_of_two_readings_and_only_between_them() {
    let mut ledger = Ledger::default();
    let held = |memory_bytes, disk_bytes| {
        let held = BTreeMap::from([(user("jane"), Held { memory_bytes, disk_bytes })]);
        Meters { held, ..Meters::default() }
    };
    let sum =
        |ledger: &Ledger| ledger.users().next().map(|(_, usage)| (usage.memory_byte_seconds, usage.disk_byte_seconds));
    ledger.take(at(0), held(1000, 10), &keeps);
    assert_eq!(sum(&ledger), None, "nobody knows since when");
    ledger.take(at(10_000), held(3000, 10), &keeps);
    assert_eq!(sum(&ledger), Some((20_000, 100)));
    ledger.take(at(10_050), held(3001, 10), &keeps);
    ledger.take(at(10_100), held(3001, 10), &keeps);
    assert_eq!(sum(&ledger), Some((20_300, 101)), "parts of a byte-second are kept");
    ledger.take(at(20_000), Meters::default(), &keeps);
    ledger.take(at(30_000), held(5000, 10), &keeps);
    assert_eq!(sum(&ledger), Some((20_300, 101)), "nothing is known of the time between");
}

#[test]
fn a_workers_time_is_shared_by_who_was_found_at_work() {
    let mut ledger = Ledger::default();
    let mut all = meters(1000, false);
    for (load, module, busy) in [(1, "a", 3), (2, "b", 1), (3, "c", 0)] {
        all.modules.push(module_meter(load, module, 1, busy));
    }
    ledger.take(at(0), all.clone(), &keeps);
    all.workers[0].cpu_ns = 1100;
    all.modules[1].busy = 2;
    ledger.take(at(10), all, &keeps);
    let report = ledger.report();
    let shares: Vec<u64> = report.users[0].modules.iter().map(|module| module.cpu_ns).collect();
    assert_eq!((shares, report.users[0].usage.cpu_ns), (vec![750, 350, 0], 1100));
    assert_eq!(report.users[0].usage.packets.packets_in, 3);
}

#[test]
fn networks_of_a_user_are_told_apart() {
    let mut ledger = Ledger::default();
    let network = |made, bytes_in, ended| {
        let traffic = Traffic { bytes_in, ..Traffic::default() };
        NetworkMeter { user: user("jane"), made, traffic, ended }
    };
    let read = |networks| Meters { networks, ..Meters::default() };
    ledger.take(at(0), read(vec![network(1, 500, false)]), &keeps);
    ledger.take(at(1), read(vec![network(1, 700, true), network(2, 900, false)]), &keeps);
    ledger.take(at(2), read(vec![network(2, 900, false)]), &keeps);
    assert_eq!(ledger.report().users[0].usage.network.bytes_in, 1600);
}

#[test]
fn users_are_told_apart_up_to_a_bound_those_of_the_policy_first() {
    let mut ledger = Ledger::default();
    let name = |n: usize| user(&format!("u{n}"));
    let worker = |n: usize| WorkerMeter {
        worker: WorkerId::new(name(n), Flavour::Wasm),
        generation: EffectId(n as u64),
        cpu_ns: 1,
        ended: true,
    };
    let take = |ledger: &mut Ledger, n: usize, keeps: &dyn Fn(&UserId) -> bool| {
        ledger.take(at(n as u64), Meters { workers: vec![worker(n)], ..Meters::default() }, keeps);
    };
    let keeps = |user: &UserId| user.as_str() == "u0";
    for n in 0..USAGE_USERS_MAX {
        take(&mut ledger, n, &keeps);
    }
    assert!(ledger.report().others.is_none());
    ledger.take_change();
    take(&mut ledger, USAGE_USERS_MAX, &keeps);
    let report = ledger.report();
    let known = |n: usize| report.users.iter().any(|used| used.user == name(n));
    assert_eq!((report.users.len(), report.others.unwrap().cpu_ns), (USAGE_USERS_MAX, 1));
    assert!(known(0) && !known(1) && known(2) && known(USAGE_USERS_MAX));
    let change = ledger.take_change().unwrap();
    assert_eq!(change.forget, [UsageKey::of_user(&name(1))]);
    assert!(change.put.keys().eq([&UsageKey::default(), &UsageKey::of_user(&name(USAGE_USERS_MAX))]));
    ledger.not_stored(change.clone());
    assert_eq!(ledger.take_change(), Some(change), "what is not stored is tried again");
    // One that comes back begins anew, and is in both.
    take(&mut ledger, 1, &keeps);
    assert_eq!(ledger.report().others.unwrap().cpu_ns, 2);
}

#[test]
fn modules_of_a_user_are_told_apart_up_to_a_bound_and_the_sum_has_all() {
    let mut ledger = Ledger::default();
    for n in 0..=USAGE_MODULES_PER_USER_MAX {
        let module = module_meter(n as u64, &format!("m{n}"), 2, 0);
        ledger.take(at(n as u64), Meters { modules: vec![module], ..Meters::default() }, &keeps);
    }
    let used = ledger.report().users.remove(0);
    assert_eq!(used.modules.len(), USAGE_MODULES_PER_USER_MAX);
    assert!(used.modules.iter().all(|module| module.module != name("m0")), "the oldest is not told apart");
    assert_eq!(used.usage.packets.packets_in, 2 * (USAGE_MODULES_PER_USER_MAX as u64 + 1));
    assert_eq!(ledger.take_change().unwrap().forget, [UsageKey::of_module(&user("jane"), &name("m0"))]);
}

/// What is not remembered while it runs is counted at its end, once.
#[test]
fn runs_are_remembered_up_to_a_bound() {
    let mut ledger = Ledger::default();
    let mut worker = meters(1, false).workers.remove(0);
    for n in 0..METERED_RUNS_MAX {
        worker.generation = EffectId(n as u64);
        ledger.take(at(0), Meters { workers: vec![worker.clone()], ..Meters::default() }, &keeps);
    }
    let before = ledger.report().users[0].usage.cpu_ns;
    worker.generation = EffectId(METERED_RUNS_MAX as u64);
    let mut read = |cpu_ns, ended| {
        (worker.cpu_ns, worker.ended) = (cpu_ns, ended);
        ledger.take(at(1), Meters { workers: vec![worker.clone()], ..Meters::default() }, &keeps);
        ledger.report().users[0].usage.cpu_ns - before
    };
    assert_eq!([read(5, false), read(7, false), read(9, true)], [0, 0, 9]);
}

fn meters(cpu_ns: u64, ended: bool) -> Meters {
    let worker = WorkerMeter { worker: jane(Flavour::Wasm), generation: EffectId(0), cpu_ns, ended };
    Meters { workers: vec![worker], ..Meters::default() }
}

fn module_meter(load: u64, module: &str, packets_in: u64, busy: u64) -> ModuleMeter {
    let packets = Traffic { packets_in, ..Traffic::default() };
    let (load, worker, module) = (EffectId(load), jane(Flavour::Wasm), name(module));
    ModuleMeter { load, worker, module, packets, busy, ended: false }
}

fn at(ms: u64) -> Now {
    Now { instant: Instant::from_millis(1000 + ms), wall: UnixTime(1_800_000_000_000 + ms) }
}

fn keeps(_: &UserId) -> bool {
    true
}

fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

fn jane(flavour: Flavour) -> WorkerId {
    WorkerId::new(user("jane"), flavour)
}

fn name(module: &str) -> ModuleName {
    format!("example.org/{module}").parse().unwrap()
}
