// SPDX-License-Identifier: Apache-2.0
//! A running container as its node sees it: control channel, packet ring, process.

use std::io::{self, IoSliceMut, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netserv_model::{Refusal, RefusalKind, UserId};
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_wire::container::ring::{HostEnd, MAPPING_BYTES, MAPPING_WORDS};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendFlags, recvmsg};
use rustix::process::Signal;

use crate::error::{ContainerError, ControlError};
use crate::host::clock::WorkerClock;
use crate::host::launcher::seqpacket;
use crate::host::ring::{DetachedWorker, HostRing};
use crate::limits::{CONTROL_BUFFER_BYTES, EXIT_REPORT_BYTES_MAX};
use crate::protocol::{ExitReport, send_bytes};
use crate::sys::SharedWords;

/// A running container. Dropping its [`Process`] kills it.
#[derive(Debug)]
pub struct Container {
    user: UserId,
    landlock: String,
    control: ControlChannel,
    ring: HostRing,
    process: Process,
}

impl Container {
    pub(crate) fn new(
        user: UserId,
        control: ControlChannel,
        ring: HostRing,
        process: Process,
        landlock: String,
    ) -> Container {
        Container { user, landlock, control, ring, process }
    }

    /// Returns whose container it is.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns how much of Landlock is enforced in it, in words.
    pub fn landlock(&self) -> &str {
        &self.landlock
    }

    /// Takes the container apart: the control part for the control loop, the ring for a packet thread.
    pub fn split(self) -> (ControlChannel, HostRing, Process) {
        (self.control, self.ring, self.process)
    }
}

/// Frames to and from a worker, one datagram each. Never blocks: wait on its descriptor.
#[derive(Debug)]
pub struct ControlChannel {
    socket: OwnedFd,
}

impl ControlChannel {
    /// Sends one frame, with the parts of a module beside a [`ToWorker::Load`] and sockets beside a
    /// [`ToWorker::Sockets`]; at most [`DESCRIPTORS_MAX`](netserv_wire::container::frames::DESCRIPTORS_MAX).
    ///
    /// # Errors
    /// [`ControlError::Full`] if the worker does not read; others mean that the worker is of no more use.
    pub fn send(&self, frame: &ToWorker, descriptors: &[BorrowedFd<'_>]) -> Result<(), ControlError> {
        let bytes = frame.encode()?;
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        send_bytes(&self.socket, &bytes, descriptors, flags).map_err(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                ControlError::Full
            } else if [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&error.kind()) {
                ControlError::Closed
            } else {
                ControlError::Io(error)
            }
        })
    }

    /// Receives the next frame, or nothing if none is there.
    ///
    /// # Errors
    /// [`ControlError::Closed`] when the worker is gone, [`ControlError::Frame`] if it sent what is no frame.
    pub fn receive(&self) -> Result<Option<FromWorker>, ControlError> {
        let peek = RecvFlags::PEEK | RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        let Some(length) = self.receive_into(&mut [], peek)? else { return Ok(None) };
        if length == 0 {
            return Err(ControlError::Closed);
        }
        let mut bytes = vec![0; length];
        let Some(received) = self.receive_into(&mut bytes, RecvFlags::DONTWAIT)? else { return Ok(None) };
        Ok(Some(FromWorker::decode(&bytes[..received.min(length)])?))
    }

    /// Descriptors that come along are closed by the kernel, since there is no room for them.
    fn receive_into(&self, bytes: &mut [u8], flags: RecvFlags) -> Result<Option<usize>, ControlError> {
        let mut none = RecvAncillaryBuffer::default();
        let received =
            rustix::io::retry_on_intr(|| recvmsg(&self.socket, &mut [IoSliceMut::new(bytes)], &mut none, flags));
        match received {
            Ok(message) => Ok(Some(message.bytes)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(rustix::io::Errno::CONNRESET) => Err(ControlError::Closed),
            Err(error) => Err(ControlError::Io(error.into())),
        }
    }
}

impl AsFd for ControlChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A container's first process, and with it all others. Its descriptor becomes readable when it ended.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    pidfd: OwnedFd,
    exit: std::fs::File,
    ended: Option<Exit>,
}

