// SPDX-License-Identifier: Apache-2.0
//! The responding node (RFC 5971 §6.3), with the node's own part in it (§6.1): of which Queries it becomes the peer, its
//! Responses, and the Confirms that follow.
//!
//! Rules keep nothing and are followed at once, before anything is answered. Where the NSLP is asked, the Query waits for it.

mod accept;
mod answer;
mod checks;
mod confirm;
mod cookie;
mod held;
mod payload;

use netserv_wire::gist::{ErrorCode, Message};
use rand::rngs::StdRng;

pub(crate) use self::accept::timeout;
use self::answer::answer;
use self::checks::{FLOW_SOURCE, query_fault};
use self::confirm::on_confirm;
use self::cookie::CookieJar;
use self::held::{Held, HeldQueries, Room};
use self::payload::{data_bytes_max, one_hop_on, with_data};
use crate::api::{ApiError, AssociationId, Config, Counter, Disposition, PeerChoice, QueryDecision, QueryId};
use crate::associations::Associations;
use crate::cx::{Cx, Deadline, Outbox, TokenBucket};
use crate::limits;
use crate::messages::{Arrival, Delivery, Fault, Stateless, Via, deliver_stateless, send_error};
use crate::routing::{RouteKey, Routes};

/// What the responding node keeps beside rows.
#[derive(Debug)]
pub(crate) struct Responding {
    cookies: CookieJar,
    /// Bounds Queries that are answered.
    queries: TokenBucket,
    held: HeldQueries,
    /// What the message that is being taken comes to, unless it is consumed.
    passing: Option<Passing>,
}

#[derive(Clone, Copy, Debug)]
enum Passing {
    Held(QueryId),
    Forward,
}

impl Responding {
    pub(crate) fn new(random: &mut StdRng, config: &Config) -> Responding {
        Responding {
            cookies: CookieJar::new(random, config.secret_lifetime),
            queries: TokenBucket::new(config.query_rate),
            held: HeldQueries::default(),
            passing: None,
        }
    }

    /// Takes a Query for an NSLP of this node.
    pub(crate) fn on_query(
        &mut self,
        cx: &mut Cx<'_>,
        routes: &mut Routes,
        associations: &mut Associations,
        arrival: &Arrival,
        mut query: Message,
    ) {
        let Via::Datagram { source, interface, ttl } = arrival.via else { return };
        let (Some(mri), Some(session), Some(nli)) = (query.mri.as_ref(), query.session, query.nli.clone()) else {
            return;
        };
        if nli.peer_identity == cx.config().peer_identity {
            cx.out.count(Counter::QueriesLooped);
            return;
        }
        if !cx.settings.may_answer(nli.address) {
            cx.out.count(Counter::Unanswerable);
            return;
        }
        if let Some(fault) = query_fault(arrival, &query, mri, &nli, source, ttl) {
            send_error(cx, routes, associations, arrival, fault, &query);
            return;
        }
        if !cx.settings.may_come_in(interface, mri) {
            cx.out.count(Counter::QueriesForeign);
            let fault = Fault::of_mri(ErrorCode::IngressFilterFailure, mri, FLOW_SOURCE);
            send_error(cx, routes, associations, arrival, fault, &query);
            return;
        }
        if !self.queries.take(cx.now) {
            cx.out.count(Counter::QueriesLimited);
            return;
        }
        match cx.settings.peer_choice(query.nslp_id, mri) {
            // What is for others and goes on does not get here.
            PeerChoice::Peer | PeerChoice::Forward => {
                let distance = arrival.hop_distance(mri, &nli);
                let key = RouteKey { session, nslp_id: query.nslp_id, mri: mri.inverted() };
                if let Some(delivery) = Delivery::take(&mut query) {
                    let from = Stateless { key: &key, distance, query: None };
                    deliver_stateless(cx, routes, associations, arrival, from, delivery);
                }
                answer(cx, routes, associations, &mut self.cookies, arrival, &query, None);
            }
            PeerChoice::Ask { silence_is_peer } => {
                self.ask_nslp(cx, routes, associations, arrival, query, silence_is_peer);
            }
        }
    }

