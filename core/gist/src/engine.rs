// SPDX-License-Identifier: Apache-2.0
//! The engine's face: `handle_*` takes input, `poll_*` gives output. What a message does is in the other files.

use std::net::{IpAddr, SocketAddr};

use netserv_model::Instant;
use netserv_model::domain::Neighbours;
use netserv_wire::gist::{ErrorCode, HEADER_BYTES, Header, MAGIC, Message, MessageType, Nli, strip_magic};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::api::{
    ApiCall, ApiError, AssociationId, Channel, Config, Counter, Counters, Datagram, Disposition, Event, InterfaceId,
    Prefix, QueryId, StateCounts, Transmit,
};
use crate::associations::Associations;
use crate::context::{NetworkBuckets, Outbox, Owner, Settings, Timers, TokenBucket};
use crate::cookie::CookieJar;
use crate::errors::Fault;
use crate::limits;
use crate::peering::HeldQueries;
use crate::peers::PeerTable;
use crate::querier::Doubt;
use crate::routing::{Route, RouteKey, RouteTable};
use crate::sending::Outgoing;

/// One node's GIST.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) rng: StdRng,
    pub(crate) routes: RouteTable,
    pub(crate) associations: Associations,
    pub(crate) peers: PeerTable,
    pub(crate) cookies: CookieJar,
    pub(crate) timers: Timers,
    pub(crate) held: HeldQueries,
    pub(crate) queries: TokenBucket,
    /// For Data that no routing state vouches for.
    pub(crate) alone: (NetworkBuckets, TokenBucket),
    pub(crate) out: Outbox,
}

/// How a message got here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) via: Via,
    /// The common header as it came, if there was one.
    pub(crate) header: Option<[u8; HEADER_BYTES]>,
    /// This node's address on the way to the sender.
    pub(crate) local: IpAddr,
    /// The IP destination of a datagram, which need not be this node's.
    pub(crate) destination: IpAddr,
}

/// The two modes of carriage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    Datagram { source: SocketAddr, interface: InterfaceId, ttl: u8 },
    Association(AssociationId),
}

impl Via {
    pub(crate) fn association(&self) -> Option<AssociationId> {
        match self {
            Via::Datagram { .. } => None,
            Via::Association(association) => Some(*association),
        }
    }
}

