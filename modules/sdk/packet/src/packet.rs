// SPDX-License-Identifier: Apache-2.0
//! A packet in its slot.

use std::time::Duration;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Goes on as it came, whatever the module wrote over it.
    Pass,
    /// Goes no further.
    Drop,
    /// Goes on as the module left it.
    Modified,
}

/// One IP packet, which starts with its IP header.
#[derive(Debug)]
pub struct Packet<'a> {
    slot: &'a mut [u8],
    length: usize,
    time: Duration,
    interface: u32,
}

impl<'a> Packet<'a> {
    /// Builds a packet of the first `length` bytes of `slot`.
    ///
    /// # Panics
    /// If the slot is shorter than the packet.
    pub fn new(slot: &'a mut [u8], length: usize, time: Duration, interface: u32) -> Packet<'a> {
        assert!(length <= slot.len(), "a packet lies inside its slot");
        Packet { slot, length, time, interface }
    }

    /// Returns the packet's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.slot[..self.length]
    }

    /// Returns the packet's bytes, to be written. They go on only with [`Verdict::Modified`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.slot[..self.length]
    }

    /// Returns the packet's length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the packet has no bytes, which no packet of the node's has.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns how long the packet may become.
    pub fn capacity(&self) -> usize {
        self.slot.len()
    }

    /// Makes the packet longer or shorter at its end. What is new has no certain value. Returns false, and does
    /// nothing, beyond [`Packet::capacity`].
    #[must_use]
    pub fn resize(&mut self, length: usize) -> bool {
        let fits = length <= self.slot.len();
        if fits {
            self.length = length;
        }
        fits
    }

    /// Returns when the packet came in, on the clock of [`clock::monotonic`](crate::clock::monotonic).
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Returns the number of the interface that it came in by, 0 if unknown.
    pub fn interface(&self) -> u32 {
        self.interface
    }
}
