// SPDX-License-Identifier: Apache-2.0
//! Media jobs of workers: they are started, watched and told of; what goes through their pipes is between
//! ffmpeg and the worker.

mod pace;
pub mod turns;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use netserv_container::{MediaJob, media_outcome};
use netserv_model::effect::ModuleSlot;
use netserv_model::{Refusal, RefusalKind, WorkerId};
use netserv_wire::container::frames::ToWorker;
use netserv_wire::container::media::{MediaOutcome, MediaTask};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::Workers;
use super::launches::{Job, MediaLaunch};
use crate::config::blocks::Blocks;
use crate::config::media::MediaBlock;
use crate::event::{JobKey, MediaEvent, WorkerEvent};
use crate::limits::{MEDIA_SLOW_TIME, MEDIA_WAITING_TIME_MAX};
use crate::metrics::gauges::MediaCounts;
use crate::readable::readable;
use pace::Pace;
use turns::{Turns, Wanted};

/// The media jobs of a node.
pub(super) struct Media {
    block: MediaBlock,
    /// Why there are no jobs.
    missing: Option<String>,
    turns: Turns,
    started: BTreeMap<JobKey, Started>,
    counts: MediaCounts,
    /// Whether a tick is to come.
    ticks: bool,
}

/// A job that has its turn.
struct Started {
    /// Nothing while it is being started.
    process: Option<netserv_container::Process>,
    since: Instant,
    /// How long it may take.
    time: Duration,
    /// How long it may do nothing.
    idle: Option<Duration>,
    /// Its processor time when that was last seen to grow, and when it was.
    worked: (Duration, Instant),
    pace: Pace,
    /// Why it is to end, unless it ends by itself before, and what its module is told.
    fate: Option<(MediaOutcome, String)>,
}

impl Started {
    /// Kills a job.
    fn end(&mut self, outcome: MediaOutcome, words: String) {
        self.fate.get_or_insert((outcome, words));
        if let Some(process) = &self.process {
            process.kill();
        }
    }

    /// Returns what is said of a job that has been there for too long, or does nothing for too long.
    fn overstayed(&mut self, now: Instant) -> Option<String> {
        let process = self.process.as_mut()?;
        if now.duration_since(self.since) >= self.time {
            return Some(format!("it took longer than {} s", self.time.as_secs()));
        }
        let idle = self.idle?;
        let cpu_time = process.cpu_time();
        // A program that waits wakes now and then.
        if cpu_time >= self.worked.0 + WORK_MIN {
            self.worked = (cpu_time, now);
        }
        (now.duration_since(self.worked.1) >= idle).then(|| format!("it did nothing for {} s", idle.as_secs()))
    }
}

impl Media {
    /// Returns that there are none; those that come are held to what the operator allows.
    pub(super) fn new(blocks: &Blocks) -> Media {
        let block = blocks.media.clone();
        let missing = if blocks.has("media") { block.files().err() } else { Some(NOT_OFFERED.to_owned()) };
        Media {
            block,
            missing,
            turns: Turns::default(),
            started: BTreeMap::new(),
            counts: MediaCounts::default(),
            ticks: false,
        }
    }
}

const NOT_OFFERED: &str = "the operator does not offer it";

impl Workers {
    pub(super) fn start_media(&mut self, worker: &WorkerId, slot: ModuleSlot, job: u64, task: MediaTask) {
        let Some(running) = self.workers.get(worker) else { return };
        let key = JobKey { worker: worker.clone(), generation: running.generation, job };
        if let Some(missing) = self.media.missing.clone() {
            return self.tell_media_ended(&key, MediaOutcome::Unavailable, missing);
        }
        let block = self.media.block.clone();
        if task.live().is_some() && block.live_jobs == 0 {
            return self.tell_media_ended(
                &key,
                MediaOutcome::Unavailable,
                "the operator offers no live jobs".to_owned(),
            );
        }
        let since = Instant::now();
        if !self.media.turns.add(Wanted { key: key.clone(), slot, task, since }, &block) {
            return self.tell_media_ended(&key, MediaOutcome::Busy, "too many jobs wait already".to_owned());
        }
        self.next_media();
        self.tick_media();
    }

