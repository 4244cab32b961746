// SPDX-License-Identifier: Apache-2.0
//! The routing table (RFC 5971 §4.3): which peer comes next, for each flow with direction, session and NSLP.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use netserv_model::{Instant, SessionId};
use netserv_wire::gist::{Mri, Nli};

use crate::api::{
    AssociationId, Event, InterfaceId, MessageHandle, Notification, RouteId, SendStatus, SiiHandle, TransferAttributes,
};
use crate::associations::stack::Stack;
use crate::context::{Deadline, Owner, earlier, site};
use crate::engine::Engine;
use crate::querier::{Phase, Querier, query_target};

/// What a row is looked up by; `mri` points toward the peer. The session leads, since it tells rows apart at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RouteKey {
    pub(crate) session: SessionId,
    pub(crate) nslp_id: u16,
    pub(crate) mri: Mri,
}

/// One row.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) key: Arc<RouteKey>,
    /// This node's address toward the peer.
    pub(crate) local: IpAddr,
    /// The hop count for Queries.
    pub(crate) hops: u8,
    /// The TTL for Queries downstream, if the NSLP named one.
    pub(crate) ip_ttl: Option<u8>,
    pub(crate) peer: Option<SiiHandle>,
    /// IP hops to the peer.
    pub(crate) distance: Option<u8>,
    pub(crate) association: Option<AssociationId>,
    /// A reliable message went over the association.
    pub(crate) reliable_sent: bool,
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) role: Role,
    /// When the row's timer fires.
    timer: Option<Instant>,
    /// How a GIST-aware NAT between changes what both ends say.
    pub(crate) nat: NatSide,
}

/// Where a row's peer is, as far as GIST-aware NATs are concerned (RFC 5971 §7.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NatSide {
    /// No NAT between said so.
    None,
    /// Beyond a NAT that translated this node's Query: its addresses are not those that the peer sees.
    Querier,
    /// Beyond a NAT that translated its Query. It calls the flow by this MRI, which points toward it.
    Responder(Box<Mri>),
}

/// Which end of the handshake made the row.
#[derive(Debug)]
pub(crate) enum Role {
    Querier(Box<Querier>),
    Responder(Responder),
}

/// The responding end; it can only wait for refreshes.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) expires_at: Instant,
    /// Where the peer's Query arrived.
    pub(crate) interface: InterfaceId,
}

/// An NSLP message that waits for its route.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) handle: MessageHandle,
    pub(crate) data: Vec<u8>,
    pub(crate) attributes: TransferAttributes,
    pub(crate) needs_association: bool,
    pub(crate) hops: u8,
    pub(crate) priority: u8,
    pub(crate) ip_ttl: Option<u8>,
    pub(crate) deadline: Instant,
}

impl Pending {
    /// Returns the least stack that the message may go over, if it goes over a connection.
    pub(crate) fn least_stack(&self) -> Stack {
        self.attributes.least_stack()
    }
}

impl Route {
    pub(crate) fn new(key: RouteKey, local: IpAddr, hops: u8, role: Role) -> Route {
        Route {
            key: Arc::new(key),
            local,
            hops,
            ip_ttl: None,
            peer: None,
            distance: None,
            association: None,
            reliable_sent: false,
            pending: VecDeque::new(),
            role,
            timer: None,
            nat: NatSide::None,
        }
    }

    /// Returns the MRI by which the peer knows the flow.
    pub(crate) fn mri_for_peer(&self) -> &Mri {
        match &self.nat {
            NatSide::None | NatSide::Querier => &self.key.mri,
            NatSide::Responder(mri) => mri,
        }
    }

    /// Returns whether what goes between this node and the peer passes a GIST-aware NAT.
    pub(crate) fn passes_nat(&self) -> bool {
        match self.nat {
            NatSide::None => false,
            NatSide::Querier | NatSide::Responder(_) => true,
        }
    }

    fn alias(&self) -> Option<RouteKey> {
        match &self.nat {
            NatSide::None | NatSide::Querier => None,
            NatSide::Responder(mri) => Some(RouteKey { mri: Mri::clone(mri), ..RouteKey::clone(&self.key) }),
        }
    }

    pub(crate) fn querier(&self) -> Option<&Querier> {
        match &self.role {
            Role::Querier(querier) => Some(querier),
            Role::Responder(_) => None,
        }
    }

    pub(crate) fn querier_mut(&mut self) -> Option<&mut Querier> {
        match &mut self.role {
            Role::Querier(querier) => Some(querier),
            Role::Responder(_) => None,
        }
    }

    /// Returns whether messages can go to the peer, as far as the handshake is concerned.
    pub(crate) fn is_ready(&self) -> bool {
        let phase_ok = match &self.role {
            Role::Querier(querier) => match querier.phase {
                Phase::Asking | Phase::Connecting => false,
                Phase::Established | Phase::Refreshing => true,
            },
            Role::Responder(_) => true,
        };
        phase_ok && self.peer.is_some()
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let messages = self.pending.iter().map(|message| message.deadline).min();
        let messages = messages.map(|at| (at, "message timeout"));
        let role = match &self.role {
            Role::Querier(querier) => Some(querier.deadline()),
            Role::Responder(responder) => Some((responder.expires_at, "route expiry")),
        };
        earlier(messages, role)
    }
}

