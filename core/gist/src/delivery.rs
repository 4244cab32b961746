// SPDX-License-Identifier: Apache-2.0
//! NSLP messages on their way in (RFC 5971 §4.3.1): whose they are, and whether to believe them.

use std::net::IpAddr;

use netserv_model::Instant;
use netserv_wire::gist::{ErrorCode, Message, Nli};

use crate::api::{AssociationId, InterfaceId, SiiHandle, TlsPolicy, TransferAttributes};
use crate::counters::Counter;
use crate::engine::{Arrival, Engine, Via};
use crate::errors::{Fault, NLI};
use crate::event::Event;
use crate::responder::hop_distance;
use crate::routing::{Role, Route, RouteId, RouteKey};
use crate::stack::Stack;

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
        let distance = message.nli.as_ref().and_then(|nli| hop_distance(arrival, mri, nli));
        if let Some(id) = known.filter(|id| message.explicit && self.is_peer_of(*id, arrival)) {
            self.deliver_on_route(now, id, arrival, message.nslp_data.unwrap_or_default(), message.hops);
            return;
        }
        if message.explicit || message.context_free {
            self.deliver_stateless(arrival, &key, message.nslp_data.unwrap_or_default(), message.hops, distance);
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
                self.deliver_on_route(now, id, arrival, message.nslp_data.unwrap_or_default(), message.hops);
            }
            Err(fault) => {
                self.out.count(Counter::DataDropped);
                if let Some(fault) = fault {
                    self.send_error(now, arrival, fault, &message);
                }
            }
        }
    }

    /// Returns whether a connection, of which there may be several, leads to the peer that the row leads to.
    fn is_peer_of(&self, id: RouteId, arrival: &Arrival) -> bool {
        let in_scope = |association: &AssociationId| {
            self.routes.get(id).is_some_and(|route| self.associations.may_carry(*association, &route.key.mri))
        };
        let association = arrival.via.association().filter(in_scope);
        let association = association.and_then(|association| self.associations.get(association));
        let name = association.and_then(|association| association.name.as_ref());
        name.is_some_and(|(identity, address)| self.leads_to(id, identity, *address))
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
    pub(crate) fn deliver_on_route(&mut self, now: Instant, id: RouteId, arrival: &Arrival, data: Vec<u8>, hops: u8) {
        let (interface, attributes, peer_name) = self.carriage(arrival);
        let Some(route) = self.routes.get_mut(id) else { return };
        if let Role::Querier(querier) = &mut route.role {
            querier.active_at = now;
        }
        let Some(sii) = route.peer else { return };
        let Some(peer) = self.peers.get(sii) else { return };
        let event = Event::RecvMessage {
            nslp_id: route.key.nslp_id,
            session: route.key.session,
            mri: route.key.mri.inverted(),
            data,
            sii,
            peer: peer.address,
            local: arrival.local,
            interface,
            ip_distance: route.distance,
            attributes,
            validated: attributes.secure || self.config.tls != TlsPolicy::Required,
            peer_name,
            association: arrival.via.association(),
            hops,
        };
        self.out.count(Counter::DataDelivered);
        self.out.event(event);
    }

    /// Hands up data for which there is no routing state, marked so. `key` points toward the sender.
    pub(crate) fn deliver_stateless(
        &mut self,
        arrival: &Arrival,
        key: &RouteKey,
        data: Vec<u8>,
        hops: u8,
        ip_distance: Option<u8>,
    ) {
        let (interface, attributes, peer_name) = self.carriage(arrival);
        let (sii, peer) = match arrival.via {
            Via::Datagram { source, .. } => (NO_PEER, source.ip()),
            Via::Association(id) => {
                let Some(association) = self.associations.get(id) else { return };
                let name = association.name.as_ref();
                let sii = name.and_then(|(identity, address)| self.peers.find(identity, *address));
                (sii.unwrap_or(NO_PEER), association.peer.ip())
            }
        };
        let event = Event::RecvMessage {
            nslp_id: key.nslp_id,
            session: key.session,
            mri: key.mri.inverted(),
            data,
            sii,
            peer,
            local: arrival.local,
            interface,
            ip_distance,
            attributes,
            validated: false,
            peer_name,
            association: arrival.via.association(),
            hops,
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
                let name = self.associations.get(id).and_then(|association| association.certified.clone());
                (InterfaceId::default(), TransferAttributes { reliable: true, secure, inside: false }, name)
            }
        }
    }
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
