// SPDX-License-Identifier: Apache-2.0
//! One port of the relay, in the packet path: who may send to it, and where its party is.

use std::net::SocketAddr;

use crate::limits::{BURST_MS, LEARNING_MS};
use crate::sdp::is_machine;
use crate::table::{self, Carries, Counts, Entry};

/// A port, what was learned of its party, and what came from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// What the descriptions say.
    pub entry: Entry,
    /// What came.
    pub counts: Counts,
    /// Something came of which the server part is to be told.
    pub is_news: bool,
    /// Where packets of the party come from.
    source: Option<SocketAddr>,
    /// When that was learned first.
    learned_ms: u64,
    /// The synchronization source that the party sent last.
    ssrc: Option<u32>,
    /// Microseconds of the rate that are left, and since when.
    credit: (u64, u64),
}

/// Why a packet goes no further: the names of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The port is of no call.
    NoCall,
    /// Nobody knows where the other party is.
    NoPeer,
    /// It comes from elsewhere than those before it.
    Source,
    /// It comes from elsewhere, and is of another synchronization source.
    Ssrc,
    /// The port has relayed as much as it may.
    Rate,
    /// It would pass too many calls of this node, or be too long.
    Way,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 6] =
        [Reason::NoCall, Reason::NoPeer, Reason::Source, Reason::Ssrc, Reason::Rate, Reason::Way];

    /// Returns the name of its counter.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NoCall => "dropped-no-call",
            Reason::NoPeer => "dropped-no-peer",
            Reason::Source => "dropped-source",
            Reason::Ssrc => "dropped-ssrc",
            Reason::Rate => "dropped-rate",
            Reason::Way => "dropped-way",
        }
    }
}

/// What a payload is (RFC 7983).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    /// RTP or RTCP, of a synchronization source.
    Media(u32),
    /// A handshake of DTLS.
    Dtls,
    /// STUN, or what nobody knows.
    Other,
}

impl Port {
    /// Builds a port to which nothing has come.
    pub fn new(entry: Entry) -> Port {
        Port {
            entry,
            counts: Counts::default(),
            is_news: false,
            source: None,
            learned_ms: 0,
            ssrc: None,
            credit: (BURST_MS * 1000, 0),
        }
    }

    /// Takes what descriptions say from here on. Where they name another party, what was learned is forgotten.
    pub fn set(&mut self, entry: Entry) {
        if entry.generation != self.entry.generation || entry.local != self.entry.local {
            (self.source, self.ssrc) = (None, None);
        }
        self.entry = entry;
    }

    /// Returns where packets for the party go.
    pub fn target(&self) -> Option<SocketAddr> {
        self.source.filter(|_| !self.entry.is_fixed).or(self.entry.peer)
    }

    /// Returns the address that the party sends to.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.entry.local, self.entry.port)
    }

    /// Judges a packet that came to the port.
    ///
    /// # Errors
    /// It goes no further.
    pub fn judge(&mut self, source: SocketAddr, bytes: &[u8], now_us: u64, per_second: u32) -> Result<(), Reason> {
        let payload = payload(bytes, self.entry.carries);
        if self.source != Some(source) {
            self.learn(source, payload, now_us / 1000)?;
        }
        if let Payload::Media(ssrc) = payload {
            self.ssrc = Some(ssrc);
        }
        let cost = 1_000_000 / u64::from(per_second.max(1));
        let earned = self.credit.0.saturating_add(now_us.saturating_sub(self.credit.1)).min(BURST_MS * 1000);
        self.credit = (earned, now_us);
        self.credit.0 = earned.checked_sub(cost).ok_or(Reason::Rate)?;
        Ok(())
    }

    /// Counts a packet that the party sent and that goes on.
    pub fn count(&mut self, octets: usize) {
        self.counts.packets += 1;
        self.counts.octets += octets as u64;
        self.counts.peer = self.source;
    }

    /// Takes a source that is not the one from before for the party's, if it can be.
    fn learn(&mut self, source: SocketAddr, payload: Payload, now_ms: u64) -> Result<(), Reason> {
        let is_named = self.entry.peer == Some(source);
        if !is_machine(source.ip()) || source.port() == 0 || self.entry.is_strict && self.entry.is_fixed && !is_named {
            return Err(Reason::Source);
        }
        let is_known = self.source.is_some();
        // Whoever is where the description says wins against one that was only faster.
        let is_late = is_known && now_ms.saturating_sub(self.learned_ms) >= LEARNING_MS;
        match payload {
            // What is no media leads nothing to anybody.
            Payload::Other if self.entry.carries != Carries::Other => {
                return if is_named || !is_known { Ok(()) } else { Err(Reason::Source) };
            }
            Payload::Media(_) | Payload::Dtls | Payload::Other if !is_known || is_named && !is_late => {}
            _ if self.entry.is_strict => return Err(Reason::Source),
            // A NAT may give the party another port at any time.
            Payload::Media(ssrc) if self.ssrc == Some(ssrc) => {}
            Payload::Media(_) => return Err(Reason::Ssrc),
            Payload::Dtls | Payload::Other => return Err(Reason::Source),
        }
        if !is_known {
            self.learned_ms = now_ms;
        }
        self.source = Some(source);
        Ok(())
    }

    /// Writes what another node has to know beyond the entry.
    pub fn save(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.entry.port.to_be_bytes());
        bytes.extend_from_slice(&self.entry.generation.to_be_bytes());
        table::emit_end(self.source, bytes);
        bytes.push(u8::from(self.ssrc.is_some()));
        bytes.extend_from_slice(&self.ssrc.unwrap_or(0).to_be_bytes());
        table::emit_counts(&self.counts, bytes);
    }

    /// Takes what [`Port::save`] wrote of a port of the same description.
    pub fn restore(&mut self, saved: Saved) {
        if saved.generation == self.entry.generation {
            (self.source, self.ssrc) = (saved.source, saved.ssrc);
        }
        self.counts = saved.counts;
    }
}

/// What [`Port::save`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Of which port.
    pub port: u16,
    generation: u32,
    source: Option<SocketAddr>,
    ssrc: Option<u32>,
    counts: Counts,
}

impl Saved {
    /// Takes it from the begin of the bytes.
    pub fn take(bytes: &mut &[u8]) -> Option<Saved> {
        let port = u16::from_be_bytes(table::take(bytes)?);
        let generation = u32::from_be_bytes(table::take(bytes)?);
        let source = table::take_end(bytes)?;
        let [has_ssrc] = table::take(bytes)?;
        let ssrc = u32::from_be_bytes(table::take(bytes)?);
        let counts = table::take_counts(bytes)?;
        Some(Saved { port, generation, source, ssrc: (has_ssrc == 1).then_some(ssrc), counts })
    }
}

fn payload(bytes: &[u8], carries: Carries) -> Payload {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
    let media = match (bytes, carries) {
        ([20..=63, ..], Carries::Rtp | Carries::Rtcp) => return Payload::Dtls,
        // RFC 5761 §4: RTCP in RTP's port has these types.
        ([0x80..=0xbf, 192..=223, ..], Carries::Rtp | Carries::Rtcp) => word(4),
        ([0x80..=0xbf, ..], Carries::Rtp) if bytes.len() >= 12 => word(8),
        _ => None,
    };
    media.map_or(Payload::Other, Payload::Media)
}

#[cfg(test)]
mod tests;