    /// Takes a Confirm. Returns an association that has to end, since its peer said nothing good so far.
    pub(crate) fn on_confirm(
        &mut self,
        cx: &mut Cx<'_>,
        routes: &mut Routes,
        associations: &mut Associations,
        arrival: &Arrival,
        confirm: Message,
    ) -> Option<AssociationId> {
        on_confirm(cx, routes, associations, &mut self.cookies, arrival, confirm)
    }

    /// Asks the NSLP about a Query, which waits meanwhile.
    fn ask_nslp(
        &mut self,
        cx: &mut Cx<'_>,
        routes: &mut Routes,
        associations: &mut Associations,
        arrival: &Arrival,
        mut query: Message,
        silence_is_peer: bool,
    ) {
        let (Some(mri), Some(session)) = (query.mri.as_ref(), query.session) else { return };
        let key = RouteKey { session, nslp_id: query.nslp_id, mri: mri.inverted() };
        let distance = query.nli.as_ref().and_then(|nli| arrival.hop_distance(mri, nli));
        let standing = self.held.standing(routes, &query);
        match self.held.make_room(standing) {
            Room::Free => {}
            Room::InPlaceOf(id, held) => self.decide_by_default(cx, routes, associations, id, *held),
            Room::Full => {
                cx.out.count(Counter::QueriesUndecided);
                let is_here = arrival.destination == arrival.local;
                if silence_is_peer || is_here {
                    answer(cx, routes, associations, &mut self.cookies, arrival, &query, None);
                } else if may_go_on(cx, routes, associations, arrival, &query, &query.emit_datagram()) {
                    self.passing = Some(Passing::Forward);
                }
                return;
            }
        }
        let id = self.held.next_id();
        let delivery = Delivery::take_or_empty(&mut query);
        let from = Stateless { key: &key, distance, query: Some(id) };
        deliver_stateless(cx, routes, associations, arrival, from, delivery);
        let until = cx.now + limits::DECISION_TIME;
        self.held.insert(id, Held { arrival: *arrival, query, payload: None, until, silence_is_peer, standing });
        self.passing = Some(Passing::Held(id));
        cx.out.count(Counter::QueriesHeld);
        self.held.arm(cx.timers);
    }

    /// Returns what becomes of the datagram that was just taken.
    pub(crate) fn disposition(&mut self, out: &mut Outbox, payload: &[u8], is_for_others: bool) -> Disposition {
        match self.passing.take() {
            Some(Passing::Held(id)) if is_for_others => {
                self.held.keep_payload(id, payload);
                Disposition::Held(id)
            }
            Some(Passing::Forward) if is_for_others => forward(out, payload.to_vec()),
            Some(Passing::Held(_) | Passing::Forward) | None => Disposition::Consumed,
        }
    }

    /// Takes the NSLP's decision.
    pub(crate) fn decide(
        &mut self,
        cx: &mut Cx<'_>,
        routes: &mut Routes,
        associations: &mut Associations,
        nslp_id: u16,
        id: QueryId,
        decision: QueryDecision,
    ) -> Result<(), ApiError> {
        let asked = self.held.get(id).filter(|held| held.query.nslp_id == nslp_id);
        let held = asked.ok_or(ApiError::UnknownQuery(id))?;
        let bytes_max = match (&decision, &held.payload) {
            (QueryDecision::Forward { data: Some(_) }, Some(payload)) => {
                data_bytes_max(payload, cx.config().datagram_bytes_max)
            }
            (QueryDecision::Peer { .. } | QueryDecision::Forward { .. }, _) => limits::HANDSHAKE_DATA_BYTES_MAX,
        };
        let (QueryDecision::Peer { data } | QueryDecision::Forward { data }) = &decision;
        if let Some(bytes) = data.as_ref().map(Vec::len).filter(|bytes| *bytes > bytes_max) {
            return Err(ApiError::TooLarge { bytes, max: bytes_max });
        }
        if let Some(held) = self.held.remove(id) {
            self.apply(cx, routes, associations, id, held, decision);
        }
        self.held.arm(cx.timers);
        Ok(())
    }

