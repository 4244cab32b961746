// SPDX-License-Identifier: Apache-2.0
//! The packet ring: one shared memory per worker and lane of the node, and its two ends.
//!
//! # Layout
//!
//! One memfd of [`MAPPING_BYTES`] bytes, read and written as little-endian 64-bit words, so that neither end needs
//! `unsafe` to work on memory that the other may scribble over at any time:
//!
//! | bytes | what |
//! |---|---|
//! | 0–4095 | header: magic word, then one index or flag per 128 bytes, so that no two share a cache line |
//! | 4096– | descriptors to the worker, [`RING_ENTRIES`] × 32 bytes |
//! | 69632– | descriptors to the host, [`RING_ENTRIES`] × 32 bytes |
//! | [`SLOTS_OFFSET`]– | slots of [`SLOT_BYTES`] bytes: [`HOST_SLOTS`] for packets, then [`WORKER_SLOTS`] for packets that modules make |
//!
//! Indices run freely and never wrap in practice (64 bits); an entry's place is its index modulo [`RING_ENTRIES`].
//! A producer owns `tail`, a consumer owns `head`; each keeps its own copy and only ever reads the other's, with
//! `Acquire`, after the owner wrote it with `Release`. Both rings have room for every slot that exists, so a ring can
//! only be full if the other end broke the rules.
//!
//! A descriptor is four words:
//!
//! | word | towards the worker | towards the host |
//! |---|---|---|
//! | 0 | `slot \| length << 32 \| code << 48` | the same |
//! | 1 | bit mask of the modules that see the packet | 0, or the slot, plus one, of the module that decided |
//! | 2 | when it came in, nanoseconds on the node's monotonic clock | 0 |
//! | 3 | number of the interface that it came in by | 0 |
//!
//! # A slot
//!
//! The same layout as in the packet ABI (`wit/packet-abi.md`), so that the slot area can be mapped as it is into a
//! module's memory: it starts at a multiple of 64 KiB, the largest page there is, and its size is one too. A slot holds
//! nothing but a packet, at [`PACKET_OFFSET`], so neither end believes anything that a module can reach: a module to
//! which the slots are mapped may write over all of them, at any time. What it wrote is used only where the worker
//! answers [`Answer::Modified`] or injects, and the host copies the packet before it looks at it.
//!
//! # Sleep
//!
//! A consumer that finds nothing calls `prepare_sleep`: it raises its flag, then looks once more. A producer publishes
//! its tail, then looks at the flag. A full fence between the two steps on both sides makes sure that at least one of
//! them sees the other, so no wake-up is lost, and an eventfd is written only when somebody sleeps.
//!
//! A thread of a worker that serves several rings raises its flag in each of them before it looks once more at all, so that
//! each lane of the node wakes it as if it had one. Each ring has a flag and an eventfd of its own: a lane may leave the worker
//! asleep for a moment although it has packets for it, or stand still, and must not keep others from waking it; and each ring
//! may come to have a thread of its own.
//!
//! As long as the node says so in a word of the header, a worker without packets need not sleep: it offers its core to
//! others and looks again. What a worker's first thread is doing stands in the ring of lane 0, whatever ring it serves; a
//! thread that serves one other ring says it there.

mod host;
#[cfg(test)]
mod sleep_model;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering, fence};

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{MODULES_PER_CONTAINER_MAX, PACKET_BYTES_MAX};

pub use host::{HostEnd, Outstanding, Returned};
pub use worker::{Arrival, WorkerEnd};

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 2048;
/// Where the packet starts inside its slot.
pub const PACKET_OFFSET: usize = 64;
/// Slots that carry packets to the worker and back.
pub const HOST_SLOTS: usize = 1024;
/// Slots that carry packets made by modules.
pub const WORKER_SLOTS: usize = 256;
/// Slots that keep their memory however long a ring is quiet: as many as a batch of packets.
pub const SLOTS_KEPT: usize = 64;
/// Entries of each descriptor ring.
pub const RING_ENTRIES: usize = 2048;
/// Where the slots start in the mapping.
pub const SLOTS_OFFSET: usize = (TO_HOST_OFFSET + RING_ENTRIES * DESCRIPTOR_WORDS * WORD_BYTES).next_multiple_of(65536);
/// Bytes of all slots.
pub const SLOTS_BYTES: usize = (HOST_SLOTS + WORKER_SLOTS) * SLOT_BYTES;
/// Bytes of the whole mapping.
pub const MAPPING_BYTES: usize = SLOTS_OFFSET + SLOTS_BYTES;
/// Words of the whole mapping.
pub const MAPPING_WORDS: usize = MAPPING_BYTES / WORD_BYTES;
/// Slots of a ring.
pub const SLOTS: usize = HOST_SLOTS + WORKER_SLOTS;

