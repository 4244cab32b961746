// SPDX-License-Identifier: Apache-2.0
//! A module's memory as host calls see it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use netserv_worker_base::error::HostError;

const WORD_BYTES: usize = 8;

/// The part of a module's memory where the ring's slots are mapped.
#[derive(Clone, Copy, Debug)]
pub struct MappedSlots {
    /// The address of the first slot in the module's memory.
    pub start: usize,
    /// The slots, as the ring has them.
    pub words: &'static [AtomicU64],
}

/// A module's memory. The node may write to slots of the ring at any time, so what is mapped of them is never lent out:
/// it is copied, through the ring's own atomic words.
pub struct GuestMemory<'a> {
    before: &'a mut [u8],
    slots: &'a [AtomicU64],
    after: &'a mut [u8],
}

impl<'a> GuestMemory<'a> {
    /// Takes a module's memory. Of `bytes`, those where slots are mapped are never touched.
    pub fn new(bytes: &'a mut [u8], mapped: Option<MappedSlots>) -> GuestMemory<'a> {
        match mapped {
            None => GuestMemory { before: bytes, slots: &[], after: &mut [] },
            Some(MappedSlots { start, words }) => {
                let (before, rest) = bytes.split_at_mut(start);
                let (_, after) = rest.split_at_mut(words.len() * WORD_BYTES);
                GuestMemory { before, slots: words, after }
            }
        }
    }

    /// Returns the bytes that the module means. Of a range with slots in it, `max` bytes and one more are enough: what
    /// is longer is refused or cut by all who ask.
    ///
    /// # Errors
    /// [`HostError::BadAddress`] if they reach beyond the memory.
    pub fn read(&self, address: u32, length: u32, max: usize) -> Result<Cow<'_, [u8]>, HostError> {
        let range = self.check(address, length)?;
        if range.end <= self.slots_start() {
            return Ok(Cow::Borrowed(&self.before[range]));
        }
        if range.start >= self.slots_end() {
            return Ok(Cow::Borrowed(&self.after[range.start - self.slots_end()..range.end - self.slots_end()]));
        }
        let [before, slots, after] = self.split(range.start..range.end.min(range.start + max + 1));
        let mut bytes = self.before[before].to_vec();
        bytes.extend(copy_out(self.slots, slots));
        bytes.extend_from_slice(&self.after[after]);
        Ok(Cow::Owned(bytes))
    }

    /// Returns the bytes that the module means, as [`GuestMemory::read`] does but without memory for each call: bytes of
    /// slots are copied into `scratch`.
    ///
    /// # Errors
    /// [`HostError::BadAddress`] if they reach beyond the memory, [`HostError::TooLarge`] if there are more than `max`.
    pub fn lend<'b>(
        &'b self,
        address: u32,
        length: u32,
        max: usize,
        scratch: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], HostError> {
        let range = self.check(address, length)?;
        if range.len() > max {
            return Err(HostError::TooLarge);
        }
        let length = range.len();
        let [before, slots, after] = self.split(range);
        if length == before.len() {
            return Ok(&self.before[before]);
        }
        if length == after.len() {
            return Ok(&self.after[after]);
        }
        // Whole words are copied. Only if nothing comes before the slots, the first of them may begin earlier.
        let skipped = slots.start % WORD_BYTES;
        let words = &self.slots[slots.start / WORD_BYTES..slots.end.div_ceil(WORD_BYTES)];
        let (middle, end) = (before.len(), before.len() + skipped + slots.len());
        let room = middle + words.len() * WORD_BYTES + after.len();
        if scratch.len() < room {
            scratch.resize(room, 0);
        }
        scratch[..middle].copy_from_slice(&self.before[before]);
        for (bytes, word) in scratch[middle..].as_chunks_mut::<WORD_BYTES>().0.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        scratch[end..end + after.len()].copy_from_slice(&self.after[after]);
        Ok(&scratch[skipped..skipped + length])
    }

    /// Writes `value` where the module wants it if it fits there, and returns its length.
    ///
    /// # Errors
    /// [`HostError::BadAddress`] if the place reaches beyond the memory.
    pub fn put(&mut self, address: u32, length: u32, value: &[u8]) -> Result<i32, HostError> {
        let place = self.check(address, length)?;
        if value.len() <= place.len() {
            self.write(place.start, value);
        }
        i32::try_from(value.len()).map_err(|_| HostError::TooLarge)
    }

    fn write(&mut self, start: usize, value: &[u8]) {
        let [before, slots, after] = self.split(start..start + value.len());
        let (first, rest) = value.split_at(before.len());
        let (middle, last) = rest.split_at(slots.len());
        self.before[before].copy_from_slice(first);
        copy_in(self.slots, slots.start, middle);
        self.after[after].copy_from_slice(last);
    }

    /// Returns the bytes from `address` on, after a look at whether they are there.
    fn check(&self, address: u32, length: u32) -> Result<Range<usize>, HostError> {
        let start = address as usize;
        let end = start.checked_add(length as usize).ok_or(HostError::BadAddress)?;
        if end <= self.slots_end() + self.after.len() { Ok(start..end) } else { Err(HostError::BadAddress) }
    }

    /// Returns which bytes of each of the three parts a range is.
    fn split(&self, range: Range<usize>) -> [Range<usize>; 3] {
        let part = |from: usize, length: usize| {
            let inside = |at: usize| at.saturating_sub(from).min(length);
            inside(range.start)..inside(range.end)
        };
        [
            part(0, self.before.len()),
            part(self.slots_start(), self.slots.len() * WORD_BYTES),
            part(self.slots_end(), self.after.len()),
        ]
    }

    fn slots_start(&self) -> usize {
        self.before.len()
    }

    fn slots_end(&self) -> usize {
        self.before.len() + self.slots.len() * WORD_BYTES
    }
}

