// SPDX-License-Identifier: Apache-2.0
//! What a node and a worker share, from the node's making it to its being handed over.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use netserv_model::UserId;
use netserv_model::limits::LANES_MAX;
use netserv_wire::container::frames::ToWorker;
use netserv_wire::container::ring::{HostEnd, MAPPING_BYTES, MAPPING_WORDS};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::clock::WorkerClock;
use super::container::Container;
use super::control::{ControlChannel, control_pair};
use super::process::Process;
use super::ring::{DetachedWorker, Headers, HostRing};
use super::scheduling::ScheduledThread;
use crate::error::ContainerError;
use crate::sys::SharedWords;

/// What a node and a worker share, both ends still in the node.
pub(crate) struct Shared {
    control: OwnedFd,
    their_control: OwnedFd,
    /// At least one, that of lane 0 first.
    lanes: Vec<SharedLane>,
}

/// What a worker and one lane share.
struct SharedLane {
    memory: OwnedFd,
    wake_worker: OwnedFd,
    wake_host: OwnedFd,
    /// The first page of the ring.
    header: Arc<SharedWords>,
    end: HostEnd<SharedWords>,
}

impl Shared {
    /// Makes it for so many lanes of the node, at least one and at most [`LANES_MAX`].
    pub(crate) fn new(lanes: usize) -> Result<Shared, ContainerError> {
        let (control, their_control) = control_pair().map_err(prepare("make the control socket"))?;
        let lanes = (0..lanes.clamp(1, LANES_MAX)).map(|_| SharedLane::new()).collect::<Result<Vec<_>, _>>()?;
        Ok(Shared { control, their_control, lanes })
    }

    /// What the worker gets, in the order of its descriptor numbers.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let SharedLane { memory, wake_worker, wake_host, .. } = &self.lanes[0];
        [&self.their_control, memory, wake_worker, wake_host].map(AsFd::as_fd).to_vec()
    }

    /// Hands it over to a process, which is told of lanes beyond the first by frames.
    pub(crate) fn into_container(
        self,
        user: UserId,
        process: Process,
        landlock: String,
    ) -> Result<Container, ContainerError> {
        let control = ControlChannel::new(self.control);
        for SharedLane { memory, wake_worker, wake_host, .. } in &self.lanes[1..] {
            let told = control.send(&ToWorker::Lane, &[memory, wake_worker, wake_host].map(AsFd::as_fd));
            told.map_err(|error| prepare("tell the worker of a lane")(io::Error::other(error)))?;
        }
        // The first thread of a Wasm worker is its packet thread.
        let shortened = ScheduledThread::first_of(process.pid()).and_then(|thread| thread.shorten_slice());
        if let Err(error) = shortened {
            tracing::debug!(%user, %error, "the worker's packet thread has slices as all programs do");
        }
        let clock = |lane| WorkerClock::new(process.pid(), lane);
        let rings =
            rings(self.lanes).into_iter().enumerate().map(|(lane, ring)| ring.with_clock(clock(lane))).collect();
        Ok(Container::new(user, control, rings, process, landlock))
    }

    /// Takes both sides apart: the node's control channel, the worker's socket, the node's rings, the worker's.
    pub(crate) fn into_ends(self) -> Result<Ends, ContainerError> {
        let step = prepare("map the ring");
        let map = |lane: &SharedLane| SharedWords::map(&lane.memory, MAPPING_WORDS).map_err(step);
        let clone = |fd: &OwnedFd| fd.try_clone().map_err(step);
        let worker = |lane: &SharedLane| {
            let memory = [map(lane)?, map(lane)?];
            Ok(DetachedWorker::new(memory, clone(&lane.wake_worker)?, clone(&lane.wake_host)?)?)
        };
        let workers = self.lanes.iter().map(worker).collect::<Result<Vec<_>, ContainerError>>()?;
        let rings = rings(self.lanes);
        Ok(Ends { control: ControlChannel::new(self.control), their_control: self.their_control, rings, workers })
    }
}

/// What a node and a worker share, taken apart; rings by lane.
pub(crate) struct Ends {
    pub(crate) control: ControlChannel,
    pub(crate) their_control: OwnedFd,
    pub(crate) rings: Vec<HostRing>,
    pub(crate) workers: Vec<DetachedWorker>,
}

impl SharedLane {
    fn new() -> Result<SharedLane, ContainerError> {
        let memory = ring_memory().map_err(prepare("make the ring's memory"))?;
        let words = SharedWords::map(&memory, MAPPING_WORDS).map_err(prepare("map the ring"))?;
        let header = SharedWords::map(&memory, HEADER_WORDS).map_err(prepare("map the ring's header"))?;
        // The worker looks for the layout as soon as it runs.
        let end = HostEnd::new(words)?;
        Ok(SharedLane { memory, wake_worker: wake()?, wake_host: wake()?, header: Arc::new(header), end })
    }
}

fn rings(lanes: Vec<SharedLane>) -> Vec<HostRing> {
    let first = Arc::clone(&lanes[0].header);
    let ring = |(lane, SharedLane { end, memory, wake_worker, wake_host, header })| {
        let headers = Headers { first: Arc::clone(&first), own: (lane > 0).then_some(header) };
        HostRing::new((end, memory), headers, wake_worker, wake_host)
    };
    lanes.into_iter().enumerate().map(ring).collect()
}

fn wake() -> Result<OwnedFd, ContainerError> {
    let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    made.map_err(|error| prepare("make an eventfd")(error.into()))
}

fn prepare(step: &'static str) -> impl Fn(io::Error) -> ContainerError + Copy {
    move |source| ContainerError::Prepare { step, source }
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
