// SPDX-License-Identifier: Apache-2.0
//! What a source sends first: where it goes on from what is there, if it does, and else where to begin.

use std::collections::VecDeque;

use crate::frames::{Codec, Header, Kind, mpeg, parse_header};
use crate::limits::{
    ANCHOR_FRAMES, JOIN_BYTES_MAX, JOIN_MS_MAX, LEAD_BYTES_MAX, MOVED_JOIN_BYTES_MAX, MOVED_JOIN_MS_MAX, TITLES_MAX,
};
use crate::listener::Titles;
use crate::ring::Ring;

/// Frames that are not in the ring yet.
#[derive(Clone, Debug)]
pub struct Joining {
    bytes: Vec<u8>,
    frames: Vec<Pending>,
    /// Titles, and behind how many of the bytes they begin.
    titles: VecDeque<(usize, Vec<u8>)>,
    /// The last frames of the ring; nothing if it has not so many.
    anchor: Vec<u8>,
    /// What these are, and the last one that came.
    kind: Option<Kind>,
    last_kind: Option<Kind>,
    begun_ms: u64,
    /// Whether the source may begin as far back as a reflector does.
    is_moved: bool,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    length: usize,
    duration_us: u64,
    is_alone: bool,
}

/// Where a source goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is not known yet.
    Unknown,
    /// Behind all frames that have come: they are the ring's last ones.
    Behind,
    /// With this one of them.
    With(usize),
    /// Nowhere: it begins as it did at first.
    Again,
}

impl Joining {
    /// Begins behind what is in a ring. One that has `moved` may come from another reflector.
    pub fn behind(ring: &Ring, now_ms: u64, is_moved: bool) -> Joining {
        let mut anchor = Vec::new();
        if let Some(at) = ring.last_but(ANCHOR_FRAMES) {
            ring.copy(at, ring.end(), &mut anchor);
        }
        let (bytes, frames, titles) = (Vec::new(), Vec::new(), VecDeque::new());
        let kind = parse_header(&anchor).map(|header| header.kind);
        Joining { bytes, frames, titles, anchor, kind, last_kind: None, begun_ms: now_ms, is_moved }
    }

    /// Adds a frame.
    pub fn push(&mut self, frame: &[u8], header: &Header) {
        let is_alone = is_alone(frame, header);
        self.bytes.extend_from_slice(frame);
        self.last_kind = Some(header.kind);
        self.frames.push(Pending { length: frame.len(), duration_us: header.duration_us, is_alone });
    }

    /// Adds a title that begins so many bytes behind the frames that were added.
    pub fn push_title(&mut self, behind: usize, text: &[u8]) {
        if self.titles.len() >= TITLES_MAX {
            self.titles.pop_front();
        }
        self.titles.push_back((self.bytes.len() + behind, text.to_vec()));
    }

    /// Returns whether the source has frames of another kind, at which players may stop: another rate, or number of channels.
    pub fn is_of_other_kind(&self) -> bool {
        self.kind.zip(self.last_kind).is_some_and(|(kind, last)| kind != last)
    }

    /// Returns where the source goes on, whose first frames ever are `opening`, if it may be a file.
    pub fn place(&self, now_ms: u64, opening: &[u8]) -> Place {
        let Some(last) = self.frames.last() else { return Place::Unknown };
        let is_new = self.anchor.is_empty();
        if is_new && last.is_alone {
            return Place::With(self.frames.len() - 1);
        }
        if !is_new && self.frames.len() >= ANCHOR_FRAMES && self.bytes.ends_with(&self.anchor) {
            return Place::Behind;
        }
        let (most, most_ms) = match (is_new, self.is_moved) {
            (true, _) => (LEAD_BYTES_MAX, JOIN_MS_MAX),
            (false, false) => (JOIN_BYTES_MAX, JOIN_MS_MAX),
            (false, true) => (MOVED_JOIN_BYTES_MAX, MOVED_JOIN_MS_MAX),
        };
        if self.bytes.len() >= most || now_ms.saturating_sub(self.begun_ms) > most_ms {
            if !is_new && !opening.is_empty() && self.bytes.starts_with(opening) {
                return Place::Again;
            }
            return Place::With(self.frames.iter().position(|frame| frame.is_alone).unwrap_or(0));
        }
        Place::Unknown
    }

    /// Puts frames into the ring, from this one on, and titles where they belong.
    pub fn finish(self, first: usize, ring: &mut Ring, titles: &mut Titles) {
        let skipped: usize = self.frames.iter().take(first).map(|frame| frame.length).sum();
        for (at, text) in &self.titles {
            titles.push(ring.end() + at.saturating_sub(skipped) as u64, text);
        }
        let mut rest = &self.bytes[..];
        for (number, frame) in self.frames.iter().enumerate() {
            let (bytes, later) = rest.split_at(frame.length);
            rest = later;
            if number >= first {
                ring.push(bytes, frame.duration_us, frame.is_alone);
            }
        }
    }
}

/// Returns whether a frame can be decoded without those before it.
pub fn is_alone(frame: &[u8], header: &Header) -> bool {
    match header.kind.codec {
        Codec::Mpeg => mpeg::is_alone(frame),
        Codec::Adts => true,
    }
}

#[cfg(test)]
mod tests;