/// The first word of the mapping; its last digits are the version of the layout.
const MAGIC: u64 = 0x4e65_7453_6572_0002;
const WORD_BYTES: usize = 8;
const DESCRIPTOR_WORDS: usize = 4;
const TO_WORKER_OFFSET: usize = 4096;
const TO_HOST_OFFSET: usize = TO_WORKER_OFFSET + RING_ENTRIES * DESCRIPTOR_WORDS * WORD_BYTES;
/// Two cache lines, because processors fetch lines in pairs.
const LINE_WORDS: usize = 128 / WORD_BYTES;

const TO_WORKER: Lane = Lane { line: 1, descriptors: TO_WORKER_OFFSET / WORD_BYTES };
const TO_HOST: Lane = Lane { line: 4, descriptors: TO_HOST_OFFSET / WORD_BYTES };
/// What the worker is doing: the count of its steps in the upper 56 bits, the module's slot plus one in the lower 8.
const ACTIVITY: usize = 7 * LINE_WORDS;
/// Whether the worker may look for packets again and again: the node writes it, 0 or another number.
const SPIN: usize = 8 * LINE_WORDS;

const _: () = assert!(HOST_SLOTS + WORKER_SLOTS <= RING_ENTRIES && RING_ENTRIES.is_power_of_two());
const _: () = assert!(PACKET_OFFSET + PACKET_BYTES_MAX <= SLOT_BYTES);
const _: () = assert!(SLOTS_OFFSET.is_multiple_of(65536) && SLOTS_BYTES.is_multiple_of(65536));

/// What an end of the ring found wrong. All but the first three mean that the other end broke the rules; the end then
/// refuses all further work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// Every slot is under way; try again after some came back.
    #[error("every slot of the packet ring is under way")]
    Full,
    /// The packet is empty or longer than a slot holds.
    #[error("a packet of {0} bytes does not fit a slot")]
    BadPacket(usize),
    /// A module slot is out of range.
    #[error("there is no module slot {0}")]
    NoSuchModule(u8),
    /// The memory has another size than the layout.
    #[error("the ring's memory has {0} words, not {MAPPING_WORDS}")]
    BadMapping(usize),
    /// The memory does not start with the layout's magic word.
    #[error("the ring's memory has another layout")]
    BadMagic,
    /// The two indices of a ring lie further apart than the ring is long.
    #[error("the other end moved an index out of its range")]
    BadIndex,
    /// A descriptor names a slot that does not exist.
    #[error("the other end named slot {0}, which does not exist")]
    NoSuchSlot(u32),
    /// A descriptor names a slot that the other end does not hold.
    #[error("the other end gave back slot {0}, which it does not hold")]
    NotOutstanding(u32),
    /// A descriptor's length is no packet's length.
    #[error("the other end says that a packet has {0} bytes")]
    BadLength(u16),
    /// A descriptor's code means nothing.
    #[error("the other end used the code {0}, which means nothing")]
    BadCode(u16),
    /// A descriptor blames a module that does not exist.
    #[error("the other end named module slot {0}, which does not exist")]
    BadModule(u64),
}

impl RingError {
    /// Returns whether the other end broke the rules, so that its container must go.
    pub fn is_fatal(self) -> bool {
        !matches!(self, RingError::Full | RingError::BadPacket(_) | RingError::NoSuchModule(_))
    }
}

/// What a worker answers for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Goes on as it came.
    Pass,
    /// Goes no further.
    Drop,
    /// Goes on with the bytes in the slot.
    Modified,
    /// A module failed on it; the node does what the module's failure mode says.
    Failed,
}

/// Where and when a packet came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingress {
    /// The interface's number; 0 if there is none.
    pub interface: u32,
    /// Nanoseconds on the node's monotonic clock.
    pub timestamp_ns: u64,
}

/// What a worker says that it is doing. The node's watchdog looks at it twice: the same `steps` with the same module
/// after the module's time is up means that the module stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Counts up whenever a module is entered or left; wraps at 2⁵⁶.
    pub steps: u64,
    /// The module that runs; nothing if none does, or if the word is scribbled over.
    pub module: Option<ModuleSlot>,
}

