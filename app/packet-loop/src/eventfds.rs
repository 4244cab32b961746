// SPDX-License-Identifier: Apache-2.0
//! What wakes the loop: containers, commands, packets.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use netserv_container::HostRing;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use crate::workers::WorkerSlot;

/// The eventfds of all rings and of commands, and the driver, in one epoll instance; and all but the driver in another.
///
/// Eventfds are edge-triggered, so that nobody has to read them. One that was heard in the one instance is heard once more in the
/// other, which does no harm.
pub(crate) struct Eventfds {
    events: OwnedFd,
    without_driver: OwnedFd,
    /// The driver cannot be waited for.
    is_blind: bool,
}

impl Eventfds {
    pub(crate) fn new(commands: &OwnedFd, driver: Option<BorrowedFd<'_>>) -> rustix::io::Result<Eventfds> {
        let create = || epoll::create(epoll::CreateFlags::CLOEXEC);
        let (events, without_driver) = (create()?, create()?);
        for instance in [&events, &without_driver] {
            epoll::add(instance, commands, COMMANDS, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        let is_blind = driver.is_none();
        if let Some(driver) = driver {
            epoll::add(&events, driver, DRIVER, epoll::EventFlags::IN)?;
        }
        Ok(Eventfds { events, without_driver, is_blind })
    }

    /// Adds a ring's eventfd.
    pub(crate) fn add(&self, worker: WorkerSlot, ring: &HostRing) -> rustix::io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let worker = epoll::EventData::new_u64(worker.into());
        epoll::add(&self.events, ring, worker, flags)?;
        epoll::add(&self.without_driver, ring, worker, flags)
    }

    /// Removes a ring's eventfd. Closing it would not be enough: the worker has the same one.
    pub(crate) fn remove(&self, ring: &HostRing) {
        // An eventfd that could not be added is not there.
        let _ = epoll::delete(&self.events, ring);
        let _ = epoll::delete(&self.without_driver, ring);
    }

    /// Puts up to [`READY_MAX`] containers that rang since the last call into `ready`, in the place of what is there; the
    /// next call has the others. If nothing happened, waits for `wait` at most. Returns whether there are commands, and
    /// says so once.
    pub(crate) fn take(&self, wait: Duration, ready: &mut Vec<WorkerSlot>) -> bool {
        self.take_of(&self.events, if self.is_blind { wait.min(BLIND_WAIT_MAX) } else { wait }, ready)
    }

    /// The same, but packets do not end the wait, which may be shorter than a millisecond.
    pub(crate) fn take_without_driver(&self, wait: Duration, ready: &mut Vec<WorkerSlot>) -> bool {
        // epoll_wait(2) counts in milliseconds.
        let mut events = [PollFd::new(&self.without_driver, PollFlags::IN)];
        let is_rung = poll(&mut events, Some(&timespec(wait))).is_ok_and(|ready| ready > 0);
        ready.clear();
        is_rung && self.take_of(&self.without_driver, Duration::ZERO, ready)
    }

    fn take_of(&self, instance: &OwnedFd, wait: Duration, ready: &mut Vec<WorkerSlot>) -> bool {
        let wait = timespec(wait);
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: DRIVER }; READY_MAX];
        // An interrupted call means no more than that the loop looks again.
        let count = epoll::wait(instance, &mut events, Some(&wait)).unwrap_or(0);
        ready.clear();
        ready.extend(events[..count].iter().filter_map(|event| WorkerSlot::try_from(event.data.u64()).ok()));
        events[..count].iter().any(|event| event.data.u64() == COMMANDS.u64())
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(1), tv_nsec: i64::from(time.subsec_nanos()) }
}

/// How long the loop sleeps at most with a driver that cannot be waited for.
const BLIND_WAIT_MAX: Duration = Duration::from_millis(1);
/// Numbers that are no slot, which has 32 bits.
const COMMANDS: epoll::EventData = epoll::EventData::new_u64(u64::MAX);
const DRIVER: epoll::EventData = epoll::EventData::new_u64(u64::MAX - 1);
/// Containers that one call returns.
const READY_MAX: usize = 64;
