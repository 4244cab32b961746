// SPDX-License-Identifier: Apache-2.0
//! One port of the relay, in the packet path: who may send to it, and where its party is.

mod saved;
mod source;

use std::net::SocketAddr;

use crate::limits::{BURST_MS, LEADS_PACKETS, LEARNING_MS, LEFT_MAX, PLACES_MAX};
use crate::sdp::is_machine;
use crate::table::{Carries, Counts, Entry};
pub use saved::{Saved, VERSION, VERSION_SOURCE};
use source::{Newcomer, Payload, Rank, Source};

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
    /// Where the party was by this description until it was described once more, the oldest first.
    places: Vec<SocketAddr>,
    /// Who sends from elsewhere while the party is silent.
    newcomer: Option<Newcomer>,
    /// Where a party is that sent nothing but what keeps its NAT open, and when that came last.
    kept_open: Option<(SocketAddr, u64)>,
    /// Where the description that counts says that the party is. An offer in a call counts once it is answered.
    agreed: Option<SocketAddr>,
    /// The last address that was agreed on; a party on hold may have none.
    named: Option<SocketAddr>,
    /// Where the party was by other descriptions: what these named, and where it was learned to be.
    left: Vec<(SocketAddr, SocketAddr)>,
    /// When the first packet came after the newest description.
    since_ms: Option<u64>,
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

impl Port {
    /// Builds a port to which nothing has come.
    pub fn new(entry: Entry) -> Port {
        Port {
            entry,
            counts: Counts::default(),
            is_news: false,
            source: None,
            places: Vec::new(),
            newcomer: None,
            kept_open: None,
            agreed: entry.peer,
            named: entry.peer,
            left: Vec::new(),
            since_ms: None,
            credit: (BURST_MS * 1000, 0),
        }
    }

    /// Takes what descriptions say from here on. With each the party is learned anew. Where it was, if it is elsewhere, is left for good
    /// once that is agreed on: until then, and if the offer is rejected, it is where it was (RFC 3264 §8.3.1).
    pub fn set(&mut self, entry: Entry) {
        let before = std::mem::replace(&mut self.entry, entry);
        if entry.generation == before.generation && entry.local == before.local {
            return;
        }
        (self.since_ms, self.newcomer) = (None, None);
        if !entry.is_offered || entry.peer == self.agreed {
            self.agree(entry.peer);
        }
    }

    fn agree(&mut self, peer: Option<SocketAddr>) {
        self.agreed = peer;
        let Some(before) = self.named else {
            // Who sent already may be anybody. A phone that only keeps its NAT open sends no more for long.
            (self.named, self.source) = (peer, None);
            return;
        };
        let kept_open = self.kept_open.take().map(|(end, at_ms)| Source::new(end, at_ms));
        self.source = self.source.take().or(kept_open).map(Source::before);
        // On hold a party may have no address: it is where it was when it has one again.
        let Some(named) = peer.filter(|named| *named != before) else {
            self.source.into_iter().for_each(|source| self.remember(source.end));
            return;
        };
        self.named = Some(named);
        let source = self.source.take_if(|source| source.end != named);
        let ends = std::iter::once(before).chain(source.map(|source| source.end)).chain(self.places.drain(..));
        self.left.splice(0..0, ends.map(|end| (before, end)));
        self.left.retain(|(by, end)| *by != named && *end != named);
        self.left.truncate(LEFT_MAX);
    }

