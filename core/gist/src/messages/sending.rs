// SPDX-License-Identifier: Apache-2.0
//! NSLP messages on their way out (RFC 5971 §4.3.2, §4.3.3): checked, queued, or sent past the routing table.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::{Direction, MessageType, Mri, Nli};

use super::flush::{DATAGRAM, flush, send_data_on, tell_status};
use crate::api::{
    ApiError, Audience, Carriage, Counter, FailReason, MessageHandle, Mode, RouteId, SendOptions, SendStatus,
    SiiHandle, StateUse, TlsPolicy, TransferAttributes,
};
use crate::associations::Associations;
use crate::cx::Cx;
use crate::limits;
use crate::routing::{self, Pending, Querier, Route, RouteKey, Routes, q_mode_ttl, query_target};

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

/// What a message that was taken needs from here on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Needs {
    Nothing,
    /// The first handshake of its row.
    Handshake(RouteId),
    /// What its row lacks for it, if it lacks something.
    Row(RouteId),
}

/// Takes a message, and sends it if it can go at once.
pub(crate) fn send(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    mut outgoing: Outgoing,
    local: IpAddr,
) -> Result<Needs, ApiError> {
    check_outgoing(cx, routes, &outgoing)?;
    outgoing.attributes.secure |= cx.config().tls == TlsPolicy::Required;
    let known = routes.find(&outgoing.key);
    let current = known.and_then(|id| routes.get(id)).and_then(Route::peer);
    if let Some(sii) = outgoing.sii {
        // Of several nodes before it, a peer has routing state for one; the others it takes for strangers.
        let peer = routes.peers().get(sii).ok_or(ApiError::UnknownPeer(sii))?;
        let least = outgoing.attributes.least_stack();
        let open = || associations.open_to((&peer.identity, peer.address), least, true).is_some();
        if Some(sii) != current || (!outgoing.attributes.reliable && open()) {
            return send_explicitly(cx, routes, associations, outgoing, sii);
        }
    }
    let peer = current.and_then(|sii| routes.peers().get(sii));
    let target = peer.map(|peer| peer.address).or_else(|| query_target(&outgoing.key.mri));
    let needs_association = !may_go_in_datagram(cx, &outgoing, target);
    // Who takes what goes by itself nobody knows beforehand.
    let alone = outgoing.options.state == StateUse::NotNeeded && !needs_association && !outgoing.attributes.inside;
    let id = match known {
        Some(id) => id,
        None if alone => return send_alone(cx, routes, outgoing, local),
        None => new_querier(cx, routes, &outgoing.key, outgoing.options.state, local)?,
    };
    let hops = outgoing.hops.unwrap_or(cx.config().hops);
    let Some(route) = routes.get_mut(id) else { return Err(ApiError::NoRoute) };
    if route.pending().len() >= limits::PENDING_PER_ROUTE_MAX {
        return Err(ApiError::QueueFull);
    }
    if route.association().is_some_and(|id| !associations.may_wait(id, outgoing.data.len())) {
        return Err(ApiError::QueueFull);
    }
    route.note_message(cx.now, local, hops, outgoing.options.ip_ttl);
    let Outgoing { handle, attributes, timeout, data, options, .. } = outgoing;
    let SendOptions { priority, ip_ttl, .. } = options;
    let deadline = cx.now + timeout;
    let message = Pending { handle, data, attributes, needs_association, hops, priority, ip_ttl, deadline };
    routes.push_pending(id, message);
    if known.is_none() {
        return Ok(Needs::Handshake(id));
    }
    flush(cx, routes, associations, id);
    Ok(Needs::Row(id))
}

fn check_outgoing(cx: &Cx<'_>, routes: &Routes, outgoing: &Outgoing) -> Result<(), ApiError> {
    let bytes = outgoing.data.len();
    if !cx.settings.hosts(outgoing.key.nslp_id) {
        return Err(ApiError::UnknownNslp(outgoing.key.nslp_id));
    }
    if bytes > limits::DATA_BYTES_MAX {
        return Err(ApiError::TooLarge { bytes, max: limits::DATA_BYTES_MAX });
    }
    if outgoing.hops == Some(0) || outgoing.options.ip_ttl == Some(0) {
        return Err(ApiError::NoHops);
    }
    if outgoing.attributes.secure && cx.config().tls == TlsPolicy::Off {
        return Err(ApiError::SecureUnsupported);
    }
    if routes.pending_bytes() + bytes > limits::PENDING_BYTES_MAX {
        return Err(ApiError::QueueFull);
    }
    Ok(())
}

/// Makes a row that starts with a Query, which goes upstream only if that is asked for.
fn new_querier(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    key: &RouteKey,
    state: StateUse,
    local: IpAddr,
) -> Result<RouteId, ApiError> {
    if key.mri.direction() != Some(Direction::Downstream) && state != StateUse::Queried {
        return Err(ApiError::NoRoute);
    }
    check_target(&key.mri, local)?;
    if routes.is_full(cx.config(), key.nslp_id) {
        cx.out.count(Counter::RoutesRefused);
        return Err(ApiError::TableFull);
    }
    let querier = Querier::new(cx.now, cx.config().inactivity);
    Ok(routes.insert(Route::querying(key.clone(), local, cx.config().hops, querier)))
}

