// SPDX-License-Identifier: Apache-2.0
//! Blocks that are in memory, each once for all who read it.
//!
//! A block stays for as long as somebody has it, and some longer: those that nobody used go when others need the room. Without
//! room, who reads gets a copy of their own.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::compute::{Budget, Reserved};
use crate::storage::limits::{CACHE_EVICTIONS_MAX, CACHE_MEMORY_BYTES_MAX, CACHE_MEMORY_SHARE};

/// The number of a part, and the block's place in it.
pub(super) type Place = (u64, u32);

/// Blocks that are in memory.
pub(super) struct Memory {
    budget: Budget,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    blocks: BTreeMap<Place, Slot>,
    /// All of them, from the one that is looked at first when room is needed.
    order: VecDeque<Place>,
}

struct Slot {
    bytes: Bytes,
    /// Whether it was read since it was last looked at.
    is_used: bool,
}

/// A block's payload, with the memory that it takes.
struct Block {
    bytes: Vec<u8>,
    _memory: Reserved,
}

impl Memory {
    /// Returns room for blocks in a container of `memory_bytes`.
    pub(super) fn within(memory_bytes: u64) -> Memory {
        let share = usize::try_from(memory_bytes / CACHE_MEMORY_SHARE).unwrap_or(usize::MAX);
        Memory { budget: Budget::new(share.min(CACHE_MEMORY_BYTES_MAX)), kept: Mutex::default() }
    }

    /// Returns a block that is in memory.
    pub(super) fn find(&self, place: Place) -> Option<Bytes> {
        let mut kept = self.lock();
        let slot = kept.blocks.get_mut(&place)?;
        slot.is_used = true;
        Some(slot.bytes.clone())
    }

    /// Returns bytes as what all who have them share, if there is room.
    pub(super) fn share(&self, bytes: Vec<u8>) -> Result<Bytes, Vec<u8>> {
        match self.reserve(bytes.capacity()) {
            Some(memory) => Ok(Bytes::from_owner(Block { bytes, _memory: memory })),
            None => Err(bytes),
        }
    }

    /// Keeps a block for those who want it next.
    pub(super) fn keep(&self, place: Place, bytes: Bytes) {
        let mut kept = self.lock();
        if kept.blocks.insert(place, Slot { bytes, is_used: false }).is_none() {
            kept.order.push_back(place);
        }
    }

    fn reserve(&self, length: usize) -> Option<Reserved> {
        if let Ok(memory) = self.budget.reserve(length) {
            return Some(memory);
        }
        let mut kept = self.lock();
        (0..CACHE_EVICTIONS_MAX).find_map(|_| {
            let gone = kept.evict()?;
            // Somebody may have it still.
            drop(gone);
            self.budget.reserve(length).ok()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl Kept {
    /// Takes out a block that was not read since it was last looked at; nothing if there is none.
    fn evict(&mut self) -> Option<Bytes> {
        for _ in 0..=self.order.len() {
            let place = self.order.pop_front()?;
            let slot = self.blocks.get_mut(&place)?;
            if !std::mem::replace(&mut slot.is_used, false) {
                return self.blocks.remove(&place).map(|slot| slot.bytes);
            }
            self.order.push_back(place);
        }
        None
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Memory({} bytes left)", self.budget.left())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::limits::CACHE_BLOCK_BYTES;

    const BLOCKS: u64 = (CACHE_MEMORY_BYTES_MAX / CACHE_BLOCK_BYTES) as u64;

    #[test]
    fn what_is_not_read_goes_when_others_need_the_room() {
        let memory = Memory::within(u64::MAX);
        for number in 0..BLOCKS {
            keep(&memory, number).unwrap();
        }
        assert_eq!(memory.budget.left(), 0);
        assert!(memory.find((0, 0)).is_some());
        keep(&memory, BLOCKS).unwrap();
        assert!(memory.find((0, 0)).is_some(), "it was read");
        assert!(memory.find((1, 0)).is_none());
        assert!(memory.find((BLOCKS, 0)).is_some());
        assert_eq!(memory.lock().blocks.len() as u64, BLOCKS);
        assert_eq!(memory.lock().order.len() as u64, BLOCKS);
    }

    #[test]
    fn what_somebody_has_makes_no_room() {
        let memory = Memory::within(u64::MAX);
        let held: Vec<Bytes> = (0..BLOCKS).map(|number| keep(&memory, number).unwrap()).collect();
        assert!(keep(&memory, BLOCKS).is_none());
        assert_eq!(memory.budget.left(), 0);
        drop(held);
        assert_eq!(memory.lock().blocks.len() as u64, BLOCKS - CACHE_EVICTIONS_MAX as u64);
        assert_eq!(memory.budget.left(), CACHE_EVICTIONS_MAX * CACHE_BLOCK_BYTES);
        assert!(keep(&memory, BLOCKS).is_some());
    }

    /// Keeps a block of a part of this number. Returns it if there was room.
    fn keep(memory: &Memory, number: u64) -> Option<Bytes> {
        let bytes = memory.share(vec![1; CACHE_BLOCK_BYTES]).ok()?;
        memory.keep((number, 0), bytes.clone());
        Some(bytes)
    }
}
