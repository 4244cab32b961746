// SPDX-License-Identifier: Apache-2.0
//! Titles among the bytes of a stream: every so many bytes comes a byte that says how many times 16 bytes of text follow.

use crate::limits::{INTERVAL_MAX, TITLE_BYTES_MAX};

/// Takes titles out of what a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demuxer {
    /// Bytes between two titles; 0 if there are none.
    interval: usize,
    state: State,
}

/// What is among the bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Sound.
    Sound(&'a [u8]),
    /// A whole title, without the zeros behind it.
    Title(&'a [u8]),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes until the next title.
    Sound(usize),
    /// The byte with the length comes.
    Length,
    /// So many bytes of a title are still to come.
    Title(usize, Vec<u8>),
}

impl Demuxer {
    /// Begins at the first byte behind a head that names this interval; nothing if that cannot be.
    pub fn new(interval: usize) -> Option<Demuxer> {
        (interval <= INTERVAL_MAX).then_some(Demuxer { interval, state: State::Sound(interval) })
    }

    /// Takes the next bytes, and hands on what they are, in their order.
    pub fn push(&mut self, mut bytes: &[u8], mut found: impl FnMut(Piece<'_>)) {
        if self.interval == 0 {
            return found(Piece::Sound(bytes));
        }
        while let Some(first) = bytes.first() {
            match &mut self.state {
                State::Sound(0) => self.state = State::Length,
                State::Sound(left) => {
                    let (now, later) = bytes.split_at(bytes.len().min(*left));
                    found(Piece::Sound(now));
                    *left -= now.len();
                    bytes = later;
                }
                State::Length => {
                    self.state = match usize::from(*first) * 16 {
                        0 => State::Sound(self.interval),
                        length => State::Title(length, Vec::with_capacity(length)),
                    };
                    bytes = &bytes[1..];
                }
                State::Title(left, text) => {
                    let (now, later) = bytes.split_at(bytes.len().min(*left));
                    text.extend_from_slice(now);
                    *left -= now.len();
                    bytes = later;
                    if *left == 0 {
                        let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                        found(Piece::Title(&text[..end]));
                        self.state = State::Sound(self.interval);
                    }
                }
            }
        }
    }

    /// Returns where it is: the interval, and in what of a title and how far from the next one. See [`Demuxer::at`].
    pub fn place(&self) -> (usize, u8, usize, &[u8]) {
        match &self.state {
            State::Sound(left) => (self.interval, 0, *left, &[]),
            State::Length => (self.interval, 1, 0, &[]),
            State::Title(left, text) => (self.interval, 2, *left, text),
        }
    }

    /// Returns one that is at such a place; nothing if there is no such place.
    pub fn at(interval: usize, state: u8, left: usize, text: &[u8]) -> Option<Demuxer> {
        let state = match state {
            0 if left <= interval => State::Sound(left),
            1 => State::Length,
            2 if left > 0 && left + text.len() <= TITLE_BYTES_MAX => State::Title(left, text.to_vec()),
            _ => return None,
        };
        Demuxer::new(interval).map(|new| Demuxer { state, ..new })
    }
}

/// Puts titles among the bytes for one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Muxer {
    interval: usize,
    left: usize,
    /// The number of the title that the listener was told last.
    told: u64,
}

impl Muxer {
    /// Begins at the first byte behind a head that names this interval, which is not 0.
    pub fn new(interval: usize) -> Muxer {
        Muxer { interval, left: interval, told: 0 }
    }

    /// Returns one that has so many bytes to go until the next title; nothing if that cannot be.
    pub fn at(interval: usize, left: usize) -> Option<Muxer> {
        (interval > 0 && left <= interval).then_some(Muxer { interval, left, told: 0 })
    }

    /// Takes note of bytes of sound that went to the listener: no more than there are until the next title.
    pub fn pass(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Takes note that the listener was told nothing where a title belongs.
    pub fn skip_title(&mut self) {
        self.left = self.interval;
    }

    /// Returns the interval, and how many bytes there are until the next title.
    pub fn place(&self) -> (usize, usize) {
        (self.interval, self.left)
    }

    /// Appends bytes of sound. Where a title belongs, `title` is asked how many bytes on which one it is, and for its number, by which it
    /// is known whether the listener was told of it; number 0 is none.
    pub fn mix<'a>(&mut self, sound: &[u8], title: impl Fn(usize) -> (u64, &'a [u8]), into: &mut Vec<u8>) {
        let mut rest = sound;
        loop {
            let (now, later) = rest.split_at(rest.len().min(self.left));
            into.extend_from_slice(now);
            self.left -= now.len();
            rest = later;
            if self.left > 0 {
                return;
            }
            let (number, text) = title(sound.len() - rest.len());
            let text = if self.told == number { &[] } else { &text[..text.len().min(TITLE_BYTES_MAX)] };
            self.told = number;
            let blocks = text.len().div_ceil(16);
            into.push(u8::try_from(blocks).unwrap_or(0));
            into.extend_from_slice(text);
            into.resize(into.len() + blocks * 16 - text.len(), 0);
            self.left = self.interval;
        }
    }
}

#[cfg(test)]
mod tests;
