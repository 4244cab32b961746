// SPDX-License-Identifier: Apache-2.0
//! What a node and a worker share, from the node's making it to its being handed over.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netserv_model::UserId;
use netserv_wire::container::ring::{HostEnd, MAPPING_BYTES, MAPPING_WORDS};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::clock::WorkerClock;
use super::container::Container;
use super::control::{ControlChannel, control_pair};
use super::process::Process;
use super::ring::{DetachedWorker, HostRing};
use crate::error::ContainerError;
use crate::sys::SharedWords;

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
        Container::new(user, ControlChannel::new(self.control), ring, process, landlock)
    }

    /// Takes both sides apart: the node's control channel, the worker's socket, the node's ring, the worker's.
    pub(crate) fn into_ends(self) -> Result<(ControlChannel, OwnedFd, HostRing, DetachedWorker), ContainerError> {
        let step = |source| ContainerError::Prepare { step: "map the ring", source };
        let map = || SharedWords::map(&self.memory, MAPPING_WORDS).map_err(step);
        let clone = |fd: &OwnedFd| fd.try_clone().map_err(step);
        let worker = DetachedWorker::new([map()?, map()?], clone(&self.wake_worker)?, clone(&self.wake_host)?)?;
        let ring = HostRing::new(self.end, self.header, self.wake_worker, self.wake_host);
        Ok((ControlChannel::new(self.control), self.their_control, ring, worker))
    }
}

/// The ring's first page.
const HEADER_WORDS: usize = 512;

/// Makes memory that nobody can make shorter, which would kill whoever touches it then.
fn ring_memory() -> io::Result<OwnedFd> {
    let memory = memfd_create("netserv-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, u64::try_from(MAPPING_BYTES).expect("a mapping's size fits 64 bits"))?;
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rings_memory_cannot_be_made_shorter() {
        let memory = ring_memory().unwrap();
        assert_eq!(ftruncate(&memory, 0), Err(rustix::io::Errno::PERM));
        assert_eq!(ftruncate(&memory, 1 << 30), Err(rustix::io::Errno::PERM));
    }
}
