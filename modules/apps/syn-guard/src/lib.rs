// SPDX-License-Identifier: Apache-2.0
//! Keeps floods of SYNs from servers.
//!
//! Of the SYNs to one address so many in a second pass. What is over that is dropped and remembered, and a client whose SYN comes again
//! as TCP sends it again, after a second and with the same number, is known from then on: its connections pass, up to a limit of
//! their own. Floods from made up sources do not come again.

mod bucket;
pub mod limits;
mod syn;
mod table;

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, netserv_module, property, random};

use crate::bucket::Bucket;
use crate::limits::{AGAIN_MS_MAX, AGAIN_MS_MIN, ASKED_MAX, DESTINATIONS_MAX, KNOWN_MAX, KNOWN_S_MAX, LIMIT_MAX};
use crate::syn::Syn;
use crate::table::Table;

/// The module.
pub struct SynGuard {
    limit: u32,
    known_limit: u32,
    known_ms: u32,
    /// By which places in the tables are told, so that nobody knows them.
    secret: u64,
    asked: Table,
    known: Table,
    destinations: BTreeMap<IpAddr, Room>,
    /// The room of all that have none of their own.
    others: Room,
    counters: Counters,
}

/// What may still be asked of one address.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    unknown: Bucket,
    known: Bucket,
}

struct Counters {
    passed: Counter,
    dropped: Counter,
    known: Counter,
}

impl PacketModule for SynGuard {
    fn start() -> Result<SynGuard, StartError> {
        let bounded = |name: &str, usual: u32, most: u32| -> Result<u32, StartError> {
            let value = property::parse_or(name, usual)?;
            if value > most { Err(format!("property `{name}` is over {most}").into()) } else { Ok(value) }
        };
        Ok(SynGuard {
            limit: bounded("limit", 100, LIMIT_MAX)?,
            known_limit: bounded("known-limit", 1000, LIMIT_MAX)?,
            known_ms: bounded("known-s", 600, KNOWN_S_MAX)? * 1000,
            secret: random::number(),
            asked: Table::new(ASKED_MAX),
            known: Table::new(KNOWN_MAX),
            destinations: BTreeMap::new(),
            others: Room::default(),
            counters: Counters {
                passed: Counter::open("passed")?,
                dropped: Counter::open("dropped")?,
                known: Counter::open("known")?,
            },
        })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(syn) = Syn::parse(packet.bytes()) else { return Verdict::Pass };
        // In 32 bits it begins anew every 49 days, and only differences count.
        let now_ms = u32::try_from(packet.time().as_millis() & u128::from(u32::MAX)).unwrap_or(0);
        if self.passes(&syn, now_ms) {
            self.counters.passed.add(1);
            Verdict::Pass
        } else {
            self.counters.dropped.add(1);
            Verdict::Drop
        }
    }
}

netserv_module!(SynGuard);

impl SynGuard {
    fn passes(&mut self, syn: &Syn, now_ms: u32) -> bool {
        let client = table::place(self.secret, &syn.source);
        let is_known = self.known.age(client, now_ms).is_some_and(|age_ms| age_ms <= self.known_ms);
        let room = room(&mut self.destinations, &mut self.others, syn.destination);
        if is_known {
            self.known.put(client, now_ms);
            return room.known.take(self.known_limit, now_ms);
        }
        if room.unknown.take(self.limit, now_ms) {
            return true;
        }
        let asked = table::place(self.secret, syn);
        match self.asked.age(asked, now_ms) {
            Some(age_ms) if (AGAIN_MS_MIN..=AGAIN_MS_MAX).contains(&age_ms) => {
                self.counters.known.add(1);
                self.known.put(client, now_ms);
                room.known.take(self.known_limit, now_ms)
            }
            // One that comes more often than TCP sends it counts from its last time on.
            Some(_) | None => {
                self.asked.put(asked, now_ms);
                false
            }
        }
    }
}

fn room<'a>(all: &'a mut BTreeMap<IpAddr, Room>, others: &'a mut Room, of: IpAddr) -> &'a mut Room {
    if all.len() >= DESTINATIONS_MAX && !all.contains_key(&of) {
        return others;
    }
    all.entry(of).or_default()
}

#[cfg(test)]
mod tests;
