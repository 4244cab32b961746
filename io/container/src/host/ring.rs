// SPDX-License-Identifier: Apache-2.0
//! A worker's packet ring in the hands of the packet thread of a lane.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use netserv_wire::container::ring::{
    Activity, HostEnd, Ingress, Outstanding, Returned, RingError, WorkerEnd, activity,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, fallocate};

use super::clock::{WorkerClock, WorkerThread};
use super::scheduling::ScheduledThread;
use crate::sys::SharedWords;

/// The node's end of a ring, with the eventfds. Its descriptor becomes readable when the worker wakes the node.
///
/// A packet thread's round: [`push`](HostRing::push) what came in, [`pop`](HostRing::pop) until nothing is there,
/// [`wake`](HostRing::wake). Before it waits: [`prepare_sleep`](HostRing::prepare_sleep); after it waited:
/// [`awake`](HostRing::awake).
#[derive(Debug)]
pub struct HostRing {
    end: HostEnd<SharedWords>,
    memory: OwnedFd,
    wake_worker: OwnedFd,
    wake_host: OwnedFd,
    /// The worker sleeps, and there is something for it.
    to_be_woken: bool,
    headers: Headers,
    clock: Option<WorkerClock>,
    thread: Option<ScheduledThread>,
}

impl HostRing {
    pub(crate) fn new(
        (end, memory): (HostEnd<SharedWords>, OwnedFd),
        headers: Headers,
        wake_worker: OwnedFd,
        wake_host: OwnedFd,
    ) -> HostRing {
        HostRing { end, memory, wake_worker, wake_host, to_be_woken: false, headers, clock: None, thread: None }
    }

    pub(crate) fn with_clock(self, clock: WorkerClock) -> HostRing {
        HostRing { clock: Some(clock), ..self }
    }

    /// Takes the clock of the worker's packet threads; `None` for a ring without a container.
    pub fn take_clock(&mut self) -> Option<WorkerClock> {
        self.clock.take()
    }

    pub(crate) fn has_thread(&self) -> bool {
        self.thread.is_some()
    }

    pub(crate) fn set_thread(&mut self, thread: ScheduledThread) {
        self.thread = Some(thread);
    }

    /// Takes the worker's first packet thread, which the ring of lane 0 has; `None` where it may not be in the real-time class.
    pub fn take_thread(&mut self) -> Option<ScheduledThread> {
        self.thread.take()
    }

    /// Stages a packet for the modules whose bits are set; [`HostRing::wake`] lets the worker see it. The cookie comes
    /// back with the answer from the node's own table, whatever the worker writes.
    ///
    /// # Errors
    /// [`RingError::Full`] if all slots are under way, [`RingError::BadPacket`] if it fits no slot; any other means
    /// that the container must go ([`RingError::is_fatal`]).
    pub fn push(&mut self, packet: &[u8], modules: u64, cookie: u64) -> Result<(), RingError> {
        self.push_from(packet, Ingress::default(), modules, cookie)
    }

    /// Stages a packet, and says where and when it came in.
    ///
    /// # Errors
    /// As [`HostRing::push`].
    pub fn push_from(&mut self, packet: &[u8], ingress: Ingress, modules: u64, cookie: u64) -> Result<(), RingError> {
        self.end.push(packet, ingress, modules, cookie)
    }

    /// Takes the next answer or injected packet. Its bytes are a copy that the worker cannot reach.
    ///
    /// # Errors
    /// A fatal [`RingError`] if the worker broke the rules: kill the container, then
    /// [`take_outstanding`](HostRing::take_outstanding).
    pub fn pop(&mut self) -> Result<Option<Returned<'_>>, RingError> {
        self.end.pop()
    }

    /// Lets the worker see what was staged, but leaves it asleep if it sleeps; returns whether it does, and has to be woken by
    /// [`HostRing::wake`].
    pub fn publish(&mut self) -> bool {
        self.to_be_woken |= self.end.publish();
        self.to_be_woken
    }

    /// Lets the worker see what was staged, and wakes it if it sleeps; returns whether it did.
    pub fn wake(&mut self) -> bool {
        self.publish();
        let sleeps = std::mem::take(&mut self.to_be_woken);
        if sleeps {
            // It fails only if the counter is full, and then the worker is awake.
            let _ = rustix::io::write(&self.wake_worker, &1_u64.to_ne_bytes());
        }
        sleeps
    }

    /// Says that the node will wait for the descriptor. Returns false if there is something to pop first.
    pub fn prepare_sleep(&mut self) -> bool {
        self.end.prepare_sleep()
    }

    /// Says that the node waits no longer, where the descriptor did not become readable.
    pub fn cancel_sleep(&mut self) {
        self.end.cancel_sleep();
    }

    /// Says that the node waits no longer, and makes the descriptor unreadable again.
    pub fn awake(&mut self) {
        self.cancel_sleep();
        let _ = rustix::io::read(&self.wake_host, &mut [0; 8][..]);
    }

    /// Says whether the worker may look for packets again and again before it sleeps.
    pub fn let_spin(&mut self, may: bool) {
        self.end.let_spin(may);
    }

    /// Returns what the worker says that it is doing, for the watchdog, and on which of its threads: that of this lane while
    /// that is in a module, or else the first, which may serve all lanes.
    pub fn activity(&self) -> (WorkerThread, Activity) {
        self.headers.activity()
    }

    /// Returns what tells the same as [`HostRing::activity`] wherever the ring itself is, also when the worker is dead:
    /// what it said last.
    pub fn activity_probe(&self) -> impl Fn() -> Activity + Send + Sync + 'static {
        let headers = self.headers.clone();
        move || headers.activity().1
    }

    /// Returns how many packets the worker holds.
    pub fn outstanding(&self) -> usize {
        self.end.outstanding()
    }

    /// Gives the system back the memory of slots that were not used since the last call; returns whether there were any.
    pub fn give_back(&mut self) -> bool {
        let page = rustix::param::page_size();
        let resting = self.end.resting();
        for range in &resting {
            let (from, to) = (range.start.next_multiple_of(page), range.end / page * page);
            if let (Ok(from), Some(length)) =
                (u64::try_from(from), to.checked_sub(from).and_then(|n| u64::try_from(n).ok()))
                && length > 0
            {
                // What is not given back stays, and that is all.
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let _ = fallocate(&self.memory, hole, from, length);
            }
        }
        !resting.is_empty()
    }

    /// Takes every packet that was never answered, and refuses all further work. First pop what a dead worker did
    /// answer.
    pub fn take_outstanding(&mut self) -> Vec<Outstanding> {
        self.end.take_outstanding()
    }
}

