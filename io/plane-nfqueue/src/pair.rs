// SPDX-License-Identifier: Apache-2.0
//! Two queues that differ in what becomes of packets while they are full: modules that fail open have the one, those that
//! fail closed the other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use netserv_plane::{Batch, Counters, DriverError, PacketId};
use rustix::event::epoll;

use super::queue::{self, Queue, QueueConfig};
use super::window::Outcome;
use crate::rules::{QueueNumbers, QueueRow};

/// The two queues of one lane.
pub(super) struct QueuePair {
    open: Queue,
    closed: Queue,
    /// Whether there ever was a rule that leads to the closed queue.
    is_closed_used: Arc<AtomicBool>,
    /// Whether the closed queue is looked at first, which alternates.
    closed_first: bool,
    events: OwnedFd,
}

impl QueuePair {
    /// Takes free queues for so many pairs, and returns them with the numbers for rules.
    pub fn open_row(config: QueueConfig, pairs: u16) -> Result<(Vec<QueuePair>, QueueNumbers), DriverError> {
        let is_closed_used = Arc::new(AtomicBool::new(false));
        let open = Queue::open_row(config, pairs)?;
        let closed = Queue::open_row(QueueConfig { tag: config.tag | 1, fail_open: false, ..config }, pairs)?;
        let row = |queues: &[Queue]| QueueRow { first: queues[0].number(), count: pairs };
        let (row_open, row_closed) = (row(&open), row(&closed));
        let pair = |(open, closed)| QueuePair::new(open, closed, Arc::clone(&is_closed_used));
        let made = open.into_iter().zip(closed).map(pair).collect::<Result<_, _>>()?;
        Ok((made, QueueNumbers { open: row_open, closed: row_closed, is_closed_used }))
    }

    fn new(open: Queue, closed: Queue, is_closed_used: Arc<AtomicBool>) -> Result<QueuePair, DriverError> {
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(no_epoll)?;
        for queue in [&open, &closed] {
            epoll::add(&events, queue, epoll::EventData::new_u64(0), epoll::EventFlags::IN).map_err(no_epoll)?;
        }
        Ok(QueuePair { open, closed, is_closed_used, closed_first: false, events })
    }

    /// Returns the queues' numbers: for modules that fail open, and for those that fail closed.
    pub fn numbers(&self) -> [u16; 2] {
        [self.open.number(), self.closed.number()]
    }

    /// Fills the batch from one of the queues, as [`Driver::receive`](netserv_plane::Driver::receive) says.
    pub fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        if !self.is_closed_used.load(Ordering::Relaxed) && timeout == Some(Duration::ZERO) {
            return self.open.receive(batch);
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            self.closed_first = !self.closed_first;
            for closed in [self.closed_first, !self.closed_first] {
                let queue = if closed { &mut self.closed } else { &mut self.open };
                if queue.receive(batch)? > 0 {
                    return Ok(batch.len());
                }
            }
            if !queue::wait(&self.events, deadline)? {
                return Ok(0);
            }
        }
    }

    /// Returns the source and destination that a packet came with; `None` if it is not owed a verdict.
    pub fn addresses(&self, packet: PacketId) -> Option<Option<(std::net::IpAddr, std::net::IpAddr)>> {
        self.open.addresses(packet).or_else(|| self.closed.addresses(packet))
    }

    /// Queues a verdict; false if the packet is not owed one.
    pub fn decide(&mut self, packet: PacketId, outcome: Outcome<'_>) -> bool {
        if self.closed.has_tag(packet) {
            self.closed.decide(packet, outcome)
        } else {
            self.open.decide(packet, outcome)
        }
    }

    /// Sends the queued verdicts.
    pub fn flush(&mut self) -> Result<(), DriverError> {
        self.open.flush().and(self.closed.flush())
    }

    /// Returns what both did so far.
    pub fn counters(&self) -> Counters {
        self.open.counters() + self.closed.counters()
    }
}

impl AsFd for QueuePair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

fn no_epoll(error: rustix::io::Errno) -> DriverError {
    DriverError::system("waiting for two netfilter queues at a time", error)
}
