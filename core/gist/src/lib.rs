// SPDX-License-Identifier: Apache-2.0
//! A GIST engine (RFC 5971) without I/O: bytes, calls and time go in, bytes, events and a deadline come out.
//!
//! After any `handle_*`, drain [`Engine::poll_transmit`], then [`Engine::poll_event`] and [`Engine::poll_release`], then
//! arm a timer for [`Engine::poll_timeout`]. An early [`Engine::handle_timeout`] does nothing. Malformed bytes are counted and become
//! [`Event::Malformed`]; they are never an error of the call. A run is a function of the seed and of what was handed in.
//!
//! A *row* of the routing table (RFC 5971 §4.3) is keyed by MRI with direction, session and NSLP, and leads to the peer
//! in that direction. This node is the *querier* of rows that its own Queries made, and the *responder* of rows that a
//! peer's Confirm made. An *association* (MA) is one TCP connection with a peer, with TLS or without, shared by rows.
//!
//! The engine only dispatches. Each part owns its state, and imports none that stands before it here: `querying` and
//! `responding` have the two state machines, `messages` what goes in and out for NSLPs, `routing` the rows with their peers and
//! handshakes, `associations` the connections, `cx` what every call lends, `api` and [`limits`] plain data. A handler is a
//! function of the parts that it is lent; what concerns a part above it goes up as a value.
#![forbid(unsafe_code)]

mod api;
mod associations;
mod cx;
pub mod limits;
mod messages;
mod querying;
mod responding;
mod routing;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use netserv_model::Instant;
use netserv_model::domain::Neighbours;
use netserv_wire::gist::{DecodeError, ErrorCode, Message, MessageType, StreamMessage, strip_magic};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub use api::{
    ApiCall, ApiError, AssociationId, Audience, Carriage, Channel, Config, Counter, Counters, Datagram, Disposition,
    Event, FailReason, FlowRule, FlowScope, HostError, IcmpError, IcmpKind, InterfaceId, MessageHandle, Mode,
    NoPeerReason, Notification, PeerChoice, PeerRule, Peering, Prefix, Provenance, QueryDecision, QueryId,
    ResponderPolicy, RouteStatus, SendOptions, SendStatus, SiiHandle, StateCounts, StateUse, TlsPolicy,
    TransferAttributes, Transmit,
};
pub use limits::RateLimit;

use crate::associations::Associations;
use crate::cx::{Cx, Outbox, Owner, Settings, Timers};
use crate::messages::{Arrival, Outgoing, StatelessLimiter, UNCHANGED, Via, send_error};
use crate::querying::Doubt;
use crate::responding::Responding;
use crate::routing::{Route, RouteKey, Routes};

/// One node's GIST: `handle_*` takes input, `poll_*` gives output, and what a message does is for the parts.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    random: StdRng,
    timers: Timers,
    out: Outbox,
    routes: Routes,
    associations: Associations,
    responding: Responding,
    stateless: StatelessLimiter,
}

/// The engine's parts, each lent by itself.
struct Parts<'a> {
    cx: Cx<'a>,
    routes: &'a mut Routes,
    associations: &'a mut Associations,
    responding: &'a mut Responding,
    stateless: &'a mut StatelessLimiter,
}

impl Engine {
    /// Returns an engine without state. Give a `seed` that nobody can guess: the cookies are made from it.
    ///
    /// # Panics
    /// If the peer identity is empty or longer than [`limits::PEER_IDENTITY_BYTES_MAX`].
    pub fn new(config: Config, seed: [u8; 32]) -> Engine {
        let settings = Settings::new(config);
        let mut random = StdRng::from_seed(seed);
        let responding = Responding::new(&mut random, settings.config());
        let secret = random.random();
        Engine {
            out: Outbox::new(settings.config(), secret),
            stateless: StatelessLimiter::new(secret),
            timers: Timers::default(),
            routes: Routes::default(),
            associations: Associations::default(),
            responding,
            settings,
            random,
        }
    }

    /// Takes the node's own addresses, to which it never sends.
    pub fn set_own_addresses(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.settings.set_own_addresses(addresses);
    }

    /// Takes who is inside of the operator's domain: what is to stay inside goes to nobody else.
    pub fn set_neighbours(&mut self, neighbours: Neighbours) {
        self.settings.set_neighbours(neighbours);
    }

