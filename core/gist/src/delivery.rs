// SPDX-License-Identifier: Apache-2.0
//! NSLP messages on their way in (RFC 5971 §4.3.1): whose they are, and whether to believe them.

use std::net::IpAddr;

use netserv_model::Instant;
use netserv_wire::gist::{Direction, ErrorCode, Message, Mri, Nli};

use crate::api::{
    AssociationId, Counter, Event, InterfaceId, Provenance, QueryId, RouteId, SiiHandle, TlsPolicy, TransferAttributes,
};
use crate::associations::stack::Stack;
use crate::engine::{Arrival, Engine, Via};
use crate::errors::{Fault, NLI};
use crate::querier::{Querier, query_target};
use crate::responder::{UPSTREAM_TTL_MIN, hop_distance};
use crate::routing::{Role, Route, RouteKey};

impl Engine {
    /// Takes Data, by the order of checks in RFC 5971 §4.3.1.
    pub(crate) fn on_data(&mut self, now: Instant, arrival: &Arrival, message: Message) {
        let (Some(mri), Some(session)) = (message.mri.as_ref(), message.session) else { return };
        let key = RouteKey { session, nslp_id: message.nslp_id, mri: mri.inverted() };
        if let Some(fault) = encapsulation_fault(arrival, &message) {
            self.send_error(now, arrival, fault, &message);
            return;
        }
        let known = self.routes.find_meant(&key);
        let passes_nat = known.and_then(|id| self.routes.get(id)).is_some_and(Route::passes_nat);
        // In Q-mode the IP source may be the flow's, and beyond a NAT, which may be where the state was lost, it is the NAT's.
        let refused = known.is_none() && !message.explicit;
        let own_source = message.source_is_signaller || !(message.context_free || passes_nat || refused);
        if own_source && message.nli.as_ref().is_some_and(|nli| !self.source_fits(arrival, nli)) {
            return;
        }
        if let Some(fault) = self.q_mode_fault(arrival, &message, mri) {
            self.send_error(now, arrival, fault, &message);
            return;
        }
        let distance = message.nli.as_ref().and_then(|nli| hop_distance(arrival, mri, nli));
        if let Some(id) = known.filter(|id| message.explicit && self.is_peer_of(*id, arrival)) {
            self.deliver_on_route(now, id, arrival, Delivery::of(message));
            return;
        }
        if message.explicit || message.context_free {
            if !self.may_come_alone(now, arrival, message.context_free) {
                self.out.count(Counter::DataLimited);
                return;
            }
            let claims = message.nli.as_ref().and_then(|nli| self.peers.find_node(&nli.peer_identity, nli.address));
            let delivery = Delivery { claims, ..Delivery::of(message) };
            self.deliver_stateless(arrival, &key, delivery, distance, None);
            return;
        }
        let Some(id) = known else {
            self.out.count(Counter::DataDropped);
            self.send_error(now, arrival, ErrorCode::NoRoutingState.into(), &message);
            return;
        };
        match self.belongs(id, arrival, message.nli.as_ref()) {
            Ok(()) => {
                if let Some(route) = self.routes.get_mut(id) {
                    route.distance = distance.or(route.distance);
                }
                self.deliver_on_route(now, id, arrival, Delivery::of(message));
            }
            Err(fault) => {
                self.out.count(Counter::DataDropped);
                if let Some(fault) = fault {
                    self.send_error(now, arrival, fault, &message);
                }
            }
        }
    }

    /// Returns whether Data that no routing state vouches for is handed up: anybody can send a datagram in anybody's name. Over a
    /// connection, that holds its peer back.
    fn may_come_alone(&mut self, now: Instant, arrival: &Arrival, in_q_mode: bool) -> bool {
        let Via::Datagram { source, .. } = arrival.via else { return true };
        let (of_network, of_all) = &mut self.alone;
        (!in_q_mode || of_network.take(now, source.ip())) && of_all.take(now)
    }

