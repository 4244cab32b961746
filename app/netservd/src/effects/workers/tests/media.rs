// SPDX-License-Identifier: Apache-2.0
//! Media jobs: who gets one, who waits, and what workers are told.

use netserv_container::{DetachedJob, MediaJob};
use netserv_wire::container::media::{
    MediaFormat, MediaLive, MediaOutcome, MediaPart, MediaSettings, MediaSource, MediaTask,
};

use super::launches::Job;
use super::*;
use crate::config::Config;
use crate::event::{JobKey, MediaEvent};

#[tokio::test]
async fn jobs_are_started_in_turns_told_of_and_counted() {
    let Some(mut rig) = rig(1) else { return };
    let container = rig.start("alice").await;
    for job in [1, 2] {
        rig.wish(&container, FromWorker::Media { slot: ModuleSlot(3), job, task: TASK }).await;
    }
    let first = launched(&mut rig);
    assert_eq!(first.job, 1);
    assert!(rig.launches.try_recv().is_err(), "the other waits for its turn");
    let mut job = run(&mut rig, first.clone());
    assert_eq!(container.receive(), Some(ToWorker::MediaStarted { job: 1 }));

    job.report_code(1).unwrap();
    rig.workers.media_changed(MediaEvent::Ended(first));
    assert_eq!(container.receive(), Some(ended(1, MediaOutcome::Failed, "why")));
    let second = launched(&mut rig);
    let refusal = Refusal::new(RefusalKind::NodeFailed, "no place");
    rig.workers.media_changed(MediaEvent::Started(second, Err(refusal)));
    assert_eq!(container.receive(), Some(ended(2, MediaOutcome::Unavailable, "no place")));
    let counts = rig.workers.media_counts();
    assert_eq!((counts.running, counts.waiting), (0, 0));
    assert_eq!(counts.ended[&(id("alice").user, MediaOutcome::Failed)], 1);
    assert_eq!(counts.ended[&(id("alice").user, MediaOutcome::Unavailable)], 1);
}

