// SPDX-License-Identifier: Apache-2.0
//! The worker's end of the ring.

use std::sync::atomic::{AtomicU64, Ordering};

use netserv_model::effect::ModuleSlot;

use super::{
    ACTIVITY, Answer, Consumer, Descriptor, HOST_SLOTS, Ingress, MAGIC, Producer, RingError, SPIN, TO_HOST, TO_WORKER,
    WORKER_SLOTS, check_length, check_mapping, check_packet, code, encode_module, read_slot, write_slot,
};

/// A packet in its slot, from [`WorkerEnd::pop`] until it is answered. Each is answered exactly once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the node waits for an answer"]
pub struct Arrival {
    slot: u16,
    length: u16,
    /// The bit mask of the modules that see it.
    pub modules: u64,
    /// Where and when it came in.
    pub ingress: Ingress,
}

impl Arrival {
    /// Returns the packet's length in bytes, 1 to [`PACKET_BYTES_MAX`].
    #[inline]
    pub fn length(&self) -> usize {
        usize::from(self.length)
    }

    /// Returns the number of the slot, by which the packet is found in a mapped slot area.
    #[inline]
    pub fn slot(&self) -> usize {
        usize::from(self.slot)
    }
}

/// The worker's end of a ring in `M`, the shared memory.
#[derive(Debug)]
pub struct WorkerEnd<M> {
    memory: M,
    to_worker: Consumer,
    to_host: Producer,
    /// Slots for packets that modules make.
    free: Vec<u16>,
    steps: u64,
}

impl<M: AsRef<[AtomicU64]>> WorkerEnd<M> {
    /// Takes the ring that the node laid out in `memory`.
    ///
    /// # Errors
    /// [`RingError::BadMapping`] or [`RingError::BadMagic`] if it is none of this layout.
    pub fn new(memory: M) -> Result<WorkerEnd<M>, RingError> {
        check_mapping(memory.as_ref())?;
        if memory.as_ref()[0].load(Ordering::Acquire) != MAGIC {
            return Err(RingError::BadMagic);
        }
        let free = (HOST_SLOTS..HOST_SLOTS + WORKER_SLOTS).rev();
        Ok(WorkerEnd {
            memory,
            to_worker: Consumer::new(TO_WORKER),
            to_host: Producer::new(TO_HOST),
            free: free.map(|slot| u16::try_from(slot).expect("slots are counted in 16 bits")).collect(),
            steps: 0,
        })
    }

    /// Takes the next packet. Slots of injected packets that the node is done with are taken back on the way.
    ///
    /// # Errors
    /// A fatal [`RingError`] if the node broke the rules.
    pub fn pop(&mut self) -> Result<Option<Arrival>, RingError> {
        while let Some(descriptor) = self.to_worker.take(self.memory.as_ref())? {
            match descriptor.code {
                code::PACKET => return self.arrived(descriptor).map(Some),
                code::RELEASED => self.released(descriptor.slot)?,
                unknown => return Err(RingError::BadCode(unknown)),
            }
        }
        Ok(None)
    }

    /// Copies the packet into `into`, which is cut or only partly filled if the lengths differ.
    pub fn read(&self, arrival: &Arrival, into: &mut [u8]) {
        let length = arrival.length().min(into.len());
        read_slot(self.memory.as_ref(), arrival.slot, &mut into[..length]);
    }

    /// Puts `packet` in the place of the arrived one, to be answered with [`Answer::Modified`].
    ///
    /// # Errors
    /// [`RingError::BadPacket`] if it is empty or longer than a slot holds.
    pub fn write(&mut self, arrival: &mut Arrival, packet: &[u8]) -> Result<(), RingError> {
        arrival.length = check_packet(packet.len())?;
        write_slot(self.memory.as_ref(), arrival.slot, packet);
        Ok(())
    }

    /// Says how long the packet is that a module changed in place, in a mapped slot area.
    ///
    /// # Errors
    /// [`RingError::BadPacket`] if that is no packet's length.
    pub fn resize(&mut self, arrival: &mut Arrival, length: usize) -> Result<(), RingError> {
        arrival.length = check_packet(length)?;
        Ok(())
    }