    /// Takes where flows come from that come in by interfaces: a Query about another one is refused (RFC 5971 §5.8.1.2). By
    /// interfaces that are not named, all flows may come.
    pub fn set_ingress(&mut self, ingress: impl IntoIterator<Item = (InterfaceId, Vec<Prefix>)>) {
        self.settings.set_ingress(ingress);
    }

    /// Hosts one more NSLP from here on, with its value of the Router Alert Option, until [`Engine::unhost`].
    ///
    /// # Errors
    /// The NSLP is hosted already, or as many as [`limits::GUESTS_MAX`] were added.
    pub fn host(&mut self, nslp_id: u16, router_alert: u16) -> Result<(), HostError> {
        if self.settings.hosts(nslp_id) {
            return Err(HostError::Taken(nslp_id));
        }
        if self.routes.guests() >= limits::GUESTS_MAX {
            return Err(HostError::Full);
        }
        self.routes.add_guest(nslp_id);
        self.settings.host(nslp_id, router_alert);
        Ok(())
    }

    /// Hosts an NSLP no more that [`Engine::host`] added: its waiting messages end as cancelled, its routing state is given
    /// up, and Queries for it go on to the next node. Of others nothing changes.
    pub fn unhost(&mut self, now: Instant, nslp_id: u16) {
        if !self.routes.is_guest(nslp_id) {
            return;
        }
        self.settings.unhost(nslp_id);
        let Parts { mut cx, routes, associations, responding, .. } = self.parts(now);
        responding.forget(&mut cx, routes, associations, nslp_id);
        for id in routes.matching_of(nslp_id, |_| true) {
            routing::remove(&mut cx, routes, associations, id, SendStatus::Failed(FailReason::Cancelled));
        }
        routes.remove_guest(nslp_id);
    }

    /// Takes one datagram that arrived or was intercepted, and says whether it goes on.
    pub fn handle_datagram(&mut self, now: Instant, rx: Datagram<'_>) -> Disposition {
        self.out.count(Counter::DatagramsReceived);
        let Some(bytes) = strip_magic(rx.payload) else {
            self.out.count(Counter::BadMagic);
            return if rx.destination_is_local { Disposition::Consumed } else { UNCHANGED };
        };
        let Parts { mut cx, routes, associations, .. } = self.parts(now);
        if !rx.destination_is_local
            && let Some(disposition) = messages::bypass(&mut cx, routes, associations, &rx, bytes)
        {
            return disposition;
        }
        let arrival = Arrival::by_datagram(&rx, bytes);
        match Message::parse(bytes) {
            Ok(message) => self.dispatch(now, &arrival, message),
            Err(error) => messages::on_malformed(&mut cx, routes, associations, &arrival, error),
        }
        self.end_overrun(now);
        self.responding.disposition(&mut self.out, rx.payload, !rx.destination_is_local)
    }

    /// Takes an ICMP error. One of the flow's endpoint that refuses the Query which it brings back ends the wait for an
    /// answer, unless the row has a peer; so for rows that were asking along the same path when that Query was sent. Whatever
    /// else one says is remembered in case that no answer comes; of a length that is too great, the next datagrams heed it. One
    /// that brings back no Query that waits, or only the start of one, is counted and says nothing.
    pub fn handle_icmp_error(&mut self, now: Instant, error: &IcmpError) {
        let Parts { mut cx, routes, associations, .. } = self.parts(now);
        querying::on_icmp_error(&mut cx, routes, associations, error);
    }

    /// Takes the success of a [`Transmit::Connect`], with what it led to. If that is not what was agreed on, the association
    /// ends.
    pub fn handle_connected(&mut self, now: Instant, id: AssociationId, channel: Channel) {
        let Parts { mut cx, routes, associations, .. } = self.parts(now);
        querying::connected(&mut cx, routes, associations, id, channel);
        self.end_overrun(now);
    }

    /// Takes a connection that a peer opened, with TLS spoken already if it is, and names it. If there is no room, a
    /// [`Transmit::Close`] follows, of the oldest connection that is not proven or of this one; and of this one if the
    /// policy does not allow it.
    pub fn handle_accepted(
        &mut self,
        now: Instant,
        local: IpAddr,
        peer: SocketAddr,
        channel: Channel,
    ) -> AssociationId {
        let Parts { mut cx, routes, associations, .. } = self.parts(now);
        querying::accept(&mut cx, routes, associations, local, peer, channel)
    }

