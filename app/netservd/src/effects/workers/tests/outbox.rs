// SPDX-License-Identifier: Apache-2.0
//! Workers that do not read for a while.

use netserv_wire::container::media::MediaOutcome;

use super::*;
use crate::limits::FRAMES_UNSENT_MAX;

#[tokio::test]
async fn what_a_worker_has_no_room_for_comes_later() {
    let mut rig = Rig::new();
    let container = rig.start("alice").await;
    let told = rig.fill();
    // Neither is asked for again: the answer to a wish, and the end of a job.
    assert!(container.send(&FromWorker::Sockets { count: 1, v6: true }));
    rig.hear().await;
    let ended = ToWorker::MediaEnded { job: 7, outcome: MediaOutcome::Done, detail: String::new() };
    rig.workers.tell(&id("alice"), ended.clone());
    let mut read = Vec::new();
    while read.len() < told + 2 {
        read.extend(std::iter::from_fn(|| container.receive()));
        if read.len() < told + 2 {
            rig.hear().await;
        }
    }
    assert_eq!(read.split_off(told), [ToWorker::Sockets { v6: true }, ended]);
    assert!(!rig.workers.workers[&id("alice")].control.is_waiting());
}

#[tokio::test]
async fn a_worker_that_does_not_read_for_too_long_is_killed() {
    let mut rig = Rig::new();
    let container = rig.start("alice").await;
    rig.fill();
    for _ in 1..FRAMES_UNSENT_MAX {
        rig.workers.tell(&id("alice"), permit());
    }
    assert_eq!(rig.workers.poll_news(), None);
    rig.workers.tell(&id("alice"), permit());
    let Some(News { what: WorkerNews::Died { refusal, .. }, .. }) = rig.workers.poll_news() else { panic!("no death") };
    assert!(refusal.detail.contains("does not take frames"), "{refusal}");
    assert!(container.receive().is_some());
}

impl Rig {
    /// Tells alice's worker things until one of them has to wait. Returns how many.
    fn fill(&mut self) -> usize {
        let mut told = 0;
        while !self.workers.workers[&id("alice")].control.is_waiting() {
            self.workers.tell(&id("alice"), permit());
            told += 1;
        }
        told
    }
}

fn permit() -> ToWorker {
    ToWorker::Permit { connect: vec![], listen: vec![] }
}