/// The rows, with an index by key and one by target.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    rows: BTreeMap<RouteId, Box<Route>>,
    by_key: BTreeMap<Arc<RouteKey>, RouteId>,
    /// Rows whose peer is beyond a NAT, by what the peer calls them.
    by_alias: BTreeMap<RouteKey, RouteId>,
    /// Rows of this node's Queries, by where those go.
    by_target: BTreeSet<(IpAddr, RouteId)>,
    /// Rows of peers' Queries, by the site that each peer is in.
    responding_per_site: BTreeMap<IpAddr, usize>,
    /// Rows of the NSLPs that came while the engine ran, which are never looked for among all.
    pub(crate) guests: BTreeMap<u16, BTreeSet<RouteId>>,
    responding: usize,
    pub(crate) pending_bytes: usize,
    last: u64,
}

impl RouteTable {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn responding(&self) -> usize {
        self.responding
    }

    /// Returns how many rows the Confirms of a peer, and of others of its site, have made.
    pub(crate) fn responding_to(&self, peer: IpAddr) -> usize {
        self.responding_per_site.get(&site(peer)).copied().unwrap_or(0)
    }

    pub(crate) fn find(&self, key: &RouteKey) -> Option<RouteId> {
        self.by_key.get(key).copied()
    }

    /// Returns the row that a peer means by a key, which is this node's or that of a peer beyond a NAT.
    pub(crate) fn find_meant(&self, key: &RouteKey) -> Option<RouteId> {
        self.find(key).or_else(|| self.by_alias.get(key).copied())
    }

    /// Takes how NATs change what the row's peer says. Of two peers that call theirs alike, the later one is meant.
    pub(crate) fn set_nat(&mut self, id: RouteId, nat: NatSide) {
        let Some(route) = self.rows.get_mut(&id).filter(|route| route.nat != nat) else { return };
        let old = route.alias();
        route.nat = nat;
        let new = route.alias();
        self.forget_alias(id, old);
        if let Some(alias) = new {
            self.by_alias.insert(alias, id);
        }
    }

    fn forget_alias(&mut self, id: RouteId, alias: Option<RouteKey>) {
        if let Some(alias) = alias.filter(|alias| self.by_alias.get(alias) == Some(&id)) {
            self.by_alias.remove(&alias);
        }
    }

    pub(crate) fn get(&self, id: RouteId) -> Option<&Route> {
        self.rows.get(&id).map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, id: RouteId) -> Option<&mut Route> {
        self.rows.get_mut(&id).map(Box::as_mut)
    }

    /// Returns the rows whose key fits, out of all: slow.
    pub(crate) fn matching(&self, fits: impl Fn(&RouteKey) -> bool) -> Vec<RouteId> {
        self.rows.iter().filter(|(_, route)| fits(&route.key)).map(|(id, _)| *id).collect()
    }

    /// Returns the rows of an NSLP whose key fits; out of all, unless the NSLP is a guest.
    pub(crate) fn matching_of(&self, nslp_id: u16, fits: impl Fn(&RouteKey) -> bool) -> Vec<RouteId> {
        let Some(rows) = self.guests.get(&nslp_id) else {
            return self.matching(|key| key.nslp_id == nslp_id && fits(key));
        };
        let fits = |id: &&RouteId| self.rows.get(id).is_some_and(|route| fits(&route.key));
        rows.iter().filter(fits).copied().collect()
    }

    /// Returns the rows whose Queries go to an address.
    pub(crate) fn asking(&self, target: IpAddr) -> impl Iterator<Item = RouteId> + '_ {
        self.by_target.range((target, RouteId(0))..=(target, RouteId(u64::MAX))).map(|(_, id)| *id)
    }

    /// Puts a message in the row's queue, behind those of its priority; the caller has checked the bounds.
    pub(crate) fn push_pending(&mut self, id: RouteId, message: Pending) {
        let Some(route) = self.rows.get_mut(&id) else { return };
        self.pending_bytes += message.data.len();
        let before = route.pending.iter().rposition(|other| other.priority >= message.priority);
        route.pending.insert(before.map_or(0, |index| index + 1), message);
    }

    pub(crate) fn pop_pending(&mut self, id: RouteId) -> Option<Pending> {
        let route = self.rows.get_mut(&id)?;
        let message = route.pending.pop_front()?;
        if route.pending.is_empty() {
            // An idle row keeps no room for messages.
            route.pending = VecDeque::new();
        }
        self.pending_bytes -= message.data.len();
        Some(message)
    }

    fn insert(&mut self, route: Route) -> RouteId {
        self.last += 1;
        let id = RouteId(self.last);
        let old = self.by_key.insert(route.key.clone(), id);
        assert!(old.is_none(), "a key has one row");
        if let Some(target) = query_target(&route.key.mri).filter(|_| route.querier().is_some()) {
            self.by_target.insert((target, id));
        }
        if let Some(rows) = self.guests.get_mut(&route.key.nslp_id) {
            rows.insert(id);
        }
        self.rows.insert(id, Box::new(route));
        id
    }

    fn remove(&mut self, id: RouteId) -> Option<Box<Route>> {
        let route = self.rows.remove(&id)?;
        self.forget_alias(id, route.alias());
        self.by_key.remove(&route.key);
        if let Some(target) = query_target(&route.key.mri) {
            self.by_target.remove(&(target, id));
        }
        if let Some(rows) = self.guests.get_mut(&route.key.nslp_id) {
            rows.remove(&id);
        }
        Some(route)
    }

    /// Makes a row without a peer, whose Queries were this node's, one that is queried.
    pub(crate) fn make_responding(&mut self, id: RouteId) {
        let Some(route) = self.rows.get_mut(&id) else { return };
        route.role = Role::Responder(Responder { expires_at: Instant::default(), interface: InterfaceId::default() });
        if let Some(target) = query_target(&route.key.mri) {
            self.by_target.remove(&(target, id));
        }
    }

    fn count_responding(&mut self, peer: IpAddr, more: bool) {
        let count = self.responding_per_site.entry(site(peer)).or_default();
        *count = if more { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.responding_per_site.remove(&site(peer));
        }
        self.responding = if more { self.responding + 1 } else { self.responding - 1 };
    }
}

