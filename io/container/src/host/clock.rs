// SPDX-License-Identifier: Apache-2.0
//! The processor time of the thread that runs a worker's packet modules, seen from outside.
//!
//! The clock of another process (`clock_getcpuclockid`) counts all its threads, and that of another process's thread is
//! not to be had. The scheduler's count of each thread is in `/proc`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Reads the processor time of one worker's packet thread: the thread of that name, or else the first one.
#[derive(Debug)]
pub struct WorkerClock {
    pid: i32,
    /// Open while it is read, so that it is never that of a later process with the same number.
    count: Option<File>,
}

impl WorkerClock {
    /// Returns the clock of a process, by its number in this pid namespace.
    pub fn new(pid: i32) -> WorkerClock {
        WorkerClock { pid, count: None }
    }

    /// Returns how long the thread was on a processor so far; `None` if the kernel does not tell, or there is no such
    /// thread.
    pub fn processor_time(&mut self) -> Option<Duration> {
        if self.count.is_none() {
            self.count = self.find();
        }
        let time = self.count.as_ref().and_then(read);
        if time.is_none() {
            self.count = None;
        }
        time
    }

    fn find(&self) -> Option<File> {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.pid));
        let mut threads: Vec<i32> =
            fs::read_dir(&tasks).ok()?.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
        // The thread of that name is older than what a module starts.
        threads.sort_unstable();
        let is_packets = |thread: &&i32| {
            let name = fs::read(tasks.join(thread.to_string()).join("comm"));
            name.is_ok_and(|name| name == PACKET_THREAD)
        };
        let thread = threads.iter().find(is_packets).copied().unwrap_or(self.pid);
        File::open(tasks.join(thread.to_string()).join("schedstat")).ok()
    }
}

/// The first of three numbers is the time on a processor in nanoseconds (`Documentation/scheduler/sched-stats.rst`).
fn read(count: &File) -> Option<Duration> {
    let mut bytes = [0; 64];
    let length = count.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The name of a JVM worker's packet thread; a Wasm worker has it as its first thread.
const PACKET_THREAD: &[u8] = b"packets\n";

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
        let before = burns.processor_time().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let slept = sleeps.processor_time().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while burns.processor_time().unwrap() < before + Duration::from_millis(100) {
            assert!(Instant::now() < until, "it gets no processor");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(sleeps.processor_time().unwrap(), slept);
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
        let before = clock.processor_time().unwrap();
        std::thread::sleep(Duration::from_millis(400));
        let (computed, passed) = (clock.processor_time().unwrap() - before, begun.elapsed());
        assert!(computed < passed / 4, "{computed:?} of {passed:?}");
    }

    #[test]
    fn the_packet_thread_is_found_by_its_name() {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let work = move || while !told.load(Ordering::Relaxed) {};
        let thread = std::thread::Builder::new().name("packets".to_owned()).spawn(work).unwrap();
        let mut clock = WorkerClock::new(std::process::id().cast_signed());
        let until = Instant::now() + Duration::from_secs(20);
        // It may not have its name yet, and this process's first thread does next to nothing.
        while clock.processor_time().is_none_or(|time| time < Duration::from_millis(50)) {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
            clock.count = None;
        }
        assert!(clock.processor_time().is_some());
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        // The kernel wakes who joins a thread before the thread is gone.
        while clock.processor_time().is_some() {
            assert!(Instant::now() < until, "a thread that ended has no clock");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(clock.processor_time().is_some(), "and another one is looked for");
    }

    #[test]
    fn a_process_that_ended_has_no_clock() {
        let running = Running::start("exec sleep 60");
        let mut clock = running.clock();
        assert!(clock.processor_time().is_some());
        drop(running);
        assert_eq!(clock.processor_time(), None);
    }

    struct Running(Child);

    impl Running {
        fn start(script: &str) -> Running {
            Running(Command::new("sh").args(["-c", script]).spawn().unwrap())
        }

        fn clock(&self) -> WorkerClock {
            WorkerClock::new(self.0.id().cast_signed())
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}
