// SPDX-License-Identifier: Apache-2.0
//! Containers without a process, whose other ends a test holds.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use netserv_model::UserId;
use netserv_wire::container::frames::{FRAME_BYTES_MAX, FromWorker, ToWorker};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::container::Container;
use super::media::{MediaEnds, MediaJob};
use super::process::Process;
use super::ring::{DetachedWorker, HostRing};
use super::shared::{Ends, Shared};
use crate::error::ContainerError;
use crate::protocol::socket::exit_pipe;

/// What the worker and the launcher would hold of a container that [`Container::detached`] made.
#[derive(Debug)]
pub struct DetachedContainer {
    control: Option<OwnedFd>,
    exit: File,
    ring: DetachedWorker,
}

impl Container {
    /// Makes a container without a process, all its ends in this process: for tests of nodes.
    ///
    /// # Errors
    /// The system gives no memory or no descriptor.
    pub fn detached(user: &UserId) -> Result<(Container, DetachedContainer), ContainerError> {
        let (exit, their_exit) = exit_pipe()?;
        let prepare = |source| ContainerError::Prepare { step: "make a pipe", source };
        // No pidfd, so that there is nothing to be killed.
        let no_process = exit.try_clone().map_err(prepare)?;
        let Ends { control, their_control, rings, mut workers } = Shared::new(1)?.into_ends()?;
        let container = Container::new(user.clone(), control, rings, Process::new(0, no_process, exit), String::new());
        let ring = workers.swap_remove(0);
        Ok((container, DetachedContainer { control: Some(their_control), exit: their_exit.into(), ring }))
    }
}

impl DetachedContainer {
    /// Sends a frame as the worker; false if there is no room for it, or nobody to take it.
    pub fn send(&self, frame: &FromWorker) -> bool {
        let (Some(control), Ok(bytes)) = (&self.control, frame.encode()) else { return false };
        send(control, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok()
    }

    /// Returns the next frame from the node, if one is there.
    pub fn receive(&self) -> Option<ToWorker> {
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let (length, _) = recv(self.control.as_ref()?, &mut bytes, RecvFlags::DONTWAIT).ok()?;
        ToWorker::decode(&bytes[..length]).ok()
    }

    /// Returns whether the node has let go of the container.
    pub fn is_let_go(&self) -> bool {
        let Some(control) = &self.control else { return false };
        let peeked = recv(control, &mut [0_u8; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        matches!(peeked, Ok((0, _)) | Err(Errno::CONNRESET))
    }

    /// Returns the worker's end of the ring.
    pub fn ring(&mut self) -> &mut DetachedWorker {
        &mut self.ring
    }

    /// Closes the control channel, which is the first that a node sees of a worker's end.
    pub fn hang_up(&mut self) {
        self.control = None;
    }

    /// Says as the launcher that the worker was ended by a signal.
    ///
    /// # Errors
    /// The node has let go of the container.
    pub fn report_signal(&mut self, signal: i32) -> std::io::Result<()> {
        let report =
            format!(r#"{{"code":null,"signal":{signal},"out_of_memory":false,"out_of_cpu_time":false,"stderr":""}}"#);
        self.exit.write_all(report.as_bytes())
    }
}

impl HostRing {
    /// Makes a ring without a container, both ends in this process: for tests and benches of packet loops.
    ///
    /// # Errors
    /// The system gives no memory or no eventfd.
    pub fn detached() -> Result<(HostRing, DetachedWorker), ContainerError> {
        let (mut rings, mut workers) = HostRing::detached_lanes(1)?;
        Ok((rings.swap_remove(0), workers.swap_remove(0)))
    }

    /// Makes the rings of one worker for so many lanes, at least one and at most
    /// [`LANES_MAX`](netserv_model::limits::LANES_MAX), without a container; by lane.
    ///
    /// # Errors
    /// The system gives no memory or no eventfd.
    pub fn detached_lanes(lanes: usize) -> Result<(Vec<HostRing>, Vec<DetachedWorker>), ContainerError> {
        let Ends { rings, workers, .. } = Shared::new(lanes)?.into_ends()?;
        Ok((rings, workers))
    }
}

/// What the launcher would hold of a job that [`MediaJob::detached`] made.
#[derive(Debug)]
pub struct DetachedJob {
    exit: File,
}

impl MediaJob {
    /// Makes a media job without a process: for tests of nodes.
    ///
    /// # Errors
    /// The system gives no descriptor.
    pub fn detached() -> Result<(MediaJob, DetachedJob), ContainerError> {
        let prepare = |source| ContainerError::Prepare { step: "make a pipe", source };
        let (exit, their_exit) = exit_pipe()?;
        let no_process = exit.try_clone().map_err(prepare)?;
        let pipe = || rustix::pipe::pipe().map_err(|error| prepare(error.into()));
        let ((_, input), (output, _)) = (pipe()?, pipe()?);
        let ends = MediaEnds { input, outputs: vec![output], picture: None };
        Ok((MediaJob { process: Process::new(0, no_process, exit), ends }, DetachedJob { exit: their_exit.into() }))
    }
}

impl DetachedJob {
    /// Says as the launcher that the job's process ended with a code.
    ///
    /// # Errors
    /// The node has let go of the job.
    pub fn report_code(&mut self, code: i32) -> std::io::Result<()> {
        let report =
            format!(r#"{{"code":{code},"signal":null,"out_of_memory":false,"out_of_cpu_time":false,"stderr":"why"}}"#);
        self.exit.write_all(report.as_bytes())
    }
}
