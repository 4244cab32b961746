// SPDX-License-Identifier: Apache-2.0
//! NSLP messages on their way out (RFC 5971 §4.3.2, §4.3.3): checked, queued, and sent as the row allows.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::domain::Side;
use netserv_model::{Instant, SessionId};
use netserv_wire::gist::{Direction, Message, MessageType, Mri, Nli};

use crate::api::{
    ApiError, AssociationId, Audience, Carriage, Counter, Event, FailReason, MessageHandle, Mode, NoPeerReason,
    RouteId, SendOptions, SendStatus, SiiHandle, StateUse, TlsPolicy, TransferAttributes,
};
use crate::associations::stack::Stack;
use crate::engine::Engine;
use crate::limits;
use crate::querier::{Phase, Querier, q_mode_ttl, query_target};
use crate::routing::{Pending, Role, Route, RouteKey};

/// The arguments of `SendMessage`.
pub(crate) struct Outgoing {
    pub(crate) handle: MessageHandle,
    pub(crate) key: RouteKey,
    pub(crate) attributes: TransferAttributes,
    pub(crate) sii: Option<SiiHandle>,
    pub(crate) timeout: Duration,
    pub(crate) data: Vec<u8>,
    pub(crate) hops: Option<u8>,
    pub(crate) options: SendOptions,
}

impl Engine {
    pub(crate) fn send_message(&mut self, now: Instant, mut outgoing: Outgoing, local: IpAddr) -> Result<(), ApiError> {
        self.check_outgoing(&outgoing)?;
        outgoing.attributes.secure |= self.settings.config().tls == TlsPolicy::Required;
        let known = self.routes.find(&outgoing.key);
        let current = known.and_then(|id| self.routes.get(id)).and_then(|route| route.peer);
        if let Some(sii) = outgoing.sii {
            // Of several nodes before it, a peer has routing state for one; the others it takes for strangers.
            let peer = self.peers.get(sii).ok_or(ApiError::UnknownPeer(sii))?;
            let least = outgoing.attributes.least_stack();
            let open = || self.associations.open_to((&peer.identity, peer.address), least, true).is_some();
            if Some(sii) != current || (!outgoing.attributes.reliable && open()) {
                return self.send_explicitly(now, outgoing, sii);
            }
        }
        let peer = current.and_then(|sii| self.peers.get(sii));
        let target = peer.map(|peer| peer.address).or_else(|| query_target(&outgoing.key.mri));
        let needs_association = !self.may_go_in_datagram(now, &outgoing, target);
        // Who takes what goes by itself nobody knows beforehand.
        let alone = outgoing.options.state == StateUse::NotNeeded && !needs_association && !outgoing.attributes.inside;
        let id = match known {
            Some(id) => id,
            None if alone => return self.send_alone(now, outgoing, local),
            None => self.new_querier(now, &outgoing.key, outgoing.options.state, local)?,
        };
        let hops = outgoing.hops.unwrap_or(self.settings.config().hops);
        let Some(route) = self.routes.get_mut(id) else { return Err(ApiError::NoRoute) };
        if route.pending.len() >= limits::PENDING_PER_ROUTE_MAX {
            return Err(ApiError::QueueFull);
        }
        if route.association.is_some_and(|id| !self.associations.may_wait(id, outgoing.data.len())) {
            return Err(ApiError::QueueFull);
        }
        if let Role::Querier(querier) = &mut route.role {
            querier.active_at = now;
            (route.local, route.hops, route.ip_ttl) = (local, hops, outgoing.options.ip_ttl);
        }
        let Outgoing { handle, attributes, timeout, data, options, .. } = outgoing;
        let SendOptions { priority, ip_ttl, .. } = options;
        let deadline = now + timeout;
        let message = Pending { handle, data, attributes, needs_association, hops, priority, ip_ttl, deadline };
        self.routes.push_pending(id, message);
        if known.is_none() {
            self.start_handshake(now, id, Phase::Asking, now);
            return Ok(());
        }
        self.flush(now, id);
        self.ask_for_connection(now, id);
        self.hasten(now, id);
        self.arm_route(id);
        Ok(())
    }

