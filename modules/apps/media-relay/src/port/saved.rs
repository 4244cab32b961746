// SPDX-License-Identifier: Apache-2.0
//! What was learned of a party, as another node is told.

use std::net::SocketAddr;

use super::{Port, Source};
use crate::limits::{GOES_ON_PACKETS, LEFT_MAX, PLACES_MAX};
use crate::table::{self, Counts};

/// The version that [`Port::save`] writes.
pub const VERSION: u8 = 2;
/// The version that has the source alone.
pub const VERSION_SOURCE: u8 = 1;

/// What [`Port::save`] wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Of which port.
    pub port: u16,
    generation: u32,
    source: Option<Source>,
    counts: Counts,
    /// What the first version has nothing of.
    more: Option<More>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct More {
    kept_open: Option<SocketAddr>,
    agreed: Option<SocketAddr>,
    named: Option<SocketAddr>,
    left: Vec<(SocketAddr, SocketAddr)>,
    places: Vec<SocketAddr>,
}

impl Port {
    /// Writes what another node has to know beyond the entry.
    pub fn save(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.entry.port.to_be_bytes());
        bytes.extend_from_slice(&self.entry.generation.to_be_bytes());
        table::emit_end(self.source.map(|source| source.end), bytes);
        let ssrc = self.source.and_then(|source| source.ssrc);
        bytes.push(u8::from(ssrc.is_some()));
        bytes.extend_from_slice(&ssrc.unwrap_or(0).to_be_bytes());
        table::emit_counts(&self.counts, bytes);
        let (packets, is_before) = self.source.map_or((0, false), |source| (source.packets, source.is_before));
        bytes.extend([packets, u8::from(is_before)]);
        for end in [self.kept_open.map(|(end, _)| end), self.agreed, self.named] {
            table::emit_end(end, bytes);
        }
        // An empty one ends the list.
        let left = self.left.iter().flat_map(|(by, end)| [Some(*by), Some(*end)]).chain([None]);
        let places = self.places.iter().map(|place| Some(*place)).chain([None]);
        left.chain(places).for_each(|end| table::emit_end(end, bytes));
    }

    /// Takes what [`Port::save`] wrote of a port of the same description.
    pub fn restore(&mut self, saved: Saved) {
        self.counts = saved.counts;
        if saved.generation != self.entry.generation {
            return;
        }
        self.source = saved.source;
        if let Some(more) = saved.more {
            self.kept_open = more.kept_open.map(|end| (end, 0));
            (self.agreed, self.named) = (more.agreed, more.named);
            (self.left, self.places) = (more.left, more.places);
        }
    }
}

impl Saved {
    /// Takes it from the begin of the bytes, of a state of that version.
    pub fn take(bytes: &mut &[u8], version: u8) -> Option<Saved> {
        let port = u16::from_be_bytes(table::take(bytes)?);
        let generation = u32::from_be_bytes(table::take(bytes)?);
        let end = table::take_end(bytes)?;
        let [has_ssrc] = table::take(bytes)?;
        let ssrc = u32::from_be_bytes(table::take(bytes)?);
        let counts = table::take_counts(bytes)?;
        let ([packets, is_before], more) = match version {
            VERSION_SOURCE => ([GOES_ON_PACKETS, 0], None),
            _ => (table::take(bytes)?, Some(More::take(bytes)?)),
        };
        let source = end.map(|end| Source {
            end,
            ssrc: (has_ssrc == 1).then_some(ssrc),
            is_before: is_before == 1,
            packets: packets.min(GOES_ON_PACKETS),
            heard_ms: 0,
        });
        Some(Saved { port, generation, source, counts, more })
    }
}

impl More {
    fn take(bytes: &mut &[u8]) -> Option<More> {
        let (kept_open, agreed, named) = (table::take_end(bytes)?, table::take_end(bytes)?, table::take_end(bytes)?);
        let mut left = Vec::new();
        while let Some(by) = table::take_end(bytes)? {
            left.push((by, table::take_end(bytes)??));
        }
        let mut places = Vec::new();
        while let Some(place) = table::take_end(bytes)? {
            places.push(place);
        }
        left.truncate(LEFT_MAX);
        places.truncate(PLACES_MAX);
        Some(More { kept_open, agreed, named, left, places })
    }
}
