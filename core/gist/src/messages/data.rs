// SPDX-License-Identifier: Apache-2.0
//! Data that comes in (RFC 5971 §4.3.1): whose it is, and whether to believe it.

use netserv_model::Instant;
use netserv_wire::gist::{Direction, ErrorCode, Message, Mri, Nli};

use super::arrival::{Arrival, UPSTREAM_TTL_MIN, Via, source_fits};
use super::delivery::{Delivery, Stateless, deliver_on_route, deliver_stateless};
use super::errors::{Fault, NLI, send_error};
use crate::api::{AssociationId, Counter, RouteId};
use crate::associations::Associations;
use crate::cx::{Cx, NetworkBuckets, TokenBucket};
use crate::limits;
use crate::routing::{Route, RouteKey, Routes};

/// Bounds Data that no routing state vouches for: anybody can send a datagram in anybody's name.
#[derive(Debug)]
pub(crate) struct StatelessLimiter {
    of_network: NetworkBuckets,
    of_all: TokenBucket,
}

impl StatelessLimiter {
    pub(crate) fn new(secret: [u8; 32]) -> StatelessLimiter {
        StatelessLimiter {
            of_network: NetworkBuckets::new(limits::ALONE_RATE_PER_NETWORK, secret),
            of_all: TokenBucket::new(limits::ALONE_RATE),
        }
    }

    /// Returns whether one more is handed up. Over a connection, that holds its peer back.
    fn may_come(&mut self, now: Instant, arrival: &Arrival, in_q_mode: bool) -> bool {
        let Via::Datagram { source, .. } = arrival.via else { return true };
        (!in_q_mode || self.of_network.take(now, source.ip())) && self.of_all.take(now)
    }
}

/// Takes Data, by the order of checks in RFC 5971 §4.3.1.
pub(crate) fn on_data(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    stateless: &mut StatelessLimiter,
    arrival: &Arrival,
    message: Message,
) {
    let (Some(mri), Some(session)) = (message.mri.as_ref(), message.session) else { return };
    let key = RouteKey { session, nslp_id: message.nslp_id, mri: mri.inverted() };
    if let Some(fault) = encapsulation_fault(arrival, &message) {
        send_error(cx, routes, associations, arrival, fault, &message);
        return;
    }
    let known = routes.find_meant(&key);
    let passes_nat = known.and_then(|id| routes.get(id)).is_some_and(Route::passes_nat);
    // In Q-mode the IP source may be the flow's, and beyond a NAT, which may be where the state was lost, it is the NAT's.
    let refused = known.is_none() && !message.explicit;
    let own_source = message.source_is_signaller || !(message.context_free || passes_nat || refused);
    if own_source && message.nli.as_ref().is_some_and(|nli| !source_fits(cx.out, associations, arrival, nli)) {
        return;
    }
    if let Some(fault) = q_mode_fault(arrival, &message, mri) {
        send_error(cx, routes, associations, arrival, fault, &message);
        return;
    }
    let distance = message.nli.as_ref().and_then(|nli| arrival.hop_distance(mri, nli));
    if let Some(id) = known.filter(|id| message.explicit && is_peer_of(routes, associations, *id, arrival)) {
        deliver_on_route(cx, routes, associations, id, arrival, Delivery::of(message));
        return;
    }
    if message.explicit || message.context_free {
        if !stateless.may_come(cx.now, arrival, message.context_free) {
            cx.out.count(Counter::DataLimited);
            return;
        }
        let claims = message.nli.as_ref().and_then(|nli| routes.peers().find_node(&nli.peer_identity, nli.address));
        let delivery = Delivery::of(message).claimed_by(claims);
        deliver_stateless(cx, routes, associations, arrival, Stateless { key: &key, distance, query: None }, delivery);
        return;
    }
    let Some(id) = known else {
        cx.out.count(Counter::DataDropped);
        send_error(cx, routes, associations, arrival, ErrorCode::NoRoutingState.into(), &message);
        return;
    };
    match belongs(routes, id, arrival, message.nli.as_ref()) {
        Ok(()) => {
            if let Some(route) = routes.get_mut(id) {
                route.set_distance(distance.or(route.distance()));
            }
            deliver_on_route(cx, routes, associations, id, arrival, Delivery::of(message));
        }
        Err(fault) => {
            cx.out.count(Counter::DataDropped);
            if let Some(fault) = fault {
                send_error(cx, routes, associations, arrival, fault, &message);
            }
        }
    }
}

/// Returns what is wrong with Data in Q-mode: upstream it comes from next door (RFC 5971 §5.8.1.3).
fn q_mode_fault(arrival: &Arrival, message: &Message, mri: &Mri) -> Option<Fault> {
    let upstream = message.context_free && mri.direction() == Some(Direction::Upstream);
    (upstream && arrival.ttl()? < UPSTREAM_TTL_MIN).then(|| ErrorCode::InvalidIpTtl.into())
}

/// Returns whether a connection, of which there may be several, leads to the peer that the row leads to.
fn is_peer_of(routes: &Routes, associations: &Associations, id: RouteId, arrival: &Arrival) -> bool {
    let in_scope = |association: &AssociationId| {
        routes.get(id).is_some_and(|route| associations.may_carry(*association, &route.key().mri))
    };
    let association = arrival.association().filter(in_scope);
    let name = association.and_then(|association| associations.name(association));
    name.is_some_and(|(identity, address)| routes.leads_to(id, identity, address))
}

/// Checks that Data comes from the peer that the row leads to.
fn belongs(routes: &Routes, id: RouteId, arrival: &Arrival, nli: Option<&Nli>) -> Result<(), Option<Fault>> {
    let Some(route) = routes.get(id) else { return Err(None) };
    match arrival.via {
        Via::Association(association) if route.association() == Some(association) => Ok(()),
        Via::Association(_) => Err(Some(ErrorCode::IncorrectlyDelivered.into())),
        Via::Datagram { source, .. } => {
            // What is beyond a NAT calls itself by an address that is of no use here.
            let address = |nli: &Nli| if route.passes_nat() { source.ip() } else { nli.address };
            let same = nli.is_some_and(|nli| routes.leads_to(id, &nli.peer_identity, address(nli)));
            if same { Ok(()) } else { Err(None) }
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
