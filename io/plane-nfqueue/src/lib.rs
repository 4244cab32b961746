// SPDX-License-Identifier: Apache-2.0
//! Packets out of the kernel's own forwarding path, by netfilter queues.
//!
//! Rules behind `mangle` PREROUTING lead matching packets to a queue of ours; everything else is forwarded by the kernel
//! alone. They pass when nobody owns the queue, and by the queue's own flag when its socket is full: such
//! packets are counted by the socket. The kernel's bound of the queue itself, behind which it counts nothing, is not reached.
//!
//! With several lanes, rules lead to a queue of each.
//!
//! Replaced packets: the kernel goes on with our bytes where it stood, before routing, so new ports or contents need
//! no more. With a new source or destination that is not enough: the checks of the arriving interface (reverse path,
//! martian source) would be made with the new source, and drop for instance an answer that a module made out of a
//! question. Such a packet is dropped and sent anew by a raw socket, with a TTL one lower, marked so that our rules
//! leave it alone, if its destination may receive it.

pub mod limits;
mod message;
mod pair;
pub mod queue;
pub mod rules;
mod window;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

pub use message::Decision;
use pair::QueuePair;
use queue::{Queue, QueueConfig};
use rules::{Counted, Rules};
pub use window::Outcome;

use netserv_plane::{
    Batch, Counters, DestinationCounters, Driver, DriverConfig, DriverError, Egress, FilterTable, Final, PacketId,
    counted::Uncounted,
    inject::Injector,
    packet::{self, NO_MACHINE, NOT_WHOLE},
};

/// A lane of the `nfqueue` driver.
pub struct Nfqueue {
    // Rules go first when the first lane is dropped, so that no packet comes to a queue that nobody reads. Packets for the
    // queue of another lane that is dropped pass.
    guard: Option<RulesGuard>,
    queue: QueuePair,
    // Their tables go after the queues, whose packets would be lost with a hook.
    rules: Arc<Rules>,
    /// `None` where another driver counts.
    counted: Option<Arc<Counted>>,
    injector: Injector,
    owed_max: usize,
    counters: Counters,
}

struct RulesGuard(Arc<Rules>, Option<Arc<Counted>>);

impl Drop for RulesGuard {
    fn drop(&mut self) {
        self.0.close();
        if let Some(counted) = &self.1 {
            counted.close();
        }
    }
}

impl Nfqueue {
    /// Opens the driver in one lane, as [`Nfqueue::open_lanes`].
    ///
    /// # Errors
    /// Says what is lacking: rights, or the kernel's support.
    pub fn open(config: &DriverConfig) -> Result<Nfqueue, DriverError> {
        Ok(Nfqueue::open_lanes(config, 1)?.swap_remove(0))
    }

    /// Takes two queues for each lane and makes the tables for filters.
    ///
    /// The kernel chooses the lane by a packet's addresses and protocol, so that all of a flow is in one, in both
    /// directions. All lanes together have as many bytes in the kernel as one would have.
    ///
    /// # Errors
    /// Says what is lacking: rights, or the kernel's support.
    pub fn open_lanes(config: &DriverConfig, lanes: usize) -> Result<Vec<Nfqueue>, DriverError> {
        let lanes = lanes.clamp(1, limits::LANES_MAX);
        let queue = QueueConfig {
            first_number: config.queue,
            packets: config.queue_packets,
            receive_buffer_bytes: config.receive_buffer_bytes / lanes,
            fail_open: config.fail_open,
            tag: 0,
        };
        let (pairs, numbers) = QueuePair::open_row(queue, u16::try_from(lanes).expect("there are few lanes"))?;
        tracing::debug!(?numbers, instance = config.instance, "nfqueue driver is open");
        let rules = Arc::new(Rules::open(&config.instance, numbers, config.mark)?);
        let counted = Some(Arc::new(Counted::open(&config.instance)));
        let mut guard = Some(RulesGuard(Arc::clone(&rules), counted.clone()));
        let lane = |queue| Nfqueue::new(config, queue, guard.take(), Arc::clone(&rules), counted.clone());
        pairs.into_iter().map(lane).collect()
    }

    /// Opens one lane beside another driver's, for packets that come in by the devices of [`Rules::set_devices`]. The names
    /// of its packets have `tag` in their upper halves, or one more.
    ///
    /// # Errors
    /// As of [`Nfqueue::open_lanes`].
    pub fn open_beside(config: &DriverConfig, tag: u32) -> Result<Nfqueue, DriverError> {
        let queue = QueueConfig {
            first_number: config.queue,
            packets: config.queue_packets,
            receive_buffer_bytes: config.receive_buffer_bytes,
            fail_open: config.fail_open,
            tag,
        };
        let (mut pairs, numbers) = QueuePair::open_row(queue, 1)?;
        let rules = Arc::new(Rules::open_for_devices(&config.instance, numbers, config.mark)?);
        let guard = RulesGuard(Arc::clone(&rules), None);
        Nfqueue::new(config, pairs.swap_remove(0), Some(guard), rules, None)
    }

