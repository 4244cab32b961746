// SPDX-License-Identifier: Apache-2.0
//! Media jobs, as the modules of a worker want them and as the node runs them: the packet thread, which has the control
//! socket, takes the wishes from the desk and puts the answers on it.

pub mod description;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::FromWorker;
use netserv_wire::container::media::{MediaLayer, MediaOutcome, MediaTask, PICTURE_BYTES_MAX};
use tokio::sync::Notify;

use crate::limits::{MEDIA_JOBS_MAX, MEDIA_JOBS_PER_MODULE_MAX};

/// The jobs of a process.
#[derive(Default)]
pub struct Desk {
    jobs: Mutex<Jobs>,
    /// Whether there are wishes, for who looks often.
    wished: AtomicBool,
}

#[derive(Default)]
struct Jobs {
    /// What makes the packet thread look; nothing in a process that has no node.
    wake: Option<Box<dyn Fn() + Send>>,
    last: u64,
    wishes: VecDeque<FromWorker>,
    there: BTreeMap<u64, (ModuleSlot, Arc<Job>)>,
}

/// How a job ended, with words about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub outcome: MediaOutcome,
    /// ffmpeg's last words about it, or why it was not started.
    pub detail: String,
}

/// Ends of a job's pipes.
#[derive(Debug)]
pub struct Ends {
    /// Where the input is written to.
    pub input: OwnedFd,
    /// Where the outputs are read from, in their order.
    pub outputs: Vec<OwnedFd>,
    /// Where a picture is written to, if the job has one.
    pub picture: Option<OwnedFd>,
}

/// A job that somebody wants. Dropping it ends the job.
pub struct JobHandle {
    desk: &'static Desk,
    number: u64,
    job: Arc<Job>,
    is_live: bool,
}

#[derive(Default)]
struct Job {
    /// How many outputs it has.
    outputs: usize,
    progress: Mutex<Progress>,
    /// For threads that wait.
    changed: Condvar,
    /// For tasks that wait.
    told: Notify,
}

#[derive(Default)]
struct Progress {
    started: bool,
    ends: Option<Ends>,
    ending: Option<Ending>,
}

/// Returns the desk of this process, of which a node is told if the process has one.
pub fn desk() -> &'static Desk {
    static DESK: LazyLock<Desk> = LazyLock::new(Desk::default);
    &DESK
}

impl Desk {
    /// Says that this process has a node, and how the thread that speaks with it is woken.
    pub fn open(&self, wake: impl Fn() + Send + 'static) {
        self.lock().wake = Some(Box::new(wake));
    }

    /// Asks for a job.
    ///
    /// # Errors
    /// It is none, there is no node to ask, or the module has too many.
    pub fn ask(&'static self, slot: ModuleSlot, task: MediaTask) -> Result<JobHandle, Ending> {
        task.check().map_err(|detail| Ending::new(MediaOutcome::Invalid, detail))?;
        let mut jobs = self.lock();
        if jobs.wake.is_none() {
            return Err(Ending::new(MediaOutcome::Unavailable, "there is no node here"));
        }
        let theirs = jobs.there.values().filter(|(of, _)| *of == slot).count();
        // Wishes wait while the node does not read them.
        let full = jobs.there.len() >= MEDIA_JOBS_MAX || jobs.wishes.len() >= 2 * MEDIA_JOBS_MAX;
        if theirs >= MEDIA_JOBS_PER_MODULE_MAX || full {
            return Err(Ending::new(MediaOutcome::Busy, format!("{theirs} jobs of this module are there already")));
        }
        jobs.last += 1;
        let (number, job) = (jobs.last, Arc::new(Job { outputs: task.outputs(), ..Job::default() }));
        jobs.there.insert(number, (slot, Arc::clone(&job)));
        let is_live = task.live().is_some();
        self.wish(&mut jobs, FromWorker::Media { slot, job: number, task });
        Ok(JobHandle { desk: self, number, job, is_live })
    }

    /// Returns the next frame for the node.
    pub fn poll_wish(&self) -> Option<FromWorker> {
        if !self.wished.load(Ordering::Acquire) {
            return None;
        }
        let mut jobs = self.lock();
        let wish = jobs.wishes.pop_front();
        self.wished.store(!jobs.wishes.is_empty(), Ordering::Release);
        wish
    }

    /// Takes note that a job runs.
    pub fn handle_started(&self, number: u64, descriptors: Vec<OwnedFd>) {
        // The ends of a job that nobody wants any more are closed here.
        let Some((_, job)) = self.lock().there.get(&number).cloned() else { return };
        let mut descriptors = descriptors.into_iter();
        let Some(input) = descriptors.next() else { return };
        let outputs: Vec<OwnedFd> = descriptors.by_ref().take(job.outputs).collect();
        if outputs.len() < job.outputs {
            return;
        }
        let ends = Ends { input, outputs, picture: descriptors.next() };
        job.change(|progress| (progress.started, progress.ends) = (true, Some(ends)));
    }

