// SPDX-License-Identifier: Apache-2.0
//! Of which Queries this node becomes the peer (RFC 5971 §4.3.2): rules by flow, and questions to the NSLP.
//!
//! Rules keep nothing and are followed at once, before anything is answered. An NSLP that is asked gets
//! [`Event::RecvMessage`](crate::Event::RecvMessage) and has [`limits::DECISION_TIME`] for its answer; until then the Query is kept, which whoever sent it
//! need not be proven for, so that only [`limits::HELD_QUERIES_MAX`] are. One more ends the wait of the oldest, and those of
//! strangers before those of peers: a flood leaves an NSLP that answers at once the time that it needs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use netserv_model::Instant;
use netserv_wire::gist::{ErrorCode, HEADER_BYTES, MAGIC, Message};

use crate::api::{ApiError, Counter, Disposition, QueryDecision, QueryId};
use crate::context::{Deadline, Owner};
use crate::delivery::Delivery;
use crate::engine::{Arrival, Engine};
use crate::errors::Fault;
use crate::limits;
use crate::responder::hop_distance;
use crate::routing::RouteKey;

/// Queries that wait, oldest first, and what became of others.
#[derive(Debug, Default)]
pub(crate) struct HeldQueries {
    held: BTreeMap<QueryId, Held>,
    /// The order in which they make room for others.
    order: BTreeSet<(Standing, QueryId)>,
    releases: VecDeque<(QueryId, Disposition)>,
    /// What the message that is being taken comes to, unless it is consumed.
    passing: Option<Passing>,
    last: u64,
    /// When the timer fires that was set for the oldest.
    armed: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    arrival: Arrival,
    query: Message,
    /// The datagram as it came, if it is for somebody else.
    payload: Option<Vec<u8>>,
    until: Instant,
    silence_is_peer: bool,
    standing: Standing,
}

/// Whose a Query is. Strangers make room first, and who has its share as a peer counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Stranger,
    Peer(IpAddr),
}

#[derive(Clone, Copy, Debug)]
enum Passing {
    Held(QueryId),
    Forward,
}

impl HeldQueries {
    pub(crate) fn poll_release(&mut self) -> Option<(QueryId, Disposition)> {
        self.releases.pop_front()
    }

    fn insert(&mut self, id: QueryId, held: Held) {
        self.order.insert((held.standing, id));
        self.held.insert(id, held);
    }

    fn remove(&mut self, id: QueryId) -> Option<Held> {
        let held = self.held.remove(&id)?;
        self.order.remove(&(held.standing, id));
        Some(held)
    }

    /// Returns how many Queries a peer has here as one.
    fn of_peer(&self, peer: IpAddr) -> usize {
        let of_peer = (Standing::Peer(peer), QueryId(0))..=(Standing::Peer(peer), QueryId(u64::MAX));
        self.order.range(of_peer).count()
    }

    /// Takes out the oldest that makes room for a Query: of strangers, and if there are none and it is a peer's, of peers.
    fn make_room_for(&mut self, standing: Standing) -> Option<(QueryId, Held)> {
        let &(first, id) = self.order.first()?;
        let id = match (first, standing) {
            (Standing::Stranger, _) => id,
            (Standing::Peer(_), Standing::Stranger) => return None,
            (Standing::Peer(_), Standing::Peer(_)) => *self.held.first_key_value()?.0,
        };
        self.remove(id).map(|held| (id, held))
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.held.first_key_value().map(|(_, held)| (held.until, "peer decision"))
    }
}

impl Engine {
    /// Asks the NSLP about a Query, which waits meanwhile.
    pub(crate) fn ask_nslp(&mut self, now: Instant, arrival: &Arrival, mut query: Message, silence_is_peer: bool) {
        let (Some(mri), Some(session)) = (query.mri.as_ref(), query.session) else { return };
        let key = RouteKey { session, nslp_id: query.nslp_id, mri: mri.inverted() };
        let distance = query.nli.as_ref().and_then(|nli| hop_distance(arrival, mri, nli));
        let standing = self.standing(&query);
        if !self.make_room_to_hold(now, standing) {
            self.out.count(Counter::QueriesUndecided);
            let is_here = arrival.destination == arrival.local;
            if silence_is_peer || is_here {
                self.answer_query(now, arrival, &query, None);
            } else if self.may_go_on(now, arrival, &query, &query.emit_datagram()) {
                self.held.passing = Some(Passing::Forward);
            }
            return;
        }
        self.held.last += 1;
        let id = QueryId(self.held.last);
        let delivery = Delivery::take_or_empty(&mut query);
        self.deliver_stateless(arrival, &key, delivery, distance, Some(id));
        let until = now + limits::DECISION_TIME;
        self.held.insert(id, Held { arrival: *arrival, query, payload: None, until, silence_is_peer, standing });
        self.held.passing = Some(Passing::Held(id));
        self.out.count(Counter::QueriesHeld);
        self.arm_held();
    }

