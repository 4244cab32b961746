// SPDX-License-Identifier: Apache-2.0
//! The memory of a worker's packet rings, and their slots in the memory of a module.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

use netserv_model::limits::LANES_MAX;
use netserv_wire::container::ring::{SLOTS_BYTES, SLOTS_OFFSET};

use crate::sys;

const WORD_BYTES: usize = size_of::<AtomicU64>();

/// The memory of the packet rings, mapped for the rest of the process's life.
#[derive(Debug)]
pub struct RingMemory {
    /// By lane.
    rings: Vec<(OwnedFd, &'static [AtomicU64])>,
    /// Where the slots of all lanes lie one behind the other, with room for [`LANES_MAX`]; made for the second lane.
    room: Option<&'static [AtomicU64]>,
}

impl RingMemory {
    /// Maps the ring of lane 0.
    ///
    /// # Errors
    /// The descriptor is no memory of a ring's size.
    pub fn open(memory: OwnedFd) -> io::Result<RingMemory> {
        let words = sys::map_ring(&memory)?;
        Ok(RingMemory { rings: vec![(memory, words)], room: None })
    }

    /// Maps the ring of a further lane, and returns it.
    ///
    /// # Errors
    /// The descriptor is no memory of a ring's size, there are [`LANES_MAX`] lanes, or the kernel does not map it.
    pub fn add(&mut self, memory: OwnedFd) -> io::Result<&'static [AtomicU64]> {
        let lane = self.rings.len();
        if lane == LANES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let room = self.room()?;
        let words = sys::map_ring(&memory)?;
        sys::map_into_room(&memory, &room[lane * SLOTS_BYTES / WORD_BYTES..][..SLOTS_BYTES / WORD_BYTES])?;
        self.rings.push((memory, words));
        Ok(words)
    }

    /// Returns room for the slots of [`LANES_MAX`] lanes, of which those that there are and will be lie there.
    ///
    /// # Errors
    /// The kernel does not map them.
    pub fn room(&mut self) -> io::Result<&'static [AtomicU64]> {
        if let Some(room) = self.room {
            return Ok(room);
        }
        let room = sys::room(LANES_MAX * SLOTS_BYTES / WORD_BYTES)?;
        sys::map_into_room(&self.rings[0].0, &room[..SLOTS_BYTES / WORD_BYTES])?;
        self.room = Some(room);
        Ok(room)
    }

    /// Returns the whole ring of lane 0.
    pub fn words(&self) -> &'static [AtomicU64] {
        self.rings[0].1
    }

    /// Returns how many lanes there are.
    pub fn lanes(&self) -> usize {
        self.rings.len()
    }

    /// Returns the slots of all lanes.
    pub fn slots(&self) -> RingSlots<'_> {
        let words = match self.room {
            Some(room) => &room[..self.rings.len() * SLOTS_BYTES / WORD_BYTES],
            None => slots_of(self.words()),
        };
        RingSlots { rings: &self.rings, words }
    }

    /// Returns the slots of one lane.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn slots_of(&self, lane: usize) -> RingSlots<'_> {
        RingSlots { rings: &self.rings[lane..=lane], words: slots_of(self.rings[lane].1) }
    }
}

/// The slots of all rings of a worker, or of one.
#[derive(Clone, Copy, Debug)]
pub struct RingSlots<'a> {
    rings: &'a [(OwnedFd, &'static [AtomicU64])],
    words: &'static [AtomicU64],
}

impl RingSlots<'_> {
    /// Returns of how many lanes they are.
    pub fn lanes(&self) -> usize {
        self.rings.len()
    }

    /// Returns the slots, those of the lanes one behind the other.
    pub fn words(&self) -> &'static [AtomicU64] {
        self.words
    }

    /// Puts the slots in the place of `memory`, [`SLOTS_BYTES`] bytes of a module's memory for each lane, whose bytes are
    /// lost.
    ///
    /// # Errors
    /// The kernel does not map them; `memory` is as it was, or empty.
    pub fn map_over(&self, memory: &mut [u8]) -> io::Result<()> {
        assert_eq!(memory.len(), self.rings.len() * SLOTS_BYTES, "the slots are mapped as a whole");
        let places = memory.chunks_exact_mut(SLOTS_BYTES);
        let mapped = self.rings.iter().zip(places).try_for_each(|((ring, _), place)| sys::map_slots(ring, place));
        mapped.or_else(|error| sys::map_empty(memory).and(Err(error)))
    }
}

fn slots_of(ring: &'static [AtomicU64]) -> &'static [AtomicU64] {
    &ring[SLOTS_OFFSET / WORD_BYTES..]
}