impl Process {
    pub(crate) fn new(pid: i32, pidfd: OwnedFd, exit: OwnedFd) -> Process {
        Process { pid, pidfd, exit: exit.into(), ended: None }
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
                Ok(length) => Some(Exit::from_report(&bytes[..length])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                Err(_) => Some(Exit::unknown()),
            };
        }
        self.ended.as_ref()
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
            ExitCause::Code(code) => {
                Refusal::new(RefusalKind::NodeFailed, format!("the worker ended with {code}{words}"))
            }
            ExitCause::Signal(signal) => {
                Refusal::new(RefusalKind::NodeFailed, format!("the worker was ended by signal {signal}{words}"))
            }
            ExitCause::Unknown => Refusal::new(RefusalKind::NodeFailed, "the worker ended with the node's launcher"),
        }
    }

    fn from_report(bytes: &[u8]) -> Exit {
        let Ok(report) = serde_json::from_slice::<ExitReport>(bytes) else { return Exit::unknown() };
        let cause = match report {
            // A worker that a module's own limit made exit did not die of the container's.
            ExitReport { out_of_memory: true, signal: Some(_), .. } => ExitCause::OutOfMemory,
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

/// What a node and a worker share, both ends still in the node.
pub(crate) struct Shared {
    control: OwnedFd,
    their_control: OwnedFd,
    memory: OwnedFd,
    wake_worker: OwnedFd,
    wake_host: OwnedFd,
    end: HostEnd<SharedWords>,
    header: SharedWords,
}

impl Shared {
    pub(crate) fn new() -> Result<Shared, ContainerError> {
        let prepare = |step| move |source: io::Error| ContainerError::Prepare { step, source };
        let (control, their_control) = control_pair().map_err(prepare("make the control socket"))?;
        let memory = ring_memory().map_err(prepare("make the ring's memory"))?;
        let words = SharedWords::map(&memory, MAPPING_WORDS).map_err(prepare("map the ring"))?;
        let wake = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = || wake().map_err(|error| prepare("make an eventfd")(error.into()));
        let header = SharedWords::map(&memory, HEADER_WORDS).map_err(prepare("map the ring's header"))?;
        // The worker looks for the layout as soon as it runs.
        let end = HostEnd::new(words)?;
        Ok(Shared { control, their_control, memory, wake_worker: wake()?, wake_host: wake()?, end, header })
    }

    /// What the worker gets, in the order of its descriptor numbers.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        [&self.their_control, &self.memory, &self.wake_worker, &self.wake_host].map(AsFd::as_fd).to_vec()
    }

    pub(crate) fn into_container(self, user: UserId, process: Process, landlock: String) -> Container {
        let ring = HostRing::new(self.end, self.header, self.wake_worker, self.wake_host);
        let ring = ring.with_clock(WorkerClock::new(process.pid()));
        Container::new(user, ControlChannel { socket: self.control }, ring, process, landlock)
    }

    /// Takes both sides apart: the node's control channel, the worker's socket, the node's ring, the worker's.
    pub(crate) fn into_ends(self) -> Result<(ControlChannel, OwnedFd, HostRing, DetachedWorker), ContainerError> {
        let step = |source| ContainerError::Prepare { step: "map the ring", source };
        let map = || SharedWords::map(&self.memory, MAPPING_WORDS).map_err(step);
        let clone = |fd: &OwnedFd| fd.try_clone().map_err(step);
        let worker = DetachedWorker::new([map()?, map()?], clone(&self.wake_worker)?, clone(&self.wake_host)?)?;
        let ring = HostRing::new(self.end, self.header, self.wake_worker, self.wake_host);
        Ok((ControlChannel { socket: self.control }, self.their_control, ring, worker))
    }
}

/// The ring's first page.
const HEADER_WORDS: usize = 512;

fn control_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = seqpacket()?;
    for end in [&ours, &theirs] {
        // The kernel doubles the figure, and then one frame of the largest size fits.
        set_socket_send_buffer_size(end, CONTROL_BUFFER_BYTES)?;
    }
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

/// Makes memory that nobody can make shorter, which would kill whoever touches it then.
fn ring_memory() -> io::Result<OwnedFd> {
    let memory = memfd_create("netserv-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, u64::try_from(MAPPING_BYTES).expect("a mapping's size fits 64 bits"))?;
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use netserv_model::effect::ModuleSlot;
    use netserv_model::manifest::ModuleLimits;
    use netserv_wire::container::frames::{FRAME_BYTES_MAX, StorageFailures};

    use super::*;

    #[test]
    fn a_frame_of_the_largest_size_fits_the_socket() {
        let (ours, theirs) = control_pair().unwrap();
        let value = "x".repeat(FRAME_BYTES_MAX - 400);
        let load = ToWorker::Load {
            slot: ModuleSlot(0),
            module: "example.org/a@1.0.0".parse().unwrap(),
            properties: BTreeMap::from([("key".to_owned(), value)]),
            limits: ModuleLimits::default(),
            state_schema: 1,
            parts: vec![],
            server: None,
            blocks: BTreeSet::new(),
        };
        let channel = ControlChannel { socket: ours };
        channel.send(&load, &[]).unwrap();
        assert!(matches!(channel.send(&load, &[]), Err(ControlError::Full)));
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let (length, _) = rustix::net::recv(&theirs, &mut bytes, RecvFlags::empty()).unwrap();
        assert_eq!(ToWorker::decode(&bytes[..length]).unwrap(), load);
    }

    #[test]
    fn what_a_worker_sends_is_a_frame_or_an_error() {
        let (ours, theirs) = control_pair().unwrap();
        let channel = ControlChannel { socket: ours };
        assert!(channel.receive().unwrap().is_none());
        let send = |bytes: &[u8]| rustix::net::send(&theirs, bytes, SendFlags::empty()).unwrap();
        send(br#"{"frame":"loaded","slot":3}"#);
        assert_eq!(channel.receive().unwrap(), Some(FromWorker::Loaded { slot: ModuleSlot(3) }));
        send(b"rubbish");
        assert!(matches!(channel.receive(), Err(ControlError::Frame(_))));
        drop(theirs);
        assert!(matches!(channel.receive(), Err(ControlError::Closed)));
        assert!(matches!(channel.send(&ToWorker::Stats, &[]), Err(ControlError::Closed)));
    }

    #[test]
    fn descriptors_from_a_worker_are_not_kept() {
        let (ours, theirs) = control_pair().unwrap();
        let channel = ControlChannel { socket: ours };
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        send_bytes(&theirs, br#"{"frame":"stats-done"}"#, &[writer.as_fd()], SendFlags::empty()).unwrap();
        drop(writer);
        assert_eq!(channel.receive().unwrap(), Some(FromWorker::StatsDone { storage: StorageFailures::default() }));
        // End of file, since no writer is left.
        assert_eq!(rustix::io::read(&reader, &mut [0; 8][..]).unwrap(), 0);
    }

    #[test]
    fn the_rings_memory_cannot_be_made_shorter() {
        let memory = ring_memory().unwrap();
        assert_eq!(ftruncate(&memory, 0), Err(rustix::io::Errno::PERM));
        assert_eq!(ftruncate(&memory, 1 << 30), Err(rustix::io::Errno::PERM));
    }

    #[test]
    fn each_end_has_its_refusal() {
        check_exit(r#"{"code":null,"signal":9,"out_of_memory":true,"stderr":""}"#, RefusalKind::MemoryLimit, "memory");
        check_exit(r#"{"code":null,"signal":11,"out_of_memory":false,"stderr":"x"}"#, RefusalKind::NodeFailed, "11: x");
        check_exit(r#"{"code":3,"signal":null,"out_of_memory":false,"stderr":""}"#, RefusalKind::NodeFailed, "with 3");
        check_exit("", RefusalKind::NodeFailed, "launcher");
        check_exit("rubbish", RefusalKind::NodeFailed, "launcher");
    }

    fn check_exit(report: &str, kind: RefusalKind, words: &str) {
        let refusal = Exit::from_report(report.as_bytes()).refusal();
        assert_eq!(refusal.kind, kind);
        assert!(refusal.detail.contains(words), "{refusal}");
    }
}
