// SPDX-License-Identifier: Apache-2.0
//! Queries that wait for what their NSLP says of them (RFC 5971 §4.3.2).
//!
//! An NSLP that is asked gets [`Event::RecvMessage`](crate::Event::RecvMessage) and has [`limits::DECISION_TIME`] for its answer;
//! until then the Query is kept, which whoever sent it need not be proven for, so that only [`limits::HELD_QUERIES_MAX`] are.
//! One more ends the wait of the oldest, and those of strangers before those of peers: a flood leaves an NSLP that answers at
//! once the time that it needs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use netserv_model::Instant;
use netserv_wire::gist::Message;

use crate::api::{Disposition, QueryId};
use crate::cx::{Deadline, Owner, Timers};
use crate::limits;
use crate::messages::Arrival;
use crate::routing::Routes;

/// Queries that wait, oldest first, and what became of others.
#[derive(Debug, Default)]
pub(super) struct HeldQueries {
    held: BTreeMap<QueryId, Held>,
    /// The order in which they make room for others.
    order: BTreeSet<(Standing, QueryId)>,
    releases: VecDeque<(QueryId, Disposition)>,
    last: u64,
    /// When the timer fires that was set for the oldest.
    armed: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) arrival: Arrival,
    pub(super) query: Message,
    /// The datagram as it came, if it is for somebody else.
    pub(super) payload: Option<Vec<u8>>,
    pub(super) until: Instant,
    pub(super) silence_is_peer: bool,
    pub(super) standing: Standing,
}

/// Whose a Query is. Strangers make room first, and who has its share as a peer counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Stranger,
    Peer(IpAddr),
}

/// Whether one more Query may wait.
#[derive(Debug)]
pub(super) enum Room {
    Free,
    /// This one was taken out for it.
    InPlaceOf(QueryId, Box<Held>),
    Full,
}

impl HeldQueries {
    pub(super) fn poll_release(&mut self) -> Option<(QueryId, Disposition)> {
        self.releases.pop_front()
    }

    /// Takes what becomes of a datagram that was held.
    pub(super) fn release(&mut self, id: QueryId, disposition: Disposition) {
        self.releases.push_back((id, disposition));
    }

    pub(super) fn get(&self, id: QueryId) -> Option<&Held> {
        self.held.get(&id)
    }

    /// Takes the datagram that a Query came in, which is for somebody else.
    pub(super) fn keep_payload(&mut self, id: QueryId, payload: &[u8]) {
        if let Some(held) = self.held.get_mut(&id) {
            held.payload = Some(payload.to_vec());
        }
    }

    /// Returns the Queries for an NSLP.
    pub(super) fn of_nslp(&self, nslp_id: u16) -> Vec<QueryId> {
        let of_it = |(id, held): (&QueryId, &Held)| (held.query.nslp_id == nslp_id).then_some(*id);
        self.held.iter().filter_map(of_it).collect()
    }

    pub(super) fn next_id(&mut self) -> QueryId {
        self.last += 1;
        QueryId(self.last)
    }

    pub(super) fn insert(&mut self, id: QueryId, held: Held) {
        self.order.insert((held.standing, id));
        self.held.insert(id, held);
    }

    pub(super) fn remove(&mut self, id: QueryId) -> Option<Held> {
        let held = self.held.remove(&id)?;
        self.order.remove(&(held.standing, id));
        Some(held)
    }

    /// Takes out the oldest, if its time is over.
    pub(super) fn expire(&mut self, now: Instant) -> Option<(QueryId, Held)> {
        let (&id, _) = self.held.first_key_value().filter(|(_, held)| held.until <= now)?;
        self.remove(id).map(|held| (id, held))
    }

    /// Returns whose a Query is: a peer's, if it names one that has less than its share here.
    pub(super) fn standing(&self, routes: &Routes, query: &Message) -> Standing {
        let is_known = |nli: &&netserv_wire::gist::Nli| routes.peers().find(&nli.peer_identity, nli.address).is_some();
        let known = query.nli.as_ref().filter(is_known).map(|nli| nli.address);
        let in_share = |address: &IpAddr| self.of_peer(*address) < limits::HELD_QUERIES_PER_PEER_MAX;
        known.filter(in_share).map_or(Standing::Stranger, Standing::Peer)
    }

    /// Returns how many Queries a peer has here as one.
    fn of_peer(&self, peer: IpAddr) -> usize {
        let of_peer = (Standing::Peer(peer), QueryId(0))..=(Standing::Peer(peer), QueryId(u64::MAX));
        self.order.range(of_peer).count()
    }

    /// Makes room for one more Query, if there has to be.
    pub(super) fn make_room(&mut self, standing: Standing) -> Room {
        if self.releases.len() >= limits::HELD_QUERIES_MAX {
            return Room::Full;
        }
        if self.held.len() < limits::HELD_QUERIES_MAX {
            return Room::Free;
        }
        self.take_for(standing).map_or(Room::Full, |(id, held)| Room::InPlaceOf(id, Box::new(held)))
    }

    /// Takes out the oldest that makes room for a Query: of strangers, and if there are none and it is a peer's, of peers.
    fn take_for(&mut self, standing: Standing) -> Option<(QueryId, Held)> {
        let &(first, id) = self.order.first()?;
        let id = match (first, standing) {
            (Standing::Stranger, _) => id,
            (Standing::Peer(_), Standing::Stranger) => return None,
            (Standing::Peer(_), Standing::Peer(_)) => *self.held.first_key_value()?.0,
        };
        self.remove(id).map(|held| (id, held))
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.held.first_key_value().map(|(_, held)| (held.until, "peer decision"))
    }

    /// Sets the timer anew; to be called after any came or went.
    pub(super) fn arm(&mut self, timers: &mut Timers) {
        let at = self.deadline().map(|(at, _)| at);
        let before = std::mem::replace(&mut self.armed, at);
        timers.set(Owner::HeldQueries, before, at);
    }
}
