// SPDX-License-Identifier: Apache-2.0
//! The rounds of a packet thread: batches from the rings of its lanes, through its modules.

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_model::{Instant, Refusal};
use netserv_wire::container::ring::{Arrival, Ingress};
use netserv_worker_base::clock;
use netserv_worker_base::error::ServeError;
use netserv_worker_base::link::lanes::Lanes;
use netserv_worker_base::shared::log::Line;
use netserv_worker_packet::chain::{Chain, Outcome, PacketBatch, Surroundings};
use netserv_worker_packet::host::{Clock, Host};
use rustix::event::{PollFd, PollFlags, Timespec};

/// How often a worker that need not sleep looks for packets until it looks at the control socket and its timers.
const SPINS_BETWEEN_CONTROL: u32 = 64;

/// The modules of a packet thread, and what they are run on.
pub struct Rounds {
    /// What they are run on.
    pub around: Around,
    /// The modules.
    pub chain: Chain,
    outcomes: Vec<Outcome>,
}

/// What modules are run on: rings, with a batch from one of them.
pub struct Around {
    /// The rings.
    pub lanes: Lanes,
    arrivals: Vec<Arrival>,
    /// Modules that failed since this was last looked at.
    pub failed: Vec<Failure>,
}

/// A module that failed.
pub struct Failure {
    /// Its place.
    pub slot: ModuleSlot,
    /// Why.
    pub refusal: Refusal,
    /// The last lines of its log.
    pub lines: Vec<Line>,
}

impl Rounds {
    /// Returns the rounds of a thread that has these rings and modules.
    pub fn new(lanes: Lanes, chain: Chain) -> Rounds {
        let around = Around { lanes, arrivals: Vec::new(), failed: Vec::new() };
        Rounds { around, chain, outcomes: Vec::new() }
    }

    /// Runs one batch from each ring. Returns the length of all of them.
    ///
    /// # Errors
    /// The node broke the rules of a ring.
    pub fn packets(&mut self) -> Result<usize, ServeError> {
        let mut count = 0;
        for lane in (0..self.around.lanes.len()).rev() {
            // What modules make outside of batches leaves by lane 0, which is the last.
            self.around.lanes.turn_to(lane);
            self.chain.turn_to(lane);
            count += self.batch()?;
        }
        Ok(count)
    }

    /// Runs one batch of the lane whose turn it is. Returns its length.
    fn batch(&mut self) -> Result<usize, ServeError> {
        while self.around.arrivals.len() < BATCH_PACKETS_MAX
            && let Some(arrival) = self.around.lanes.ring_mut().pop()?
        {
            self.around.arrivals.push(arrival);
        }
        let count = self.around.arrivals.len();
        if count > 0 {
            self.chain.process(&mut self.around, &mut self.outcomes);
            for (arrival, outcome) in self.around.arrivals.drain(..).zip(&self.outcomes) {
                self.around.lanes.ring_mut().answer(arrival, outcome.answer, outcome.module)?;
            }
        }
        self.around.lanes.publish_one(count == BATCH_PACKETS_MAX)?;
        Ok(count)
    }

    /// Answers the packets that are under way.
    ///
    /// # Errors
    /// The node broke the rules of a ring.
    pub fn drain(&mut self) -> Result<(), ServeError> {
        let mut answered = 0;
        while answered < self.around.lanes.packets_max() {
            match self.packets()? {
                0 => break,
                count => answered += count,
            }
        }
        Ok(())
    }

    /// Calls the timers that are due.
    pub fn timers(&mut self) {
        if let Some(due) = self.chain.poll_timeout() {
            let now = Clock::System.instant();
            if due <= now {
                self.chain.handle_timeout(now, &mut self.around);
            }
        }
    }

    /// Looks for packets for a while, as long as the node lets it, while others may have the core; returns whether some came.
    pub fn spin(&self) -> bool {
        let may = |_: &u32| self.around.lanes.may_spin();
        (0..SPINS_BETWEEN_CONTROL).take_while(may).any(|_| {
            rustix::thread::sched_yield();
            self.around.lanes.has_more()
        })
    }

    /// Waits for packets, for what `others` are ready with, and until `due`; only looks if `busy`. Returns what `others` are
    /// ready with.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn wait<const N: usize>(
        &mut self,
        busy: bool,
        others: [PollFd<'_>; N],
        due: Option<Instant>,
    ) -> Result<[PollFlags; N], ServeError> {
        let lanes = &mut self.around.lanes;
        let sleep = !busy && !lanes.may_spin() && lanes.prepare_sleep();
        let timeout = if sleep { due.map(clock::until) } else { Some(Timespec { tv_sec: 0, tv_nsec: 0 }) };
        let mut fds = Vec::from(others);
        lanes.listen(&mut fds);
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ServeError::Io("poll", error.into())),
        }
        let ready = std::array::from_fn(|other| fds[other].revents());
        let woken = Lanes::woken(&fds[N..]);
        if sleep {
            lanes.cancel_sleep();
        }
        lanes.clear(woken)?;
        Ok(ready)
    }
}

impl PacketBatch for Around {
    fn len(&self) -> usize {
        self.arrivals.len()
    }

    fn length(&self, index: usize) -> usize {
        self.arrivals[index].length()
    }

    fn modules(&self, index: usize) -> u64 {
        self.arrivals[index].modules
    }

    fn ingress(&self, index: usize) -> Ingress {
        self.arrivals[index].ingress
    }

    fn read(&self, index: usize, into: &mut [u8]) {
        self.lanes.ring().read(&self.arrivals[index], into);
    }

    fn write(&mut self, index: usize, packet: &[u8]) {
        let written = self.lanes.ring_mut().write(&mut self.arrivals[index], packet);
        debug_assert!(written.is_ok(), "the instance checked the length");
    }

    fn slot(&self, index: usize) -> usize {
        self.lanes.slot(&self.arrivals[index])
    }

    fn resize(&mut self, index: usize, length: usize) {
        let resized = self.lanes.ring_mut().resize(&mut self.arrivals[index], length);
        debug_assert!(resized.is_ok(), "the instance checked the length");
    }
}

impl Surroundings for Around {
    fn enter(&mut self, slot: ModuleSlot) {
        self.lanes.enter(slot);
    }

    fn leave(&mut self) {
        self.lanes.leave();
    }

    fn inject(&mut self, slot: ModuleSlot, packet: &[u8]) -> bool {
        self.lanes.ring_mut().inject(packet, slot).is_ok()
    }

    fn failed(&mut self, slot: ModuleSlot, refusal: Refusal, rest: Vec<Host>) {
        self.failed.push(Failure { slot, refusal, lines: last_lines(rest) });
    }
}

/// Returns the last lines of the logs of a module's instances.
pub fn last_lines(rest: Vec<Host>) -> Vec<Line> {
    let lines = rest.into_iter().flat_map(|mut host| {
        host.log.note_left_out();
        host.log.take()
    });
    lines.collect()
}
