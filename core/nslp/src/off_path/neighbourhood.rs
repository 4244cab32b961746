// SPDX-License-Identifier: Apache-2.0
//! The nodes next to this one, as GIST found them lately.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_gist::SiiHandle;
use netserv_model::Instant;

use crate::cx::Asker;
use crate::limits::{NEIGHBOUR_TIME, NEIGHBOURS_MAX};

/// One node next to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    /// Its address.
    pub(crate) address: IpAddr,
    /// This node's address toward it.
    pub(crate) local: IpAddr,
    /// Its name in GIST; nothing for one that the operator named.
    pub(crate) sii: Option<SiiHandle>,
}

impl Neighbour {
    fn is_node_of(&self, sii: Option<SiiHandle>) -> bool {
        self.sii.zip(sii).is_some_and(|(own, other)| own.is_node_of(other))
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Neighbourhood {
    seen: BTreeMap<IpAddr, (Instant, Neighbour)>,
}

impl Neighbourhood {
    /// Takes note of a peer that has proven its address; the one that was seen last longest ago makes room.
    pub(crate) fn note(&mut self, now: Instant, peer: &Asker, local: IpAddr) {
        if self.seen.len() >= NEIGHBOURS_MAX && !self.seen.contains_key(&peer.address) {
            let oldest = self.seen.iter().min_by_key(|(_, (at, _))| *at).map(|(address, _)| *address);
            oldest.and_then(|oldest| self.seen.remove(&oldest));
        }
        let neighbour = Neighbour { address: peer.address, local, sii: Some(peer.sii) };
        self.seen.insert(peer.address, (now, neighbour));
    }

    /// Returns those that were seen lately and those that the operator named, each node at one of its addresses, but for some
    /// peers and this node's own addresses.
    pub(crate) fn others(
        &self,
        now: Instant,
        named: &[IpAddr],
        own: &[IpAddr],
        except: &[(IpAddr, Option<SiiHandle>)],
    ) -> Vec<Neighbour> {
        let lately = self.seen.values().filter(|(at, _)| now.since(*at) <= NEIGHBOUR_TIME).map(|(_, known)| *known);
        let local = |address: IpAddr| own.iter().find(|own| own.is_ipv4() == address.is_ipv4()).copied();
        let named = named.iter().filter_map(|address| {
            let known = self.seen.get(address).map(|(_, known)| *known);
            known.or_else(|| Some(Neighbour { address: *address, local: local(*address)?, sii: None }))
        });
        let mut others: Vec<Neighbour> = Vec::new();
        for neighbour in lately.chain(named) {
            let is = |(address, sii): &(IpAddr, Option<SiiHandle>)| {
                *address == neighbour.address || neighbour.is_node_of(*sii)
            };
            let twice = |other: &Neighbour| other.address == neighbour.address || other.is_node_of(neighbour.sii);
            if !own.contains(&neighbour.address) && !except.iter().any(is) && !others.iter().any(twice) {
                others.push(neighbour);
            }
        }
        others
    }

    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }
}
