// SPDX-License-Identifier: Apache-2.0
//! The processor time of the threads that run a worker's packet modules, seen from outside.
//!
//! The clock of another process (`clock_getcpuclockid`) counts all its threads, and that of another process's thread is
//! not to be had. The scheduler's count of each thread is in `/proc`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use netserv_wire::container::lane_thread_name;

/// A packet thread of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerThread {
    /// The first, which serves all lanes unless they have threads of their own.
    First,
    /// That of a lane beyond the first, which is there while all modules are parallel.
    OfLane,
}

/// Reads the processor time of one worker's packet threads, as the ring of one lane needs it.
#[derive(Debug)]
pub struct WorkerClock {
    pid: i32,
    lane: usize,
    first: Option<File>,
    /// As `first`, of the lane's own thread.
    of_lane: Option<File>,
}

impl WorkerClock {
    /// Returns the clock of a process, by its number in this pid namespace, for a lane.
    pub fn new(pid: i32, lane: usize) -> WorkerClock {
        WorkerClock { pid, lane, first: None, of_lane: None }
    }

    /// Returns how long a thread was on a processor so far; `None` if the kernel does not tell, or there is no such thread.
    pub fn processor_time(&mut self, thread: WorkerThread) -> Option<Duration> {
        // Open while it is read, so that it is never that of a later process with the same number.
        let count = match thread {
            WorkerThread::First => &mut self.first,
            WorkerThread::OfLane => &mut self.of_lane,
        };
        if count.is_none() {
            *count = find(self.pid, self.lane, thread);
        }
        let time = count.as_ref().and_then(read);
        if time.is_none() {
            *count = None;
        }
        time
    }
}

/// Finds a thread by its name. The first packet thread of a Wasm worker is its first thread.
fn find(pid: i32, lane: usize, thread: WorkerThread) -> Option<File> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let mut threads: Vec<i32> =
        fs::read_dir(&tasks).ok()?.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
    // The thread of that name is older than what a module starts.
    threads.sort_unstable();
    let (name, or_else) = match thread {
        WorkerThread::First => (FIRST_THREAD.to_owned(), Some(pid)),
        WorkerThread::OfLane => (lane_thread_name(lane), None),
    };
    let is_named = |thread: &&i32| {
        let found = fs::read_to_string(tasks.join(thread.to_string()).join("comm"));
        found.is_ok_and(|found| found.trim_end_matches('\n') == name)
    };
    let thread = threads.iter().find(is_named).copied().or(or_else)?;
    File::open(tasks.join(thread.to_string()).join("schedstat")).ok()
}

/// The first of three numbers is the time on a processor in nanoseconds (`Documentation/scheduler/sched-stats.rst`).
fn read(count: &File) -> Option<Duration> {
    let mut bytes = [0; 64];
    let length = count.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The name of a JVM worker's packet thread.
const FIRST_THREAD: &str = "packets";

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_computes_has_more_time_and_what_sleeps_has_none() {
        let (burning, sleeping) = (Running::start("while :; do :; done"), Running::start("exec sleep 60"));
        let (mut burns, mut sleeps) = (burning.clock(), sleeping.clock());
        let before = burns.processor_time(WorkerThread::First).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let mut slept = Duration::MAX;
        // Until it sleeps, it starts.
        while sleeps.processor_time(WorkerThread::First).unwrap() != slept {
            assert!(Instant::now() < until, "it does not begin to sleep");
            slept = sleeps.processor_time(WorkerThread::First).unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
        while burns.processor_time(WorkerThread::First).unwrap() < before + Duration::from_millis(100) {
            assert!(Instant::now() < until, "it gets no processor");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(sleeps.processor_time(WorkerThread::First).unwrap(), slept);
    }

    /// What waits for a processor is not on one. Method: two that compute on one core, the second as idle as can be.
    #[test]
    fn what_waits_for_the_processor_has_little_time() {
        let hog = Running::start("while :; do :; done");
        let starved = Running::start("while :; do :; done");
        for process in [&hog, &starved] {
            let pid = process.0.id().to_string();
            assert!(Command::new("taskset").args(["-cp", "0", &pid]).output().unwrap().status.success());
        }
        let pid = starved.0.id().to_string();
        assert!(Command::new("chrt").args(["-ip", "0", &pid]).status().unwrap().success());
        let (mut clock, begun) = (starved.clock(), Instant::now());
        let before = clock.processor_time(WorkerThread::First).unwrap();
        std::thread::sleep(Duration::from_millis(400));
        let (computed, passed) = (clock.processor_time(WorkerThread::First).unwrap() - before, begun.elapsed());
        assert!(computed < passed / 4, "{computed:?} of {passed:?}");
    }

    #[test]
    fn the_packet_thread_is_found_by_its_name() {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let work = move || while !told.load(Ordering::Relaxed) {};
        let thread = std::thread::Builder::new().name("packets".to_owned()).spawn(work).unwrap();
        let mut clock = WorkerClock::new(std::process::id().cast_signed(), 1);
        let until = Instant::now() + Duration::from_secs(20);
        // It may not have its name yet, and this process's first thread does next to nothing.
        while clock.processor_time(WorkerThread::First).is_none_or(|time| time < Duration::from_millis(50)) {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
            clock.first = None;
        }
        assert!(clock.processor_time(WorkerThread::First).is_some());
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        // The kernel wakes who joins a thread before the thread is gone.
        while clock.processor_time(WorkerThread::First).is_some() {
            assert!(Instant::now() < until, "a thread that ended has no clock");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(clock.processor_time(WorkerThread::First).is_some(), "and another one is looked for");
    }

    #[test]
    fn the_thread_of_a_lane_is_found_by_its_name_or_not_at_all() {
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let work = move || {
            ready.send(()).unwrap();
            let _ = told.recv();
        };
        let thread = std::thread::Builder::new().name(lane_thread_name(3)).spawn(work).unwrap();
        is_ready.recv().unwrap();
        let time = |lane| WorkerClock::new(std::process::id().cast_signed(), lane).processor_time(WorkerThread::OfLane);
        assert!(time(3).is_some());
        assert_eq!(time(2), None);
        drop(tell);
        thread.join().unwrap();
    }

    #[test]
    fn a_process_that_ended_has_no_clock() {
        let running = Running::start("exec sleep 60");
        let mut clock = running.clock();
        assert!(clock.processor_time(WorkerThread::First).is_some());
        drop(running);
        assert_eq!(clock.processor_time(WorkerThread::First), None);
    }

    struct Running(Child);

    impl Running {
        fn start(script: &str) -> Running {
            Running(Command::new("sh").args(["-c", script]).spawn().unwrap())
        }

        fn clock(&self) -> WorkerClock {
            WorkerClock::new(self.0.id().cast_signed(), 0)
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}
