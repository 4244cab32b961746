// SPDX-License-Identifier: Apache-2.0
//! The responding node's state machine (RFC 5971 §6.3), with the node's own part in it (§6.1).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{
    Direction, ErrorCode, Message, MessageType, Mri, NatTraversal, Nli, ObjectType, StackProposal,
};

use crate::api::{
    AssociationId, Audience, Counter, FailReason, InterfaceId, Notification, PeerChoice, ResponderPolicy, RouteId,
    RouteStatus, SendStatus, TlsPolicy,
};
use crate::associations::stack;
use crate::associations::stack::{Ports, Stack};
use crate::cookie::{CookieJar, Opened, Sealed};
use crate::delivery::Delivery;
use crate::engine::{Arrival, Engine, Via};
use crate::errors::{Fault, MRI, STACK_CONFIGURATION, STACK_PROPOSAL};
use crate::limits;
use crate::routing::{NatSide, NewPeer, Responder, Role, Route, RouteKey};

impl Engine {
    /// Takes a Query for an NSLP of this node.
    pub(crate) fn on_query(&mut self, now: Instant, arrival: &Arrival, mut query: Message) {
        let Via::Datagram { source, interface, ttl } = arrival.via else { return };
        let (Some(mri), Some(session), Some(nli)) = (query.mri.as_ref(), query.session, query.nli.clone()) else {
            return;
        };
        if nli.peer_identity == self.settings.config().peer_identity {
            self.out.count(Counter::QueriesLooped);
            return;
        }
        if !self.settings.may_answer(nli.address) {
            self.out.count(Counter::Unanswerable);
            return;
        }
        if let Some(fault) = query_fault(arrival, &query, mri, &nli, source, ttl) {
            self.send_error(now, arrival, fault, &query);
            return;
        }
        if !self.settings.may_come_in(interface, mri) {
            self.out.count(Counter::QueriesForeign);
            let fault = Fault::of_mri(ErrorCode::IngressFilterFailure, mri, FLOW_SOURCE);
            self.send_error(now, arrival, fault, &query);
            return;
        }
        if !self.queries.take(now) {
            self.out.count(Counter::QueriesLimited);
            return;
        }
        match self.settings.peer_choice(query.nslp_id, mri) {
            // What is for others and goes on does not get here.
            PeerChoice::Peer | PeerChoice::Forward => {
                let distance = hop_distance(arrival, mri, &nli);
                let key = RouteKey { session, nslp_id: query.nslp_id, mri: mri.inverted() };
                if let Some(delivery) = Delivery::take(&mut query) {
                    self.deliver_stateless(arrival, &key, delivery, distance, None);
                }
                self.answer_query(now, arrival, &query, None);
            }
            PeerChoice::Ask { silence_is_peer } => self.ask_nslp(now, arrival, query, silence_is_peer),
        }
    }

    /// Answers a Query, whose sender becomes a peer. Nothing is kept for it, unless the policy says so.
    pub(crate) fn answer_query(&mut self, now: Instant, arrival: &Arrival, query: &Message, data: Option<Vec<u8>>) {
        let Via::Datagram { source, interface, .. } = arrival.via else { return };
        let (Some(mri), Some(session), Some(nli)) = (query.mri.as_ref(), query.session, query.nli.as_ref()) else {
            return;
        };
        let distance = hop_distance(arrival, mri, nli);
        let key = RouteKey { session, nslp_id: query.nslp_id, mri: mri.inverted() };
        let inside = query.nat_traversal.as_ref().map(|nats| nats.mri.inverted());
        let port = Some(source.port());
        let seen = Seen { nli, port, interface, association: None, hold_time: None, distance, inside };
        let association = self.shared_association(now, query);
        let mut response = self.response(now, arrival, &key, query, &seen, association);
        if data.is_some() {
            response.nslp_data = data;
            if association.is_none() && response.emit().len() > self.settings.config().datagram_bytes_max {
                response.nslp_data = None;
                self.out.count(Counter::DataDropped);
            }
        }
        self.out.count(Counter::QueriesAnswered);
        if !response.reply_wanted {
            self.accept(now, arrival, key, &seen);
        }
        match association {
            Some(association) => self.send_on_association(now, association, &response),
            None => {
                let known = self.peers.find(&nli.peer_identity, nli.address).is_some();
                let audience = if known { Audience::Peer } else { Audience::Querier };
                let peer = SocketAddr::new(nli.address, source.port());
                let sent = self.out.send_to(now, audience, (arrival.local, peer), None, &response);
                if sent && response.stack_configuration.is_some() {
                    self.associations.invite(now, peer);
                }
                sent
            }
        };
    }