    fn check_outgoing(&self, outgoing: &Outgoing) -> Result<(), ApiError> {
        let bytes = outgoing.data.len();
        if !self.settings.hosts(outgoing.key.nslp_id) {
            return Err(ApiError::UnknownNslp(outgoing.key.nslp_id));
        }
        if bytes > limits::DATA_BYTES_MAX {
            return Err(ApiError::TooLarge { bytes, max: limits::DATA_BYTES_MAX });
        }
        if outgoing.hops == Some(0) || outgoing.options.ip_ttl == Some(0) {
            return Err(ApiError::NoHops);
        }
        if outgoing.attributes.secure && self.settings.config().tls == TlsPolicy::Off {
            return Err(ApiError::SecureUnsupported);
        }
        if self.routes.pending_bytes + bytes > limits::PENDING_BYTES_MAX {
            return Err(ApiError::QueueFull);
        }
        Ok(())
    }

    /// Makes a row that starts with a Query, which goes upstream only if that is asked for.
    fn new_querier(
        &mut self,
        now: Instant,
        key: &RouteKey,
        state: StateUse,
        local: IpAddr,
    ) -> Result<RouteId, ApiError> {
        if key.mri.direction() != Some(Direction::Downstream) && state != StateUse::Queried {
            return Err(ApiError::NoRoute);
        }
        check_target(&key.mri, local)?;
        if self.routes.len() >= self.settings.config().routes_max || self.guest_is_full(key.nslp_id) {
            self.out.count(Counter::RoutesRefused);
            return Err(ApiError::TableFull);
        }
        let querier = Querier::new(now, self.settings.config().inactivity);
        Ok(self.add_route(Route::new(
            key.clone(),
            local,
            self.settings.config().hops,
            Role::Querier(Box::new(querier)),
        )))
    }

    /// Sends a message in Q-mode to whoever is next, without any state (RFC 5971 §5.3.2).
    fn send_alone(&mut self, now: Instant, outgoing: Outgoing, local: IpAddr) -> Result<(), ApiError> {
        let destination = check_target(&outgoing.key.mri, local)?;
        let (nslp_id, handle) = (outgoing.key.nslp_id, outgoing.handle);
        let ttl = q_mode_ttl(&outgoing.key.mri, outgoing.options.ip_ttl);
        let ip_ttl = if outgoing.key.mri.direction() == Some(Direction::Downstream) { ttl } else { 0 };
        let mut data = self.message(MessageType::Data, outgoing.key);
        data.hops = outgoing.hops.unwrap_or(self.settings.config().hops);
        data.context_free = true;
        data.nli = Some(Nli { ip_ttl, ..self.settings.nli(local, self.validity()) });
        data.nslp_data = Some(outgoing.data);
        let sent = self.send_in_q_mode(now, local, destination, ttl, &data);
        let sent = sent.then_some(DATAGRAM_ALONE).ok_or(FailReason::RateLimited);
        self.tell_status(nslp_id, handle, sent);
        Ok(())
    }

    /// Takes a message back that waits, and with it a Query that nobody else waits for.
    pub(crate) fn abort_message(
        &mut self,
        now: Instant,
        key: &RouteKey,
        handle: MessageHandle,
    ) -> Result<(), ApiError> {
        let id = self.routes.find(key).ok_or(ApiError::NotWaiting)?;
        let waits = |route: &Route| route.pending.iter().any(|message| message.handle == handle);
        if !self.routes.get(id).is_some_and(waits) {
            return Err(ApiError::NotWaiting);
        }
        let status = SendStatus::Failed(FailReason::Cancelled);
        self.fail_pending(id, status, |message| message.handle == handle);
        let unwanted = |route: &Route| route.peer.is_none() && route.pending.is_empty();
        if self.routes.get(id).is_some_and(unwanted) {
            self.remove_route(now, id, status);
        } else {
            self.flush(now, id);
            self.arm_route(id);
        }
        Ok(())
    }