    pub(super) fn cancel_media(&mut self, worker: &WorkerId, job: u64) {
        let Some(running) = self.workers.get(worker) else { return };
        let key = JobKey { worker: worker.clone(), generation: running.generation, job };
        self.cancel(&key);
    }

    /// Ends the jobs of a worker, or only those of one of its modules.
    pub(super) fn cancel_media_of(&mut self, worker: &WorkerId, slot: Option<ModuleSlot>) {
        for key in self.media.turns.of(worker, slot) {
            self.cancel(&key);
        }
    }

    /// Takes what happened to a media job.
    pub fn media_changed(&mut self, event: MediaEvent) {
        match event {
            MediaEvent::Started(key, result) => self.media_started(key, result),
            MediaEvent::Ended(key) => self.media_ended(&key),
            MediaEvent::Tick => {
                self.media.ticks = false;
                self.end_overdue_media();
            }
        }
        self.next_media();
        self.tick_media();
    }

    /// Returns what became of media jobs.
    pub fn media_counts(&self) -> MediaCounts {
        let (running, waiting) = self.media.turns.counts();
        MediaCounts { running, waiting, ..self.media.counts.clone() }
    }

    /// Has the jobs started whose turn it is.
    fn next_media(&mut self) {
        while let Some(Wanted { key, task, .. }) = self.media.turns.next(&self.media.block.clone()) {
            let limits = self.media.block.limits(task.live());
            let time = Duration::from_secs(self.media.block.seconds(task.live().is_some()));
            let idle = task.live().map(|_| Duration::from_secs(self.media.block.live_idle_s));
            let since = Instant::now();
            let (worked, pace) = ((Duration::ZERO, since), Pace::begin(since));
            let started = Started { process: None, since, time, idle, worked, pace, fate: None };
            self.media.started.insert(key.clone(), started);
            let launch = Job::Media(Box::new(MediaLaunch { key: key.clone(), task, limits }));
            if self.parts.launches.send(launch).is_err() {
                let refusal = Refusal::new(RefusalKind::NodeFailed, "nobody starts jobs; restart netservd");
                self.media_started(key, Err(refusal));
            }
        }
    }

    fn media_started(&mut self, key: JobKey, result: Result<MediaJob, Refusal>) {
        let Some(started) = self.media.started.get_mut(&key) else { return };
        let fate = started.fate.as_ref().map(|(outcome, _)| *outcome);
        let job = match (result, fate) {
            (Ok(job), None) => job,
            // Dropping a job ends it.
            (_, Some(outcome)) => return self.settle_media(&key, outcome, String::new()),
            (Err(refusal), None) => return self.settle_media(&key, MediaOutcome::Unavailable, refusal.detail),
        };
        let watched = readable(&job.process);
        let worker = self.workers.get_mut(&key.worker).filter(|running| running.generation == key.generation);
        let sent = worker.is_some_and(|running| {
            let frame = ToWorker::MediaStarted { job: key.job };
            running.control.send(&frame, &job.ends.fds()).is_ok()
        });
        let Ok(watched) = watched else {
            return self.settle_media(&key, MediaOutcome::Unavailable, "no descriptor is left".to_owned());
        };
        if !sent {
            return self.settle_media(&key, MediaOutcome::Cancelled, String::new());
        }
        started.process = Some(job.process);
        started.since = Instant::now();
        started.worked.1 = started.since;
        started.pace = Pace::begin(started.since);
        tokio::spawn(watch(watched, key, self.parts.events.clone()));
    }

