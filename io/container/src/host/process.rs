// SPDX-License-Identifier: Apache-2.0
//! A container's first process, and how it ends.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use netserv_model::{Refusal, RefusalKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::limits::EXIT_REPORT_BYTES_MAX;
use crate::protocol::ExitReport;
use crate::sys;

/// A container's first process, and with it all others. Its descriptor becomes readable when it ended.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    pidfd: OwnedFd,
    exit: std::fs::File,
    ended: Option<Exit>,
    /// Its processor time, as far as that was asked for.
    cpu_time: Duration,
    /// The file that says how much memory the container's processes hold.
    memory: Option<PathBuf>,
}

impl Process {
    pub(crate) fn new(pid: i32, pidfd: OwnedFd, exit: OwnedFd) -> Process {
        Process { pid, pidfd, exit: exit.into(), ended: None, cpu_time: Duration::ZERO, memory: None }
    }

    pub(crate) fn with_memory(mut self, memory: Option<PathBuf>) -> Process {
        self.memory = memory;
        self
    }

    /// Returns its number in the node's pid namespace, for logs. It may belong to another process once this one ended.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Kills every process of the container at once.
    pub fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Returns how it ended; nothing while it runs.
    pub fn exit(&mut self) -> Option<&Exit> {
        if self.ended.is_none() {
            let mut bytes = [0; EXIT_REPORT_BYTES_MAX];
            self.ended = match self.exit.read(&mut bytes) {
                Ok(length) => {
                    let report = serde_json::from_slice::<ExitReport>(&bytes[..length]).ok();
                    let cpu_ns = report.as_ref().map_or(0, |report| report.cpu_ns);
                    self.cpu_time = self.cpu_time.max(Duration::from_nanos(cpu_ns));
                    Some(Exit::from_report(report))
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                Err(_) => Some(Exit::unknown()),
            };
        }
        self.ended.as_ref()
    }

    /// Returns how long its threads were on a processor so far; once [`Process::exit`] says how it ended, that is its last
    /// word. It never goes back.
    pub fn cpu_time(&mut self) -> Duration {
        if self.exit().is_none() && self.pid > 0 {
            let time = sys::process_time(self.pid);
            // Its number may be another process's once it ended.
            let ended = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&Timespec::default())) != Ok(0);
            self.cpu_time = self.cpu_time.max(time.filter(|_| !ended).unwrap_or_default());
        }
        self.cpu_time
    }

    /// Returns the file that says how many bytes of memory the container's processes hold, if the kernel counts that. Those
    /// of one container have the same.
    pub fn memory_file(&self) -> Option<&Path> {
        self.memory.as_deref()
    }

    /// Waits until it ended, at most so long.
    pub fn wait(&mut self, at_most: Duration) -> Option<&Exit> {
        let until = Instant::now() + at_most;
        while self.exit().is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let timeout = Timespec::try_from(left).ok();
            let _ = poll(&mut [PollFd::new(&self.exit, PollFlags::IN)], timeout.as_ref());
        }
        self.ended.as_ref()
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.exit.as_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Why.
    pub cause: ExitCause,
    /// The end of what it wrote to its standard error: text of an untrusted process.
    pub stderr: String,
}

/// Why a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// By itself, with this code.
    Code(i32),
    /// By a signal: a crash, or the node killed it.
    Signal(i32),
    /// The kernel killed it because its memory limit was reached.
    OutOfMemory,
    /// The kernel killed it because it used up its processor time, which only builds have a limit of.
    OutOfCpuTime,
    /// Nobody knows, because the launcher is gone; the container is too.
    Unknown,
}

impl Exit {
    /// Returns the end as a refusal.
    pub fn refusal(&self) -> Refusal {
        let words = if self.stderr.is_empty() { String::new() } else { format!(": {}", self.stderr) };
        match self.cause {
            ExitCause::OutOfMemory => {
                Refusal::new(RefusalKind::MemoryLimit, "the container reached its memory limit and was killed")
            }
            ExitCause::OutOfCpuTime => {
                Refusal::new(RefusalKind::Stalled, "the process used up its processor time and was killed")
            }
            ExitCause::Code(code) => {
                Refusal::new(RefusalKind::NodeFailed, format!("the worker ended with {code}{words}"))
            }
            ExitCause::Signal(signal) => {
                Refusal::new(RefusalKind::NodeFailed, format!("the worker was ended by signal {signal}{words}"))
            }
            ExitCause::Unknown => Refusal::new(RefusalKind::NodeFailed, "the worker ended with the node's launcher"),
        }
    }

    fn from_report(report: Option<ExitReport>) -> Exit {
        let Some(report) = report else { return Exit::unknown() };
        let cause = match report {
            // A worker that a module's own limit made exit did not die of the container's.
            ExitReport { out_of_memory: true, signal: Some(_), .. } => ExitCause::OutOfMemory,
            ExitReport { out_of_cpu_time: true, .. } => ExitCause::OutOfCpuTime,
            ExitReport { signal: Some(signal), .. } => ExitCause::Signal(signal),
            ExitReport { code: Some(code), .. } => ExitCause::Code(code),
            ExitReport { .. } => ExitCause::Unknown,
        };
        Exit { cause, stderr: report.stderr }
    }

    fn unknown() -> Exit {
        Exit { cause: ExitCause::Unknown, stderr: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_refusal() {
        check_exit(
            r#"{"code":null,"signal":9,"out_of_memory":true,"out_of_cpu_time":false,"stderr":""}"#,
            RefusalKind::MemoryLimit,
            "memory",
        );
        check_exit(
            r#"{"code":null,"signal":11,"out_of_memory":false,"out_of_cpu_time":false,"stderr":"x"}"#,
            RefusalKind::NodeFailed,
            "11: x",
        );
        check_exit(
            r#"{"code":null,"signal":9,"out_of_memory":false,"out_of_cpu_time":true,"stderr":""}"#,
            RefusalKind::Stalled,
            "processor time",
        );
        check_exit(
            r#"{"code":3,"signal":null,"out_of_memory":false,"out_of_cpu_time":false,"stderr":""}"#,
            RefusalKind::NodeFailed,
            "with 3",
        );
        check_exit("", RefusalKind::NodeFailed, "launcher");
        check_exit("rubbish", RefusalKind::NodeFailed, "launcher");
    }

    fn check_exit(report: &str, kind: RefusalKind, words: &str) {
        let refusal = Exit::from_report(serde_json::from_str(report).ok()).refusal();
        assert_eq!(refusal.kind, kind);
        assert!(refusal.detail.contains(words), "{refusal}");
    }
}
