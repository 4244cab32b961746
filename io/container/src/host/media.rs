// SPDX-License-Identifier: Apache-2.0
//! ffmpeg in a sandbox of its own, one process per job.
//!
//! A job's process shares nothing with the worker that asked for it but the pipes between them, and nothing with the
//! node but the pipe that tells its end. It has no network, no file but its own program, libraries and font, and a
//! directory in memory that keeps what has to be read twice.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use netserv_model::Flavour;
use netserv_wire::container::media::{DETAIL_BYTES_MAX, MediaOutcome, MediaTask};
use rustix::pipe::{PipeFlags, pipe_with};

use super::launcher::{Launcher, check_limits};
use super::process::{Exit, ExitCause, Process};
use crate::error::ContainerError;
use crate::limits::MediaLimits;
use crate::protocol::socket::exit_pipe;
use crate::protocol::{MediaOrder, Request};

/// A job that runs.
#[derive(Debug)]
pub struct MediaJob {
    /// Its process; dropping it ends the job.
    pub process: Process,
    /// The ends of its pipes that go to who asked for it.
    pub ends: MediaEnds,
}

/// Ends of a job's pipes. All block.
#[derive(Debug)]
pub struct MediaEnds {
    /// Where the input is written to.
    pub input: OwnedFd,
    /// Where the outputs are read from, in their order.
    pub outputs: Vec<OwnedFd>,
    /// Where the picture is written to that is laid over pictures.
    pub picture: Option<OwnedFd>,
}

impl MediaEnds {
    /// Returns them in the order in which a worker gets them.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        std::iter::once(&self.input).chain(&self.outputs).chain(&self.picture).map(|fd| fd.as_fd()).collect()
    }
}

impl Launcher {
    /// Starts a job, and returns when its process is that: some milliseconds. How long it takes is for the caller to
    /// watch.
    ///
    /// # Errors
    /// [`ContainerError`] with the step that failed, or what is out of its bounds.
    pub fn start_media(&self, task: &MediaTask, limits: &MediaLimits) -> Result<MediaJob, ContainerError> {
        check_limits(Flavour::Wasm, &limits.container)?;
        task.check().map_err(ContainerError::Quota)?;
        let pipe = || {
            let made = pipe_with(PipeFlags::CLOEXEC);
            made.map_err(|error| ContainerError::Prepare { step: "make a pipe", source: error.into() })
        };
        let (their_input, input) = pipe()?;
        let pipes = (0..task.outputs()).map(|_| pipe()).collect::<Result<Vec<_>, _>>()?;
        let (outputs, their_outputs): (Vec<OwnedFd>, Vec<OwnedFd>) = pipes.into_iter().unzip();
        let (their_picture, picture) = if task.has_picture() { Some(pipe()?) } else { None }.unzip();
        let (exit, their_exit) = exit_pipe()?;
        let fds = [&their_exit, &their_input].into_iter().chain(&their_outputs).chain(&their_picture);
        let fds: Vec<BorrowedFd<'_>> = fds.map(|fd| fd.as_fd()).collect();
        let request = Request::Media(MediaOrder { task: task.clone(), limits: limits.container });
        let (pid, pidfd) = self.start_alone(&request, &fds)?;
        Ok(MediaJob { process: Process::new(pid, pidfd, exit), ends: MediaEnds { input, outputs, picture } })
    }
}

/// Tells how a job ended from how its process did, with ffmpeg's last words about it.
pub fn media_outcome(exit: &Exit) -> (MediaOutcome, String) {
    // What is not kept any more is only an error once it is wanted.
    if exit.stderr.contains("Failed to perform internal seek") {
        return (
            MediaOutcome::Input,
            "the input is larger than what is kept of one that has to be read twice".to_owned(),
        );
    }
    match exit.cause {
        ExitCause::Code(0) => (MediaOutcome::Done, String::new()),
        ExitCause::OutOfMemory => (MediaOutcome::Memory, "ffmpeg reached its memory limit".to_owned()),
        ExitCause::Code(_) => (MediaOutcome::Failed, last_line(&exit.stderr)),
        // No job has a limit of that kind.
        ExitCause::OutOfCpuTime => (MediaOutcome::Failed, "ffmpeg used up its processor time".to_owned()),
        ExitCause::Signal(signal) => {
            (MediaOutcome::Failed, format!("ffmpeg was ended by signal {signal}; {}", last_line(&exit.stderr)))
        }
        ExitCause::Unknown => (MediaOutcome::Unavailable, "ffmpeg ended with the node's launcher".to_owned()),
    }
}

/// Returns the last line that says something, without what `cache` says of every pipe.
fn last_line(stderr: &str) -> String {
    let lines = stderr.lines().map(str::trim);
    let noise = |line: &str| line.contains("failed to seekback end") || line.starts_with("Last message repeated");
    let line = lines.rev().find(|line| !line.is_empty() && !noise(line));
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = line.unwrap_or("ffmpeg did not say why").chars().map(plain).collect();
    while line.len() > DETAIL_BYTES_MAX {
        line.pop();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_outcome() {
        let check = |cause, stderr: &str, expected, words: &str| {
            let (outcome, detail) = media_outcome(&Exit { cause, stderr: stderr.to_owned() });
            assert_eq!(outcome, expected);
            assert!(detail.contains(words) && detail.len() <= DETAIL_BYTES_MAX + 64, "{detail}");
        };
        check(ExitCause::Code(0), "a warning", MediaOutcome::Done, "");
        let noise = "[cache @ 0x1] Inner protocol failed to seekback end : -38\n    Last message repeated 4 times\n";
        check(ExitCause::Code(1), &format!("pipe:0: Invalid data\n{noise}"), MediaOutcome::Failed, "Invalid data");
        check(ExitCause::Code(1), noise, MediaOutcome::Failed, "did not say");
        check(ExitCause::Code(1), &"é".repeat(4000), MediaOutcome::Failed, "é");
        check(ExitCause::Signal(11), "", MediaOutcome::Failed, "signal 11");
        let seek = "[cache @ 0x1] Failed to perform internal seek\npipe:0: Invalid data\n";
        check(ExitCause::Code(1), seek, MediaOutcome::Input, "larger");
        check(ExitCause::OutOfMemory, "", MediaOutcome::Memory, "memory");
        check(ExitCause::Unknown, "", MediaOutcome::Unavailable, "launcher");
    }
}