    /// Starts a handshake if a message waits for a connection, or for a better one, that nothing else brings about.
    pub(crate) fn ask_for_connection(&mut self, now: Instant, id: RouteId) {
        let Some(route) = self.routes.get(id) else { return };
        let lacks = |message: &&Pending| match route.association {
            Some(association) => !self.associations.has_stack(association, message.least_stack()),
            None => message.needs_association,
        };
        let Some(least) = route.pending.iter().filter(lacks).map(Pending::least_stack).max() else { return };
        let Some(querier) = route.querier() else { return };
        let restart = match querier.phase {
            Phase::Established => true,
            Phase::Asking | Phase::Refreshing => !querier.wants_association || querier.least < least,
            Phase::Connecting => false,
        };
        if restart {
            let phase = querier.phase;
            let phase = if phase == Phase::Established { Phase::Refreshing } else { phase };
            self.start_handshake(now, id, phase, now);
        }
    }

    /// Sends what waits on the row and can go, in order.
    pub(crate) fn flush(&mut self, now: Instant, id: RouteId) {
        while self.front_can_go(id) {
            let Some(nslp_id) = self.routes.get(id).map(|route| route.key.nslp_id) else { return };
            let Some(message) = self.routes.pop_pending(id) else { return };
            let handle = message.handle;
            let sent = self.send_data(now, id, message);
            self.tell_status(nslp_id, handle, sent);
        }
        self.note_backlog(id);
    }

    /// Tells the NSLP how a message went, or why it did not.
    fn tell_status(&mut self, nslp_id: u16, handle: MessageHandle, sent: Result<Carriage, FailReason>) {
        let (status, carriage) = match sent {
            Ok(carriage) => (SendStatus::Sent, Some(carriage)),
            Err(reason) => (SendStatus::Failed(reason), None),
        };
        self.out.event(Event::MessageStatus { nslp_id, handle, status, carriage });
    }

    fn front_can_go(&self, id: RouteId) -> bool {
        let Some(route) = self.routes.get(id) else { return false };
        let Some(message) = route.pending.front() else { return false };
        let channel_fits = match route.association {
            Some(association) => {
                self.associations.is_open(association)
                    && self.associations.has_room(association)
                    && self.associations.has_stack(association, message.least_stack())
            }
            None => !message.needs_association,
        };
        route.is_ready() && channel_fits
    }

    fn send_data(&mut self, now: Instant, id: RouteId, message: Pending) -> Result<Carriage, FailReason> {
        if message.attributes.inside && self.side_of(id) == Side::Outside {
            self.out.count(Counter::DataKeptInside);
            return Err(FailReason::Outside);
        }
        let Some(route) = self.routes.get_mut(id) else { return Err(FailReason::Cancelled) };
        let key = RouteKey { mri: route.mri_for_peer().clone(), ..RouteKey::clone(&route.key) };
        let (local, association, distance) = (route.local, route.association, route.distance);
        let passes_nat = route.passes_nat();
        if let Role::Querier(querier) = &mut route.role {
            querier.active_at = now;
        }
        route.reliable_sent |= message.attributes.reliable;
        let nli = self.settings.nli_for(&key.mri, distance, local, self.validity());
        let mut data = self.message(MessageType::Data, key);
        data.hops = message.hops;
        data.nslp_data = Some(message.data);
        let sent = match association {
            Some(association) => self.send_data_on(now, association, &data),
            None => {
                data.nli = Some(nli);
                data.source_is_signaller = !passes_nat;
                self.send_to_peer(now, id, message.ip_ttl, &data).then_some(DATAGRAM).ok_or(FailReason::RateLimited)
            }
        };
        if sent.is_ok() {
            self.out.count(Counter::DataSent);
        }
        sent
    }