/// Returns what the worker says that it is doing. `memory` is the ring, or its first page.
///
/// # Panics
/// If the memory is shorter than a page.
pub fn activity(memory: &[AtomicU64]) -> Activity {
    let word = memory[ACTIVITY].load(Ordering::Acquire);
    Activity { steps: word >> 8, module: decode_module(word & 0xff).ok().flatten() }
}

/// One direction: where its indices and descriptors are.
#[derive(Clone, Copy, Debug)]
struct Lane {
    line: usize,
    descriptors: usize,
}

impl Lane {
    #[inline]
    fn tail(self) -> usize {
        self.line * LINE_WORDS
    }

    #[inline]
    fn head(self) -> usize {
        (self.line + 1) * LINE_WORDS
    }

    #[inline]
    fn sleeping(self) -> usize {
        (self.line + 2) * LINE_WORDS
    }

    #[inline]
    fn descriptor(self, index: u64) -> usize {
        let place = usize::try_from(index % RING_ENTRIES as u64).expect("less than RING_ENTRIES");
        self.descriptors + place * DESCRIPTOR_WORDS
    }
}

/// One descriptor, its words apart but not yet believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Descriptor {
    slot: u32,
    length: u16,
    code: u16,
    modules: u64,
    ingress: Ingress,
}

mod code {
    pub(super) const PACKET: u16 = 1;
    pub(super) const RELEASED: u16 = 2;
    pub(super) const PASS: u16 = 3;
    pub(super) const DROP: u16 = 4;
    pub(super) const MODIFIED: u16 = 5;
    pub(super) const FAILED: u16 = 6;
    pub(super) const INJECTED: u16 = 7;
}

/// The writing end of one direction.
#[derive(Debug)]
struct Producer {
    lane: Lane,
    tail: u64,
    published: u64,
    head_seen: u64,
}

impl Producer {
    fn new(lane: Lane) -> Producer {
        Producer { lane, tail: 0, published: 0, head_seen: 0 }
    }

    /// Writes one descriptor; the other end sees it after [`Producer::publish`].
    #[inline]
    fn stage(&mut self, memory: &[AtomicU64], descriptor: Descriptor) -> Result<(), RingError> {
        if self.tail - self.head_seen >= RING_ENTRIES as u64 {
            self.head_seen = self.read_head(memory)?;
            if self.tail - self.head_seen >= RING_ENTRIES as u64 {
                return Err(RingError::Full);
            }
        }
        let at = self.lane.descriptor(self.tail);
        let Descriptor { slot, length, code, modules, ingress } = descriptor;
        let first = u64::from(slot) | u64::from(length) << 32 | u64::from(code) << 48;
        let words = [first, modules, ingress.timestamp_ns, u64::from(ingress.interface)];
        for (place, word) in memory[at..at + DESCRIPTOR_WORDS].iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self.tail += 1;
        Ok(())
    }

    /// Lets the other end see what was staged. Returns whether it sleeps and must be woken.
    #[inline]
    fn publish(&mut self, memory: &[AtomicU64]) -> bool {
        if self.published == self.tail {
            return false;
        }
        memory[self.lane.tail()].store(self.tail, Ordering::Release);
        self.published = self.tail;
        fence(Ordering::SeqCst);
        let flag = &memory[self.lane.sleeping()];
        flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0
    }

    #[inline]
    fn read_head(&self, memory: &[AtomicU64]) -> Result<u64, RingError> {
        let head = memory[self.lane.head()].load(Ordering::Acquire);
        let plausible = self.published.checked_sub(head).is_some_and(|distance| distance <= RING_ENTRIES as u64);
        if plausible { Ok(head) } else { Err(RingError::BadIndex) }
    }
}

/// The reading end of one direction.
#[derive(Debug)]
struct Consumer {
    lane: Lane,
    head: u64,
    tail_seen: u64,
}

impl Consumer {
    fn new(lane: Lane) -> Consumer {
        Consumer { lane, head: 0, tail_seen: 0 }
    }

    #[inline]
    fn take(&mut self, memory: &[AtomicU64]) -> Result<Option<Descriptor>, RingError> {
        if self.head == self.tail_seen {
            self.tail_seen = self.read_tail(memory)?;
            if self.head == self.tail_seen {
                return Ok(None);
            }
        }
        let at = self.lane.descriptor(self.head);
        let words = &memory[at..at + DESCRIPTOR_WORDS];
        let [first, modules, timestamp_ns, interface] = [0, 1, 2, 3].map(|word| words[word].load(Ordering::Relaxed));
        let descriptor = Descriptor {
            slot: low_u32(first),
            length: low_u16(first >> 32),
            code: low_u16(first >> 48),
            modules,
            ingress: Ingress { interface: low_u32(interface), timestamp_ns },
        };
        self.head += 1;
        memory[self.lane.head()].store(self.head, Ordering::Release);
        Ok(Some(descriptor))
    }