    fn response(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        key: &RouteKey,
        query: &Message,
        seen: &Seen<'_>,
        association: Option<AssociationId>,
    ) -> Message {
        let mut response = self.message(MessageType::Response, key.clone());
        response.nli = Some(self.settings.nli_for(&key.mri, seen.distance, arrival.local, self.validity()));
        response.query_cookie = query.query_cookie.clone();
        // RFC 5971 §7.2.2: the querier finds its state by what the NATs found, and cannot check the source.
        response.nat_traversal = query.nat_traversal.clone();
        response.source_is_signaller = association.is_some() || query.nat_traversal.is_none();
        if query.stack_proposal.is_none() && self.settings.config().policy == ResponderPolicy::Immediate {
            return response;
        }
        response.reply_wanted = true;
        let sealed = Sealed { interface: seen.interface, distance: seen.distance };
        let row = (key, seen.inside.as_ref());
        response.responder_cookie = Some(self.cookies.seal(now, &mut self.rng, row, seen.nli, sealed));
        if query.stack_proposal.is_some() && association.is_none() {
            let (stacks, hold_time) = (self.settings.config().tls.stacks(), self.settings.config().hold_time);
            let ports = Ports { plain: self.settings.config().tcp_port, tls: self.settings.config().tls_port };
            response.stack_proposal = Some(stack::proposal(stacks));
            response.stack_configuration = Some(stack::configuration(stacks, hold_time, Some(ports)));
        }
        response
    }

    /// Returns an open association with the Query's sender that will do for the Query (RFC 5971 §5.7.4).
    fn shared_association(&mut self, now: Instant, query: &Message) -> Option<AssociationId> {
        let (proposal, nli) = (query.stack_proposal.as_ref()?, query.nli.as_ref()?);
        let id = self.associations.find(nli, Stack::Plain)?;
        let stack = self.associations.stack(id)?;
        // A connection that has been silent for too long may be dead, and a Response on it would be lost.
        let alive =
            self.associations.is_alive(id, now, self.settings.config().hold_time) && self.associations.has_room(id);
        let fits = stack::will_do(stack, proposal) && alive;
        if fits {
            self.out.count(Counter::AssociationsReused);
        }
        fits.then_some(id)
    }

    /// Takes a Confirm, which makes or refreshes a row if it brings back a cookie of this node.
    pub(crate) fn on_confirm(&mut self, now: Instant, arrival: &Arrival, mut message: Message) {
        let (Some(mri), Some(session), Some(nli)) = (message.mri.take(), message.session, message.nli.take()) else {
            return;
        };
        // What is beyond a NAT calls itself by an address that the NAT does not send from; the cookie knows the NAT's.
        let beyond_nats = message.responder_cookie.as_ref().is_some_and(CookieJar::is_beyond_nats);
        if !beyond_nats && !self.source_fits(arrival, &nli) {
            return;
        }
        let key = RouteKey { session, nslp_id: message.nslp_id, mri: mri.inverted() };
        let opened = message
            .responder_cookie
            .as_ref()
            .and_then(|cookie| self.cookies.open(now, &mut self.rng, &key, &nli, cookie));
        let Some(Opened { sealed: Sealed { interface, distance }, key, address, inside }) = opened else {
            self.out.count(Counter::CookiesRefused);
            return;
        };
        let nli = Nli { address, ..nli };
        if beyond_nats && !self.source_fits(arrival, &nli) {
            return;
        }
        let distance = hop_distance(arrival, &mri, &nli).or(distance);
        (message.mri, message.nli) = (Some(mri), Some(nli.clone()));
        if !self.confirm_fits_association(now, arrival, &message) || !self.confirm_is_in_scope(now, arrival, &key) {
            return;
        }
        let (port, association) = match arrival.via {
            Via::Datagram { source, .. } => (Some(source.port()), None),
            Via::Association(id) => (None, Some(id)),
        };
        let hold_time = message.stack_configuration.as_ref().map(|configuration| configuration.hold_time);
        let seen = Seen { nli: &nli, port, interface, association, hold_time, distance, inside };
        let Some(id) = self.accept(now, arrival, key, &seen) else { return };
        self.out.count(Counter::ConfirmsAccepted);
        if let Some(delivery) = Delivery::take(&mut message) {
            self.deliver_on_route(now, id, arrival, delivery);
        }
        self.flush(now, id);
        self.arm_route(id);
    }

