// SPDX-License-Identifier: Apache-2.0
//! A ring of descriptors shared with the kernel, one side of which is ours.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::xdp::{XdpDesc, XdpRingOffset};

use super::memory::Mapping;

/// What may stand in a ring: plain numbers.
///
/// # Safety
/// Every bit pattern must be a value.
pub unsafe trait Entry: Copy {}

// SAFETY: a number.
unsafe impl Entry for u64 {}
// SAFETY: three numbers, of which the last is a transparent set of flags that keeps unknown bits.
unsafe impl Entry for XdpDesc {}

/// Our side of a ring: either we produce and the kernel consumes, or the other way round.
///
/// The other side's index is read with acquire, our own written with release, so that entries are seen as they were
/// written before the index moved.
pub struct Ring<T: Entry> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    size: u32,
    /// Our own index, ahead of the one that the other side sees until it is published.
    own: u32,
    /// The other side's index as last seen.
    seen: u32,
    _mapping: Mapping,
}

// SAFETY: the pointers lead into the mapping that the ring owns; nothing of it belongs to a thread.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Maps a ring of a socket; `size` must be what the socket was told, a power of two.
    pub fn map(socket: impl AsFd, at: u64, offsets: &XdpRingOffset, size: u32) -> io::Result<Ring<T>> {
        let index = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let start = index(offsets.desc)?;
        let length = start + usize::try_from(size).map_err(io::Error::other)? * size_of::<T>();
        let mapping = Mapping::of_ring(socket, at, length)?;
        let word = |offset: u64| mapping.word(index(offset)?);
        Ok(Ring {
            producer: word(offsets.producer)?,
            consumer: word(offsets.consumer)?,
            flags: offsets.flags.map(word).transpose()?,
            entries: mapping.array(start)?,
            size,
            own: 0,
            seen: 0,
            _mapping: mapping,
        })
    }

    /// Producing: adds an entry for the next [`Ring::publish`]; gives it back if the ring is full.
    pub fn push(&mut self, entry: T) -> Result<(), T> {
        if self.own.wrapping_sub(self.seen) == self.size {
            self.seen = self.consumer().load(Ordering::Acquire);
            if self.own.wrapping_sub(self.seen) >= self.size {
                return Err(entry);
            }
        }
        // SAFETY: the place lies in the mapping, and the other side has consumed what was there.
        unsafe { self.place(self.own).write_volatile(entry) };
        self.own = self.own.wrapping_add(1);
        Ok(())
    }

    /// Producing: shows the other side what was pushed.
    pub fn publish(&mut self) {
        self.producer().store(self.own, Ordering::Release);
    }

    /// Producing: returns how many entries the other side has not consumed.
    pub fn waiting(&mut self) -> u32 {
        self.seen = self.consumer().load(Ordering::Acquire);
        self.own.wrapping_sub(self.seen)
    }

    /// Consuming: takes an entry; the other side may use its place after [`Ring::release`].
    pub fn pop(&mut self) -> Option<T> {
        if self.own == self.seen {
            self.seen = self.producer().load(Ordering::Acquire);
            if self.own == self.seen {
                return None;
            }
        }
        // SAFETY: the place lies in the mapping, and the other side has produced what is there.
        let entry = unsafe { self.place(self.own).read_volatile() };
        self.own = self.own.wrapping_add(1);
        Some(entry)
    }

    /// Consuming: returns the entry that the pop after so many others takes, if it is there and known to be.
    pub fn peek(&self, ahead: u32) -> Option<T> {
        // SAFETY: as in `pop`.
        (self.seen.wrapping_sub(self.own) > ahead)
            .then(|| unsafe { self.place(self.own.wrapping_add(ahead)).read_volatile() })
    }

    /// Consuming: returns how many entries there are to take.
    pub fn ready(&self) -> u32 {
        self.producer().load(Ordering::Acquire).wrapping_sub(self.own)
    }

    /// Consuming: gives the places of taken entries back.
    pub fn release(&mut self) {
        self.consumer().store(self.own, Ordering::Release);
    }

    /// Producing: returns whether the kernel wants to be woken after [`Ring::publish`].
    pub fn wants_wakeup(&self) -> bool {
        // SAFETY: the word lies in the mapping, which lives as long as `self`.
        self.flags.is_none_or(|flags| unsafe { flags.as_ref() }.load(Ordering::Relaxed) & NEED_WAKEUP != 0)
    }

    fn place(&self, index: u32) -> *mut T {
        let index = usize::try_from(index & (self.size - 1)).expect("32 bits fit in usize");
        // SAFETY: the index is below `size`, and so many entries lie in the mapping.
        unsafe { self.entries.as_ptr().add(index) }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the word lies in the mapping, which lives as long as `self`, and is only used atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { self.consumer.as_ref() }
    }
}

/// `XDP_RING_NEED_WAKEUP`.
const NEED_WAKEUP: u32 = 1;
