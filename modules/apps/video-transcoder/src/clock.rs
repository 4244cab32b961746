// SPDX-License-Identifier: Apache-2.0
//! Holds a source to real time: by the clock among the packets of an MPEG transport stream (ISO/IEC 13818-1 §2.4.2.2), and by bytes.

use std::collections::VecDeque;

use crate::limits::{
    BURST_BYTES_MAX, BYTES_PER_S_MAX, EARLY_BYTES_AGAIN, EARLY_BYTES_MAX, EARLY_MS_MAX, JUMP_MS_MAX, LATE_MS_MAX,
    LOST_BYTES_MAX, NO_CLOCK_BYTES_MAX,
};

/// Keeps packets until it is their time.
#[derive(Debug, Default)]
pub struct Pacer {
    /// The start of a packet.
    rest: Vec<u8>,
    /// Packets with the time at which they are due.
    early: VecDeque<(u64, Vec<u8>)>,
    early_bytes: usize,
    /// Which packets have the clock.
    pid: Option<u16>,
    /// What it said last, and when that was or will be due.
    last: Option<(u64, u64)>,
    /// Bytes since then.
    since: usize,
    /// Bytes between packets, and packets in a row without any.
    lost: usize,
    in_row: u32,
    /// Bytes that may be given, as of a time.
    budget: Option<(u64, u64)>,
}

/// A stream in which there is no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoClock;

impl Pacer {
    /// Takes bytes.
    ///
    /// # Errors
    /// They are none of an MPEG transport stream.
    pub fn push(&mut self, now_ms: u64, bytes: &[u8]) -> Result<(), NoClock> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let mut left = all.as_slice();
        while let Some(place) = left.iter().position(|byte| *byte == SYNC) {
            self.since += place;
            self.lost += place;
            left = &left[place..];
            let Some((packet, after)) = left.split_at_checked(PACKET) else { break };
            self.in_row = if place == 0 { self.in_row.saturating_add(1) } else { 0 };
            if self.in_row >= IN_ROW {
                self.lost = 0;
            }
            self.packet(now_ms, packet)?;
            left = after;
        }
        if left.first() == Some(&SYNC) {
            self.rest = left.to_vec();
        } else {
            self.since += left.len();
            self.lost += left.len();
        }
        let is_far_ahead = self.early.back().is_some_and(|(due_ms, _)| *due_ms > now_ms + EARLY_MS_MAX);
        if is_far_ahead || self.lost > LOST_BYTES_MAX {
            return Err(NoClock);
        }
        self.check()
    }

    fn packet(&mut self, now_ms: u64, packet: &[u8]) -> Result<(), NoClock> {
        let pid = u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2]);
        let mut begins = self.early.is_empty();
        if let Some(clock_ms) = clock(packet).filter(|_| self.pid.is_none_or(|known| known == pid)) {
            self.pid = Some(pid);
            self.since = 0;
            let due_ms = self.due(now_ms, clock_ms);
            self.last = Some((clock_ms, due_ms));
            begins = true;
        }
        self.since += PACKET;
        let due_ms = self.last.map_or(now_ms, |(_, due_ms)| due_ms);
        match self.early.back_mut().filter(|(_, packets)| !begins && packets.len() < PIECE_BYTES) {
            Some((_, packets)) => packets.extend_from_slice(packet),
            None => self.early.push_back((due_ms, packet.to_vec())),
        }
        self.early_bytes += PACKET;
        self.check()
    }

    fn due(&self, now_ms: u64, clock_ms: u64) -> u64 {
        let Some((last_ms, due_ms)) = self.last else { return now_ms };
        match clock_ms.checked_sub(last_ms).filter(|step| *step <= JUMP_MS_MAX) {
            Some(step) if due_ms + step + LATE_MS_MAX >= now_ms => due_ms + step,
            Some(_) => now_ms,
            None => due_ms.max(now_ms),
        }
    }

    /// A clock that is not there any more gives way to another one.
    fn check(&mut self) -> Result<(), NoClock> {
        if self.since <= NO_CLOCK_BYTES_MAX {
            return Ok(());
        }
        self.since = 0;
        self.pid.take().map(drop).ok_or(NoClock)
    }

    /// Returns the next packets that are due, if there are some.
    pub fn poll(&mut self, now_ms: u64) -> Option<Vec<u8>> {
        let (at_ms, bytes) = self.budget.unwrap_or((now_ms, BURST_BYTES_MAX));
        let more = now_ms.saturating_sub(at_ms).saturating_mul(BYTES_PER_S_MAX) / 1000;
        let budget = bytes.saturating_add(more).min(BURST_BYTES_MAX);
        self.budget = Some((now_ms, budget));
        let (_, packets) = self.early.front().filter(|(due_ms, _)| *due_ms <= now_ms)?;
        let left = budget.checked_sub(packets.len() as u64)?;
        self.budget = Some((now_ms, left));
        let (_, packets) = self.early.pop_front()?;
        self.early_bytes -= packets.len();
        Some(packets)
    }

    /// Returns whether so much waits that its source is to be read no more.
    pub fn is_full(&self) -> bool {
        self.early_bytes > EARLY_BYTES_MAX
    }

    /// Returns whether so little waits that it is read again.
    pub fn has_room(&self) -> bool {
        self.early_bytes <= EARLY_BYTES_AGAIN
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.early.is_empty()
    }
}

