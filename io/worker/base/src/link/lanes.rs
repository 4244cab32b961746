// SPDX-License-Identifier: Apache-2.0
//! The rings of a worker, one for each lane of the node, in the hands of a packet thread.
//!
//! The thread serves those that it has in turn, a batch of each. What it says that it is doing stands in the first of them:
//! that of lane 0, where the watchdogs of all lanes look, or the only one of a thread that has one.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use netserv_model::effect::ModuleSlot;
use netserv_wire::container::ring::{Arrival, HOST_SLOTS, RingError, SLOTS, WorkerEnd};
use rustix::event::{PollFd, PollFlags};

use super::birth::HostWaker;
use super::ring_memory::RingMemory;
use crate::error::ServeError;
use crate::wakeup::Wakeup;

/// The rings of a worker, by lane.
pub struct Lanes {
    lanes: Vec<Lane>,
    /// The lane whose packets are at work; lane 0 while none are.
    at: usize,
}

struct Lane {
    ring: WorkerEnd<&'static [AtomicU64]>,
    wake_worker: Arc<Wakeup>,
    wake_host: HostWaker,
}

impl Lanes {
    /// Takes the ring of lane 0.
    ///
    /// # Errors
    /// [`RingError`] if the node did not lay it out.
    pub fn new(ring: &'static [AtomicU64], wake_worker: Wakeup, wake_host: HostWaker) -> Result<Lanes, RingError> {
        let lane = Lane { ring: WorkerEnd::new(ring)?, wake_worker: Arc::new(wake_worker), wake_host };
        Ok(Lanes { lanes: vec![lane], at: 0 })
    }

    /// Takes a further lane, of which the node gave the ring's memory, and the eventfds by which the lane wakes the worker and
    /// the worker wakes the lane.
    ///
    /// # Errors
    /// [`ServeError`] if these are not what the node gave, it did not lay the ring out, there are
    /// [`LANES_MAX`](netserv_model::limits::LANES_MAX) lanes, or the kernel does not map it.
    pub fn add(&mut self, rings: &mut RingMemory, descriptors: Vec<OwnedFd>) -> Result<(), ServeError> {
        let three = <[OwnedFd; 3]>::try_from(descriptors);
        let missing = |_| ServeError::Broken("a lane came without its ring".to_owned());
        let [memory, wake_worker, wake_host] = three.map_err(missing)?;
        let ring = rings.add(memory).map_err(|error| ServeError::Io("mmap", error))?;
        let wake_worker = Arc::new(Wakeup::from(wake_worker));
        self.lanes.push(Lane { ring: WorkerEnd::new(ring)?, wake_worker, wake_host: HostWaker::from(wake_host) });
        Ok(())
    }

    /// Takes all lanes but the first away, each for a thread of its own.
    pub fn split(&mut self) -> Vec<Lanes> {
        self.at = 0;
        self.lanes.drain(1..).map(|lane| Lanes { lanes: vec![lane], at: 0 }).collect()
    }

    /// Takes lanes back, behind those that are there.
    pub fn join(&mut self, lanes: Lanes) {
        self.lanes.extend(lanes.lanes);
    }

    /// Returns what wakes the thread that has each of these lanes.
    pub fn wakeups(&self) -> impl Iterator<Item = &Arc<Wakeup>> {
        self.lanes.iter().map(|lane| &lane.wake_worker)
    }

    /// Adds what the lanes wake this thread by to what it waits for.
    pub fn listen<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        fds.extend(self.lanes.iter().map(|lane| PollFd::new(&*lane.wake_worker, PollFlags::IN)));
    }

    /// Returns which lanes woke this thread, as bits, from what [`Lanes::listen`] added.
    pub fn woken(fds: &[PollFd<'_>]) -> u32 {
        let woken = fds.iter().enumerate().filter(|(_, fd)| fd.revents().contains(PollFlags::IN));
        woken.fold(0, |bits, (lane, _)| bits | 1 << lane)
    }

    /// Takes note that lanes woke this thread.
    ///
    /// # Errors
    /// An eventfd cannot be read.
    pub fn clear(&self, woken: u32) -> Result<(), ServeError> {
        let mut lanes = self.lanes.iter().enumerate().filter(|(lane, _)| woken & 1 << lane != 0);
        lanes.try_for_each(|(_, lane)| lane.wake_worker.clear())
    }

    /// Returns how many lanes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Returns whether there is no lane, which never is so.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Returns how many packets the lanes can have under way together.
    pub fn packets_max(&self) -> usize {
        self.lanes.len() * HOST_SLOTS
    }

    /// Has the packets of a lane be at work from here on.
    ///
    /// # Panics
    /// If there is no such lane.
    #[inline]
    pub fn turn_to(&mut self, lane: usize) {
        assert!(lane < self.lanes.len(), "a lane that there is");
        self.at = lane;
    }

    /// Returns the ring of the lane whose packets are at work.
    #[inline]
    pub fn ring(&self) -> &WorkerEnd<&'static [AtomicU64]> {
        &self.lanes[self.at].ring
    }

    /// Returns the ring of the lane whose packets are at work, to be changed.
    #[inline]
    pub fn ring_mut(&mut self) -> &mut WorkerEnd<&'static [AtomicU64]> {
        &mut self.lanes[self.at].ring
    }

    /// Returns the number of the slot that a packet of the lane at work lies in, among the slots of all lanes.
    #[inline]
    pub fn slot(&self, arrival: &Arrival) -> usize {
        self.at * SLOTS + arrival.slot()
    }

    /// Says that `module` runs from here on.
    #[inline]
    pub fn enter(&mut self, module: ModuleSlot) {
        self.lanes[0].ring.enter(module);
    }

    /// Says that no module runs.
    #[inline]
    pub fn leave(&mut self) {
        self.lanes[0].ring.leave();
    }

    /// Lets the lane at work see what there is for it, and wakes it if it sleeps, late with `more` to come.
    ///
    /// # Errors
    /// Its eventfd cannot be written.
    #[inline]
    pub fn publish_one(&mut self, more: bool) -> Result<(), ServeError> {
        let Lane { ring, wake_host, .. } = &mut self.lanes[self.at];
        wake_host.wake(ring.publish(), more)
    }

    /// Lets all lanes see what there is for them, and wakes those that sleep, late with `more` to come.
    ///
    /// # Errors
    /// An eventfd cannot be written.
    #[inline]
    pub fn publish(&mut self, more: bool) -> Result<(), ServeError> {
        self.lanes.iter_mut().try_for_each(|Lane { ring, wake_host, .. }| wake_host.wake(ring.publish(), more))
    }

    /// Says that the worker will wait for its eventfd. Returns false, and takes it back, if a lane has something first.
    pub fn prepare_sleep(&mut self) -> bool {
        let nothing = self.lanes.iter_mut().all(|lane| lane.ring.prepare_sleep());
        if !nothing {
            self.cancel_sleep();
        }
        nothing
    }

    /// Says that the worker is awake again.
    pub fn cancel_sleep(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.ring.cancel_sleep());
    }

    /// Returns whether a lane lets the worker look for packets again and again before it sleeps.
    #[inline]
    pub fn may_spin(&self) -> bool {
        self.lanes.iter().any(|lane| lane.ring.may_spin())
    }

    /// Returns whether a lane has something.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.lanes.iter().any(|lane| lane.ring.has_more())
    }
}
