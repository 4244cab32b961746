// SPDX-License-Identifier: Apache-2.0
//! The associations by their numbers, by their peers' names, and by who opened them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netserv_model::share;

use super::association::Association;
use super::invitations::Invited;
use super::stack::Stack;
use crate::api::AssociationId;

#[derive(Debug, Default)]
pub(super) struct AssociationTable {
    table: BTreeMap<AssociationId, Association>,
    by_name: BTreeMap<((Vec<u8>, IpAddr), Stack), AssociationId>,
    /// Accepted ones without a name, those that were not invited first, then oldest first: numbers only grow.
    unproven: BTreeSet<(Invited, AssociationId)>,
    /// How many each peer has opened.
    accepted: BTreeMap<IpAddr, usize>,
    last: u64,
}

impl AssociationTable {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn get(&self, id: AssociationId) -> Option<&Association> {
        self.table.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.table.get_mut(&id)
    }

    /// Returns the association whose peer has this identity and address, both of which must fit, and whose stack is this or
    /// a better one (RFC 5971 §4.4.3); the best if there are several.
    pub(super) fn find(&self, identity: &[u8], address: IpAddr, least: Stack) -> Option<AssociationId> {
        let name = (identity.to_vec(), address);
        self.by_name.range((name.clone(), least)..=(name, Stack::Tls)).next_back().map(|(_, id)| *id)
    }

    /// Returns the associations with a node at any address, whose stack is this or a better one.
    pub(super) fn of_node(&self, identity: &[u8], least: Stack) -> impl Iterator<Item = AssociationId> {
        let first = ((identity.to_vec(), IpAddr::V4(Ipv4Addr::UNSPECIFIED)), Stack::Plain);
        let others = self.by_name.range(first..).take_while(move |(((other, _), _), _)| other == identity);
        others.filter(move |((_, stack), _)| *stack >= least).map(|(_, id)| *id)
    }

    /// Takes who the peer of an accepted connection is.
    pub(super) fn name(&mut self, id: AssociationId, identity: &[u8], address: IpAddr) {
        let Some(association) = self.table.get_mut(&id).filter(|association| association.name.is_none()) else {
            return;
        };
        let name = (identity.to_vec(), address);
        association.name = Some(name.clone());
        association.setup_deadline = None;
        self.unproven.remove(&(association.invited, id));
        self.by_name.insert((name, association.stack), id);
    }

    /// Returns how many associations the peer's address has opened.
    pub(super) fn accepted_from(&self, peer: SocketAddr) -> usize {
        self.accepted.get(&opener(peer)).copied().unwrap_or(0)
    }

    /// Returns how many associations nobody has proven.
    pub(super) fn unproven(&self) -> usize {
        self.unproven.len()
    }

    /// Returns the oldest association that is not proven, of those that were not invited if there are some.
    pub(super) fn oldest_unproven(&self) -> Option<AssociationId> {
        self.unproven.first().map(|(_, id)| *id)
    }

    /// Returns the oldest association that is not proven of those that the peer's address opened.
    pub(super) fn oldest_unproven_of(&self, peer: SocketAddr) -> Option<AssociationId> {
        let of_peer = |id: &AssociationId| self.table.get(id).is_some_and(|other| opener(other.peer) == opener(peer));
        self.unproven.iter().map(|(_, id)| *id).find(of_peer)
    }

    pub(super) fn insert(&mut self, association: Association) -> AssociationId {
        let id = self.next_id();
        if association.accepted {
            *self.accepted.entry(opener(association.peer)).or_default() += 1;
        }
        match association.name.clone() {
            Some(name) => {
                self.by_name.insert((name, association.stack), id);
            }
            None => {
                self.unproven.insert((association.invited, id));
            }
        }
        self.table.insert(id, association);
        id
    }

    pub(super) fn next_id(&mut self) -> AssociationId {
        self.last += 1;
        AssociationId(self.last)
    }

    pub(super) fn remove(&mut self, id: AssociationId) -> Option<Association> {
        let association = self.table.remove(&id)?;
        if association.accepted
            && let Entry::Occupied(mut count) = self.accepted.entry(opener(association.peer))
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        match association.name.clone().map(|name| (name, association.stack)) {
            Some(name) if self.by_name.get(&name) == Some(&id) => {
                self.by_name.remove(&name);
            }
            Some(_) => {}
            None => {
                self.unproven.remove(&(association.invited, id));
            }
        }
        Some(association)
    }
}

/// Returns what a peer's connections are counted under: whoever has one address of an IPv6 network has all 2⁶⁴ of it.
pub(super) fn opener(peer: SocketAddr) -> IpAddr {
    share::network(peer.ip(), 32, 64)
}