/// Returns the program clock reference of a packet, in milliseconds.
fn clock(packet: &[u8]) -> Option<u64> {
    let has_one = packet[3] & 0x20 != 0 && packet[4] >= 7 && packet[5] & 0x10 != 0;
    let high = u64::from(u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]]));
    has_one.then_some((high << 1 | u64::from(packet[10] >> 7)) / 90)
}

const PACKET: usize = 188;
/// So many packets in a row are none by chance.
const IN_ROW: u32 = 5;
const SYNC: u8 = 0x47;
/// Bytes of packets that are given at once.
const PIECE_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{clocked, packet};

    #[test]
    fn what_comes_at_once_is_given_in_its_time() {
        let mut pacer = Pacer::default();
        let stream: Vec<u8> = (0..50).flat_map(|n| [clocked(7_000 + 40 * n), packet(9)].concat()).collect();
        for piece in stream.chunks(100) {
            pacer.push(1_000, piece).unwrap();
        }
        let given =
            |pacer: &mut Pacer, now_ms| std::iter::from_fn(|| pacer.poll(now_ms)).map(|bytes| bytes.len()).sum();
        let of_a_picture = 2 * PACKET;
        let mut all: Vec<usize> = vec![given(&mut pacer, 1_000), given(&mut pacer, 1_039), given(&mut pacer, 1_040)];
        assert_eq!(all, [of_a_picture, 0, of_a_picture]);
        all.push(given(&mut pacer, 1_000 + 49 * 40));
        assert!(pacer.is_empty() && all.iter().sum::<usize>() == stream.len());
    }

    #[test]
    fn a_late_source_and_a_clock_that_jumps_go_on_from_now() {
        let mut pacer = Pacer::default();
        let mut due = |now_ms, clock_ms| {
            pacer.push(now_ms, &clocked(clock_ms)).unwrap();
            let due_ms = pacer.early.back().unwrap().0;
            while pacer.poll(u64::MAX / 2).is_some() {}
            pacer.budget = None;
            due_ms
        };
        assert_eq!(due(0, 100), 0);
        assert_eq!(due(900, 140), 40, "a little late");
        assert_eq!(due(20_000, 180), 20_000, "too late to make up for");
        assert_eq!(due(20_000, 1_180), 21_000);
        assert_eq!(due(20_500, 20), 21_000, "back");
        assert_eq!(due(20_500, 10_000_000), 21_000, "far ahead");
    }

    #[test]
    fn what_waits_is_bounded_and_so_are_bytes_in_a_second() {
        let mut pacer = Pacer::default();
        let mut pushed = 0;
        while !pacer.is_full() {
            pacer.push(0, &clocked(pushed as u64 / PACKET as u64)).unwrap();
            pushed += PACKET;
        }
        assert!(pushed <= EARLY_BYTES_MAX + PACKET && !pacer.has_room());
        // A clock that stands still makes all of it due at once.
        let mut pacer = Pacer::default();
        let stream = [clocked(0), vec![packet(9); 100].concat()].concat();
        let mut given = 0;
        for ms in 0..1_000_u64 {
            for _ in 0..5 {
                if !pacer.is_full() {
                    pacer.push(ms, &stream).unwrap();
                }
            }
            given += std::iter::from_fn(|| pacer.poll(ms)).map(|bytes| bytes.len() as u64).sum::<u64>();
        }
        assert!(given <= BURST_BYTES_MAX + BYTES_PER_S_MAX, "{given}");
        assert!(given > BYTES_PER_S_MAX / 2, "{given}");
    }

    #[test]
    fn without_a_clock_it_is_no_stream() {
        for bytes in [packet(9), vec![0; 188], vec![SYNC; 188]] {
            let mut pacer = Pacer::default();
            let mut pushed = 0;
            let refused = loop {
                if pacer.push(0, &bytes).is_err() {
                    break true;
                }
                while pacer.poll(1 << 40).is_some() {}
                pacer.budget = None;
                pushed += bytes.len();
                if pushed > 2 * NO_CLOCK_BYTES_MAX {
                    break false;
                }
            };
            assert!(refused, "{:?}", &bytes[..4]);
        }
    }

    #[test]
    fn another_clock_takes_over_when_one_is_gone() {
        let mut pacer = Pacer::default();
        pacer.push(0, &clocked(5)).unwrap();
        let others = vec![packet(9); NO_CLOCK_BYTES_MAX / PACKET + 2].concat();
        pacer.push(0, &others).unwrap();
        assert_eq!(pacer.pid, None);
        pacer.push(0, &clocked(6)).unwrap();
        assert!(pacer.pid.is_some());
    }
}
