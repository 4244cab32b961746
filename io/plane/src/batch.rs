// SPDX-License-Identifier: Apache-2.0
//! Packets as they come out of a driver, many at a time.

use std::ops::Range;

use crate::limits;
use crate::{InterfaceId, PacketId};

/// One received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its name for `finish`.
    pub id: PacketId,
    /// Where it came in.
    pub interface: InterfaceId,
    /// The packet from its IP header on.
    pub bytes: &'a [u8],
}

/// Room for [`limits::BATCH_PACKETS_MAX`] packets of any length, used again and again.
///
/// How the packets lie in it is the crate's own affair: a driver whose packets stand in memory shared with the kernel
/// can come to lend them without a change for those who read the batch.
pub struct Batch {
    storage: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    id: PacketId,
    interface: InterfaceId,
    range: Range<usize>,
}

impl Batch {
    /// Returns an empty batch. Its memory is taken from the system page by page as packets touch it.
    pub fn new() -> Batch {
        let storage = vec![0; limits::BATCH_PACKETS_MAX * limits::SLOT_BYTES];
        Batch { storage, entries: Vec::with_capacity(limits::BATCH_PACKETS_MAX) }
    }

    /// Takes all packets out.
    #[inline]
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns how many packets there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no packet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether no further packet fits.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() == limits::BATCH_PACKETS_MAX
    }

    /// Returns the packet at `index`, counted from 0 in the order of arrival.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Packet<'_>> {
        self.entries.get(index).map(|entry| self.packet(entry))
    }

    /// Returns the packets in the order of arrival.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Packet<'_>> {
        self.entries.iter().map(|entry| self.packet(entry))
    }

    /// Copies a packet in; returns false, and does nothing, when the batch is full or the packet too long for it.
    #[inline]
    pub fn push(&mut self, id: PacketId, interface: InterfaceId, bytes: &[u8]) -> bool {
        if self.is_full() || bytes.len() > limits::SLOT_BYTES {
            return false;
        }
        let start = self.entries.len() * limits::SLOT_BYTES;
        self.storage[start..start + bytes.len()].copy_from_slice(bytes);
        self.entries.push(Entry { id, interface, range: start..start + bytes.len() });
        true
    }

    /// Takes packets out by name.
    pub fn remove(&mut self, ids: &[PacketId]) {
        if !ids.is_empty() {
            self.entries.retain(|entry| !ids.contains(&entry.id));
        }
    }

    /// Returns the memory of all slots, to receive into.
    #[inline]
    pub fn storage_mut(&mut self) -> &mut [u8] {
        &mut self.storage
    }

    /// Returns the first bytes of a slot.
    #[inline]
    pub fn slot(&self, slot: usize, length: usize) -> &[u8] {
        &self.storage[slot * limits::SLOT_BYTES..][..length]
    }

    /// Makes a packet of what was received into a slot.
    #[inline]
    pub fn adopt(&mut self, id: PacketId, interface: InterfaceId, slot: usize, range: Range<usize>) {
        let start = slot * limits::SLOT_BYTES;
        self.entries.push(Entry { id, interface, range: start + range.start..start + range.end });
    }

    #[inline]
    fn packet(&self, entry: &Entry) -> Packet<'_> {
        Packet { id: entry.id, interface: entry.interface, bytes: &self.storage[entry.range.clone()] }
    }
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