    /// Takes note that a job ended.
    pub fn handle_ended(&self, number: u64, outcome: MediaOutcome, detail: String) {
        let Some((_, job)) = self.lock().there.remove(&number) else { return };
        job.change(|progress| progress.ending = Some(Ending { outcome, detail }));
    }

    fn wish(&self, jobs: &mut Jobs, frame: FromWorker) {
        jobs.wishes.push_back(frame);
        self.wished.store(true, Ordering::Release);
        if let Some(wake) = &jobs.wake {
            wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobHandle {
    /// Returns the job's number, which no other job of the process has or had.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns how many bytes an output may give: a live one is bounded by its time and bit rate alone, others by `clip`.
    pub fn output_bytes_max(&self, clip: u64) -> u64 {
        if self.is_live { u64::MAX } else { clip }
    }

    /// Waits until the job runs; its ends are returned once.
    ///
    /// # Errors
    /// How it ended, if it never ran.
    pub async fn started(&self) -> Result<Ends, Ending> {
        loop {
            let told = self.job.told.notified();
            if let Some(result) = self.job.lock().take_started() {
                return result;
            }
            told.await;
        }
    }

    /// Waits until the job runs, or it is known that it never will.
    pub async fn settled(&self) {
        loop {
            let told = self.job.told.notified();
            if self.job.lock().is_settled() {
                return;
            }
            told.await;
        }
    }

    /// Waits until the job ended.
    pub async fn ended(&self) -> Ending {
        loop {
            let told = self.job.told.notified();
            if let Some(ending) = self.job.lock().ending.clone() {
                return ending;
            }
            told.await;
        }
    }

    /// Returns whether its input comes as it happens.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns how the job ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.job.lock().ending.clone()
    }

    /// As [`JobHandle::started`], for a thread.
    ///
    /// # Errors
    /// As there.
    pub fn wait_started(&self) -> Result<Ends, Ending> {
        let mut progress = self.job.lock();
        loop {
            if let Some(result) = progress.take_started() {
                return result;
            }
            progress = self.job.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`JobHandle::ended`], for a thread.
    pub fn wait_ended(&self) -> Ending {
        let mut progress = self.job.lock();
        loop {
            if let Some(ending) = &progress.ending {
                return ending.clone();
            }
            progress = self.job.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the job if it has not ended.
    pub fn cancel(&self) {
        let mut jobs = self.desk.lock();
        if jobs.there.remove(&self.number).is_some() {
            let is_it = |frame: &FromWorker| matches!(frame, FromWorker::Media { job, .. } if *job == self.number);
            let before = jobs.wishes.len();
            jobs.wishes.retain(|frame| !is_it(frame));
            if jobs.wishes.len() == before {
                self.desk.wish(&mut jobs, FromWorker::MediaCancel { job: self.number });
            }
            drop(jobs);
            let ending = Ending::new(MediaOutcome::Cancelled, "nobody wanted it any more");
            self.job.change(|progress| progress.ending = Some(ending));
        }
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Job {
    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock());
        self.changed.notify_all();
        self.told.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn is_settled(&self) -> bool {
        self.started || self.ending.is_some()
    }

    fn take_started(&mut self) -> Option<Result<Ends, Ending>> {
        if let Some(ends) = self.ends.take() {
            return Some(Ok(ends));
        }
        let over = || Ending::new(MediaOutcome::Invalid, "the job was started before");
        match (&self.ending, self.started) {
            (_, true) => Some(Err(over())),
            (Some(ending), false) => Some(Err(ending.clone())),
            (None, false) => None,
        }
    }
}

impl Ending {
    /// Returns an ending with words about it.
    pub fn new(outcome: MediaOutcome, detail: impl Into<String>) -> Ending {
        Ending { outcome, detail: detail.into() }
    }
}

/// Returns what kind of picture is to be laid over others.
///
/// # Errors
/// It is neither, or too large.
pub fn picture_layer(bytes: &[u8]) -> Result<MediaLayer, String> {
    if bytes.len() > PICTURE_BYTES_MAX {
        return Err(format!("the picture has {} bytes, over {PICTURE_BYTES_MAX}", bytes.len()));
    }
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Ok(MediaLayer::Png)
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Ok(MediaLayer::Jpeg)
    } else {
        Err("the picture is neither PNG nor JPEG".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use netserv_wire::container::media::{MediaFormat, MediaLive, MediaPart, MediaSettings, MediaSource};

    use super::*;

    const TASK: MediaTask = MediaTask::Probe { source: MediaSource::Any };

    #[test]
    fn a_job_is_asked_for_started_and_ended() {
        let (desk, woken) = open_desk();
        let ticket = desk.ask(ModuleSlot(1), TASK).unwrap();
        assert_eq!(desk.poll_wish(), Some(FromWorker::Media { slot: ModuleSlot(1), job: 1, task: TASK }));
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        desk.handle_started(1, descriptors());
        assert!(ticket.wait_started().unwrap().picture.is_none());
        assert_eq!(ticket.wait_started().unwrap_err().outcome, MediaOutcome::Invalid, "the ends are given once");
        desk.handle_ended(1, MediaOutcome::Failed, "why".to_owned());
        assert_eq!(ticket.wait_ended(), Ending::new(MediaOutcome::Failed, "why"));
        drop(ticket);
        assert_eq!(desk.poll_wish(), None, "it has ended by itself");
    }

    #[test]
    fn a_live_job_gives_as_much_as_its_time_lets_it() {
        let (desk, _) = open_desk();
        assert_eq!(desk.ask(ModuleSlot(1), TASK).unwrap().output_bytes_max(9), 9);
        let part = MediaPart { live: Some(MediaLive { cpu_permille: 0, keep_times: false }), ..MediaPart::default() };
        let outputs = vec![MediaSettings::new(MediaFormat::Ogg)];
        let live = MediaTask::Transcode { source: MediaSource::Ogg, part, outputs };
        assert_eq!(desk.ask(ModuleSlot(1), live).unwrap().output_bytes_max(9), u64::MAX);
    }

    #[test]
    fn who_lets_go_of_a_job_ends_it() {
        let (desk, _) = open_desk();
        drop(desk.ask(ModuleSlot(1), TASK).unwrap());
        assert_eq!(desk.poll_wish(), None, "the node was never told");
        let ticket = desk.ask(ModuleSlot(1), TASK).unwrap();
        assert!(desk.poll_wish().is_some());
        drop(ticket);
        assert_eq!([desk.poll_wish(), desk.poll_wish()], [Some(FromWorker::MediaCancel { job: 2 }), None]);
        // What the node says of it afterwards means nothing; the descriptors are closed.
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        desk.handle_started(2, vec![writer, descriptors().remove(0)]);
        assert_eq!(rustix::io::read(&reader, &mut [0; 1][..]), Ok(0));
        desk.handle_ended(2, MediaOutcome::Cancelled, String::new());
    }

    #[test]
    fn jobs_are_bounded() {
        let (desk, _) = open_desk();
        let mut tickets: Vec<JobHandle> =
            (0..MEDIA_JOBS_PER_MODULE_MAX).map(|_| desk.ask(ModuleSlot(1), TASK).unwrap()).collect();
        let outcome = |slot| desk.ask(ModuleSlot(slot), TASK).err().map(|ending| ending.outcome);
        assert_eq!(outcome(1), Some(MediaOutcome::Busy));
        assert_eq!(outcome(2), None, "another module");
        tickets.pop();
        assert_eq!(outcome(1), None);
        for slot in 2..64 {
            tickets.extend((0..MEDIA_JOBS_PER_MODULE_MAX).map_while(|_| desk.ask(ModuleSlot(slot), TASK).ok()));
        }
        assert_eq!(tickets.len(), MEDIA_JOBS_MAX);
    }

    #[test]
    fn a_process_without_a_node_says_so() {
        let desk: &'static Desk = Box::leak(Box::default());
        assert_eq!(desk.ask(ModuleSlot(1), TASK).err().unwrap().outcome, MediaOutcome::Unavailable);
    }

    #[test]
    fn tasks_are_told_as_threads_are() {
        let (desk, _) = open_desk();
        let ticket = desk.ask(ModuleSlot(1), TASK).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ending = runtime.block_on(async {
            let waiting = tokio::spawn(async move {
                ticket.settled().await;
                (ticket.started().await.is_ok(), ticket.ended().await)
            });
            tokio::task::yield_now().await;
            desk.handle_started(1, descriptors());
            tokio::task::yield_now().await;
            desk.handle_ended(1, MediaOutcome::Done, String::new());
            waiting.await.unwrap()
        });
        assert_eq!(ending, (true, Ending::new(MediaOutcome::Done, "")));
    }

    #[test]
    fn pictures_are_known_by_their_first_bytes() {
        assert_eq!(picture_layer(b"\x89PNG\r\n\x1a\nx"), Ok(MediaLayer::Png));
        assert_eq!(picture_layer(b"\xff\xd8\xff\xe0"), Ok(MediaLayer::Jpeg));
        assert!(picture_layer(b"GIF89a").is_err() && picture_layer(b"").is_err());
        let mut large = b"\xff\xd8\xff".to_vec();
        large.resize(PICTURE_BYTES_MAX + 1, 0);
        assert!(picture_layer(&large).is_err() && picture_layer(&large[..PICTURE_BYTES_MAX]).is_ok());
    }

    fn open_desk() -> (&'static Desk, Arc<AtomicU64>) {
        let desk: &'static Desk = Box::leak(Box::default());
        let woken = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&woken);
        desk.open(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        (desk, woken)
    }

    fn descriptors() -> Vec<OwnedFd> {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        vec![writer, reader]
    }
}