impl Engine {
    /// Returns an engine without state. Give a `seed` that nobody can guess: the cookies are made from it.
    ///
    /// # Panics
    /// If the peer identity is empty or longer than [`limits::PEER_IDENTITY_BYTES_MAX`].
    pub fn new(config: Config, seed: [u8; 32]) -> Engine {
        let settings = Settings::new(config);
        let config = settings.config();
        let mut rng = StdRng::from_seed(seed);
        let cookies = CookieJar::new(&mut rng, config.secret_lifetime);
        let secret = rng.random();
        let alone_of_network = NetworkBuckets::new(limits::ALONE_RATE_PER_NETWORK, secret);
        Engine {
            cookies,
            queries: TokenBucket::new(config.query_rate),
            alone: (alone_of_network, TokenBucket::new(limits::ALONE_RATE)),
            out: Outbox::new(config, secret),
            routes: RouteTable::default(),
            associations: Associations::default(),
            peers: PeerTable::default(),
            timers: Timers::default(),
            held: HeldQueries::default(),
            settings,
            rng,
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

    /// Takes one datagram that arrived or was intercepted, and says whether it goes on.
    pub fn handle_datagram(&mut self, now: Instant, rx: Datagram<'_>) -> Disposition {
        self.out.count(Counter::DatagramsReceived);
        let Some(bytes) = strip_magic(rx.payload) else {
            self.out.count(Counter::BadMagic);
            return if rx.destination_is_local { Disposition::Consumed } else { AS_IT_CAME };
        };
        if !rx.destination_is_local
            && let Some(disposition) = self.pass_by(now, &rx, bytes)
        {
            return disposition;
        }
        let arrival = arrival_of(&rx, bytes);
        match Message::parse(bytes) {
            Ok(message) => self.dispatch(now, &arrival, message),
            Err(error) => self.on_malformed(now, &arrival, error),
        }
        self.close_overrun(now);
        self.disposition(rx.payload, !rx.destination_is_local)
    }

    /// Takes the success of a [`Transmit::Connect`], with what it led to. If that is not what was agreed on, the association
    /// ends.
    pub fn handle_connected(&mut self, now: Instant, id: AssociationId, channel: Channel) {
        self.association_connected(now, id, channel);
        self.close_overrun(now);
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
        self.accept_association(now, local, peer, channel)
    }

    /// Takes bytes of a connection, cut anywhere.
    pub fn handle_stream(&mut self, now: Instant, id: AssociationId, bytes: &[u8]) {
        self.association_bytes(now, id, bytes);
        self.close_overrun(now);
    }

    /// Takes the end of a connection, or that it could not be opened. `error` is `None` if the peer closed it in order.
    #[allow(clippy::needless_pass_by_value, reason = "an input is handed over whole")]
    pub fn handle_closed(&mut self, now: Instant, id: AssociationId, error: Option<String>) {
        if error.is_some() && self.associations.contains(id) {
            self.out.count(Counter::AssociationsFailed);
        }
        self.end_association(now, id, false);
        self.close_overrun(now);
    }

    /// Takes a call of an NSLP. `local` is the node's own address toward the next peer, as the routing of the flow's end in
    /// the call's direction gives it; only `SendMessage` and `InvalidateRoutingState` read it.
    ///
    /// # Errors
    /// A refused call changes nothing, and no status follows for its message.
    pub fn handle_api(&mut self, now: Instant, call: ApiCall, local: IpAddr) -> Result<(), ApiError> {
        let result = match call {
            ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options } => {
                let key = RouteKey { session, nslp_id, mri };
                self.send_message(now, Outgoing { handle, key, attributes, sii, timeout, data, hops, options }, local)
            }
            ApiCall::AbortMessage { nslp_id, session, mri, handle } => {
                self.abort_message(now, &RouteKey { session, nslp_id, mri }, handle)
            }
            ApiCall::SetStateLifetime { nslp_id, session, mri, lifetime } => {
                self.set_lifetimes(now, nslp_id, session, mri.as_ref(), lifetime);
                Ok(())
            }
            ApiCall::InvalidateRoutingState { nslp_id, session, mri, bad, data } => {
                self.invalidate(now, (nslp_id, session), &mri, Doubt { bad, data }, local)
            }
            ApiCall::AnswerQuery { nslp_id, query, decision } => self.decide(now, nslp_id, query, decision),
            ApiCall::SetPeering { nslp_id, peering } => self.settings.set_peering(nslp_id, peering),
        };
        self.close_overrun(now);
        result
    }

    /// Does what is due at `now`. Calling it early or often does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        for _ in 0..limits::TIMERS_PER_CALL_MAX {
            let Some(owner) = self.timers.pop(now) else { break };
            match owner {
                Owner::Route(id) => self.route_timeout(now, id),
                Owner::Association(id) => self.association_timeout(now, id),
                Owner::HeldQueries => self.held_timeout(now),
            }
        }
        self.close_overrun(now);
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
        self.held.poll_release()
    }

    /// Returns when to call [`Engine::handle_timeout`], and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let (at, owner) = self.timers.next()?;
        let deadline = match owner {
            Owner::Route(id) => self.routes.get(id).and_then(Route::deadline),
            Owner::Association(id) => self.association_deadline(id),
            Owner::HeldQueries => self.held.deadline(),
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
            peers: self.peers.len(),
            pending_bytes: self.routes.pending_bytes,
        }
    }

    /// Decides on a datagram for somebody else; `None` if this node has to take it all the same.
    fn pass_by(&mut self, now: Instant, rx: &Datagram<'_>, bytes: &[u8]) -> Option<Disposition> {
        // RFC 5971 §5.3.2.3: what looks like GIST but is not in Q-mode goes on untouched.
        let header = Header::parse(bytes).ok().filter(|header| header.context_free && rx.q_mode_interceptable);
        let Some(header) = header else {
            self.out.count(Counter::Passed);
            return Some(AS_IT_CAME);
        };
        let hosted = self.settings.hosts(header.nslp_id);
        if hosted && rx.local.is_unspecified() {
            // Nobody could answer, and those further on would vanish with this node.
            self.out.count(Counter::NoAddress);
            return Some(AS_IT_CAME);
        }
        if hosted && !self.settings.declines(&header, bytes) {
            return None;
        }
        // RFC 5971 §4.3.4: a message for another NSLP goes on with one hop less, and nothing else is looked at.
        if header.hops <= 1 {
            if let Ok(message) = Message::parse(bytes) {
                self.send_error(now, &arrival_of(rx, bytes), ErrorCode::HopLimitExceeded.into(), &message);
            }
            return Some(Disposition::Consumed);
        }
        if let Some(mtu) = self.out.path_mtus.too_long_for(now, rx.destination, rx.payload)
            && let Ok(message) = Message::parse(bytes)
        {
            self.send_error(now, &arrival_of(rx, bytes), Fault::too_large(mtu), &message);
            return Some(Disposition::Consumed);
        }
        let mut payload = rx.payload.to_vec();
        payload[MAGIC_BYTES + HOPS_OFFSET] = header.hops - 1;
        self.out.count(if hosted { Counter::Declined } else { Counter::Bypassed });
        Some(Disposition::Forward { payload: Some(payload) })
    }

    /// Hands a message to the state machine that it is for.
    pub(crate) fn dispatch(&mut self, now: Instant, arrival: &Arrival, mut message: Message) {
        if message.hops == 0 {
            self.send_error(now, arrival, ErrorCode::HopLimitExceeded.into(), &message);
            return;
        }
        message.hops -= 1;
        if !encapsulation_fits(arrival, &message) {
            self.send_error(now, arrival, ErrorCode::IncorrectEncapsulation.into(), &message);
            return;
        }
        match (message.kind, arrival.via) {
            (MessageType::Error, _) => self.on_error(now, arrival, message),
            (MessageType::MaHello, Via::Association(id)) => self.on_hello(now, id, &message),
            (MessageType::MaHello, Via::Datagram { .. }) => {}
            (MessageType::Query, _) if !self.settings.hosts(message.nslp_id) => {
                self.send_error(now, arrival, ErrorCode::EndpointFound.into(), &message);
            }
            (MessageType::Response | MessageType::Confirm | MessageType::Data, _)
                if !self.settings.hosts(message.nslp_id) =>
            {
                self.send_error(now, arrival, ErrorCode::UnknownNslpId.into(), &message);
            }
            (MessageType::Query, _) => self.on_query(now, arrival, message),
            (MessageType::Response, _) => self.on_response(now, arrival, message),
            (MessageType::Confirm, _) => self.on_confirm(now, arrival, message),
            (MessageType::Data, _) => self.on_data(now, arrival, message),
        }
    }

    /// RFC 5971 §5.3.1: a datagram that does not come from the address that it names met a NAT, or a liar. A connection
    /// may carry what a node says of its other interfaces.
    pub(crate) fn source_fits(&mut self, arrival: &Arrival, nli: &Nli) -> bool {
        let fits = match arrival.via {
            Via::Datagram { source, .. } => source.ip() == nli.address,
            Via::Association(id) => {
                let name = self.associations.name(id);
                name.is_none_or(|(identity, _)| identity == nli.peer_identity)
            }
        };
        if !fits {
            self.out.count(Counter::SourceMismatch);
        }
        fits
    }

    pub(crate) fn close_overrun(&mut self, now: Instant) {
        while let Some(id) = self.associations.take_overrun() {
            self.out.count(Counter::AssociationsFailed);
            self.end_association(now, id, true);
        }
    }
}

fn arrival_of(rx: &Datagram<'_>, bytes: &[u8]) -> Arrival {
    let via = Via::Datagram { source: rx.source, interface: rx.interface, ttl: rx.ttl };
    let local = if rx.destination_is_local { rx.destination } else { rx.local };
    let header = bytes.first_chunk().copied();
    Arrival { via, header, local, destination: rx.destination }
}

/// RFC 5971 §5.1: which messages travel in which mode.
fn encapsulation_fits(arrival: &Arrival, message: &Message) -> bool {
    match (message.kind, arrival.via) {
        (MessageType::Query, Via::Datagram { .. }) => true,
        (MessageType::Query, Via::Association(_)) | (MessageType::MaHello, Via::Datagram { .. }) => false,
        (MessageType::Data, Via::Association(_)) => !message.context_free,
        (MessageType::Response | MessageType::Confirm | MessageType::Data | MessageType::Error, _)
        | (MessageType::MaHello, Via::Association(_)) => true,
    }
}

const AS_IT_CAME: Disposition = Disposition::Forward { payload: None };
const MAGIC_BYTES: usize = size_of_val(&MAGIC);
const HOPS_OFFSET: usize = 1;
