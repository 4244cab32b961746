// SPDX-License-Identifier: Apache-2.0
//! What messages have for NSLPs, on its way to them.

use std::net::IpAddr;

use netserv_wire::gist::{Message, Mri};

use super::arrival::{Arrival, Via};
use crate::api::{Counter, Event, InterfaceId, Provenance, QueryId, RouteId, SiiHandle, TlsPolicy, TransferAttributes};
use crate::associations::Associations;
use crate::associations::stack::Stack;
use crate::cx::Cx;
use crate::routing::{Querier, Route, RouteKey, Routes, query_target};

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

    /// Returns the same, with the known peer that it says it is from.
    pub(super) fn claimed_by(self, claims: Option<SiiHandle>) -> Delivery {
        Delivery { claims, ..self }
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

/// Where a message without routing state is from.
#[derive(Clone, Copy)]
pub(crate) struct Stateless<'a> {
    /// The row that it would have, which points toward the sender.
    pub(crate) key: &'a RouteKey,
    /// IP hops to the sender, if known.
    pub(crate) distance: Option<u8>,
    /// The Query that it came in, if the NSLP has to say what becomes of that.
    pub(crate) query: Option<QueryId>,
}

/// Hands up data of a peer whom a handshake has proven.
pub(crate) fn deliver_on_route(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &Associations,
    id: RouteId,
    arrival: &Arrival,
    delivery: Delivery,
) {
    let (interface, attributes, peer_name) = carriage(associations, arrival);
    let Some((route, peer)) = routes.get_with_peer(id) else { return };
    if let Some(querier) = route.querier_mut() {
        querier.note_activity(cx.now);
    }
    let (Some(sii), Some(peer)) = (route.peer(), peer) else { return };
    let mri = route.key().mri.inverted();
    let provenance = Provenance {
        ip_ttl: arrival.ttl(),
        explicit: delivery.explicit,
        from_flow_end: is_flow_end(&mri, peer.address),
        way_back: true,
        along_flow: route.is_along_flow(),
        rtt: route.querier().and_then(Querier::rtt),
    };
    cx.out.count(Counter::DataDelivered);
    cx.out.event(Event::RecvMessage {
        nslp_id: route.key().nslp_id,
        session: route.key().session,
        mri,
        data: delivery.data,
        sii,
        peer: peer.address,
        claims: Some(sii),
        local: arrival.local,
        interface,
        ip_distance: route.distance(),
        attributes,
        validated: attributes.secure || cx.config().tls != TlsPolicy::Required,
        peer_name,
        association: arrival.association(),
        hops: delivery.hops,
        provenance,
        query: None,
    });
}

/// Hands up data for which there is no routing state, marked so.
pub(crate) fn deliver_stateless(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &Associations,
    arrival: &Arrival,
    from: Stateless<'_>,
    delivery: Delivery,
) {
    let Stateless { key, distance, query } = from;
    let (interface, attributes, peer_name) = carriage(associations, arrival);
    let (sii, peer, claims) = match arrival.via {
        Via::Datagram { source, .. } => (NO_PEER, source.ip(), delivery.claims),
        Via::Association(id) => {
            let Some(peer) = associations.peer(id) else { return };
            let name = associations.name(id);
            let sii = name.and_then(|(identity, address)| routes.peers().find(identity, address));
            (sii.unwrap_or(NO_PEER), peer.ip(), sii)
        }
    };
    let mri = key.mri.inverted();
    let provenance = Provenance {
        ip_ttl: arrival.ttl(),
        explicit: delivery.explicit,
        from_flow_end: is_flow_end(&mri, delivery.named.unwrap_or(peer)),
        along_flow: false,
        way_back: routes.find(key).and_then(|id| routes.get(id)).is_some_and(Route::is_ready),
        rtt: None,
    };
    cx.out.count(Counter::DataDelivered);
    cx.out.event(Event::RecvMessage {
        nslp_id: key.nslp_id,
        session: key.session,
        mri,
        data: delivery.data,
        sii,
        peer,
        claims,
        local: arrival.local,
        interface,
        ip_distance: distance,
        attributes,
        validated: false,
        peer_name,
        association: arrival.association(),
        hops: delivery.hops,
        provenance,
        query,
    });
}

/// Returns where a message came, how it was carried, and the name in its sender's certificate.
fn carriage(associations: &Associations, arrival: &Arrival) -> (InterfaceId, TransferAttributes, Option<String>) {
    match arrival.via {
        Via::Datagram { interface, .. } => (interface, TransferAttributes::default(), None),
        Via::Association(id) => {
            let secure = associations.has_stack(id, Stack::Tls);
            let name = associations.certified(id).map(str::to_owned);
            (InterfaceId::default(), TransferAttributes { reliable: true, secure, inside: false }, name)
        }
    }
}

/// Returns whether an address is the end that a message about a flow comes from.
fn is_flow_end(mri: &Mri, address: IpAddr) -> bool {
    query_target(&mri.inverted()) == Some(address)
}

/// The handle that names nobody.
const NO_PEER: SiiHandle = SiiHandle::new(0, 0);
