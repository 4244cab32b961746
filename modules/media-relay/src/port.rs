// SPDX-License-Identifier: Apache-2.0
//! One port of the relay, in the packet path: who may send to it, and where its party is.

use std::net::SocketAddr;

use crate::limits::{BURST_MS, GOES_ON_PACKETS, LEARNING_MS, LEFT_MAX};
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
    source: Option<Source>,
    /// Where it was by the same description, until it is sure which of both goes on.
    rival: Option<Source>,
    /// Where a party is that sent nothing but what keeps its NAT open, and when that came last.
    kept_open: Option<(SocketAddr, u64)>,
    /// What the last description named that named anything.
    named: Option<SocketAddr>,
    /// What was named before an offer that nobody has answered, and where the party was then: it still is if the offer is rejected.
    offered: Option<(SocketAddr, Source)>,
    /// Where the party was by other descriptions: what these named, and where it was learned to be.
    left: Vec<(SocketAddr, SocketAddr)>,
    /// When the first packet came after the newest description.
    since_ms: Option<u64>,
    /// Microseconds of the rate that are left, and since when.
    credit: (u64, u64),
}

/// Where packets of a party come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    end: SocketAddr,
    /// The synchronization source that it sent last.
    ssrc: Option<u32>,
    /// It was learned before the newest description, which names the same as the one before.
    is_before: bool,
    /// Packets of it since the newest description, up to [`GOES_ON_PACKETS`].
    packets: u8,
    heard_ms: u64,
}

impl Source {
    fn new(end: SocketAddr, heard_ms: u64) -> Source {
        Source { end, ssrc: None, is_before: false, packets: 0, heard_ms }
    }

    fn heard(&mut self, payload: Payload, now_ms: u64) {
        if let Payload::Media(ssrc) = payload {
            self.ssrc = Some(ssrc);
        }
        self.packets = GOES_ON_PACKETS.min(self.packets + 1);
        self.heard_ms = now_ms;
    }