impl AsFd for HostRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_host.as_fd()
    }
}

/// Mappings of their own of the first pages of rings, where a worker says what it is doing.
#[derive(Clone, Debug)]
pub(crate) struct Headers {
    /// That of lane 0, where the worker's first thread does.
    pub(crate) first: Arc<SharedWords>,
    /// That of this lane, if it is another one.
    pub(crate) own: Option<Arc<SharedWords>>,
}

impl Headers {
    fn activity(&self) -> (WorkerThread, Activity) {
        let own = self.own.as_ref().map(|own| activity(own.as_ref().as_ref()));
        match own.filter(|own| own.module.is_some()) {
            Some(own) => (WorkerThread::OfLane, own),
            None => (WorkerThread::First, activity(self.first.as_ref().as_ref())),
        }
    }
}

/// What a worker would hold of a ring that [`HostRing::detached`] or [`HostRing::detached_lanes`] made.
#[derive(Debug)]
pub struct DetachedWorker {
    end: WorkerEnd<SharedWords>,
    memory: SharedWords,
    wake_worker: OwnedFd,
    wake_host: OwnedFd,
}

impl DetachedWorker {
    pub(crate) fn new(
        memory: [SharedWords; 2],
        wake_worker: OwnedFd,
        wake_host: OwnedFd,
    ) -> Result<DetachedWorker, RingError> {
        let [theirs, memory] = memory;
        Ok(DetachedWorker { end: WorkerEnd::new(theirs)?, memory, wake_worker, wake_host })
    }

    /// Returns whether the node has woken the worker since this was last asked.
    pub fn was_woken(&self) -> bool {
        let mut fds = [PollFd::new(&self.wake_worker, PollFlags::IN)];
        let woken = poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        woken && rustix::io::read(&self.wake_worker, &mut [0; 8][..]).is_ok()
    }

    /// Returns the worker's end of the ring.
    pub fn end(&mut self) -> &mut WorkerEnd<impl AsRef<[AtomicU64]>> {
        &mut self.end
    }

    /// Lets the node see what was staged, and wakes it if it sleeps.
    pub fn wake(&mut self) {
        if self.end.publish() {
            // It fails only if the counter is full, and then the node is awake.
            let _ = rustix::io::write(&self.wake_host, &1_u64.to_ne_bytes());
        }
    }

    /// Returns the shared memory, to break the rules with.
    pub fn memory(&self) -> &[AtomicU64] {
        self.memory.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use netserv_wire::container::ring::{Answer, HOST_SLOTS, SLOT_BYTES, SLOTS_KEPT, SLOTS_OFFSET};
    use rustix::fs::fstat;

    use super::*;

    #[test]
    fn the_memory_of_a_burst_is_given_back_and_slots_can_be_used_again() {
        let (mut ring, mut worker) = HostRing::detached().unwrap();
        let mut burst = |ring: &mut HostRing, packets: usize| {
            for _ in 0..packets {
                ring.push(&[0x45; 1500], 1, 7).unwrap();
            }
            ring.publish();
            while let Some(arrival) = worker.end().pop().unwrap() {
                worker.end().answer(arrival, Answer::Modified, None).unwrap();
            }
            worker.wake();
            while let Some(returned) = ring.pop().unwrap() {
                assert!(matches!(returned, Returned::Answer { bytes, .. } if bytes == [0x45; 1500]));
            }
        };
        let resident = |ring: &HostRing| usize::try_from(fstat(&ring.memory).unwrap().st_blocks).unwrap() * 512;
        for _ in 0..3 {
            burst(&mut ring, HOST_SLOTS);
            assert!(!ring.give_back() && resident(&ring) >= HOST_SLOTS * SLOT_BYTES);
            burst(&mut ring, 1);
            assert!(ring.give_back());
            assert!(resident(&ring) <= SLOTS_OFFSET + SLOTS_KEPT * SLOT_BYTES, "{}", resident(&ring));
            assert!(!ring.give_back());
        }
    }
}
