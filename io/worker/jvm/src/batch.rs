// SPDX-License-Identifier: Apache-2.0
//! A batch in memory that Java sees: the table of packets, and what comes back.
//!
//! An entry of the table has eight words, of which Java writes the upper halves of the first four:
//!
//! | word | lower half | upper half |
//! |---|---|---|
//! | 0 | where the packet starts in the slots | its length, before and after |
//! | 1 | how long it may become | 0 pass, 1 drop, 2 modified, 3 failed |
//! | 2 | when it came in, nanoseconds of the monotonic clock, over both halves | |
//! | 3 | the interface that it came in by | 0, or the slot, plus one, of the module that decided |
//! | 4 | the modules that see it, over both halves | |
//!
//! A packet that a module made has 2,048 bytes: its length and the module's slot in word 0, its bytes from word 8 on.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{BATCH_PACKETS_MAX, MODULES_PER_CONTAINER_MAX, PACKET_BYTES_MAX};
use netserv_wire::container::ring::{Answer, Ingress, PACKET_OFFSET, SLOT_BYTES};
use netserv_worker_base::limits;

use super::sys;

const WORD_BYTES: usize = size_of::<u64>();
const ENTRY_WORDS: usize = 8;
const INJECT_WORDS: usize = SLOT_BYTES / WORD_BYTES;

/// The memory of a batch, one page for the table and the rest for packets that modules make.
#[derive(Clone, Copy, Debug)]
pub struct BatchMemory {
    /// The table.
    pub table: &'static [AtomicU64],
    /// The packets that modules made.
    pub injects: &'static [AtomicU64],
}

/// What Java left for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The answer.
    pub answer: Answer,
    /// The packet's length, if it was modified.
    pub length: usize,
    /// The module that decided.
    pub module: Option<ModuleSlot>,
}

impl BatchMemory {
    /// Makes the memory, for the rest of the process's life.
    ///
    /// # Errors
    /// There is none left.
    pub fn new() -> io::Result<BatchMemory> {
        Ok(BatchMemory {
            table: sys::words(BATCH_PACKETS_MAX * ENTRY_WORDS)?,
            injects: sys::words(limits::INJECTS_PER_CALL_MAX * INJECT_WORDS)?,
        })
    }

    /// Puts a packet in the ring's `slot` into the table.
    #[inline]
    pub fn write(&self, index: usize, slot: usize, length: usize, ingress: Ingress, modules: u64) {
        debug_assert!(length <= PACKET_BYTES_MAX);
        let start = slot * SLOT_BYTES + PACKET_OFFSET;
        let words = [
            start as u64 | (length as u64) << 32,
            PACKET_BYTES_MAX as u64,
            ingress.timestamp_ns,
            u64::from(ingress.interface),
            modules,
        ];
        for (place, word) in self.table[index * ENTRY_WORDS..].iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Returns what Java left for a packet; nothing if that means nothing.
    #[inline]
    pub fn read(&self, index: usize) -> Option<Left> {
        let upper = |word: usize| self.table[index * ENTRY_WORDS + word].load(Ordering::Relaxed) >> 32;
        let module = module(upper(3))?;
        let answer = match upper(1) {
            0 => Answer::Pass,
            1 => Answer::Drop,
            2 => Answer::Modified,
            3 => Answer::Failed,
            _ => return None,
        };
        let length = usize::try_from(upper(0)).ok()?;
        let is_packet = (limits::PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&length);
        (answer != Answer::Modified || is_packet).then_some(Left { answer, length, module })
    }

    /// Hands each of the first `count` packets that modules made to `take`. Returns how many were none.
    pub fn take_injected(&self, count: i32, mut take: impl FnMut(ModuleSlot, &[u8])) -> usize {
        let mut nothing = 0;
        let mut packet = [0; PACKET_BYTES_MAX];
        let count = usize::try_from(count).unwrap_or(0).min(limits::INJECTS_PER_CALL_MAX);
        for words in self.injects.chunks_exact(INJECT_WORDS).take(count) {
            let first = words[0].load(Ordering::Relaxed);
            let length = usize::try_from(first & 0xffff_ffff).unwrap_or(usize::MAX);
            let slot = (first >> 32).checked_add(1).and_then(module).flatten();
            let is_packet = (limits::PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&length);
            let Some(slot) = slot.filter(|_| is_packet) else {
                nothing += 1;
                continue;
            };
            for (bytes, word) in packet.chunks_exact_mut(WORD_BYTES).zip(&words[PACKET_OFFSET / WORD_BYTES..]) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            take(slot, &packet[..length]);
        }
        nothing
    }
}

/// Reads a module slot plus one, where 0 means none. Nothing if there is no such slot.
#[inline]
fn module(word: u64) -> Option<Option<ModuleSlot>> {
    match word {
        0 => Some(None),
        _ if word <= MODULES_PER_CONTAINER_MAX as u64 => Some(u8::try_from(word - 1).ok().map(ModuleSlot)),
        _ => None,
    }
}

const _: () = assert!(PACKET_BYTES_MAX.is_multiple_of(WORD_BYTES));

#[cfg(test)]
mod tests {
    use super::*;