    /// Takes bytes of a connection, cut anywhere. Stops at the first message that ends the association.
    pub fn handle_stream(&mut self, now: Instant, id: AssociationId, bytes: &[u8]) {
        if let Some(received) = self.associations.read(id, bytes) {
            let exists = received.messages.into_iter().all(|message| self.take_streamed(now, id, message));
            let Parts { mut cx, routes, associations, .. } = self.parts(now);
            if exists && received.broken {
                cx.out.count(Counter::AssociationsFailed);
                querying::end(&mut cx, routes, associations, id, true);
            }
            associations.arm(&mut cx, id);
        }
        self.end_overrun(now);
    }

    /// Takes that a connection has taken so many bytes more of what [`Transmit::Stream`] has. Whoever writes says so after
    /// [`limits::STREAM_REPORT_BYTES`] at the latest, and need not for fewer.
    pub fn handle_written(&mut self, now: Instant, id: AssociationId, bytes: usize) {
        let Parts { mut cx, routes, associations, .. } = self.parts(now);
        messages::written(&mut cx, routes, associations, id, bytes);
        self.end_overrun(now);
    }

    /// Takes the end of a connection, or that it could not be opened. `error` is `None` if the peer closed it in order.
    #[allow(clippy::needless_pass_by_value, reason = "an input is handed over whole")]
    pub fn handle_closed(&mut self, now: Instant, id: AssociationId, error: Option<String>) {
        let Parts { mut cx, routes, associations, .. } = self.parts(now);
        if error.is_some() && associations.contains(id) {
            cx.out.count(Counter::AssociationsFailed);
        }
        querying::end(&mut cx, routes, associations, id, false);
        self.end_overrun(now);
    }