#[tokio::test]
async fn jobs_end_with_who_wanted_them() {
    let Some(mut rig) = rig(3) else { return };
    let container = rig.start("alice").await;
    for job in 1..=3 {
        rig.wish(&container, FromWorker::Media { slot: ModuleSlot(3), job, task: TASK }).await;
    }
    let keys: Vec<JobKey> = (0..3).map(|_| launched(&mut rig)).collect();
    // One is given up while it is being started, one while it runs.
    let mut running = run(&mut rig, keys[1].clone());
    assert_eq!(container.receive(), Some(ToWorker::MediaStarted { job: 2 }));
    for job in [1, 2] {
        rig.wish(&container, FromWorker::MediaCancel { job }).await;
    }
    run(&mut rig, keys[0].clone());
    assert_eq!(container.receive(), Some(ended(1, MediaOutcome::Cancelled, "")));
    running.report_code(255).unwrap();
    rig.workers.media_changed(MediaEvent::Ended(keys[1].clone()));
    assert_eq!(container.receive(), Some(ended(2, MediaOutcome::Cancelled, "nobody wanted it any more")));
    // The last goes with its worker, of which nobody is told.
    rig.stop("alice");
    run(&mut rig, keys[2].clone());
    let counts = rig.workers.media_counts();
    assert_eq!((counts.running, counts.ended[&(id("alice").user, MediaOutcome::Cancelled)]), (0, 3));
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_ended() {
    let Some(mut rig) = rig(1) else { return };
    let container = rig.start("alice").await;
    rig.wish(&container, FromWorker::Media { slot: ModuleSlot(3), job: 1, task: TASK }).await;
    let key = launched(&mut rig);
    let mut job = run(&mut rig, key.clone());
    container.receive().unwrap();
    rig.workers.media_changed(MediaEvent::Tick);
    job.report_code(0).unwrap();
    rig.workers.media_changed(MediaEvent::Ended(key));
    assert_eq!(container.receive(), Some(ended(1, MediaOutcome::Done, "")), "it was not overdue");

    let text = "[blocks.media]\ntime-s = 1\n";
    rig.workers.media = super::super::media::Media::new(&Config::parse(text).unwrap().blocks);
    rig.wish(&container, FromWorker::Media { slot: ModuleSlot(3), job: 2, task: TASK }).await;
    let key = launched(&mut rig);
    let mut job = run(&mut rig, key.clone());
    container.receive().unwrap();
    tokio::time::sleep(Duration::from_millis(1001)).await;
    rig.workers.media_changed(MediaEvent::Tick);
    job.report_code(255).unwrap();
    rig.workers.media_changed(MediaEvent::Ended(key));
    assert_eq!(container.receive(), Some(ended(2, MediaOutcome::Time, "it took longer than 1 s")));
}

#[tokio::test]
async fn a_live_job_has_its_own_time_and_share_of_the_processor() {
    let Some(mut rig) = rig(1) else { return };
    let container = rig.start("alice").await;
    let part = MediaPart { live: Some(MediaLive { cpu_permille: 300, keep_times: true }), ..MediaPart::default() };
    let outputs = vec![MediaSettings::new(MediaFormat::Ogg)];
    let task = MediaTask::Transcode { source: MediaSource::Ogg, part, outputs };
    for (live_jobs, job, expected) in [(0, 1, None), (1, 2, Some(300))] {
        let text = format!("[blocks.media]\ntime-s = 1\nlive-jobs = {live_jobs}\n");
        rig.workers.media = super::super::media::Media::new(&Config::parse(&text).unwrap().blocks);
        rig.wish(&container, FromWorker::Media { slot: ModuleSlot(3), job, task: task.clone() }).await;
        let Some(cpu_permille) = expected else {
            let refused = ended(job, MediaOutcome::Unavailable, "the operator offers no live jobs");
            assert_eq!(container.receive(), Some(refused));
            continue;
        };
        let Job::Media(launch) = rig.launches.try_recv().unwrap() else { panic!("a job is to be started") };
        assert_eq!(launch.limits.container.cpu_permille, cpu_permille);
        let mut running = run(&mut rig, launch.key.clone());
        container.receive().unwrap();
        tokio::time::sleep(Duration::from_millis(1001)).await;
        rig.workers.media_changed(MediaEvent::Tick);
        running.report_code(0).unwrap();
        rig.workers.media_changed(MediaEvent::Ended(launch.key));
        assert_eq!(container.receive(), Some(ended(job, MediaOutcome::Done, "")), "a clip's time is not its");
    }
}

#[tokio::test]
async fn a_live_job_that_does_nothing_gives_up_its_place() {
    let Some(mut rig) = rig(1) else { return };
    let container = rig.start("alice").await;
    let live = Some(MediaLive { cpu_permille: 300, keep_times: true });
    let (part, outputs) = (MediaPart { live, ..MediaPart::default() }, vec![MediaSettings::new(MediaFormat::Ogg)]);
    let task = MediaTask::Transcode { source: MediaSource::Ogg, part, outputs };
    rig.workers.media =
        super::super::media::Media::new(&Config::parse("[blocks.media]\nlive-idle-s = 1\n").unwrap().blocks);
    rig.wish(&container, FromWorker::Media { slot: ModuleSlot(3), job: 1, task }).await;
    let Job::Media(launch) = rig.launches.try_recv().unwrap() else { panic!("a job is to be started") };
    let mut running = run(&mut rig, launch.key.clone());
    container.receive().unwrap();
    rig.workers.media_changed(MediaEvent::Tick);
    assert!(rig.workers.media_counts().ended.is_empty());
    // It has no process, and so takes no processor time.
    tokio::time::sleep(Duration::from_millis(1001)).await;
    rig.workers.media_changed(MediaEvent::Tick);
    running.report_code(255).unwrap();
    rig.workers.media_changed(MediaEvent::Ended(launch.key));
    assert_eq!(container.receive(), Some(ended(1, MediaOutcome::Time, "it did nothing for 1 s")));
}

#[tokio::test]
async fn a_node_that_offers_none_says_so() {
    let mut rig = Rig::new();
    rig.workers.media = super::super::media::Media::new(&Config::parse("[blocks]\nenabled = []\n").unwrap().blocks);
    let container = rig.start("alice").await;
    rig.wish(&container, FromWorker::Media { slot: ModuleSlot(3), job: 1, task: TASK }).await;
    assert_eq!(container.receive(), Some(ended(1, MediaOutcome::Unavailable, "the operator does not offer it")));
    assert!(rig.launches.try_recv().is_err());
}

const TASK: MediaTask = MediaTask::Probe { source: MediaSource::Any };

/// A node that has so many jobs of a user at a time; nothing where there is no ffmpeg, which is looked for.
fn rig(jobs_per_user: u32) -> Option<Rig> {
    let mut rig = Rig::new();
    let text = format!("[blocks.media]\njobs-per-user = {jobs_per_user}\n");
    let config = Config::parse(&text).unwrap();
    if let Err(missing) = config.blocks.media.files() {
        netserv_skips::skipped("a media job of a node", &missing.to_string());
        return None;
    }
    rig.workers.media = super::super::media::Media::new(&config.blocks);
    Some(rig)
}

impl Rig {
    async fn wish(&mut self, container: &DetachedContainer, frame: FromWorker) {
        assert!(container.send(&frame));
        // Ticks, and the ends of jobs, may come in between.
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(60), self.events.recv()).await {
            let done = matches!(event, WorkerEvent::Container(_));
            self.workers.handle(event);
            if done {
                return;
            }
        }
        panic!("no event");
    }
}

fn launched(rig: &mut Rig) -> JobKey {
    let Job::Media(launch) = rig.launches.try_recv().unwrap() else { panic!("a job is to be started") };
    assert_eq!(launch.task, TASK);
    launch.key
}

fn run(rig: &mut Rig, key: JobKey) -> DetachedJob {
    let (job, detached) = MediaJob::detached().unwrap();
    rig.workers.media_changed(MediaEvent::Started(key, Ok(job)));
    detached
}

fn ended(job: u64, outcome: MediaOutcome, detail: &str) -> ToWorker {
    ToWorker::MediaEnded { job, outcome, detail: detail.to_owned() }
}
