// SPDX-License-Identifier: Apache-2.0
//! What a worker is born with: the control socket, the packet ring of lane 0, and the eventfds of both sides.

use std::os::fd::OwnedFd;
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::container::{CONTROL_FD, RING_FD, WAKE_HOST_FD, WAKE_WORKER_FD};

use super::control::Control;
use super::ring_memory::RingMemory;
use crate::clock;
use crate::error::ServeError;
use crate::sys;
use crate::wakeup::Wakeup;

/// How long a sleeping node may wait for the answers of a batch while there are more packets.
const WAKE_DELAY_MAX: Duration = Duration::from_micros(50);

/// The descriptors that a node gives to a worker.
pub struct Birth {
    /// The control socket.
    pub control: Control,
    /// The packet ring of lane 0.
    pub memory: RingMemory,
    /// What lane 0 of the node wakes the worker by.
    pub wake_worker: Wakeup,
    /// What wakes lane 0 of the node.
    pub wake_host: HostWaker,
}

impl Birth {
    /// Takes the descriptors; once in a process.
    ///
    /// # Errors
    /// [`ServeError::NotInherited`] if the process was not started as the worker of a container.
    pub fn take() -> Result<Birth, ServeError> {
        let inherited = |number| sys::inherited(number).map_err(|error| ServeError::NotInherited(number, error));
        let control = Control::new(inherited(CONTROL_FD)?);
        let memory = inherited(RING_FD)?;
        let wake_worker = Wakeup::from(inherited(WAKE_WORKER_FD)?);
        let wake_host = HostWaker::from(inherited(WAKE_HOST_FD)?);
        let memory = RingMemory::open(memory).map_err(|error| ServeError::NotInherited(RING_FD, error))?;
        Ok(Birth { control, memory, wake_worker, wake_host })
    }
}

/// What wakes a lane of the node, late while there is more to come.
#[derive(Debug)]
pub struct HostWaker {
    eventfd: OwnedFd,
    /// Since when a node that sleeps has something to look at.
    asleep_since: Option<Instant>,
}

impl From<OwnedFd> for HostWaker {
    fn from(eventfd: OwnedFd) -> HostWaker {
        HostWaker { eventfd, asleep_since: None }
    }
}

impl HostWaker {
    /// Wakes the node if it sleeps, of which `sleeps` is new word. With `more` to come it is left asleep for a while:
    /// waking it costs as much as many packets, and more where it takes this process's core.
    ///
    /// # Errors
    /// The eventfd cannot be written.
    #[inline]
    pub fn wake(&mut self, sleeps: bool, more: bool) -> Result<(), ServeError> {
        if sleeps {
            self.asleep_since.get_or_insert_with(clock::monotonic);
        }
        let Some(since) = self.asleep_since else { return Ok(()) };
        if more && clock::monotonic().since(since) < WAKE_DELAY_MAX {
            return Ok(());
        }
        self.asleep_since = None;
        let written = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        written.map(drop).map_err(|error| ServeError::Io("write", error.into()))
    }
}