    /// Returns what is wrong with Data in Q-mode: upstream it comes from next door (RFC 5971 §5.8.1.3).
    fn q_mode_fault(&self, arrival: &Arrival, message: &Message, mri: &Mri) -> Option<Fault> {
        let Via::Datagram { ttl, .. } = arrival.via else { return None };
        let upstream = message.context_free && mri.direction() == Some(Direction::Upstream);
        (upstream && ttl < UPSTREAM_TTL_MIN).then(|| ErrorCode::InvalidIpTtl.into())
    }

    /// Returns whether a connection, of which there may be several, leads to the peer that the row leads to.
    fn is_peer_of(&self, id: RouteId, arrival: &Arrival) -> bool {
        let in_scope = |association: &AssociationId| {
            self.routes.get(id).is_some_and(|route| self.associations.may_carry(*association, &route.key.mri))
        };
        let association = arrival.via.association().filter(in_scope);
        let name = association.and_then(|association| self.associations.name(association));
        name.is_some_and(|(identity, address)| self.leads_to(id, identity, address))
    }

    /// Returns whether the row leads to a peer of this identity and address.
    fn leads_to(&self, id: RouteId, identity: &[u8], address: IpAddr) -> bool {
        let peer = self.routes.get(id).and_then(|route| route.peer).and_then(|sii| self.peers.get(sii));
        peer.is_some_and(|peer| peer.identity == identity && peer.address == address)
    }

    /// Checks that Data comes from the peer that the row leads to.
    fn belongs(&self, id: RouteId, arrival: &Arrival, nli: Option<&Nli>) -> Result<(), Option<Fault>> {
        let Some(route) = self.routes.get(id) else { return Err(None) };
        match arrival.via {
            Via::Association(association) if route.association == Some(association) => Ok(()),
            Via::Association(_) => Err(Some(ErrorCode::IncorrectlyDelivered.into())),
            Via::Datagram { source, .. } => {
                // What is beyond a NAT calls itself by an address that is of no use here.
                let address = |nli: &Nli| if route.passes_nat() { source.ip() } else { nli.address };
                let same = nli.is_some_and(|nli| self.leads_to(id, &nli.peer_identity, address(nli)));
                if same { Ok(()) } else { Err(None) }
            }
        }
    }

    /// Hands up data of a peer whom a handshake has proven.
    pub(crate) fn deliver_on_route(&mut self, now: Instant, id: RouteId, arrival: &Arrival, delivery: Delivery) {
        let (interface, attributes, peer_name) = self.carriage(arrival);
        let Some(route) = self.routes.get_mut(id) else { return };
        if let Role::Querier(querier) = &mut route.role {
            querier.active_at = now;
        }
        let Some(sii) = route.peer else { return };
        let Some(peer) = self.peers.get(sii) else { return };
        let mri = route.key.mri.inverted();
        let provenance = Provenance {
            ip_ttl: ttl_of(arrival),
            explicit: delivery.explicit,
            from_flow_end: is_flow_end(&mri, peer.address),
            way_back: true,
            rtt: route.querier().and_then(Querier::rtt),
        };
        let event = Event::RecvMessage {
            nslp_id: route.key.nslp_id,
            session: route.key.session,
            mri,
            data: delivery.data,
            sii,
            peer: peer.address,
            claims: Some(sii),
            local: arrival.local,
            interface,
            ip_distance: route.distance,
            attributes,
            validated: attributes.secure || self.settings.config().tls != TlsPolicy::Required,
            peer_name,
            association: arrival.via.association(),
            hops: delivery.hops,
            provenance,
            query: None,
        };
        self.out.count(Counter::DataDelivered);
        self.out.event(event);
    }