    /// Checks how a Confirm comes and what it says of connections, and closes a new connection that fails.
    fn confirm_fits_association(&mut self, now: Instant, arrival: &Arrival, confirm: &Message) -> bool {
        let Via::Association(id) = arrival.via else {
            if self.settings.config().tls == TlsPolicy::Required {
                self.out.count(Counter::StacksRefused);
                return false;
            }
            return confirm.stack_proposal.as_ref().is_none_or(|echo| self.is_our_proposal(echo));
        };
        let proven = self.associations.name(id).is_some();
        let fault = match &confirm.stack_proposal {
            Some(echo) if !self.is_our_proposal(echo) => None,
            Some(_) if proven || confirm.stack_configuration.is_some() => return true,
            None if proven => return true,
            Some(_) => Some(Fault::missing(STACK_CONFIGURATION)),
            None => Some(Fault::missing(STACK_PROPOSAL)),
        };
        if let Some(fault) = fault {
            self.send_error(now, arrival, fault, confirm);
        }
        if !proven {
            self.end_association(now, id, true);
        }
        false
    }

    /// Returns whether a peer may speak about a flow; if it may not, and has said nothing good so far, its connection ends.
    fn confirm_is_in_scope(&mut self, now: Instant, arrival: &Arrival, key: &RouteKey) -> bool {
        let Via::Association(id) = arrival.via else { return true };
        if self.associations.may_carry(id, &key.mri) {
            return true;
        }
        self.out.count(Counter::FlowsForbidden);
        if self.associations.name(id).is_none() {
            self.end_association(now, id, true);
        }
        false
    }

    /// Returns whether a peer saw the stacks that this node offers; if not, somebody changed them (RFC 5971 §8.6).
    fn is_our_proposal(&mut self, echo: &StackProposal) -> bool {
        let ours = *echo == stack::proposal(self.settings.config().tls.stacks());
        if !ours {
            self.out.count(Counter::StacksRefused);
        }
        ours
    }

    /// Makes or refreshes the row toward a peer that has proven its address.
    fn accept(&mut self, now: Instant, arrival: &Arrival, key: RouteKey, seen: &Seen<'_>) -> Option<RouteId> {
        let id = match self.routes.find(&key) {
            Some(id) => id,
            None => self.new_responder(key, arrival.local, seen.nli.address)?,
        };
        let outdone = self.give_way(id, seen.nli.address);
        let expires_at = now + self.validity();
        let route = self.routes.get_mut(id)?;
        let Role::Responder(responder) = &mut route.role else {
            self.out.count(Counter::RoutesRefused);
            return None;
        };
        let moved = outdone || responder.interface != seen.interface && route.peer.is_some();
        *responder = Responder { expires_at, interface: seen.interface };
        (route.local, route.distance) = (arrival.local, seen.distance);
        self.routes.set_nat(id, seen.inside.clone().map_or(NatSide::None, |mri| NatSide::Responder(Box::new(mri))));
        let peer = NewPeer { nli: seen.nli, port: seen.port, local: arrival.local };
        let changed = self.set_peer(id, Some(peer));
        if let Some(association) = seen.association {
            self.prove_association(now, association, seen.nli, seen.hold_time);
        }
        self.tie(now, id, seen.association);
        if changed || moved {
            let sii = self.routes.get(id)?.peer?;
            self.notify(id, Notification::StatusChange(RouteStatus::Good(sii)));
        }
        self.arm_route(id);
        Some(id)
    }

