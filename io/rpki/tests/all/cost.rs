// SPDX-License-Identifier: Apache-2.0
//! What a check costs.

use std::time::Duration;

use netserv_rpki::limits::SETTLED_AFTER;
use rustix::time::{ClockId, clock_gettime};

use crate::scene::{HOLDER, Scene, grant, now};

/// Goal: a check takes at most 5 ms of processor time with a cache of 20,000 objects. Method: the holder publishes 20,000 objects, so
/// that all are in a manifest that the check reads. The median of 21 checks counts. Without optimisation, 25 ms are allowed.
#[test]
fn a_check_with_20000_objects_takes_five_milliseconds() {
    let mut scene = Scene::new();
    let object = vec![0x5A; 2000];
    let objects = (0..20_000).map(|number| (format!("{:040x}.roa", number * 7919), object.clone()));
    scene.tree.at(HOLDER).files.extend(objects);
    let staged = scene.stage();
    let written = staged.write();
    let cache = written.open();
    let mut costs: Vec<Duration> = (0..21)
        .map(|_| {
            let start = cpu_time();
            cache.check(&staged.checklist, &grant(), now()).unwrap();
            cpu_time() - start
        })
        .collect();
    costs.sort();
    let cost = costs[costs.len() / 2];
    let bound = Duration::from_millis(if cfg!(debug_assertions) { 25 } else { 5 });
    println!("a check with 20,000 objects: {cost:?}, least {:?}, most {:?}", costs[0], costs[costs.len() - 1]);
    assert!(cost <= bound, "{cost:?}");
}

/// Goal: a holder who publishes as much as a file may have, with many users, holds up no look at others' rights. Method: a manifest of 48,000
/// files and 100,000 revoked certificates; the first check reads them, those after it do not before a file changes.
#[test]
fn a_check_of_what_has_not_changed_reads_nothing() {
    let mut scene = Scene::new();
    let object = vec![0x5A; 20];
    let objects = (0..48_000).map(|number| (format!("{:040x}.roa", number * 7919), object.clone()));
    let holder = scene.tree.at(HOLDER);
    holder.files.extend(objects);
    holder.revoked.extend((0..100_000).map(|number| (1 << 40) + number));
    let mut staged = scene.stage();
    staged.files.retain(|path, _| !path.ends_with(".roa"));
    let written = staged.write();
    let cache = written.open();
    let check = || {
        let start = cpu_time();
        let holder = cache.check_again(&staged.checklist, &grant(), now()).unwrap();
        (holder, cpu_time() - start)
    };
    let settle = || std::thread::sleep(SETTLED_AFTER + Duration::from_secs(1));
    settle();
    let ((first, read), (second, known)) = (check(), check());
    println!("a check that reads: {read:?}, of what is known: {known:?}");
    assert_eq!(first, second);
    assert!(known < read / 10 && known < Duration::from_millis(5), "{known:?}");
    let list = staged.files.keys().find(|path| path.ends_with("holder.crl")).unwrap();
    let list = written.cache.join(list);
    let bytes = std::fs::read(&list).unwrap();
    std::fs::write(&list, bytes).unwrap();
    // It may change once more within the same tick, so the next check reads it, too.
    let costs = [check().1, check().1];
    assert!(costs.iter().all(|cost| *cost > read / 4), "a file has just changed: {costs:?}");
    settle();
    check();
    assert!(check().1 < read / 10);
}

/// Goal: a run of the relying party costs as much as the files that it changes, however many users' rights depend on these. Method: a holder who
/// publishes 20,000 objects and revoked 50,000 certificates signs 16 checklists; then its manifest changes.
#[test]
fn a_file_that_changed_is_read_once_for_all_checklists() {
    let mut scene = Scene::new();
    let object = vec![0x5A; 20];
    let objects = (0..20_000).map(|number| (format!("{:040x}.roa", number * 7919), object.clone()));
    let holder = scene.tree.at(HOLDER);
    holder.files.extend(objects);
    holder.revoked.extend((0..50_000).map(|number| (1 << 40) + number));
    let checklists: Vec<Vec<u8>> = (0..16).map(|_| scene.tree.sign(HOLDER, &scene.checklist)).collect();
    let mut staged = scene.stage();
    staged.files.retain(|path, _| !path.ends_with(".roa"));
    let written = staged.write();
    let cache = written.open();
    let check_all = || -> Vec<Duration> {
        let check = |checklist: &Vec<u8>| {
            let start = cpu_time();
            cache.check_again(checklist, &grant(), now()).unwrap();
            cpu_time() - start
        };
        checklists.iter().map(check).collect()
    };
    let settle = || std::thread::sleep(SETTLED_AFTER + Duration::from_secs(1));
    settle();
    check_all();
    let manifest = staged.files.keys().find(|path| path.ends_with("holder.mft")).unwrap();
    let manifest = written.cache.join(manifest);
    let bytes = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, bytes).unwrap();
    settle();
    let costs = check_all();
    let (first, others): (Duration, Duration) = (costs[0], costs[1..].iter().sum());
    println!("after a change, the first check takes {first:?}, the 15 others {others:?}");
    assert!(others < 4 * first, "{costs:?}");
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