fn copy_out(words: &[AtomicU64], range: Range<usize>) -> Vec<u8> {
    let first = range.start / WORD_BYTES;
    let whole = words[first..range.end.div_ceil(WORD_BYTES)].iter();
    let mut bytes: Vec<u8> = whole.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    bytes.truncate(range.end - first * WORD_BYTES);
    bytes.drain(..range.start % WORD_BYTES);
    bytes
}

fn copy_in(words: &[AtomicU64], start: usize, value: &[u8]) {
    for (at, byte) in (start..).zip(value) {
        let word = &words[at / WORD_BYTES];
        let mut bytes = word.load(Ordering::Relaxed).to_le_bytes();
        bytes[at % WORD_BYTES] = *byte;
        word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses 16 to 31 are slots.
    const MAPPED: Range<usize> = 16..32;

    #[test]
    fn every_range_is_read_and_written_as_if_nothing_were_mapped() {
        for start in 0..48_u32 {
            for length in 0..=48 - start {
                check(start, length);
            }
        }
    }

    #[test]
    fn nothing_beyond_the_memory_is_touched() {
        for mapped in [None, Some(slots())] {
            let mut bytes = [0; 48];
            let mut memory = GuestMemory::new(&mut bytes, mapped);
            for (address, length) in [(48, 1), (0, 49), (20, 29), (49, 0), (u32::MAX, u32::MAX)] {
                assert_eq!(memory.read(address, length, 100), Err(HostError::BadAddress));
                assert_eq!(memory.put(address, length, b"x"), Err(HostError::BadAddress));
                assert_eq!(memory.lend(address, length, 100, &mut Vec::new()), Err(HostError::BadAddress));
            }
            assert_eq!(memory.read(48, 0, 100).as_deref(), Ok(&[][..]));
        }
    }

    #[test]
    fn slots_are_copied_no_further_than_asked() {
        let mut bytes = [0; 48];
        let memory = GuestMemory::new(&mut bytes, Some(slots()));
        assert_eq!(memory.read(17, 20, 4).unwrap().len(), 5);
        assert_eq!(memory.lend(17, 20, 19, &mut Vec::new()), Err(HostError::TooLarge));
        assert_eq!(memory.lend(0, 5, 4, &mut Vec::new()), Err(HostError::TooLarge));
    }

    #[test]
    fn a_value_that_does_not_fit_is_not_written() {
        let mut bytes = [0; 48];
        let mut memory = GuestMemory::new(&mut bytes, Some(slots()));
        assert_eq!(memory.put(14, 4, &[7; 5]), Ok(5));
        assert_eq!(memory.read(0, 48, 48).as_deref(), Ok(&[0; 48][..]));
    }

    fn check(start: u32, length: u32) {
        let (mut plain, mut bytes): ([u8; 48], [u8; 48]) = ([0; 48], [0; 48]);
        let value: Vec<u8> = (1..=u8::try_from(length).unwrap()).collect();
        let slots = slots();
        let mut memory = GuestMemory::new(&mut bytes, Some(slots));
        assert_eq!(memory.put(start, length, &value), Ok(i32::try_from(length).unwrap()));
        GuestMemory::new(&mut plain, None).put(start, length, &value).unwrap();
        assert_eq!(memory.read(0, 48, 48).as_deref(), Ok(&plain[..]));
        assert_eq!(memory.read(start, length, 48).as_deref(), Ok(&value[..]));
        assert_eq!(memory.lend(start, length, 48, &mut vec![0xff; 7]), Ok(&value[..]));
        assert_eq!(bytes[MAPPED], [0; 16], "what lies below the slots is not touched");
    }

    fn slots() -> MappedSlots {
        MappedSlots { start: MAPPED.start, words: Vec::leak(vec![AtomicU64::new(0), AtomicU64::new(0)]) }
    }
}
