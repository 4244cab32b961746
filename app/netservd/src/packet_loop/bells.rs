// SPDX-License-Identifier: Apache-2.0
//! The eventfds by which containers wake the loop, waited for together.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netserv_container::HostRing;
use rustix::event::{Timespec, epoll};

use super::seats::SeatId;

/// The eventfds of all rings, in one epoll instance.
///
/// They are watched for writes, not for what they hold, so that nobody has to read them.
pub(super) struct Bells {
    events: OwnedFd,
}

impl Bells {
    pub(super) fn new() -> rustix::io::Result<Bells> {
        Ok(Bells { events: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Waits for a ring's eventfd, too.
    pub(super) fn add(&self, seat: SeatId, ring: &HostRing) -> rustix::io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.events, ring, epoll::EventData::new_u64(seat.into()), flags)
    }

    /// Waits for it no longer. The worker has the same eventfd, so that closing it here would not be enough.
    pub(super) fn remove(&self, ring: &HostRing) {
        // One that could not be added is not there.
        let _ = epoll::delete(&self.events, ring);
    }

    /// Puts the containers that rang since the last time into `rung`, in the place of what is there, or some of them: the
    /// others come the next time.
    pub(super) fn take(&self, rung: &mut Vec<SeatId>) {
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; RUNG_MAX];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An interrupted call means no more than that the loop looks again.
        let count = epoll::wait(&self.events, &mut events, Some(&now)).unwrap_or(0);
        rung.clear();
        rung.extend(events[..count].iter().filter_map(|event| SeatId::try_from(event.data.u64()).ok()));
    }
}

impl AsFd for Bells {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// Containers that are heard at a time.
const RUNG_MAX: usize = 64;