    /// Gives a row that this node's upstream Query made to whoever queried downstream, who wins (RFC 5971 §5.8.1.3). Returns
    /// whether the row led somewhere before.
    fn give_way(&mut self, id: RouteId, peer: IpAddr) -> bool {
        let Some(route) = self.routes.get(id).filter(|route| route.querier().is_some()) else { return false };
        let upstream = route.key.mri.direction() == Some(Direction::Upstream);
        if !upstream || self.routes.responding_to(peer) >= self.settings.config().routes_per_site_max {
            return false;
        }
        let led = route.peer.is_some();
        self.set_peer(id, None);
        self.routes.make_responding(id);
        led
    }

    /// Returns how long rows toward this node are valid: longer, the more there are, so that their refreshes are not more than
    /// the node is to answer (RFC 5971 §4.4.4).
    pub(crate) fn validity(&self) -> Duration {
        let rows = u32::try_from(self.routes.responding()).unwrap_or(u32::MAX);
        // A refresh begins after half of the validity at the earliest.
        let shared = Duration::from_secs(2) * rows / self.settings.config().refreshes_per_second.max(1);
        self.settings.config().validity.max(shared).min(limits::PEER_TIME_MAX)
    }

    fn new_responder(&mut self, key: RouteKey, local: IpAddr, peer: IpAddr) -> Option<RouteId> {
        let full = self.routes.len() >= self.settings.config().routes_max || self.guest_is_full(key.nslp_id);
        if full || self.routes.responding_to(peer) >= self.settings.config().routes_per_site_max {
            self.out.count(Counter::RoutesRefused);
            return None;
        }
        let responder = Responder { expires_at: Instant::default(), interface: InterfaceId::default() };
        Some(self.add_route(Route::new(key, local, self.settings.config().hops, Role::Responder(responder))))
    }

    pub(crate) fn responder_timeout(&mut self, now: Instant, id: RouteId) {
        let Some(Role::Responder(responder)) = self.routes.get(id).map(|route| &route.role) else { return };
        if now >= responder.expires_at {
            self.out.count(Counter::RoutesExpired);
            self.notify(id, Notification::RouteDeletion);
            self.remove_route(now, id, SendStatus::Failed(FailReason::Timeout));
        }
    }
}

/// What a valid Confirm, or a Query that needs none, says of its sender.
struct Seen<'a> {
    nli: &'a Nli,
    port: Option<u16>,
    interface: InterfaceId,
    association: Option<AssociationId>,
    /// How long the peer keeps the association, if it says.
    hold_time: Option<Duration>,
    distance: Option<u8>,
    /// The MRI of a peer beyond NATs, toward it.
    inside: Option<Mri>,
}

/// Returns what is wrong with a Query, by the checks of its routing method (RFC 5971 §5.8.1.2, §5.8.1.3, §7.2).
fn query_fault(arrival: &Arrival, query: &Message, mri: &Mri, nli: &Nli, source: SocketAddr, ttl: u8) -> Option<Fault> {
    let Some((flow_source, _)) = mri.addresses() else {
        return Some(Fault::of_mri(ErrorCode::ValueNotSupported, mri, MRI_METHOD));
    };
    if flow_source.is_ipv4() != source.is_ipv4() || flow_source.is_ipv4() != arrival.local.is_ipv4() {
        return Some(Fault::of_mri(ErrorCode::IpVersionMismatch, mri, IP_VERSION));
    }
    if nli.address.is_ipv4() != source.is_ipv4() {
        return Some(Fault::of_nli(ErrorCode::ValueNotSupported, nli, IP_VERSION));
    }
    if let Some(fault) = query.nat_traversal.as_ref().and_then(|nats| nat_fault(query, mri, nats)) {
        return Some(fault);
    }
    if query.source_is_signaller && source.ip() != nli.address {
        return Some(Fault::of_type(ErrorCode::UntranslatedObject, MRI));
    }
    match (mri, mri.direction()?) {
        (Mri::PathCoupled(_), Direction::Upstream) if ttl < UPSTREAM_TTL_MIN => Some(ErrorCode::InvalidIpTtl.into()),
        // RFC 5971 §5.8.2: there is no way to ask from the edge.
        (Mri::LooseEnd(_), Direction::Upstream) => Some(Fault::of_mri(ErrorCode::ValueNotSupported, mri, DIRECTION)),
        (Mri::PathCoupled(_), _) | (Mri::LooseEnd(_), Direction::Downstream) | (Mri::Other(_), _) => None,
    }
}

