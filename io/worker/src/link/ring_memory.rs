// SPDX-License-Identifier: Apache-2.0
//! The memory of a container's packet ring, and its slots in the memory of a module.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

use netserv_wire::container::ring::{SLOTS_BYTES, SLOTS_OFFSET};

use crate::sys;

/// The memory of a packet ring, mapped for the rest of the process's life.
#[derive(Debug)]
pub struct RingMemory {
    memory: OwnedFd,
    words: &'static [AtomicU64],
}

impl RingMemory {
    /// Maps a ring.
    ///
    /// # Errors
    /// The descriptor is no memory of a ring's size.
    pub fn open(memory: OwnedFd) -> io::Result<RingMemory> {
        let words = sys::map_ring(&memory)?;
        Ok(RingMemory { memory, words })
    }

    /// Returns the whole ring.
    pub fn words(&self) -> &'static [AtomicU64] {
        self.words
    }

    /// Returns the slots.
    pub fn slots(&self) -> &'static [AtomicU64] {
        &self.words[SLOTS_OFFSET / size_of::<AtomicU64>()..]
    }

    /// Puts the slots in the place of `memory`, [`SLOTS_BYTES`] bytes of a module's memory, whose bytes are lost.
    ///
    /// # Errors
    /// The kernel does not map them; `memory` is as it was, or empty.
    pub(crate) fn map_over(&self, memory: &mut [u8]) -> io::Result<()> {
        assert_eq!(memory.len(), SLOTS_BYTES, "the slots are mapped as a whole");
        sys::map_slots(&self.memory, memory)
    }
}