    fn set_upper(memory: &BatchMemory, index: usize, word: usize, value: u64) {
        let place = &memory.table[index * ENTRY_WORDS + word];
        place.store(place.load(Ordering::Relaxed) & 0xffff_ffff | value << 32, Ordering::Relaxed);
    }

    #[test]
    fn a_packet_comes_back_as_it_was_put_there() {
        let memory = BatchMemory::new().unwrap();
        let ingress = Ingress { interface: 7, timestamp_ns: 1 << 40 };
        memory.write(63, 1279, 1984, ingress, u64::MAX);
        assert_eq!(memory.read(63), Some(Left { answer: Answer::Pass, length: 1984, module: None }));
        let words: Vec<u64> = memory.table[63 * ENTRY_WORDS..].iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let start = 1279 * 2048 + 64;
        assert_eq!(words, [start | 1984 << 32, 1984, 1 << 40, 7, u64::MAX, 0, 0, 0]);
    }

    #[test]
    fn what_means_nothing_is_not_believed() {
        let memory = BatchMemory::new().unwrap();
        let check = |verdict: u64, length: u64, module: u64, fits: bool| {
            memory.write(0, 0, 64, Ingress::default(), 1);
            set_upper(&memory, 0, 0, length);
            set_upper(&memory, 0, 1, verdict);
            set_upper(&memory, 0, 3, module);
            assert_eq!(memory.read(0).is_some(), fits, "{verdict} {length} {module}");
        };
        check(2, 20, 64, true);
        check(2, 1984, 1, true);
        check(2, 19, 1, false);
        check(2, 1985, 1, false);
        check(2, 0xffff_ffff, 1, false);
        check(1, 0xffff_ffff, 1, true);
        check(3, 64, 65, false);
        check(4, 64, 0, false);
        check(0xffff_ffff, 64, 0, false);
    }

    #[test]
    fn made_packets_are_checked() {
        let memory = BatchMemory::new().unwrap();
        let set = |index: usize, length: u64, slot: u64| {
            memory.injects[index * INJECT_WORDS].store(length | slot << 32, Ordering::Relaxed);
            memory.injects[index * INJECT_WORDS + 8].store(0x0807_0605_0403_0201, Ordering::Relaxed);
        };
        set(0, 20, 63);
        set(1, 19, 0);
        set(2, 1985, 0);
        set(3, 20, 64);
        set(4, 1984, 0);
        set(5, 0xffff_ffff, 0xffff_ffff);
        let mut taken = Vec::new();
        let nothing = memory.take_injected(6, |slot, packet| taken.push((slot.0, packet.len(), packet[..3].to_vec())));
        assert_eq!((nothing, taken), (4, vec![(63, 20, vec![1, 2, 3]), (0, 1984, vec![1, 2, 3])]));
        assert_eq!(memory.take_injected(i32::MIN, |_, _| panic!("none")), 0);
        let all = (0..).take(limits::INJECTS_PER_CALL_MAX);
        all.for_each(|index| set(index, 20, 1));
        let mut count = 0;
        assert_eq!(memory.take_injected(i32::MAX, |_, _| count += 1), 0);
        assert_eq!(count, limits::INJECTS_PER_CALL_MAX);
    }
}