    /// Stages the answer for a packet; the node sees it after [`WorkerEnd::publish`]. `module` is the one that dropped,
    /// changed or failed on it.
    ///
    /// # Errors
    /// [`RingError::NoSuchModule`], or a fatal one if the node broke the rules.
    #[expect(clippy::needless_pass_by_value, reason = "an arrival is answered once, so answering uses it up")]
    pub fn answer(&mut self, arrival: Arrival, answer: Answer, module: Option<ModuleSlot>) -> Result<(), RingError> {
        let code = match answer {
            Answer::Pass => code::PASS,
            Answer::Drop => code::DROP,
            Answer::Modified => code::MODIFIED,
            Answer::Failed => code::FAILED,
        };
        let modules = encode_module(module)?;
        let Arrival { slot, length, .. } = arrival;
        self.stage(Descriptor { slot: u32::from(slot), length, code, modules, ingress: Ingress::default() })
    }

    /// Stages a packet that `module` made; the node sees it after [`WorkerEnd::publish`].
    ///
    /// # Errors
    /// [`RingError::BadPacket`], [`RingError::NoSuchModule`], [`RingError::Full`] if all slots for such packets are
    /// under way, or a fatal one if the node broke the rules.
    pub fn inject(&mut self, packet: &[u8], module: ModuleSlot) -> Result<(), RingError> {
        let length = check_packet(packet.len())?;
        let modules = encode_module(Some(module))?;
        let slot = *self.free.last().ok_or(RingError::Full)?;
        write_slot(self.memory.as_ref(), slot, packet);
        let ingress = Ingress::default();
        self.stage(Descriptor { slot: u32::from(slot), length, code: code::INJECTED, modules, ingress })?;
        self.free.pop();
        Ok(())
    }

    /// Lets the node see what was staged. Returns whether the node sleeps and must be woken.
    pub fn publish(&mut self) -> bool {
        self.to_host.publish(self.memory.as_ref())
    }

    /// Says that the worker will wait for its eventfd. Returns false if there is something to pop first.
    pub fn prepare_sleep(&mut self) -> bool {
        self.to_worker.prepare_sleep(self.memory.as_ref())
    }

    /// Says that the worker is awake again. Not needed after the eventfd woke it.
    pub fn cancel_sleep(&mut self) {
        self.to_worker.cancel_sleep(self.memory.as_ref());
    }

    /// Returns whether the node lets the worker look for packets again and again before it sleeps.
    #[inline]
    pub fn may_spin(&self) -> bool {
        self.memory.as_ref()[SPIN].load(Ordering::Relaxed) != 0
    }

    /// Returns whether there is something to pop.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.to_worker.has_more(self.memory.as_ref())
    }

    /// Says that `module` runs from here on. The node's watchdog blames it if [`WorkerEnd::leave`] does not follow.
    pub fn enter(&mut self, module: ModuleSlot) {
        self.step(u64::from(module.0) + 1);
    }

    /// Says that no module runs.
    pub fn leave(&mut self) {
        self.step(0);
    }

    fn step(&mut self, module: u64) {
        self.steps = self.steps.wrapping_add(1);
        self.memory.as_ref()[ACTIVITY].store(self.steps << 8 | module, Ordering::Release);
    }

    fn arrived(&self, descriptor: Descriptor) -> Result<Arrival, RingError> {
        let slot = match u16::try_from(descriptor.slot) {
            Ok(slot) if usize::from(slot) < HOST_SLOTS => slot,
            Ok(_) | Err(_) => return Err(RingError::NoSuchSlot(descriptor.slot)),
        };
        check_length(descriptor.length)?;
        let Descriptor { length, modules, ingress, .. } = descriptor;
        Ok(Arrival { slot, length, modules, ingress })
    }

    fn released(&mut self, slot: u32) -> Result<(), RingError> {
        match u16::try_from(slot) {
            Ok(fits) if (HOST_SLOTS..HOST_SLOTS + WORKER_SLOTS).contains(&usize::from(fits)) => {
                if self.free.contains(&fits) {
                    return Err(RingError::NotOutstanding(slot));
                }
                self.free.push(fits);
                Ok(())
            }
            Ok(_) | Err(_) => Err(RingError::NoSuchSlot(slot)),
        }
    }

    fn stage(&mut self, descriptor: Descriptor) -> Result<(), RingError> {
        // There is room for every slot, so a full ring is the node's fault.
        self.to_host.stage(self.memory.as_ref(), descriptor).map_err(|_| RingError::BadIndex)
    }
}
