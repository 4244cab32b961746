// SPDX-License-Identifier: Apache-2.0
//! Workers that were told to end, and what waits for that.

use std::sync::atomic::{AtomicBool, Ordering};

use netserv_model::manifest::ServerPart;
use netserv_wire::container::frames::ToWorker;

use super::*;

/// Goal: requests that are under way when the user's last module goes can be answered.
#[tokio::test]
async fn a_worker_with_a_server_has_time_to_end() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    rig.serve(&container);
    rig.unload("alice");
    rig.stop("alice");
    let told: Vec<ToWorker> = std::iter::from_fn(|| container.receive()).collect();
    assert_eq!(told, [ToWorker::Unload { slot: ModuleSlot(0) }, ToWorker::Shutdown]);
    // Longer than a worker gets that serves nothing.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(rig.workers.is_ending(&id("alice")) && rig.events.is_empty());
    rig.see_end(&mut container).await;
    assert!(rig.workers.has_ending(&id("alice").user), "what was answered is on its way");
    while rig.workers.has_ending(&id("alice").user) {
        rig.hear().await;
    }
}

#[tokio::test]
async fn a_worker_that_does_not_end_is_killed_in_its_time() {
    let mut rig = Rig::new();
    let _container = rig.start("alice").await;
    rig.stop("alice");
    assert!(rig.workers.is_ending(&id("alice")));
    rig.hear().await;
    assert!(!rig.workers.is_ending(&id("alice")), "its process was dropped, which kills it");
}

/// Goal: what a module says as it is stopped reaches the log, and no more of it than a container may write.
#[tokio::test]
async fn the_last_words_of_a_worker_are_in_the_log() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    rig.stop("alice");
    let say = |text: &str| {
        let text = text.to_owned();
        assert!(container.send(&FromWorker::Log { slot: Some(ModuleSlot(0)), level: LogLevel::Error, text }));
    };
    say("failed while it stopped");
    (1..FRAMES_BATCH).for_each(|_| say("and more"));
    rig.see_end(&mut container).await;
    let said = rig.logs.since(0);
    let count = |text: &str| said.iter().filter(|line| line.source == "alice" && line.text == text).count();
    let most = usize::try_from(LOG_LINES_PER_CONTAINER_MAX).unwrap();
    assert_eq!(count("failed while it stopped"), 1);
    assert!((FRAMES_BATCH - 1).min(most - 1) <= count("and more") && count("and more") < 2 * most);
}

/// Two at a time would write over each other's files.
#[tokio::test]
async fn the_next_worker_waits_for_the_end_of_the_last() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    rig.stop("alice");
    rig.ask("alice");
    assert!(rig.launches.try_recv().is_err(), "the last one has not ended");
    rig.ask("alice/osgi");
    rig.ask("bob");
    let others: Vec<Launch> = rig.launches.try_iter().map(started).collect();
    assert!(others.iter().map(|launch| &launch.worker).eq([&id("alice/osgi"), &id("bob")]), "{others:?}");
    let _others: Vec<DetachedContainer> = others.into_iter().map(|launch| rig.launch(launch)).collect();
    assert!(rig.launches.try_recv().is_err(), "the last one has still not ended");
    rig.see_end(&mut container).await;
    assert_eq!(started(rig.launches.try_recv().unwrap()).worker, id("alice"));
}

#[tokio::test]
async fn a_node_that_stops_waits_for_workers_that_were_told_to_end_before() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    rig.serve(&container);
    rig.stop("alice");
    let ended = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&ended);
    let worker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        ends.store(true, Ordering::Relaxed);
        container.report_signal(9)
    });
    rig.workers.let_workers_end();
    assert!(ended.load(Ordering::Relaxed));
    worker.join().unwrap().unwrap();
}

impl Rig {
    /// Has a worker end that was told to, and sees it.
    pub(super) async fn see_end(&mut self, container: &mut DetachedContainer) {
        container.report_signal(9).unwrap();
        self.hear().await;
    }

    /// Gives alice's worker a server module.
    fn serve(&mut self, container: &DetachedContainer) {
        let code = self.dir.path().join("code");
        std::fs::write(&code, "code").unwrap();
        let load = ModuleLoad { packet: false, server: Some(ServerPart::default()), ..load("alice") };
        let parts = CodeParts { server: Some(code), ..CodeParts::default() };
        let files = LoadFiles { code: Some(parts), composition: None, state: None };
        assert_eq!(self.load_from(load, files), None);
        assert!(matches!(container.receive(), Some(ToWorker::Load { .. })));
    }
}
