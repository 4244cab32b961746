// SPDX-License-Identifier: Apache-2.0
//! Meters of modules and workers: each run is told until its end was told.

use netserv_model::usage::{Meters, Traffic};

use super::*;
use crate::limits::METERED_MAX;

#[tokio::test]
async fn a_load_is_told_until_its_end_was_told() {
    let mut rig = Rig::new();
    let container = rig.start("alice").await;
    let files = rig.files();
    assert_eq!(rig.load_from(load("alice"), files.clone()), None);
    let first = rig.read().await;
    assert_eq!(loads(&first), [(rig.next_effect - 1, false)]);
    assert_eq!(first.modules[0].packets, Traffic::default());
    assert_eq!(first.workers.len(), 1);
    assert!(!first.workers[0].ended && first.go_on());
    rig.unload("alice");
    assert_eq!(rig.load_from(load("alice"), files), None);
    let second = rig.next_effect;
    let both = rig.read().await;
    assert_eq!(loads(&both), [(loads(&first)[0].0, true), (second, false)]);
    assert_eq!(loads(&rig.read().await), [(second, false)], "the end was told");
    drop(container);
}

/// The last word on a worker's time comes with how it ended.
#[tokio::test]
async fn a_worker_is_told_until_it_is_known_how_it_ended() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    let files = rig.files();
    rig.load_from(load("alice"), files);
    container.hang_up();
    let Some(News { what: WorkerNews::Died { .. }, .. }) = rig.next().await else { panic!("no death") };
    let meters = rig.read().await;
    assert!(meters.workers.iter().all(|meter| !meter.ended) && meters.workers.len() == 1);
    assert!(meters.modules.iter().all(|meter| meter.ended), "{meters:?}");
    container.report_signal(9).unwrap();
    assert!(rig.read().await.workers[0].ended);
    assert_eq!(rig.read().await, Meters::default());
}

/// A worker that ends by itself is told while it does, and after.
#[tokio::test]
async fn a_worker_that_is_told_to_end_goes_on_to_be_told() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    rig.stop("alice");
    assert_eq!(rig.read().await.workers.len(), 1);
    container.report_signal(9).unwrap();
    rig.hear().await;
    let last = rig.read().await;
    assert!(last.workers.len() == 1 && last.workers[0].ended, "{last:?}");
    assert_eq!(rig.read().await, Meters::default());
}

#[tokio::test]
async fn nothing_begins_while_nobody_reads_what_ended() {
    let mut rig = Rig::new();
    let _container = rig.start("alice").await;
    let files = rig.files();
    let (worker, module) = (id("bob"), load("bob").module.name);
    for n in 0..METERED_MAX {
        assert!(rig.workers.metered.has_room());
        let slot = ModuleSlot(u8::try_from(n % 64).unwrap());
        rig.workers.metered.note(EffectId(1 << 32 | u64::try_from(n).unwrap()), &worker, slot, module.clone());
    }
    rig.workers.metered.end(&worker, None);
    let refused = rig.load_from(load("alice"), files).unwrap();
    assert!(refused.detail.contains("nobody reads"), "{refused}");
    assert!(rig.ask("bob").unwrap().detail.contains("nobody reads"));
    rig.read().await;
    assert_eq!(rig.ask("bob"), None);
}

impl Rig {
    async fn read(&mut self) -> Meters {
        let ticket = self.ticket();
        self.workers.carry_out(WorkersJob::ReadMeters(Vec::new(), ticket));
        let outcome = self.answers.recv().await.unwrap().outcome;
        let EffectOutcome::Metered(meters) = outcome else { panic!("{outcome:?}") };
        *meters
    }

    /// Returns files that a module could be loaded from, if somebody looked into them.
    fn files(&self) -> LoadFiles {
        let path = self.dir.path().join("code");
        std::fs::write(&path, "code").unwrap();
        LoadFiles {
            code: Some(CodeParts { packet: Some(path), ..CodeParts::default() }),
            composition: None,
            state: None,
        }
    }
}

fn loads(meters: &Meters) -> Vec<(u64, bool)> {
    meters.modules.iter().map(|meter| (meter.load.0, meter.ended)).collect()
}