    fn new(
        config: &DriverConfig,
        queue: QueuePair,
        guard: Option<RulesGuard>,
        rules: Arc<Rules>,
        counted: Option<Arc<Counted>>,
    ) -> Result<Nfqueue, DriverError> {
        // The kernel's queue also has those that are still to be received.
        let owed_max = usize::try_from(config.queue_packets / 2).expect("32 bits fit in usize").max(1);
        let (injector, counters) = (Injector::open(config.mark)?, Counters::default());
        Ok(Nfqueue { guard, queue, rules, counted, injector, owed_max, counters })
    }

    /// Returns its rules.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Returns the numbers of the lane's netfilter queues: for modules that fail open, and for those that fail closed.
    pub fn queue_numbers(&self) -> [u16; 2] {
        self.queue.numbers()
    }

    fn replace(&mut self, id: PacketId, bytes: &[u8]) {
        let Some(addresses) = self.queue.addresses(id) else {
            self.counters.unknown += 1;
            return;
        };
        let Ok(view) = packet::whole(bytes) else {
            self.counters.bad_verdict += 1;
            self.queue.decide(id, Outcome::Decided(Decision::Drop));
            return;
        };
        if addresses == Some((view.source(), view.destination())) {
            self.counters.replaced += 1;
            self.queue.decide(id, Outcome::Replaced(bytes));
            return;
        }
        self.queue.decide(id, Outcome::Decided(Decision::Drop));
        match self.injector.redirect(bytes) {
            Ok(true) => {}
            Ok(false) => self.counters.send_failed += 1,
            Err(DriverError::NoMachine(_)) => self.counters.refused += 1,
            Err(_) => self.counters.bad_verdict += 1,
        }
    }

    fn decide(&mut self, id: PacketId, decision: Decision) -> bool {
        self.queue.decide(id, Outcome::Decided(decision))
    }
}

impl Drop for Nfqueue {
    fn drop(&mut self) {
        self.guard = None;
    }
}

impl Driver for Nfqueue {
    fn name(&self) -> &'static str {
        "nfqueue"
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::<Rules>::clone(&self.rules)
    }

    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        match &self.counted {
            Some(counted) => Arc::<Counted>::clone(counted),
            None => Arc::new(Uncounted),
        }
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        self.queue.receive(batch, timeout)
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        match verdict {
            Final::Pass => self.counters.passed += u64::from(self.decide(packet, Decision::Accept)),
            Final::Drop => self.counters.dropped += u64::from(self.decide(packet, Decision::Drop)),
            Final::Replace(bytes) => self.replace(packet, bytes),
        }
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        let Some(addresses) = self.queue.addresses(packet) else {
            return Egress::Refused { why: "no verdict is owed for it" };
        };
        match verdict {
            Final::Drop => Egress::Refused { why: "its verdict is to drop it" },
            Final::Replace(bytes) => match packet::whole(bytes) {
                Err(_) => Egress::Refused { why: NOT_WHOLE },
                Ok(view) if addresses == Some((view.source(), view.destination())) => THE_KERNEL_FORWARDS,
                Ok(view) if view.ttl() <= 1 => Egress::Refused { why: "its TTL runs out on its new way" },
                Ok(view) if !self.injector.may_send_to(view.destination()) => Egress::Refused { why: NO_MACHINE },
                Ok(_) => Egress::Kernel { why: "it is sent anew, routed by its new destination" },
            },
            Final::Pass => THE_KERNEL_FORWARDS,
        }
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        if !self.injector.inject(packet)? {
            self.counters.send_failed += 1;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        let verdicts = self.queue.flush();
        let sent = self.injector.flush();
        self.counters.injected += sent.injected;
        self.counters.redirected += sent.redirected;
        self.counters.send_failed += sent.failed;
        verdicts
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.as_fd())
    }

    fn counters(&self) -> Counters {
        self.counters + self.queue.counters()
    }

    fn owed_max(&self) -> usize {
        self.owed_max
    }
}

const THE_KERNEL_FORWARDS: Egress = Egress::Kernel { why: "this driver has the kernel forward everything" };

/// Finds out whether the driver works here, without leaving anything behind.
///
/// # Errors
/// Says what is lacking.
pub fn probe() -> Result<(), DriverError> {
    let config = QueueConfig { first_number: 0xff00, packets: 1, receive_buffer_bytes: 4096, fail_open: true, tag: 0 };
    drop(Queue::open(config)?);
    rules::probe()
}