    /// Hands up data for which there is no routing state, marked so. `key` points toward the sender; of a `query` the NSLP
    /// has to say what becomes of it.
    pub(crate) fn deliver_stateless(
        &mut self,
        arrival: &Arrival,
        key: &RouteKey,
        delivery: Delivery,
        ip_distance: Option<u8>,
        query: Option<QueryId>,
    ) {
        let (interface, attributes, peer_name) = self.carriage(arrival);
        let (sii, peer, claims) = match arrival.via {
            Via::Datagram { source, .. } => (NO_PEER, source.ip(), delivery.claims),
            Via::Association(id) => {
                let Some(peer) = self.associations.peer(id) else { return };
                let name = self.associations.name(id);
                let sii = name.and_then(|(identity, address)| self.peers.find(identity, address));
                (sii.unwrap_or(NO_PEER), peer.ip(), sii)
            }
        };
        let mri = key.mri.inverted();
        let provenance = Provenance {
            ip_ttl: ttl_of(arrival),
            explicit: delivery.explicit,
            from_flow_end: is_flow_end(&mri, delivery.named.unwrap_or(peer)),
            way_back: self.routes.find(key).and_then(|id| self.routes.get(id)).is_some_and(Route::is_ready),
            rtt: None,
        };
        let event = Event::RecvMessage {
            nslp_id: key.nslp_id,
            session: key.session,
            mri,
            data: delivery.data,
            sii,
            peer,
            claims,
            local: arrival.local,
            interface,
            ip_distance,
            attributes,
            validated: false,
            peer_name,
            association: arrival.via.association(),
            hops: delivery.hops,
            provenance,
            query,
        };
        self.out.count(Counter::DataDelivered);
        self.out.event(event);
    }

    /// Returns where a message came, how it was carried, and the name in its sender's certificate.
    fn carriage(&self, arrival: &Arrival) -> (InterfaceId, TransferAttributes, Option<String>) {
        match arrival.via {
            Via::Datagram { interface, .. } => (interface, TransferAttributes::default(), None),
            Via::Association(id) => {
                let secure = self.associations.has_stack(id, Stack::Tls);
                let name = self.associations.certified(id).map(str::to_owned);
                (InterfaceId::default(), TransferAttributes { reliable: true, secure, inside: false }, name)
            }
        }
    }
}

/// What a message has for the NSLP.
pub(crate) struct Delivery {
    data: Vec<u8>,
    hops: u8,
    explicit: bool,
    /// The address that its sender names as its own.
    named: Option<IpAddr>,
    /// The known peer that a datagram without routing state says it is from.
    claims: Option<SiiHandle>,
}

impl Delivery {
    pub(crate) fn of(message: Message) -> Delivery {
        Delivery {
            data: message.nslp_data.unwrap_or_default(),
            hops: message.hops,
            explicit: message.explicit,
            named: message.nli.map(|nli| nli.address),
            claims: None,
        }
    }

    /// Returns what a message of a handshake has, if it has a payload, and takes that out of it.
    pub(crate) fn take(message: &mut Message) -> Option<Delivery> {
        let data = message.nslp_data.take()?;
        let named = message.nli.as_ref().map(|nli| nli.address);
        Some(Delivery { data, hops: message.hops, explicit: message.explicit, named, claims: None })
    }

    /// Returns the same, perhaps without a payload.
    pub(crate) fn take_or_empty(message: &mut Message) -> Delivery {
        message.nslp_data.get_or_insert_default();
        Delivery::take(message).expect("there is a payload")
    }
}

fn ttl_of(arrival: &Arrival) -> Option<u8> {
    match arrival.via {
        Via::Datagram { ttl, .. } => Some(ttl),
        Via::Association(_) => None,
    }
}

/// Returns whether an address is the end that a message about a flow comes from.
fn is_flow_end(mri: &Mri, address: IpAddr) -> bool {
    query_target(&mri.inverted()) == Some(address)
}

/// RFC 5971 §5.1: Data has an NLI in D-mode, Q-mode included, and none in C-mode.
fn encapsulation_fault(arrival: &Arrival, message: &Message) -> Option<Fault> {
    match (arrival.via, &message.nli) {
        (Via::Datagram { .. }, None) => Some(Fault::missing(NLI)),
        (Via::Association(_), Some(_)) => Some(Fault::of_type(ErrorCode::InvalidObjectType, NLI)),
        (Via::Datagram { .. }, Some(_)) | (Via::Association(_), None) => None,
    }
}

/// The handle that names nobody.
const NO_PEER: SiiHandle = SiiHandle::new(0, 0);