    /// Returns on which side of the domain's border the row's peer is.
    fn side_of(&self, id: RouteId) -> Side {
        let Some(route) = self.routes.get(id) else { return Side::Outside };
        let Some(peer) = route.peer.and_then(|sii| self.peers.get(sii)) else { return Side::Outside };
        let name = route.association.and_then(|id| self.associations.certified(id));
        self.settings.side(peer.address, name)
    }

    fn send_data_on(
        &mut self,
        now: Instant,
        association: AssociationId,
        data: &Message,
    ) -> Result<Carriage, FailReason> {
        if !self.send_on_association(now, association, data) {
            return Err(FailReason::Association);
        }
        let secure = self.associations.has_stack(association, Stack::Tls);
        let attributes = TransferAttributes { reliable: true, secure, inside: false };
        Ok(Carriage { attributes, mode: Mode::Connection })
    }

    /// Sends a message to the row's peer in normal D-mode.
    pub(crate) fn send_to_peer(&mut self, now: Instant, id: RouteId, ttl: Option<u8>, message: &Message) -> bool {
        let Some(route) = self.routes.get(id) else { return false };
        let Some(peer) = route.peer.and_then(|sii| self.peers.get(sii)) else { return false };
        let ends = (route.local, SocketAddr::new(peer.address, peer.port));
        self.out.send_to(now, Audience::Peer, ends, ttl, message)
    }

    /// Sends to a peer that need not be the next one any more, past the routing table (RFC 5971 §7.1.4).
    fn send_explicitly(&mut self, now: Instant, outgoing: Outgoing, sii: SiiHandle) -> Result<(), ApiError> {
        let peer = self.peers.get(sii).cloned().ok_or(ApiError::UnknownPeer(sii))?;
        let fits = self.may_go_in_datagram(now, &outgoing, Some(peer.address));
        let least = outgoing.attributes.least_stack();
        let nslp_id = outgoing.key.nslp_id;
        let route = self.routes.find(&outgoing.key).and_then(|id| self.routes.get(id));
        let mri = route.map_or(&outgoing.key.mri, Route::mri_for_peer).clone();
        let mut data = self.message(MessageType::Data, RouteKey { mri, ..outgoing.key });
        data.hops = outgoing.hops.unwrap_or(self.settings.config().hops);
        data.explicit = true;
        data.nslp_data = Some(outgoing.data);
        let sent = match self.associations.open_to((&peer.identity, peer.address), least, !outgoing.attributes.reliable)
        {
            Some(id) if self.associations.has_room(id) => self.send_data_on(now, id, &data),
            Some(_) | None if fits => {
                data.nli = Some(self.settings.nli(peer.local, self.validity()));
                let ends = (peer.local, SocketAddr::new(peer.address, peer.port));
                let sent = self.out.send_to(now, Audience::Peer, ends, outgoing.options.ip_ttl, &data);
                sent.then_some(DATAGRAM).ok_or(FailReason::RateLimited)
            }
            Some(_) => Err(FailReason::Congested),
            None => Err(FailReason::NoAssociation),
        };
        self.tell_status(nslp_id, outgoing.handle, sent);
        Ok(())
    }

    /// Gives up messages whose time is over, and with them a Query that nobody waits for.
    pub(crate) fn expire_pending(&mut self, now: Instant, id: RouteId) {
        let Some(route) = self.routes.get(id) else { return };
        if route.pending.iter().all(|message| message.deadline > now) {
            return;
        }
        let unanswered = route.peer.is_none();
        let status = match (unanswered, &route.role) {
            (true, Role::Querier(querier)) => SendStatus::NoPeer(querier.silence),
            (true, Role::Responder(_)) => SendStatus::NoPeer(NoPeerReason::Timeout),
            (false, Role::Querier(_)) => SendStatus::Failed(FailReason::Timeout),
            (false, Role::Responder(_)) if route.association.is_some() => SendStatus::Failed(FailReason::Timeout),
            (false, Role::Responder(_)) => SendStatus::Failed(FailReason::NoAssociation),
        };
        self.fail_pending(id, status, |message| message.deadline <= now);
        self.note_backlog(id);
        let idle = self.routes.get(id).is_some_and(|route| route.pending.is_empty());
        if unanswered && idle {
            self.out.count(Counter::QueriesUnanswered);
            self.remove_route(now, id, status);
        }
    }