/// Returns what is wrong with what NATs say of a Query (RFC 5971 §7.2.2): they have to have translated every object with
/// addresses, and to tell of a flow of the same kind, within bounds.
fn nat_fault(query: &Message, mri: &Mri, nats: &NatTraversal) -> Option<Fault> {
    let configuration = query.stack_configuration.as_ref().map(|_| ObjectType::StackConfiguration);
    let addressed = [Some(ObjectType::Mri), Some(ObjectType::Nli), configuration];
    if let Some(left) = addressed.into_iter().flatten().find(|object| !nats.has_translated(*object)) {
        return Some(Fault::of_type(ErrorCode::UntranslatedObject, left.number()));
    }
    let same_version = match (mri.addresses(), nats.mri.addresses()) {
        (Some((ours, _)), Some((theirs, _))) => ours.is_ipv4() == theirs.is_ipv4(),
        (_, _) => false,
    };
    let same_kind = std::mem::discriminant(mri) == std::mem::discriminant(&nats.mri);
    let same = same_kind && same_version && mri.direction() == nats.mri.direction();
    let bounded = nats.nats.len() <= limits::NATS_MAX && nats.value_bytes() <= limits::NAT_TRAVERSAL_BYTES_MAX;
    let offset = if same { NAT_COUNT } else { NAT_MRI };
    (!same || !bounded).then(|| Fault::of_nat_traversal(ErrorCode::ValueNotSupported, nats, offset))
}

/// Returns how many IP hops away a message's sender is, if it says something of that (RFC 5971 A.3.3): downstream it tells
/// the TTL that its datagram left with, upstream the distance itself.
pub(crate) fn hop_distance(arrival: &Arrival, mri: &Mri, nli: &Nli) -> Option<u8> {
    let told = Some(nli.ip_ttl).filter(|told| *told != 0)?;
    match (mri.direction()?, arrival.via) {
        (Direction::Upstream, _) => Some(told),
        (Direction::Downstream, Via::Datagram { ttl, .. }) => told.checked_sub(ttl),
        (Direction::Downstream, Via::Association(_)) => None,
    }
}

/// Returns how many IP hops away the sender of a Response is. It repeats what it counted on the way of the Query, which named
/// its TTL, so that 0 is a count, too.
pub(crate) fn response_distance(arrival: &Arrival, mri: &Mri, nli: &Nli) -> Option<u8> {
    match mri.direction()? {
        Direction::Upstream => Some(nli.ip_ttl),
        Direction::Downstream => hop_distance(arrival, mri, nli),
    }
}

/// Where the MRI has its method, and MRI and NLI their IP version (RFC 5971 A.3.1, A.3.3).
const MRI_METHOD: usize = 0;
const IP_VERSION: usize = 2;
/// Where a path-coupled MRI has the flow's source.
const FLOW_SOURCE: usize = 4;
/// Where a NAT traversal object has its number of NATs, and its MRI (RFC 5971 A.3.8).
const NAT_COUNT: usize = 2;
const NAT_MRI: usize = 4;
/// Where a loose-end MRI has its direction (RFC 5971 A.3.1.2).
const DIRECTION: usize = 2;
/// The lowest TTL of an upstream Query from a neighbour, which sent it with 255 (RFC 5971 §5.8.1.3).
pub(crate) const UPSTREAM_TTL_MIN: u8 = 254;