/// Sends a message in Q-mode to whoever is next, without any state (RFC 5971 §5.3.2).
fn send_alone(cx: &mut Cx<'_>, routes: &Routes, outgoing: Outgoing, local: IpAddr) -> Result<Needs, ApiError> {
    let destination = check_target(&outgoing.key.mri, local)?;
    let (nslp_id, handle) = (outgoing.key.nslp_id, outgoing.handle);
    let ttl = q_mode_ttl(&outgoing.key.mri, outgoing.options.ip_ttl);
    let ip_ttl = if outgoing.key.mri.direction() == Some(Direction::Downstream) { ttl } else { 0 };
    let mut data = outgoing.key.message(MessageType::Data);
    data.hops = outgoing.hops.unwrap_or(cx.config().hops);
    data.context_free = true;
    data.nli = Some(Nli { ip_ttl, ..cx.settings.nli(local, routes.validity(cx.config())) });
    data.nslp_data = Some(outgoing.data);
    let sent = cx.out.send_along_flow(cx.now, (local, destination), ttl, cx.settings.router_alert(nslp_id), &data);
    let sent = sent.then_some(DATAGRAM_ALONE).ok_or(FailReason::RateLimited);
    tell_status(cx.out, nslp_id, handle, sent);
    Ok(Needs::Nothing)
}

/// Sends to a peer that need not be the next one any more, past the routing table (RFC 5971 §7.1.4).
fn send_explicitly(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &mut Associations,
    outgoing: Outgoing,
    sii: SiiHandle,
) -> Result<Needs, ApiError> {
    let peer = routes.peers().get(sii).ok_or(ApiError::UnknownPeer(sii))?;
    let fits = may_go_in_datagram(cx, &outgoing, Some(peer.address));
    let least = outgoing.attributes.least_stack();
    let nslp_id = outgoing.key.nslp_id;
    let route = routes.find(&outgoing.key).and_then(|id| routes.get(id));
    let mri = route.map_or(&outgoing.key.mri, Route::mri_for_peer).clone();
    let mut data = RouteKey { mri, ..outgoing.key }.message(MessageType::Data);
    data.hops = outgoing.hops.unwrap_or(cx.config().hops);
    data.explicit = true;
    data.nslp_data = Some(outgoing.data);
    let sent = match associations.open_to((&peer.identity, peer.address), least, !outgoing.attributes.reliable) {
        Some(id) if associations.has_room(id) => send_data_on(cx, associations, id, &data),
        Some(_) | None if fits => {
            data.nli = Some(cx.settings.nli(peer.local, routes.validity(cx.config())));
            let ends = (peer.local, SocketAddr::new(peer.address, peer.port));
            let sent = cx.out.send_to(cx.now, Audience::Peer, ends, outgoing.options.ip_ttl, &data);
            sent.then_some(DATAGRAM).ok_or(FailReason::RateLimited)
        }
        Some(_) => Err(FailReason::Congested),
        None => Err(FailReason::NoAssociation),
    };
    tell_status(cx.out, nslp_id, outgoing.handle, sent);
    Ok(Needs::Nothing)
}

/// Takes a message back that waits, and with it a Query that nobody else waits for.
pub(crate) fn abort(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    key: &RouteKey,
    handle: MessageHandle,
) -> Result<(), ApiError> {
    let id = routes.find(key).ok_or(ApiError::NotWaiting)?;
    let waits = |route: &Route| route.pending().iter().any(|message| message.handle == handle);
    if !routes.get(id).is_some_and(waits) {
        return Err(ApiError::NotWaiting);
    }
    let status = SendStatus::Failed(FailReason::Cancelled);
    routes.fail_pending(cx.out, id, status, |message| message.handle == handle);
    let unwanted = |route: &Route| route.peer().is_none() && route.pending().is_empty();
    if routes.get(id).is_some_and(unwanted) {
        routing::remove(cx, routes, associations, id, status);
    } else {
        flush(cx, routes, associations, id);
        routes.arm(cx.timers, id);
    }
    Ok(())
}

/// Returns whether D-mode will do for a message: it may get lost and be read, and is small enough whatever its MRI holds
/// (RFC 5971 §4.3.3, §5.3.3).
fn may_go_in_datagram(cx: &Cx<'_>, outgoing: &Outgoing, target: Option<IpAddr>) -> bool {
    if outgoing.attributes.reliable || outgoing.attributes.secure {
        return false;
    }
    let v4 = outgoing.key.mri.addresses().is_some_and(|(source, _)| source.is_ipv4());
    let (mri, address) = if v4 { (28, 4) } else { (56, 16) };
    let identity = cx.config().peer_identity.len().next_multiple_of(4);
    let nli = OBJECT_HEADER + 8 + identity + address;
    let rest = netserv_wire::gist::HEADER_BYTES + mri + OBJECT_HEADER + size_of::<SessionId>() + nli + OBJECT_HEADER;
    let configured = cx.config().datagram_bytes_max;
    let most = target.map_or(configured, |target| cx.out.path_mtus.message_bytes_max(cx.now, target, configured));
    rest + outgoing.data.len().next_multiple_of(4) <= most
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

const DATAGRAM_ALONE: Carriage = Carriage { mode: Mode::QMode, ..DATAGRAM };
/// Bytes of an object's type and length.
const OBJECT_HEADER: usize = 4;
