// SPDX-License-Identifier: Apache-2.0
//! Responses to this node's Queries.

use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::Message;
use rand::RngExt;

use super::completion::complete;
use super::connections::share_or_open;
use crate::api::{Counter, FailReason, Notification, RouteId, RouteStatus};
use crate::associations::{Associations, stack};
use crate::cx::Cx;
use crate::limits;
use crate::messages::{Arrival, Delivery, Via, deliver_on_route, source_fits};
use crate::routing::{Echo, NatSide, NewPeer, RouteKey, Routes};

/// Takes a Response to one of this node's Queries.
pub(crate) fn on_response(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    mut message: Message,
) {
    let delivery = Delivery::take(&mut message);
    let Some(id) = accept(cx, routes, associations, arrival, message) else { return };
    routes.arm(cx.timers, id);
    if let Some(delivery) = delivery {
        deliver_on_route(cx, routes, associations, id, arrival, delivery);
    }
}

fn accept(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    message: Message,
) -> Option<RouteId> {
    let Some((id, asked_at)) = match_query(routes, &message) else {
        cx.out.count(Counter::ResponsesUnsolicited);
        return None;
    };
    let nli = message.nli?;
    // What passed NATs need not come from where its sender is, and says so (RFC 5971 §7.2.2).
    let passed_nats = message.nat_traversal.is_some();
    let foreign_source = passed_nats && arrival.is_datagram() && !message.source_is_signaller;
    if foreign_source && !cx.settings.may_answer(nli.address) {
        cx.out.count(Counter::Unanswerable);
        return None;
    }
    if !foreign_source && !source_fits(cx.out, associations, arrival, &nli) {
        return None;
    }
    let distance = arrival.response_distance(message.mri.as_ref()?, &nli);
    let route = routes.get_mut(id)?;
    let had_peer = route.peer().is_some();
    route.set_distance(distance);
    let local = route.local();
    let changed = routes.set_peer(id, Some(NewPeer { nli: &nli, port: None, local }));
    routes.set_nat(id, if passed_nats { NatSide::Querier } else { NatSide::None });
    let refresh_at = cx.now + refresh_delay(cx, nli.validity);

    let route = routes.get_mut(id)?;
    let sii = route.peer()?;
    let querier = route.querier_mut()?;
    let echo = message
        .reply_wanted
        .then(|| Echo { cookie: message.responder_cookie, proposal: message.stack_proposal.clone() });
    let doubted = querier.answered(cx.now.since(asked_at), refresh_at, echo);
    let wants_association = querier.proposes().is_some();
    let mut without = FailReason::NoConnection;
    let association = match arrival.via {
        Via::Association(association) => Some(association),
        Via::Datagram { .. } => match (message.stack_proposal, message.stack_configuration) {
            (Some(proposal), Some(offer)) if wants_association => {
                match stack::choose(cx.config().tls.stacks(), &proposal, &offer) {
                    Some(chosen) => share_or_open(cx, routes, associations, local, &nli, chosen, offer.hold_time),
                    None => {
                        without = FailReason::NoStack;
                        None
                    }
                }
            }
            _ => None,
        },
    };
    complete(cx, routes, associations, id, association, without);
    if (changed && had_peer) || doubted {
        routes.notify(cx.out, id, Notification::StatusChange(RouteStatus::Good(sii)));
    }
    Some(id)
}

/// Returns the row whose Query a Response answers, and when that was sent: it must bring back the cookie of a copy
/// (RFC 5971 §4.4.1).
fn match_query(routes: &Routes, message: &Message) -> Option<(RouteId, Instant)> {
    // RFC 5971 §7.2.2: NATs say what they found in the Query, and the responder says what they made of it.
    let mri = match &message.nat_traversal {
        Some(nats) => nats.mri.clone(),
        None => message.mri.as_ref()?.inverted(),
    };
    let session = message.session?;
    let id = routes.find(&RouteKey { session, nslp_id: message.nslp_id, mri })?;
    let querier = routes.get(id)?.querier()?;
    let cookie = message.query_cookie.as_ref()?;
    let kept_well = message.responder_cookie.as_ref().is_none_or(|c| c.0.len() <= limits::COOKIE_BYTES_MAX)
        && message.stack_proposal.as_ref().is_none_or(|p| p.profiles.len() <= limits::STACK_PROFILES_MAX);
    querier.asked_with(cookie).filter(|_| kept_well).map(|asked_at| (id, asked_at))
}

fn refresh_delay(cx: &mut Cx<'_>, validity: Duration) -> Duration {
    let validity = validity.clamp(limits::PEER_TIME_MIN, limits::PEER_TIME_MAX);
    cx.random.random_range(validity / 2..=validity * 3 / 4)
}
