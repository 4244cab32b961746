// SPDX-License-Identifier: Apache-2.0
//! The scheduling class of threads: the usual one, or the real-time class, whose threads go before all usual ones.
//!
//! A kernel with `CONFIG_RT_GROUP_SCHED` gives each control group of version 1 a real-time share of its own, which is none
//! for a new group. A worker's packet thread then has to be in the node's own group to get into the class: it is not held
//! to its container's processor time there, and so only a container that may use a whole processor gets that.
//!
//! In the usual class a thread whose slice is short goes before others when it wakes, for as long as it has had no more than
//! its share (Linux 6.12 and newer). Packet threads work for some microseconds at a time, and beside a program that computes
//! would otherwise wait for the whole slice of that, some milliseconds, each time.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::limits::PACKET_SLICE;
use crate::sandbox::cgroup::{Controller, Version, detect};
use crate::sys;

/// The scheduling class of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Shares the processor with all others.
    Usual,
    /// Goes before all threads of a lower number, 1 to 99, and before all usual ones, until it sleeps or yields.
    RealTime(u8),
}

/// A thread whose class can be changed.
#[derive(Debug)]
pub struct ScheduledThread {
    number: i32,
    /// Of the thread and no other, even if its number is used again.
    told: File,
    /// Has how long it ran; `None` where the kernel does not count that.
    counted: Option<File>,
}

impl ScheduledThread {
    /// Returns the calling thread.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn this() -> io::Result<ScheduledThread> {
        let link = fs::read_link("/proc/thread-self")?;
        let number = link.file_name().and_then(|name| name.to_str()?.parse().ok());
        ScheduledThread::open(number.ok_or(io::ErrorKind::NotFound)?, Path::new("/proc/thread-self"))
    }

    /// Returns the first thread of a process, by its number in this pid namespace.
    ///
    /// # Errors
    /// There is no such process.
    pub fn first_of(pid: i32) -> io::Result<ScheduledThread> {
        ScheduledThread::open(pid, &PathBuf::from(format!("/proc/{pid}/task/{pid}")))
    }

    fn open(number: i32, directory: &Path) -> io::Result<ScheduledThread> {
        let counted = File::open(directory.join("schedstat")).ok();
        Ok(ScheduledThread { number, told: File::open(directory.join("stat"))?, counted })
    }

    /// Has it go by another class from here on.
    ///
    /// # Errors
    /// The kernel refuses, as without CAP_SYS_NICE or where the thread's control group has no real-time share; or the
    /// thread ended.
    pub fn set_class(&self, class: Class) -> io::Result<()> {
        // Its number could be that of another thread once it ended.
        self.told.read_at(&mut [0; 1], 0)?;
        match class {
            Class::Usual => sys::set_scheduler(self.number, libc::SCHED_OTHER, 0),
            Class::RealTime(priority) => sys::set_scheduler(self.number, libc::SCHED_FIFO, priority.into()),
        }
    }

    /// Gives it slices of [`PACKET_SLICE`] if it is in the usual class, and not in one that the operator started it in. Kernels
    /// before Linux 6.12 have one length for all threads.
    ///
    /// # Errors
    /// The kernel refuses, or the thread ended.
    pub fn shorten_slice(&self) -> io::Result<()> {
        self.told.read_at(&mut [0; 1], 0)?;
        if sys::scheduler(self.number) == libc::SCHED_OTHER {
            sys::set_slice(self.number, PACKET_SLICE)?;
        }
        Ok(())
    }

    /// Returns whether it is in the real-time class.
    pub fn is_real_time(&self) -> bool {
        sys::scheduler(self.number) == libc::SCHED_FIFO
    }

    /// Returns whether it is on a processor or waits for one.
    pub fn is_running(&self) -> bool {
        let mut bytes = [0; 128];
        let length = self.told.read_at(&mut bytes, 0).unwrap_or(0);
        // The name before the state, in parentheses, can hold anything.
        let state = bytes[..length].iter().rposition(|byte| *byte == b')').and_then(|end| bytes.get(end + 2));
        state == Some(&b'R')
    }

    /// Returns how long it has been on a processor, to some milliseconds.
    ///
    /// # Errors
    /// The kernel does not count that (`CONFIG_SCHED_INFO`), or the thread ended.
    pub fn processor_time(&self) -> io::Result<Duration> {
        let counted = self.counted.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let mut bytes = [0; 64];
        let length = counted.read_at(&mut bytes, 0)?;
        let text = std::str::from_utf8(&bytes[..length]).map_err(io::Error::other)?;
        let nanoseconds = text.split_ascii_whitespace().next().and_then(|first| first.parse().ok());
        Ok(Duration::from_nanos(nanoseconds.ok_or(io::ErrorKind::InvalidData)?))
    }

    /// Moves it into the group of this process that counts processor time, if that is one of version 1, where each thread
    /// can have a group of its own. This can take 20 ms.
    ///
    /// # Errors
    /// There is no such group, or the kernel refuses.
    pub fn join_own_group(&self) -> io::Result<()> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let group = own_group(&mounts, &own).ok_or(io::ErrorKind::NotFound)?;
        fs::write(group.join("tasks"), self.number.to_string())
    }
}

