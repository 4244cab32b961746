// SPDX-License-Identifier: Apache-2.0
//! What wakes the loop: containers, commands, packets.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netserv_container::HostRing;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use crate::limits::EVENTFDS_INTERVAL_MAX;
use crate::workers::{WorkerSlot, Workers};

/// The eventfds of all rings and of commands, and the driver, in one epoll instance; and all but the driver in another.
///
/// Eventfds are edge-triggered, so that nobody has to read them. One that was heard in the one instance is heard once more in the
/// other, which does no harm.
pub(crate) struct Eventfds {
    /// Keeps that of commands open.
    pub(crate) _commands: OwnedFd,
    events: OwnedFd,
    without_driver: OwnedFd,
    /// The driver cannot be waited for.
    is_blind: bool,
    /// Scratch space: the workers that wrote theirs.
    ready: Vec<WorkerSlot>,
    /// When the loop last looked at them.
    pub(crate) polled_at: Instant,
}

impl Eventfds {
    pub(crate) fn new(commands: OwnedFd, driver: Option<BorrowedFd<'_>>, now: Instant) -> rustix::io::Result<Eventfds> {
        let create = || epoll::create(epoll::CreateFlags::CLOEXEC);
        let (events, without_driver) = (create()?, create()?);
        for instance in [&events, &without_driver] {
            epoll::add(instance, &commands, COMMANDS, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        let is_blind = driver.is_none();
        if let Some(driver) = driver {
            epoll::add(&events, driver, DRIVER, epoll::EventFlags::IN)?;
        }
        Ok(Eventfds { _commands: commands, events, without_driver, is_blind, ready: Vec::new(), polled_at: now })
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

    /// Looks at the eventfds if [`EVENTFDS_INTERVAL_MAX`] has passed since the last look; returns what [`Eventfds::poll`] does.
    pub(crate) fn poll_if_due(&mut self, now: Instant, workers: &mut Workers) -> bool {
        now.duration_since(self.polled_at) >= EVENTFDS_INTERVAL_MAX && self.poll(now, Duration::ZERO, workers)
    }

    /// Activates up to [`READY_MAX`] workers that wrote their eventfds since the last call; the next call has the others. If nothing
    /// happened, waits for `wait` at most for a worker, a command or packets. Returns whether there are workers, or commands, and
    /// says so once.
    pub(crate) fn poll(&mut self, now: Instant, wait: Duration, workers: &mut Workers) -> bool {
        self.polled_at = now;
        let wait = if self.is_blind { wait.min(BLIND_WAIT_MAX) } else { wait };
        let any = take(&self.events, wait, &mut self.ready);
        any | self.activate_ready(workers)
    }

    /// The same, but packets do not end the wait, which may be shorter than a millisecond.
    pub(crate) fn poll_without_driver(&mut self, wait: Duration, workers: &mut Workers) {
        // epoll_wait(2) counts in milliseconds.
        let mut events = [PollFd::new(&self.without_driver, PollFlags::IN)];
        if poll(&mut events, Some(&timespec(wait))).is_ok_and(|ready| ready > 0) {
            take(&self.without_driver, Duration::ZERO, &mut self.ready);
            self.activate_ready(workers);
        }
    }

    fn activate_ready(&mut self, workers: &mut Workers) -> bool {
        let mut any = false;
        for slot in self.ready.drain(..) {
            any |= workers.end(slot).is_some() && workers.activate(slot);
        }
        any
    }
}

/// Puts the workers whose eventfds an instance has into `ready`; returns whether there are commands.
fn take(instance: &OwnedFd, wait: Duration, ready: &mut Vec<WorkerSlot>) -> bool {
    let wait = timespec(wait);
    let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: DRIVER }; READY_MAX];
    // An interrupted call means no more than that the loop looks again.
    let count = epoll::wait(instance, &mut events, Some(&wait)).unwrap_or(0);
    ready.extend(events[..count].iter().filter_map(|event| WorkerSlot::try_from(event.data.u64()).ok()));
    events[..count].iter().any(|event| event.data.u64() == COMMANDS.u64())
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