    #[inline]
    fn has_more(&self, memory: &[AtomicU64]) -> bool {
        memory[self.lane.tail()].load(Ordering::Acquire) != self.head
    }

    /// Says that this end will sleep. Returns false, and takes it back, if there is something to read after all.
    #[inline]
    fn prepare_sleep(&mut self, memory: &[AtomicU64]) -> bool {
        memory[self.lane.sleeping()].store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let nothing = memory[self.lane.tail()].load(Ordering::Acquire) == self.head;
        if !nothing {
            self.cancel_sleep(memory);
        }
        nothing
    }

    #[inline]
    fn cancel_sleep(&mut self, memory: &[AtomicU64]) {
        memory[self.lane.sleeping()].store(0, Ordering::Relaxed);
    }

    #[inline]
    fn read_tail(&self, memory: &[AtomicU64]) -> Result<u64, RingError> {
        let tail = memory[self.lane.tail()].load(Ordering::Acquire);
        let plausible = tail.checked_sub(self.head).is_some_and(|distance| distance <= RING_ENTRIES as u64);
        if plausible { Ok(tail) } else { Err(RingError::BadIndex) }
    }
}

/// Copies `packet` into a slot.
fn write_slot(memory: &[AtomicU64], slot: u16, packet: &[u8]) {
    let words = &slot_words(memory, slot)[PACKET_OFFSET / WORD_BYTES..];
    let (whole, rest) = packet.as_chunks::<WORD_BYTES>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; WORD_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
}

/// Copies the packet in a slot out of the shared memory. `into` is as long as the packet.
fn read_slot(memory: &[AtomicU64], slot: u16, into: &mut [u8]) {
    let words = &slot_words(memory, slot)[PACKET_OFFSET / WORD_BYTES..];
    let (whole, rest) = into.as_chunks_mut::<WORD_BYTES>();
    for (bytes, word) in whole.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
    }
    if !rest.is_empty() {
        let last = words[whole.len()].load(Ordering::Relaxed).to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[inline]
fn slot_words(memory: &[AtomicU64], slot: u16) -> &[AtomicU64] {
    let at = (SLOTS_OFFSET + usize::from(slot) * SLOT_BYTES) / WORD_BYTES;
    &memory[at..at + SLOT_BYTES / WORD_BYTES]
}

fn check_mapping(memory: &[AtomicU64]) -> Result<(), RingError> {
    if memory.len() == MAPPING_WORDS { Ok(()) } else { Err(RingError::BadMapping(memory.len())) }
}

#[inline]
fn check_packet(length: usize) -> Result<u16, RingError> {
    match u16::try_from(length) {
        Ok(fits) if (1..=PACKET_BYTES_MAX).contains(&length) => Ok(fits),
        Ok(_) | Err(_) => Err(RingError::BadPacket(length)),
    }
}

#[inline]
fn check_length(length: u16) -> Result<usize, RingError> {
    let fits = (1..=PACKET_BYTES_MAX).contains(&usize::from(length));
    if fits { Ok(usize::from(length)) } else { Err(RingError::BadLength(length)) }
}

/// Reads a module slot plus one, where 0 means none.
#[inline]
fn decode_module(word: u64) -> Result<Option<ModuleSlot>, RingError> {
    let Some(slot) = word.checked_sub(1) else { return Ok(None) };
    match u8::try_from(slot) {
        Ok(slot) if usize::from(slot) < MODULES_PER_CONTAINER_MAX => Ok(Some(ModuleSlot(slot))),
        Ok(_) | Err(_) => Err(RingError::BadModule(word)),
    }
}

#[inline]
fn encode_module(module: Option<ModuleSlot>) -> Result<u64, RingError> {
    match module {
        None => Ok(0),
        Some(slot) if usize::from(slot.0) < MODULES_PER_CONTAINER_MAX => Ok(u64::from(slot.0) + 1),
        Some(slot) => Err(RingError::NoSuchModule(slot.0)),
    }
}

#[inline]
fn low_u32(word: u64) -> u32 {
    u32::try_from(word & 0xffff_ffff).expect("masked to 32 bits")
}

#[inline]
fn low_u16(word: u64) -> u16 {
    u16::try_from(word & 0xffff).expect("masked to 16 bits")
}