fn own_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let counts = |controllers: &[Controller]| controllers.contains(&Controller::Cpu);
    let hierarchy = detect(mounts).into_iter().find(|one| one.version == Version::V1 && counts(&one.controllers))?;
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|one| one == "cpu").then_some(path)
    })?;
    Some(hierarchy.mount.join(path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_of_version_1_is_found() {
        let mounts = "30 20 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let own = "9:name=systemd:/x\n4:memory:/a\n1:cpu,cpuacct:/b/c\n0::/\n";
        assert_eq!(own_group(mounts, own), Some("/sys/fs/cgroup/cpu/b/c".into()));
        assert_eq!(own_group(mounts, "0::/d\n"), None);
        assert_eq!(own_group("", own), None);
    }

    #[test]
    fn a_thread_that_ended_keeps_no_class() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let thread = ScheduledThread::first_of(child.id().cast_signed()).unwrap();
        child.wait().unwrap();
        assert!(thread.set_class(Class::Usual).is_err());
        assert!(ScheduledThread::first_of(child.id().cast_signed()).is_err());
    }

    #[test]
    fn what_computes_is_running_and_what_waits_is_not() {
        assert!(ScheduledThread::this().unwrap().is_running());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let thread = ScheduledThread::first_of(child.id().cast_signed()).unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while thread.is_running() {
            assert!(std::time::Instant::now() < until, "it does not sleep");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!thread.is_running());
    }

    #[test]
    fn processor_time_is_that_of_the_thread_alone() {
        let thread = ScheduledThread::this().unwrap();
        let Ok(before) = thread.processor_time() else {
            return netserv_skips::not_run(
                "processor_time_is_that_of_the_thread_alone",
                "this kernel does not count it",
            );
        };
        let spin = |time: Duration| {
            let begun = std::time::Instant::now();
            while begun.elapsed() < time {}
        };
        std::thread::spawn(move || spin(Duration::from_millis(200))).join().unwrap();
        let beside = thread.processor_time().unwrap() - before;
        assert!(beside < Duration::from_millis(100), "{beside:?}");
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while thread.processor_time().unwrap() - before < Duration::from_millis(100) {
            assert!(std::time::Instant::now() < until, "it is not counted");
            spin(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_slice_outlasts_the_real_time_class_and_leaves_the_nice_value() {
        const TEST: &str = "a_slice_outlasts_the_real_time_class_and_leaves_the_nice_value";
        let tried = std::thread::spawn(|| {
            let thread = ScheduledThread::this().unwrap();
            if sys::slice(thread.number).unwrap().is_zero() {
                return false;
            }
            let pid = rustix::process::Pid::from_raw(thread.number);
            rustix::process::setpriority_process(pid, 5).unwrap();
            thread.shorten_slice().unwrap();
            assert_eq!(sys::slice(thread.number).unwrap(), PACKET_SLICE);
            if thread.set_class(Class::RealTime(1)).is_ok() {
                thread.set_class(Class::Usual).unwrap();
            }
            assert_eq!(sys::slice(thread.number).unwrap(), PACKET_SLICE);
            assert_eq!(rustix::process::getpriority_process(pid).unwrap(), 5);
            let child = || sys::slice(ScheduledThread::this().unwrap().number).unwrap();
            assert_ne!(std::thread::spawn(child).join().unwrap(), PACKET_SLICE);
            true
        });
        if !tried.join().unwrap() {
            netserv_skips::not_run(TEST, "this kernel gives no thread a slice of its own");
        }
    }

    #[test]
    fn a_thread_can_leave_the_class_again() {
        let thread = ScheduledThread::this().unwrap();
        match thread.set_class(Class::RealTime(1)) {
            Ok(()) => assert!(thread.is_real_time()),
            Err(error) => netserv_skips::not_run("a_thread_can_leave_the_class_again", &error.to_string()),
        }
        thread.set_class(Class::Usual).unwrap();
        assert!(!thread.is_real_time());
    }
}