    /// Sets the lifetime of an NSLP's rows, of all sessions or flows where none is named.
    pub(crate) fn set_lifetimes(
        &mut self,
        now: Instant,
        nslp_id: u16,
        session: Option<SessionId>,
        mri: Option<&Mri>,
        lifetime: Duration,
    ) {
        if let (Some(session), Some(mri)) = (session, mri) {
            if let Some(id) = self.routes.find(&RouteKey { session, nslp_id, mri: mri.clone() }) {
                self.set_lifetime(now, id, lifetime);
            }
            return;
        }
        let fits = |key: &RouteKey| {
            session.is_none_or(|session| key.session == session) && mri.is_none_or(|mri| key.mri == *mri)
        };
        for id in self.routes.matching_of(nslp_id, fits) {
            self.set_lifetime(now, id, lifetime);
        }
    }

    fn set_lifetime(&mut self, now: Instant, id: RouteId, lifetime: Duration) {
        if lifetime.is_zero() {
            self.remove_route(now, id, SendStatus::Failed(FailReason::Cancelled));
            return;
        }
        if let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) {
            (querier.inactivity, querier.active_at) = (lifetime, now);
        }
        self.arm_route(id);
    }

    /// Returns whether D-mode will do for a message: it may get lost and be read, and is small enough whatever its MRI holds
    /// (RFC 5971 §4.3.3, §5.3.3).
    fn may_go_in_datagram(&self, now: Instant, outgoing: &Outgoing, target: Option<IpAddr>) -> bool {
        if outgoing.attributes.reliable || outgoing.attributes.secure {
            return false;
        }
        let v4 = outgoing.key.mri.addresses().is_some_and(|(source, _)| source.is_ipv4());
        let (mri, address) = if v4 { (28, 4) } else { (56, 16) };
        let identity = self.settings.config().peer_identity.len().next_multiple_of(4);
        let nli = OBJECT_HEADER + 8 + identity + address;
        let rest =
            netserv_wire::gist::HEADER_BYTES + mri + OBJECT_HEADER + size_of::<SessionId>() + nli + OBJECT_HEADER;
        let configured = self.settings.config().datagram_bytes_max;
        let most = target.map_or(configured, |target| self.out.path_mtus.message_bytes_max(now, target, configured));
        rest + outgoing.data.len().next_multiple_of(4) <= most
    }

    /// Returns a message with the row's MRI and session.
    pub(crate) fn message(&self, kind: MessageType, key: RouteKey) -> Message {
        let RouteKey { session, nslp_id, mri } = key;
        let mut message = Message::new(kind, nslp_id);
        (message.mri, message.session) = (Some::<Mri>(mri), Some(session));
        message
    }
}

/// Returns where messages in Q-mode about a flow go from an address of this node.
fn check_target(mri: &Mri, local: IpAddr) -> Result<IpAddr, ApiError> {
    let target = query_target(mri).ok_or(ApiError::NoRoute)?;
    if target.is_ipv4() != local.is_ipv4() {
        return Err(ApiError::VersionMismatch);
    }
    if target == local {
        return Err(ApiError::OwnDestination);
    }
    if !is_reached(local) {
        return Err(ApiError::NoAddress);
    }
    Ok(target)
}

/// Returns whether those who are not on the same link reach an address.
pub(crate) fn is_reached(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !address.is_unspecified() && !link_local
}

/// How a message in a datagram went.
const DATAGRAM: Carriage =
    Carriage { attributes: TransferAttributes { reliable: false, secure: false, inside: false }, mode: Mode::Datagram };
const DATAGRAM_ALONE: Carriage = Carriage { mode: Mode::QMode, ..DATAGRAM };
/// Bytes of an object's type and length.
const OBJECT_HEADER: usize = 4;