    /// Returns whether it sends as before since the newest description.
    fn goes_on(&self) -> bool {
        self.packets >= GOES_ON_PACKETS
    }
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
            rival: None,
            kept_open: None,
            named: entry.peer,
            offered: None,
            left: Vec::new(),
            since_ms: None,
            credit: (BURST_MS * 1000, 0),
        }
    }

    /// Takes what descriptions say from here on. With each the party is learned anew; where it was, if it is elsewhere, is left for good
    /// once that is agreed on.
    pub fn set(&mut self, entry: Entry) {
        let is_same = entry.generation == self.entry.generation && entry.local == self.entry.local;
        let is_answered = self.entry.is_offered && !entry.is_offered;
        self.entry = entry;
        if is_same {
            if is_answered {
                self.leave_offered();
            }
            return;
        }
        self.since_ms = None;
        match self.offered.take() {
            // The offer before this one came to nothing.
            Some((named, source)) if self.source.is_none() => (self.named, self.source) = (Some(named), Some(source)),
            Some((named, source)) => self.leave(named, Some(source)),
            None => {}
        }
        let source = self.source.take().or(self.rival.take());
        self.source = source.map(|source| Source { is_before: true, packets: 0, ..source });
        let kept_open = |kept: &mut Option<(SocketAddr, u64)>| kept.take().map(|(end, at)| Source::new(end, at));
        // On hold a party may have no address: it is where it was when it has one again.
        let Some(named) = entry.peer else {
            self.rival = self.source.take().or(kept_open(&mut self.kept_open));
            return;
        };
        if let Some(before) = self.named.replace(named).filter(|before| *before != named) {
            let source = self.source.take().or(kept_open(&mut self.kept_open));
            if entry.is_offered {
                self.offered = Some((before, source.unwrap_or(Source::new(before, 0))));
            } else {
                self.leave(before, source);
            }
        }
        self.left.retain(|(by, end)| *by != named && *end != named);
    }

    /// An offer is answered: where the party was before is left, also if it went on there until now.
    fn leave_offered(&mut self) {
        let is_back = self.named != self.entry.peer;
        let before = match (self.offered.take(), self.entry.peer) {
            (Some(before), _) => Some((before.0, Some(before.1))),
            (None, Some(named)) if is_back => self.named.replace(named).map(|before| (before, self.source.take())),
            (None, _) => None,
        };
        if let Some((named, source)) = before {
            self.leave(named, source);
        }
        self.left.retain(|(by, end)| self.entry.peer.is_none_or(|named| *by != named && *end != named));
    }

    fn leave(&mut self, named: SocketAddr, source: Option<Source>) {
        let ends = [Some(named), source.map(|source| source.end)].into_iter().flatten();
        self.left.splice(0..0, ends.map(|end| (named, end)));
        self.left.truncate(LEFT_MAX);
    }

    /// Returns where packets for the party go.
    pub fn target(&self) -> Option<SocketAddr> {
        let learned = self.source.map(|source| source.end).or(self.kept_open.map(|(end, _)| end));
        learned.filter(|_| !self.entry.is_fixed).or(self.entry.peer)
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
        let now_ms = now_us / 1000;
        self.since_ms.get_or_insert(now_ms);
        if self.source.is_none_or(|known| known.end != source) {
            self.learn(source, payload, now_ms)?;
        }
        if let Some(known) = self.source.as_mut().filter(|known| known.end == source) {
            known.heard(payload, now_ms);
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
        self.counts.peer = self.source.map(|source| source.end);
    }

    /// Takes a source that is not the one from before for the party's, if it can be.
    fn learn(&mut self, end: SocketAddr, payload: Payload, now_ms: u64) -> Result<(), Reason> {
        let is_named = self.entry.peer == Some(end);
        if !is_machine(end.ip()) || end.port() == 0 || self.entry.is_strict && self.entry.is_fixed && !is_named {
            return Err(Reason::Source);
        }
        let is_new = now_ms.saturating_sub(self.since_ms.unwrap_or(now_ms)) < LEARNING_MS;
        if let Some((named, before)) =
            self.offered.as_mut().filter(|(named, before)| [*named, before.end].contains(&end))
        {
            // Who offers may send as before until there is an answer (RFC 3264 §8.3.1), and does if it is rejected.
            let is_back = before.end == end && self.source.is_none();
            before.heard(payload, now_ms);
            if is_back && before.goes_on() {
                (self.named, self.source) = (Some(*named), Some(*before));
                self.offered = None;
            }
            return Ok(());
        }
        if self.left.iter().any(|(_, left)| *left == end) {
            // What was on its way when the party went elsewhere is heard, and leads nothing back.
            return if is_new || self.source.is_none() { Ok(()) } else { Err(Reason::Source) };
        }
        if payload == Payload::Other && self.entry.carries != Carries::Other {
            return self.keep_open(end, is_named, now_ms);
        }
        let Some(known) = self.source else {
            self.take(end, now_ms);
            return Ok(());
        };
        let is_open = is_new || !known.goes_on();
        if let Some(rival) = self.rival.as_mut().filter(|rival| rival.end == end && is_open) {
            rival.heard(payload, now_ms);
            if rival.goes_on() {
                self.source = self.rival.take();
            }
            return Ok(());
        }
        let is_silent = now_ms.saturating_sub(known.heard_ms) >= LEARNING_MS;
        match payload {
            // A party that does not go on where it was before the description is elsewhere.
            _ if known.is_before && !known.goes_on() => {}
            // Whoever is where the description says wins against one that was only faster.
            _ if is_named && (is_new && !known.is_before || is_silent) => {}
            _ if self.entry.is_strict => return Err(Reason::Source),
            // A NAT may give the party another port at any time.
            Payload::Media(ssrc) if known.ssrc == Some(ssrc) => {}
            Payload::Media(_) => return Err(Reason::Ssrc),
            Payload::Dtls | Payload::Other => return Err(Reason::Source),
        }
        self.take(end, now_ms);
        Ok(())
    }

    fn take(&mut self, end: SocketAddr, now_ms: u64) {
        let before = self.source.replace(Source::new(end, now_ms));
        self.rival = before.filter(|known| known.is_before && !known.goes_on()).or(self.rival);
        self.kept_open = None;
    }

    /// Takes a packet that is no media: it leads to its sender as long as no media came from the party. Phones that do not speak keep their
    /// NAT open by empty packets and by indications of STUN (RFC 6263 §4).
    fn keep_open(&mut self, end: SocketAddr, is_named: bool, now_ms: u64) -> Result<(), Reason> {
        match self.source {
            Some(known) if known.is_before && known.packets == 0 => self.rival = self.source.take(),
            Some(_) => return if is_named { Ok(()) } else { Err(Reason::Source) },
            None => {}
        }
        let stays = |(kept, at): &(SocketAddr, u64)| {
            let is_kept_named = self.entry.peer == Some(*kept);
            *kept != end && !is_named && (is_kept_named || now_ms.saturating_sub(*at) < LEARNING_MS)
        };
        if !self.kept_open.as_ref().is_some_and(stays) {
            self.kept_open = Some((end, now_ms));
        }
        Ok(())
    }

    /// Writes what another node has to know beyond the entry.
    pub fn save(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.entry.port.to_be_bytes());
        bytes.extend_from_slice(&self.entry.generation.to_be_bytes());
        table::emit_end(self.source.map(|source| source.end), bytes);
        let ssrc = self.source.and_then(|source| source.ssrc);
        bytes.push(u8::from(ssrc.is_some()));
        bytes.extend_from_slice(&ssrc.unwrap_or(0).to_be_bytes());
        table::emit_counts(&self.counts, bytes);
    }

    /// Takes what [`Port::save`] wrote of a port of the same description.
    pub fn restore(&mut self, saved: Saved) {
        if saved.generation == self.entry.generation {
            let known = |end| Source { ssrc: saved.ssrc, packets: GOES_ON_PACKETS, ..Source::new(end, 0) };
            self.source = saved.source.map(known);
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
