// SPDX-License-Identifier: Apache-2.0
//! The node's end of the ring. It believes nothing that it reads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::PACKET_BYTES_MAX;

use super::{
    Activity, Answer, Consumer, Descriptor, HOST_SLOTS, Ingress, MAGIC, Producer, RingError, SLOT_BYTES, SLOTS_KEPT,
    SLOTS_OFFSET, SPIN, TO_HOST, TO_WORKER, WORKER_SLOTS, activity, check_length, check_mapping, check_packet, code,
    decode_module, read_slot, write_slot,
};

/// A packet that the worker holds, as the node remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// What the node gave with the packet.
    pub cookie: u64,
    /// The modules that were to see it.
    pub modules: u64,
}

/// What came back from the worker.
#[derive(Debug, PartialEq, Eq)]
pub enum Returned<'a> {
    /// The answer for a packet that the node pushed.
    Answer {
        /// What the node gave with the packet.
        cookie: u64,
        /// The modules that were to see it.
        modules: u64,
        /// What becomes of it.
        answer: Answer,
        /// The packet's bytes if it was modified, otherwise nothing. Not yet checked to be an IP packet.
        bytes: &'a [u8],
        /// The module that dropped, changed or failed on it.
        module: Option<ModuleSlot>,
    },
    /// A packet that a module made.
    Injected {
        /// Its bytes. Not yet checked to be an IP packet.
        bytes: &'a [u8],
        /// The module that made it.
        module: Option<ModuleSlot>,
    },
}

/// The node's end of a ring in `M`, the shared memory.
#[derive(Debug)]
pub struct HostEnd<M> {
    memory: M,
    to_worker: Producer,
    to_host: Consumer,
    /// By slot. Free slots are used last in, first out, so that a quiet ring touches few pages.
    outstanding: Vec<Option<Outstanding>>,
    free: Vec<u16>,
    /// How many at the beginning of `free` were not used since the node last asked for slots that rest, and of how many it knows.
    unused: usize,
    told: usize,
    scratch: Box<[u8; PACKET_BYTES_MAX]>,
    broken: Option<RingError>,
}

impl<M: AsRef<[AtomicU64]>> HostEnd<M> {
    /// Lays a ring out in `memory`, which is [`MAPPING_WORDS`](super::MAPPING_WORDS) words of zeroes.
    ///
    /// # Errors
    /// [`RingError::BadMapping`] if the memory has another size.
    pub fn new(memory: M) -> Result<HostEnd<M>, RingError> {
        check_mapping(memory.as_ref())?;
        memory.as_ref()[0].store(MAGIC, Ordering::Release);
        Ok(HostEnd {
            memory,
            to_worker: Producer::new(TO_WORKER),
            to_host: Consumer::new(TO_HOST),
            outstanding: vec![None; HOST_SLOTS],
            free: host_slots().rev().collect(),
            unused: HOST_SLOTS,
            told: HOST_SLOTS,
            scratch: Box::new([0; PACKET_BYTES_MAX]),
            broken: None,
        })
    }

    /// Stages one packet for the modules whose bits are set. The worker sees it after [`HostEnd::publish`].
    ///
    /// # Errors
    /// [`RingError::BadPacket`], [`RingError::Full`], or a fatal one.
    pub fn push(&mut self, packet: &[u8], ingress: Ingress, modules: u64, cookie: u64) -> Result<(), RingError> {
        self.check_broken()?;
        let length = check_packet(packet.len())?;
        let slot = *self.free.last().ok_or(RingError::Full)?;
        let memory = self.memory.as_ref();
        write_slot(memory, slot, packet);
        let descriptor = Descriptor { slot: u32::from(slot), length, code: code::PACKET, modules, ingress };
        // A slot was free, so there is room, or the worker moved its index.
        let staged = self.to_worker.stage(memory, descriptor);
        self.keep(staged)?;
        self.free.pop();
        self.outstanding[usize::from(slot)] = Some(Outstanding { cookie, modules });
        Ok(())
    }

    /// Lets the worker see what was pushed, and takes back the slots of injected packets. Returns whether the worker
    /// sleeps and must be woken. Call it after each round of [`HostEnd::push`] and of [`HostEnd::pop`].
    pub fn publish(&mut self) -> bool {
        self.unused = self.unused.min(self.free.len());
        self.to_worker.publish(self.memory.as_ref())
    }

