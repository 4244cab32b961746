// SPDX-License-Identifier: Apache-2.0
//! Who sends to a port.

use std::net::SocketAddr;

use crate::limits::{GOES_ON_PACKETS, PAUSE_MS};
use crate::table::Carries;

/// Where packets of a party come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The address.
    pub end: SocketAddr,
    /// The synchronization source that it sent last.
    pub ssrc: Option<u32>,
    /// It was learned before the newest description, which names the same as the one before.
    pub is_before: bool,
    /// Packets of it without a pause since the newest description, up to [`GOES_ON_PACKETS`].
    pub packets: u8,
    /// When the last one came.
    pub heard_ms: u64,
}

impl Source {
    /// Builds one that has sent nothing.
    pub fn new(end: SocketAddr, heard_ms: u64) -> Source {
        Source { end, ssrc: None, is_before: false, packets: 0, heard_ms }
    }

    /// Returns it as it is when the party is described once more.
    pub fn before(self) -> Source {
        Source { is_before: true, packets: 0, ..self }
    }

    /// Takes note of a packet. After a description what was on its way is new for a while.
    pub fn heard(&mut self, payload: Payload, now_ms: u64, is_new: bool) {
        if let Payload::Media { ssrc, .. } = payload {
            self.ssrc = Some(ssrc);
        }
        let is_after_a_pause = now_ms.saturating_sub(self.heard_ms) > PAUSE_MS;
        self.packets = match self.goes_on() || self.is_before && !is_new {
            true => GOES_ON_PACKETS,
            false if is_after_a_pause => 1,
            false => self.packets + 1,
        };
        self.heard_ms = now_ms;
    }

    /// Returns whether it is certain to be there since the newest description.
    pub fn goes_on(&self) -> bool {
        self.packets >= GOES_ON_PACKETS
    }
}

/// Who may be the party, from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// The address.
    pub end: SocketAddr,
    /// What it sent last.
    pub payload: Payload,
    /// Packets of it that follow each other.
    pub packets: u8,
}

/// How good a reason there is to take an address for the party's, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The newest description names it.
    Described,
    /// The newest description that was agreed on names it.
    Agreed,
    /// The party was there by the same description, at which of all places.
    Place(usize),
    /// There is none.
    Unknown,
}

/// What a payload is (RFC 7983).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// RTP or RTCP.
    Media {
        /// The synchronization source.
        ssrc: u32,
        /// The sequence number of RTP.
        sequence: Option<u16>,
    },
    /// A handshake of DTLS.
    Dtls,
    /// STUN, or what nobody knows.
    Other,
}

impl Payload {
    /// Returns what bytes are that came to a port of a stream.
    pub fn of(bytes: &[u8], carries: Carries) -> Payload {
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
        let (ssrc, sequence) = match (bytes, carries) {
            ([20..=63, ..], Carries::Rtp | Carries::Rtcp) => return Payload::Dtls,
            // RFC 5761 §4: RTCP in RTP's port has these types.
            ([0x80..=0xbf, 192..=223, ..], Carries::Rtp | Carries::Rtcp) => (word(4), None),
            ([0x80..=0xbf, _, high, low, ..], Carries::Rtp) if bytes.len() >= 12 => {
                (word(8), Some(u16::from_be_bytes([*high, *low])))
            }
            _ => (None, None),
        };
        ssrc.map_or(Payload::Other, |ssrc| Payload::Media { ssrc, sequence })
    }

    /// Returns whether it goes on with what came before: one synchronization source with sequence numbers that rise, or the same kind.
    pub fn follows(self, before: Payload) -> bool {
        match (before, self) {
            (Payload::Media { ssrc, sequence }, Payload::Media { ssrc: next_ssrc, sequence: next }) => {
                let rises = |(before, next): (u16, u16)| (1..0x8000).contains(&next.wrapping_sub(before));
                ssrc == next_ssrc && sequence.zip(next).is_none_or(rises)
            }
            (before, next) => before == next,
        }
    }
}
