// SPDX-License-Identifier: Apache-2.0
//! Takes decisions out of bytes.

/// Bytes that a fuzzer chose, taken from the front.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// Returns the next byte, or nothing at the end.
    pub(crate) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Returns the next byte, or 0 at the end.
    pub(crate) fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    /// Returns the next 16 bits, missing ones as 0.
    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Returns as many bytes as wanted, or as there are.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Returns a place in something of a length, which must not be 0.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::from(self.byte()) % length
    }
}
