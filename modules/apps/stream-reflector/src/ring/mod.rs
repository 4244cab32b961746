// SPDX-License-Identifier: Apache-2.0
//! The newest frames of a stream. Places are counted in bytes from the stream's begin, and so is time, in microseconds of sound.

use std::collections::VecDeque;

use crate::limits::{FRAMES_MAX, RING_BYTES_MAX};

/// The newest frames of a stream, in no more memory than [`RING_BYTES_MAX`].
#[derive(Clone, Debug, Default)]
pub struct Ring {
    bytes: VecDeque<u8>,
    /// The place of the first byte.
    begin: u64,
    frames: VecDeque<Mark>,
    /// When the next frame will begin.
    end_us: u64,
}

/// Where a frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its place.
    pub at: u64,
    /// Its time.
    pub us: u64,
    /// Whether it can be decoded without those before it.
    pub is_alone: bool,
}

impl Ring {
    /// Returns an empty one whose first frame will be at this place and time.
    pub fn at(begin: u64, end_us: u64) -> Ring {
        Ring { begin, end_us, ..Ring::default() }
    }

    /// Adds a frame; the oldest ones give way.
    pub fn push(&mut self, frame: &[u8], duration_us: u64, is_alone: bool) {
        if frame.len() > RING_BYTES_MAX {
            return;
        }
        while self.bytes.len() + frame.len() > RING_BYTES_MAX || self.frames.len() >= FRAMES_MAX {
            self.frames.pop_front();
            let next = self.frames.front().map_or(self.end(), |mark| mark.at);
            self.bytes.drain(..usize::try_from(next - self.begin).unwrap_or(self.bytes.len()));
            self.begin = next;
        }
        self.make_room(self.bytes.len() + frame.len());
        self.frames.push_back(Mark { at: self.end(), us: self.end_us, is_alone });
        self.bytes.extend(frame);
        self.end_us += duration_us;
    }

    /// Returns the place of the oldest byte.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Returns the place behind the newest byte.
    pub fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    /// Returns the time behind the newest frame.
    pub fn end_us(&self) -> u64 {
        self.end_us
    }

    /// Returns the place up to which frames begin before a time.
    pub fn before(&self, us: u64) -> u64 {
        let count = self.frames.partition_point(|mark| mark.us < us);
        self.frames.get(count).map_or(self.end(), |mark| mark.at)
    }

    /// Returns whether a frame begins at a place, or will.
    pub fn begins(&self, at: u64) -> bool {
        at == self.end() || self.frames.binary_search_by_key(&at, |mark| mark.at).is_ok()
    }

    /// Returns the frame with which to begin at a place and a time, or behind the later of both: within a second and a half one that
    /// needs none before it, if there is one. Without any frame it is where the next one will be.
    pub fn start(&self, at: u64, us: u64) -> Mark {
        let first = self.frames.partition_point(|mark| mark.us < us || mark.at < at);
        let mut later = self.frames.range(first..);
        let Some(mark) = later.next().or(self.frames.back()) else {
            return Mark { at: self.end(), us: self.end_us, is_alone: true };
        };
        let is_near = |other: &&Mark| other.us < mark.us + ALONE_WITHIN_US;
        let near = std::iter::once(mark).chain(later).take_while(is_near).find(|mark| mark.is_alone);
        *near.unwrap_or(mark)
    }

    /// Appends the bytes between two places, those that are there.
    pub fn copy(&self, from: u64, to: u64, into: &mut Vec<u8>) {
        let place = |of: u64| usize::try_from(of.clamp(self.begin, self.end()) - self.begin).unwrap_or(0);
        let (from, to) = (place(from), place(to));
        let (first, second) = self.bytes.as_slices();
        for (part, skipped) in [(first, 0), (second, first.len())] {
            let [begin, end] = [from, to].map(|place| place.saturating_sub(skipped).min(part.len()));
            into.extend_from_slice(&part[begin..end.max(begin)]);
        }
    }

    /// Returns the place of the last but so many frames; nothing if there are not so many.
    pub fn last_but(&self, count: usize) -> Option<u64> {
        Some(self.frames.get(self.frames.len().checked_sub(count)?)?.at)
    }

    /// Returns the first of the last frames before a place where one begins, or the end, which are so many bytes at most; without any it
    /// is what begins there.
    pub fn part(&self, end: u64, bytes: usize) -> Mark {
        let first = self.frames.partition_point(|mark| mark.at < end.saturating_sub(bytes as u64));
        let mark = self.frames.get(first).filter(|mark| mark.at <= end).copied();
        mark.unwrap_or(Mark { at: self.end(), us: self.end_us, is_alone: true })
    }

    /// Adds older frames, if they are those right before the oldest one, and there is room.
    pub fn prepend(&mut self, older: &Ring) {
        let (bytes, frames) = (self.bytes.len() + older.bytes.len(), self.frames.len() + older.frames.len());
        if older.frames.is_empty() || older.end() != self.begin || bytes > RING_BYTES_MAX || frames > FRAMES_MAX {
            return;
        }
        self.make_room(bytes);
        self.begin = older.begin;
        older.frames.iter().rev().for_each(|mark| self.frames.push_front(*mark));
        older.bytes.iter().rev().for_each(|byte| self.bytes.push_front(*byte));
    }

    /// Has memory for so many bytes, and for no more than there may be.
    fn make_room(&mut self, needed: usize) {
        if self.bytes.capacity() < needed {
            let wanted = needed.max(2 * self.bytes.capacity()).min(RING_BYTES_MAX);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
    }
}

/// How long a frame is waited for that needs none before it.
const ALONE_WITHIN_US: u64 = 1_500_000;

#[cfg(test)]
mod tests;