    /// Returns whose a Query is: a peer's, if it names one that has less than its share here.
    fn standing(&self, query: &Message) -> Standing {
        let known = query.nli.as_ref().filter(|nli| self.peers.find(&nli.peer_identity, nli.address).is_some());
        let in_share = |address: &IpAddr| self.held.of_peer(*address) < limits::HELD_QUERIES_PER_PEER_MAX;
        known.map(|nli| nli.address).filter(in_share).map_or(Standing::Stranger, Standing::Peer)
    }

    /// Makes room for one more Query that waits, if there has to be; returns whether there is.
    fn make_room_to_hold(&mut self, now: Instant, standing: Standing) -> bool {
        if self.held.releases.len() >= limits::HELD_QUERIES_MAX {
            return false;
        }
        if self.held.held.len() < limits::HELD_QUERIES_MAX {
            return true;
        }
        let Some((id, held)) = self.held.make_room_for(standing) else { return false };
        self.decide_alone(now, id, held);
        true
    }

    /// Returns what becomes of the datagram that was just taken.
    pub(crate) fn disposition(&mut self, payload: &[u8], is_for_others: bool) -> Disposition {
        match self.held.passing.take() {
            Some(Passing::Held(id)) if is_for_others => {
                if let Some(held) = self.held.held.get_mut(&id) {
                    held.payload = Some(payload.to_vec());
                }
                Disposition::Held(id)
            }
            Some(Passing::Forward) if is_for_others => self.one_hop_on(payload.to_vec()),
            Some(Passing::Held(_) | Passing::Forward) | None => Disposition::Consumed,
        }
    }