    /// Returns where packets for the party go.
    pub fn target(&self) -> Option<SocketAddr> {
        let is_held = |source: &Source| self.agreed.is_none() && source.is_before && source.packets == 0;
        let learned = self.source.map(|source| (source.end, is_held(&source)));
        let learned = learned.or(self.kept_open.map(|(end, _)| (end, false)));
        let learned = learned.filter(|(_, is_held)| !is_held && !self.entry.is_fixed);
        learned.map(|(end, _)| end).or(self.agreed)
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
        let payload = Payload::of(bytes, self.entry.carries);
        let now_ms = now_us / 1000;
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        let is_new = now_ms.saturating_sub(since_ms) < LEARNING_MS;
        match self.source.as_mut().filter(|known| known.end == source) {
            Some(known) => {
                known.heard(payload, now_ms, is_new);
                self.newcomer = None;
            }
            None => self.learn(source, payload, now_ms, is_new)?,
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

    /// Takes a packet from elsewhere than the party is taken to be, which may say that it is there.
    fn learn(&mut self, end: SocketAddr, payload: Payload, now_ms: u64, is_new: bool) -> Result<(), Reason> {
        let is_named = [self.entry.peer, self.agreed].contains(&Some(end));
        // Before the party is told of the port, or if it says so, it sends from where it says.
        let is_bound = self.entry.is_early || self.entry.is_strict && self.entry.is_fixed;
        if !is_machine(end.ip()) || end.port() == 0 || is_bound && !is_named {
            return Err(Reason::Source);
        }
        if !is_named && self.left.iter().any(|(_, left)| *left == end) {
            // What was on its way when the party went elsewhere is heard, and leads nothing back.
            return if is_new || self.source.is_none() { Ok(()) } else { Err(Reason::Source) };
        }
        let is_media = payload != Payload::Other || self.entry.carries == Carries::Other;
        let Some(known) = self.source else {
            match is_media {
                true => self.lead(end, payload, now_ms, is_new),
                false => self.keep_open(end, is_named, now_ms),
            }
            return Ok(());
        };
        let (rank, known_rank) = (self.rank(end), self.rank(known.end));
        let is_place = rank < Rank::Unknown;
        let may_come = known.is_before || is_media && (is_new || is_place);
        // Who offers may send as before until there is an answer, and does if there is none.
        let is_back = is_place && self.entry.is_offered;
        let is_open = may_come && !known.goes_on() || is_back;
        // Whoever is where the description says wins, then whoever is where the party was.
        if rank < known_rank && (is_media || is_open) {
            self.lead(end, payload, now_ms, is_new);
            return Ok(());
        }
        if let (Payload::Media { ssrc, .. }, false) = (payload, self.entry.is_strict)
            && known.ssrc == Some(ssrc)
        {
            // A NAT may give the party another port at any time.
            self.places.iter_mut().filter(|place| **place == known.end).for_each(|place| *place = end);
            self.lead(end, payload, now_ms, is_new);
            return Ok(());
        }
        if is_open && self.comes(end, payload) {
            self.lead(end, payload, now_ms, is_new);
            return Ok(());
        }
        match payload {
            // It may be the party, of which nothing was heard since it was described.
            _ if is_open && (known.is_before || is_back) => Ok(()),
            Payload::Other if is_named => Ok(()),
            Payload::Media { .. } if !self.entry.is_strict => Err(Reason::Ssrc),
            Payload::Media { .. } | Payload::Dtls | Payload::Other => Err(Reason::Source),
        }
    }

    fn rank(&self, end: SocketAddr) -> Rank {
        if self.entry.peer == Some(end) {
            return Rank::Described;
        }
        if self.agreed == Some(end) {
            return Rank::Agreed;
        }
        self.places.iter().position(|place| *place == end).map_or(Rank::Unknown, Rank::Place)
    }

    /// Takes note of a packet of one who is not taken for the party. Returns whether it has sent enough to be.
    fn comes(&mut self, end: SocketAddr, payload: Payload) -> bool {
        let known = self.newcomer.filter(|known| known.end == end && payload.follows(known.payload));
        let packets = known.map_or(0, |known| known.packets) + 1;
        self.newcomer = Some(Newcomer { end, payload, packets });
        packets >= LEADS_PACKETS
    }

    fn lead(&mut self, end: SocketAddr, payload: Payload, now_ms: u64, is_new: bool) {
        let rank = self.rank(end);
        let mut source = Source { is_before: matches!(rank, Rank::Place(_)), ..Source::new(end, now_ms) };
        source.heard(payload, now_ms, is_new);
        let before = self.source.replace(source);
        (self.newcomer, self.kept_open) = (None, None);
        if rank <= Rank::Agreed {
            // If that was not the party, it is where it was.
            before.into_iter().for_each(|before| self.remember(before.end));
        }
    }

    fn remember(&mut self, place: SocketAddr) {
        if self.rank(place) < Rank::Unknown {
            return;
        }
        if self.places.len() >= PLACES_MAX {
            self.places.remove(1);
        }
        self.places.push(place);
    }

    /// Takes a packet that is no media: it leads to its sender as long as no media came from the party. Phones that do not speak keep their
    /// NAT open by empty packets and by indications of STUN (RFC 6263 §4).
    fn keep_open(&mut self, end: SocketAddr, is_named: bool, now_ms: u64) {
        let stays = |(kept, at): &(SocketAddr, u64)| {
            let is_kept_named = self.agreed == Some(*kept);
            *kept != end && !is_named && (is_kept_named || now_ms.saturating_sub(*at) < LEARNING_MS)
        };
        if !self.kept_open.as_ref().is_some_and(stays) {
            self.kept_open = Some((end, now_ms));
        }
    }
}

#[cfg(test)]
mod tests;