    /// Takes a call of an NSLP. `local` is the node's own address toward the next peer, as the routing of the flow's end in
    /// the call's direction gives it; only `SendMessage` and `InvalidateRoutingState` read it.
    ///
    /// # Errors
    /// A refused call changes nothing, and no status follows for its message.
    pub fn handle_api(&mut self, now: Instant, call: ApiCall, local: IpAddr) -> Result<(), ApiError> {
        let Parts { mut cx, routes, associations, responding, .. } = self.parts(now);
        let result = match call {
            ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options } => {
                let key = RouteKey { session, nslp_id, mri };
                let outgoing = Outgoing { handle, key, attributes, sii, timeout, data, hops, options };
                let needs = messages::send(&mut cx, routes, associations, outgoing, local);
                needs.map(|needs| querying::proceed(&mut cx, routes, associations, needs))
            }
            ApiCall::AbortMessage { nslp_id, session, mri, handle } => {
                messages::abort(&mut cx, routes, associations, &RouteKey { session, nslp_id, mri }, handle)
            }
            ApiCall::SetStateLifetime { nslp_id, session, mri, lifetime } => {
                routing::set_lifetimes(&mut cx, routes, associations, nslp_id, session, mri.as_ref(), lifetime);
                Ok(())
            }
            ApiCall::InvalidateRoutingState { nslp_id, session, mri, bad, data } => {
                let doubt = Doubt { nslp_id, session, mri, bad, data };
                querying::invalidate(&mut cx, routes, associations, &doubt, local)
            }
            ApiCall::AnswerQuery { nslp_id, query, decision } => {
                responding.decide(&mut cx, routes, associations, nslp_id, query, decision)
            }
            ApiCall::SetPeering { nslp_id, peering } => self.settings.set_peering(nslp_id, peering),
        };
        self.end_overrun(now);
        result
    }

    /// Does what is due at `now`. Calling it early or often does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Parts { mut cx, routes, associations, responding, .. } = self.parts(now);
        for _ in 0..limits::TIMERS_PER_CALL_MAX {
            let Some(owner) = cx.timers.pop(now) else { break };
            match owner {
                Owner::Route(id) => {
                    routes.fired(id);
                    messages::expire_pending(&mut cx, routes, associations, id);
                    querying::timeout(&mut cx, routes, associations, id);
                    responding::timeout(&mut cx, routes, associations, id);
                    routes.arm(cx.timers, id);
                }
                Owner::Association(id) => {
                    if associations.timeout(&mut cx, id) {
                        querying::end(&mut cx, routes, associations, id, true);
                    }
                }
                Owner::HeldQueries => responding.decision_timeout(&mut cx, routes, associations),
            }
        }
        self.end_overrun(now);
    }

    /// Returns the next thing to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.poll_transmit()
    }

    /// Returns the next thing to tell.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.out.poll_event()
    }

    /// Returns what becomes of the next datagram that was [held](Disposition::Held).
    pub fn poll_release(&mut self) -> Option<(QueryId, Disposition)> {
        self.responding.poll_release()
    }

    /// Returns when to call [`Engine::handle_timeout`], and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let (at, owner) = self.timers.next()?;
        let deadline = match owner {
            Owner::Route(id) => self.routes.get(id).and_then(Route::deadline),
            Owner::Association(id) => self.associations.deadline(id, self.settings.config().hold_time),
            Owner::HeldQueries => self.responding.deadline(),
        };
        Some((at, deadline.map_or("", |(_, why)| why)))
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        self.out.counters()
    }

    /// Returns how much state there is.
    pub fn state_counts(&self) -> StateCounts {
        let responding = self.routes.responding();
        StateCounts {
            querying: self.routes.len() - responding,
            responding,
            associations: self.associations.len(),
            peers: self.routes.peers().len(),
            pending_bytes: self.routes.pending_bytes(),
        }
    }

    /// Takes a message of a connection, and returns whether there was somebody to take it.
    fn take_streamed(&mut self, now: Instant, id: AssociationId, message: Result<StreamMessage, DecodeError>) -> bool {
        let Some(local) = self.associations.local(id) else { return false };
        match message {
            Ok(StreamMessage { header, message }) => {
                self.associations.heard(now, id);
                self.dispatch(now, &Arrival::by_association(id, Some(header), local), message);
            }
            Err(error) => {
                let arrival = Arrival::by_association(id, error.context.header, local);
                let Parts { mut cx, routes, associations, .. } = self.parts(now);
                messages::on_malformed(&mut cx, routes, associations, &arrival, error);
            }
        }
        true
    }

    /// Hands a message to the part that it is for.
    fn dispatch(&mut self, now: Instant, arrival: &Arrival, mut message: Message) {
        let Parts { mut cx, routes, associations, responding, stateless } = self.parts(now);
        let cx = &mut cx;
        if let Some(error) = refusal(cx.settings, arrival, &message) {
            send_error(cx, routes, associations, arrival, error.into(), &message);
            return;
        }
        message.hops -= 1;
        match (message.kind, arrival.via) {
            (MessageType::Error, _) => querying::on_error(cx, routes, associations, arrival, message),
            (MessageType::MaHello, Via::Association(id)) => associations.on_hello(cx, id, &message),
            (MessageType::MaHello, Via::Datagram { .. }) => {}
            (MessageType::Query, _) => responding.on_query(cx, routes, associations, arrival, message),
            (MessageType::Response, _) => querying::on_response(cx, routes, associations, arrival, message),
            (MessageType::Confirm, _) => {
                if let Some(id) = responding.on_confirm(cx, routes, associations, arrival, message) {
                    querying::end(cx, routes, associations, id, true);
                }
            }
            (MessageType::Data, _) => messages::on_data(cx, routes, associations, stateless, arrival, message),
        }
    }

    fn end_overrun(&mut self, now: Instant) {
        let Parts { mut cx, routes, associations, .. } = self.parts(now);
        querying::end_overrun(&mut cx, routes, associations);
    }

    fn parts(&mut self, now: Instant) -> Parts<'_> {
        let Engine { settings, random, timers, out, routes, associations, responding, stateless } = self;
        Parts { cx: Cx { now, settings, random, timers, out }, routes, associations, responding, stateless }
    }
}

/// Returns why no part takes a message.
fn refusal(settings: &Settings, arrival: &Arrival, message: &Message) -> Option<ErrorCode> {
    if message.hops == 0 {
        return Some(ErrorCode::HopLimitExceeded);
    }
    if !arrival.encapsulation_fits(message) {
        return Some(ErrorCode::IncorrectEncapsulation);
    }
    match message.kind {
        MessageType::Query => (!settings.hosts(message.nslp_id)).then_some(ErrorCode::EndpointFound),
        MessageType::Response | MessageType::Confirm | MessageType::Data => {
            (!settings.hosts(message.nslp_id)).then_some(ErrorCode::UnknownNslpId)
        }
        MessageType::Error | MessageType::MaHello => None,
    }
}
