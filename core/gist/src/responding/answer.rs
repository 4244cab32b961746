// SPDX-License-Identifier: Apache-2.0
//! Responses to peers' Queries.

use std::net::SocketAddr;

use netserv_wire::gist::{Message, MessageType};

use super::accept::{Seen, accept};
use super::checks::leads_along;
use super::cookie::{CookieJar, Sealed};
use crate::api::{AssociationId, Audience, Counter, ResponderPolicy};
use crate::associations::Associations;
use crate::associations::stack::{self, Ports, Stack};
use crate::cx::Cx;
use crate::messages::{Arrival, Via};
use crate::routing::{RouteKey, Routes};

/// Answers a Query, whose sender becomes a peer. Nothing is kept for it, unless the policy says so.
pub(super) fn answer(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    cookies: &mut CookieJar,
    arrival: &Arrival,
    query: &Message,
    data: Option<Vec<u8>>,
) {
    let Via::Datagram { source, interface, .. } = arrival.via else { return };
    let (Some(mri), Some(session), Some(nli)) = (query.mri.as_ref(), query.session, query.nli.as_ref()) else {
        return;
    };
    let distance = arrival.hop_distance(mri, nli);
    let key = RouteKey { session, nslp_id: query.nslp_id, mri: mri.inverted() };
    let inside = query.nat_traversal.as_ref().map(|nats| nats.mri.inverted());
    let (port, local) = (Some(source.port()), arrival.local);
    let along_flow = leads_along(mri, arrival.destination);
    let seen = Seen { nli, port, local, interface, association: None, hold_time: None, distance, along_flow, inside };
    let association = shared_association(cx, associations, query);
    let mut response = response(cx, routes, cookies, &key, query, &seen, association);
    if data.is_some() {
        response.nslp_data = data;
        if association.is_none() && response.emit().len() > cx.config().datagram_bytes_max {
            response.nslp_data = None;
            cx.out.count(Counter::DataDropped);
        }
    }
    cx.out.count(Counter::QueriesAnswered);
    if !response.reply_wanted {
        accept(cx, routes, associations, key, &seen);
    }
    match association {
        Some(association) => _ = associations.send(cx, association, &response),
        None => {
            let known = routes.peers().find(&nli.peer_identity, nli.address).is_some();
            let audience = if known { Audience::Peer } else { Audience::Querier };
            let peer = SocketAddr::new(nli.address, source.port());
            let sent = cx.out.send_to(cx.now, audience, (local, peer), None, &response);
            if sent && response.stack_configuration.is_some() {
                associations.invite(cx.now, peer);
            }
        }
    }
}

fn response(
    cx: &mut Cx<'_>,
    routes: &Routes,
    cookies: &mut CookieJar,
    key: &RouteKey,
    query: &Message,
    seen: &Seen<'_>,
    association: Option<AssociationId>,
) -> Message {
    let mut response = key.clone().message(MessageType::Response);
    response.nli = Some(cx.settings.nli_for(&key.mri, seen.distance, seen.local, routes.validity(cx.config())));
    response.query_cookie = query.query_cookie.clone();
    // RFC 5971 §7.2.2: the querier finds its state by what the NATs found, and cannot check the source.
    response.nat_traversal = query.nat_traversal.clone();
    response.source_is_signaller = association.is_some() || query.nat_traversal.is_none();
    if query.stack_proposal.is_none() && cx.config().policy == ResponderPolicy::Immediate {
        return response;
    }
    response.reply_wanted = true;
    let sealed = Sealed { interface: seen.interface, distance: seen.distance, along_flow: seen.along_flow };
    let row = (key, seen.inside.as_ref());
    response.responder_cookie = Some(cookies.seal(cx.now, cx.random, row, seen.nli, sealed));
    if query.stack_proposal.is_some() && association.is_none() {
        let (stacks, hold_time) = (cx.config().tls.stacks(), cx.config().hold_time);
        let ports = Ports { plain: cx.config().tcp_port, tls: cx.config().tls_port };
        response.stack_proposal = Some(stack::proposal(stacks));
        response.stack_configuration = Some(stack::configuration(stacks, hold_time, Some(ports)));
    }
    response
}

/// Returns an open association with the Query's sender that will do for the Query (RFC 5971 §5.7.4).
fn shared_association(cx: &mut Cx<'_>, associations: &Associations, query: &Message) -> Option<AssociationId> {
    let (proposal, nli) = (query.stack_proposal.as_ref()?, query.nli.as_ref()?);
    let id = associations.find(nli, Stack::Plain)?;
    let stack = associations.stack(id)?;
    // A connection that has been silent for too long may be dead, and a Response on it would be lost.
    let alive = associations.is_alive(id, cx.now, cx.config().hold_time) && associations.has_room(id);
    let fits = stack::will_do(stack, proposal) && alive;
    if fits {
        cx.out.count(Counter::AssociationsReused);
    }
    fits.then_some(id)
}