    /// Takes the next thing that the worker sent. Its bytes are a copy, made once: a module to which the slots are mapped
    /// may go on writing over them while the node looks.
    ///
    /// # Errors
    /// A fatal [`RingError`] if the worker broke the rules; every later call gives the same error.
    pub fn pop(&mut self) -> Result<Option<Returned<'_>>, RingError> {
        self.check_broken()?;
        let next = self.to_host.take(self.memory.as_ref());
        let Some(descriptor) = self.keep(next)? else { return Ok(None) };
        let returned = match descriptor.code {
            code::PASS => self.answered(descriptor, Answer::Pass),
            code::DROP => self.answered(descriptor, Answer::Drop),
            code::MODIFIED => self.answered(descriptor, Answer::Modified),
            code::FAILED => self.answered(descriptor, Answer::Failed),
            code::INJECTED => self.injected(descriptor),
            unknown => Err(RingError::BadCode(unknown)),
        };
        Ok(Some(match self.keep(returned)? {
            Taken::Answer { was, answer, length, module } => Returned::Answer {
                cookie: was.cookie,
                modules: was.modules,
                answer,
                bytes: &self.scratch[..length],
                module,
            },
            Taken::Injected { length, module } => Returned::Injected { bytes: &self.scratch[..length], module },
        }))
    }

    /// Says that the node will wait for the eventfd. Returns false if there is something to pop first.
    pub fn prepare_sleep(&mut self) -> bool {
        self.to_host.prepare_sleep(self.memory.as_ref())
    }

    /// Says that the node is awake again. Not needed after the eventfd woke it.
    pub fn cancel_sleep(&mut self) {
        self.to_host.cancel_sleep(self.memory.as_ref());
    }

    /// Says whether the worker may look for packets again and again before it sleeps. One that sleeps is not woken by that.
    pub fn let_spin(&mut self, may: bool) {
        self.memory.as_ref()[SPIN].store(may.into(), Ordering::Relaxed);
    }

    /// Returns what the worker says that it is doing.
    pub fn activity(&self) -> Activity {
        activity(self.memory.as_ref())
    }

    /// Returns how many packets the worker holds.
    pub fn outstanding(&self) -> usize {
        HOST_SLOTS - self.free.len()
    }

    /// Returns where slots lie, in bytes of the mapping, that were not used since the last call, so that their memory can be
    /// given back; not those that were returned before and not used since then, and not the [`SLOTS_KEPT`] that are used next.
    pub fn resting(&mut self) -> Vec<Range<usize>> {
        let resting = self.unused.min(self.free.len().saturating_sub(SLOTS_KEPT));
        let known = self.told.min(self.unused);
        (self.unused, self.told) = (self.free.len(), known.max(resting));
        if resting <= known {
            return Vec::new();
        }
        // Those that lie together are used together, those at the beginning of the memory first.
        self.free[..resting].sort_unstable_by(|one, other| other.cmp(one));
        runs(&self.free[..resting])
    }

    /// Takes every packet that the worker never answered, in no order, and refuses all further work. For when the
    /// worker is dead or condemned.
    pub fn take_outstanding(&mut self) -> Vec<Outstanding> {
        self.broken.get_or_insert(RingError::BadIndex);
        self.free = host_slots().rev().collect();
        self.outstanding.iter_mut().filter_map(Option::take).collect()
    }

    fn answered(&mut self, descriptor: Descriptor, answer: Answer) -> Result<Taken, RingError> {
        let module = decode_module(descriptor.modules)?;
        let slot = host_slot(descriptor.slot)?;
        let length = if answer == Answer::Modified { check_length(descriptor.length)? } else { 0 };
        let was = self.outstanding[usize::from(slot)].take().ok_or(RingError::NotOutstanding(descriptor.slot))?;
        read_slot(self.memory.as_ref(), slot, &mut self.scratch[..length]);
        self.free.push(slot);
        Ok(Taken::Answer { was, answer, length, module })
    }

    fn injected(&mut self, descriptor: Descriptor) -> Result<Taken, RingError> {
        let module = decode_module(descriptor.modules)?;
        let slot = worker_slot(descriptor.slot)?;
        let length = check_length(descriptor.length)?;
        read_slot(self.memory.as_ref(), slot, &mut self.scratch[..length]);
        let ingress = Ingress::default();
        let released = Descriptor { slot: descriptor.slot, length: 0, code: code::RELEASED, modules: 0, ingress };
        self.to_worker.stage(self.memory.as_ref(), released).map_err(|_| RingError::BadIndex)?;
        Ok(Taken::Injected { length, module })
    }

    fn check_broken(&self) -> Result<(), RingError> {
        self.broken.map_or(Ok(()), Err)
    }

    fn keep<T>(&mut self, result: Result<T, RingError>) -> Result<T, RingError> {
        if let Err(error) = result
            && error.is_fatal()
        {
            self.broken = Some(error);
        }
        result
    }
}

enum Taken {
    Answer { was: Outstanding, answer: Answer, length: usize, module: Option<ModuleSlot> },
    Injected { length: usize, module: Option<ModuleSlot> },
}

/// Returns where slots lie that are given in falling order.
fn runs(slots: &[u16]) -> Vec<Range<usize>> {
    let lies = |slot: u16| SLOTS_OFFSET + usize::from(slot) * SLOT_BYTES;
    let mut runs: Vec<Range<usize>> = Vec::new();
    for slot in slots.iter().copied() {
        match runs.last_mut().filter(|run| run.start == lies(slot) + SLOT_BYTES) {
            Some(run) => run.start = lies(slot),
            None => runs.push(lies(slot)..lies(slot) + SLOT_BYTES),
        }
    }
    runs
}

fn host_slots() -> impl DoubleEndedIterator<Item = u16> {
    0..u16::try_from(HOST_SLOTS).expect("slots are counted in 16 bits")
}

#[inline]
fn host_slot(slot: u32) -> Result<u16, RingError> {
    let slots = HOST_SLOTS + WORKER_SLOTS;
    match u16::try_from(slot) {
        Ok(fits) if usize::from(fits) < HOST_SLOTS => Ok(fits),
        Ok(fits) if usize::from(fits) < slots => Err(RingError::NotOutstanding(slot)),
        Ok(_) | Err(_) => Err(RingError::NoSuchSlot(slot)),
    }
}

#[inline]
fn worker_slot(slot: u32) -> Result<u16, RingError> {
    match u16::try_from(slot) {
        Ok(fits) if (HOST_SLOTS..HOST_SLOTS + WORKER_SLOTS).contains(&usize::from(fits)) => Ok(fits),
        Ok(_) | Err(_) => Err(RingError::NoSuchSlot(slot)),
    }
}