    /// Decides for NSLPs that said nothing in time.
    pub(crate) fn decision_timeout(&mut self, cx: &mut Cx<'_>, routes: &mut Routes, associations: &mut Associations) {
        while let Some((id, held)) = self.held.expire(cx.now) {
            self.decide_by_default(cx, routes, associations, id, held);
        }
        self.held.arm(cx.timers);
    }

    /// Lets Queries go on that wait for an NSLP that is no more.
    pub(crate) fn forget(
        &mut self,
        cx: &mut Cx<'_>,
        routes: &mut Routes,
        associations: &mut Associations,
        nslp_id: u16,
    ) {
        for id in self.held.of_nslp(nslp_id) {
            match self.held.remove(id) {
                // Nobody is here any more for whom the flow's endpoint could become the peer.
                Some(Held { arrival, query, payload: None, .. }) => {
                    send_error(cx, routes, associations, &arrival, ErrorCode::EndpointFound.into(), &query);
                }
                Some(held) => {
                    self.decide_by_default(cx, routes, associations, id, Held { silence_is_peer: false, ..held });
                }
                None => {}
            }
        }
        self.held.arm(cx.timers);
    }

    fn decide_by_default(
        &mut self,
        cx: &mut Cx<'_>,
        routes: &mut Routes,
        associations: &mut Associations,
        id: QueryId,
        held: Held,
    ) {
        cx.out.count(Counter::QueriesUndecided);
        let decision = match held.silence_is_peer {
            true => QueryDecision::Peer { data: None },
            false => QueryDecision::Forward { data: None },
        };
        self.apply(cx, routes, associations, id, held, decision);
    }

    fn apply(
        &mut self,
        cx: &mut Cx<'_>,
        routes: &mut Routes,
        associations: &mut Associations,
        id: QueryId,
        held: Held,
        decision: QueryDecision,
    ) {
        let Held { arrival, query, payload, .. } = held;
        let Some(payload) = payload else {
            let data = if let QueryDecision::Peer { data } = decision { data } else { None };
            return answer(cx, routes, associations, &mut self.cookies, &arrival, &query, data);
        };
        let disposition = match decision {
            QueryDecision::Forward { data } => {
                let payload = if let Some(data) = data { with_data(&payload, &data) } else { payload };
                match may_go_on(cx, routes, associations, &arrival, &query, &payload) {
                    true => forward(cx.out, payload),
                    false => Disposition::Consumed,
                }
            }
            QueryDecision::Peer { data } => {
                answer(cx, routes, associations, &mut self.cookies, &arrival, &query, data);
                Disposition::Consumed
            }
        };
        self.held.release(id, disposition);
    }

    /// Returns what becomes of the next datagram that was held.
    pub(crate) fn poll_release(&mut self) -> Option<(QueryId, Disposition)> {
        self.held.poll_release()
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.held.deadline()
    }
}

/// Returns whether a Query may go on as this payload; if not, its sender is told why.
fn may_go_on(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    query: &Message,
    payload: &[u8],
) -> bool {
    let fault = match cx.out.path_mtus.too_long_for(cx.now, arrival.destination, payload) {
        _ if query.hops == 0 => Fault::from(ErrorCode::HopLimitExceeded),
        Some(mtu) => Fault::too_large(mtu),
        None => return true,
    };
    send_error(cx, routes, associations, arrival, fault, query);
    false
}

/// Returns that a datagram in Q-mode goes on, with one hop less.
fn forward(out: &mut Outbox, mut payload: Vec<u8>) -> Disposition {
    out.count(Counter::Declined);
    one_hop_on(&mut payload);
    Disposition::Forward { payload: Some(payload) }
}
