// SPDX-License-Identifier: Apache-2.0
//! Two workers of one user, and whose fault it is when one ends.

use netserv_container::{Exit, ExitCause};

use super::*;
use crate::effects::workers::life::why_ended;

/// The second joins the container of the first, so it is asked for when the first is there.
#[tokio::test]
async fn the_second_worker_of_a_user_waits_for_the_first() {
    let mut rig = Rig::new();
    rig.ask("alice");
    rig.ask("alice/osgi");
    rig.ask("bob/osgi");
    let jobs: Vec<Launch> = rig.launches.try_iter().map(started).collect();
    let workers: Vec<&WorkerId> = jobs.iter().map(|launch| &launch.worker).collect();
    assert_eq!(workers, [&id("alice"), &id("bob/osgi")], "another user's does not wait");
    assert!(jobs.iter().all(|launch| launch.beside.is_none()));
    let mut kept: Vec<DetachedContainer> = jobs.into_iter().map(|launch| rig.launch(launch)).collect();
    let second = started(rig.launches.try_recv().unwrap());
    assert_eq!((&second.worker, second.beside), (&id("alice/osgi"), Some(0)), "the process that a detached one has");
    kept.push(rig.launch(second));
    assert!(rig.launches.try_recv().is_err());
    assert!(kept.iter().all(|container| !container.is_let_go()));
}

#[tokio::test]
async fn a_first_worker_that_fails_or_is_not_wanted_lets_the_second_go_on() {
    let fail = |rig: &mut Rig, first: Launch| {
        let refusal = Refusal::new(RefusalKind::NodeFailed, "no more places");
        let Launch { worker, generation, .. } = first;
        rig.workers.launched(Launched { worker, generation, result: Err(refusal) });
    };
    let stop = |rig: &mut Rig, first: Launch| {
        assert_eq!(first.worker, id("alice"));
        rig.stop("alice");
    };
    for end in [&fail, &stop] as [&dyn Fn(&mut Rig, Launch); 2] {
        let mut rig = Rig::new();
        rig.ask("alice");
        rig.ask("alice/osgi");
        let first = started(rig.launches.try_recv().unwrap());
        assert!(rig.launches.try_recv().is_err());
        end(&mut rig, first);
        let second = started(rig.launches.try_recv().unwrap());
        assert_eq!((second.worker, second.beside), (id("alice/osgi"), None));
    }
}

#[tokio::test]
async fn a_worker_that_ends_leaves_the_other() {
    let mut rig = Rig::new();
    let (mut wasm, osgi) = (rig.start("alice").await, rig.start("alice/osgi").await);
    wasm.hang_up();
    wasm.report_signal(11).unwrap();
    let Some(News { worker, what: WorkerNews::Died { .. }, .. }) = rig.next().await else { panic!("no death") };
    assert_eq!(worker, id("alice"));
    assert!(!osgi.is_let_go());
    rig.ask("alice");
    let again = started(rig.launches.try_recv().unwrap());
    assert_eq!(again.beside, Some(0), "it comes back into the container of the other");
}

/// A module that exits, crashes or has itself killed does that while it is called, and its worker says in what it is.
#[tokio::test]
async fn a_worker_that_ends_in_a_module_is_that_modules_fault() {
    for (loaded, inside, culprit, kind) in [
        (true, Some(0), Some(ModuleSlot(0)), RefusalKind::Trapped),
        (true, None, None, RefusalKind::NodeFailed),
        // It says what it likes: nobody is blamed who was not there.
        (true, Some(7), None, RefusalKind::NodeFailed),
        (false, Some(0), None, RefusalKind::NodeFailed),
    ] {
        let mut rig = Rig::new();
        let mut container = rig.start("alice").await;
        if loaded {
            rig.load("alice");
        }
        if let Some(slot) = inside {
            container.ring().end().enter(ModuleSlot(slot));
        }
        container.hang_up();
        container.report_signal(11).unwrap();
        let Some(News { what: WorkerNews::Died { refusal, culprit: blamed }, .. }) = rig.next().await else {
            panic!("no death")
        };
        assert_eq!((refusal.kind, blamed), (kind, culprit), "{loaded} {inside:?}");
        assert!(refusal.detail.contains("signal 11"), "{refusal}");
    }
}

/// It left the module before it ended: then nobody is to blame.
#[tokio::test]
async fn a_worker_that_ends_outside_of_modules_is_nobodys_fault() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    rig.load("alice");
    container.ring().end().enter(ModuleSlot(0));
    container.ring().end().leave();
    container.hang_up();
    container.report_signal(9).unwrap();
    let Some(News { what: WorkerNews::Died { culprit, .. }, .. }) = rig.next().await else { panic!("no death") };
    assert_eq!(culprit, None);
}

#[test]
fn how_a_worker_ended_says_what_the_module_did() {
    let exit = |cause| Exit { cause, stderr: "the last words".to_owned() };
    for (cause, culprit, kind) in [
        (ExitCause::Code(70), Some(ModuleSlot(0)), RefusalKind::Stalled),
        (ExitCause::Code(70), None, RefusalKind::Stalled),
        (ExitCause::Code(0), Some(ModuleSlot(0)), RefusalKind::Trapped),
        (ExitCause::Code(1), None, RefusalKind::NodeFailed),
        (ExitCause::Signal(11), Some(ModuleSlot(0)), RefusalKind::Trapped),
        (ExitCause::OutOfMemory, Some(ModuleSlot(0)), RefusalKind::MemoryLimit),
        (ExitCause::Unknown, None, RefusalKind::NodeFailed),
    ] {
        let refusal = why_ended(&exit(cause), culprit);
        assert_eq!(refusal.kind, kind, "{cause:?}");
        let silent = matches!(cause, ExitCause::OutOfMemory | ExitCause::Unknown);
        assert_eq!(refusal.detail.contains("the last words"), !silent, "{refusal}");
    }
}

impl Rig {
    /// Loads a module into a worker, which does not answer yet.
    fn load(&mut self, worker: &str) {
        let package = self.publish("1.0.0");
        self.fetch(&package).unwrap();
        let parts = CodeParts { packet: Some(self.dir.path().join("1.0.0")), ..CodeParts::default() };
        let files = LoadFiles { code: Some(parts), composition: None, state: None };
        assert_eq!(self.load_from(ModuleLoad { digest: package.digest, ..load(worker) }, files), None);
    }
}