/// Rows together with what hangs on them: the peer, the association, the timer, waiting messages.
impl Engine {
    pub(crate) fn add_route(&mut self, route: Route) -> RouteId {
        self.routes.insert(route)
    }

    /// Removes a row; whatever waits on it gets the status.
    pub(crate) fn remove_route(&mut self, now: Instant, id: RouteId, status: SendStatus) {
        self.fail_pending(id, status, |_| true);
        self.set_peer(id, None);
        self.tie(now, id, None);
        self.set_route_timer(id, None);
        self.routes.remove(id);
    }

    /// Sets the row's timer anew; to be called after anything happened to the row.
    pub(crate) fn arm_route(&mut self, id: RouteId) {
        let deadline = self.routes.get(id).and_then(Route::deadline);
        self.set_route_timer(id, deadline.map(|(at, _)| at));
    }

    fn set_route_timer(&mut self, id: RouteId, at: Option<Instant>) {
        if let Some(route) = self.routes.get_mut(id) {
            let before = std::mem::replace(&mut route.timer, at);
            self.timers.set(Owner::Route(id), before, at);
        }
    }

    pub(crate) fn route_timeout(&mut self, now: Instant, id: RouteId) {
        if let Some(route) = self.routes.get_mut(id) {
            route.timer = None;
        }
        self.expire_pending(now, id);
        let Some(route) = self.routes.get(id) else { return };
        match &route.role {
            Role::Querier(_) => self.querier_timeout(now, id),
            Role::Responder(_) => self.responder_timeout(now, id),
        }
        self.arm_route(id);
    }

    /// Points the row at a peer and returns whether it pointed at another one before.
    pub(crate) fn set_peer(&mut self, id: RouteId, peer: Option<NewPeer<'_>>) -> bool {
        let Some(route) = self.routes.get_mut(id) else { return false };
        let new = peer.map(|peer| self.peers.acquire(peer.nli, peer.port, peer.local));
        let old = std::mem::replace(&mut route.peer, new);
        let responding = matches!(route.role, Role::Responder(_));
        for (sii, more) in [(old, false), (new, true)] {
            let Some(sii) = sii else { continue };
            let address = self.peers.get(sii).expect("a route holds its peer").address;
            if responding {
                self.routes.count_responding(address, more);
            }
        }
        if let Some(old) = old {
            self.peers.release(old);
        }
        old.is_some() && old != new
    }

    /// Drops waiting messages that `which` picks, and says so.
    pub(crate) fn fail_pending(&mut self, id: RouteId, status: SendStatus, which: impl Fn(&Pending) -> bool) {
        let Some(route) = self.routes.get_mut(id) else { return };
        let (failed, kept) = std::mem::take(&mut route.pending).into_iter().partition(|message| which(message));
        route.pending = kept;
        let failed: VecDeque<Pending> = failed;
        let nslp_id = route.key.nslp_id;
        for message in failed {
            self.routes.pending_bytes -= message.data.len();
            self.out.event(Event::MessageStatus { nslp_id, handle: message.handle, status, carriage: None });
        }
    }

    pub(crate) fn notify(&mut self, id: RouteId, kind: Notification) {
        let Some(route) = self.routes.get(id) else { return };
        let RouteKey { session, nslp_id, mri } = RouteKey::clone(&route.key);
        self.out.event(Event::NetworkNotification { nslp_id, session, mri, kind });
    }
}

/// A peer as a handshake showed it.
#[derive(Clone, Copy)]
pub(crate) struct NewPeer<'a> {
    pub(crate) nli: &'a Nli,
    /// Where datagrams for it go, if a datagram came from it.
    pub(crate) port: Option<u16>,
    pub(crate) local: IpAddr,
}