    fn media_ended(&mut self, key: &JobKey) {
        let Some(started) = self.media.started.get_mut(key) else { return };
        let Some(exit) = started.process.as_mut().and_then(|process| process.exit().cloned()) else { return };
        let (outcome, detail) = media_outcome(&exit);
        match started.fate.take() {
            // It may have done its work in the last moment.
            Some((fate, words)) if outcome != MediaOutcome::Done => self.settle_media(key, fate, words),
            Some(_) | None => self.settle_media(key, outcome, detail),
        }
    }

    /// Ends a job that nobody wants, whether it runs or waits.
    fn cancel(&mut self, key: &JobKey) {
        let words = "nobody wanted it any more".to_owned();
        if self.media.turns.give_up(key) {
            return self.tell_media_ended(key, MediaOutcome::Cancelled, words);
        }
        if let Some(started) = self.media.started.get_mut(key) {
            started.end(MediaOutcome::Cancelled, words);
        }
    }

    /// Forgets a job that had its turn, and tells of its end.
    fn settle_media(&mut self, key: &JobKey, outcome: MediaOutcome, detail: String) {
        self.media.turns.end(key);
        if let Some(started) = self.media.started.remove(key) {
            let took = u64::try_from(started.since.elapsed().as_millis()).unwrap_or(u64::MAX);
            *self.media.counts.ms.entry(key.worker.user.clone()).or_default() += took;
        }
        self.tell_media_ended(key, outcome, detail);
    }

    fn tell_media_ended(&mut self, key: &JobKey, outcome: MediaOutcome, detail: String) {
        tracing::debug!(worker = %key.worker, job = key.job, outcome = outcome.as_str(), detail, "media job ended");
        *self.media.counts.ended.entry((key.worker.user.clone(), outcome)).or_default() += 1;
        if self.workers.get(&key.worker).is_some_and(|running| running.generation == key.generation) {
            self.tell(&key.worker, ToWorker::MediaEnded { job: key.job, outcome, detail });
        }
    }

    fn end_overdue_media(&mut self) {
        let now = Instant::now();
        for key in self.media.turns.waiting_since(now.checked_sub(MEDIA_WAITING_TIME_MAX)) {
            self.media.turns.give_up(&key);
            self.tell_media_ended(&key, MediaOutcome::Busy, "it waited for its turn too long".to_owned());
        }
        for started in self.media.started.values_mut() {
            if let Some(words) = started.overstayed(now) {
                started.end(MediaOutcome::Time, words);
            }
            if let Some(process) = &mut started.process {
                started.pace.look(now, || process.cpu_time());
            }
        }
        let Media { turns, started, block, .. } = &mut self.media;
        let is_ending = started.values().any(|job| job.fate.is_some());
        let slowest = turns.gives_way(block, |key| started.get(key)?.pace.slowness()).filter(|_| !is_ending);
        if let Some(started) = slowest.and_then(|key| started.get_mut(&key)) {
            let words = format!("it did little for {} s, and others wait", MEDIA_SLOW_TIME.as_secs());
            started.end(MediaOutcome::Time, words);
        }
    }

    /// Makes sure that a tick comes while there are jobs.
    fn tick_media(&mut self) {
        if self.media.ticks || self.media.turns.counts() == (0, 0) {
            return;
        }
        self.media.ticks = true;
        let events = self.parts.events.clone();
        tokio::spawn(async move {
            tokio::time::sleep(TICK).await;
            // The control loop may have ended.
            let _ = events.send(WorkerEvent::Media(MediaEvent::Tick)).await;
        });
    }
}

/// Processor time that is work.
const WORK_MIN: Duration = Duration::from_millis(20);
/// How exactly jobs' times are kept.
const TICK: Duration = Duration::from_millis(250);

/// Says when a job's process ended.
async fn watch(process: AsyncFd<OwnedFd>, key: JobKey, events: mpsc::Sender<WorkerEvent>) {
    // If it cannot be waited for, its time ends it.
    let Ok(_ready) = process.readable().await else { return };
    let _ = events.send(WorkerEvent::Media(MediaEvent::Ended(key))).await;
}
