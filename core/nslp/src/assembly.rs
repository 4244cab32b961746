// SPDX-License-Identifier: Apache-2.0
//! Putting long texts together again.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::{Instant, Nonce, SessionId, share};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Part;

use crate::limits::{ASSEMBLIES_MAX, ASSEMBLY_TIME};

/// Names one text that comes in parts.
pub(crate) type AssemblyKey = (SessionId, Mri, Nonce);

/// What a part led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// More parts are to come.
    Waiting,
    /// The whole text.
    Whole(Vec<u8>),
    /// A part is missing; what was there is thrown away.
    Broken,
}

/// All texts of which some parts are still to come.
#[derive(Debug, Default)]
pub(crate) struct Assemblies {
    by_key: BTreeMap<AssemblyKey, Assembly>,
}

#[derive(Debug)]
struct Assembly {
    count: usize,
    received: usize,
    bytes: Vec<u8>,
    expires: Instant,
    /// The network of the peer that sends it.
    site: IpAddr,
}

impl Assemblies {
    /// Takes one part of a peer's. Parts travel in order, so the first one starts a text afresh.
    pub(crate) fn handle_part(&mut self, now: Instant, peer: IpAddr, key: AssemblyKey, part: Part) -> Assembled {
        if part.index == 1 {
            let (expires, site) = (now + ASSEMBLY_TIME, share::network(peer, 24, 56));
            self.make_room(&key, site);
            self.by_key.insert(key, Assembly { count: part.count, received: 1, bytes: part.bytes, expires, site });
            return Assembled::Waiting;
        }
        let Some(mut assembly) = self.by_key.remove(&key) else { return Assembled::Broken };
        if (part.index, part.count) != (assembly.received + 1, assembly.count) {
            return Assembled::Broken;
        }
        assembly.received += 1;
        assembly.bytes.extend(part.bytes);
        assembly.expires = now + ASSEMBLY_TIME;
        if assembly.received == assembly.count {
            return Assembled::Whole(assembly.bytes);
        }
        self.by_key.insert(key, assembly);
        Assembled::Waiting
    }

    /// Throws away what waited too long, and returns how many there were.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> u64 {
        let before = self.by_key.len();
        self.by_key.retain(|_, assembly| assembly.expires > now);
        u64::try_from(before - self.by_key.len()).expect("a count of entries in memory")
    }

    /// Returns when the first one has waited too long.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.by_key.values().map(|assembly| assembly.expires).min()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Has the oldest text of the site with the most give way to one more of a site, if there are as many as may be.
    fn make_room(&mut self, key: &AssemblyKey, site: IpAddr) {
        if self.by_key.len() < ASSEMBLIES_MAX || self.by_key.contains_key(key) {
            return;
        }
        let mut held = BTreeMap::from([(site, 1)]);
        for assembly in self.by_key.values() {
            *held.entry(assembly.site).or_default() += 1;
        }
        let order = |assembly: &Assembly| (held[&assembly.site], Reverse(assembly.expires));
        let gives_way = self.by_key.iter().max_by_key(|(_, assembly)| order(assembly)).map(|(key, _)| key.clone());
        if let Some(gives_way) = gives_way {
            self.by_key.remove(&gives_way);
        }
    }
}
