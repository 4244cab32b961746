// SPDX-License-Identifier: Apache-2.0
//! Confirms, which make or refresh rows if they bring back a cookie of this node.

use netserv_wire::gist::{Message, Nli, StackProposal};

use super::accept::{Seen, accept};
use super::cookie::{CookieJar, Opened, Sealed};
use crate::api::{AssociationId, Counter, TlsPolicy};
use crate::associations::{Associations, stack};
use crate::cx::Cx;
use crate::messages::{
    Arrival, Delivery, Fault, STACK_CONFIGURATION, STACK_PROPOSAL, Via, deliver_on_route, flush, send_error,
    source_fits,
};
use crate::routing::{RouteKey, Routes};

/// Takes a Confirm. Returns an association that has to end, since its peer said nothing good so far.
pub(super) fn on_confirm(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    cookies: &mut CookieJar,
    arrival: &Arrival,
    mut message: Message,
) -> Option<AssociationId> {
    let (mri, session, nli) = (message.mri.take()?, message.session?, message.nli.take()?);
    // What is beyond a NAT calls itself by an address that the NAT does not send from; the cookie knows the NAT's.
    let beyond_nats = message.responder_cookie.as_ref().is_some_and(CookieJar::is_beyond_nats);
    if !beyond_nats && !source_fits(cx.out, associations, arrival, &nli) {
        return None;
    }
    let key = RouteKey { session, nslp_id: message.nslp_id, mri: mri.inverted() };
    let cookie = message.responder_cookie.as_ref();
    let opened = cookie.and_then(|cookie| cookies.open(cx.now, cx.random, &key, &nli, cookie));
    let Some(Opened { sealed, key, address, inside }) = opened else {
        cx.out.count(Counter::CookiesRefused);
        return None;
    };
    let Sealed { interface, distance, along_flow } = sealed;
    let nli = Nli { address, ..nli };
    if beyond_nats && !source_fits(cx.out, associations, arrival, &nli) {
        return None;
    }
    let distance = arrival.hop_distance(&mri, &nli).or(distance);
    (message.mri, message.nli) = (Some(mri), Some(nli.clone()));
    let checked = fits_association(cx, routes, associations, arrival, &message)
        .and_then(|()| is_in_scope(cx, associations, arrival, &key));
    if let Err(Refused { end }) = checked {
        return end;
    }
    let (port, association) = match arrival.via {
        Via::Datagram { source, .. } => (Some(source.port()), None),
        Via::Association(id) => (None, Some(id)),
    };
    let hold_time = message.stack_configuration.as_ref().map(|configuration| configuration.hold_time);
    let (nli, local) = (&nli, arrival.local);
    let seen = Seen { nli, port, local, interface, association, hold_time, distance, along_flow, inside };
    let id = accept(cx, routes, associations, key, &seen)?;
    cx.out.count(Counter::ConfirmsAccepted);
    if let Some(delivery) = Delivery::take(&mut message) {
        deliver_on_route(cx, routes, associations, id, arrival, delivery);
    }
    flush(cx, routes, associations, id);
    routes.arm(cx.timers, id);
    None
}

/// A Confirm that makes no row.
struct Refused {
    /// Its association, if that has to end.
    end: Option<AssociationId>,
}

/// Checks how a Confirm comes and what it says of connections; a new connection that fails has to end.
fn fits_association(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    confirm: &Message,
) -> Result<(), Refused> {
    let Via::Association(id) = arrival.via else {
        if cx.config().tls == TlsPolicy::Required {
            cx.out.count(Counter::StacksRefused);
            return Err(Refused { end: None });
        }
        let fits = confirm.stack_proposal.as_ref().is_none_or(|echo| is_our_proposal(cx, echo));
        return if fits { Ok(()) } else { Err(Refused { end: None }) };
    };
    let proven = associations.name(id).is_some();
    let fault = match &confirm.stack_proposal {
        Some(echo) if !is_our_proposal(cx, echo) => None,
        Some(_) if proven || confirm.stack_configuration.is_some() => return Ok(()),
        None if proven => return Ok(()),
        Some(_) => Some(Fault::missing(STACK_CONFIGURATION)),
        None => Some(Fault::missing(STACK_PROPOSAL)),
    };
    if let Some(fault) = fault {
        send_error(cx, routes, associations, arrival, fault, confirm);
    }
    Err(Refused { end: (!proven).then_some(id) })
}

/// Checks that a peer may speak about a flow; if it may not, and has said nothing good so far, its connection has to end.
fn is_in_scope(cx: &mut Cx<'_>, associations: &Associations, arrival: &Arrival, key: &RouteKey) -> Result<(), Refused> {
    let Via::Association(id) = arrival.via else { return Ok(()) };
    if associations.may_carry(id, &key.mri) {
        return Ok(());
    }
    cx.out.count(Counter::FlowsForbidden);
    Err(Refused { end: associations.name(id).is_none().then_some(id) })
}

/// Returns whether a peer saw the stacks that this node offers; if not, somebody changed them (RFC 5971 §8.6).
fn is_our_proposal(cx: &mut Cx<'_>, echo: &StackProposal) -> bool {
    let ours = *echo == stack::proposal(cx.config().tls.stacks());
    if !ours {
        cx.out.count(Counter::StacksRefused);
    }
    ours
}