    /// Takes the NSLP's decision.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        nslp_id: u16,
        id: QueryId,
        decision: QueryDecision,
    ) -> Result<(), ApiError> {
        let asked = self.held.held.get(&id).filter(|held| held.query.nslp_id == nslp_id);
        let held = asked.ok_or(ApiError::UnknownQuery(id))?;
        let bytes_max = match (&decision, &held.payload) {
            (QueryDecision::Forward { data: Some(_) }, Some(payload)) => {
                let message_bytes = |payload: &[u8]| payload.len() - size_of_val(&MAGIC);
                let rest = message_bytes(&without_data(payload)) + OBJECT_HEADER;
                let bytes = self.settings.config().datagram_bytes_max.max(message_bytes(payload));
                bytes.saturating_sub(rest) / 4 * 4
            }
            (QueryDecision::Peer { .. } | QueryDecision::Forward { .. }, _) => limits::HANDSHAKE_DATA_BYTES_MAX,
        };
        let (QueryDecision::Peer { data } | QueryDecision::Forward { data }) = &decision;
        if let Some(bytes) = data.as_ref().map(Vec::len).filter(|bytes| *bytes > bytes_max) {
            return Err(ApiError::TooLarge { bytes, max: bytes_max });
        }
        if let Some(held) = self.held.remove(id) {
            self.let_go(now, id, held, decision);
        }
        self.arm_held();
        Ok(())
    }

    /// Decides for NSLPs that said nothing in time.
    pub(crate) fn held_timeout(&mut self, now: Instant) {
        while let Some((&id, _)) = self.held.held.first_key_value().filter(|(_, held)| held.until <= now) {
            if let Some(held) = self.held.remove(id) {
                self.decide_alone(now, id, held);
            }
        }
        self.arm_held();
    }

    /// Forgets what an NSLP that is no more decided; Queries that wait for it go on.
    pub(crate) fn forget_peering(&mut self, now: Instant, nslp_id: u16) {
        let of_it = |(id, held): (&QueryId, &Held)| (held.query.nslp_id == nslp_id).then_some(*id);
        let ids: Vec<QueryId> = self.held.held.iter().filter_map(of_it).collect();
        for id in ids {
            match self.held.remove(id) {
                // Nobody is here any more for whom the flow's endpoint could become the peer.
                Some(Held { arrival, query, payload: None, .. }) => {
                    self.send_error(now, &arrival, ErrorCode::EndpointFound.into(), &query);
                }
                Some(held) => self.decide_alone(now, id, Held { silence_is_peer: false, ..held }),
                None => {}
            }
        }
        self.arm_held();
    }

    fn decide_alone(&mut self, now: Instant, id: QueryId, held: Held) {
        self.out.count(Counter::QueriesUndecided);
        let decision = match held.silence_is_peer {
            true => QueryDecision::Peer { data: None },
            false => QueryDecision::Forward { data: None },
        };
        self.let_go(now, id, held, decision);
    }

    fn let_go(&mut self, now: Instant, id: QueryId, held: Held, decision: QueryDecision) {
        let Held { arrival, query, payload, .. } = held;
        let Some(payload) = payload else {
            let data = if let QueryDecision::Peer { data } = decision { data } else { None };
            return self.answer_query(now, &arrival, &query, data);
        };
        let disposition = match decision {
            QueryDecision::Forward { data } => {
                let payload = if let Some(data) = data { with_data(&payload, &data) } else { payload };
                match self.may_go_on(now, &arrival, &query, &payload) {
                    true => self.one_hop_on(payload),
                    false => Disposition::Consumed,
                }
            }
            QueryDecision::Peer { data } => {
                self.answer_query(now, &arrival, &query, data);
                Disposition::Consumed
            }
        };
        self.held.releases.push_back((id, disposition));
    }

    /// Returns whether a Query may go on as this payload; if not, its sender is told why.
    fn may_go_on(&mut self, now: Instant, arrival: &Arrival, query: &Message, payload: &[u8]) -> bool {
        let fault = match self.out.path_mtus.too_long_for(now, arrival.destination, payload) {
            _ if query.hops == 0 => Fault::from(ErrorCode::HopLimitExceeded),
            Some(mtu) => Fault::too_large(mtu),
            None => return true,
        };
        self.send_error(now, arrival, fault, query);
        false
    }

    /// Returns that a datagram in Q-mode goes on, with one hop less.
    fn one_hop_on(&mut self, mut payload: Vec<u8>) -> Disposition {
        self.out.count(Counter::Declined);
        if let Some(hops) = payload.get_mut(HOPS_AT) {
            *hops = hops.saturating_sub(1);
        }
        Disposition::Forward { payload: Some(payload) }
    }

    fn arm_held(&mut self) {
        let at = self.held.deadline().map(|(at, _)| at);
        let before = std::mem::replace(&mut self.held.armed, at);
        self.timers.set(Owner::HeldQueries, before, at);
    }
}

/// Returns a datagram's payload with another NSLP payload at its end, and all other objects as they came.
fn with_data(payload: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = without_data(payload);
    let words = u16::try_from(data.len().div_ceil(4)).expect("the caller has checked the size");
    out.extend_from_slice(&NSLP_DATA.to_be_bytes());
    out.extend_from_slice(&words.to_be_bytes());
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
    let length = u16::try_from((out.len() - size_of_val(&MAGIC) - HEADER_BYTES) / 4).expect("a datagram is short");
    out[LENGTH_AT..LENGTH_AT + 2].copy_from_slice(&length.to_be_bytes());
    out
}

/// Returns a datagram's payload without its NSLP payload; the length in its header stays.
fn without_data(payload: &[u8]) -> Vec<u8> {
    let (head, mut rest) = payload.split_at(payload.len().min(size_of_val(&MAGIC) + HEADER_BYTES));
    let mut out = head.to_vec();
    while let Some(([a, b, c, d], _)) = rest.split_first_chunk() {
        let words = usize::from(u16::from_be_bytes([*c, *d]) & FIELD);
        let (object, others) = rest.split_at(rest.len().min(OBJECT_HEADER + 4 * words));
        if u16::from_be_bytes([*a, *b]) & FIELD != NSLP_DATA {
            out.extend_from_slice(object);
        }
        rest = others;
    }
    out
}

/// Where a datagram with magic number has the number of hops and the length.
const HOPS_AT: usize = size_of_val(&MAGIC) + 1;
const LENGTH_AT: usize = size_of_val(&MAGIC) + 2;
/// Bytes of an object's type and length, and what is type and what is length of them (RFC 5971 A.2).
const OBJECT_HEADER: usize = 4;
const FIELD: u16 = 0x0fff;
/// The type of NSLP payloads (RFC 5971 A.3).
const NSLP_DATA: u16 = 8;
