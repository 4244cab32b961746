// SPDX-License-Identifier: Apache-2.0
//! Blocks as they are read: from memory, else from the disk.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::block::{self, HEADER_BYTES, PAYLOAD_BYTES, REST, place};
use super::error::CacheError;
use super::memory::Memory;
use crate::storage::Disk;
use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_STREAM_BYTES_MIN};

/// Bytes that were read.
#[derive(Clone, Debug, Default)]
pub struct Lent {
    /// The bytes.
    pub bytes: Bytes,
    /// Whether their memory is counted, and shared by all who have them. If it is not, they are few.
    pub is_shared: bool,
}

impl Lent {
    /// Returns some of the bytes; few of them if those are a copy.
    pub(super) fn part(&self, range: Range<usize>) -> Lent {
        if self.is_shared {
            Lent { bytes: self.bytes.slice(range), is_shared: true }
        } else {
            Lent::copy(&self.bytes, range)
        }
    }

    fn copy(bytes: &[u8], range: Range<usize>) -> Lent {
        let few = range.start..range.end.min(range.start + CACHE_STREAM_BYTES_MIN);
        Lent { bytes: Bytes::copy_from_slice(&bytes[few]), is_shared: false }
    }
}

/// Some bytes of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// Which block of the file it is.
    pub(super) block: u32,
    /// The number of the part, and the block's place in it.
    pub(super) part: (u64, u32),
    /// Where they begin in its payload.
    pub(super) from: usize,
    /// How many they are at most.
    pub(super) max: usize,
}

/// Returns where some of the rest of a body is. `block` says which one has which place.
pub(super) fn rest_spot(
    block: impl Fn(usize) -> Option<u32>,
    number: u64,
    at: u64,
    max: usize,
) -> Result<Spot, CacheError> {
    let (index, from) = (at / PAYLOAD_BYTES as u64, at % PAYLOAD_BYTES as u64);
    let index = u32::try_from(index).map_err(|_| CacheError::Damaged)?;
    let block = block(index as usize).ok_or(CacheError::Damaged)?;
    Ok(Spot { block, part: (number, index | REST), from: usize::try_from(from).unwrap_or(0), max })
}

/// The file, and those of its blocks that are in memory.
#[derive(Clone)]
pub(super) struct BlockFile {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) memory: Arc<Memory>,
}

impl BlockFile {
    /// Returns a file, and none of its blocks, in a container of `memory_bytes`.
    pub(super) fn new(disk: Arc<dyn Disk>, memory_bytes: u64) -> BlockFile {
        BlockFile { disk, memory: Arc::new(Memory::within(memory_bytes)) }
    }

    /// Returns some bytes of a block, if it is in memory.
    pub(super) fn find(&self, spot: Spot) -> Option<Lent> {
        let payload = self.memory.find(spot.part)?;
        let range = part_of(payload.len(), spot)?;
        Some(Lent { bytes: payload.slice(range), is_shared: true })
    }

    /// Reads some bytes of a block.
    ///
    /// # Errors
    /// The disk failed, or has another block there.
    pub(super) fn read(&self, spot: Spot) -> Result<Lent, CacheError> {
        if let Some(lent) = self.find(spot) {
            return Ok(lent);
        }
        let mut bytes = vec![0; CACHE_BLOCK_BYTES];
        self.disk.read_at(place(spot.block), &mut bytes)?;
        let (number, index) = spot.part;
        let length = block::payload(&bytes, number, index).ok_or(CacheError::Damaged)?.len();
        let range = part_of(length, spot).ok_or(CacheError::Damaged)?;
        match self.memory.share(bytes) {
            Ok(bytes) => {
                let payload = bytes.slice(HEADER_BYTES..HEADER_BYTES + length);
                self.memory.keep(spot.part, payload.clone());
                Ok(Lent { bytes: payload.slice(range), is_shared: true })
            }
            Err(bytes) => Ok(Lent::copy(&bytes[HEADER_BYTES..], range)),
        }
    }

    /// Returns bytes as what all who read them share, if there is room.
    pub(super) fn lend(&self, bytes: Vec<u8>) -> Lent {
        match self.memory.share(bytes) {
            Ok(bytes) => Lent { bytes, is_shared: true },
            Err(bytes) => Lent { bytes: bytes.into(), is_shared: false },
        }
    }

    /// Keeps a block that was written for those who read it next, if it is shared.
    pub(super) fn keep(&self, part: (u64, u32), payload: Lent) {
        if payload.is_shared {
            self.memory.keep(part, payload.bytes);
        }
    }

    /// Returns bytes, which change, as they are: shared as `shared` if that has all of them, else some from `from` on.
    pub(super) fn snapshot(&self, bytes: &[u8], shared: &mut Option<Bytes>, from: usize, max: usize) -> Option<Lent> {
        let range = from..bytes.len().min(from.saturating_add(max));
        if range.is_empty() {
            return None;
        }
        if shared.as_ref().is_none_or(|shared| shared.len() < range.end) {
            *shared = self.memory.share(bytes.to_vec()).ok();
        }
        Some(match shared {
            Some(shared) => Lent { bytes: shared.slice(range), is_shared: true },
            None => Lent::copy(bytes, range),
        })
    }
}

/// Returns which bytes of a payload are meant; nothing if there are none.
fn part_of(length: usize, spot: Spot) -> Option<Range<usize>> {
    let range = spot.from..length.min(spot.from.saturating_add(spot.max));
    (!range.is_empty()).then_some(range)
}
